"""What commands share: the console for messages, JSON output, and common choices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Renderer = Literal["auto", "opengl", "warp"]
err = Console(stderr=True)


def print_json(data: dict) -> None:
    """Prints one JSON object on one line."""
    print(json.dumps(data), flush=True)


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """A progress bar, and a callback `(done, total)` that updates it."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=err) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done, total: progress.update(task, completed=done, total=total)
