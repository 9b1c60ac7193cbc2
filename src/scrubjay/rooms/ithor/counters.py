"""Counters: the table has the hull of an L or a U; here it is cut into strips, and a base is put under them.

A counter covers what is built in below it and what stands on it, runs along a wall, and leaves the floor to furniture.
Of all strips along the hull's sides, those are taken that do so with the least area.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from scrubjay.rooms.catalog.boards import Board
from scrubjay.rooms.ithor.carpentry import fill

Rect = np.ndarray
"""West, south, east and north end, (4,)."""
NARROW = 0.95
"""Meters; a hull with a shorter side is one strip."""
DEPTHS = np.arange(0.55, 1.01, 0.05)
"""Depths of strips in meters."""
AT_WALL = 0.3
"""Meters from a wall within which a counter's side is at it."""
SLAB, OVERHANG = 0.03, 0.03
"""A counter's thickness, and how far it protrudes over its base."""
SAMPLES = np.linspace(0.1, 0.9, 5)
UNCOVERED, ON_FURNITURE = 0.1, 4.0
"""Cost in square meters of counter: of a point without counter that needs one, and of a square meter over furniture."""


def strips_of(hull: Rect, covered: Sequence[Rect], furniture: Sequence[Rect], at_wall: Sequence[bool]) -> list[Rect]:
    """Cuts a hull into disjoint strips. `at_wall` says it of its west, south, east and north side."""
    extent = hull[2:] - hull[:2]
    if extent.min() <= NARROW or not any(at_wall):
        return [hull]
    needed, free = (_to_sides(_samples(rects), hull) for rects in (covered, furniture))
    areas = np.repeat([np.prod(rect[2:] - rect[:2]) / len(SAMPLES) ** 2 for rect in furniture], len(SAMPLES) ** 2)
    inside = (free >= 0).all(1)
    needed, free, areas = needed[(needed >= 0).all(1)], free[inside], areas[inside]
    best, strips = float(np.prod(extent)) + ON_FURNITURE * float(areas.sum()), [hull]
    for sides in (*combinations(range(4), 2), *combinations(range(4), 3)):
        if sides in ((0, 2), (1, 3)) or not any(at_wall[side] for side in sides):
            continue
        depths = np.array(list(product(DEPTHS, repeat=len(sides))))
        cost = _area(extent, sides, depths)
        cost += ON_FURNITURE * (_under(free, sides, depths) @ areas)
        cost += UNCOVERED * (~_under(needed, sides, depths)).sum(1)
        least = int(cost.argmin())
        if cost[least] < best:
            best, strips = float(cost[least]), _cut(hull, dict(zip(sides, depths[least], strict=True)))
    return strips


def _samples(rects: Sequence[Rect]) -> np.ndarray:
    """Points (n, 2) spread over rectangles."""
    grid = np.stack(np.meshgrid(SAMPLES, SAMPLES), -1).reshape(-1, 2)
    return np.array([rect[:2] + grid * (rect[2:] - rect[:2]) for rect in rects]).reshape(-1, 2)


def _to_sides(points: np.ndarray, hull: Rect) -> np.ndarray:
    """Distances (n, 4) of points from a hull's west, south, east and north side, negative beyond it."""
    return np.concatenate([points - hull[:2], hull[2:] - points], axis=1)


def _under(distances: np.ndarray, sides: tuple[int, ...], depths: np.ndarray) -> np.ndarray:
    """Whether points (n) are under one of the strips, for each choice (m) of their depths: (m, n)."""
    return np.any(distances[None, :, sides] <= depths[:, None], axis=-1)


def _area(extent: np.ndarray, sides: tuple[int, ...], depths: np.ndarray) -> np.ndarray:
    """The area of strips along sides, (m,), for each choice of their depths (m, sides); corners count once."""
    area = sum(depths[:, k] * extent[1 - side % 2] for k, side in enumerate(sides))
    for i, j in combinations(range(len(sides)), 2):
        if (sides[i] + sides[j]) % 2:
            area -= depths[:, i] * depths[:, j]
    return np.asarray(area)


def _cut(hull: Rect, depths: dict[int, float]) -> list[Rect]:
    """Disjoint strips: those in the west and east are whole, those in the south and north fit between them."""
    west, south, east, north = hull
    left, right = west + depths.get(0, 0.0), east - depths.get(2, 0.0)
    strips = {
        0: (west, south, left, north),
        1: (left, south, right, south + depths.get(1, 0.0)),
        2: (right, south, east, north),
        3: (left, north - depths.get(3, 0.0), right, north),
    }
    return [np.array(strips[side]) for side in depths]


def slabs(strips: Sequence[Rect], surface: float, holes: Sequence[Board]) -> list[Board]:
    """The boards of a counter whose upper face is at a height, around sinks and stoves."""
    return [
        board
        for strip in strips
        for board in fill(
            np.array([*strip[:2], surface - SLAB]), np.array([*strip[2:], surface]),
            [(np.array([*low[:2], 0.0]), np.array([*high[:2], 9.0])) for low, high in holes],
        )
    ]  # fmt: skip


def base(strips: Sequence[Rect], surface: float, holes: Sequence[Board], room: Rect) -> list[Board]:
    """The boards between counters and floor, except for what is built in; set back where no wall is."""
    boards = []
    joined = [*strips]
    for strip in strips:
        edges = strip.copy()
        for side in range(4):
            inwards = 1 if side < 2 else -1
            at_wall = abs(strip[side] - room[side]) < AT_WALL
            beside = any(_touch(strip, other, side) for other in joined if other is not strip)
            if not at_wall and not beside:
                edges[side] += inwards * OVERHANG
        boards += fill(np.array([*edges[:2], 0.0]), np.array([*edges[2:], surface - SLAB]), holes)
    return boards


def _touch(strip: Rect, other: Rect, side: int) -> bool:
    """Whether another strip continues this one beyond a side."""
    across = [(side + 1) % 2, (side + 1) % 2 + 2]
    return bool(
        abs(strip[side] - other[(side + 2) % 4]) < 1e-6
        and strip[across[0]] < other[across[1]]
        and strip[across[1]] > other[across[0]]
    )
