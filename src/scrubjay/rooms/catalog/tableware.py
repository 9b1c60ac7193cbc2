"""Tableware: what one eats and drinks from and cooks in, and what stands beside the sink."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog import cutlery
from scrubjay.rooms.catalog.cutlery import BLACK, STEEL, lengthwise
from scrubjay.rooms.catalog.joinery import pick
from scrubjay.rooms.catalog.loft import loft, strip, superellipse
from scrubjay.rooms.catalog.mesh import Mesh, lathe, rotation
from scrubjay.rooms.catalog.shape import Drawn, ObjectType, Shape

WHITE = "plain#f3f0ea"
SATURATED = ("1f6fd0", "f2a516", "12a08c", "7a3fc0", "e0457b", "2e9e3f")
GLAZES = ("f3f0ea", "3f6ea8", "c8553d", "e3b04b", "5f8f6b", "2f4858", "b9c6cf", "8c5a7a")


def walls_around(part: Drawn, radii, bottom: float, top: float, thickness: float, at=(0, 0), count: int = 8) -> None:
    """Upright solids around an ellipse, just within it: what makes a round vessel hollow to the touch."""
    outline = superellipse(count) * np.asarray(radii, float) + np.asarray(at, float)
    for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        along = (b - a) / np.hypot(*(b - a))
        inward = np.array([-along[1], along[0]])
        middle = (a + b) / 2 + inward * thickness / 2
        turn = np.column_stack([[*along, 0], [*inward, 0], [0, 0, 1]])
        part.solid_box([*middle, (bottom + top) / 2], (np.hypot(*(b - a)), thickness, top - bottom), turn)


def label_around(
    s: Shape, rng: np.random.Generator, radius: float, bottom: float, top: float, scale=(1.0, 1.0)
) -> None:
    """A paper label wrapped around a bottle, its picture twice."""
    band = lathe([(radius, bottom), (radius, top)], 14, scale)
    uv = band.uv / [np.ptp(band.uv[:, 0]) / 2, np.ptp(band.uv[:, 1])]
    s.surface(f"label-{rng.integers(16)}#ffffff", Mesh(band.vertices, band.normals, uv, band.faces))


def cup(s: Shape, rng: np.random.Generator) -> None:
    """A tall cup of one strong color, pale inside, with a pale band."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    glaze = f"plain#{pick(rng, SATURATED)}"
    foot, waist = rng.uniform(0.62, 0.74), rng.uniform(0.78, 0.9)
    outline = [(0, 0), (foot, 0), (foot + 0.03, 0.03), (waist, 0.5), (0.97, 0.96), (0.98, 1), (0.9, 1), (0.89, 0.96)]
    s.lathe(glaze, [(r * a, h * b) for a, b in outline], scale=scale, segments=14)
    inside = [(0.89, 0.96), (waist - 0.08, 0.5), (foot - 0.04, 0.06), (0, 0.06)]
    s.lathe(WHITE, [(r * a, h * b) for a, b in inside], scale=scale, segments=14)
    low, wide = rng.uniform(0.6, 0.72), rng.uniform(0.06, 0.14)
    band = [(waist + (b - 0.5) / 0.46 * (0.97 - waist) + 0.012, b) for b in (low, low + wide)]
    s.lathe(WHITE, [(r * a, h * b) for a, b in band], scale=scale, segments=14)
    for angle in (0, 45):
        s.solid_box((0, 0, h / 4), (0.58 * w, 0.58 * d, h / 2), rotation("z", angle))
        s.solid_box((0, 0, 3 * h / 4), (0.7 * w, 0.7 * d, h / 2), rotation("z", angle))


