"""What the generator must know of a room type. Each type is a module of `rooms/generate` that defines `TYPE`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scrubjay.rooms.generate.layout import Plan


@dataclass(frozen=True)
class RoomType:
    """A type of room."""

    furnish: Callable[[Plan], None]
    """Fills an empty room; raises `NoRoom` where the necessary does not fit."""
    width: tuple[float, float]
    """Least and greatest, in meters."""
    depth: tuple[float, float]
    floors: tuple[str, ...]
    """Materials to choose from."""
    walls: tuple[str, ...]
    fronts: tuple[str, ...] = ()
    """Of cabinets and drawers; by default of the room's wood, or painted."""
    min_positions: int = 60
    """Rooms with fewer free grid positions are generated anew."""
    min_openables: int = 0
    """Rooms with fewer things that open are generated anew."""
    l_shaped: float = 0.28
    """The share of rooms that have a corner cut out."""
    either_way: bool = False
    """Half of the rooms have width and depth swapped."""
