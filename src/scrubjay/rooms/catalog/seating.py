"""Things to sit and lie on: chairs, sofas, stools, beds, pillows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from scrubjay.rooms.catalog.joinery import (
    FABRICS,
    FORWARD,
    METALS,
    PAINTS,
    UPRIGHT,
    WOODS,
    between,
    cushion,
    leg,
    legs,
    molded_panel,
    option,
    pick,
    slab,
)
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.catalog.shape import ObjectType, Shape

SOFT = FABRICS + ("leather#6b4630", "leather#2f2c2b", "leather#a9744a", "woven#3f5c66", "woven#a33f3a", "woven#c7a24a")
BEDDING = tuple(f"printed-{i}#{tint}" for i, tint in enumerate(("e8eef2", "d9b8a8", "b8c8d8", "e6dcc4", "a8bfae")))


def chair(s: Shape, rng: np.random.Generator) -> None:
    """A chair with a back of slats, rungs or cloth; with `swivel`, an office chair on wheels."""
    w, d, h = s.size
    wood, cloth = s.material("wood", pick(rng, WOODS + PAINTS[:2])), s.material("fabric", pick(rng, SOFT))
    seat = float(np.clip(0.5 * h, 0.25, 0.48))
    thick = rng.uniform(0.032, 0.045)
    if s.options.get("swivel", 0) > 0:
        _swivel_chair(s, rng, cloth, seat)
        return
    front_legs = int(rng.integers(0, 4))
    for x in (thick / 2 - w / 2, w / 2 - thick / 2):
        leg(s, wood, (x * 0.94, d / 2 - thick / 2 - 0.01, 0), seat - 0.02, thick, front_legs)
        s.box(wood, (x, thick / 2 - d / 2, h / 2), (thick, thick, h))
    padded = option(s, "padded", rng, 2)
    slab(s, wood, (0, 0, seat - 0.045), (w - 0.01, d - 0.01, 0.03 if padded else 0.045), 0.01)
    if padded:
        s.surface(cloth, cushion((w - 0.03, d - 0.06, 0.05), 0.5, 5), (0, 0.02, seat - 0.005))
    s.support((0, 0.02, seat), (w - 0.06, d - 0.1), 0.4)
    _chair_back(s, rng, wood, cloth if padded else wood, seat, thick)


def _chair_back(s: Shape, rng: np.random.Generator, wood: str, cloth: str, seat: float, thick: float) -> None:
    """What fills the frame between a chair's rear posts."""
    w, d, h = s.size
    y, inner, kind = thick / 2 - d / 2, w - 2 * thick, option(s, "back", rng, 3)
    s.box(wood, (0, y, h - 0.035), (inner, 0.7 * thick, 0.07), solid=False)
    low = seat + 0.1
    if kind == 0:
        s.box(wood, (0, y, low), (inner, 0.6 * thick, 0.03), solid=False)
        number = int(rng.integers(3, 6))
        for x in np.linspace(-0.36, 0.36, number) * inner:
            s.box(wood, (x, y, (low + h - 0.07) / 2), (0.45 * inner / number, 0.014, h - 0.07 - low), solid=False)
    elif kind == 1:
        for z in np.linspace(low, h - 0.17, int(rng.integers(2, 4))):
            s.box(wood, (0, y, z), (inner, 0.016, rng.uniform(0.04, 0.06)), solid=False)
    else:
        s.box(wood, (0, y, low), (inner, 0.6 * thick, 0.03), solid=False)
        s.box(cloth, (0, y, (low + h) / 2 - 0.03), (inner, 0.022, h - low - 0.06), solid=False)
    s.solid_box((0, y, (seat + h) / 2), (w, 0.7 * thick, h - seat))


