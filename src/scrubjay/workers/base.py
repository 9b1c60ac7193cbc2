"""Workers: who does bulk work. This process, child processes or a Ray cluster, behind one `map`.

A task is a call of an importable function: it depends on its arguments alone and writes nothing, so that it can be done
again where its worker is lost, and results do not depend on who works. The caller writes what comes back.
"""

from __future__ import annotations

import os
import pickle
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from scrubjay.errors import DataError, ProcessError

Result = TypeVar("Result")
TRIES = 3
"""Workers that a task may lose until it is taken for their murderer."""


class Workers(ABC):
    """Those who do tasks. They start when they are first needed, and end with the context or `close`."""

    @abstractmethod
    def map(
        self, function: Callable[..., Result], items: Iterable[tuple], gpu: bool = False
    ) -> Iterator[tuple[int, Result]]:
        """Calls a function with each item's arguments; yields items' indices and results as they finish.

        The function and its arguments are pickled, so its module must be importable; what all tasks share belongs into
        a `functools.partial`, which is sent once. Items are taken as workers become idle. What the function raises is
        raised here and ends the map. A task whose worker died is done again; ProcessError after the third time.

        With `gpu` each task has a GPU of a cluster to itself; processes of one machine share theirs.

        One map at a time: the next one begins when the last one has ended, or was left.
        """

    def check_folder(self, folder: str | os.PathLike[str]) -> None:
        """DataError unless all workers see a folder as this process does: tasks read it."""
        if not Path(folder).is_dir():
            raise DataError(f"{folder}: no such folder")

    @abstractmethod
    def close(self) -> None:
        """Ends all workers, also those at work. May be called twice."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(Workers):
    """This process: one task after the other."""

    def map(
        self, function: Callable[..., Result], items: Iterable[tuple], gpu: bool = False
    ) -> Iterator[tuple[int, Result]]:
        for index, item in enumerate(items):
            yield index, function(*item)

    def close(self) -> None:
        pass


HERE = InProcess()


class Tasks:
    """The items of one map: which is next, and how many workers each one lost."""

    def __init__(self, function: Callable, items: Iterable[tuple]) -> None:
        self._function, self._items = function, enumerate(items)
        self._again: list[tuple[int, tuple]] = []
        self._deaths: dict[int, int] = {}

    def next(self) -> tuple[int, tuple] | None:
        """An item with its index: one whose worker died, else a new one; None if all are given out."""
        return self._again.pop() if self._again else next(self._items, None)

    def lost(self, index: int, item: tuple, reason: str) -> None:
        """Notes that a task's worker died; ProcessError if it has happened too often."""
        self._deaths[index] = self._deaths.get(index, 0) + 1
        if self._deaths[index] >= TRIES:
            raise ProcessError(f"{describe(self._function, item)} has ended {TRIES} workers; {reason}")
        self._again.append((index, item))


def describe(function: Callable, item: tuple) -> str:
    """A task in words, such as make_spots('FloorPlan1', 'Cup')."""
    name = getattr(getattr(function, "func", function), "__name__", type(function).__name__)
    return f"{name}({', '.join(map(reprlib.repr, item))})"


def pack_function(function: Callable) -> bytes:
    """A function for other processes; ValueError if they could not import it."""
    try:
        return pickle.dumps(function, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(f"{describe(function, ())}: workers need a function that they can import: {error}") from error


def make_missing_files(
    requests: Mapping[Path, tuple],
    make: Callable[..., Result],
    load: Callable[[Path, Any, Any], Result],
    save: Callable[[Result, Path], None],
    progress: Callable[[int, int], None],
    workers: Workers = HERE,
) -> None:
    """Saves what `make` returns for a path's arguments, where there is no file yet; reports how many are done.

    Files that exist are only read, with the first two arguments, a scene and a goal object: a broken one raises an
    error before anything is made.
    """
    missing = [path for path, arguments in requests.items() if not (path.exists() and load(path, *arguments[:2]))]
    done = len(requests) - len(missing)
    progress(done, len(requests))
    for index, made in workers.map(make, [requests[path] for path in missing]):
        save(made, missing[index])
        progress(done := done + 1, len(requests))
