"""Appliances: large ones with doors, and small ones for the counter.

Doors are right or left as seen from the front, so a hinge on the right is at -x.
"""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.cutlery import BLACK, STEEL, lengthwise
from scrubjay.rooms.catalog.joinery import FORWARD, pick
from scrubjay.rooms.catalog.mesh import Mesh, box
from scrubjay.rooms.catalog.shape import Drawn, Moving, ObjectType, Shape

BODIES = (
    "plain#f1f0ec",
    "metal#c6cacd",
    "metal#a9adb1",
    "plain#dcdfe0",
    "metal#55595d",
    "plain#e8dfc9",
    "plain#a9c4c0",
)
GLASS = "plain#15171b"
GREY = "plain#3c3f43"
LINING = "plain#eef1f2"
SHELF = "plain#b9d3d8"


def carcass(s: Shape, outside: str, inside: str, low, high, wall: float) -> tuple[np.ndarray, np.ndarray]:
    """A cabinet between two corners, open to the front; returns the middle and the size of its inside."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    middle, size = (low + high) / 2, high - low
    room = size - [2 * wall, wall, 2 * wall]
    center = middle + [0, wall / 2, 0]
    side, end = [(size[0] - wall) / 2, 0, 0], [0, 0, (size[2] - wall) / 2]
    upright, level = (wall, size[1], room[2]), (size[0], size[1], wall)
    s.box(outside, middle - side, upright, without=("right", "back", "top", "bottom"))
    s.box(outside, middle + side, upright, without=("left", "back", "top", "bottom"))
    s.box(outside, middle - end, level, without=("top", "back", "bottom"))
    s.box(outside, middle + end, level, without=("bottom", "back"))
    s.solid_box(middle - [0, (size[1] - wall) / 2, 0], (size[0], wall, size[2]))
    lining = box(room, without=("front",))
    s.surface(inside, Mesh(lining.vertices, -lining.normals, lining.uv, lining.faces[:, ::-1]), center)
    s.space(center, room)
    return center, room


def side_door(s: Shape, left: float, right: float, front: float, on_right: bool) -> Moving:
    """A door from x `left` to x `right` whose face is at y `front`; it swings outwards about an upright edge."""
    return s.hinge((0, 0, 1 if on_right else -1), (left if on_right else right, front, 0), 95)


def handle_bar(part: Drawn, material: str, start, end, front: float) -> None:
    """A bar between two points, on two posts that reach back to the door's face at y `front`."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    part.tube(material, [start, end], 0.009, segments=6)
    for t in (0.08, 0.92):
        x, y, z = start + (end - start) * t
        part.box(material, (x, (y + front) / 2, z), (0.014, y - front, 0.014), solid=False, without=("front", "back"))
    part.solid_box((start + end) / 2, np.abs(end - start) + 0.016)


def fridge(s: Shape, rng: np.random.Generator) -> None:
    """A fridge with a shelved door, and a freezer above or below it that stays shut."""
    w, d, h = s.size
    body = s.material("appliance", pick(rng, BODIES))
    metal = s.material("handle", pick(rng, (STEEL, BLACK)))
    wall, thick, foot = 0.04, 0.05, 0.06
    front = d / 2 - 0.035
    back = front - thick
    freezer = rng.uniform(0.24, 0.32) * h
    above = rng.random() < 0.6
    low, high = (foot, h - freezer) if above else (foot + freezer, h)
    center, room = carcass(s, body, LINING, (-w / 2, -d / 2, low), (w / 2, back, high), wall)
    cold = (high, h) if above else (foot, low)
    middle, tall = sum(cold) / 2, cold[1] - cold[0]
    s.box(body, (0, (back - d / 2) / 2, middle), (w, back + d / 2, tall), without=("back", "bottom"))
    s.box(body, (0, front - thick / 2, middle), (w, thick, tall - 0.012), without=("back",))
    seam = high if above else low
    s.box(GREY, (0, front - 0.025, seam), (0.99 * w, 0.04, 0.012), solid=False)
    s.box(GREY, (0, -0.03, foot / 2), (0.94 * w, d - 0.06, foot), without=("back", "bottom", "top"))
    bars = 3 if room[2] > 0.8 else 2
    deep, gap = room[1] - 0.11, room[2] / (bars + 1)
    for i in range(bars + 1):
        z = center[2] - room[2] / 2 + gap * i * rng.uniform(0.97, 1.0)
        if i:
            s.box(SHELF, (0, center[1] - 0.055, z - 0.008), (room[0], deep, 0.016), without=("back", "left", "right"))
        s.support((0, center[1] - 0.055, z), (room[0] - 0.06, deep - 0.04), gap - 0.06)
    on_right = s.options.get("hinge", 1.0) > 0
    door = side_door(s, -w / 2, w / 2, front, on_right)
    middle, tall = (low + high) / 2, high - low - 0.012
    door.box(body, (0, front - thick / 2, middle), (w, thick, tall), without=("back",))
    door.box(LINING, (0, back + 0.001, middle), (w, 0.002, tall), solid=False, without=("front",))
    for i in range(3):
        z = center[2] + room[2] * (i - 1.1) * 0.32
        door.box(LINING, (0, back - 0.045, z), (0.86 * room[0], 0.09, 0.09), without=("front",))
    grip = (0.5 * w - 0.06) * (1 if on_right else -1)
    tall = rng.uniform(0.3, 0.5) * (high - low)
    near = high - tall - (0.06 if above else 0.1)
    handle_bar(door, metal, (grip, d / 2 - 0.012, near), (grip, d / 2 - 0.012, near + tall), front)
    start = cold[0] + 0.06 if above else cold[1] - 0.06 - 0.4 * freezer
    handle_bar(s, metal, (grip, d / 2 - 0.012, start), (grip, d / 2 - 0.012, start + 0.4 * freezer), front)


