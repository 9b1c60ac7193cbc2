"""Foyers: halls with a free center and a table, for experiments with things on it (`foyer_scene`)."""

from __future__ import annotations

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms import catalog
from scrubjay.rooms.catalog.shape import Support
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate import envelope
from scrubjay.rooms.generate.clutter import Clutter
from scrubjay.rooms.generate.furniture import chest, fittings
from scrubjay.rooms.generate.layout import LayoutError, Plan, box_of
from scrubjay.rooms.generate.room_type import RoomType
from scrubjay.rooms.room import Room, Thing

TABLES = {
    "DiningTable": (1.4, 0.85, 0.75),
    "CoffeeTable": (1.2, 0.65, 0.46),
    "SideTable": (0.8, 0.5, 0.7),
    "Desk": (1.4, 0.65, 0.76),
    "Dresser": (1.3, 0.52, 0.85),
}
"""The five kinds of table and their approximate sizes."""
RECEPTACLES = {
    "Bowl": (0.24, 0.24, 0.11),
    "Pot": (0.28, 0.28, 0.15),
    "Box": (0.34, 0.3, 0.22),
    "GarbageCan": (0.26, 0.24, 0.28),
    "LaundryHamper": (0.3, 0.28, 0.3),
}
"""The five kinds of receptacle and their sizes."""
TABLE_OPTIONS = {"drawers": 1.0, "rows": 2.0, "round": 0.0}
STANDING = (
    ("HousePlant", (0.42, 0.42, 1.0), "corner", 0.9),
    ("FloorLamp", (0.4, 0.4, 1.65), "corner", 0.8),
    ("Boots", (0.28, 0.26, 0.4), "any", 0.9),
    ("VacuumCleaner", (0.3, 0.32, 1.05), "corner", 0.3),
    ("DogBed", (0.6, 0.5, 0.16), "any", 0.3),
)
"""What stands on a hall's floor: type, size, where, and how often."""
ON_SHELVES = ("Vase", "Statue", "Boots", "BasketBall", "Candle", "WateringCan", "Newspaper", "TissueBox")
BOOK = (0.035, 0.17, 0.24)
"""Standing."""


def furnish(plan: Plan) -> None:
    """Fills an empty foyer; its seed picks the kind of table."""
    rng = plan.rng
    door = envelope.doorway(plan, plan.walls, "middle")
    kind = list(TABLES)[plan.seed % len(TABLES)]
    width, depth, height = (float(v * rng.uniform(0.94, 1.06)) for v in TABLES[kind])
    size = (width, depth, height)
    pieces = chest(plan, kind, size, fittings(plan), where="middle", options=TABLE_OPTIONS, tries=8)
    if not door or not pieces:
        raise LayoutError("no room for the table")
    west, south, _, east, north, top = box_of(pieces[0].position, size, pieces[0].yaw)
    plan.keep_clear((west, south, top, east, north, top + 0.6))
    envelope.switch(plan, door)
    if rng.random() < 0.6:
        envelope.window(plan, where="middle", dressing="Curtains" if rng.random() < 0.5 else "")
    _live_in(plan, door)
    envelope.ceiling_lamps(plan)


def _live_in(plan: Plan, door: Thing) -> None:
    """What people have in a hall, along its walls. No tables, receptacles or books: the experiments hold those out."""
    rng = plan.rng
    envelope.hang(plan, "Mirror", 1, size=(0.6, 0.035, 0.9), z=(1.0, 1.15))
    shelves = chest(plan, "ShelvingUnit", (float(rng.uniform(0.8, 1.0)), 0.34, float(rng.uniform(0.9, 1.6))), {})
    if rng.random() < 0.7:
        plan.furnish("Ottoman", (float(rng.uniform(0.7, 0.9)), 0.42, 0.42), away=0.02)
    for kind, size, where, chance in STANDING:
        if rng.random() < chance:
            plan.furnish(kind, size, where=where, away=0.03)
    envelope.hang(plan, "Painting", int(rng.integers(2, 5)))
    x, y = np.array(door.position[:2]) + facing_vector(door.yaw) * 0.75
    envelope.rug(plan, float(x), float(y), door.yaw, (1.2, 0.8))
    clutter = Clutter(plan)
    clutter.offer(*shelves)
    for _ in range(int(rng.integers(3, 7))):
        clutter.put(str(rng.choice(ON_SHELVES)), ("Shelf", "ShelvingUnit"))


def table_of(room: Room) -> Thing:
    """The table of a foyer."""
    tables = room.of_type(*TABLES)
    if room.type != "foyer" or not tables:
        raise RoomError(f"{room.scene} is not a foyer with a table")
    return tables[0]


def support_of(table: Thing) -> Support:
    """The support on a table's top."""
    shape = catalog.draw(table.type, table.size, np.random.default_rng(table.seed), table.style, table.options)
    return max(shape.supports, key=lambda support: support.position[2])


TYPE = RoomType(
    furnish,
    width=(4.2, 5.8),
    depth=(4.2, 5.8),
    floors=("planks#b08a5e", "tiles#cfc8ba", "marble#e2ddd4", "planks#8f6a48", "carpet#a8a297"),
    walls=("wall-0#e4ded2", "wall-1#dde1dc", "wall-0#d6d3cb", "wall-2#e5dfd4", "wall-0#d3dbe0"),
    min_positions=60,
    l_shaped=0.0,
)
