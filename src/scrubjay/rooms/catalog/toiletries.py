"""The smaller things of a bathroom: paper, towels and what they hang on, soap, candles, and things to clean with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scrubjay.rooms.catalog.mesh import lathe, rotation
from scrubjay.rooms.catalog.shape import ObjectType, Shape
from scrubjay.rooms.catalog.skins import (
    BRIGHTS,
    CHROME,
    DARK,
    FITTINGS,
    FORWARD,
    SIDEWAYS,
    TOWELS,
    WHITES,
    pick_tint,
    sheet,
)


def toilet_paper(s: Shape, rng: np.random.Generator) -> None:
    """A roll of paper, standing, or hanging where its box is round from the side."""
    w, d, h = s.size
    paper = pick_tint(rng, ("fbfaf6", "f4efe6", "f3e6e4"), "paper")
    hanging = abs(d - h) < abs(w - d)
    length, width, depth = (w, h, d) if hanging else (h, w, d)
    turn = SIDEWAYS if hanging else np.eye(3)
    at = (-w / 2, 0, h / 2) if hanging else (0, 0, 0)
    hole = rng.uniform(0.34, 0.46)
    r, scale = width / 2, (1, depth / width)
    s.lathe(paper, [(hole * r, 0), (r, 0), (r, length), (hole * r, length)], at, turn, 16, scale)
    s.lathe("paper#b89a72", [(hole * r, length), (hole * r, 0)], at, turn, 10, scale)
    if hanging:
        s.box(paper, (0, d / 2 - 0.0005, h * 0.25), (w * 0.98, 0.001, h * 0.5), solid=False)
        s.solid_box((0, 0, h / 2), (w, d * 0.9, h * 0.9))
    else:
        s.solid_box((0, 0, h / 2), (w * 0.9, d * 0.9, h))


def toilet_paper_hanger(s: Shape, rng: np.random.Generator) -> None:
    """A bar before the wall between two arms."""
    w, d, h = s.size
    metal = s.material("metal", pick_tint(rng, FITTINGS, "metal"))
    r = min(h, d) * 0.13
    plate = min(h, w * 0.3) * rng.uniform(0.8, 1.0) / 2
    z = h / 2
    for side in (-1, 1):
        x = side * (w / 2 - plate)
        s.cylinder(metal, (x, -d / 2, z), plate, d * 0.1, FORWARD, 10)
        s.tube(metal, [(x, -d / 2, z), (x, d / 2 - r, z)], r, 6)
    s.tube(metal, [(-w / 2, d / 2 - r * 1.5, z), (w / 2, d / 2 - r * 1.5, z)], r * 1.4, 8)
    s.solid_box((0, 0, z), (w, d, h * 0.5))


def _hung_towel(s: Shape, rng: np.random.Generator, columns: int) -> None:
    """A towel folded over a bar: its front longer than its back, with stripes near the hem."""
    w, d, h = s.size
    fabric = s.material("fabric", pick_tint(rng, TOWELS, "carpet"))
    stripe = pick_tint(rng, TOWELS, "carpet")
    sag = min(0.008, d * 0.18)
    back = h * rng.uniform(0.12, 0.35)
    front_y, back_y = d / 2 - sag, -d / 2 + sag + 0.004
    rows = [(front_y, z) for z in (0, h * 0.06, h * 0.11, h * 0.17, h * 0.2, h * 0.6, h - d * 0.4)]
    rows += [(d * 0.2, h - 0.004), (-d * 0.2, h - 0.004), (back_y, h - d * 0.4), (back_y, back)]
    x = np.linspace(-w / 2, w / 2, columns)
    phase, waves = rng.uniform(0, 6.3), rng.uniform(1.5, 3.0)
    grid = np.zeros((len(rows), columns, 3))
    for i, (y, z) in enumerate(rows):
        free = max(0.0, 1 - z / h) * sag * 1.2
        grid[i] = np.column_stack(
            [x, np.clip(y + free * np.sin(x / w * 6.3 * waves + phase), -d / 2, d / 2), np.full(columns, z)]
        )
    grid = grid[::-1]
    last = len(rows) - 1
    cuts = [
        (0, last - 4, fabric),
        (last - 4, last - 3, stripe),
        (last - 3, last - 2, fabric),
        (last - 2, last - 1, stripe),
    ]
    for start, end, material in [*cuts, (last - 1, last, fabric)]:
        s.surface(material, sheet(grid[start : end + 1]))
    s.solid_box((0, 0, h / 2), (w, d, h))


def towel(s: Shape, rng: np.random.Generator) -> None:
    """A bath towel over its bar."""
    _hung_towel(s, rng, 9)


def hand_towel(s: Shape, rng: np.random.Generator) -> None:
    """A small towel through its ring."""
    _hung_towel(s, rng, 6)


def towel_holder(s: Shape, rng: np.random.Generator) -> None:
    """A long bar on two posts at the wall."""
    w, d, h = s.size
    metal = s.material("metal", pick_tint(rng, FITTINGS, "metal"))
    r = h * rng.uniform(0.2, 0.32)
    square = rng.random() < 0.5
    for side in (-1, 1):
        x = side * (w / 2 - h / 2)
        if square:
            s.box(metal, (x, -d / 2 + d * 0.06, h / 2), (h, d * 0.12, h), solid=False)
        else:
            s.cylinder(metal, (x, -d / 2, h / 2), h / 2, d * 0.12, FORWARD, 10)
        s.tube(metal, [(x, -d / 2, h / 2), (x, d / 2 - r, h / 2)], r * 0.9, 6)
    s.tube(metal, [(-w / 2, d / 2 - r * 1.1, h / 2), (w / 2, d / 2 - r * 1.1, h / 2)], r, 8)
    s.solid_box((0, d / 2 - r, h / 2), (w, 2 * r, 2 * r))
    for side in (-1, 1):
        s.solid_box((side * (w / 2 - h / 2), 0, h / 2), (h, d, h))


def hand_towel_holder(s: Shape, rng: np.random.Generator) -> None:
    """A ring that hangs from a knob at the wall."""
    w, d, h = s.size
    metal = s.material("metal", pick_tint(rng, FITTINGS, "metal"))
    r = min(0.007, d * 0.15)
    knob = min(w * 0.16, h * 0.14) * rng.uniform(0.85, 1.0)
    s.lathe(metal, [(knob, 0), (knob, d * 0.15), (knob * 0.5, d * 0.3), (knob * 0.6, d * 0.9), (0, d)],
            (0, -d / 2, h - knob), FORWARD, 10)  # fmt: skip
    angles = np.linspace(0, 2 * np.pi, 17) + np.pi / 2
    power = rng.uniform(0.6, 1.0)
    bent = [np.sign(f(angles)) * np.abs(f(angles)) ** power for f in (np.cos, np.sin)]
    middle = (h - knob) / 2
    ring = np.column_stack([bent[0] * (w / 2 - r), np.full(17, d * 0.15), middle + bent[1] * (middle - r)])
    s.tube(metal, ring, r, 6)
    s.solid_box((0, 0, h / 2), (w, d, h))


def soap_bar(s: Shape, rng: np.random.Generator) -> None:
    """A bar of soap with a stamp."""
    w, d, h = s.size
    colors = ("f2e3b8", "e9b7bd", "bcd9c0", "b9d2e6", "f4f0e6", "d6bfe0", "e8c27c")
    soap = pick_tint(rng, colors)
    s.ellipsoid(soap, (0, 0, h / 2), (w / 2, d / 2, h / 2), segments=16, rings=6, power=rng.uniform(0.3, 0.7))
    stamp = pick_tint(rng, colors)
    s.cylinder(stamp, (0, 0, h * 0.9), min(w, d) * rng.uniform(0.18, 0.28), h * 0.1, segments=10)
    s.solid_box((0, 0, h / 2), (w * 0.9, d * 0.9, h))


def plunger(s: Shape, rng: np.random.Generator) -> None:
    """A red rubber cup on a turned wooden stick."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    rubber = pick_tint(rng, ("e02a20", "d8261f", "e5352a"))
    wood = s.material("wood", pick_tint(rng, ("e3b575", "d6a05e", "ebc890"), "wood"))
    cup = min(h * 0.24, r * 1.5)
    s.lathe(rubber, [
        (0, cup * 0.62), (0.55 * r, cup * 0.5), (0.84 * r, 0.004), (0.95 * r, 0), (r, cup * 0.04), (r, cup * 0.12),
        (0.88 * r, cup * 0.18), (0.88 * r, cup * 0.32), (0.8 * r, cup * 0.52), (0.62 * r, cup * 0.7),
        (0.4 * r, cup * 0.8), (0.25 * r, cup * 0.85), (0.25 * r, cup), (0.17 * r, cup * 1.05), (0, cup * 1.05),
    ], scale=scale)  # fmt: skip
    stick, grip = max(0.011, 0.15 * r), rng.uniform(0.86, 0.91)
    s.lathe(wood, [
        (stick, cup), (stick, h * grip), (stick * 1.35, h * 0.93), (stick * 1.4, h * 0.97), (stick * 0.9, h), (0, h),
    ], segments=10)  # fmt: skip
    # Two crossed boxes are as round as boxes get: it rolls over its edge instead of sticking to a corner.
    side = r * 1.46
    for turn in (0, 45):
        s.solid_box((0, 0, cup * 0.25), (side, side * d / w, cup * 0.5), rotation("z", turn))
    s.solid_box((0, 0, cup * 0.7), (r * 1.05, r * 1.05 * d / w, cup * 0.4))
    s.solid_capsule((0, 0, cup * 0.6), (0, 0, h), stick * 1.1)