def microwave(s: Shape, rng: np.random.Generator) -> None:
    """A microwave with a dark window, its buttons beside the door."""
    w, d, h = s.size
    body = s.material("appliance", pick(rng, BODIES))
    on_right = s.options.get("hinge", -1.0) > 0
    side = 1 if on_right else -1
    thick, front = 0.03, d / 2 - 0.025
    panel = rng.uniform(0.2, 0.26) * w
    wall = 0.02
    low = [-w / 2, -d / 2, 0.01]
    high = [w / 2, front - thick, h]
    # The buttons' housing takes the side away from the hinge, from the front to the back.
    edge = side * (w / 2 - panel)
    (low if side < 0 else high)[0] = edge
    center, room = carcass(s, body, "plain#cfd2d0", low, high, wall)
    at, face = side * (w - panel) / 2, front + 0.002
    s.box(body, (at, -0.0125, (h + 0.01) / 2), (panel, d - 0.025, h - 0.01), without=("back", "bottom"))
    keys = box((0.7 * panel, 0.004, 0.5 * h), without=("back",), fitted=True)
    s.surface(pick(rng, ("keys-2#ffffff", "keys-3#ffffff")), keys, (at, face, 0.4 * h))
    s.box(GLASS, (at, face, 0.8 * h), (0.76 * panel, 0.004, 0.14 * h), solid=False, without=("back",))
    floor = center[2] - room[2] / 2
    s.cylinder("plain#a8bcc0", (center[0], center[1], floor), 0.42 * min(room[:2]), 0.01, segments=14)
    s.support((center[0], center[1], floor + 0.01), (room[0] - 0.06, room[1] - 0.06), room[2] - 0.03)
    left, right = min(-side * w / 2, edge), max(-side * w / 2, edge)
    door = side_door(s, left, right, front, on_right)
    middle, wide, tall, pane = (left + right) / 2, right - left - 0.004, h - 0.014, rng.uniform(0.6, 0.72) * h
    door.box(body, (middle, front - thick / 2, (h + 0.01) / 2), (wide, thick, tall))
    for y, hidden in ((front + 0.001, "back"), (front - thick - 0.001, "front")):
        door.box(GLASS, (middle - side * 0.02, y, h / 2), (0.76 * wide, 0.003, pane), solid=False, without=(hidden,))
    grip, reach = edge - side * 0.03, d / 2 - 0.011
    handle_bar(door, s.material("handle", STEEL), (grip, reach, 0.2 * h), (grip, reach, 0.84 * h), front)


def drop_door(s: Shape, bottom: float, front: float) -> Moving:
    """A door whose face is at y `front`; it swings down about its lower edge."""
    return s.hinge((-1, 0, 0), (0, front, bottom), 88)


