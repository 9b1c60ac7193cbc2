"""What a household room is, as plain data. No engine in it.

Lengths are meters. Positions are (x, y, z): x east, y north, z up; the paper's (x, z, y). A yaw is in degrees,
clockwise seen from above, like an agent's rotation: a thing with yaw 0 has its front to the north, with yaw 90 to the
east.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from scrubjay.errors import RoomError
from scrubjay.files import write_atomically

GOALS = ("Bread", "Cup", "Knife", "Plunger", "Tomato")
"""The five objects that can be hidden. A room never holds one of them as furniture, so a goal is never ambiguous."""

ROOM_TYPES = ("kitchen", "living_room", "bedroom", "bathroom", "foyer")
FORMAT = 1


@dataclass(frozen=True)
class Thing:
    """An object of the room: a type of the catalog that fills a box."""

    name: str
    """Unique in its room, like `Drawer_3`."""
    type: str
    """One of the catalog's types."""
    position: tuple[float, float, float]
    """The middle of the box's bottom face."""
    yaw: float
    """Degrees, clockwise from above; 0 has the front to the north."""
    size: tuple[float, float, float]
    """Width, depth, height of the box at yaw 0: along x, y, z."""
    seed: int = 0
    """Everything random in the shape comes from this."""
    style: dict[str, str] = field(default_factory=dict)
    """Materials by role (`wood`, `front`, `fabric` ...), so that things of one room match."""
    inside: str = ""
    """The name of the thing it stands on or lies in; things in a drawer slide along with it."""
    options: dict[str, float] = field(default_factory=dict)
    """Numbers that a type's shape takes beside its box, such as the hinge's side."""


@dataclass(frozen=True)
class Lamp:
    """A light without shadows. Every room has the same number of them: the renderers are compiled for it."""

    direction: tuple[float, float, float]
    """Where its light goes."""
    color: tuple[float, float, float]


@dataclass(frozen=True)
class Room:
    """A household room: an outline on the floor, and things."""

    scene: str
    """`FloorPlan12`, or `kitchen-81723` for a room from any other seed."""
    type: str
    outline: tuple[tuple[float, float], ...]
    """The floor's corners (x, y), counter-clockwise; every wall is along x or y."""
    height: float
    things: tuple[Thing, ...]
    lamps: tuple[Lamp, ...]

    def __post_init__(self) -> None:
        check(self)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north end of the floor."""
        xs, ys = zip(*self.outline, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    def of_type(self, *types: str) -> list[Thing]:
        return [thing for thing in self.things if thing.type in types]


def check(room: Room) -> None:
    """Raises RoomError where a room contradicts itself."""
    if room.type not in ROOM_TYPES:
        raise RoomError(f"{room.scene}: unknown room type {room.type!r}; it is one of {', '.join(ROOM_TYPES)}")
    if len(room.outline) < 4:
        raise RoomError(f"{room.scene}: an outline has at least four corners, not {len(room.outline)}")
    names = {thing.name for thing in room.things}
    if len(names) != len(room.things):
        raise RoomError(f"{room.scene}: two things have one name")
    for thing in room.things:
        if len(thing.position) != 3 or len(thing.size) != 3 or min(thing.size) <= 0:
            raise RoomError(f"{room.scene}: {thing.name} needs a position and a size of three numbers, sizes above 0")
        if thing.inside and thing.inside not in names:
            raise RoomError(f"{room.scene}: {thing.name} is inside {thing.inside!r}, which is not in the room")


def save_room(room: Room, path: str | os.PathLike[str]) -> None:
    """Writes a room as JSON."""
    write_atomically(path, json.dumps({"format": FORMAT, **asdict(room)}, indent=1) + "\n")


def load_room(path: str | os.PathLike[str]) -> Room:
    """Reads a room written by `save_room`; RoomError says what is wrong with any other file."""
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RoomError(f"{path}: not a room file: {error}") from error
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise RoomError(f"{path}: not a room file of format {FORMAT}")
    try:
        things = tuple(_record(Thing, item) for item in data.pop("things"))
        lamps = tuple(_record(Lamp, item) for item in data.pop("lamps"))
        outline = tuple((float(x), float(y)) for x, y in data.pop("outline"))
        return Room(things=things, lamps=lamps, outline=outline, **data)
    except RoomError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RoomError(f"{path}: a broken room file: {error}") from error


def _record(kind: type, item: dict):
    known = {f.name for f in fields(kind)}
    if unknown := set(item) - known:
        raise RoomError(f"unknown {kind.__name__.lower()} fields {sorted(unknown)}; allowed are {sorted(known)}")
    values = {key: tuple(float(v) for v in value) if isinstance(value, list) else value for key, value in item.items()}
    return kind(**values)
