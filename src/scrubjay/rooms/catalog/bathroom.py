"""What a bathroom is fitted with: tub, toilet and shower."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog import toiletries
from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.catalog.shape import Drawn, ObjectType, Shape
from scrubjay.rooms.catalog.skins import CHROME, DARK, FITTINGS, FORWARD, TOWELS, WHITES, pick_tint, sheet, vessel


def _basin_solids(s: Shape, outer, inner, bottom: float, rim: float, y: float = 0.0) -> None:
    """Four walls and a bottom to bump into, and the space between them."""
    (w, d), (wi, di) = outer, inner
    for side in (-1, 1):
        s.solid_box((side * (w + wi) / 4, y, rim / 2), ((w - wi) / 2, d, rim))
        s.solid_box((0, y + side * (d + di) / 4, rim / 2), (wi, (d - di) / 2, rim))
    s.solid_box((0, y, bottom / 2), (wi, di, bottom))
    s.space((0, y, (bottom + rim) / 2), (wi, di, rim - bottom))


def bathtub(s: Shape, rng: np.random.Generator) -> None:
    """A tub, built in behind an apron or free-standing, with a tap at one end."""
    w, d, h = s.size
    ceramic = s.material("ceramic", pick_tint(rng, WHITES))
    metal = s.material("metal", CHROME)
    long_x = w >= d
    rim, bottom = h * s.options.get("rim", 0.86), min(0.16, h * 0.3)
    edge = rng.uniform(0.06, 0.085) * min(w, d)
    end = edge * rng.uniform(1.3, 1.8)
    iw, id_ = (w / 2 - end, d / 2 - edge) if long_x else (w / 2 - edge, d / 2 - end)
    square = rng.uniform(2.8, 6)
    inside = [(iw, id_, rim, square), (iw * 0.97, id_ * 0.96, rim - 0.03, square),
              (iw * 0.86, id_ * 0.82, bottom + 0.05, square), (iw * 0.78, id_ * 0.7, bottom, square),
              (0, 0, bottom, square)]  # fmt: skip
    if rng.random() < 0.6:
        s.box(ceramic, (0, 0, rim / 2), (w, d, rim), solid=False, without=("top", "bottom"))
        s.surface(ceramic, vessel([(w / 2, d / 2, rim, np.inf), *inside], 24))
    else:
        round_ = rng.uniform(2.4, 3.2)
        outside = ((0.36, 0), (0.4, 0.03), (0.45, rim * 0.6), (0.5, rim - 0.02), (0.5, rim))
        inside = [(a * 0.97, b * 0.97, z, round_) for a, b, z, _ in inside]
        s.surface(ceramic, vessel([*[(w * k, d * k, z, round_) for k, z in outside], *inside], 24))
    turn = rotation("z", 0 if long_x else 90)
    length = max(w, d) / 2
    x = length - end * 0.55
    reach = end * 0.9
    for side in (-0.08, 0.08):
        s.cylinder(metal, turn @ (x, side, rim), 0.02, (h - rim) * 0.7, segments=8)
    s.cylinder(metal, turn @ (x, 0, rim), 0.018, h - rim, segments=8)
    s.tube(metal, [turn @ (x, 0, h - 0.02), turn @ (x - reach, 0, h - 0.035)], 0.014, 8)
    s.cylinder(metal, turn @ (length - end - 0.3 * length, 0, bottom), 0.03, 0.004, segments=10)
    _basin_solids(s, (w, d), (2 * iw * 0.9, 2 * id_ * 0.88), bottom, rim)
    s.support((0, 0, bottom), (iw * 1.3, id_ * 1.2), h - bottom)


def bathtub_basin(s: Shape, rng: np.random.Generator) -> None:
    """The inside of a tub: a thin liner with a drain."""
    w, d, h = s.size
    ceramic = s.material("ceramic", pick_tint(rng, WHITES))
    square, t = rng.uniform(3, 6), 0.012
    foot = rng.uniform(0.78, 0.86)
    a, b = w / 2, d / 2
    s.surface(ceramic, vessel([
        (a * foot * 0.9, b * foot * 0.9, 0, square), (a * foot, b * foot, h * 0.15, square), (a, b, h, square),
        (a - t, b - t, h, square), (a * foot - t, b * foot - t, h * 0.17, square),
        (a * foot * 0.88, b * foot * 0.88, t, square), (0, 0, t, square),
    ], 20))  # fmt: skip
    at = (a * foot * 0.6, 0, t) if w > d else (0, b * foot * 0.6, t)
    s.cylinder(s.material("metal", CHROME), at, 0.03, 0.004, segments=10)
    _basin_solids(s, (w, d), (w * 0.88, d * 0.88), t * 1.5, h)
    s.support((0, 0, t * 1.5), (w * foot * 0.8, d * foot * 0.8), h)


def toilet(s: Shape, rng: np.random.Generator) -> None:
    """A toilet: a hollow bowl under a seat and a lid that leans on the tank when open."""
    w, d, h = s.size
    ceramic = s.material("ceramic", pick_tint(rng, WHITES))
    seat = ceramic if rng.random() < 0.5 else pick_tint(rng, ("fbfbf8", "ece4d4", "d8c3a0", "3c3c40", "a8744a"))
    metal = s.material("metal", CHROME)
    rim = min(0.44, h * 0.47) * rng.uniform(0.95, 1.0)
    tank_depth = d * rng.uniform(0.21, 0.25)
    tank_front = -d / 2 + tank_depth
    back, front = tank_front + 0.08, d / 2 - 0.005
    y, b = (back + front) / 2, (front - back) / 2
    a = min(w * 0.46, b * 0.85)
    square = rng.uniform(2.2, 2.7)
    base = rng.uniform(0.5, 0.62)
    bottom = rim * 0.4
    s.surface(ceramic, vessel([
        (a * base, b * 0.75, 0, 3, y - b * 0.25), (a * base * 0.9, b * 0.7, rim * 0.3, 3, y - b * 0.25),
        (a * 0.85, b * 0.9, rim * 0.72, square, y - b * 0.05), (a, b, rim - 0.03, square, y), (a, b, rim, square, y),
        (a * 0.68, b * 0.72, rim, square, y), (a * 0.64, b * 0.66, rim - 0.05, square, y),
        (a * 0.34, b * 0.38, bottom, 2, y - b * 0.08), (0, 0, bottom, 2, y - b * 0.08),
    ], 20))  # fmt: skip
    water = bottom + 0.03
    s.surface(
        "plain#b9d6e2", vessel([(a * 0.42, b * 0.44, water, 2, y - b * 0.07), (0, 0, water, 2, y - b * 0.07)], 12)
    )
    s.surface(seat, vessel([
        (a * 0.97, b * 0.97, rim, square, y), (a, b, rim + 0.022, square, y),
        (a * 0.62, b * 0.68, rim + 0.022, square, y), (a * 0.64, b * 0.7, rim, square, y),
    ], 20))  # fmt: skip
    tank_low, lid_thick = rim * 0.8, 0.04
    tw = w * rng.uniform(0.82, 0.94)
    s.box(ceramic, (0, -d / 2 + tank_depth / 2, (tank_low + h - lid_thick) / 2),
          (tw, tank_depth - 0.02, h - lid_thick - tank_low), solid=False)  # fmt: skip
    s.box(ceramic, (0, -d / 2 + tank_depth / 2, h - lid_thick / 2), (tw + 0.03, tank_depth, lid_thick), solid=False)
    neck = (-d / 2 + tank_depth * 0.3, back + b * 0.3)
    s.box(ceramic, (0, sum(neck) / 2, rim * 0.45), (a * 1.2, neck[1] - neck[0], rim * 0.9), solid=False)
    s.solid_box((0, -d / 2 + tank_depth / 2, (tank_low + h) / 2), (tw + 0.03, tank_depth, h - tank_low))
    s.cylinder(metal, (tw * 0.38, tank_front - 0.012, h * 0.88), 0.016, 0.03, FORWARD, 8)
    s.tube(metal, [(tw * 0.38, tank_front + 0.012, h * 0.88), (tw * 0.22, tank_front + 0.012, h * 0.87)], 0.009, 6)
    _basin_solids(s, (2 * a, 2 * b), (a * 1.24, b * 1.3), bottom, rim, y)
    s.support((0, -d / 2 + tank_depth / 2, h), (tw, tank_depth), 0.4)
    # A long lid leans on the tank before it has turned by 95 degrees.
    lean = min(5.0, np.degrees(np.arcsin(0.045 / (2 * b))))
    lid = s.hinge((1, 0, 0), (0, back - 0.01, rim + 0.035), 90 + lean)
    z = rim + 0.024
    lid.surface(seat, vessel([
        (0, 0, z, 2, y), (a * 0.97, b * 0.97, z, square, y), (a, b, z + 0.012, square, y),
        (a * 0.95, b * 0.95, z + 0.026, square, y), (0, 0, z + 0.032, 2, y),
    ], 20))  # fmt: skip
    lid.box(seat, (0, back - 0.002, rim + 0.034), (a * 1.1, 0.035, 0.02), solid=False)
    lid.solid_box((0, y, z + 0.014), (2 * a * 0.92, 2 * b * 0.95, 0.026))


def _panel(part: Drawn, frame: str, start, end, low: float, high: float, strips: int, strip: float) -> None:
    """A framed pane from one point of the floor to another: clear but for frosted strips, which a camera sees."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    along = end - start
    length = float(np.hypot(*along))
    turn = rotation("z", np.degrees(np.arctan2(along[1], along[0])))
    x, y = (start + end) / 2
    bar = 0.03
    for side in (-1, 1):
        at = (start + end) / 2 + side * along / length * (length - bar) / 2
        part.box(frame, (*at, (low + high) / 2), (bar, bar, high - low), turn, solid=False)
    for z in (low + bar / 2, high - bar / 2):
        part.box(frame, (x, y, z), (length - 2 * bar, bar, bar), turn, solid=False, without=("left", "right"))
    for z in np.linspace(low + (high - low) * 0.3, low + (high - low) * 0.75, strips):
        part.box(
            "plain#dcebee", (x, y, z), (length - 2 * bar, 0.008, strip), turn, solid=False, without=("left", "right")
        )
    part.solid_box((x, y, (low + high) / 2), (length, bar, high - low), turn)


