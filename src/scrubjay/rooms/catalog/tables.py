"""Tables: a top on legs, on a pedestal, on trestles, with or without drawers below."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.joinery import METALS, PAINTS, REACH, WOODS, between, hollow, leg, legs, option, pick, slab
from scrubjay.rooms.catalog.shape import ObjectType, Shape
from scrubjay.rooms.catalog.storage import (
    BOARD,
    CARPENTRY,
    DESK_HEIGHT,
    FLUSH,
    TOP,
    cells,
    pedestal_width,
    side_table_leg,
)

KINDS = 6
"""Ways to carry a top: square, tapered, turned and round legs, a pedestal, trestles."""


def dining_table(s: Shape, rng: np.random.Generator) -> None:
    """A table to sit at."""
    _table(s, rng, thick=rng.uniform(0.025, 0.045), leg_thick=rng.uniform(0.05, 0.085), apron=rng.uniform(0.06, 0.1))


def coffee_table(s: Shape, rng: np.random.Generator) -> None:
    """A low table, often with a second shelf."""
    h = s.size[2]
    leg_thick = rng.uniform(0.04, 0.06)
    kind = _table(s, rng, thick=rng.uniform(0.02, 0.05), leg_thick=leg_thick, apron=0.0)
    if kind < 4 and rng.random() < 0.6 and h > 0.3:
        _lower_shelf(s, s.material("wood", pick(rng, WOODS)), leg_thick, rng.uniform(0.2, 0.3) * h)


def side_table(s: Shape, rng: np.random.Generator) -> None:
    """A small table, with up to two drawers under its top."""
    w, d, h = s.size
    drawers = cells("SideTable", s.size, s.options)
    if not drawers:
        leg_thick = side_table_leg(s.size)
        kind = _table(s, rng, thick=0.022, leg_thick=leg_thick, apron=rng.choice([0.0, 0.05]))
        if kind < 4 and rng.random() < 0.5:
            _lower_shelf(s, s.material("wood", pick(rng, WOODS)), leg_thick, rng.uniform(0.2, 0.35) * h)
        return
    wood = s.material("wood", pick(rng, WOODS + PAINTS))
    leg_thick, edge = side_table_leg(s.size), d / 2 - FLUSH - REACH
    _top(s, s.material("top", wood), TOP, False)
    low, high = (0.01 - w / 2, -d / 2, 0.0), (w / 2 - 0.01, edge, h - TOP)
    legs(s, wood, low, high, leg_thick, int(rng.integers(0, 3)))
    bottom = min(at[2] for _, at, _ in drawers)
    for x in (0.01 + leg_thick / 2 - w / 2, w / 2 - 0.01 - leg_thick / 2):
        s.box(
            wood,
            (x, (edge - d / 2) / 2, (bottom + h - TOP) / 2),
            (0.4 * leg_thick, d - 2 * leg_thick, h - TOP - bottom),
        )
    between(s, wood, (leg_thick - w / 2, -d / 2, bottom), (w / 2 - leg_thick, 0.008 - d / 2, h - TOP))
    if rng.random() < 0.5 and bottom > 0.35:
        _lower_shelf(s, wood, leg_thick, rng.uniform(0.1, 0.16))


def desk(s: Shape, rng: np.random.Generator) -> None:
    """A desk with a pedestal of drawers on one side; one taller than a desk carries shelves at its back."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    high = min(h, DESK_HEIGHT)
    _top(s, s.material("top", wood), TOP, False, high)
    edge, side = d / 2 - 0.01, 1 if s.options.get("side", 1) > 0 else -1
    kind, thick = option(s, "legs", rng, 4), rng.uniform(0.045, 0.06)
    pedestal = bool(cells("Desk", s.size, s.options))
    metal = s.material("metal", pick(rng, METALS)) if kind == 0 else wood
    for x in (-side,) if pedestal else (-1, 1):
        for y in (-1, 1):
            at = (x * (w / 2 - 0.02 - thick / 2), y * (d / 2 - 0.02 - thick / 2), 0)
            leg(s, metal, at, high - TOP, thick, kind)
    span = pedestal_width(w)
    if pedestal:
        middle = side * (w / 2 - 0.015 - span / 2)
        edge = d / 2 - 0.01 - FLUSH - REACH
        back = 0.01 - d / 2
        low, upper = (middle - span / 2, back, 0.06), (middle + span / 2, edge, high - TOP)
        hollow(s, wood, low, upper, BOARD, ("front", "top", "back"))
        between(s, wood, (low[0] + BOARD, back, 0.06 + BOARD), (upper[0] - BOARD, back + 0.006, high - TOP))
        between(s, wood, (low[0] + 0.02, back, 0), (upper[0] - 0.02, edge - 0.03, 0.06))
    # A panel at the knees' far end stiffens the frame and hides the wall.
    start = -side * (w / 2 - 0.03)
    end = side * (w / 2 - 0.015 - span) if pedestal else side * (w / 2 - 0.03)
    a, b = sorted((start, end))
    between(s, wood, (a, 0.03 - d / 2, 0.45 * high), (b, 0.045 - d / 2, high - TOP))
    if h > DESK_HEIGHT + 0.2:
        _hutch(s, wood, high)


def _hutch(s: Shape, wood: str, start: float) -> None:
    """Shelves that rise from the back of a desk."""
    w, d, h = s.size
    back, front = -d / 2, -d / 2 + min(0.28, 0.45 * d)
    hollow(s, wood, (-w / 2, back, start), (w / 2, front, h), BOARD, ("front", "bottom"))
    for z in np.linspace(start, h, max(2, round((h - start) / 0.32) + 1))[1:-1]:
        between(s, wood, (BOARD - w / 2, back + BOARD, z - BOARD), (w / 2 - BOARD, front - 0.01, z))
        s.support((0, (back + front) / 2, z), (w - 0.06, front - back - 0.04), 0.25)


