"""Foyers by request: any of the five tables, and on it a receptacle or a row of books.

A request is a room: the same request is the same room, and whatever a request leaves out is the foyer as it is. Tables
are swapped in place, at the foyer's own spot at a wall.

>>> room = make_foyer(FoyerRequest("FloorPlan503", "Desk", Receptacle("Pot", aside=-0.2, yaw=30)))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms import catalog
from scrubjay.rooms.catalog import storage
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.catalog.shape import Support
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate import FLOOR_PLANS, check_scene, make_room, type_of
from scrubjay.rooms.generate.foyer import BOOK, RECEPTACLES, TABLE_OPTIONS, TABLES, support_of, table_of
from scrubjay.rooms.generate.layout import rotated_extent
from scrubjay.rooms.room import Room, Thing

FOYERS = tuple(f"FloorPlan{FLOOR_PLANS['foyer'] + number}" for number in range(1, 6))
"""The foyers of the experiments: the paper's first five."""
MIN_DEPTH = 0.62
"""Meters; a table is at least so deep, or nothing would fit behind a receptacle."""
EDGE = 0.005
"""Meters that stay free at the edge of a table's top."""
BOOK_GAP = 0.002


@dataclass(frozen=True)
class Receptacle:
    """One of the five receptacles, without a lid. Lengths are in meters, as somebody in front of the table sees it."""

    kind: str
    aside: float = 0.0
    """To the right of the table's middle."""
    toward: float = 0.0
    """Nearer than the table's middle."""
    yaw: float = 0.0
    """Degrees, clockwise from above; at 0 its front is the table's."""

    def __post_init__(self) -> None:
        if self.kind not in RECEPTACLES:
            raise RoomError(f"unknown receptacle {self.kind!r}; choose one of {', '.join(RECEPTACLES)}")


@dataclass(frozen=True)
class BookRow:
    """Books that stand side by side and hide what is behind them."""

    count: int
    front: float = 0.1
    """Meters from the table's front edge to the row's nearest point."""
    aside: float = 0.0
    yaw: float = 0.0
    """Degrees by which the row is turned about its middle, clockwise from above."""
    seed: int = 0
    """Seeds the books' looks."""


@dataclass(frozen=True)
class FoyerRequest:
    """A foyer with a table and what stands on it."""

    foyer: str
    """Any foyer by name; FOYERS are those of the experiments."""
    table: str
    """One of TABLES."""
    on_it: Receptacle | BookRow | None = None

    def __post_init__(self) -> None:
        check_scene(self.foyer)
        if type_of(self.foyer) != "foyer":
            raise RoomError(f"{self.foyer} is no foyer; choose one of {', '.join(FOYERS)}, or a name like foyer-7")
        if self.table not in TABLES:
            raise RoomError(f"unknown table {self.table!r}; choose one of {', '.join(TABLES)}")


def make_foyer(request: FoyerRequest) -> Room:
    """The room of a request; RoomError if something does not fit on the table."""
    room = with_table(make_room(request.foyer), request.table)
    if isinstance(request.on_it, Receptacle):
        one = request.on_it
        size, options = RECEPTACLES[one.kind], {"lidless": 1.0}
        things = [_on_top(room, one.kind, size, one.aside, one.toward, one.yaw, 0, options)]
    elif request.on_it:
        things = _book_row(room, request.on_it)
    else:
        things = []
    return replace(room, things=room.things + tuple(things))