def mug(s: Shape, rng: np.random.Generator) -> None:
    """A straight mug with a round handle to its right."""
    w, d, h = s.size
    r = min(d / 2, 0.38 * w)
    x = r - w / 2
    glaze = f"plain#{pick(rng, GLAZES)}"
    base = rng.uniform(0.82, 1)
    s.lathe(glaze, [(0, 0), (base * r, 0), (r, 0.12 * h), (r, h), (0.88 * r, h)], (x, 0, 0), segments=12)
    s.lathe(WHITE, [(0.88 * r, h), (0.86 * r, 0.08 * h), (0, 0.08 * h)], (x, 0, 0), segments=12)
    low, high, bar = rng.uniform(0.18, 0.28) * h, rng.uniform(0.74, 0.86) * h, 0.06 * h
    reach = w / 2 - bar - x - 0.95 * r
    turns = np.linspace(np.pi / 2, -np.pi / 2, 7)
    bow = [(x + 0.95 * r + np.cos(a) * reach, 0, (low + high) / 2 + np.sin(a) * (high - low) / 2) for a in turns]
    s.tube(glaze, bow, bar, segments=6)
    s.solid_box((x, 0, h / 2), (1.5 * r, 1.5 * r, h))


def plate(s: Shape, rng: np.random.Generator) -> None:
    """A plate with a rim of another color."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    well = rng.uniform(0.58, 0.72)
    glaze, rim = (f"plain#{c}" for c in rng.choice(GLAZES, 2, replace=False))
    s.lathe(glaze, [(0, 0), (0.6 * r, 0), (r, 0.85 * h), (r, h)], scale=scale, segments=16)
    s.lathe(rim, [(r, h), ((well + 0.1) * r, 0.55 * h)], scale=scale, segments=16)
    s.lathe(glaze, [((well + 0.1) * r, 0.55 * h), (well * r, 0.3 * h), (0, 0.3 * h)], scale=scale, segments=16)
    s.solid_box((0, 0, 0.2 * h), (0.7 * w, 0.7 * d, 0.4 * h))
    s.solid_box((0, 0, 0.4 * h), (0.68 * w, 0.68 * d, 0.4 * h), rotation("z", 45))
    s.support((0, 0, 0.6 * h), (0.5 * w, 0.5 * d), 0.3)


def bowl(s: Shape, rng: np.random.Generator) -> None:
    """A round bowl on a foot."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    glaze, inside = (f"plain#{c}" for c in rng.choice(GLAZES, 2, replace=False))
    foot, belly = rng.uniform(0.36, 0.5), rng.uniform(0.74, 0.84)
    outer = [(0, 0), (foot, 0), (foot, 0.07), (belly, 0.36), (0.95, 0.72), (1, 1), (0.95, 1)]
    inner = [(0.95, 1), (0.89, 0.72), (belly - 0.08, 0.42), (foot - 0.05, 0.16), (0, 0.12)]
    s.lathe(glaze, [(r * a, h * b) for a, b in outer], scale=scale, segments=14)
    s.lathe(inside, [(r * a, h * b) for a, b in inner], scale=scale, segments=14)
    s.solid_box((0, 0, 0.1 * h), (0.8 * w * belly, 0.8 * d * belly, 0.2 * h))
    walls_around(s, (0.98 * r, 0.98 * d / 2), 0.3 * h, h, 0.1 * r)
    s.space((0, 0, 0.6 * h), (1.3 * r, 0.65 * d, 0.8 * h))


def pan(s: Shape, rng: np.random.Generator) -> None:
    """A frying pan with a long handle."""
    across, length, turn = lengthwise(s)
    h = s.size[2]
    r = min(across / 2, 0.36 * length)
    center = turn @ [0, r - length / 2, 0]
    body = pick(rng, ("plain#2b2c2f", "metal#8d9297", "plain#7c2f2a"))
    rim, flare = 0.75 * h, rng.uniform(0.76, 0.88)
    s.lathe(body, [(0, 0), (flare * r, 0), (r, rim), (0.96 * r, rim)], center, segments=16)
    s.lathe("metal#4a4d50", [(0.96 * r, rim), (flare * r * 0.97, 0.12 * h), (0, 0.12 * h)], center, segments=16)
    grip = rng.uniform(0.02, 0.03)
    y = 2 * r - length / 2
    stations = [
        (y - 0.04 * length, 0.6 * rim, grip),
        (y + 0.1 * length, 0.85 * h, 0.7 * grip),
        (length / 2, 0.9 * h, grip),
    ]
    s.surface(pick(rng, (BLACK, "wood#8a5a33", STEEL)), strip(stations, 0.2 * h), turn=turn)
    s.solid_box([*center[:2], 0.08 * h], (1.45 * r, 1.45 * r, 0.16 * h))
    walls_around(s, (r, r), 0, rim, 0.08 * r, center[:2])
    s.solid_box(turn @ [0, (y + length / 2) / 2, 0.82 * h], (grip, length / 2 - y, 0.3 * h), turn)
    s.support([*center[:2], 0.17 * h], (1.1 * r, 1.1 * r), 0.3)


