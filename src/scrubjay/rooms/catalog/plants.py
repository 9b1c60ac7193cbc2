"""Plants in pots."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.catalog.shape import Shape
from scrubjay.rooms.catalog.skins import BRIGHTS, pick_tint, sheet

POTS = ("b5653f", "c9784f", "e9e4da", "4a4d52", "8fa3ad", "d9c9a8", "6f7f5f", "a8503c")
GREENS = ("4f8a3a", "3f7a3f", "6a9a3f", "2f6a3a", "7aa84f", "5a8f5f")
BARKS = ("6b4a2c", "7d5a38")
GOLDEN = 137.5
"""Degrees from one leaf to the next, which spreads any number of them evenly."""


def house_plant(s: Shape, rng: np.random.Generator) -> None:
    """A plant in a pot: bushy, sword-leaved, arching, a small tree, or a cactus."""
    w, d, h = s.size
    r = min(w, d) / 2
    green = pick_tint(rng, GREENS, "leaf")
    pot = min(h * rng.uniform(0.26, 0.36), r * 1.4)
    _pot(s, rng, r * rng.uniform(0.55, 0.72), pot)
    soil = pot * 0.9
    (_bush, _swords, _grass, _tree, _cactus)[rng.integers(5)](s, rng, green, soil)
    s.solid_capsule((0, 0, soil), (0, 0, h * 0.95), min(r * 0.3, (h - soil) * 0.3))


def _pot(s: Shape, rng: np.random.Generator, radius: float, height: float) -> None:
    """A flower pot filled with soil."""
    glaze = pick_tint(rng, POTS)
    foot, rim = radius * rng.uniform(0.62, 0.85), height * rng.uniform(0.75, 0.88)
    if rng.random() < 0.5:
        outside = [(foot, 0), (radius * 0.93, rim), (radius, rim), (radius, height)]
    else:
        outside = [(foot, 0), (radius, height * 0.5), (radius * 0.9, height)]
    edge = outside[-1][0] * 0.88
    s.lathe(glaze, [*outside, (edge, height), (edge, height * 0.88)], segments=14)
    s.lathe("carpet#4a3526", [(edge, height * 0.89), (0, height * 0.92)], segments=10)
    s.solid_box((0, 0, height / 2), (radius * 1.6, radius * 1.6, height))


def _leaf(s: Shape, green: str, start, turn: np.ndarray, tilt: float, size: tuple[float, float], droop: float) -> None:
    """A pointed leaf of a (length, width), tilted from upright by degrees that grow by `droop` towards its tip.

    It shrinks where it would leave the plant's box.
    """
    length, width = size
    points = np.zeros((3, 4, 3))
    x, z, before = 0.0, 0.0, 0.0
    for i, (along, wide) in enumerate(((0.0, 0.25), (0.3, 1.0), (0.65, 0.8), (1.0, 0.04))):
        angle = np.radians(tilt + droop * along)
        x, z = x + (along - before) * length * np.sin(angle), z + (along - before) * length * np.cos(angle)
        before, half = along, width / 2 * wide
        # The blade is folded along its middle rib.
        points[:, i] = [turn @ (x - half * 0.3, half, z), turn @ (x, 0, z), turn @ (x - half * 0.3, -half, z)]
    start, (w, d, h) = np.asarray(start, float), s.size
    room = np.where(points > 0, (w / 2, d / 2, h) - start, start + (w / 2, d / 2, 0)) / np.maximum(np.abs(points), 1e-9)
    s.surface(green, sheet(points * min(1.0, float(room.min())), width * 0.015), start)


def _bush(s: Shape, rng: np.random.Generator, green: str, soil: float) -> None:
    """Broad leaves, upright in the middle and level outside."""
    tall, count = s.size[2] - soil, 16
    for i in range(count):
        length = tall * rng.uniform(0.8, 1.05) * (1 - 0.2 * i / count)
        tilt = 5 + 65 * i / count + rng.uniform(-5, 8)
        size = (length, length * rng.uniform(0.32, 0.42))
        _leaf(s, green, (0, 0, soil), rotation("z", i * GOLDEN), tilt, size, 24)


def _swords(s: Shape, rng: np.random.Generator, green: str, soil: float) -> None:
    """Stiff upright blades."""
    tall, r = s.size[2] - soil, min(s.size[:2]) / 2
    for i in range(10):
        turn = rotation("z", i * GOLDEN)
        size = (tall * rng.uniform(0.65, 1.05), r * rng.uniform(0.2, 0.3))
        _leaf(s, green, turn @ (r * 0.2, 0, soil), turn, rng.uniform(2, 16), size, 1)


def _grass(s: Shape, rng: np.random.Generator, green: str, soil: float) -> None:
    """Narrow leaves that arch over."""
    tall, r = s.size[2] - soil, min(s.size[:2]) / 2
    for i in range(18):
        size = (tall * rng.uniform(0.8, 1.2), r * 0.2)
        _leaf(s, green, (0, 0, soil), rotation("z", i * GOLDEN), rng.uniform(2, 30), size, rng.uniform(30, 66))


def _tree(s: Shape, rng: np.random.Generator, green: str, soil: float) -> None:
    """A bare stem with leaves round its upper half."""
    h, r, count = s.size[2], min(s.size[:2]) / 2, 18
    crown = soil + (h - soil) * rng.uniform(0.35, 0.45)
    stem = [(0, 0, soil), (r * 0.06, 0, (soil + crown) / 2), (0, 0, crown + (h - soil) * 0.3)]
    s.tube(pick_tint(rng, BARKS, "wood"), stem, r * 0.06, 6)
    for i in range(count):
        up = crown + (h - crown) * 0.75 * i / count
        length = r * rng.uniform(0.8, 1.1) * (1 - 0.3 * i / count)
        tilt = rng.uniform(40, 75) * (1 - 0.5 * i / count)
        _leaf(s, green, (0, 0, up), rotation("z", i * GOLDEN), tilt, (length, length * 0.5), 30)


def _cactus(s: Shape, rng: np.random.Generator, green: str, soil: float) -> None:
    """A ribbed column with two arms and a flower."""
    w, d, h = s.size
    r, tall = min(w, d) / 2, h - soil
    stem = min(r * rng.uniform(0.3, 0.38), tall * 0.22)
    top = h - stem * 0.2
    column = [(0.85, soil), (1.0, soil + tall * 0.3), (0.9, top - stem * 0.6), (0.5, top - stem * 0.1), (0, top)]
    s.lathe(green, [(stem * wide, z) for wide, z in column], segments=10, smooth=20)
    for side, low in zip((-1, 1), rng.uniform(0.25, 0.5, 2), strict=True):
        z = soil + tall * low
        out = side * (r * 0.72 - stem * 0.3)
        end = min(z + tall * rng.uniform(0.3, 0.42), h - stem)
        s.tube(green, [(0, 0, z), (out * 0.8, 0, z), (out, 0, z + stem * 0.5), (out, 0, end)], stem * 0.42, 7)
        s.ellipsoid(green, (out, 0, end), (stem * 0.42,) * 3, segments=7, rings=4)
    flower = (stem * 0.3, stem * 0.3, stem * 0.2)
    s.ellipsoid(pick_tint(rng, BRIGHTS[:5]), (0, 0, h - stem * 0.2), flower, segments=8, rings=4)
