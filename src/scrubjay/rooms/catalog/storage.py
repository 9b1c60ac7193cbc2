"""Things that hold things: drawers, cabinets, shelves, and the furniture that is built around them.

A Drawer or a Cabinet is a thing of its own, with its own housing, so that it can stand in a kitchen's run of units as
well as in a dresser. Furniture leaves its cells empty; `cells` says where they are and what belongs in them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scrubjay.rooms.catalog.joinery import (
    FORWARD,
    GAP,
    METALS,
    PAINTS,
    PANEL,
    REACH,
    WOODS,
    between,
    darken,
    front,
    handle,
    hollow,
    legs,
    molded_panel,
    option,
    pick,
    slab,
)
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.catalog.shape import ObjectType, Shape

Cell = tuple[str, tuple[float, float, float], tuple[float, float, float]]
"""The type that fills a cell, the middle of the cell's bottom in the furniture's coordinates, and its size."""

BOARD = 0.018
TOP = 0.025
FLUSH = 0.002
DESK_HEIGHT = 0.78
OPENS = 95.0


def cells(kind: str, size: tuple[float, float, float], options: Mapping[str, float]) -> list[Cell]:
    """The empty cells of a Dresser, TVStand, Desk, SideTable or ShelvingUnit; other types have none."""
    layouts = {
        "Dresser": _dresser_cells,
        "TVStand": _tv_stand_cells,
        "Desk": _desk_cells,
        "SideTable": _side_table_cells,
    }
    if kind == "ShelvingUnit":
        return _shelving_cells(size, options)
    return layouts[kind](size, options) if kind in layouts else []


def _grid(kind: str, low, high, depth: float, rows: int, columns: int) -> list[Cell]:
    """Equal cells between two (x, z) corners, from the furniture's front to its back board, BOARD between columns."""
    width = (high[0] - low[0] - BOARD * (columns - 1)) / columns
    height = (high[1] - low[1]) / rows
    deep = depth - FLUSH - 0.012
    return [
        (kind, (low[0] + width / 2 + column * (width + BOARD), 0.005, low[1] + row * height), (width, deep, height))
        for row in range(rows)
        for column in range(columns)
    ]


def base_height(size, options: Mapping[str, float]) -> float:
    """How high a Dresser or TVStand stands on its legs or plinth."""
    return float(options.get("base", min(0.1, 0.14 * size[2])))


def _dresser_cells(size, options) -> list[Cell]:
    width, depth, height = size
    rows = int(options.get("rows", np.clip(round((height - 0.1) / 0.24), 1, 5)))
    columns = int(options.get("columns", np.clip(round(width / 0.65), 1, 4)))
    side = width / 2 - 0.008 - BOARD
    return _grid("Drawer", (-side, base_height(size, options) + BOARD), (side, height - TOP), depth, rows, columns)


def _tv_stand_cells(size, options) -> list[Cell]:
    width, depth, _ = size
    columns = int(options.get("columns", np.clip(round(width / 0.6), 1, 4)))
    side = width / 2 - 0.008 - BOARD
    low = base_height(size, options) + BOARD
    kind = "Cabinet" if options.get("doors", 0) > 0 else "Drawer"
    return _grid(kind, (-side, low), (side, tv_shelf_height(size, options) - BOARD), depth, 1, columns)


def tv_shelf_height(size, options: Mapping[str, float]) -> float:
    """The upper face of the board on which a TVStand's open shelf begins."""
    low = base_height(size, options)
    return low + 0.62 * (size[2] - TOP - low)


def _desk_cells(size, options) -> list[Cell]:
    width, depth, height = size
    rows = int(options.get("rows", 3))
    if rows < 1:
        return []
    side = 1 if options.get("side", 1) > 0 else -1
    top = min(height, DESK_HEIGHT) - TOP
    span = pedestal_width(width)
    middle = side * (width / 2 - 0.015 - span / 2)
    low, high = (middle - span / 2 + BOARD, 0.06 + BOARD), (middle + span / 2 - BOARD, top)
    return _grid("Drawer", low, high, depth - 0.02, rows, 1)


def pedestal_width(width: float) -> float:
    """The width of a desk's pedestal of drawers."""
    return float(np.clip(0.3 * width, 0.3, 0.5))


def side_table_leg(size) -> float:
    """The thickness of a side table's legs."""
    return float(np.clip(0.08 * min(size[:2]), 0.022, 0.045))


