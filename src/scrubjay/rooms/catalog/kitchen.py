"""What belongs to a kitchen beside its appliances: counter tops, sinks, taps, burners and the bin."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.cutlery import BLACK, STEEL
from scrubjay.rooms.catalog.joinery import FORWARD, PAINTS, pick
from scrubjay.rooms.catalog.loft import loft, superellipse
from scrubjay.rooms.catalog.mesh import box, rotation
from scrubjay.rooms.catalog.shape import ObjectType, Shape
from scrubjay.rooms.catalog.tableware import walls_around

TOPS = (
    "granite#8f8a84",
    "marble#e9e6e0",
    "granite#4d4f52",
    "wood#a5713f",
    "marble#d9cdbb",
    "granite#b9a68c",
    "plain#d8d5cd",
)
SINKS = ("metal#cfd4d8", "plain#f3f2ee", "metal#b3b8bc")
DARK = "plain#2a2c2f"
IRON = "plain#3c3f43"
OPENING = (0.84, 0.72)
"""How much of a sink's width and depth its basin takes."""
RIM = 0.02
CORNERS = 16
ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
"""Turns an outline in x and y, extruded upwards, into one in y and z, extruded along x."""


def basin_of(size) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Where a sink's basin goes: its position in the sink's coordinates, and its size."""
    w, d, h = size
    deep = min(h, 0.2) - 0.004
    wide, long = w * OPENING[0], d * OPENING[1]
    return (0.0, (d - long) / 2 - 0.06 * d, h - 0.002 - deep), (wide, long, deep)


def counter_top(s: Shape, rng: np.random.Generator) -> None:
    """A slab with an eased front edge, and a hole for a sink where the options ask for one."""
    w, d, h = s.size
    top = s.material("top", pick(rng, TOPS))
    ease = rng.uniform(0.1, 0.35) * h

    def slab(left: float, right: float, back: float, front: float) -> None:
        edge = ease if front > d / 2 - 1e-6 else 0.0
        outline = [(back, 0), (front - edge, 0), (front, edge), (front, h - edge), (front - edge, h), (back, h)]
        s.prism(top, outline if edge else [outline[i] for i in (0, 1, 4, 5)], right - left, (left, 0, 0), ALONG_X)
        s.solid_box(((left + right) / 2, (back + front) / 2, h / 2), (right - left, front - back, h))

    wide, deep = s.options.get("hole_width", 0.0), s.options.get("hole_depth", 0.0)
    if wide <= 0 or deep <= 0:
        slab(-w / 2, w / 2, -d / 2, d / 2)
        s.support((0, 0, h), (w - 0.04, d - 0.04), 0.5)
        return
    middle = s.options.get("hole_x", 0.0)
    left, right = middle - wide / 2, middle + wide / 2
    for x0, x1 in ((-w / 2, left), (right, w / 2)):
        if x1 - x0 > 0.005:
            slab(x0, x1, -d / 2, d / 2)
        if x1 - x0 > 0.1:
            s.support(((x0 + x1) / 2, 0, h), (x1 - x0 - 0.04, d - 0.04), 0.5)
    slab(left, right, -d / 2, -deep / 2)
    slab(left, right, deep / 2, d / 2)


def counter_base(s: Shape, rng: np.random.Generator) -> None:
    """What a counter stands on where nothing opens: a closed front over a recessed plinth."""
    w, d, h = s.size
    face = s.material("front", pick(rng, PAINTS))
    plinth, recess = min(rng.uniform(0.07, 0.1), 0.2 * h), min(0.05, 0.2 * d)
    s.box(face, (0, 0, (h + plinth) / 2), (w, d, h - plinth))
    s.box(DARK, (0, -recess / 2, plinth / 2), (w, d - recess, plinth), without=("top", "bottom"))


def _ring(middle, size, z: float, power: float) -> np.ndarray:
    """A soft rectangle's points at a height, of a size (width, depth)."""
    return np.column_stack([superellipse(CORNERS, power) * np.asarray(size) / 2 + middle, np.full(CORNERS, z)])


