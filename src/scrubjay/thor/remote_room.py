"""A room of AI2-THOR as the game needs it: things, openables and a floor, from what the engine tells.

Ids are in the order of our own rooms of the same name: the floor, walls, ceiling, then the objects in AI2-THOR's order,
and the five goal objects at the end. Objects of the goal types are no things: each game takes its own from the room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from scrubjay.errors import ThorError
from scrubjay.rooms import catalog
from scrubjay.rooms.catalog import mesh
from scrubjay.rooms.floor import GRID, MAX_CLEARANCE, Grid, frame, part_frame, rectangles
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.ithor import floor_height, floor_plan, room_type
from scrubjay.rooms.room import GOALS, ITHOR, Lamp, Room, Thing
from scrubjay.thor.coordinates import numbers, to_room

STRUCTURE = ("Wall", "Ceiling")
"""Things that AI2-THOR draws and does not list. What has no name that we know is a wall."""
WALL = 1
"""The id of the walls."""
MIN_SIDE = 1e-3
"""Meters; some objects' boxes are flat."""
LIGHT = Lamp((0.0, 0.0, -1.0), (1.0, 1.0, 1.0))
ON_GRID = 1e-3
"""Meters by which AI2-THOR's positions may be off their grid."""

Record = Mapping[str, Any]
"""An object as an event's metadata has it."""


@dataclass(frozen=True)
class RemoteOpenable:
    """A thing that opens."""

    thing: int


@dataclass(frozen=True, eq=False)
class RemoteRoom:
    """A room on AI2-THOR. Things' boxes are those of its metadata."""

    room: Room
    things: tuple[str, ...]
    objects: tuple[str, ...]
    """AI2-THOR's ids of the things, empty for structure; without the goal objects."""
    openables: tuple[RemoteOpenable, ...]
    goals: Mapping[str, str]
    """AI2-THOR's ids of the goal objects that the room has, by type."""
    surplus: tuple[str, ...]
    """AI2-THOR's ids of all objects of the goal types."""
    height: float
    """Of the floor, in AI2-THOR's coordinates."""
    floor: RemoteFloor
    parts: tuple[np.ndarray, ...]
    """Each openable's moving parts on the floor, closed and open, (k, 6) as in `Floor.reach_rectangles`."""
    tops: Mapping[str, float]
    """By AI2-THOR's ids, for things that others lie in and not only on: the height at which the space inside ends."""

    def goal(self, kind: str) -> str:
        """AI2-THOR's id of a goal object; ThorError if the room has none."""
        if kind not in self.goals:
            there = ", ".join(self.goals) or "none of the goal objects"
            raise ThorError(f"{self.room.scene} has no {kind} on AI2-THOR; it has {there}")
        return self.goals[kind]

    def id_of(self, objects: Sequence[str]) -> np.ndarray:
        """Things' ids (n,) of AI2-THOR's ids, or of the names of structure; what is unknown is a wall."""
        known = {name: number for number, name in enumerate(self.objects) if name}
        known |= {name: 1 + number for number, name in enumerate(STRUCTURE)}
        known |= {name: len(self.objects) + GOALS.index(kind) for kind, name in self.goals.items()}
        return np.array([known.get(name, WALL) for name in objects], np.int16)


def remote_room(
    scene: str, records: Sequence[Record], bounds: Record, positions: Callable[[np.ndarray, float], np.ndarray]
) -> RemoteRoom:
    """A room from an event's objects and scene bounds.

    `positions` asks AI2-THOR for the positions (n, 2) that can be reached from a start (2,) on a grid turned by an
    angle; the start of NaN is where the agent is.
    """
    height = floor_height(scene)
    first = [record for record in records if record["objectType"] == "Floor"][:1]
    others = [record for record in records if record not in first and record["objectType"] not in GOALS]
    low, high = _box(first[0] if first else {"axisAlignedBoundingBox": bounds}, height)
    top = to_room(numbers(bounds["center"]) + numbers(bounds["size"]) / 2, height)[2]
    size = (*(high - low)[:2], max(float(top), 1.0))
    floor_name = first[0]["name"] if first else "Floor"
    shell = [
        Thing(name, kind, (0.0, 0.0, 0.0), 0.0, size)
        for name, kind in zip((floor_name, *STRUCTURE), ("Floor", *STRUCTURE), strict=True)
    ]
    names = {record["objectId"]: record["name"] for record in others}
    things = [*shell, *(_thing(record, names, height) for record in others)]
    objects = (first[0]["objectId"] if first else "", *("" for _ in STRUCTURE), *names)
    opening = {record["objectId"] for record in others if record["openable"]}
    (west, south), (east, north) = low[:2].tolist(), high[:2].tolist()
    outline = ((west, south), (east, south), (east, north), (west, north))
    name = floor_plan(scene)
    ours, by_name = make_room(ITHOR + name), {thing.name: thing for thing in things}
    room = Room(ITHOR + name, room_type(name), outline, size[2], tuple(things), (LIGHT,) * 3)
    goals = {
        kind: next(record["objectId"] for record in records if record["objectType"] == kind)
        for kind in GOALS
        if any(record["objectType"] == kind and record["pickupable"] for record in records)
    }
    return RemoteRoom(
        room,
        (*(thing.name for thing in things), *GOALS),
        objects,
        tuple(RemoteOpenable(number) for number, one in enumerate(objects) if one in opening),
        goals,
        tuple(record["objectId"] for record in records if record["objectType"] in GOALS),
        height,
        RemoteFloor(positions),
        tuple(_parts(ours, by_name[names[one]]) for one in objects if one in opening),
        {one: top for one, name in names.items() if (top := _top(ours, name)) is not None},
    )