def _table(s: Shape, rng: np.random.Generator, thick: float, leg_thick: float, apron: float) -> int:
    """A top and its support, of any kind; returns the kind."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    top = s.material("top", wood if rng.random() < 0.7 else pick(rng, WOODS + PAINTS[:2] + ("marble#e8e6e2",)))
    roundish = 0.75 < w / d < 1.35 and rng.random() < 0.45
    round_top = bool(s.options.get("round", roundish))
    kind = option(s, "legs", rng, KINDS)
    if kind == 5 and (round_top or w < 0.7):
        kind = 4
    if kind == 4 and max(w, d) > 1.4 * min(w, d):
        kind = 2
    _top(s, top, thick, round_top)
    under = h - thick
    if kind == 4:
        _pedestal(s, wood, under, rng)
    elif kind == 5:
        _trestles(s, wood, under, leg_thick)
    elif round_top:
        x, y = 0.36 * w, 0.36 * d
        legs(s, wood, (-x, -y, 0), (x, y, under), leg_thick, kind)
        if apron:
            _aprons(s, wood, x - leg_thick / 2, y - leg_thick / 2, under, apron)
    else:
        inset = rng.uniform(0.01, 0.03)
        x, y = w / 2 - inset, d / 2 - inset
        legs(s, wood, (-x, -y, 0), (x, y, under), leg_thick, kind)
        if apron:
            _aprons(s, wood, x - leg_thick / 2, y - leg_thick / 2, under, apron)
    return kind


def _top(s: Shape, material: str, thick: float, round_top: bool, height: float | None = None) -> None:
    """A rectangular or an oval top with its support."""
    w, d, _ = s.size
    height = s.size[2] if height is None else height
    low = height - thick
    if not round_top:
        slab(s, material, (0, 0, low), (w, d, thick), min(0.008, 0.4 * thick))
        s.support((0, 0, height), (w - 0.04, d - 0.04), 0.8)
        return
    r = w / 2
    s.lathe(material, [(0, low), (r - 0.01, low), (r, low + 0.4 * thick), (r - 0.004, height), (0, height)],
            segments=28, scale=(1.0, d / w))  # fmt: skip
    s.solid_box((0, 0, height - thick / 2), (0.71 * w, 0.71 * d, thick))
    s.solid_box((0, 0, height - thick / 2), (0.92 * w, 0.38 * d, thick))
    s.solid_box((0, 0, height - thick / 2), (0.38 * w, 0.92 * d, thick))
    s.support((0, 0, height), (0.7 * w, 0.7 * d), 0.8)


def _aprons(s: Shape, wood: str, x: float, y: float, under: float, apron: float) -> None:
    """Boards between the legs' upper ends."""
    z = under - apron / 2
    for sign in (-1, 1):
        s.box(wood, (0, sign * y, z), (2 * x, 0.02, apron), solid=False)
        s.box(wood, (sign * x, 0, z), (0.02, 2 * y, apron), solid=False)
    s.solid_box((0, 0, z), (2 * x, 2 * y, apron))


def _pedestal(s: Shape, wood: str, under: float, rng: np.random.Generator) -> None:
    """One turned column on a broad foot."""
    w, d, _ = s.size
    r, foot = rng.uniform(0.07, 0.1) * min(w, d), rng.uniform(0.5, 0.65) * min(w, d) / 2
    profile = [(0, 0), (foot, 0), (foot, 0.02), (1.3 * r, 0.12 * under), (0.6 * r, 0.2 * under), (r, 0.5 * under)]
    profile += [(0.7 * r, 0.85 * under), (2.2 * r, under)]
    s.lathe(wood, profile, segments=14, smooth=60)
    s.solid_box((0, 0, under / 2), (1.5 * r, 1.5 * r, under))
    s.solid_box((0, 0, 0.015), (1.4 * foot, 1.4 * foot, 0.03))


def _trestles(s: Shape, wood: str, under: float, thick: float) -> None:
    """Two upright frames and a beam between them."""
    w, d, _ = s.size
    for x in (-0.36 * w, 0.36 * w):
        s.box(wood, (x, 0, 0.03), (thick, 0.85 * d, 0.06))
        s.box(wood, (x, 0, under - 0.025), (thick, 0.8 * d, 0.05))
        for y in (-0.16 * d, 0.16 * d):
            s.box(wood, (x, y, under / 2), (0.8 * thick, thick, under - 0.1), without=("top", "bottom"))
    s.box(wood, (0, 0, 0.35 * under), (0.72 * w, 0.6 * thick, 0.09))


def _lower_shelf(s: Shape, wood: str, leg_thick: float, height: float) -> None:
    """A board between the legs, near the floor."""
    w, d, h = s.size
    slab(s, wood, (0, 0, height), (w - leg_thick, d - leg_thick - 0.03, 0.016), 0.003)
    s.support((0, 0, height + 0.016), (w - 3 * leg_thick, d - 3 * leg_thick - 0.03), h - height - 0.12)


TYPES = {
    "DiningTable": ObjectType(dining_table, roles=("wood", "metal")),
    "CoffeeTable": ObjectType(coffee_table, roles=CARPENTRY),
    "SideTable": ObjectType(side_table, roles=CARPENTRY),
    "Desk": ObjectType(desk, roles=CARPENTRY),
}
