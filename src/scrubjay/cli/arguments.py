"""Types of arguments with bounds. A value out of bounds is refused before anything is done, with its option's name:

Error parsing --count: 1 or more, not 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import tyro

from scrubjay.workers.choose import CHOICES, is_name


def _bounded(read: Callable[[str], Any], is_allowed: Callable[[Any], bool], bounds: str, optional: bool = False) -> Any:
    def parse(words: list[str]) -> Any:
        if optional and words[0] == "None":
            return None
        try:
            value = read(words[0])
        except ValueError:
            value = None
        if value is None or not is_allowed(value):
            raise ValueError(f"{bounds}, not {words[0]}")
        return value

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=read.__name__.upper(),
        instance_from_str=parse,
        is_instance=lambda value: value is None or isinstance(value, str) == (read is str),
        str_from_instance=lambda value: [str(value)],
    )


def _is_image_size(size: int) -> bool:
    from scrubjay.sim.cells import CELLS

    return size > 0 and size % CELLS == 0


_POSITIVE = int, lambda value: value >= 1, "1 or more"
_POSITIVE_FLOAT = float, lambda value: 0 < value < math.inf, "a number above 0"
_IMAGE_SIZE = int, _is_image_size, "a multiple of 7, the cells of a side"
_WORKERS = str, is_name, CHOICES

Positive = Annotated[int, _bounded(*_POSITIVE)]
PositiveOrNone = Annotated[int | None, _bounded(*_POSITIVE, optional=True)]
Natural = Annotated[int, _bounded(int, lambda value: value >= 0, "0 or more")]
Port = Annotated[int, _bounded(int, lambda value: 0 <= value < 2**16, "0 to 65535")]
PositiveFloat = Annotated[float, _bounded(*_POSITIVE_FLOAT)]
PositiveFloatOrNone = Annotated[float | None, _bounded(*_POSITIVE_FLOAT, optional=True)]
ImageSize = Annotated[int, _bounded(*_IMAGE_SIZE)]
ImageSizeOrNone = Annotated[int | None, _bounded(*_IMAGE_SIZE, optional=True)]
WorkerNames = Annotated[str, _bounded(*_WORKERS)]
WorkerNamesOrNone = Annotated[str | None, _bounded(*_WORKERS, optional=True)]
ALSO_PROCESSES = tyro.conf.arg(aliases=("--processes",))
"""Of --workers where recorded commands call it so."""