def _parts(ours: Room, thing: Thing) -> np.ndarray:
    """An openable's moving parts: AI2-THOR does not tell where a door is, but our own room has it.

    What does not open there has its whole box.
    """
    own = next((one for one in ours.things if one.name == thing.name), None)
    moving = catalog.shape_of(own, ours).moving if own else []
    if own is None or not moving:
        (x, y, _), (width, depth, _) = thing.position, thing.size
        return np.array([[x, y, 1.0, 0.0, width / 2, depth / 2]])
    ends = [(part, *part_frame(part, fraction, *frame(own))) for part in moving for fraction in (0.0, 1.0)]
    return np.array([one for end in ends for one in rectangles(*end, any_height=True)])


def _top(ours: Room, name: str) -> float | None:
    """The height of the top of the space inside a thing of our own room, None if it contains nothing."""
    own = next((one for one in ours.things if one.name == name), None)
    if own is None:
        return None
    shape = catalog.shape_of(own, ours)
    spaces = [*shape.spaces, *(space for part in shape.moving for space in part.spaces)]
    return max((own.position[2] + space.position[2] + space.half[2] for space in spaces), default=None)


def _box(record: Record, height: float) -> tuple[np.ndarray, np.ndarray]:
    """The low and high corner (3,) of an object's axis-aligned box, in the room's frame."""
    box = record["axisAlignedBoundingBox"]
    center, half = to_room(numbers(box["center"]), height), to_room(numbers(box["size"])) / 2
    return center - half, center + half


def _thing(record: Record, names: Mapping[str, str], height: float) -> Thing:
    low, high = _box(record, height)
    x, y = (low + high)[:2].tolist()
    width, depth, tall = np.maximum(high - low, MIN_SIDE).tolist()
    inside = next((names[one] for one in record["parentReceptacles"] or () if one in names), "")
    return Thing(record["name"], record["objectType"], (x / 2, y / 2, float(low[2])), 0.0, (width, depth, tall),
                 inside=inside)  # fmt: skip


class RemoteFloor:
    """A floor as `Floor` has it, as far as AI2-THOR's reachable positions tell: steps between them are free."""

    def __init__(self, positions: Callable[[np.ndarray, float], np.ndarray]) -> None:
        self._positions = positions
        self._grids: dict[tuple[float, ...], Grid] = {}
        self._reachable: Grid | None = None

    def reachable(self) -> Grid:
        """The positions that can be reached from where AI2-THOR puts the agent first."""
        if self._reachable is None:
            points = self._positions(np.full(2, np.nan), 0.0)
            first = points[np.lexsort(points.T[::-1])[0]]
            near = np.round(first / GRID) * GRID
            self._reachable = _grid(near if np.abs(near - first).max() < ON_GRID else first, 0.0, points)
        return self._reachable

    def grid(self, start: Sequence[float] | np.ndarray, angle: float = 0.0) -> Grid:
        """The positions reachable from `start` on the lattice through it, rotated clockwise by `angle` degrees."""
        start = np.asarray(start, float)
        if angle == 0:
            own = self.reachable()
            cell = np.round((start - own.start) / GRID)
            on_grid = np.abs(own.start + cell * GRID - start).max() < ON_GRID
            if on_grid and (own.cells == cell).all(1).any():
                return Grid(start, angle, own.cells - cell.astype(int), own.graph)
        key = (*start.tolist(), angle)
        if key not in self._grids:
            self._grids[key] = _grid(start, angle, self._positions(start, angle))
        return self._grids[key]

    def positions(self, start: Sequence[float] | np.ndarray, angle: float = 0.0) -> np.ndarray:
        """The positions of `grid` in the room, (n, 2)."""
        return self.grid(start, angle).positions

    def clearance(self, points: np.ndarray) -> np.ndarray:
        """AI2-THOR does not tell; whether a body fits is left to the reachable positions."""
        return np.full(np.shape(points)[:-1], MAX_CLEARANCE)


def _grid(start: np.ndarray, angle: float, points: np.ndarray) -> Grid:
    """The grid through a start of the positions (n, 2) on it; each is connected with those one step away."""
    east = mesh.rotation("z", -angle)[:2, :2]
    cells = np.unique(np.round((points - start) @ east / GRID).astype(int), axis=0)
    number = {cell: index for index, cell in enumerate(map(tuple, cells.tolist()))}
    if (0, 0) not in number:
        raise ValueError(f"no body can stand at ({start[0]:.2f}, {start[1]:.2f})")
    edges = [
        (index, number[(x + dx, y + dy)])
        for (x, y), index in number.items()
        for dx, dy in ((1, 0), (0, 1))
        if (x + dx, y + dy) in number
    ]
    rows, columns = np.array(edges, int).reshape(-1, 2).T
    graph = sparse.coo_array((np.ones(len(edges)), (rows, columns)), shape=(len(cells), len(cells))).tocsr()
    return Grid(start, angle, cells, graph)
