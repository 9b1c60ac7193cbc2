"""Makes household rooms from seeds.

`make_room("FloorPlan12")` is one of 150 fixed rooms, `make_room("kitchen-81723")` a kitchen from any other seed. A room
is the same on every machine. Rooms follow the facts of real ones (see `priors`): what they hold, how large it is, what
stands on what.
"""

from __future__ import annotations

import re

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms.generate import bathroom, bedroom, foyer, kitchen, living_room
from scrubjay.rooms.generate.layout import NoRoom, Plan, outline_of
from scrubjay.rooms.generate.palettes import palette
from scrubjay.rooms.room import ROOM_TYPES, Room

FIRST = {"kitchen": 0, "living_room": 200, "bedroom": 300, "bathroom": 400, "foyer": 500}
"""FloorPlan1 is the first kitchen, FloorPlan201 the first living room."""
SCENES: tuple[str, ...] = tuple(f"FloorPlan{FIRST[kind] + i}" for kind in ROOM_TYPES for i in range(1, 31))
ATTEMPTS = 60
POSITIONS = {"kitchen": 64, "living_room": 64, "bedroom": 64, "bathroom": 34, "foyer": 60}
"""Fewer free grid positions than this and a room is made anew."""
OPENABLES = {"kitchen": 14, "living_room": 5, "bedroom": 8, "bathroom": 7, "foyer": 0}
"""Fewer things that open than this, too."""
OPENABLE = ("Blinds", "Book", "Box", "Cabinet", "Dishwasher", "Drawer", "Fridge", "Kettle", "Laptop",
            "LaundryHamper", "Microwave", "Oven", "Safe", "ShowerCurtain", "ShowerDoor", "Toilet")  # fmt: skip
MAKERS = {"kitchen": kitchen, "living_room": living_room, "bedroom": bedroom, "bathroom": bathroom, "foyer": foyer}


def split(scene: str) -> str:
    """What a fixed room is for: "train", "validation" or "test"; foyers are "dynamic"."""
    if scene not in SCENES:
        raise RoomError(f"unknown scene {scene!r}; {_allowed()}")
    kind, number = _fixed(scene)
    if kind == "foyer":
        return "dynamic"
    return "train" if number <= 20 else "validation" if number <= 25 else "test"


def make_room(scene: str) -> Room:
    """The room of a name: `FloorPlan12`, or a room type and a seed as in `kitchen-81723`."""
    check_scene(scene)
    if scene in SCENES:
        return generate(*_fixed(scene), scene)
    kind, _, seed = scene.rpartition("-")
    return generate(kind, int(seed))


def check_scene(scene: str) -> None:
    """RoomError if there is no room of this name."""
    kind, _, seed = scene.rpartition("-")
    if scene not in SCENES and (kind not in ROOM_TYPES or not re.fullmatch(r"0|[1-9][0-9]*", seed)):
        raise RoomError(f"unknown scene {scene!r}; {_allowed()}")


def generate(room_type: str, seed: int, scene: str | None = None) -> Room:
    """A room of a type from a seed. The fixed rooms are apart from all others: they are named."""
    if room_type not in ROOM_TYPES:
        raise RoomError(f"unknown room type {room_type!r}; it is one of {', '.join(ROOM_TYPES)}")
    if seed < 0:
        raise RoomError(f"a seed is not negative, unlike {seed}")
    fixed = int(scene in SCENES)
    for attempt in range(ATTEMPTS):
        rng = np.random.Generator(np.random.PCG64([ROOM_TYPES.index(room_type), fixed, seed, attempt]))
        try:
            plan = _planned(room_type, rng, seed)
        except NoRoom:
            continue
        _, largest = plan.walkable()
        opening = sum(thing.type in OPENABLE for thing in plan.things)
        if plan.passable() and largest.sum() >= POSITIONS[room_type] and opening >= OPENABLES[room_type]:
            return plan.room(scene or f"{room_type}-{seed}")
    raise RoomError(f"no {room_type} from seed {seed} in {ATTEMPTS} attempts")


def _planned(room_type: str, rng: np.random.Generator, seed: int) -> Plan:
    maker = MAKERS[room_type]
    width, depth = (float(rng.uniform(*limits)) for limits in maker.SIZE)
    if rng.random() < 0.5 and room_type == "living_room":
        width, depth = depth, width
    outline = outline_of(rng, width, depth, 0.0 if room_type == "foyer" else 0.28)
    plan = Plan(room_type, rng, outline, float(rng.uniform(2.45, 2.75)), palette(rng, room_type))
    if room_type == "foyer":
        foyer.furnish(plan, seed)
    else:
        maker.furnish(plan)
    return plan


def _fixed(scene: str) -> tuple[str, int]:
    """The type of a fixed room and its number from 1 to 30."""
    index = SCENES.index(scene)
    return ROOM_TYPES[index // 30], index % 30 + 1


def _allowed() -> str:
    return (
        "allowed are FloorPlan1-30, 201-230, 301-330, 401-430, 501-530 and names like kitchen-81723: "
        f"one of {', '.join(ROOM_TYPES)}, a dash and a seed from 0"
    )
