"""Builds a room from the table: every object where AI2-THOR has it, drawn by our catalog.

Things have AI2-THOR's names, so `objects` has the record of each. What the table does not list is our own: walls and
ceiling, bases under counters, ovens under burners, materials and lamps.
"""

from __future__ import annotations

import zlib

import numpy as np

from scrubjay.rooms import generate
from scrubjay.rooms.catalog.boards import of_options
from scrubjay.rooms.catalog.joinery import darken
from scrubjay.rooms.generate.layout import make_lamps, triple
from scrubjay.rooms.generate.palettes import palette, style_of
from scrubjay.rooms.ithor import built_in
from scrubjay.rooms.ithor.boxes import Box, point
from scrubjay.rooms.ithor.layout import Layout
from scrubjay.rooms.ithor.table import FLOOR_PLANS, floor_plan, room_type
from scrubjay.rooms.room import GOALS, ITHOR, Room, Thing

MIN_HEIGHT, ABOVE = 2.5, 0.05
"""The ceiling's height in meters, and the least space above the highest object."""
SHADE = 0.86
"""Brightness of boards around doors and drawers."""
SHELF = 0.02
"""Thickness of shelves in meters; the table has only the space above them."""
SURFACES = {"ArmChair": "seat", "Bed": "lie", "Sofa": "seat"}
"""Options for the height at which things lie on a type."""
RIM = 0.97
"""Share of a bathtub's height that is its rim's, on which things stand."""
HIGH = 1.2
"""Meters above which a cabinet hangs on the wall."""


def ithor_room(scene: str, goals: bool = False) -> Room:
    """The room of a floor plan, `FloorPlan28` or `iTHOR:FloorPlan28`.

    In the game a goal object is never ambiguous, so furniture of the five goal types is left out unless `goals`.
    """
    name, kind = floor_plan(scene), room_type(scene)
    layout = Layout(scene)
    rng = np.random.Generator(np.random.PCG64([FLOOR_PLANS.index(name)]))
    look = generate.TYPES[kind]
    style = palette(rng, look.floors, look.walls, look.fronts)
    top = max(box.high[2] for kind, box in zip(layout.kinds, layout.boxes, strict=True) if kind != "Floor")
    height = round(max(MIN_HEIGHT, float(top) + ABOVE), 2)
    things = [*_shell(layout, height, style), *_Furnisher(layout, style, rng, goals).things()]
    (west, south), (east, north) = layout.low.tolist(), layout.high.tolist()
    outline = ((west, south), (east, south), (east, north), (west, north))
    return Room(ITHOR + name, kind, outline, height, tuple(things), make_lamps(rng))


def _shell(layout: Layout, height: float, style: dict[str, str]) -> list[Thing]:
    """Floor, walls and ceiling; the floor has its name in the table."""
    (floor,) = layout.of_type("Floor")
    names = {"Floor": layout.records[floor]["name"], "Wall": "Wall", "Ceiling": "Ceiling"}
    size = triple([*(layout.high - layout.low), height])
    return [Thing(names[kind], kind, (0.0, 0.0, 0.0), 0.0, size, style=style_of(kind, style)) for kind in names]


class _Furnisher:
    """Makes a room's things."""

    def __init__(self, layout: Layout, style: dict[str, str], rng: np.random.Generator, goals: bool) -> None:
        self.layout, self.style = layout, style
        self.fitting = {"handle": float(rng.integers(4)), "panel": float(rng.integers(3))}
        self.left_out = set() if goals else set(layout.of_type(*GOALS))

    def things(self) -> list[Thing]:
        layout = self.layout
        ovens = built_in.stoves(layout)
        counters, bases = built_in.counters(layout, ovens)
        pieces = {**built_in.furniture(layout), **counters}
        made = [self._structure(piece) for piece in (*bases, *ovens)]
        # Openables keep the table's order. What lies in a drawer is attached to it, so it comes later.
        for k in sorted(
            range(len(layout.records)), key=lambda k: 0 if layout.records[k]["openable"] else self._depth(k)
        ):
            record, kind = layout.records[k], layout.kinds[k]
            if kind == "Floor" or k in self.left_out:
                continue
            box, options = self._shape(k)
            if k in pieces:
                box, options = pieces[k].box, pieces[k].options
            # Objects of one model look alike, in all rooms.
            seed = zlib.crc32((record["assetId"] or record["name"]).encode())
            made.append(self._thing(record["name"], kind, box, seed, options, self._inside(k)))
        return made

    def _shape(self, k: int) -> tuple[Box, dict[str, float]]:
        """An object's box, and the options of its shape."""
        layout, kind, box = self.layout, self.layout.kinds[k], self.layout.boxes[k]
        if kind == "Shelf":
            # Its box is the space above it.
            thick = min(SHELF, float(box.position[2]) + 0.004)
            return Box(box.position - [0, 0, thick], box.yaw, box.size + [0, 0, thick]), {"thick": thick}
        if kind in SURFACES:
            heights = [other.position[2] - box.position[2] for other in layout.resting_on(k)]
            share = np.median(heights) / box.size[2] if heights else 0.0
            return box, {SURFACES[kind]: float(np.median(heights))} if 0.25 < share < 0.85 else {}
        if kind == "Bathtub":
            return box, {"rim": RIM}
        if kind not in ("Cabinet", "Drawer"):
            return box, {}
        options = dict(self.fitting)
        if kind == "Cabinet":
            # Its pivot is its hinge.
            options["hinge"] = 1.0 if box.local(point(layout.records[k]["position"]))[0] <= 0 else -1.0
            options["wall"] = float(box.position[2] > HIGH)
        return box, options

    def _depth(self, k: int) -> int:
        """How many things an object is in or on, one in the other."""
        parent = self.layout.parents[k]
        return 0 if parent is None else 1 + self._depth(parent)

    def _inside(self, k: int) -> str:
        parent = self.layout.parents[k]
        while parent is not None and parent in self.left_out:
            parent = self.layout.parents[parent]
        return "" if parent is None else self.layout.records[parent]["name"]

    def _structure(self, piece: built_in.Piece) -> Thing:
        return self._thing(piece.name, piece.kind, piece.box, zlib.crc32(piece.name.encode()), piece.options, "")

    def _thing(self, name: str, kind: str, box: Box, seed: int, options: dict[str, float], inside: str) -> Thing:
        style = style_of(kind, self.style)
        if of_options(options):
            # Darker than the fronts of drawers and doors, which would not be seen otherwise.
            material = {"CounterBase": "front", "CounterTop": "counter"}.get(kind, "wood")
            style |= {"boards": darken(self.style[material], 1.0 if kind == "CounterTop" else SHADE)}
        if kind in ("Sink", "SinkBasin"):
            style |= {"sink": self.style["sink"]}
        options = {key: round(value, 4) for key, value in options.items()}
        yaw = round(float(box.yaw), 4) % 360
        return Thing(name, kind, triple(box.position), yaw, triple(box.size), seed, style, inside, options)