def with_table(room: Room, kind: str) -> Room:
    """The foyer with another kind of table in the place of its own, at the same wall; its drawers change with it."""
    if kind not in TABLES:
        raise RoomError(f"unknown table {kind!r}; choose one of {', '.join(TABLES)}")
    old = table_of(room)
    rng = np.random.default_rng([old.seed, list(TABLES).index(kind)])
    width, depth, height = (round(float(v * rng.uniform(0.94, 1.06)), 4) for v in TABLES[kind])
    depth = max(depth, MIN_DEPTH)
    # Its back stays where the old one's was.
    x, y = np.asarray(old.position[:2]) + facing_vector(old.yaw) * (depth - old.size[1]) / 2
    style = {role: material for thing in room.things for role, material in thing.style.items()}

    def styled(name: str) -> dict[str, str]:
        return {role: style[role] for role in catalog.TYPES[name].roles if role in style}

    table = Thing(
        f"{kind}_table", kind, (round(float(x), 4), round(float(y), 4), 0.0), old.yaw, (width, depth, height),
        int(rng.integers(2**31)), styled(kind), "", dict(TABLE_OPTIONS),
    )  # fmt: skip
    alike = int(rng.integers(2**31))
    fitting = {"handle": float(rng.integers(4)), "panel": float(rng.integers(3))}
    drawers = []
    for number, (cell, at, size) in enumerate(storage.cells(kind, table.size, table.options)):
        at_room = np.asarray(table.position) + rotation("z", -table.yaw) @ np.asarray(at)
        options = fitting | ({} if kind == "SideTable" else {"housing": 0.0})
        drawers.append(Thing(
            f"{cell}_of_table_{number + 1}", cell, _rounded(at_room), table.yaw, _rounded(size),
            alike, styled(cell), table.name, options,
        ))  # fmt: skip
    kept = [thing for thing in room.things if thing.name != old.name and thing.inside != old.name]
    return replace(room, things=(*kept, table, *drawers))


def free_range(room: Room, kind: str, yaw: float, behind: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest (aside, toward) of a receptacle that leaves so many meters free behind it.

    If they cross, it does not fit; low is then at the table's front.
    """
    top = np.asarray(support_of(table_of(room)).size[:2]) / 2
    half = np.asarray(rotated_extent(RECEPTACLES[kind], yaw)) / 2
    low, high = half - top + EDGE, top - half - EDGE
    return np.array([low[0], min(low[1] + behind, high[1])]), high


def _book_row(room: Room, row: BookRow) -> list[Thing]:
    if row.count < 1:
        raise RoomError(f"a row has at least one book, not {row.count}")
    pitch = BOOK[1] + BOOK_GAP
    turn = np.radians(row.yaw)
    width, depth = row.count * pitch - BOOK_GAP, BOOK[0]
    reach = (abs(np.sin(turn)) * width + np.cos(turn) * depth) / 2
    toward = support_of(table_of(room)).size[1] / 2 - row.front - reach
    books = []
    for number in range(row.count):
        along = (number - (row.count - 1) / 2) * pitch
        # Clockwise from above, the right end of the row comes nearer.
        aside, nearer = row.aside + along * np.cos(turn), toward + along * np.sin(turn)
        name = f"Book_occluder_{number + 1}"
        # A book's spine is at its left: a quarter turn shows it to the front.
        books.append(_on_top(room, name, BOOK, aside, nearer, row.yaw + 90, row.seed + number, {}, "Book"))
    return books


def _on_top(
    room: Room, name: str, size, aside: float, toward: float, yaw: float, seed: int, options: dict, kind: str = ""
) -> Thing:
    """A thing on the table's top, measured from its middle as somebody in front of it sees it."""
    table = table_of(room)
    top: Support = support_of(table)
    half = np.asarray(rotated_extent(size, yaw)) / 2
    if (np.abs([aside, toward]) + half > np.asarray(top.size[:2]) / 2 + 1e-6).any():
        raise RoomError(f"{room.scene}: {name} does not fit on the {table.type} at ({aside:.2f}, {toward:.2f})")
    local = top.position + np.array([-aside, toward, 0.0005])
    position = np.asarray(table.position) + rotation("z", -table.yaw) @ local
    name = name if kind else f"{name}_on_table"
    return Thing(name, kind or name.removesuffix("_on_table"), _rounded(position), (table.yaw + yaw) % 360, size, seed,
                 {}, table.name, options)  # fmt: skip


def _rounded(values) -> tuple[float, float, float]:
    x, y, z = (round(float(v), 4) for v in values)
    return x, y, z
