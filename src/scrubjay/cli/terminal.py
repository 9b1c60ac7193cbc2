"""What commands share: the console for messages, progress, JSON output, and common choices."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from scrubjay.workers.base import Workers
from scrubjay.workers.choose import open_workers

Renderer = Literal["auto", "opengl", "warp"]
err = Console(stderr=True)
LINE_SECONDS = 30.0
"""Between two lines of progress in a log."""


class Report(Protocol):
    """Takes how much is done, and in words what is being done."""

    def __call__(self, done: int, total: int, what: str = "", /) -> None: ...


def parse_labels(labels: Sequence[str]) -> dict[str, str]:
    """Labels by name, from words like NAME=LABEL."""
    pairs = [words.partition("=") for words in labels]
    if wrong := [words for words, (name, _, label) in zip(labels, pairs, strict=True) if not name or not label]:
        raise ValueError(f"labels: NAME=LABEL, not {wrong[0]!r}")
    return {name: label for name, _, label in pairs}


def print_json(data: dict) -> None:
    """Prints one JSON object on one line."""
    print(json.dumps(data), flush=True)


@contextmanager
def open_crew(workers: str | None) -> Iterator[Workers | None]:
    """The workers of this name; None for whoever works by default."""
    if workers is None:
        yield None
        return
    with open_workers(workers) as crew:
        yield crew


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Report]:
    """A progress bar, and a callback `(done, total, what now)` that updates it; a line now and then where standard
    error is no terminal."""
    if not err.is_terminal:
        lines = ProgressLines(what)
        yield lines
        lines.end()
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=err) as progress:
        task = progress.add_task(what, total=total)

        def report(done: int, total: int, now: str = "", /) -> None:
            progress.update(task, completed=done, total=total, description=f"{what}: {now}" if now else what)

        yield report


class ProgressLines:
    """Progress as plain lines: one at the start, at most one every 30 seconds, and one at the end.

    Games: 120/1,000, 0:01:10 elapsed, about 0:08:33 left
    """

    def __init__(
        self, what: str, write: Callable[[str], object] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.what, self._clock = what, clock
        self._write = write or (lambda line: err.out(line, highlight=False))
        self._start = self._last = clock()
        self._first: tuple[float, int] | None = None
        self._done, self._total, self._written = 0, 0, -1

    def __call__(self, done: int, total: int, now: str = "", /) -> None:
        time = self._clock()
        if self._first is None:
            # What was there before does not tell how fast this goes.
            self._first = time, done
        self._done, self._total = done, total
        if self._written < 0 or time - self._last >= LINE_SECONDS:
            self._line(time, now)

    def end(self) -> None:
        """The last line, unless it would say nothing new."""
        if self._first is not None and self._written != self._done:
            self._line(self._clock(), "")

    def _line(self, time: float, now: str) -> None:
        assert self._first is not None
        counts = f"{self._done:,}/{self._total:,}, {_clock(time - self._start)} elapsed"
        line = f"{self.what}: {now}, {counts}" if now else f"{self.what}: {counts}"
        spent, made = time - self._first[0], self._done - self._first[1]
        if made > 0 and self._done < self._total:
            line += f", about {_clock(spent / made * (self._total - self._done))} left"
        self._write(line)
        self._last, self._written = time, self._done


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
