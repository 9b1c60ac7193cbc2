"""Cutlery: what one cuts, eats, stirs and turns with. All of it lies flat."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.joinery import pick
from scrubjay.rooms.catalog.loft import loft, strip, superellipse
from scrubjay.rooms.catalog.mesh import box, rotation
from scrubjay.rooms.catalog.shape import ObjectType, Shape

STEEL = "metal#dfe3e6"
BLACK = "plain#26272a"


def lengthwise(s: Shape) -> tuple[float, float, np.ndarray]:
    """The box's shorter and longer side, and the turn that lays y along the longer."""
    w, d, _ = s.size
    return (w, d, np.eye(3)) if d >= w else (d, w, rotation("z", -90))


def knife(s: Shape, rng: np.random.Generator) -> None:
    """A kitchen knife lying along y: a steel blade, and a dark handle with rivets."""
    w, d, h = s.size
    w = min(w, 0.16 * d)
    grip, tip = rng.uniform(0.38, 0.44) * d, d / 2
    start, back, edge = grip - d / 2, -w / 2, w / 2
    drop = rng.uniform(0.1, 0.4) * w
    outline = [
        (back, start),
        (edge, start),
        (edge, tip - 0.3 * d),
        (0.32 * w, tip - 0.14 * d),
        (0.1 * w, tip - 0.05 * d),
    ]
    outline += [(drop - 0.4 * w, tip), (back + 0.2 * drop, tip - 0.12 * d)]
    steel, handle = "metal#e8edf0", pick(rng, ("plain#241d1a", "wood#4a2c1b", "plain#1d2026"))
    s.prism(steel, outline, 0.16 * h, (0, 0, 0.42 * h))
    s.box(steel, (back + 0.36 * w, start + 0.008, h / 2), (0.68 * w, 0.022, 0.7 * h), solid=False)
    ring = superellipse(10, 0.6) * [-1, 1]
    swell = rng.uniform(0.74, 0.82)
    stations = [(0, 0.5), (0, 0.75), (0.08, 1), (0.35, swell), (0.7, 0.92), (1, 0.78), (1, 0.4)]
    rings = [
        [(back + 0.36 * w + a * k * 0.36 * w, q * grip - d / 2, h / 2 * (1 + b * k)) for a, b in ring]
        for q, k in stations
    ]
    ends = [[np.mean(rings[i], axis=0)] * 10 for i in (0, -1)]
    s.surface(handle, loft([ends[0], *rings, ends[1]]))
    for q in (0.28, 0.52, 0.76):
        s.cylinder(steel, (back + 0.36 * w, q * grip - d / 2, 0.5 * h), 0.09 * w, 0.49 * h, segments=6)
    s.solid_box((back + 0.36 * w, grip / 2 - d / 2, h / 2), (0.66 * w, grip, 0.9 * h))
    s.solid_box((0, (start + tip) / 2 - 0.06 * d, h / 2), (w, tip - start - 0.14 * d, max(0.3 * h, 0.008)))
    s.solid_box((-0.15 * w, tip - 0.08 * d, h / 2), (0.6 * w, 0.13 * d, max(0.3 * h, 0.008)))


def _cutlery(s: Shape, rng: np.random.Generator, parts) -> None:
    """Flat steel along the longer side; a part's stations and widths are fractions of the box."""
    across, length, turn = lengthwise(s)
    h = s.size[2]
    across = min(across, 0.2 * length)
    metal, thick = s.material("metal", STEEL), max(0.18 * h, 0.0025)
    stretch = rng.uniform(0.8, 1.0)
    for x, stations in parts:
        points = [(q * length, thick / 2 + z * (h - thick), k * across * stretch) for q, z, k in stations]
        s.surface(metal, strip(points, thick), turn @ [x * across * stretch, 0, 0], turn)
    s.solid_box((0, 0, h / 2), (0.5 * across, length, h), turn)


def fork(s: Shape, rng: np.random.Generator) -> None:
    """A fork with four tines."""
    neck = rng.uniform(0.12, 0.18)
    handle = [
        (-0.5, 0.3, 0.5),
        (-0.35, 0.4, 0.6),
        (0, 0.9, 0.25),
        (neck, 0.4, 0.3),
        (neck + 0.06, 0.15, 0.95),
        (0.28, 0.05, 1),
    ]
    tines = [(x, [(0.27, 0.05, 0.16), (0.4, 0.1, 0.14), (0.5, 0.5, 0.07)]) for x in (-0.42, -0.14, 0.14, 0.42)]
    _cutlery(s, rng, [(0, handle), *tines])