def _swivel_chair(s: Shape, rng: np.random.Generator, cloth: str, seat: float) -> None:
    """An office chair: five feet on castors, a column, a padded seat and back."""
    w, d, h = s.size
    metal = s.material("metal", pick(rng, ("metal#3a3b3d", "metal#b9bcbf")))
    reach = 0.46 * min(w, d)
    for angle in range(18, 378, 72):
        out = rotation("z", angle) @ np.array((reach, 0, 0))
        s.tube(metal, [(0, 0, 0.09), (out[0] / 2, out[1] / 2, 0.08), (out[0], out[1], 0.05)], 0.016, 5)
        s.ellipsoid(metal, (0.95 * out[0], 0.95 * out[1], 0.025), (0.025, 0.025, 0.025), segments=6, rings=4)
    s.solid_box((0, 0, 0.045), (1.4 * reach, 1.4 * reach, 0.09))
    s.lathe(metal, [(0.03, 0.06), (0.03, 0.5 * seat), (0.02, 0.5 * seat), (0.02, seat - 0.07)], segments=8)
    s.solid_capsule((0, 0, 0.05), (0, 0, seat - 0.02), 0.03)
    s.surface(cloth, cushion((0.86 * w, 0.8 * d, 0.1), 0.4, 5), (0, 0.05 * d, seat - 0.04))
    s.solid_box((0, 0.05 * d, seat - 0.04), (0.84 * w, 0.78 * d, 0.07))
    tall = h - seat - 0.08
    s.surface(cloth, cushion((0.8 * w, tall, 0.08), 0.4, 5), (0, 0.05 - d / 2, h - tall / 2), UPRIGHT)
    s.solid_box((0, 0.05 - d / 2, h - tall / 2), (0.76 * w, 0.06, tall))
    spine = [(0, 0, seat - 0.08), (0, 0.02 - d / 2, seat - 0.06), (0, 0.02 - d / 2, h - 0.6 * tall)]
    s.tube(metal, spine, 0.018, 6)
    s.support((0, 0.05 * d, seat + 0.01), (0.7 * w, 0.6 * d), 0.4)


def arm_chair(s: Shape, rng: np.random.Generator) -> None:
    """A padded chair with arms."""
    _couch(s, rng, 1)


def sofa(s: Shape, rng: np.random.Generator) -> None:
    """A padded bench with a back, arms and a cushion for each seat."""
    _couch(s, rng, int(s.options.get("seats", np.clip(round((s.size[0] - 0.35) / 0.72), 2, 3))))


def _couch(s: Shape, rng: np.random.Generator, seats: int) -> None:
    """Base, back at the wall's side, two arms, and soft seats, up to the height `seat`, and backs."""
    w, d, h = s.size
    cloth, wood = s.material("fabric", pick(rng, SOFT)), s.material("wood", pick(rng, WOODS))
    pillow = s.material("cushion", cloth)
    seat, arm = s.options.get("seat", float(np.clip(0.46 * h, 0.25, 0.46))), rng.uniform(0.1, 0.2) * min(1.0, w)
    arm_top = seat + rng.uniform(0.4, 0.7) * 0.5 * (h - seat)
    back, foot, thick = rng.uniform(0.14, 0.2) * d + 0.02, rng.uniform(0.05, 0.12), 0.36 * seat
    legs(s, wood, (0.02 - w / 2, 0.02 - d / 2, 0), (w / 2 - 0.02, d / 2 - 0.02, foot), 0.05, int(rng.choice((1, 3))))
    slab(s, cloth, (0, 0, foot), (w - 2 * arm + 0.02, d - 0.03, seat - thick - foot), 0.02)
    bevel = rng.uniform(0.03, 0.06)
    slab(s, cloth, (0, (back - d) / 2, foot), (w - 2 * arm + 0.02, back, h - foot - 0.03), bevel)
    rolled = option(s, "rolled", rng, 2) and arm > 0.13
    for side in (-1, 1):
        at = (side * (w - arm) / 2, 0, foot)
        if rolled:
            s.surface(cloth, cushion((arm, d, arm), 0.35, 3, False), (at[0], 0, arm_top - arm / 2))
        slab(
            s,
            cloth,
            at,
            (arm * (0.86 if rolled else 1.0), d - 0.01, arm_top - foot - (arm / 2 if rolled else 0)),
            0.5 * bevel,
        )
    span, deep = (w - 2 * arm) / seats, d - back
    for i in range(seats):
        x = (i + 0.5) * span - (w - 2 * arm) / 2
        s.surface(pillow, cushion((span - 0.004, deep, thick + 0.02), 0.55, 3, False), (x, back / 2, seat - thick / 2))
        tall = h - seat
        turn = rotation("x", 8) @ FORWARD
        s.surface(
            pillow,
            cushion((span - 0.01, tall, 0.17), 0.3, 3, False),
            (x, back - d / 2 + 0.06, seat + 0.47 * tall),
            turn,
        )
    s.solid_box((0, back / 2, seat - thick / 2), (w - 2 * arm, deep - 0.02, thick))
    s.solid_box((0, back - d / 2 + 0.06, (seat + h) / 2 - 0.03), (w - 2 * arm, 0.12, h - seat - 0.06))
    s.support((0, back / 2 + 0.05, seat + 0.01), (w - 2 * arm - 0.06, deep - 0.22), 0.5)


