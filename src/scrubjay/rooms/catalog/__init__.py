"""The catalog: one function per object type, which draws it into a box."""

from __future__ import annotations

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms.catalog import (
    appliances,
    bathroom,
    decor,
    electronics,
    fixtures,
    food,
    kitchen,
    leisure,
    seating,
    shell,
    storage,
    tables,
    tableware,
)
from scrubjay.rooms.catalog.boards import draw_boards, of_options
from scrubjay.rooms.catalog.shape import ObjectType, Shape
from scrubjay.rooms.room import Room, Thing

TYPES: dict[str, ObjectType] = {
    **appliances.TYPES,
    **bathroom.TYPES,
    **decor.TYPES,
    **electronics.TYPES,
    **fixtures.TYPES,
    **food.TYPES,
    **kitchen.TYPES,
    **leisure.TYPES,
    **seating.TYPES,
    **storage.TYPES,
    **tables.TYPES,
    **tableware.TYPES,
}
"""All object types by name, but for the room's shell (floor, walls, ceiling), which is drawn from its outline."""


def draw(kind: str, size, rng: np.random.Generator, style: dict[str, str], options: dict[str, float]) -> Shape:
    """Draws a type into a box of `size`; from boards where the options have some."""
    if kind not in TYPES:
        raise RoomError(f"unknown object type {kind!r}; the catalog has {', '.join(sorted(TYPES))}")
    shape = Shape(tuple(size), style, options=options)
    (draw_boards if of_options(options) else TYPES[kind].draw)(shape, rng)
    return shape


def shape_of(thing: Thing, room: Room) -> Shape:
    """Draws a thing. Equal things get equal shapes."""
    if thing.type in shell.TYPES:
        return shell.draw(thing, room)
    return draw(thing.type, thing.size, np.random.default_rng(thing.seed), thing.style, thing.options)
