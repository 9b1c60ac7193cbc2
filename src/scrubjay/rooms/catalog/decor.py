"""Things to look at: vases, statues and other ornaments."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.catalog.plants import house_plant
from scrubjay.rooms.catalog.shape import ObjectType, Shape
from scrubjay.rooms.catalog.skins import BRIGHTS, FITTINGS, TOWELS, pick_tint, vessel

GLAZES = ("2f5f8a", "e9e4da", "b5523b", "6f8f7a", "d9a648", "23262b", "8a5a76", "c9c3b5", "3f7f86", "a8b8c4")
STONES = ("marble#ece8e0", "granite#b9b5ae", "marble#d9cdb8", "metal#8a6a3c", "plain#3a3a3c", "plaster#e2d8c6")
WOODS = ("b98a56", "8a5a34", "6b4428", "d6b27c")


def _profile(rng: np.random.Generator, r: float, h: float) -> list[tuple[float, float]]:
    """The outside of a vase, from its foot up to its lip."""
    kind = rng.integers(4)
    foot, lip = rng.uniform(0.4, 0.6), rng.uniform(0.3, 0.6)
    if kind == 0:
        belly = rng.uniform(0.3, 0.45)
        points = [
            (foot, 0),
            (0.92, belly * 0.6),
            (1, belly),
            (0.85, belly + 0.22),
            (lip * 0.75, 0.8),
            (lip * 0.8, 0.92),
            (lip * 1.2, 1),
        ]
    elif kind == 1:
        shoulder = rng.uniform(0.65, 0.75)
        points = [
            (foot, 0),
            (foot * 0.95, 0.05),
            (0.75, 0.35),
            (1, shoulder),
            (0.8, shoulder + 0.12),
            (lip, 0.93),
            (lip * 1.15, 1),
        ]
    elif kind == 2:
        points = [(0.75, 0), (0.6, 0.04), (0.66, 0.3), (0.62, 0.6), (0.8, 0.88), (1, 1)]
    else:
        points = [(0.7, 0), (0.97, 0.12), (1, 0.3), (0.95, 0.55), (0.25, 0.72), (0.2, 0.9), (0.3, 1)]
    return [(a * r, b * h) for a, b in points]


def _turned_vase(s: Shape, rng: np.random.Generator, r: float, h: float, scale=(1.0, 1.0)) -> float:
    """A hollow vase with a band round its belly; returns the width of its mouth."""
    glaze = s.material("ceramic", pick_tint(rng, GLAZES)) if rng.random() < 0.3 else pick_tint(rng, GLAZES)
    outside = _profile(rng, r, h)
    wall = 0.1 * r
    mouth = outside[-1][0] - wall
    neck = min(mouth, outside[-3][0] - wall)
    s.lathe(
        glaze,
        [(0, 0), *outside, (mouth, h), (neck, h * 0.88), (neck, h * 0.72), (0, h * 0.7)],
        segments=16,
        scale=scale,
        smooth=60,
    )
    band = int(rng.integers(1, len(outside) - 2))
    (a, low), (b, high) = outside[band], outside[band + 1]
    start, end = rng.uniform(0.05, 0.3), rng.uniform(0.6, 0.95)
    stripe = [(1.012 * (a + (b - a) * t), low + (high - low) * t) for t in (start, end)]
    s.lathe(pick_tint(rng, (*GLAZES, *TOWELS)), stripe, segments=16, scale=scale)
    widest = max(outside)[0]
    s.solid_box((0, 0, h / 2), (widest * 1.6 * scale[0], widest * 1.6 * scale[1], h))
    return mouth


def vase(s: Shape, rng: np.random.Generator) -> None:
    """A turned vase."""
    w, d, h = s.size
    _turned_vase(s, rng, w / 2 * 0.985, h, (1, d / w))


def statue(s: Shape, rng: np.random.Generator) -> None:
    """A sculpture on a base: a bust, a standing figure, a ring, a bird or a spiral."""
    w, d, h = s.size
    stone, base = STONES[rng.integers(len(STONES))], pick_tint(rng, ("2b2b2e", "6b4428", "e2ddd2", "8a8378"))
    foot = h * rng.uniform(0.08, 0.15)
    wide, deep = w * 0.8, d * 0.8
    if rng.random() < 0.5:
        s.box(base, (0, 0, foot / 2), (wide, deep, foot), without=("bottom",))
    else:
        s.cylinder(base, (0, 0, 0), min(wide, deep) / 2, foot)
        s.solid_box((0, 0, foot / 2), (min(wide, deep) * 0.85, min(wide, deep) * 0.85, foot))
    r, tall = min(w, d) / 2, h - foot
    (_bust, _figure, _ring, _bird, _spiral)[rng.integers(5)](s, rng, stone, foot, r, tall)
    s.solid_box((0, 0, foot + tall / 2), (r * 1.1, r * 1.1, tall))


def _bust(s: Shape, rng: np.random.Generator, stone: str, foot: float, r: float, tall: float) -> None:
    """Head and shoulders."""
    head = min(tall * 0.24, r * 0.62)
    neck = foot + tall - head * 2
    s.surface(stone, vessel([
        (r * 0.3, r * 0.25, foot, 3), (r * 0.35, r * 0.28, foot + tall * 0.08, 3),
        (r * 0.85, r * 0.42, neck - tall * 0.2, 2.4), (r * 0.9, r * 0.4, neck - tall * 0.12, 2.4),
        (head * 0.5, head * 0.5, neck, 2), (head * 0.45, head * 0.5, neck + head * 0.5, 2),
    ], 12))  # fmt: skip
    s.ellipsoid(stone, (0, 0.05 * r, neck + head), (head * 0.74, head * 0.86, head), segments=12, rings=8)
    s.ellipsoid(
        stone, (0, -head * 0.15, neck + head * 1.25), (head * 0.84, head * 0.85, head * 0.72), segments=10, rings=6
    )
    s.ellipsoid(
        stone, (0, head * 0.9, neck + head * 0.95), (head * 0.12, head * 0.16, head * 0.25), segments=6, rings=4
    )


def _figure(s: Shape, rng: np.random.Generator, stone: str, foot: float, r: float, tall: float) -> None:
    """A robed figure with raised arms."""
    head, waist = tall * 0.075, rng.uniform(0.2, 0.26) * r
    top = foot + tall
    s.lathe(stone, [
        (0.55 * r, foot), (0.4 * r, foot + tall * 0.2), (0.36 * r, foot + tall * 0.4), (waist, foot + tall * 0.55),
        (0.34 * r, foot + tall * 0.72), (0.36 * r, foot + tall * 0.78), (0.1 * r, foot + tall * 0.84),
        (0.1 * r, top - head),
    ], segments=12, smooth=70)  # fmt: skip
    s.ellipsoid(stone, (0, 0, top - head), (head * 0.8, head * 0.85, head), segments=10, rings=6)
    lift = rng.uniform(0.55, 0.95, 2)
    for side, reach in zip((-1, 1), lift, strict=True):
        shoulder = (side * 0.32 * r, 0, foot + tall * 0.77)
        elbow = (side * 0.75 * r, 0.1 * r, foot + tall * (0.6 + 0.12 * reach))
        s.tube(stone, [shoulder, elbow, (side * 0.55 * r, 0.3 * r, foot + tall * reach)], 0.09 * r, 6)


def _ring(s: Shape, rng: np.random.Generator, stone: str, foot: float, r: float, tall: float) -> None:
    """A twisted ring standing on its edge."""
    half = s.size[0] / 2 * 0.84
    thick = min(half, tall / 2) * rng.uniform(0.14, 0.22)
    angles = np.linspace(-np.pi / 2, 1.5 * np.pi, 25)
    twist = rng.uniform(0.2, 0.6) * (s.size[1] / 2 - thick)
    path = [
        (np.cos(t) * (half - thick), np.sin(2 * t) * twist, foot + tall / 2 + np.sin(t) * (tall / 2 - thick))
        for t in angles
    ]
    s.tube(stone, path, thick, 8)


def _bird(s: Shape, rng: np.random.Generator, stone: str, foot: float, r: float, tall: float) -> None:
    """An owl: a plump body, a broad head with ears and round eyes."""
    belly, head = tall * 0.36, tall * 0.22
    wide = r * rng.uniform(0.62, 0.78)
    top = foot + tall - head * 1.15
    s.ellipsoid(stone, (0, 0, foot + belly), (wide, wide * 0.85, belly), segments=12, rings=8)
    s.ellipsoid(stone, (0, wide * 0.1, top), (wide * 0.85, wide * 0.75, head), segments=12, rings=6)
    pale = pick_tint(rng, ("f0ead8", "e8c04a"))
    for side in (-1, 1):
        s.lathe(
            stone,
            [(wide * 0.25, 0), (0, head * 0.7)],
            (side * wide * 0.5, 0, top + head * 0.45),
            rotation("y", side * 12),
            6,
        )
        s.ellipsoid(
            stone,
            (side * wide * 0.85, -wide * 0.05, foot + belly),
            (wide * 0.2, wide * 0.6, belly * 0.75),
            segments=8,
            rings=6,
        )
        s.ellipsoid(
            pale,
            (side * wide * 0.33, wide * 0.76, top + head * 0.12),
            (wide * 0.22, wide * 0.1, wide * 0.22),
            segments=8,
            rings=4,
        )
    s.lathe(pale, [(wide * 0.12, 0), (0, wide * 0.3)], (0, wide * 0.8, top - head * 0.2), rotation("x", -120), 5)


def _spiral(s: Shape, rng: np.random.Generator, stone: str, foot: float, r: float, tall: float) -> None:
    """A bar that winds upwards and grows thin."""
    turns = rng.uniform(1.5, 2.5)
    t = np.linspace(0, 1, 22)
    wide = r * 0.72 * (1 - 0.5 * t)
    thick = min(r * 0.2, tall * 0.1)
    path = np.column_stack(
        [
            wide * np.cos(6.283 * turns * t),
            wide * np.sin(6.283 * turns * t),
            foot + thick * 0.5 + t * (tall - thick * 2.5),
        ]
    )
    s.tube(stone, path, thick, 7)
    s.ellipsoid(stone, (path[-1][0], path[-1][1], foot + tall - thick * 1.5), (thick * 1.5,) * 3, segments=10, rings=6)


def room_decor(s: Shape, rng: np.random.Generator) -> None:
    """A tall floor vase with bare branches or reeds."""
    w, d, h = s.size
    r = min(w, d) / 2
    tall = h * rng.uniform(0.4, 0.55)
    mouth = _turned_vase(s, rng, r * rng.uniform(0.65, 0.85), tall)
    twig = pick_tint(rng, ("6b4a2c", "8a6a42", "d9c9a0", "4a3a2e"), "wood")
    tip = pick_tint(rng, ("f2ead8", "c8543c", "d9b25a", "8fae6a", "b06a86"))
    blossom = rng.random() < 0.6
    for i in range(6):
        yaw, out = i * 2.4 + rng.uniform(-0.3, 0.3), r * rng.uniform(0.4, 0.86)
        end = np.array((out * np.cos(yaw), out * np.sin(yaw), h * rng.uniform(0.84, 0.95)))
        start = np.array((mouth * 0.4 * np.cos(yaw), mouth * 0.4 * np.sin(yaw), tall * 0.75))
        bend = (start + end) / 2 * (0.6, 0.6, 1.0)
        s.tube(twig, [start, bend, end], 0.006, 4)
        if blossom:
            for t in (0.55, 1.0):
                at = bend + (end - bend) * t + rng.uniform(-0.01, 0.01, 3)
                s.ellipsoid(tip, at, (0.018, 0.018, 0.02), segments=5, rings=3)
        else:
            s.ellipsoid(tip, end - (0, 0, h * 0.05), (0.014, 0.014, h * 0.06), segments=6, rings=4)
    s.solid_capsule((0, 0, tall * 0.9), (0, 0, h * 0.95), min(0.05, r * 0.3))


def table_top_decor(s: Shape, rng: np.random.Generator) -> None:
    """A shallow bowl of colored balls, or a tray with stones and a candle."""
    w, d, h = s.size
    scale = (1, d / w)
    r = w / 2
    if rng.random() < 0.5:
        s.lathe(pick_tint(rng, GLAZES), [
            (r * 0.35, 0), (r * 0.4, h * 0.08), (r * 0.8, h * 0.35), (r, h * 0.68), (r * 0.95, h * 0.68),
            (r * 0.7, h * 0.3), (0, h * 0.18),
        ], segments=18, scale=scale)  # fmt: skip
        colors = [pick_tint(rng, BRIGHTS), pick_tint(rng, TOWELS)]
        ball = min(r * 0.24, h * 0.3, r * scale[1] * 0.3)
        for i in range(6):
            yaw, out = i * 2 * np.pi / 5, 0.45 * r if i < 5 else 0.0
            at = (out * np.cos(yaw), out * np.sin(yaw) * scale[1], h * 0.5 + ball * 0.1 if i < 5 else h - ball)
            s.ellipsoid(colors[i % 2], at, (ball,) * 3, segments=8, rings=5)
    else:
        tray = pick_tint(rng, WOODS, "wood")
        s.surface(tray, vessel([
            (r * 0.95, d * 0.47, 0, 4), (r, d / 2, h * 0.16, 4), (r * 0.96, d * 0.47, h * 0.16, 4),
            (r * 0.93, d * 0.45, h * 0.06, 4), (0, 0, h * 0.06, 4),
        ], 20))  # fmt: skip
        stone = STONES[rng.integers(3)]
        size = min(r * 0.42, d * 0.3)
        low = h * 0.06
        for k, thick in enumerate(rng.uniform(0.2, 0.27, 3)):
            half = thick * h / 2
            s.ellipsoid(
                stone,
                (-r * 0.42, 0, low + half),
                (size * (1 - 0.22 * k), size * (0.9 - 0.22 * k), half),
                segments=10,
                rings=5,
            )
            low += 2 * half * 0.95
        wax = pick_tint(rng, ("f4ecd8", "c0392f", "e9c7c2", "b9c9a8"))
        for x, tall in ((0.3, 0.95), (0.66, 0.62)):
            s.cylinder(wax, (r * x, 0, h * 0.06), min(r * 0.14, d * 0.16), h * (tall - 0.06), segments=10)
    s.solid_box((0, 0, h * 0.3), (w * 0.8, d * 0.8, h * 0.6))


def watering_can(s: Shape, rng: np.random.Generator) -> None:
    """A can with a long spout to the front and a handle behind."""
    w, d, h = s.size
    can = pick_tint(rng, BRIGHTS) if rng.random() < 0.6 else pick_tint(rng, FITTINGS, "metal")
    r = min(w / 2, d * 0.27)
    pipe = min(0.011, h * 0.06)
    y = -d / 2 + r + d * 0.14
    top = h * rng.uniform(0.6, 0.72)
    flare = rng.uniform(0.72, 0.95)
    s.lathe(
        can,
        [(r, 0), (r * flare, top), (r * flare * 0.9, top), (r * flare * 0.9, top * 0.8), (0, top * 0.8)],
        (0, y, 0),
        segments=14,
    )
    rose = min(h * 0.11, w * 0.3)
    tip = np.array((0, d / 2 - rose * 1.5, h - rose * 1.5))
    s.tube(can, [(0, y + r * 0.8, top * 0.25), (0, y + r * 1.3, top * 0.45), tip], pipe, 8)
    s.lathe(can, [(pipe, 0), (rose, rose * 0.8), (rose * 0.9, rose), (0, rose * 1.1)], tip, rotation("x", -48), 10)
    angles = np.linspace(0.15, np.pi * 1.05, 9)
    back = [
        (0, y - np.cos(t) * r * 0.2 - np.sin(t) * (d * 0.12 + r * 0.6), top * 0.55 - np.cos(t) * top * 0.4)
        for t in angles
    ]
    s.tube(can, back, pipe * 0.8, 6)
    arch = [(0, y + r * 0.75 * np.cos(t), top + np.sin(t) * (h - top - pipe)) for t in np.linspace(0, np.pi, 8)]
    s.tube(can, arch, pipe * 0.8, 6)
    s.solid_box((0, y, top / 2), (r * 1.7, r * 1.7, top))
    s.solid_capsule((0, y + r * 0.8, top * 0.4), tip, max(pipe, 0.01))


TYPES = {
    "HousePlant": ObjectType(house_plant, round=True),
    "Vase": ObjectType(vase, round=True),
    "Statue": ObjectType(statue, round=True),
    "RoomDecor": ObjectType(room_decor),
    "TableTopDecor": ObjectType(table_top_decor),
    "WateringCan": ObjectType(watering_can),
}