def _glazing(s: Shape, rng: np.random.Generator) -> tuple[str, int, float]:
    """A frame's material, and how many frosted strips of what width."""
    frame = s.material("frame", s.material("metal", pick_tint(rng, FITTINGS, "metal")))
    return frame, int(rng.integers(2, 4)), float(rng.uniform(0.05, 0.16))


def shower_door(s: Shape, rng: np.random.Generator) -> None:
    """A framed glass door that swings outwards."""
    w, d, h = s.size
    frame, strips, width = _glazing(s, rng)
    side = 1.0 if s.options.get("hinge", 1.0) > 0 else -1.0
    # A door whose box is deeper than wide stands along y and swings to +x.
    turn = np.eye(2) if w >= d else np.array([[0.0, 1.0], [-1.0, 0.0]])
    length = max(w, d)
    pivot, edge = turn @ (-side * length / 2, 0), turn @ (side * (length / 2 - 0.02), 0)
    s.box(frame, (*(turn @ (0, 0)), 0.01), (w, min(d, 0.05), 0.02) if w >= d else (min(w, 0.05), d, 0.02), solid=False)
    door = s.hinge((0, 0, side), (*pivot, 0), 85)
    _panel(door, frame, pivot, edge, 0.02, h, strips, width)
    reach = min(0.045, min(w, d) / 2 - 0.01)
    for out in (-reach, reach):
        x, y = turn @ (side * length * 0.41, out)
        door.tube(frame, [(x, y, h * 0.45), (x, y, h * 0.59)], 0.009, 6)
    for z in (h * 0.47, h * 0.57):
        door.tube(frame, [(*(turn @ (side * length * 0.41, out)), z) for out in (-reach, reach)], 0.007, 5)


