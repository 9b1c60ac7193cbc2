"""What the table says about a room: boxes that face the right way, walls, parts of furniture, and what holds what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.ithor.boxes import MIN_SIDE, Box, bounds, box_of
from scrubjay.rooms.ithor.counters import Counter, cut_counter
from scrubjay.rooms.ithor.facing import HUNG, Surroundings, face
from scrubjay.rooms.ithor.table import Record, objects

WALL_THICKNESS = 0.6
"""The floor's box reaches under the walls, at most so far: a wall stands where the outermost objects end."""
ON_WALLS = ("HandTowelHolder", "LightSwitch", "Mirror", "Painting", "Poster", "TowelHolder", "Window")
"""Types that show where a wall is."""
AT_WALL = 0.15
"""Meters between such a thing and the outermost objects, at most."""
ON_WALL = 0.02
"""Meters by which windows and the like protrude from their wall; the table has them inside of it."""
FURNITURE = ("CoffeeTable", "Desk", "DiningTable", "Dresser", "ShelvingUnit", "SideTable", "TVStand")
"""Types that have drawers, cabinets and shelves as parts."""
PARTS = ("Cabinet", "Drawer", "Shelf")
NO_FURNITURE = ("Floor", "CounterTop", "GarbageBag", "GarbageCan", "Sink", *PARTS)
"""Types that a counter may run over."""
FLAT = 0.06
"""A counter's box up to this height only marks its surface, at the box's bottom; a taller one is the counter itself."""
STANDING, LOW = 0.12, 0.3
"""Meters: things that begin lower than the first stand on the floor; lower ones than the second are no furniture."""
DOOR, INSIDE = 0.1, 0.3
"""Depths in meters: a cabinet's box up to the first is its door alone, behind which the second is its inside."""
SCREEN = 0.03
"""Height in meters of a closed laptop; the table has them open."""