def sink(s: Shape, rng: np.random.Generator) -> None:
    """A sink's rim and the outside of its basin; on a foot if it is tall. The inside is a SinkBasin."""
    w, d, h = s.size
    body = s.material("sink", pick(rng, SINKS))
    (x, y, z), (wide, long, _) = basin_of(s.size)
    corners = rng.uniform(0.1, 0.2)
    bottom = max(z - 0.004, 0.0)
    hole = _ring((x, y), (0.97 * wide, 0.97 * long), h, 0.3)
    s.surface(body, loft([_ring((0, 0), (w, d), h - RIM, corners), _ring((0, 0), (w, d), h, corners)]))
    s.surface(body, loft([_ring((0, 0), (w, d), h, corners), hole]))
    s.surface(body, loft([hole, hole - [0, 0, RIM]]))
    s.surface(body, loft([_ring((x, y), (wide, long), bottom, 0.4), _ring((0, 0), (w, d), h - RIM, corners)]))
    s.surface(body, loft([_ring((x, y), (0, 0), bottom, 1), _ring((x, y), (wide, long), bottom, 0.4)]))
    for side in (-1, 1):
        edge = (w - wide) / 2
        s.solid_box((side * (w - edge) / 2, 0, h - RIM / 2), (edge, d, RIM))
    back, front = y - long / 2 + d / 2, d / 2 - y - long / 2
    s.solid_box((0, (back - d) / 2, h - RIM / 2), (wide, back, RIM))
    s.solid_box((0, (d - front) / 2, h - RIM / 2), (wide, front, RIM))
    if bottom > 0.2:
        foot = rng.uniform(0.26, 0.34) * w
        profile = [
            (0.62 * foot, 0),
            (0.6 * foot, 0.03),
            (0.4 * foot, 0.3 * bottom),
            (0.42 * foot, 0.8 * bottom),
            (0.6 * foot, bottom),
        ]
        s.lathe(body, profile, (0, -0.1 * d, 0), segments=12)
        s.solid_box((0, -0.1 * d, bottom / 2), (0.7 * foot, 0.7 * foot, bottom))


def sink_basin(s: Shape, rng: np.random.Generator) -> None:
    """The inside of a sink: an open basin with a drain."""
    w, d, h = s.size
    body = s.material("sink", pick(rng, SINKS))
    power, thin, floor = rng.uniform(0.25, 0.4), 0.014, 0.014
    foot = rng.uniform(0.84, 0.92)
    inner = (w - 2 * thin, d - 2 * thin)
    base = (inner[0] * foot, inner[1] * foot)
    s.surface(body, loft([_ring((0, 0), (w * foot, d * foot), 0, power), _ring((0, 0), (w, d), h, power)]))
    s.surface(body, loft([_ring((0, 0), (w, d), h, power), _ring((0, 0), inner, h, power)]))
    s.surface(body, loft([_ring((0, 0), inner, h, power), _ring((0, 0), base, floor, power)]))
    s.surface(body, loft([_ring((0, 0), base, floor, power), _ring((0, 0), (0, 0), floor, 1)]))
    s.lathe(DARK, [(0.035, floor), (0.03, floor + 0.003), (0, floor + 0.002)], segments=10)
    s.solid_box((0, 0, floor / 2), (w, d, floor))
    for side in (-1, 1):
        s.solid_box((side * (w - thin) / 2, 0, h / 2), (thin, d, h))
        s.solid_box((0, side * (d - thin) / 2, h / 2), (w, thin, h))
    s.space((0, 0, (h + floor) / 2), (*inner, h - floor))
    s.support((0, 0, floor), (0.8 * base[0], 0.8 * base[1]), h + 0.2)