def shower_glass(s: Shape, rng: np.random.Generator) -> None:
    """A fixed framed pane, or two at a corner where its box is deep."""
    w, d, h = s.size
    frame, strips, width = _glazing(s, rng)
    inset = 0.016
    if min(w, d) < 0.3:
        start, end = ((-w / 2, 0), (w / 2, 0)) if w >= d else ((0, -d / 2), (0, d / 2))
        _panel(s, frame, start, end, 0, h, strips, width)
        return
    side = 1.0 if s.options.get("hinge", 1.0) > 0 else -1.0
    _panel(s, frame, (-w / 2, d / 2 - inset), (w / 2, d / 2 - inset), 0, h, strips, width)
    x = side * (w / 2 - inset)
    _panel(s, frame, (x, -d / 2), (x, d / 2 - inset), 0, h, strips, width)


def shower_curtain(s: Shape, rng: np.random.Generator) -> None:
    """A curtain in three wavy parts on a rod: two slide behind the third."""
    w, d, h = s.size
    fabric = pick_tint(rng, TOWELS, f"printed-{rng.integers(32)}" if rng.random() < 0.6 else "woven")
    side = 1.0 if s.options.get("hinge", 1.0) > 0 else -1.0
    s.tube(s.material("metal", CHROME), [(-w / 2, 0, h - 0.02), (w / 2, 0, h - 0.02)], 0.014, 8)
    third = w / 3
    depth = min(d, 0.16) - 0.02
    folds = max(1.5, third / rng.uniform(0.13, 0.2))
    sway, layer = min(depth * 0.3, third / folds * 0.22), depth * 0.2
    phase, foot = rng.uniform(0, 6.3), 0.02
    for number in range(3):
        part: Drawn = s if number == 0 else s.slide((-side, 0, 0), number * third)
        # Neighbors overlap a little, so that the closed curtain has no gap.
        extra = 0.02 if number < 2 else 0.0
        left = -w / 2 + number * third if side > 0 else w / 2 - (number + 1) * third - extra
        x = np.linspace(left, left + third + extra, max(9, int(folds * 7)))
        y = layer * (1 - number) + sway * np.sin((x + w / 2) / third * 6.28 * folds + phase)
        rows = [np.column_stack([x, y * (0.6 if z > h / 2 else 1.0), np.full(len(x), z)]) for z in (h - 0.035, foot)]
        part.surface(fabric, sheet(np.array(rows)))
        part.solid_box(
            (left + (third + extra) / 2, layer * (1 - number), (h - 0.035 + foot) / 2), (third, sway, h - 0.05 - foot)
        )


