"""Statistics of real rooms: which objects they hold, how many, how large, and on what.

The numbers are facts about the objects in AI2-THOR's 120 rooms, taken from the Apache-2.0 `procthor` package;
`scripts/priors.py` computes them from the table of those objects.
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
    """Statistics of one object type in the rooms of one type."""

    share: float
    """Fraction of the rooms that hold it."""
    count: tuple[int, int, int]
    """Quantiles of its number per room, among rooms that hold it."""
    size: np.ndarray
    """Width, depth and height at the three quantiles, (3, 3)."""
    on: dict[str, float]
    """The types it stands on or in, with their shares."""


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
    """The prior of an object type; from another room type if this one has none, else with the catalog's size."""
    rooms = table()
    for name in (room_type, *sorted(rooms)):
        if kind in rooms.get(name, {}):
            return rooms[name][kind]
    if (size := catalog.TYPES[kind].size) is None:
        raise KeyError(f"{kind} has no prior: give it a size in the catalog")
    return Prior(0.0, (1, 1, 1), np.outer((0.9, 1.0, 1.1), size), {})


def share(room_type: str, kind: str) -> float:
    """The share of rooms of a type that hold an object type."""
    prior = table().get(room_type, {}).get(kind)
    return prior.share if prior else 0.0


def size(rng: np.random.Generator, room_type: str, kind: str) -> Size:
    """A random size, interpolated between the prior's quantiles at one level for all three dimensions."""
    sizes = of(room_type, kind).size
    level = rng.uniform(0.25, 0.75)
    width, depth, height = (float(np.interp(level, QUANTILES, sizes[:, axis])) for axis in range(3))
    return width, depth, height


def size_within(rng: np.random.Generator, room_type: str, kind: str, max_size: Size) -> Size:
    """As `size`, clipped to `max_size`."""
    width, depth, height = size(rng, room_type, kind)
    return min(width, max_size[0]), min(depth, max_size[1]), min(height, max_size[2])