def faucet(s: Shape, rng: np.random.Generator) -> None:
    """A tap that reaches to the front, with one lever, or two handles where there is room."""
    w, d, h = s.size
    metal = s.material("metal", pick(rng, (STEEL, "metal#c9a45c", "metal#5a5d60")))
    bar = float(np.clip(0.05 * h, 0.008, 0.014))
    y = -d / 2 + min(0.03, d / 4)
    arch, tip = rng.uniform(0.55, 0.75) * h, d / 2 - bar
    turns = np.linspace(np.pi, rng.uniform(-0.2, 0.15), 8)
    bow = [((tip + y) / 2 + np.cos(a) * (tip - y) / 2, arch + np.sin(a) * (h - bar - arch)) for a in turns]
    s.tube(metal, [(0, y, 0), *[(0, a, b) for a, b in bow]], bar, segments=8)
    base = min(0.028, d / 4, w / 2)
    s.lathe(
        metal,
        [(base, 0), (base, 0.008), (1.4 * bar, 0.03), (1.4 * bar, 0.3 * h), (bar, 0.32 * h)],
        (0, y, 0),
        segments=10,
    )
    if w > 0.15:
        for side in (-1, 1):
            x = side * (w / 2 - 0.03)
            s.lathe(metal, [(0.024, 0), (0.02, 0.01), (0.012, 0.02), (0.012, 0.05), (0, 0.055)], (x, y, 0), segments=8)
            s.tube(metal, [(x - side * 0.03, y, 0.05), (x + side * 0.028, y, 0.055)], 0.007, segments=6)
            s.solid_box((x, y, 0.03), (0.04, 0.04, 0.06))
    else:
        lever = rotation("z", rng.uniform(-20, 20)) @ [min(0.06, w / 2 - 0.008), 0, 0]
        s.tube(metal, [(0, y, 0.26 * h), lever + [0, y, 0.36 * h]], 0.007, segments=6)
    s.solid_box((0, y, arch / 2), (0.03, 0.03, arch))
    s.solid_box((0, 0, (arch + h) / 2), (2 * bar, d - 2 * bar, h - arch))


def stove_burner(s: Shape, rng: np.random.Generator) -> None:
    """A burner: rings of a coil, or a gas flame's cap under a grate."""
    w, d, h = s.size
    r, scale = w / 2, (1, d / w)
    s.lathe("metal#8b8f93", [(r, 0), (r, 0.25 * h), (0.9 * r, 0.35 * h), (0, 0.2 * h)], scale=scale, segments=16)
    if rng.random() < 0.5:
        rings, fat = int(rng.integers(3, 5)), rng.uniform(0.4, 0.6)
        for i in range(rings):
            a, wide = r * (0.2 + 0.65 * i / (rings - 1)), fat * 0.65 * r / (rings - 1)
            profile = [(a + wide / 2, 0.3 * h), (a + wide / 2, h), (a - wide / 2, h), (a - wide / 2, 0.3 * h)]
            s.lathe(IRON, profile, scale=scale, segments=14)
    else:
        cap = rng.uniform(0.3, 0.42) * r
        s.lathe(IRON, [(cap, 0.2 * h), (cap, 0.7 * h), (0.8 * cap, 0.8 * h), (0, 0.8 * h)], scale=scale, segments=12)
        for angle in (45, -45, 135, -135):
            turn = rotation("z", angle)
            s.surface(
                IRON, box((0.62 * r, 0.07 * r, 0.7 * h), without=("bottom",)), turn @ [0.62 * r, 0, 0.65 * h], turn
            )
    s.solid_box((0, 0, h / 2), (0.72 * w, 0.72 * d, h))
    s.support((0, 0, h), (0.7 * w, 0.7 * d), 0.4)


def stove_knob(s: Shape, rng: np.random.Generator) -> None:
    """A knob with a grip: upright where its box is flat, else it points to the front."""
    w, d, h = s.size
    flat = h < 0.7 * min(w, d)
    wide, tall, long = (w, d, h) if flat else (w, h, d)
    turn, at = (np.eye(3), np.zeros(3)) if flat else (FORWARD, np.array([0, -d / 2, h / 2]))
    knob = s.material("handle", pick(rng, (BLACK, STEEL, "plain#e9e6de")))
    r, base = min(wide, tall) / 2, rng.uniform(0.55, 0.68) * long
    s.lathe(knob, [(r, 0), (r, 0.8 * base), (0.9 * r, base), (0, base)], at, turn, 12)
    spin = rotation("z", rng.choice([0, 45, 90]))
    s.surface(
        knob,
        box((0.34 * r, 1.7 * r, long - base), without=("bottom",)),
        at + turn @ [0, 0, (long + base) / 2],
        turn @ spin,
    )
    s.solid_box((0, 0, h / 2), (0.9 * w, d, h) if flat else (0.9 * w, d, 0.9 * h))