def shower_head(s: Shape, rng: np.random.Generator) -> None:
    """A pipe up the wall, a rose that looks down, and a mixer tap."""
    w, d, h = s.size
    metal = s.material("metal", CHROME)
    pipe = min(0.013, w * 0.12)
    rose = min(w / 2, d * 0.45)
    wall = -d / 2 + 0.03
    top, y = h - pipe, d / 2 - rose
    tilt = rng.uniform(0, 18)
    neck = min(0.08, h * 0.1)
    s.tube(metal, [
        (0, wall, h * 0.12), (0, wall, top - 0.03), (0, wall + 0.03, top), (0, y - 0.02, top), (0, y, top - 0.02),
        (0, y, top - neck),
    ], pipe, 8)  # fmt: skip
    profile = [(0, -0.012), (rose * 0.92, -0.012), (rose * 0.96, 0.0), (rose * 0.5, 0.02), (pipe, 0.035)]
    s.lathe(metal, profile, (0, y, top - neck - 0.03), rotation("x", tilt), 14)
    s.lathe(DARK, [(0, -0.0135), (rose * 0.75, -0.0135)], (0, y, top - neck - 0.03), rotation("x", tilt), 14)
    s.tube(metal, [(-w / 2, wall + 0.005, h * 0.12), (w / 2, wall + 0.005, h * 0.12)], min(0.024, w * 0.2), 8)
    for z in (h * 0.12, h * 0.75):
        s.cylinder(metal, (0, -d / 2, z), pipe * 2, 0.03, FORWARD, 8)
    s.solid_box((0, wall, h / 2), (0.03, 0.03, h))
    s.solid_box((0, y, top - neck - 0.02), (rose * 1.6, rose * 1.6, 0.04))


TYPES = {
    "Bathtub": ObjectType(bathtub),
    "BathtubBasin": ObjectType(bathtub_basin),
    "Toilet": ObjectType(toilet, opens=True),
    "ShowerDoor": ObjectType(shower_door, opens=True),
    "ShowerGlass": ObjectType(shower_glass),
    "ShowerCurtain": ObjectType(shower_curtain, opens=True),
    "ShowerHead": ObjectType(shower_head),
    **toiletries.TYPES,
}
