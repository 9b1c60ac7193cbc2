"""A household room as plain data, independent of any engine.

Lengths are in meters. Positions are (x, y, z): x east, y north, z up (the paper's (x, z, y)). Yaws are in degrees,
clockwise seen from above, like an agent's rotation: a thing with yaw 0 faces north, with yaw 90 east.

Field constraints are validated when a room file is loaded. Rooms built in code run only `check`, since generators build
them in loops.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, ConfigDict, Field, TypeAdapter, ValidationError

from scrubjay.errors import RoomError, explain, reason
from scrubjay.files import write_atomically

GOALS = ("Bread", "Cup", "Knife", "Plunger", "Tomato")
"""The five objects that can be hidden. No room holds one of them as furniture, so a goal is never ambiguous."""

ROOM_TYPES = ("kitchen", "living_room", "bedroom", "bathroom", "foyer")
"""Each has a module of its name in `rooms/generate`. Append new types: their numbers seed the rooms."""
ITHOR = "iTHOR:"
"""Prefix of the names of AI2-THOR's rooms: `iTHOR:FloorPlan28`. A plain `FloorPlan28` is a generated room."""
FORMAT = 1
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Positive = Annotated[float, Field(gt=0)]
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Thing:
    """An object in a room: an instance of a catalog type that fills a box."""

    name: Annotated[str, Field(min_length=1)]
    """Unique in its room, like `Drawer_3`."""
    type: str
    """One of the catalog's types."""
    position: Point
    """The center of the box's bottom face."""
    yaw: float
    """Degrees, clockwise from above; 0 faces north."""
    size: tuple[Positive, Positive, Positive]
    """Width, depth and height of the box at yaw 0: along x, y and z."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds the shape's randomness."""
    style: dict[str, str] = field(default_factory=dict)
    """Materials by role (`wood`, `front`, `fabric`, ...), which make a room's things match."""
    inside: str = ""
    """The name of the thing it stands on or lies in; things in a drawer move with it."""
    options: dict[str, float] = field(default_factory=dict)
    """Further parameters of the type's shape, such as the hinge's side."""

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class Lamp:
    """A light without shadows. All rooms have the same number of lamps, since renderers are compiled for it."""

    direction: Point
    """Direction of its light."""
    color: Annotated[Point, Field(validation_alias=AliasChoices("color", "colour"))]
    """RGB; files written before version 0.2 spell it `colour`."""

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class Room:
    """A household room: a floor outline and the things in it."""

    scene: str
    """`FloorPlan12`, `kitchen-81723` for a room from any other seed, or `iTHOR:FloorPlan28` for one of AI2-THOR's."""
    type: str
    """One of `ROOM_TYPES`."""
    outline: Annotated[tuple[tuple[float, float], ...], Field(min_length=4)]
    """The floor's corners (x, y), counter-clockwise; all walls are along x or y."""
    height: Positive
    things: tuple[Thing, ...]
    lamps: tuple[Lamp, ...]

    __pydantic_config__ = STRICT

    def __post_init__(self) -> None:
        check(self)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north end of the floor."""
        xs, ys = zip(*self.outline, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of all that it holds; the same after a file was written and read."""
        data = json.loads(json.dumps(asdict(self)), parse_int=float)  # Files turn whole lengths into floats.
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    @property
    def file_stem(self) -> str:
        """Its name as the beginning of a file's; names of rooms from files are paths."""
        return file_stem(self.scene)

    def of_type(self, *types: str) -> list[Thing]:
        return [thing for thing in self.things if thing.type in types]


def file_stem(scene: str) -> str:
    """A scene's name as the beginning of a file's: in place of the folders that it may name are underscores."""
    return re.sub(r"[/\\]+", "_", scene)


def check(room: Room) -> None:
    """Raises RoomError if a room is inconsistent."""
    if room.type not in ROOM_TYPES:
        raise RoomError(f"{room.scene}: unknown room type {room.type!r}; choose one of {', '.join(ROOM_TYPES)}")
    if len(room.outline) < 4:
        raise RoomError(f"{room.scene}: an outline needs at least four corners, not {len(room.outline)}")
    names = {thing.name for thing in room.things}
    if len(names) != len(room.things):
        raise RoomError(f"{room.scene}: two things have the same name")
    for thing in room.things:
        if len(thing.position) != 3 or len(thing.size) != 3 or min(thing.size) <= 0:
            raise RoomError(f"{room.scene}: {thing.name} needs a position and a positive size of three numbers each")
        if thing.inside and thing.inside not in names:
            raise RoomError(f"{room.scene}: {thing.name} is inside {thing.inside!r}, which is not in the room")


def save_room(room: Room, path: str | os.PathLike[str]) -> None:
    """Writes a room as JSON."""
    write_atomically(path, json.dumps({"format": FORMAT, **asdict(room)}, indent=1) + "\n")


def load_room(path: str | os.PathLike[str]) -> Room:
    """Reads a room written by `save_room`. Raises RoomError for any other file."""
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RoomError(f"{path}: not a room file: {reason(error)}") from error
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise RoomError(f"{path}: not a room file of format {FORMAT}")
    try:
        # Back to JSON: strict validation accepts lists for tuples only there.
        return _schema().validate_json(json.dumps(data))
    except ValidationError as error:
        raise RoomError(f"{path}: a broken room file: {explain(error)}") from error


@cache
def _schema() -> TypeAdapter[Room]:
    return TypeAdapter(Room)
