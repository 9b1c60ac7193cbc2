"""Food: two of the goal objects, and what lies beside them in a kitchen."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.joinery import pick
from scrubjay.rooms.catalog.loft import loft, superellipse
from scrubjay.rooms.catalog.mesh import prism, rotation
from scrubjay.rooms.catalog.shape import ObjectType, Shape


def ripened(rng: np.random.Generator, color: str, spread: float = 0.05) -> str:
    """A color near another: no two apples are alike."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (0, 2, 4)]) + 255 * rng.uniform(-spread, spread, 3)
    return "".join(f"{int(v):02x}" for v in np.clip(rgb, 0, 255))


def apple(s: Shape, rng: np.random.Generator) -> None:
    """A round apple with a dimple, a stem and a leaf."""
    w, d, h = s.size
    r, top = min(w, d) / 2, 0.9 * h
    color = ripened(rng, pick(rng, ("8f1d2c", "7fae2c", "a3c04a", "d9b93a")))
    belly = rng.uniform(0.52, 0.62)
    outline = [
        (0, 0.05),
        (0.3, 0),
        (0.62, 0.07),
        (0.92, 0.3),
        (1, belly),
        (0.9, 0.82),
        (0.6, 0.97),
        (0.32, 1),
        (0, 0.85),
    ]
    body = [(r * a, top * b) for a, b in outline]
    s.lathe(f"skin#{color}", body, segments=12, scale=(w / 2 / r, d / 2 / r), smooth=80)
    lean = rng.uniform(-0.12, 0.12, 2) * r
    green = f"leaf#{ripened(rng, '5d8a35')}"
    s.tube(green, [(0, 0, 0.8 * top), (*lean / 2, 0.93 * h), (*lean, 0.99 * h)], 0.05 * r, segments=5)
    turn = rotation("z", rng.uniform(0, 360)) @ rotation("y", -15)
    s.ellipsoid(green, turn @ [0.3 * r, 0, 0] + [0, 0, 0.93 * h], (0.3 * r, 0.14 * r, 0.03 * r), turn, 8, 4)
    s.solid_capsule((-w / 2, 0, top / 2), (w / 2, 0, top / 2), top / 2)
    s.solid_capsule((0, -d / 2, top / 2), (0, d / 2, top / 2), top / 2)


def tomato(s: Shape, rng: np.random.Generator) -> None:
    """A lobed red tomato under a green star."""
    w, d, h = s.size
    top = 0.92 * h
    lobes, depth, phase = int(rng.integers(5, 8)), rng.uniform(0.02, 0.05), rng.uniform(0, 2 * np.pi)
    angles = np.arange(20) * 2 * np.pi / 20
    ribs = 1 - depth * (1 + np.cos(lobes * angles + phase))
    outline = [(0, 0.04), (0.34, 0), (0.7, 0.1), (0.94, 0.3), (1, 0.54), (0.9, 0.8), (0.62, 0.96), (0.3, 1), (0, 0.9)]
    ring = np.stack([np.cos(angles) * w / 2, np.sin(angles) * d / 2], axis=1) * ribs[:, None]
    red = f"skin#{ripened(rng, 'd8261c', 0.03)}"
    s.surface(red, loft([np.column_stack([ring * a, np.full(20, top * b)]) for a, b in outline]))
    green = "leaf#4f9a2e"
    size, start = 0.17 * (w + d), rng.uniform(0, 360)
    for i in range(5):
        length = size * rng.uniform(0.85, 1.1)
        kite = prism(
            [(0, -0.1 * size), (0.4 * length, -0.24 * size), (length, 0), (0.4 * length, 0.24 * size)], 0.03 * h
        )
        s.surface(green, kite, (0, 0, top), rotation("z", start + 72 * i) @ rotation("y", rng.uniform(4, 9)))
    s.tube(green, [(0, 0, 0.9 * top), (0, 0, 0.95 * h), (0.05 * w, 0, 0.98 * h)], 0.035 * w, segments=6)
    s.solid_capsule((-0.48 * w, 0, top / 2), (0.48 * w, 0, top / 2), top / 2)
    s.solid_capsule((0, -0.48 * d, top / 2), (0, 0.48 * d, top / 2), top / 2)


