"""The catalog: a function per object type that fills a box with parts and materials."""

from __future__ import annotations

from collections.abc import Callable

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
from scrubjay.rooms.catalog.shape import Shape
from scrubjay.rooms.room import Room, Thing

Draw = Callable[[Shape, np.random.Generator], None]

TYPES: dict[str, Draw] = {
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
"""Every type and the function that draws it. The room's own shell (floor, walls, ceiling) is drawn from its outline."""


def draw(kind: str, size, rng: np.random.Generator, style: dict[str, str], options: dict[str, float]) -> Shape:
    """A shape of a type that fills a box."""
    if kind not in TYPES:
        raise RoomError(f"unknown object type {kind!r}; the catalog has {', '.join(sorted(TYPES))}")
    shape = Shape(tuple(size), style, options=options)
    TYPES[kind](shape, rng)
    return shape


def shape_of(thing: Thing, room: Room) -> Shape:
    """A thing's shape; the same thing always gives the same shape."""
    if thing.type in shell.TYPES:
        return shell.draw(thing, room)
    return draw(thing.type, thing.size, np.random.default_rng(thing.seed), thing.style, thing.options)