def pot(s: Shape, rng: np.random.Generator) -> None:
    """A cooking pot with two loops."""
    across, length, turn = lengthwise(s)
    h = s.size[2]
    r = min(across / 2, 0.42 * length)
    body = pick(rng, (STEEL, "metal#b5babf", "plain#b23a2e", "plain#2f4858", "plain#d98b2b"))
    rim, bottom = 0.97 * h, 0.06 * h
    round_foot = rng.uniform(0.86, 0.97)
    s.lathe(
        body, [(0, 0), (round_foot * r, 0), (0.98 * r, 0.1 * h), (0.98 * r, rim), (r, h), (0.93 * r, h)], segments=16
    )
    s.lathe("metal#9da2a6", [(0.93 * r, h), (0.92 * r, bottom), (0, bottom)], segments=16)
    high, spread, bar = rng.uniform(0.72, 0.88) * h, 0.34 * r, 0.035 * r + 0.002
    for side in (-1, 1):
        far = side * (length / 2 - bar)
        near = side * 0.93 * r
        loop = [(-spread, near, high), (-spread, far, high), (0, far, high), (spread, far, high), (spread, near, high)]
        s.tube(BLACK, [turn @ p for p in loop], bar, segments=6)
    s.solid_box((0, 0, bottom / 2), (1.45 * r, 1.45 * r, bottom))
    walls_around(s, (r, r), 0, h, 0.1 * r)
    s.space((0, 0, (h + bottom) / 2), (1.4 * r, 1.4 * r, h - bottom))


def kettle(s: Shape, rng: np.random.Generator) -> None:
    """A kettle with a spout to the front, a handle behind and a lid that lifts."""
    w, d, h = s.size
    r, y = min(w / 2, 0.31 * d), -0.03 * d
    body = pick(rng, (STEEL, "plain#b23a2e", "plain#e9e2d0", "plain#3f6ea8", "plain#4f8f80"))
    neck, rim, belly = rng.uniform(0.55, 0.68) * r, 0.78 * h, rng.uniform(0.3, 0.45) * h
    s.lathe(
        body,
        [(0, 0), (0.95 * r, 0), (r, 0.08 * h), (0.97 * r, belly), (neck, rim), (0.9 * neck, rim)],
        (0, y, 0),
        segments=14,
    )
    s.lathe(
        "metal#6d7175",
        [(0.9 * neck, rim), (0.88 * r, belly), (0.9 * r, 0.06 * h), (0, 0.06 * h)],
        (0, y, 0),
        segments=10,
    )
    ring = superellipse(8) * [1, -1]
    spout = [
        (0.3, y + 0.7 * r, 0.3 * h),
        (0.22, y + 1.2 * r, 0.42 * h),
        (0.13, 0.36 * d, 0.6 * h),
        (0.13, d / 2 - 0.01, 0.74 * h),
    ]
    rings = [[(a * k * r, q - 0.6 * b * k * r, z + b * k * r) for a, b in ring] for k, q, z in spout]
    s.surface(body, loft([*rings, [(0, *spout[-1][1:])] * 8]))
    back = 0.014 - d / 2
    bow = [
        (0, y - 0.8 * neck, rim),
        (0, y - 1.1 * neck, 0.95 * h),
        (0, 0.6 * back - 0.4 * r, h - 0.016),
        (0, back, 0.8 * h),
    ]
    s.tube(BLACK, [*bow, (0, back, 0.45 * h), (0, y - 0.9 * r, 0.3 * h)], 0.011, segments=6)
    s.solid_box((0, y, 0.03 * h), (1.4 * r, 1.4 * r, 0.06 * h))
    walls_around(s, (r, r), 0, rim, 0.1 * r, (0, y))
    s.solid_box((0, (back + y - r) / 2, 0.65 * h), (0.022, max(y - r - back, 0.012), 0.5 * h))
    s.space((0, y, 0.4 * h), (1.3 * r, 1.3 * r, 0.7 * h))
    lid = s.hinge((1, 0, 0), (0, y - neck, rim), 70)
    lid.lathe(body, [(0, rim), (0.98 * neck, rim), (0.7 * neck, 0.85 * h), (0, 0.88 * h)], (0, y, 0), segments=12)
    lid.ellipsoid(BLACK, (0, y, 0.92 * h), (0.2 * neck, 0.2 * neck, 0.06 * h), segments=8, rings=4)
    lid.solid_box((0, y, 0.83 * h), (1.4 * neck, 1.4 * neck, 0.1 * h))


