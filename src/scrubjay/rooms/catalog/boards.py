"""Furniture given board by board, for pieces whose drawers, doors or sinks are where no type of the catalog has them.

A thing's options then hold its boards, boxes in the shape's coordinates; `draw` in the catalog draws them instead of
the type's own shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from scrubjay.rooms.catalog.joinery import WOODS, pick
from scrubjay.rooms.catalog.shape import Shape

Board = tuple[np.ndarray, np.ndarray]
"""The lowest and the highest coordinates of a box, each (3,)."""
SUPPORT = 0.12
"""Meters of the shorter side from which a board is a support for things."""
MARGIN = 0.02
MAX_HEADROOM = 0.8
ENDS = ("x0", "y0", "z0", "x1", "y1", "z1")


def as_options(boards: Iterable[Board]) -> dict[str, float]:
    """A thing's options for its boards."""
    return {
        f"board{number}.{end}": round(float(value), 4) + 0.0
        for number, (low, high) in enumerate(boards)
        for end, value in zip(ENDS, (*low, *high), strict=True)
    }


def of_options(options: Mapping[str, float]) -> list[Board]:
    """The boards in a thing's options; none if it has the shape of its type."""
    boards: list[Board] = []
    while f"board{len(boards)}.x0" in options:
        values = np.array([options[f"board{len(boards)}.{end}"] for end in ENDS])
        boards.append((values[:3], values[3:]))
    return boards


def draw_boards(s: Shape, rng: np.random.Generator) -> None:
    """Draws the boards of a shape's options in one material, role `boards`; wide ones are supports."""
    material = s.material("boards", s.material("wood", pick(rng, WOODS)))
    boards = of_options(s.options)
    for low, high in boards:
        s.box(material, (low + high) / 2, high - low)
    for low, high in boards:
        size = (high - low)[:2] - 2 * MARGIN
        headroom = _headroom(low, high, boards)
        if size.min() >= SUPPORT - 2 * MARGIN and headroom > SUPPORT:
            s.support((*(low + high)[:2] / 2, high[2]), (float(size[0]), float(size[1])), headroom)


def _headroom(low: np.ndarray, high: np.ndarray, boards: list[Board]) -> float:
    """Meters from a board's upper face to the next board above it."""
    above = [
        float(other[2] - high[2])
        for other, end in boards
        if other[2] >= high[2] - 1e-6 and (other[:2] < high[:2] - 1e-6).all() and (end[:2] > low[:2] + 1e-6).all()
    ]
    return min([MAX_HEADROOM, *above])