def _side_table_cells(size, options) -> list[Cell]:
    width, depth, height = size
    drawers = int(options.get("drawers", 0))
    if drawers < 1:
        return []
    side = width / 2 - 0.01 - side_table_leg(size)
    tall = min(0.16 * drawers, 0.6 * height)
    return _grid("Drawer", (-side, height - TOP - tall), (side, height - TOP), depth, drawers, 1)


def _shelving_cells(size, options) -> list[Cell]:
    width, depth, height = size
    rows = int(options.get("rows", np.clip(round(height / 0.36), 2, 7)))
    side = width / 2 - BOARD
    return _grid("Shelf", (-side, 0.05), (side, height - BOARD), depth, rows, 1)


def drawer(s: Shape, rng: np.random.Generator) -> None:
    """A tray behind a front, sliding out of a housing."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    face = s.material("front", pick(rng, WOODS + PAINTS))
    grip, panel = option(s, "handle", rng, 4), option(s, "panel", rng, 3)
    back_of_front = d / 2 - REACH - PANEL
    if s.options.get("housing", 1) > 0:
        hollow(s, wood, (-w / 2, -d / 2, 0), (w / 2, back_of_front, h), 0.01, ("front",))
    tray = s.slide((0, 1, 0), 0.85 * d)
    front(tray, face, (0, back_of_front, h / 2), w - 2 * GAP, h - 2 * GAP, panel)
    low = (0.014 - w / 2, 0.014 - d / 2, 0.013)
    inside = h - low[2] - 0.01 - 0.014
    wall = inside * (0.8 if inside > 0.08 else 0.9)
    hollow(tray, face, low, (-low[0], back_of_front, low[2] + 0.01 + wall), 0.01, ("front", "top"))
    middle = (low[1] + 0.01 + back_of_front) / 2
    floor = (w - 0.048, back_of_front - low[1] - 0.01)
    tray.space((0, middle, low[2] + 0.01 + inside / 2), (*floor, inside))
    tray.support((0, middle, low[2] + 0.01), floor, inside)
    high = h / 2 if h < 0.24 or grip != 3 else 0.8 * h
    length = min(0.4 * w, rng.uniform(0.1, 0.18))
    metal = s.material("handle", pick(rng, METALS))
    # A wide front has two knobs or shells, as cabinet makers do it.
    for x in (-0.26 * w, 0.26 * w) if w > 0.7 and grip in (1, 2) else (0.0,):
        handle(tray, metal, (x, d / 2 - REACH, high), grip, 0.7 * w if grip == 3 else length)


def cabinet(s: Shape, rng: np.random.Generator) -> None:
    """A carcass with one door, or two where it is wide, opening to the front."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    face = s.material("front", pick(rng, WOODS + PAINTS))
    metal = s.material("handle", pick(rng, METALS))
    grip, panel = option(s, "handle", rng, 4), option(s, "panel", rng, 3)
    back_of_door, wall = d / 2 - REACH - PANEL, 0.015
    housed = s.options.get("housing", 1) > 0
    if housed:
        hollow(s, wood, (-w / 2, -d / 2, 0), (w / 2, back_of_door, h), wall, ("front",))
    middle, floor = (wall - d / 2 + back_of_door) / 2, (w - 2 * wall, back_of_door + d / 2 - wall)
    shelves = int(s.options.get("shelves", np.clip(np.floor(h / 0.5), 0, 4)))
    bottom = wall if housed else 0.0
    room = (h - 2 * bottom - shelves * wall) / (shelves + 1)
    for i in range(shelves + 1):
        z = bottom + i * (room + wall)
        if i:
            s.box(wood, (0, middle - 0.01, z - wall / 2), (floor[0], floor[1] - 0.02, wall))
        s.support((0, middle - 0.01, z), (floor[0], floor[1] - 0.02), room)
    s.space((0, middle, h / 2), (*floor, h - 2 * bottom))
    double = w > 0.55
    left = s.options.get("hinge", 1.0) > 0
    for hinge in (-1, 1) if double else (-1 if left else 1,):
        door = s.hinge((0, 0, -hinge), (hinge * w / 2, d / 2 - REACH, 0), OPENS)
        wide = w / 2 - 1.5 * GAP if double else w - 2 * GAP
        x = hinge * (w / 2 - GAP - wide / 2)
        front(door, face, (x, back_of_door, h / 2), wide, h - 2 * GAP, panel)
        low = s.options.get("wall", 0) > 0
        z = (min(0.16, 0.3 * h) if low else h - min(0.16, 0.3 * h)) if h < 1.2 else 0.5 * h
        # Two doors on a housing are three geoms already: handles in the fronts' color save two more.
        at = (x - hinge * (wide / 2 - 0.035), d / 2 - REACH, z)
        handle(door, face if double and housed else metal, at, grip, min(0.14, 0.3 * h), upright=True)


