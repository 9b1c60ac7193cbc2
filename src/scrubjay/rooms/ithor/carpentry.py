"""Boards for furniture around the drawers, cabinets and shelves that the table has in it.

The table gives a dresser's box and the boxes of its drawers, which stay free; everything else of the dresser is filled
with boards. Coordinates are the furniture's own: x to the right, y to the front, z up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scrubjay.rooms.catalog.boards import Board
from scrubjay.rooms.catalog.joinery import REACH
from scrubjay.rooms.ithor.boxes import Box

GAP = 0.002
"""Meters between a board and what is beside it, so that no two faces are coplanar."""
THIN = 0.006
"""Thinner boards are left out."""
BOARD, TOP, LEG = 0.02, 0.028, 0.05
"""Thicknesses in meters."""
PLINTH = 0.2
"""Cells that begin lower stand on a plinth, others hang between legs."""
APART = 0.25
"""Meters between two pedestals of a desk."""


def fill(low: np.ndarray, high: np.ndarray, holes: Sequence[Board]) -> list[Board]:
    """Boxes that fill a box except for holes."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    cut = [(np.maximum(a - GAP, low), np.minimum(b + GAP, high)) for a, b in holes]
    cut = [(a, b) for a, b in cut if (a < b).all()]
    ticks = [np.unique(np.round([low[k], high[k], *(end[k] for hole in cut for end in hole)], 5)) for k in range(3)]
    solid = np.ones([len(axis) - 1 for axis in ticks], bool)
    for a, b in cut:
        spans = [slice(*np.searchsorted(axis, np.round([a[k], b[k]], 5), side="left")) for k, axis in enumerate(ticks)]
        solid[tuple(spans)] = False
    boards = []
    while solid.any():
        start = np.array(np.argwhere(solid)[0])
        stop = start + 1
        # Grow the first cell that is left as far as it goes, along each axis in turn.
        for axis in range(3):
            while stop[axis] < solid.shape[axis]:
                grown = stop.copy()
                grown[axis] += 1
                if not solid[tuple(slice(a, b) for a, b in zip(start, grown, strict=True))].all():
                    break
                stop = grown
        solid[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = False
        a = np.array([ticks[k][start[k]] for k in range(3)])
        b = np.array([ticks[k][stop[k]] for k in range(3)])
        if (b - a).min() >= THIN:
            boards.append((a, b))
    return boards


def cells_of(furniture: Box, parts: Sequence[Box]) -> list[Board]:
    """The boxes of a piece of furniture's parts in its own coordinates, cut to it."""
    width, depth, height = furniture.size
    low, high = np.array([-width / 2, -depth / 2, 0.0]), np.array([width / 2, depth / 2, height])
    cells = []
    for part in parts:
        middle = furniture.local(part.position)
        half = np.array([*part.turned(furniture.yaw).size[:2] / 2, 0.0])
        a = np.maximum(middle - half, low)
        b = np.minimum(middle + half + [0, 0, part.size[2]], high)
        if (b - a).min() > THIN:
            cells.append((a, b))
    return cells


def furniture_boards(size: np.ndarray, cells: Sequence[Board], top: float) -> list[Board]:
    """A piece of furniture around cells: pedestals under a top at a height, legs, and shelves above the top."""
    width, depth, height = size
    under = top - TOP
    below = [cell for cell in cells if cell[0][2] < top - BOARD]
    above = [cell for cell in cells if cell[0][2] >= top - BOARD]
    boards = _top(size, top, [cell for cell in cells if cell[1][2] > under])
    pedestals = [_pedestal(group, size, under) for group in _clusters(below)]
    for low, high in pedestals:
        boards += fill(low, high, below)
    boards += legs(size, pedestals, under)
    if above:
        back = min(cell[0][1] for cell in above) - BOARD
        front = max(cell[1][1] for cell in above)
        low, high = np.array([-width / 2, max(back, -depth / 2), top]), np.array([width / 2, front, height])
        boards += fill(low, high, above)
    return boards


def _top(size: np.ndarray, top: float, cells: Sequence[Board]) -> list[Board]:
    width, depth, _ = size
    return fill(np.array([-width / 2, -depth / 2, top - TOP]), np.array([width / 2, depth / 2, top]), cells)


def _clusters(cells: Sequence[Board]) -> list[list[Board]]:
    """Groups of cells that are beside or above one another, from left to right."""
    groups: list[list[Board]] = []
    for cell in sorted(cells, key=lambda cell: float(cell[0][0])):
        if groups and cell[0][0] - max(other[1][0] for other in groups[-1]) < APART:
            groups[-1].append(cell)
        else:
            groups.append([cell])
    return groups


def _pedestal(cells: Sequence[Board], size: np.ndarray, under: float) -> Board:
    """The box around a group of cells, down to the floor if it is near, and out to the furniture's sides."""
    low, high = np.min([cell[0] for cell in cells], 0), np.max([cell[1] for cell in cells], 0)
    width, depth, _ = size
    left = -width / 2 if low[0] + width / 2 < APART else low[0] - BOARD
    right = width / 2 if width / 2 - high[0] < APART else high[0] + BOARD
    bottom = 0.0 if low[2] < PLINTH else low[2] - BOARD
    return np.array([left, -depth / 2, bottom]), np.array([right, min(high[1], depth / 2) - REACH, under])


def legs(size: np.ndarray, pedestals: Sequence[Board], under: float) -> list[Board]:
    """Legs up to a height, in the corners where no pedestal stands on the floor."""
    width, depth, _ = size
    thick = min(LEG, 0.2 * min(width, depth))
    boards = []
    for x in (-1, 1):
        for y in (-1, 1):
            middle = np.array([x * (width - thick) / 2, y * (depth - thick) / 2])
            over = [low[2] for low, high in pedestals if low[0] <= middle[0] <= high[0]]
            end = min([under, *over])
            if end > THIN:
                boards.append((np.array([*middle - thick / 2, 0.0]), np.array([*middle + thick / 2, end])))
    return boards