def bottle(s: Shape, rng: np.random.Generator) -> None:
    """A bottle with a label and a cap."""
    _bottle(
        s,
        rng,
        pick(rng, ("7fb7c9", "4f9a6a", "c98b3a", "d9e4e6")),
        pick(rng, ("c8372d", "2f4858", "f0f0f0")),
        0.36,
        0.62,
    )


def wine_bottle(s: Shape, rng: np.random.Generator) -> None:
    """A tall dark bottle with a label and foil about its neck."""
    _bottle(s, rng, pick(rng, ("1f3a26", "2c1d1a", "3a4a1e")), pick(rng, ("6d1a2b", "b08d3c", "1c1c1e")), 0.31, 0.6)


def _bottle(s: Shape, rng: np.random.Generator, glass: str, cap: str, neck: float, shoulder: float) -> None:
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    shoulder += rng.uniform(-0.04, 0.04)
    neck *= rng.uniform(0.9, 1.1)
    foil = rng.uniform(0.8, 0.88)
    outline = [
        (0, 0),
        (0.94, 0),
        (1, 0.03),
        (1, shoulder),
        (0.82, shoulder + 0.07),
        (neck + 0.06, shoulder + 0.15),
        (neck, foil),
    ]
    s.lathe(f"plain#{glass}", [(r * a, h * b) for a, b in outline], scale=scale, segments=14)
    top = [(neck, foil), (neck + 0.05, foil), (neck + 0.05, 1), (0, 1)]
    s.lathe(f"plain#{cap}", [(r * a, h * b) for a, b in top], scale=scale, segments=10)
    label_around(s, rng, 1.01 * r, 0.12 * h, (shoulder - 0.08) * h, scale)
    s.solid_box((0, 0, shoulder * h / 2), (0.75 * w, 0.75 * d, shoulder * h))
    s.solid_box((0, 0, (1 + shoulder) * h / 2), (0.35 * w, 0.35 * d, (1 - shoulder) * h))


def soap_bottle(s: Shape, rng: np.random.Generator) -> None:
    """A bottle of soap with a pump."""
    w, d, h = s.size
    r, scale = w / 2, (1, min(1, 0.8 * d / w))
    soap = f"plain#{pick(rng, ('e58fb0', '8cc7b5', 'f0d27a', '9bb8e0', 'f1efe9', '3f7a63'))}"
    top = rng.uniform(0.58, 0.68)
    outline = [(0, 0), (0.92, 0), (1, 0.04), (1, top), (0.8, top + 0.06), (0.36, top + 0.08), (0, top + 0.08)]
    s.lathe(soap, [(r * a, h * b) for a, b in outline], scale=scale, segments=14)
    pump = pick(rng, (WHITE, BLACK, STEEL))
    s.lathe(
        pump, [(0.36 * r, (top + 0.08) * h), (0.36 * r, (top + 0.16) * h), (0.1 * r, (top + 0.16) * h)], segments=10
    )
    s.tube(pump, [(0, 0, (top + 0.1) * h), (0, 0, 0.95 * h)], 0.1 * r, segments=6)
    s.box(pump, (0, 0.14 * d, 0.97 * h), (0.3 * r, 0.62 * d, 0.05 * h), solid=False)
    label_around(s, rng, 1.01 * r, 0.12 * h, (top - 0.08) * h, scale)
    s.solid_box((0, 0, top * h / 2), (0.8 * w, 0.8 * d * scale[1], top * h))
    s.solid_box((0, 0, (1 + top) * h / 2), (0.3 * w, 0.3 * d, (1 - top) * h))