def garbage_can(s: Shape, rng: np.random.Generator) -> None:
    """An open bin, round or square, with a rim."""
    w, d, h = s.size
    body = str(
        pick(rng, ("plain#3a3d40", "metal#b4b8bb", "plain#5c6f7a", "plain#d8d5cc", "plain#6f8a5a", "plain#8a3b32"))
    )
    corners = rng.uniform(0.3, 0.5) if rng.random() < 0.6 else 1.0
    outline, foot = superellipse(16, corners) * [w / 2, d / 2], rng.uniform(0.74, 0.9)
    thin, floor = 0.94, 0.03

    def ring(size: float, z: float) -> np.ndarray:
        return np.column_stack([outline * size, np.full(16, z)])

    s.surface(body, loft([ring(foot, 0), ring(0.97, h - 0.03)]))
    s.surface(body, loft([ring(0.97, h - 0.03), ring(1, h - 0.028), ring(1, h - 0.004), ring(0.985, h), ring(thin, h)]))
    s.surface("plain#2f3133", loft([ring(thin, h), ring(foot * thin, floor)]))
    s.surface("plain#2f3133", loft([ring(foot * thin, floor), ring(0, floor)]))
    s.solid_box((0, 0, floor / 2), (0.8 * foot * w, 0.8 * foot * d, floor))
    middle, wall = (1 + foot) / 2, 0.015
    if corners < 1:
        for side in (-1, 1):
            s.solid_box((side * (middle * w - wall) / 2, 0, h / 2), (wall, middle * d, h))
            s.solid_box((0, side * (middle * d - wall) / 2, h / 2), (middle * w, wall, h))
    else:
        walls_around(s, (middle * w / 2, middle * d / 2), 0, h, wall)
    s.space((0, 0, (h + floor) / 2), (0.66 * w, 0.66 * d, h - floor))
    s.support((0, 0, floor), (0.5 * foot * w, 0.5 * foot * d), h - floor)


def garbage_bag(s: Shape, rng: np.random.Generator) -> None:
    """A full sack, tied at its top."""
    w, d, h = s.size
    plastic = pick(rng, ("plain#2a2c30", "plain#3d4650", "plain#dfe2e2", "plain#2f4a36"))
    waves = rng.uniform(0, 2 * np.pi, 3)
    angles = np.arange(16) * 2 * np.pi / 16
    rings = []
    for reach, z in (
        (0, 0),
        (0.7, 0.01),
        (0.96, 0.14),
        (1, 0.35),
        (0.9, 0.56),
        (0.6, 0.72),
        (0.24, 0.81),
        (0.1, 0.85),
        (0.24, 1),
        (0, 0.94),
    ):
        fold = 0.94 + 0.06 * np.cos(5 * angles + waves[0] + 2 * z) * np.cos(3 * angles + waves[1] + 5 * z)
        rings.append(
            np.column_stack(
                [np.cos(angles) * w / 2 * reach * fold, np.sin(angles) * d / 2 * reach * fold, np.full(16, z * h)]
            )
        )
    s.surface(plastic, loft(rings))
    for angle in (0, 45):
        s.solid_box((0, 0, 0.32 * h), (0.68 * w, 0.68 * d, 0.64 * h), rotation("z", angle))
    s.solid_box((0, 0, 0.7 * h), (0.4 * w, 0.4 * d, 0.4 * h))


TYPES = {
    "CounterBase": ObjectType(counter_base, roles=("front",), size=(0.8, 0.6, 0.86)),
    "CounterTop": ObjectType(counter_top),
    "Faucet": ObjectType(faucet),
    "GarbageBag": ObjectType(garbage_bag),
    "GarbageCan": ObjectType(garbage_can),
    "Sink": ObjectType(sink),
    "SinkBasin": ObjectType(sink_basin),
    "StoveBurner": ObjectType(stove_burner),
    "StoveKnob": ObjectType(stove_knob),
}
