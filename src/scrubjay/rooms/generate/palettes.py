"""A room's palette: one material per role, so that its things match."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms import catalog

WOODS = ("wood#d9b98a", "wood#c79a63", "wood#b07c48", "wood#8f5f38", "wood#6b4630", "wood#e2cfae", "wood#9c7250")
FRONTS = ("plain#f1efe8", "plain#e3e0d4", "plain#b9c7bd", "plain#7f98a0", "plain#54656b", "wood#c79a63",
          "wood#a3673a", "wood#d9b98a", "plain#c8b79c", "plain#8a9a7c")  # fmt: skip
COUNTERS = (
    "granite#8c8a88",
    "granite#4f4c4b",
    "marble#efeeea",
    "marble#dcd6cc",
    "wood#b98a56",
    "granite#c9c2b4",
    "plain#e9e6df",
)
FABRICS = ("woven#8c97a3", "woven#b7a48a", "woven#5f7488", "woven#9c5f4d", "woven#7f8f6c", "woven#d3c9b8",
           "woven#6b5f6e", "leather#7a4f34", "leather#3f3a38", "woven#4f6b66")  # fmt: skip
ACCENTS = ("printed-{}#d8c9a8", "printed-{}#b8c7d4", "printed-{}#d9b3a0", "printed-{}#b9c9b0", "woven#c9b48f",
           "woven#a8b6be", "woven#b98d86", "woven#93a38c", "printed-{}#cdbcd0")  # fmt: skip
SINKS = ("metal#cfd4d8", "plain#f3f2ee", "metal#b3b8bc")
METALS = ("metal#c4c7ca", "metal#8d8f92", "metal#4b4a48", "metal#c9a860")

SHELL = {"Floor": ("floor",), "Wall": ("wall",), "Ceiling": ("ceiling",)}
"""The roles of the room's shell."""


def pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    """A random material; its variant is random too if the name leaves it open."""
    return choices[int(rng.integers(len(choices)))].format(int(rng.integers(6)))


def palette(
    rng: np.random.Generator, floors: tuple[str, ...], walls: tuple[str, ...], fronts: tuple[str, ...]
) -> dict[str, str]:
    """A material for each role. Without `fronts`, cabinets are of the room's wood or painted."""
    wood = pick(rng, WOODS)
    front = pick(rng, fronts) if fronts else wood if rng.random() < 0.6 else pick(rng, FRONTS)
    metal = pick(rng, METALS)
    return {
        "floor": pick(rng, floors),
        "wall": pick(rng, walls),
        "ceiling": "plain#f4f2ee",
        "wood": wood,
        "front": front,
        "handle": metal,
        "metal": metal,
        "top": wood,
        "counter": pick(rng, COUNTERS),
        "sink": pick(rng, SINKS),
        "fabric": pick(rng, FABRICS),
        "curtain": pick(rng, ACCENTS),
        "rug": pick(rng, ACCENTS),
        "bedding": pick(rng, ACCENTS),
        "towel": pick(rng, ACCENTS),
    }


def style_of(kind: str, room_palette: dict[str, str]) -> dict[str, str]:
    """The roles of a room's palette that a type uses."""
    roles = SHELL[kind] if kind in SHELL else catalog.TYPES[kind].roles
    return {role: room_palette[role] for role in roles}