class Layout:
    """The objects of a room, by their number in the table, with the floor at height 0."""

    def __init__(self, scene: str) -> None:
        self.records = objects(scene)
        self.floor = _height_of_floor(self.records)
        self.kinds = [record["objectType"] for record in self.records]
        self.boxes = [_on_floor(box_of(record), self.floor) for record in self.records]
        self.low, self.high = self._outline()
        """The floor's south-west and north-east corner."""
        self.furniture = [self._furniture(k) for k in range(len(self.records))]
        """The number of the furniture that a drawer, cabinet or shelf is a part of."""
        self.parents = [self._parent(k) for k in range(len(self.records))]
        """The number of what an object stands on or lies in."""
        self.counters = {k: self.cut(k) for k in self.of_type("CounterTop")}
        self._turn_to_front()

    def of_type(self, *kinds: str) -> list[int]:
        return [k for k, kind in enumerate(self.kinds) if kind in kinds]

    def parts(self, furniture: int) -> list[int]:
        """The numbers of a piece of furniture's drawers, cabinets and shelves."""
        return [k for k, other in enumerate(self.furniture) if other == furniture]

    def resting_on(self, k: int) -> Iterator[Box]:
        """The boxes of what stands on an object."""
        return (self.boxes[i] for i, parent in enumerate(self.parents) if parent == k and self.kinds[i] not in PARTS)

    def _outline(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = ([self._wall(axis, sign) for axis in (0, 1)] for sign in (-1, 1))
        return np.round(low, 4), np.round(high, 4)

    def _wall(self, axis: int, sign: int) -> float:
        """Where the room ends in a direction: the floor's box without what is under or beyond the wall."""

        def end(box: Box) -> float:
            return float(box.high[axis] if sign > 0 else -box.low[axis])

        def across(box: Box) -> bool:
            return int(np.argmin((box.high - box.low)[:2])) == axis

        (floor,) = (end(self.boxes[k]) for k in self.of_type("Floor"))
        last = max(end(self.boxes[k]) for k in range(len(self.boxes)) if self.kinds[k] not in ("Floor", *HUNG))
        flat = [self.boxes[k] for k in self.of_type(*ON_WALLS)]
        hung = any(abs(end(box) - last) < AT_WALL and across(box) for box in flat)
        return sign * (last if hung or floor - last < WALL_THICKNESS else floor)

    def _furniture(self, k: int) -> int | None:
        if self.kinds[k] not in PARTS:
            return None
        middle = self.boxes[k].position + [0, 0, self.boxes[k].size[2] / 2]
        around = [
            i
            for i in self.of_type(*FURNITURE)
            if (self.boxes[i].low < middle).all() and (self.boxes[i].high > middle).all()
        ]
        return min(around, key=lambda i: np.prod(self.boxes[i].size), default=None)

    def _turn_to_front(self) -> None:
        around = Surroundings.of(self.records, self.boxes, self.low, self.high)
        # Furniture first: its parts face where it does.
        for k in sorted(range(len(self.records)), key=lambda k: self.kinds[k] in PARTS):
            box = face(self.records[k], self.boxes[k], around, self._fronts(k))
            if self.kinds[k] in HUNG:
                box = _on_wall(box, self.low, self.high)
            if self.kinds[k] == "Laptop":
                box = Box(box.position, box.yaw, np.minimum(box.size, [9, 9, SCREEN]))
            if self.kinds[k] == "Cabinet" and box.size[1] < DOOR:
                back = np.array([*-facing_vector(box.yaw), 0.0]) * (INSIDE - box.size[1]) / 2
                box = Box(box.position + back, box.yaw, np.array([box.size[0], INSIDE, box.size[2]]))
            self.boxes[k] = box

    def _fronts(self, k: int) -> list[float]:
        """The yaws of the front that a part of furniture or something under a counter may have; empty if any."""
        whole, box = self.furniture[k], self.boxes[k]
        if whole is not None:
            return [self.boxes[whole].yaw]
        under = [counter for counter in self.counters.values() if box.high[2] < counter.height + FLAT]
        return [yaw for counter in under for yaw in counter.fronts(box.position)] if self.kinds[k] in PARTS else []

    def cut(self, k: int) -> Counter:
        """Cuts the hull of a counter, or of a desk around a corner, into strips."""
        box = self.boxes[k]
        height = float(box.low[2] if box.size[2] < FLAT else box.high[2])
        over = (*NO_FURNITURE, "Box", "Chair") if self.kinds[k] == "Desk" else NO_FURNITURE
        covered, furniture = [], []
        for i, (kind, other) in enumerate(zip(self.kinds, self.boxes, strict=True)):
            rect = np.array([*other.low[:2], *other.high[:2]])
            built_in = kind in ("Cabinet", "Drawer", "SinkBasin") and self.furniture[i] is None
            if self.parents[i] == k or (built_in and height - 0.9 < other.low[2] < height - 0.1):
                covered.append(rect)
            elif i != k and kind not in over and other.low[2] < STANDING and other.size[2] > LOW:
                furniture.append(rect)
        hull = np.array([*box.low[:2], *box.high[:2]])
        return cut_counter(hull, height, covered, furniture, np.array([*self.low, *self.high]))

    def _parent(self, k: int) -> int | None:
        """The smallest of those that the table names, or the furniture that it is a part of."""
        if self.furniture[k] is not None:
            return self.furniture[k]
        numbers = {record["objectId"]: i for i, record in enumerate(self.records)}
        named = [numbers[name] for name in self.records[k]["parentReceptacles"] or []]
        own = np.prod(self.boxes[k].size[:2])
        larger = [i for i in named if self.kinds[i] != "Floor" and np.prod(self.boxes[i].size[:2]) > own]
        return min(larger, key=lambda i: np.prod(self.boxes[i].size), default=None)


def floor_height(scene: str) -> float:
    """The height of a room's floor in AI2-THOR's coordinates, to the centimeter; ours is always at 0."""
    return _height_of_floor(objects(scene))


def _height_of_floor(records: Sequence[Record]) -> float:
    return round(float(next(bounds(record)[1][2] for record in records if record["objectType"] == "Floor")), 2)


def _on_floor(box: Box, floor: float) -> Box:
    """A box with the floor at 0; what reaches below the floor is cut off."""
    x, y, z = box.position - [0, 0, floor]
    bottom = max(z, 0.0)
    return Box(np.array([x, y, bottom]), box.yaw, np.array([*box.size[:2], max(box.size[2] + z - bottom, MIN_SIDE)]))


def _on_wall(box: Box, low: np.ndarray, high: np.ndarray) -> Box:
    """A box without what is inside the walls; at least ON_WALL is left."""
    start, end = box.low, box.high
    start[:2], end[:2] = np.clip(start[:2], low, high - ON_WALL), np.clip(end[:2], low + ON_WALL, high)
    extent = end - start
    width, depth = extent[:2] if box.yaw % 180 == 0 else extent[1::-1]
    return Box(np.array([*(start + end)[:2] / 2, start[2]]), box.yaw, np.array([width, depth, extent[2]]))