def oven(s: Shape, rng: np.random.Generator) -> None:
    """An oven with a window in its door and a black plate on top; with the option `shut` its door does not open."""
    w, d, h = s.size
    body = s.material("appliance", pick(rng, BODIES))
    metal = s.material("handle", STEEL)
    thick, front = 0.035, d / 2 - 0.035
    low, high, plate = 0.13 * h, rng.uniform(0.8, 0.85) * h, 0.012
    center, room = carcass(s, body, "plain#4b4d50", (-w / 2, -d / 2, low), (w / 2, front - thick, high), 0.03)
    deep = d - 0.035
    s.box(body, (0, -0.0175, (high + h - plate) / 2), (w, deep, h - plate - high), without=("back", "top"))
    s.box(GLASS, (0, -0.012, h - plate / 2), (w, d - 0.024, plate), without=("back",))
    for z in (low - 0.004, high - 0.004):
        s.box(GLASS, (0, front - 0.014, z), (0.99 * w, 0.03, 0.008), solid=False)
    s.box(body, (0, -0.0175, low / 2), (w, deep, low), without=("back", "bottom"))
    band = (h - plate - high) * 0.5
    s.box(
        GLASS,
        (0, front + 0.002, (high + h - plate) / 2),
        (rng.uniform(0.2, 0.34) * w, 0.005, band),
        solid=False,
        without=("back",),
    )
    rack = center[2] - 0.08 * room[2]
    floor = center[2] - room[2] / 2
    for y in np.linspace(-0.42, 0.42, 6) * room[1]:
        s.box(metal, (0, center[1] + y, rack), (room[0], 0.008, 0.008), solid=False, without=("left", "right", "back"))
    s.solid_box((0, center[1], rack), (room[0], 0.9 * room[1], 0.012))
    s.support((0, center[1], floor), (room[0] - 0.06, room[1] - 0.06), rack - floor - 0.02)
    s.support((0, center[1], rack + 0.006), (room[0] - 0.06, 0.8 * room[1]), floor + room[2] - rack - 0.03)
    door = s if s.options.get("shut") else drop_door(s, low, front)
    tall = high - low - 0.008
    door.box(body, (0, front - thick / 2, low + tall / 2), (w - 0.006, thick, tall))
    window = (rng.uniform(0.66, 0.8) * w, rng.uniform(0.5, 0.6) * tall)
    for y, hidden in ((front + 0.001, "back"), (front - thick - 0.001, "front")):
        door.box(GLASS, (0, y, low + 0.45 * tall), (window[0], 0.003, window[1]), solid=False, without=(hidden,))
    grip = low + 0.88 * tall
    handle_bar(door, metal, (-0.42 * w, d / 2 - 0.014, grip), (0.42 * w, d / 2 - 0.014, grip), front)


def dishwasher(s: Shape, rng: np.random.Generator) -> None:
    """A dishwasher with two racks behind a door that swings down."""
    w, d, h = s.size
    body = s.material("appliance", pick(rng, BODIES))
    metal, face = s.material("handle", STEEL), s.material("front", body)
    thick, front, low = 0.04, d / 2 - 0.03, 0.12 * h
    center, room = carcass(s, body, "metal#b9bec2", (-w / 2, -d / 2, low), (w / 2, front - thick, h), 0.025)
    s.box(GREY, (0, -0.06, low / 2), (0.96 * w, d - 0.12, low), without=("back", "bottom", "top"))
    floor = center[2] - room[2] / 2
    racks = (floor + 0.04, floor + rng.uniform(0.5, 0.58) * room[2])
    for z, top in zip(racks, (racks[1] - 0.03, floor + room[2] - 0.02), strict=True):
        for x in np.linspace(-0.46, 0.46, 5) * room[0]:
            s.box(GREY, (x, center[1], z), (0.008, 0.94 * room[1], 0.008), solid=False, without=("back", "bottom"))
        s.box(GREY, (0, center[1] + 0.46 * room[1], z + 0.045), (0.94 * room[0], 0.008, 0.012), solid=False)
        s.box(GREY, (0, center[1] + 0.46 * room[1], z), (0.94 * room[0], 0.008, 0.012), solid=False)
        s.solid_box((0, center[1], z), (0.94 * room[0], 0.94 * room[1], 0.012))
        s.support((0, center[1], z + 0.006), (0.84 * room[0], 0.8 * room[1]), top - z - 0.02)
    door = drop_door(s, low, front)
    tall = h - low - 0.006
    strip_height = rng.uniform(0.13, 0.18) * tall
    door.box(
        face,
        (0, front - thick / 2, low + (tall - strip_height) / 2),
        (w - 0.006, thick, tall - strip_height),
        without=("top",),
    )
    door.box(
        GREY,
        (0, front - thick / 2, low + tall - strip_height / 2),
        (w - 0.006, thick, strip_height),
        without=("bottom",),
    )
    door.box(
        "metal#b9bec2",
        (0, front - thick - 0.001, low + 0.46 * tall),
        (0.88 * w, 0.004, 0.84 * tall),
        solid=False,
        without=("front",),
    )
    bar = low + tall - 1.35 * strip_height
    handle_bar(door, metal, (-0.36 * w, d / 2 - 0.012, bar), (0.36 * w, d / 2 - 0.012, bar), front)


