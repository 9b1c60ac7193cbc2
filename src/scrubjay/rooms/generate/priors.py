"""What real rooms hold: how often, how many, how large, on what.

The numbers are facts of the objects in AI2-THOR's 120 rooms, taken from the Apache-2.0 `procthor` package;
`scripts/priors.py` makes them from the table of those objects.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from scrubjay.rooms import catalog

QUANTILES = (0.1, 0.5, 0.9)
Size = tuple[float, float, float]


@dataclass(frozen=True)
class Prior:
    """What the rooms of one type say about one object type."""

    share: float
    """Of the rooms that hold it."""
    count: tuple[int, int, int]
    """How many a room holds, at the three quantiles, where it holds any."""
    size: np.ndarray
    """Width, depth and height at the three quantiles, (3, 3)."""
    on: dict[str, float]
    """What it stands on or in, and the share of each."""


@cache
def table() -> dict[str, dict[str, Prior]]:
    """The priors by room type and object type."""
    data = json.loads(files(__package__).joinpath("priors.json").read_text())
    data.pop("source")
    return {
        room: {kind: Prior(p["share"], tuple(p["count"]), np.array(p["size"]), p["on"]) for kind, p in by_type.items()}
        for room, by_type in data.items()
    }


def of(room_type: str, kind: str) -> Prior:
    """The prior of an object type; from another room type if this one never holds it, else of the catalog's size."""
    rooms = table()
    for name in (room_type, *sorted(rooms)):
        if kind in rooms.get(name, {}):
            return rooms[name][kind]
    if (size := catalog.TYPES[kind].size) is None:
        raise KeyError(f"{kind} needs a size in the catalog, since no prior has one")
    return Prior(0.0, (1, 1, 1), np.outer((0.9, 1.0, 1.1), size), {})


def share(room_type: str, kind: str) -> float:
    """The share of rooms of a type that hold an object type."""
    found = table().get(room_type, {}).get(kind)
    return found.share if found else 0.0


def size(rng: np.random.Generator, room_type: str, kind: str) -> Size:
    """A size between the table's quantiles; large ones are large in all directions."""
    sizes = of(room_type, kind).size
    level = rng.uniform(0.25, 0.75)
    width, depth, height = (float(np.interp(level, QUANTILES, sizes[:, axis])) for axis in range(3))
    return width, depth, height


def size_within(rng: np.random.Generator, room_type: str, kind: str, most: Size) -> Size:
    """Such a size, but no larger than `most`."""
    width, depth, height = size(rng, room_type, kind)
    return min(width, most[0]), min(depth, most[1]), min(height, most[2])