def bread(s: Shape, rng: np.random.Generator) -> None:
    """A loaf along y with a soft brown crust and pale scores."""
    w, d, h = s.size
    crust = f"bread#{ripened(rng, pick(rng, ('b5702c', 'a8642a', 'c17f38')), 0.03)}"
    crumb = f"bread#{ripened(rng, 'f0d9a8', 0.03)}"
    scores = int(rng.integers(3, 5))
    rounding, roof = rng.uniform(2.4, 4.0), rng.uniform(0.6, 0.85)
    middle, rise = 0.36 * h, 0.6 * h
    outline = superellipse(14)
    below = superellipse(14, 0.45)
    across = np.where(outline[:, 1] > 0, superellipse(14, roof)[:, 0], below[:, 0])
    upward = np.where(outline[:, 1] > 0, superellipse(14, roof)[:, 1] * rise, below[:, 1] * middle)

    def bulge(t: float) -> float:
        return (1 - abs(t) ** rounding) ** (1 / rounding)

    rings = []
    for t in (-1, -0.96, -0.82, -0.45, 0, 0.45, 0.82, 0.96, 1):
        size = bulge(t) * (1 + 0.012 * np.cos(np.pi * scores * t))
        # Points run from +x to +z; about +y that is left-handed, so they are mirrored in x.
        rings.append(
            [(-a * size * w / 2 * 0.99, t * d / 2, middle + b * size) for a, b in zip(across, upward, strict=True)]
        )
    s.surface(crust, loft(rings))
    slant = rng.uniform(25, 50) * rng.choice([-1, 1])
    for i in range(scores):
        t = (i + 0.5) / scores * 1.5 - 0.75
        radii = (0.34 * w * bulge(t), 0.04 * d, 0.09 * h)
        s.ellipsoid(crumb, (0, t * d / 2, middle + rise * bulge(t) - 0.06 * h), radii, rotation("z", slant), 8, 4)
    s.solid_box((0, 0, 0.3 * h), (0.9 * w, 0.86 * d, 0.6 * h))
    s.solid_capsule((0, -0.44 * d, 0.56 * h), (0, 0.44 * d, 0.56 * h), 0.42 * h)


def egg(s: Shape, rng: np.random.Generator) -> None:
    """An egg lying along x."""
    w, d, h = s.size
    blunt = rng.uniform(0.38, 0.46)
    steps = np.linspace(0, np.pi, 9)
    reach = np.where(steps < np.pi / 2, blunt, 1 - blunt)
    outline = np.column_stack([np.sin(steps) * min(d, h) / 2, (blunt - np.cos(steps) * reach - 0.5) * w])
    shell = f"plain#{ripened(rng, pick(rng, ('f3e6d2', 'e2b98f', 'd39f72')), 0.03)}"
    s.lathe(shell, outline, (0, 0, h / 2), rotation("y", 90) @ rotation("z", rng.uniform(0, 180)), 12, (1, 1), 80)
    s.solid_capsule((-w / 2, 0, h / 2), (w / 2, 0, h / 2), min(d, h) * 0.48)


def potato(s: Shape, rng: np.random.Generator) -> None:
    """A lumpy potato."""
    w, d, h = s.size
    waves = rng.uniform(0, 2 * np.pi, 4)
    angles = np.arange(12) * 2 * np.pi / 12
    rings = []
    for a in np.linspace(0, np.pi, 10):
        lump = 0.93 + 0.07 * np.cos(2 * angles + waves[0] + 1.5 * np.cos(a)) * np.sin(a + waves[1] % 1)
        lift = 0.06 * np.sin(2 * a + waves[2])
        x, z = np.sin(a) ** 0.8 * lump * np.array([np.sin(angles), np.cos(angles)])
        rings.append(
            np.column_stack([x * w / 2, np.full(12, -np.cos(a) * d / 2), h / 2 * (1 + 0.94 * z + lift * np.sin(a))])
        )
    s.surface(f"skin#{ripened(rng, pick(rng, ('b08a56', 'a87d4b', 'c29a63')), 0.03)}", loft(rings))
    s.solid_capsule((0, -d / 2, h / 2), (0, d / 2, h / 2), min(w, h) * 0.46)


def lettuce(s: Shape, rng: np.random.Generator) -> None:
    """A head of crinkled leaves about a pale heart."""
    w, d, h = s.size
    pale, green = f"leaf#{ripened(rng, 'b9d87a')}", f"leaf#{ripened(rng, '6fae3c')}"
    s.ellipsoid(pale, (0, 0, 0.52 * h), (0.36 * w, 0.38 * d, 0.46 * h), segments=10, rings=5)
    count = 6
    for i in range(count):
        turn = rotation("z", 360 / count * (i + rng.uniform(-0.25, 0.25)))
        outwards = turn @ [1.0, 0, 0]
        for tilt, reach, tall, material in (
            (rng.uniform(14, 26), 0.35, 0.4, green),
            (rng.uniform(0, 10), 0.31, 0.44, pale),
        ):
            at = np.array([outwards[0] * reach * w, outwards[1] * reach * d, 0.5 * h])
            radii = (0.07 * w, rng.uniform(0.2, 0.26) * min(w, d), tall * h * rng.uniform(0.9, 1.05))
            s.ellipsoid(material, at, radii, turn @ rotation("y", tilt), 6, 4)
            if material == green and i % 2:
                break
    s.solid_box((0, 0, 0.45 * h), (0.64 * w, 0.64 * d, 0.9 * h))
    s.solid_capsule((0, -0.46 * d, 0.45 * h), (0, 0.46 * d, 0.45 * h), 0.36 * min(w, h))


TYPES = {
    "Apple": ObjectType(apple, round=True),
    "Bread": ObjectType(bread),
    "Egg": ObjectType(egg, round=True),
    "Lettuce": ObjectType(lettuce, round=True),
    "Potato": ObjectType(potato, round=True),
    "Tomato": ObjectType(tomato),
}
