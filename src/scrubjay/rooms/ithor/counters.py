"""Counters: the table has the hull of an L or a U; here it is cut into strips, and a base is put under them.

A counter covers what is built in below it and what stands on it, runs along a wall, and leaves the floor to furniture.
Of all strips along the hull's sides, with an island for what they leave uncovered, those are taken that do so with the
least area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from scrubjay.rooms.catalog.boards import Board
from scrubjay.rooms.catalog.joinery import REACH
from scrubjay.rooms.ithor.boxes import Box
from scrubjay.rooms.ithor.carpentry import fill

Rect = np.ndarray
"""West, south, east and north end, (4,)."""
OUT_OF = (90.0, 0.0, 270.0, 180.0)
"""Yaw of a front whose back is to the west, south, east or north."""
NARROW = 1.0
"""Meters; a hull with a shorter side is one strip."""
DEPTHS = np.arange(0.55, 1.01, 0.05)
"""Depths of strips in meters."""
AT_WALL = 0.3
"""Meters from a wall within which a counter's side is at it."""
SLAB, OVERHANG = 0.03, 0.03
"""A counter's thickness, and how far it protrudes over its base."""
SAMPLES = np.linspace(0.1, 0.9, 5)
ISLAND, ON_FURNITURE = 0.3, 4.0
"""Cost in square meters of counter: of an island beside its area, and of a square meter over furniture."""
EDGE, NEAR = 0.12, 0.25
"""Meters of an island around what is on it, and to what is so near that it touches it."""


@dataclass(frozen=True)
class Counter:
    """A counter's surface."""

    height: float
    strips: tuple[Rect, ...]
    """Disjoint rectangles."""
    runs: tuple[tuple[Rect, float], ...]
    """Strips with their corners, and the yaw of the fronts of what is built in under them, as far as it is clear."""

    def fronts(self, middle: np.ndarray) -> list[float]:
        """The yaws that a thing may have that is built in under the counter."""
        return [yaw for run, yaw in self.runs if (run[:2] < middle[:2]).all() and (run[2:] > middle[:2]).all()]


def cut_counter(hull: Rect, height: float, covered: Sequence[Rect], furniture: Sequence[Rect], room: Rect) -> Counter:
    """Cuts a hull into strips that cover some rectangles and leave out furniture, in a room."""
    at_wall = np.abs(hull - room) < AT_WALL
    extent = hull[2:] - hull[:2]
    if extent.min() > NARROW and at_wall.any():
        strips, depths = _strips(hull, covered, furniture, at_wall)
    else:
        strips, depths = [hull], {}
    if depths:
        ends = {side: hull[side] + (depth if side < 2 else -depth) for side, depth in depths.items()}
        runs = tuple((_with(hull, (side + 2) % 4, end), OUT_OF[side]) for side, end in ends.items())
    else:
        long = [side for side in range(4) if at_wall[side] and extent[1 - side % 2] >= extent[side % 2]]
        runs = ((hull, OUT_OF[long[0]]),) if len(long) == 1 else ()
    return Counter(height, tuple(strips), runs)


def _with(rect: Rect, side: int, end: float) -> Rect:
    changed = rect.copy()
    changed[side] = end
    return changed