def spoon(s: Shape, rng: np.random.Generator) -> None:
    """A spoon with an oval bowl."""
    tip = rng.uniform(0.4, 0.6)
    handle = [(-0.5, 0.3, 0.35), (-0.35, 0.5, 0.45), (0.05, 0.95, 0.16), (0.16, 0.7, 0.22)]
    bowl_part = [(0.24, 0.2, 0.75), (0.32, 0, 1), (0.4, 0.1, 0.95), (0.46, 0.35, 0.7), (0.5, 0.6, tip * 0.6)]
    _cutlery(s, rng, [(0, handle + bowl_part)])


def butter_knife(s: Shape, rng: np.random.Generator) -> None:
    """A table knife with a round tip."""
    waist = rng.uniform(0.4, 0.55)
    stations = [
        (-0.5, 0.4, 0.4),
        (-0.4, 0.5, 0.5),
        (0, 0.5, waist * 0.6),
        (0.04, 0.3, 0.45),
        (0.2, 0.3, 0.55),
        (0.42, 0.3, 0.5),
    ]
    _cutlery(s, rng, [(0, [*stations, (0.48, 0.3, 0.3), (0.5, 0.3, 0.1)])])


def ladle(s: Shape, rng: np.random.Generator) -> None:
    """A deep round bowl on a long handle."""
    across, length, turn = lengthwise(s)
    h = s.size[2]
    metal = s.material("metal", STEEL)
    r = min(across / 2, rng.uniform(0.17, 0.2) * length)
    deep = min(0.9 * h, r)
    outer = [(0, 0), (0.5 * r, 0.1 * deep), (0.86 * r, 0.45 * deep), (r, deep), (0.94 * r, deep)]
    inner = [(0.8 * r, 0.5 * deep), (0.45 * r, 0.18 * deep), (0, 0.1 * deep)]
    center = turn @ [0, length / 2 - r, 0]
    s.lathe(metal, outer + inner, center, segments=12)
    stations = [(-length / 2, h - 0.006, 0.022), (0, h - 0.004, 0.013), (length / 2 - 1.9 * r, 0.85 * deep, 0.012)]
    s.surface(pick(rng, (BLACK, "wood#8a5a33")), strip(stations, 0.005), turn=turn)
    s.solid_box([*center[:2], deep / 2], (1.4 * r, 1.4 * r, deep))
    s.solid_box(turn @ [0, -r, h - 0.006], (0.02, length - 2 * r, 0.01), turn)


def spatula(s: Shape, rng: np.random.Generator) -> None:
    """A slotted turner."""
    across, length, turn = lengthwise(s)
    h = s.size[2]
    across = min(across, 0.34 * length)
    handle = [(-0.5 * length, 0.8 * h, 0.026), (-0.15 * length, 0.8 * h, 0.02), (0.18 * length, 0.15 * h, 0.016)]
    s.surface(pick(rng, (BLACK, "wood#8a5a33", "plain#b23a2e")), strip(handle, 0.35 * h), turn=turn)
    blade, start = pick(rng, (STEEL, BLACK)), rng.uniform(0.14, 0.2) * length
    bars = [((0.0, start), (across, 0.03 * length)), ((0.0, 0.48 * length), (across, 0.04 * length))]
    bars += [
        ((x * across, (start + 0.5 * length) / 2), (0.16 * across, 0.5 * length - start))
        for x in (-0.42, -0.14, 0.14, 0.42)
    ]
    for (x, y), size in bars:
        s.surface(blade, box((*size, 0.2 * h)), turn @ [x, y, 0.1 * h], turn)
    s.solid_box((0, 0, 0.4 * h), (0.4 * across, length, 0.8 * h), turn)
    s.solid_box(turn @ [0, (start + 0.5 * length) / 2, 0.15 * h], (across, 0.5 * length - start, 0.3 * h), turn)


TYPES = {
    "ButterKnife": ObjectType(butter_knife),
    "Fork": ObjectType(fork),
    "Knife": ObjectType(knife),
    "Ladle": ObjectType(ladle),
    "Spatula": ObjectType(spatula),
    "Spoon": ObjectType(spoon),
}
