"""Colors and materials of a room, chosen once, so that its things match."""

from __future__ import annotations

import numpy as np

WOODS = ("wood#d9b98a", "wood#c79a63", "wood#b07c48", "wood#8f5f38", "wood#6b4630", "wood#e2cfae", "wood#9c7250")
FRONTS = {
    "kitchen": ("plain#f1efe8", "plain#e3e0d4", "plain#b9c7bd", "plain#7f98a0", "plain#54656b", "wood#c79a63",
                "wood#a3673a", "wood#d9b98a", "plain#c8b79c", "plain#8a9a7c"),
    "bathroom": ("plain#f3f2ee", "plain#d8dedd", "wood#c79a63", "wood#8f5f38", "plain#9fb3b5", "plain#6d7f84"),
}  # fmt: skip
COUNTERS = (
    "granite#8c8a88",
    "granite#4f4c4b",
    "marble#efeeea",
    "marble#dcd6cc",
    "wood#b98a56",
    "granite#c9c2b4",
    "plain#e9e6df",
)
FLOORS = {
    "kitchen": ("tiles#d9d4c6", "tiles#c2c8c8", "tiles#b9a58a", "planks#c39a6b", "planks#9b6f47", "tiles#e6e2da",
                "planks#d8ba8e"),
    "living_room": ("planks#b98d5a", "planks#8c6240", "planks#d2ae7c", "carpet#a39a8c", "planks#a67c52",
                    "carpet#8e94a0"),
    "bedroom": ("carpet#b5a893", "carpet#8d8aa0", "planks#c39a6b", "planks#9b7350", "carpet#a3aa9a", "carpet#c7bfb2"),
    "bathroom": ("tiles#d3d9da", "tiles#bfb6a6", "tiles#9fb0b4", "tiles#e4e2dc", "marble#dcd8d0", "tiles#8d9aa0"),
    "foyer": ("planks#b08a5e", "tiles#cfc8ba", "marble#e2ddd4", "planks#8f6a48", "carpet#a8a297"),
}  # fmt: skip
WALLS = {
    "kitchen": ("wall-0#efe8d8", "wall-0#dfe6dd", "wall-0#e9dcc4", "wall-3#f0efe9", "wall-0#cddadf",
                "wall-1#eee6d6", "wall-5#e8ddd0"),
    "living_room": ("wall-0#e6dfd1", "wall-0#c9d3cf", "wall-1#e3dccb", "wall-0#d8cdbd", "wall-2#dcd6c9",
                    "wall-5#d9c7b6", "wall-0#b9c4cc"),
    "bedroom": ("wall-0#d6dee6", "wall-2#e4d8d3", "wall-0#e9e1d2", "wall-0#c8d3c6", "wall-2#d3d9e2",
                "wall-0#e3d3c8", "wall-1#dfe0e6"),
    "bathroom": ("wall-3#e2ecee", "wall-3#eae6dc", "wall-4#e6eeee", "wall-3#d5e2dc", "wall-4#ece8e0",
                 "wall-3#dfe4ee"),
    "foyer": ("wall-0#e4ded2", "wall-1#dde1dc", "wall-0#d6d3cb", "wall-2#e5dfd4", "wall-0#d3dbe0"),
}  # fmt: skip
FABRICS = ("woven#8c97a3", "woven#b7a48a", "woven#5f7488", "woven#9c5f4d", "woven#7f8f6c", "woven#d3c9b8",
           "woven#6b5f6e", "leather#7a4f34", "leather#3f3a38", "woven#4f6b66")  # fmt: skip
ACCENTS = ("printed-{}#d8c9a8", "printed-{}#b8c7d4", "printed-{}#d9b3a0", "printed-{}#b9c9b0", "woven#c9b48f",
           "woven#a8b6be", "woven#b98d86", "woven#93a38c", "printed-{}#cdbcd0")  # fmt: skip
SINKS = ("metal#cfd4d8", "plain#f3f2ee", "metal#b3b8bc")
METALS = ("metal#c4c7ca", "metal#8d8f92", "metal#4b4a48", "metal#c9a860")

CARPENTRY = ("wood", "front", "handle", "top", "metal")
ROLES: dict[str, tuple[str, ...]] = {
    "Floor": ("floor",), "Wall": ("wall",), "Ceiling": ("ceiling",),
    "Drawer": CARPENTRY, "Cabinet": CARPENTRY, "Shelf": ("wood", "metal"), "ShelvingUnit": ("wood", "metal"),
    "Dresser": CARPENTRY, "TVStand": CARPENTRY, "Desk": CARPENTRY, "SideTable": CARPENTRY, "CoffeeTable": CARPENTRY,
    "DiningTable": ("wood", "metal"), "Chair": ("wood", "metal", "fabric"), "Stool": ("wood", "metal", "fabric"),
    "Sofa": ("fabric", "wood"), "ArmChair": ("fabric", "wood"), "Ottoman": ("fabric", "wood"),
    "Bed": ("fabric", "wood"),
}  # fmt: skip
"""The roles of the room's palette that a type follows; the other roles and types vary by themselves."""


def pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    """One of several, with a random variant where the material leaves it open."""
    return choices[int(rng.integers(len(choices)))].format(int(rng.integers(6)))


def palette(rng: np.random.Generator, room_type: str) -> dict[str, str]:
    """A material for each role."""
    wood = pick(rng, WOODS)
    fronts = FRONTS.get(room_type, ())
    front = pick(rng, fronts) if fronts else wood if rng.random() < 0.6 else pick(rng, FRONTS["kitchen"])
    metal = pick(rng, METALS)
    return {
        "floor": pick(rng, FLOORS[room_type]),
        "wall": pick(rng, WALLS[room_type]),
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
    """The part of a room's palette that a type follows."""
    return {role: room_palette[role] for role in ROLES.get(kind, ())}