def _strips(
    hull: Rect, covered: Sequence[Rect], furniture: Sequence[Rect], at_wall: np.ndarray
) -> tuple[list[Rect], dict[int, float]]:
    """Disjoint strips, and the depths of those along the hull's sides."""
    extent = hull[2:] - hull[:2]
    points = _samples(covered)
    needed, free = _to_sides(points, hull), _to_sides(_samples(furniture), hull)
    areas = np.repeat([np.prod(rect[2:] - rect[:2]) / len(SAMPLES) ** 2 for rect in furniture], len(SAMPLES) ** 2)
    inside = (free >= 0).all(1)
    points, needed, free, areas = (
        points[(needed >= 0).all(1)],
        needed[(needed >= 0).all(1)],
        free[inside],
        areas[inside],
    )
    best, strips = float(np.prod(extent)) + ON_FURNITURE * float(areas.sum()), [hull]
    chosen: dict[int, float] = {}
    for sides in (*combinations(range(4), 2), *combinations(range(4), 3)):
        if sides in ((0, 2), (1, 3)) or not any(at_wall[side] for side in sides):
            continue
        depths = np.array(list(product(DEPTHS, repeat=len(sides))))
        low, high = _hulls(points, ~_under(needed, sides, depths))
        cost = _area(extent, sides, depths) + np.where(
            high[:, 0] > low[:, 0], ISLAND + np.prod(high - low, axis=1), 0.0
        )
        cost += ON_FURNITURE * (_under(free, sides, depths) @ areas)
        least = int(cost.argmin())
        if cost[least] < best:
            best, chosen = float(cost[least]), dict(zip(sides, depths[least].tolist(), strict=True))
            strips = _cut(hull, chosen)
            if high[least, 0] > low[least, 0]:
                strips.append(_snap(np.array([*low[least], *high[least]]), [hull, *strips]))
    return strips, chosen


def _hulls(points: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """South-west and north-east corners (m, 2) around the chosen (m, n) of points (n, 2); zeros where none is."""
    if not len(points):
        return np.zeros((len(chosen), 2)), np.zeros((len(chosen), 2))
    low = np.where(chosen[..., None], points, np.inf).min(1) - EDGE
    high = np.where(chosen[..., None], points, -np.inf).max(1) + EDGE
    some = np.any(chosen, axis=1, keepdims=True)
    return np.where(some, low, 0.0), np.where(some, high, 0.0)


def _snap(island: Rect, others: Sequence[Rect]) -> Rect:
    """An island whose ends meet those of other rectangles that are near."""
    edges = [np.unique([other[axis::2] for other in others]) for axis in (0, 1)]
    near = [edges[side % 2][np.abs(edges[side % 2] - island[side]).argmin()] for side in range(4)]
    return np.where(np.abs(near - island) < NEAR, near, island)


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


def base(
    strips: Sequence[Rect], surface: float, holes: Sequence[Board], parts: Sequence[Box], room: Rect
) -> list[Board]:
    """The boards between a counter and the floor, except for holes: flush with the fronts of the parts built in.

    Where no part has its front, the base is set back from the counter's edge, unless there is a wall.
    """
    boards = []
    for strip in strips:
        edges = strip.copy()
        for side in range(4):
            outwards = -1 if side < 2 else 1
            fronts = [outwards * front for front in _fronts(strip, side, parts)]
            at_wall = abs(strip[side] - room[side]) < AT_WALL
            if fronts:
                edges[side] = outwards * min(max(fronts) - REACH, outwards * strip[side])
            elif not at_wall and not any(_touch(strip, other, side) for other in strips if other is not strip):
                edges[side] -= outwards * OVERHANG
        boards += fill(np.array([*edges[:2], 0.0]), np.array([*edges[2:], surface - SLAB]), holes)
    return boards


def _fronts(strip: Rect, side: int, parts: Sequence[Box]) -> list[float]:
    """Where the parts of a strip that face one of its sides have their fronts."""
    facing = [part for part in parts if abs((part.yaw - OUT_OF[(side + 2) % 4] + 180) % 360 - 180) < 1]
    inside = [p for p in facing if (strip[:2] < p.position[:2]).all() and (strip[2:] > p.position[:2]).all()]
    return [float((part.low if side < 2 else part.high)[side % 2]) for part in inside]


def _touch(strip: Rect, other: Rect, side: int) -> bool:
    """Whether another strip continues this one beyond a side."""
    across = [(side + 1) % 2, (side + 1) % 2 + 2]
    return bool(
        abs(strip[side] - other[(side + 2) % 4]) < 1e-6
        and strip[across[0]] < other[across[1]]
        and strip[across[1]] > other[across[0]]
    )
