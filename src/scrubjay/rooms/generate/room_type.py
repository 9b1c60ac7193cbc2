"""The definition of a room type. Each type is a module of `rooms/generate` that defines `TYPE`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scrubjay.rooms.generate.layout import Plan


@dataclass(frozen=True)
class RoomType:
    """A type of room."""

    furnish: Callable[[Plan], None]
    """Furnishes an empty room; raises `LayoutError` if what it needs does not fit."""
    width: tuple[float, float]
    """Range in meters."""
    depth: tuple[float, float]
    floors: tuple[str, ...]
    """Materials to choose from."""
    walls: tuple[str, ...]
    fronts: tuple[str, ...] = ()
    """Of cabinets and drawers; by default the room's wood, or paint."""
    min_positions: int = 60
    """Rooms with fewer free grid positions are rejected."""
    min_openables: int = 0
    """Rooms with fewer openables are rejected."""
    l_shaped: float = 0.28
    """The share of rooms with a corner cut out."""
    either_way: bool = False
    """Half of the rooms have width and depth swapped."""