def stool(s: Shape, rng: np.random.Generator) -> None:
    """A seat on four spreading legs with a ring between them, or on a column."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS + PAINTS[:2]))
    metal = s.material("metal", pick(rng, METALS))
    seat = s.material("fabric", pick(rng, SOFT)) if option(s, "padded", rng, 2) else wood
    thick, r, scale = rng.uniform(0.035, 0.07), w / 2, (1.0, d / w)
    low, size = h - thick, (rng.uniform(0.78, 0.92), 0.5 * thick)
    edge = size[0] * r
    profile = [
        (0, low),
        (edge - 0.01, low),
        (edge, low + 0.4 * thick),
        (edge - 0.01, h - 0.15 * thick),
        (0.6 * edge, h),
        (0, h),
    ]
    s.lathe(seat, profile, segments=18, scale=scale, smooth=60)
    s.solid_box((0, 0, low + thick / 2), (1.5 * edge, 1.5 * edge * d / w, thick))
    s.support((0, 0, h), (1.2 * edge, 1.2 * edge * d / w), 0.4)
    if option(s, "column", rng, 3) == 2:
        s.lathe(metal, [(0, 0), (0.8 * r, 0), (0.75 * r, 0.02), (0.025, 0.04), (0.025, low)], segments=16, scale=scale)
        s.solid_box((0, 0, 0.015), (1.1 * r, 1.1 * r * d / w, 0.03))
        s.solid_box((0, 0, low / 2), (0.05, 0.05, low))
        return
    bar = rng.uniform(0.012, 0.018)
    for x in (-1, 1):
        for y in (-1, 1):
            foot = (x * (0.7 * r), y * (0.7 * r * d / w), 0)
            top = (0.6 * foot[0], 0.6 * foot[1], low)
            s.tube(wood, [foot, top], bar, 6)
            s.solid_capsule(foot, top, bar)
    at, ring = 0.35 * low, 0.7 * (1 - 0.4 * 0.35) * r
    around = [(ring * x, ring * y * d / w, at) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]
    for a, b in pairwise(around):
        s.tube(metal if h > 0.6 else wood, [a, b], 0.7 * bar, 5)


def ottoman(s: Shape, rng: np.random.Generator) -> None:
    """A padded block on short feet."""
    w, d, h = s.size
    cloth, wood = s.material("fabric", pick(rng, SOFT)), s.material("wood", pick(rng, WOODS))
    foot, pad = rng.uniform(0.12, 0.25) * h, rng.uniform(0.3, 0.4) * h
    legs(s, wood, (0.03 - w / 2, 0.03 - d / 2, 0), (w / 2 - 0.03, d / 2 - 0.03, foot), 0.05, int(rng.choice((1, 3))))
    slab(s, cloth, (0, 0, foot), (w - 0.02, d - 0.02, h - pad - foot), 0.01)
    s.surface(cloth, cushion((w, d, pad), 0.5, 6), (0, 0, h - pad / 2))
    s.solid_box((0, 0, h - 0.6 * pad), (0.96 * w, 0.96 * d, 0.8 * pad))
    s.support((0, 0, h - 0.1 * pad), (0.75 * w, 0.75 * d), 0.4)


def footstool(s: Shape, rng: np.random.Generator) -> None:
    """A small step of wood, or a round padded one."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS))
    if option(s, "padded", rng, 2):
        cloth, r = s.material("fabric", pick(rng, SOFT)), w / 2
        profile = [(0, 0.3 * h), (0.9 * r, 0.3 * h), (r, 0.5 * h), (r, 0.8 * h), (0.9 * r, 0.95 * h), (0, h)]
        s.lathe(cloth, profile, segments=16, scale=(1.0, d / w), smooth=60)
        s.solid_box((0, 0, 0.65 * h), (0.75 * w, 0.75 * d, 0.7 * h))
        legs(s, wood, (-0.32 * w, -0.32 * d, 0), (0.32 * w, 0.32 * d, 0.32 * h), 0.035, 3)
    else:
        slab(s, wood, (0, 0, h - 0.03), (w, d, 0.03), 0.008)
        legs(
            s,
            wood,
            (0.01 - w / 2, 0.01 - d / 2, 0),
            (w / 2 - 0.01, d / 2 - 0.01, h - 0.03),
            0.04,
            int(rng.integers(0, 3)),
        )
        s.box(wood, (0, 0, rng.uniform(0.25, 0.5) * h), (w - 0.06, 0.025, 0.03), solid=False)
    s.support((0, 0, h), (0.7 * w, 0.7 * d), 0.4)


