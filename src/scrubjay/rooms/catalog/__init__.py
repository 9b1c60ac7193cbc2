"""The catalog: a function for each object type that fills a box with parts and materials."""

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
"""All object types by name. The room's shell (floor, walls, ceiling) is drawn from its outline instead."""


def draw(kind: str, size, rng: np.random.Generator, style: dict[str, str], options: dict[str, float]) -> Shape:
    """Draws a type into a box of `size`."""
    if kind not in TYPES:
        raise RoomError(f"unknown object type {kind!r}; the catalog has {', '.join(sorted(TYPES))}")
    shape = Shape(tuple(size), style, options=options)
    TYPES[kind].draw(shape, rng)
    return shape


def shape_of(thing: Thing, room: Room) -> Shape:
    """Draws a thing; equal things have equal shapes."""
    if thing.type in shell.TYPES:
        return shell.draw(thing, room)
    return draw(thing.type, thing.size, np.random.default_rng(thing.seed), thing.style, thing.options)
