"""Generates household rooms from seeds.

`make_room("FloorPlan12")` is one of 150 fixed rooms, `make_room("kitchen-81723")` a kitchen from any other seed. A room
is the same on every machine. Its objects, their sizes and their places follow statistics of real rooms (see `priors`).
`make_room("iTHOR:FloorPlan28")` is one of AI2-THOR's own rooms (see `rooms/ithor`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms import catalog, molmospaces
from scrubjay.rooms.generate.layout import LayoutError, Plan, outline_of
from scrubjay.rooms.generate.palettes import palette
from scrubjay.rooms.generate.room_type import RoomType
from scrubjay.rooms.room import ITHOR, ROOM_TYPES, Room

TYPES: dict[str, RoomType] = {name: import_module(f"{__name__}.{name}").TYPE for name in ROOM_TYPES}
FLOOR_PLANS = {"kitchen": 0, "living_room": 200, "bedroom": 300, "bathroom": 400, "foyer": 500}
"""Offsets of the paper's scene names: FloorPlan1 is the first kitchen, FloorPlan201 the first living room."""
PER_TYPE = 30
SCENES: tuple[str, ...] = tuple(
    f"FloorPlan{first + number}" for first in FLOOR_PLANS.values() for number in range(1, PER_TYPE + 1)
)
ATTEMPTS = 60


def split(scene: str) -> str:
    """A fixed room's split: "train", "validation" or "test"; "dynamic" for foyers."""
    if scene not in SCENES:
        raise RoomError(f"unknown scene {scene!r}; {_allowed_names()}")
    room_type, number = _parse_fixed(scene)
    if room_type == "foyer":
        return "dynamic"
    return "train" if number <= 20 else "validation" if number <= 25 else "test"


def split_of(scene: str) -> str:
    """The split of a fixed room, "other" for one generated from a seed."""
    return split(scene) if scene in SCENES else "other"


def expand_scenes(names: Iterable[str]) -> tuple[str, ...]:
    """Replaces groups of rooms by the rooms, and keeps other names.

    Groups are splits of the fixed rooms (`train`) and their rooms of one type (`train:kitchen`), and AI2-THOR's rooms
    (`iTHOR`, `iTHOR:kitchen`).
    """
    names = tuple(names)
    rooms: dict[str, list[str]] = {}
    for scene in SCENES:
        for name in (split(scene), f"{split(scene)}:{type_of(scene)}"):
            rooms.setdefault(name, []).append(scene)
    if any(name.startswith(ITHOR.rstrip(":")) for name in names):
        for scene in _ithor().ITHOR_SCENES:
            for name in (ITHOR.rstrip(":"), ITHOR + type_of(scene)):
                rooms.setdefault(name, []).append(scene)
    return tuple(scene for name in names for scene in rooms.get(name, [name]))


def type_of(scene: str) -> str:
    """The room type in a scene's name; the name of a generated room is not checked."""
    if scene.startswith(ITHOR):
        return _ithor().room_type(scene)
    if scene.startswith(molmospaces.PREFIX):
        return molmospaces.room_type(scene)
    return _parse_fixed(scene)[0] if scene in SCENES else scene.rpartition("-")[0]


def make_room(scene: str) -> Room:
    """Makes a room by name: `FloorPlan12`, a room type and a seed as in `kitchen-81723`, or `iTHOR:FloorPlan28`."""
    check_scene(scene)
    if scene.startswith(ITHOR):
        return _ithor().ithor_room(scene)
    if scene.startswith(molmospaces.PREFIX):
        raise RoomError(f"{scene} is not made of the catalog's things: use its name, as in World([{scene!r}])")
    if scene in SCENES:
        return generate(*_parse_fixed(scene), scene)
    room_type, _, seed = scene.rpartition("-")
    return generate(room_type, int(seed))


def check_scene(scene: str) -> None:
    """Raises RoomError if no room has this name."""
    if scene.startswith(ITHOR):
        _ithor().floor_plan(scene)
        return
    if scene.startswith(molmospaces.PREFIX):
        molmospaces.scene_path(scene)
        return
    room_type, _, seed = scene.rpartition("-")
    if scene not in SCENES and (room_type not in ROOM_TYPES or not re.fullmatch(r"0|[1-9][0-9]*", seed)):
        raise RoomError(f"unknown scene {scene!r}; {_allowed_names()}")


def generate(room_type: str, seed: int, scene: str | None = None) -> Room:
    """Generates a room from a seed. Fixed rooms (with a `scene`) differ from those of the same seed."""
    if room_type not in ROOM_TYPES:
        raise RoomError(f"unknown room type {room_type!r}; choose one of {', '.join(ROOM_TYPES)}")
    if seed < 0:
        raise RoomError(f"a seed must not be negative, but it is {seed}")
    fixed, kind = int(scene in SCENES), TYPES[room_type]
    for attempt in range(ATTEMPTS):
        rng = np.random.Generator(np.random.PCG64([ROOM_TYPES.index(room_type), fixed, seed, attempt]))
        try:
            plan = _plan(room_type, rng, seed)
        except LayoutError:
            continue
        _, largest = plan.walkable()
        openables = sum(thing.type in catalog.TYPES and catalog.TYPES[thing.type].opens for thing in plan.things)
        if plan.passable() and largest.sum() >= kind.min_positions and openables >= kind.min_openables:
            return plan.room(scene or f"{room_type}-{seed}")
    raise RoomError(f"no {room_type} could be generated from seed {seed} in {ATTEMPTS} attempts")


def _plan(room_type: str, rng: np.random.Generator, seed: int) -> Plan:
    kind = TYPES[room_type]
    width, depth = float(rng.uniform(*kind.width)), float(rng.uniform(*kind.depth))
    if rng.random() < 0.5 and kind.either_way:
        width, depth = depth, width
    outline = outline_of(rng, width, depth, kind.l_shaped)
    height = float(rng.uniform(2.45, 2.75))
    plan = Plan(room_type, seed, rng, outline, height, palette(rng, kind.floors, kind.walls, kind.fronts))
    kind.furnish(plan)
    return plan


def _parse_fixed(scene: str) -> tuple[str, int]:
    """The type of a fixed room and its number from 1 to 30."""
    index = SCENES.index(scene)
    return tuple(FLOOR_PLANS)[index // PER_TYPE], index % PER_TYPE + 1


def _ithor() -> ModuleType:
    """AI2-THOR's rooms, imported late since they use this package's palettes."""
    return import_module("scrubjay.rooms.ithor")


def _allowed_names() -> str:
    return (
        "allowed are FloorPlan1-30, 201-230, 301-330, 401-430, 501-530 and names like kitchen-81723: "
        f"one of {', '.join(ROOM_TYPES)}, a dash and a seed from 0; AI2-THOR's are named like {ITHOR}FloorPlan28, "
        f"MolmoSpaces' by {molmospaces.PREFIX} and a path"
    )