def bed(s: Shape, rng: np.random.Generator) -> None:
    """A frame with a headboard at the back, a mattress up to the height `lie`, and a blanket over its lower part."""
    w, d, h = s.size
    wood = s.material("wood", pick(rng, WOODS + PAINTS[:1]))
    blanket, sheet = s.material("fabric", pick(rng, BEDDING)), s.material("sheet", "plain#eeebe4")
    lie = s.options.get("lie", float(np.clip(0.6 * h, 0.3, 0.58)))
    head, side = rng.uniform(0.05, 0.08), rng.uniform(0.02, 0.04)
    frame, mattress = 0.5 * lie, 0.5 * lie - 0.02
    legs(s, wood, (-w / 2, head - d / 2, 0), (w / 2, d / 2, 0.3 * lie), 0.07, int(rng.integers(0, 3)))
    between(s, wood, (-w / 2, head - d / 2, 0.25 * lie), (w / 2, d / 2, frame))
    steps = [(0, 0), (0, head - 0.01), (0.01, head)]
    if option(s, "panel", rng, 2):
        steps += [(0.09, head), (0.1, head - 0.015)]
    s.surface(wood, molded_panel(w, h, steps, back=True), (0, -d / 2, h / 2))
    s.solid_box((0, (head - d) / 2, h / 2), (w, head, h))
    if option(s, "foot", rng, 2):
        s.box(wood, (0, d / 2 - 0.02, 0.5 * lie), (w, 0.04, lie))
    long = d - head - 0.05
    middle = (head - 0.04) / 2
    slab(s, sheet, (0, middle, frame), (w - 2 * side, long, mattress), 0.045)
    covered = rng.uniform(0.6, 0.72) * long
    hang = rng.uniform(0.4, 0.9) * mattress
    steps = [(0, 0), (0, hang - 0.03), (0.04, hang + 0.01)]
    at = (0, middle + (long - covered) / 2 + 0.004, lie - 0.02 - hang + 0.005)
    s.surface(blanket, molded_panel(w - 2 * side + 0.03, covered, steps), at, UPRIGHT)
    fold = (0, middle + long / 2 - covered - 0.06, lie - 0.02)
    s.surface(sheet, molded_panel(w - 2 * side + 0.012, 0.16, [(0, 0), (0, 0.006), (0.008, 0.012)]), fold, UPRIGHT)
    s.support((0, middle, lie - 0.01), (w - 0.2, long - 0.1), 0.5)


def dog_bed(s: Shape, rng: np.random.Generator) -> None:
    """A round cushion with a stuffed rim."""
    w, d, h = s.size
    rim, soft = s.material("fabric", pick(rng, SOFT)), pick(rng, ("woven#e2d9c6", "carpet#cfc4b0", "woven#b9b2a6"))
    r, scale = w / 2, (1.0, d / w)
    low = rng.uniform(0.68, 0.76)
    profile = [(0, 0), (0.9 * r, 0), (r, 0.25 * h), (0.99 * r, 0.65 * h), (0.93 * r, 0.93 * h), (0.87 * r, h)]
    profile += [(0.8 * r, 0.9 * h), (low * r, 0.4 * h)]
    s.lathe(rim, profile, segments=24, scale=scale, smooth=80)
    s.lathe(soft, [(low * r, 0.4 * h), (0.5 * r, 0.5 * h), (0, 0.52 * h)], segments=24, scale=scale, smooth=80)
    s.solid_box((0, 0, 0.25 * h), (0.85 * w, 0.85 * d, 0.5 * h))
    s.support((0, 0, 0.5 * h), (0.45 * w, 0.45 * d), 0.4)


def pillow(s: Shape, rng: np.random.Generator) -> None:
    """A bed pillow or a sofa cushion, lying flat."""
    w, d, h = s.size
    plain = SOFT + ("plain#f0ede6", "plain#dfe6ea")
    cloth = s.material("fabric", pick(rng, plain + BEDDING))
    s.surface(cloth, cushion((w, d, h), rng.uniform(0.0, 0.12), 8), (0, 0, h / 2))
    s.solid_box((0, 0, 0.45 * h), (0.8 * w, 0.8 * d, 0.7 * h))


TYPES = {
    "Chair": ObjectType(chair, roles=("wood", "metal", "fabric")),
    "ArmChair": ObjectType(arm_chair, roles=("fabric", "wood")),
    "Sofa": ObjectType(sofa, roles=("fabric", "wood")),
    "Stool": ObjectType(stool, roles=("wood", "metal", "fabric")),
    "Ottoman": ObjectType(ottoman, roles=("fabric", "wood")),
    "Footstool": ObjectType(footstool),
    "Bed": ObjectType(bed, roles=("fabric", "wood")),
    "DogBed": ObjectType(dog_bed),
    "Pillow": ObjectType(pillow),
}