def coffee_machine(s: Shape, rng: np.random.Generator) -> None:
    """A coffee machine: a tower with a head over a glass jug."""
    w, d, h = s.size
    body = s.material("appliance", pick(rng, ("plain#2b2c2f", "metal#b4b8bb", "plain#a3302a", "plain#ece8de")))
    tower, head, base = rng.uniform(0.36, 0.42) * d, rng.uniform(0.26, 0.32) * h, 0.08 * h
    s.box(body, (0, (tower - d) / 2, h / 2), (w, tower, h), without=("bottom",))
    s.box(body, (0, tower / 2, h - head / 2), (w, d - tower, head), without=("back",))
    s.box(body, (0, tower / 2, base / 2), (w, d - tower, base), without=("back", "bottom"))
    s.box(
        STEEL,
        (0, tower / 2, base + 0.002),
        (0.8 * w, 0.8 * (d - tower), 0.006),
        solid=False,
        without=("bottom", "back"),
    )
    s.box(
        GLASS, (0.12 * w, d / 2 - 0.001, h - 0.45 * head), (0.4 * w, 0.008, 0.34 * head), solid=False, without=("back",)
    )
    s.cylinder(STEEL, (-0.28 * w, d / 2 - 0.012, h - 0.45 * head), 0.22 * head, 0.014, FORWARD, 10)
    r, tall = min(0.34 * w, 0.42 * (d - tower)), h - head - base
    jug = [(0, 0), (0.9, 0), (1, 0.25), (0.8, 0.7), (0.6, 0.84), (0.62, 0.9), (0, 0.94)]
    y = tower / 2 - 0.04 * d
    s.lathe("plain#3a2a22", [(r * a, base + 0.005 + tall * b) for a, b in jug], (0, y, 0), segments=12)
    bow = [
        (0, y + 0.6 * r, 0.78),
        (0, min(y + 1.35 * r, d / 2 - 0.012), 0.74),
        (0, min(y + 1.3 * r, d / 2 - 0.012), 0.25),
        (0, y + r, 0.2),
    ]
    s.tube(STEEL, [(a, b, base + tall * c) for a, b, c in bow], 0.01, segments=6)
    s.solid_box((0, y, base + 0.45 * tall), (1.5 * r, 1.5 * r, 0.9 * tall))


def toaster(s: Shape, rng: np.random.Generator) -> None:
    """A toaster with two slots along its longer side and a lever at one end."""
    w, d, h = s.size
    across, length, turn = lengthwise(s)
    body = s.material(
        "appliance", pick(rng, ("metal#cfd3d6", "plain#a3302a", "plain#8fc1b5", "plain#e8dfc9", "plain#2f4858"))
    )
    s.ellipsoid(
        body,
        (0, 0, 0.51 * h),
        (w / 2, d / 2 - (0.015 if d >= w else 0), 0.47 * h),
        segments=16,
        rings=8,
        power=rng.uniform(0.25, 0.4),
    )
    foot = 0.12 * h
    s.box(GREY, (0, 0, foot / 2), (0.8 * w, 0.8 * d, foot), solid=False, without=("bottom",))
    slot, apart = rng.uniform(0.62, 0.74) * length, rng.uniform(0.16, 0.2) * across
    for side in (-1, 1):
        s.surface(
            GREY,
            box((0.14 * across, slot, 0.02), without=("bottom",)),
            turn @ [side * apart, 0, 0.987 * h - 0.01],
            turn,
        )
    s.surface(
        GREY, box((0.24 * across, 0.04, 0.08 * h)), turn @ [0, length / 2 - 0.02, rng.uniform(0.55, 0.72) * h], turn
    )
    s.solid_box((0, 0, h / 2), (0.94 * w, 0.94 * d, 0.98 * h))


TYPES = {
    "CoffeeMachine": ObjectType(coffee_machine),
    "Dishwasher": ObjectType(dishwasher, opens=True),
    "Fridge": ObjectType(fridge, opens=True),
    "Microwave": ObjectType(microwave, opens=True),
    "Oven": ObjectType(oven, opens=True),
    "Toaster": ObjectType(toaster),
}