def shelf(s: Shape, rng: np.random.Generator) -> None:
    """A board at the bottom of its box with room above it; with `brackets`, on top of two brackets at the wall."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    thick = min(h, rng.uniform(0.016, 0.024))
    thick = s.options.get("thick", thick)
    brackets = s.options.get("brackets", 0) > 0 and h > 0.05
    bottom = h - thick if brackets else 0.0
    slab(s, wood, (0, 0, bottom), (w, d, thick), 0.003)
    open_above = 0.35 if brackets or h < 0.08 else h - thick
    s.support((0, 0, bottom + thick), (w - 0.01, d - 0.01), s.options.get("headroom", open_above))
    if brackets:
        metal, arm = s.material("metal", pick(rng, METALS)), min(0.8 * d, 0.22)
        for x in (-0.36 * w, 0.36 * w):
            s.box(metal, (x, 0.006 - d / 2, bottom / 2), (0.025, 0.01, bottom), solid=False)
            s.prism(metal, [(0, 0), (0, -bottom), (arm, 0)], 0.012, (x - 0.006, -d / 2, bottom), TO_SIDE)


TO_SIDE = rotation("z", 90) @ rotation("x", 90)
"""Turns an outline drawn in (depth, height) and extruded upwards so that it is extruded to the right."""


def shelving_unit(s: Shape, rng: np.random.Generator) -> None:
    """The frame around a stack of shelves: boards at the sides and the back, or posts."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS + PAINTS))
    posts = option(s, "posts", rng, 2) and d > 0.15
    slab(s, wood, (0, 0, h - BOARD), (w, d, BOARD), 0.003)
    s.support((0, 0, h), (w - 0.02, d - 0.02), 0.3)
    if posts:
        metal = s.material("metal", pick(rng, METALS))
        legs(s, metal, (-w / 2, -d / 2, 0), (w / 2, d / 2, h - BOARD), BOARD, 0)
        for z in np.linspace(0.04, h - rng.uniform(0.06, 0.14), 3):
            for x in (BOARD / 2 - w / 2, w / 2 - BOARD / 2):
                s.box(metal, (x, 0, z), (0.01, d - BOARD, 0.012), solid=False)
        s.solid_box((0, 0.004 - d / 2, h / 2), (w, 0.008, h))
        return
    for x in (-1, 1):
        a, b = sorted((x * w / 2, x * (w / 2 - BOARD)))
        between(s, wood, (a, -d / 2, 0), (b, d / 2, h - BOARD))
    between(s, darken(wood), (BOARD - w / 2, -d / 2, 0), (w / 2 - BOARD, 0.01 - d / 2, h - BOARD))
    between(s, wood, (BOARD - w / 2, 0.01 - d / 2, 0), (w / 2 - BOARD, d / 2 - rng.uniform(0.01, 0.04), 0.05))


def _carcass(s: Shape, rng: np.random.Generator, wood: str, around: list[Cell]) -> None:
    """Top, sides, back, bottom, the boards between columns of cells, and a plinth or legs below."""
    w, d, h = s.size
    base, edge = base_height(s.size, s.options), d / 2 - FLUSH - REACH
    slab(s, s.material("top", wood), (0, 0, h - TOP), (w, d, TOP))
    hollow(s, wood, (0.008 - w / 2, -d / 2, base), (w / 2 - 0.008, edge, h - TOP), BOARD, ("front", "top", "back"))
    back = (0.02 - w / 2, -d / 2, base + BOARD), (w / 2 - 0.02, 0.008 - d / 2, h - TOP)
    between(s, darken(wood), *back)
    s.support((0, 0, h), (w - 0.02, d - 0.02), 1.0)
    for x in sorted({round(at[0] + size[0] / 2, 6) for _, at, size in around})[:-1]:
        ends = max(at[2] + size[2] for _, at, size in around)
        between(s, wood, (x, 0.008 - d / 2, base + BOARD), (x + BOARD, edge, ends))
    if option(s, "legs", rng, 2):
        low, high = (0.02 - w / 2, 0.02 - d / 2, 0), (w / 2 - 0.02, edge - 0.01, base)
        legs(s, wood, low, high, rng.uniform(0.04, 0.06), int(rng.integers(1, 4)))
    else:
        between(s, wood, (0.02 - w / 2, -d / 2, 0), (w / 2 - 0.02, edge - rng.uniform(0.02, 0.05), base))