def scrub_brush(s: Shape, rng: np.random.Generator) -> None:
    """A toilet brush in its pot."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    pot = pick_tint(rng, BRIGHTS) if rng.random() < 0.4 else s.material("ceramic", pick_tint(rng, WHITES))
    handle = pot if rng.random() < 0.4 else s.material("metal", CHROME)
    top = h * rng.uniform(0.26, 0.36)
    waist = rng.uniform(0.75, 0.95)
    s.lathe(pot, [(0.9 * r, 0), (r, 0.01), (waist * r, top * 0.8), (waist * r * 0.94, top), (waist * r * 0.84, top),
                  (waist * r * 0.84, top * 0.7)], scale=scale)  # fmt: skip
    s.ellipsoid(
        "carpet#e9edf0", (0, 0, top * 0.9), (0.66 * waist * r, 0.66 * waist * r, top * 0.3), segments=10, rings=6
    )
    stick = r * 0.13
    s.lathe(
        handle,
        [(stick, top), (stick, h * 0.75), (stick * 1.7, h * 0.8), (stick * 1.9, h * 0.96), (stick, h), (0, h)],
        segments=8,
    )
    s.solid_box((0, 0, top / 2), (w * 0.86, d * 0.86, top))
    s.solid_capsule((0, 0, top * 0.8), (0, 0, h), max(stick * 1.4, 0.01))


def cloth(s: Shape, rng: np.random.Generator) -> None:
    """A wiping cloth, thrown down in folds."""
    w, d, h = s.size
    fabric = pick_tint(rng, TOWELS, "carpet" if rng.random() < 0.5 else f"printed-{rng.integers(32)}")
    n = 10
    u = np.linspace(-1, 1, n)
    y, x = np.meshgrid(u, u, indexing="ij")
    angle = rng.uniform(0, 6.3, 3)
    folds = sum(np.sin(k * (x * np.cos(t) + y * np.sin(t)) + t * 3) for k, t in zip((2.5, 4, 6), angle, strict=True))
    folds = (folds - folds.min()) / np.ptp(folds)
    edge = np.clip(1.25 - np.maximum(abs(x), abs(y)) ** 3 * 1.2, 0.05, 1)
    pinch = 1 - 0.12 * folds
    points = np.stack([x * pinch * w / 2, y * pinch * d / 2, 0.004 + folds * edge * (h - 0.004)], 2)
    s.surface(fabric, sheet(points[::-1], 0.003))
    s.solid_box((0, 0, h * 0.3), (w * 0.9, d * 0.9, h * 0.6))


def spray_bottle(s: Shape, rng: np.random.Generator) -> None:
    """A bottle of cleaner with a label and a trigger head; it sprays to the front."""
    w, d, h = s.size
    bottle, head = pick_tint(rng, BRIGHTS), pick_tint(rng, ("f2f2f0", "d33f34", "2f5fa8", "e8b021", "3a3a3d"))
    depth = d * 0.7
    y = -d / 2 + depth / 2
    r, scale = depth / 2, (w / depth, 1)
    shoulder = h * rng.uniform(0.5, 0.6)
    belly = [
        (0.92 * r, 0),
        (r, 0.008),
        (r, shoulder * 0.8),
        (0.8 * r, shoulder),
        (0.34 * r, h * 0.7),
        (0.3 * r, h * 0.78),
    ]
    s.lathe(bottle, belly, (0, y, 0), segments=14, scale=scale)
    label = lathe([(r * 1.015, shoulder * 0.15), (r * 1.015, shoulder * 0.72)], 14, scale)
    # The label goes round twice: it shows from both sides.
    label = replace(label, uv=(label.uv - label.uv.min(0)) / np.ptp(label.uv, axis=0) * [2, 1])
    s.surface(f"label-{rng.integers(32)}#ffffff", label, (0, y, 0))
    grip = min(w * 0.6, 0.032)
    s.cylinder(head, (0, y, h * 0.74), grip * 0.55, h * 0.09, segments=10)
    back = y - min(depth * 0.3, 0.03)
    s.box(head, (0, (back + d / 2) / 2 - d * 0.04, h * 0.93), (grip, d / 2 - back - d * 0.08, h * 0.14), solid=False)
    s.cylinder(DARK, (0, d / 2 - d * 0.08, h * 0.93), grip * 0.3, d * 0.08, FORWARD, 8)
    s.box(head, (0, y + depth * 0.45, h * 0.8), (grip * 0.6, d * 0.08, h * 0.2), rotation("x", -14), solid=False)
    s.solid_box((0, y, h * 0.35), (w * 0.9, depth * 0.9, h * 0.7))
    s.solid_box((0, 0, h * 0.85), (max(grip, 0.02), d, h * 0.3))


def candle(s: Shape, rng: np.random.Generator) -> None:
    """A pillar, a taper in a stick, or a candle in a jar; some are lit."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    wax = pick_tint(rng, ("f4ecd8", "e8d9b0", "c0392f", "e9c7c2", "b9c9a8", "d9d3e6"))
    kind = rng.integers(3)
    lit = rng.random() < 0.6
    flame = h * (rng.uniform(0.13, 0.18) if lit else rng.uniform(0.05, 0.08))
    top = h - flame
    melted = top - min(0.25 * r, 0.006)
    if kind == 0 or h < 1.3 * w:
        profile = [(0.97 * r, 0), (r, 0.004), (0.97 * r, top), (0.8 * r, top), (0.3 * r, melted), (0, melted)]
        s.lathe(wax, profile, segments=14, scale=scale)
    elif kind == 1:
        thin = min(0.42 * r, 0.014)
        s.lathe(s.material("metal", pick_tint(rng, FITTINGS, "metal")), [
            (0, 0), (r, 0), (r, 0.006), (0.35 * r, h * 0.08), (0.25 * r, h * 0.2), (thin * 1.5, h * 0.3),
            (thin * 1.4, h * 0.36), (0, h * 0.36),
        ], segments=12, scale=scale)  # fmt: skip
        s.lathe(wax, [(thin, h * 0.36), (thin * 0.8, top - 0.004), (0, top)], segments=10)
    else:
        glass = pick_tint(rng, ("cfe3e2", "d8b98a", "a9c7d8", "e3d0d8"))
        jar = [(0.9 * r, 0), (r, 0.008), (r, top), (0.9 * r, top), (0.9 * r, top * 0.7)]
        s.lathe(glass, jar, segments=14, scale=scale)
        s.lathe(wax, [(0.9 * r, top * 0.8), (0, top * 0.8)], segments=14, scale=scale)
    foot = top * 0.8 if kind == 2 and h >= 1.3 * w else top - 0.006
    s.tube(DARK, [(0, 0, foot), (0, 0, top + flame * 0.5)], max(0.001, 0.03 * r), 4)
    if lit:
        drop = [(0, 0.15), (0.2, 0.3), (0.26, 0.5), (0.14, 0.78), (0, 1)]
        s.lathe("shade#ffc25a", [(a * flame, top + b * flame) for a, b in drop], segments=8, smooth=80)
    s.solid_box((0, 0, h / 2), (w * 0.9, d * 0.9, h))


TYPES = {
    "ToiletPaper": ObjectType(toilet_paper),
    "ToiletPaperHanger": ObjectType(toilet_paper_hanger),
    "Towel": ObjectType(towel),
    "HandTowel": ObjectType(hand_towel),
    "TowelHolder": ObjectType(towel_holder),
    "HandTowelHolder": ObjectType(hand_towel_holder),
    "SoapBar": ObjectType(soap_bar),
    "Plunger": ObjectType(plunger),
    "ScrubBrush": ObjectType(scrub_brush),
    "Cloth": ObjectType(cloth),
    "SprayBottle": ObjectType(spray_bottle),
    "Candle": ObjectType(candle, round=True),
}