def _shaker(s: Shape, rng: np.random.Generator, body: str, cap: str) -> None:
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    waist, collar = rng.uniform(0.68, 0.92), rng.uniform(0.68, 0.8)
    lower = [(0, 0), (0.96, 0), (1, 0.05), (waist, 0.45), (0.72, collar)]
    upper = [(0.72, collar), (0.8, collar + 0.02), (0.78, 0.9), (0.5, 0.98), (0, 1)]
    s.lathe(body, [(r * a, h * b) for a, b in lower], scale=scale, segments=12)
    s.lathe(cap, [(r * a, h * b) for a, b in upper], scale=scale, segments=12)
    s.solid_box((0, 0, h / 2), (0.64 * w, 0.64 * d, h))


def salt_shaker(s: Shape, rng: np.random.Generator) -> None:
    """A white salt shaker with a steel cap."""
    _shaker(s, rng, pick(rng, (WHITE, "plain#dfe8ea", "plain#e9dcc4")), STEEL)


def pepper_shaker(s: Shape, rng: np.random.Generator) -> None:
    """A dark pepper mill."""
    _shaker(s, rng, pick(rng, ("wood#5a3620", "plain#35322f", "wood#7d4f2a")), pick(rng, (STEEL, "wood#5a3620")))


def aluminum_foil(s: Shape, rng: np.random.Generator) -> None:
    """A long carton with a tongue of foil."""
    w, d, h = s.size
    deep = min(d, rng.uniform(1.0, 1.3) * h)
    s.box(f"label-{rng.integers(16)}#ffffff", (0, (deep - d) / 2, h / 2), (w, deep, h), fitted=True)
    if d > deep:
        s.box("metal#e6eaed", (0, deep / 2, 0.003), (rng.uniform(0.88, 0.96) * w, d - deep, 0.006))


def paper_towel_roll(s: Shape, rng: np.random.Generator) -> None:
    """A standing roll of kitchen paper with a loose end."""
    w, d, h = s.size
    r, scale = w / 2 * 0.97, (1, d / w)
    core = rng.uniform(0.3, 0.42) * r
    s.lathe("paper#f6f4ee", [(0, 0), (r, 0), (r, h), (core, h)], scale=scale, segments=16)
    s.lathe("paper#a98358", [(core, h), (core, 0.02 * h), (0, 0.02 * h)], scale=scale, segments=10)
    s.box("paper#f6f4ee", (0.48 * w, rng.uniform(0.1, 0.18) * d, h / 2), (0.004, 0.3 * d, h), solid=False)
    s.solid_box((0, 0, h / 2), (0.74 * w, 0.74 * d, h))


def dish_sponge(s: Shape, rng: np.random.Generator) -> None:
    """A soft sponge with a scouring side."""
    w, d, h = s.size
    soft = pick(rng, ("f2cf3b", "f08fb0", "7cc4e8", "f2a23b"))
    cut = rng.uniform(0.6, 0.75) * h
    s.ellipsoid(f"carpet#{soft}", (0, 0, cut / 2), (w / 2, d / 2, cut / 2), segments=12, rings=6, power=0.25)
    s.box(
        pick(rng, ("carpet#3f7d3a", "carpet#35577d")), (0, 0, (cut + h) / 2), (0.96 * w, 0.96 * d, h - cut), solid=False
    )
    s.solid_box((0, 0, h / 2), (0.94 * w, 0.94 * d, h))


TYPES = {
    **cutlery.TYPES,
    "AluminumFoil": ObjectType(aluminum_foil),
    "Bottle": ObjectType(bottle, round=True),
    "Bowl": ObjectType(bowl, round=True),
    "Cup": ObjectType(cup),
    "DishSponge": ObjectType(dish_sponge),
    "Kettle": ObjectType(kettle, opens=True),
    "Mug": ObjectType(mug),
    "Pan": ObjectType(pan),
    "PaperTowelRoll": ObjectType(paper_towel_roll, round=True),
    "PepperShaker": ObjectType(pepper_shaker),
    "Plate": ObjectType(plate, round=True),
    "Pot": ObjectType(pot),
    "SaltShaker": ObjectType(salt_shaker),
    "SoapBottle": ObjectType(soap_bottle, round=True),
    "WineBottle": ObjectType(wine_bottle, round=True),
}