def dresser(s: Shape, rng: np.random.Generator) -> None:
    """A chest around a grid of drawers."""
    _carcass(s, rng, s.material("wood", pick(rng, WOODS + PAINTS)), _dresser_cells(s.size, s.options))


def tv_stand(s: Shape, rng: np.random.Generator) -> None:
    """A low chest: a row of drawers or cabinets, and an open shelf under the top."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    _carcass(s, rng, wood, _tv_stand_cells(s.size, s.options))
    shelf_at, inner = tv_shelf_height(s.size, s.options), w / 2 - 0.008 - BOARD
    edge = d / 2 - FLUSH - REACH
    between(s, wood, (-inner, 0.008 - d / 2, shelf_at - BOARD), (inner, edge, shelf_at))
    between(s, wood, (-BOARD / 2, 0.008 - d / 2, shelf_at), (BOARD / 2, edge - 0.02, h - TOP))
    for x in (-0.5, 0.5):
        s.support((x * inner, -REACH / 2, shelf_at), (inner - BOARD, d - 0.06), h - TOP - shelf_at)


def safe(s: Shape, rng: np.random.Generator) -> None:
    """A steel box with a thick door, a dial and a lever."""
    w, d, h = s.size
    steel = s.material("metal", pick(rng, ("metal#4d5358", "metal#3c4a45", "metal#6a6e72", "metal#54483f")))
    bright = s.material("handle", pick(rng, METALS[:2] + METALS[3:4]))
    wall, face = 0.1 * min(w, h), d / 2 - 0.05
    thick = 0.6 * wall
    hollow(s, steel, (-w / 2, -d / 2, 0), (w / 2, face, h), wall, ("front",))
    deep = face - thick + d / 2 - wall
    middle = (wall - d / 2 + face - thick) / 2
    s.space((0, middle, h / 2), (w - 2 * wall, deep, h - 2 * wall))
    s.support((0, middle, wall), (w - 2 * wall, deep), h - 2 * wall)
    door = s.hinge((0, 0, 1), (wall / 2 - w / 2, face + 0.02, 0), OPENS + 10)
    steps = [(0, 0), (0, 0.016), (0.008, 0.02), (0.03, 0.02), (0.036, 0.014)]
    wide, high = w - wall, h - wall
    door.surface(steel, molded_panel(wide, high, steps, back=True), (0, face, h / 2))
    plug = (w - 2 * wall - 0.02, thick, h - 2 * wall - 0.02)
    door.box(steel, (0, face - thick / 2, h / 2), plug, without=("front",))
    door.solid_box((0, face + 0.01, h / 2), (wide, 0.02, high))
    r = rng.uniform(0.1, 0.13) * min(w, h)
    dial = [(1.25 * r, 0), (1.25 * r, 0.006), (r, 0.008), (0.9 * r, 0.026), (0, 0.028)]
    door.lathe(bright, dial, (0.08 * w, face + 0.014, 0.62 * h), FORWARD, segments=18)
    grip = np.array((0.26 * w, face + 0.032, 0.34 * h))
    for angle in (0, 60, 120) if rng.random() < 0.6 else (90,):
        reach = rotation("y", angle) @ np.array((1.1 * r, 0, 0))
        door.tube(bright, [grip - reach, grip, grip + reach], 0.007, 6)
    door.cylinder(bright, grip - [0, 0.018, 0], 0.25 * r, 0.026, FORWARD, segments=10)


def box(s: Shape, rng: np.random.Generator) -> None:
    """A cardboard box with two flaps, or with one lid on a hinge; the option `lidless` leaves them out."""
    w, d, h = s.size
    card = s.material("front", pick(rng, ("paper#c69c6d", "paper#b88b5a", "paper#d4b48a", "paper#a9815a")))
    wall, flap = 0.01, 0.008
    rim = h - flap
    hollow(s, card, (-w / 2, -d / 2, 0), (w / 2, d / 2, rim), wall, ("top",))
    s.space((0, 0, (wall + rim) / 2), (w - 2 * wall, d - 2 * wall, rim - wall))
    s.support((0, 0, wall), (w - 2 * wall, d - 2 * wall), rim - wall)
    label = f"label-{rng.integers(8)}#ffffff"
    wide, x = min(0.5 * w, rng.uniform(0.12, 0.2)), rng.uniform(-0.15, 0.15) * w
    faces = ("left", "right", "top", "bottom", "back")
    s.box(
        label,
        (x, d / 2 + 0.001, rng.uniform(0.45, 0.6) * h),
        (wide, 0.001, 0.35 * h),
        solid=False,
        without=faces,
        fitted=True,
    )
    tape = pick(rng, ("plain#d9c39a", "plain#b5895a", "plain#e8e2d2"))
    if s.options.get("lidless"):
        return
    if option(s, "lid", rng, 3) == 2:
        lid = s.hinge((1, 0, 0), (0, -d / 2, h), rng.uniform(100, 115))
        lid.box(card, (0, 0, rim + flap / 2), (w, d, flap))
        return
    degrees = rng.uniform(105, 120)
    for side in (-1, 1):
        half = s.hinge((0, side, 0), (side * w / 2, 0, h), degrees)
        half.box(card, (side * w / 4, 0, rim + flap / 2), (w / 2 - 0.001, d, flap))
        if side > 0:
            # The tape that closed it hangs on to one flap.
            half.box(tape, (0.004, 0, h + 0.0015), (0.05, d, 0.001), solid=False)


def laundry_hamper(s: Shape, rng: np.random.Generator) -> None:
    """A woven basket with a lid hinged at its back, square or round; the option `lidless` leaves the lid out."""
    w, d, h = s.size
    weave = s.material("fabric", pick(rng, ("woven#c2a679", "woven#d8cbb0", "woven#8f6f4a", "woven#a9a59c")))
    frame = s.material("wood", pick(rng, WOODS))
    rim, wall = h - 0.025, 0.012
    lid = None if s.options.get("lidless") else s.hinge((1, 0, 0), (0, -d / 2, rim), 105)
    if option(s, "round", rng, 2):
        r, scale = w / 2, (1.0, d / w)
        foot = rng.uniform(0.86, 0.96)
        outside = [(0, 0), (foot * r, 0), (r, rim), (r - wall, rim), (foot * r - wall, wall), (0, wall)]
        s.lathe(weave, outside, segments=20, scale=scale)
        if lid:
            lid.lathe(weave, [(0, rim), (r, rim), (r, rim + 0.012), (0.85 * r, h), (0, h)], segments=20, scale=scale)
        s.lathe(frame, [(r, rim - 0.03), (r, rim), (r - 0.02, rim)], segments=20, scale=(1.0, d / w))
        length = 2 * np.pi * max(w, d) / 2 / 8
        for angle in range(0, 360, 45):
            x, y = (r - wall) * np.cos(np.radians(angle)), (d / 2 - wall) * np.sin(np.radians(angle))
            s.solid_box((x, y, rim / 2), (wall, length, rim), rotation("z", angle))
        s.solid_box((0, 0, wall / 2), (0.9 * w, 0.9 * d, wall))
        inner = (0.62 * w, 0.62 * d)
    else:
        hollow(s, weave, (0.008 - w / 2, 0.008 - d / 2, 0.02), (w / 2 - 0.008, d / 2 - 0.008, rim), wall, ("top",))
        legs(s, frame, (-w / 2, -d / 2, 0), (w / 2, d / 2, rim), 0.026, 0)
        if lid:
            slab(lid, weave, (0, 0, rim), (w, d, h - rim))
        inner = (w - 0.06, d - 0.06)
    if lid:
        lid.solid_box((0, 0, (rim + h) / 2), (0.9 * w, 0.9 * d, h - rim))
    s.space((0, 0, (rim + 0.03) / 2), (*inner, rim - 0.035))
    s.support((0, 0, 0.034), (inner[0] * 0.9, inner[1] * 0.9), rim - 0.04)


CARPENTRY = ("wood", "front", "handle", "top", "metal")
TYPES = {
    "Drawer": ObjectType(drawer, opens=True, roles=CARPENTRY),
    "Cabinet": ObjectType(cabinet, opens=True, roles=CARPENTRY),
    "Shelf": ObjectType(shelf, roles=("wood", "metal")),
    "ShelvingUnit": ObjectType(shelving_unit, roles=("wood", "metal")),
    "Dresser": ObjectType(dresser, roles=CARPENTRY),
    "TVStand": ObjectType(tv_stand, roles=CARPENTRY),
    "Safe": ObjectType(safe, opens=True),
    "Box": ObjectType(box, opens=True),
    "LaundryHamper": ObjectType(laundry_hamper, opens=True),
}
