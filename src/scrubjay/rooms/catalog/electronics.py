"""Electric things: screens, clocks, lamps, remote controls and a vacuum cleaner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scrubjay.rooms.catalog.mesh import FACES, Mesh, box, lathe, rotation
from scrubjay.rooms.catalog.shape import Drawn, ObjectType, Shape
from scrubjay.rooms.catalog.skins import BRIGHTS, DARK, FITTINGS, FORWARD, pick_tint

CASES = ("1f2023", "2a2c30", "3a3c40", "17181a")
LIGHTS = ("fff1cf", "ffe3b0", "fbe9d2", "f6d9c4", "e9efe0", "dfe9ef")
PASTELS = ("c74a3c", "3d6f9e", "e3c15a", "7fa88a", "e8e4da", "8f5d86", "2f3136", "d98c4a")
SEGMENTS = ((0, 1, 2, 4, 5, 6), (2, 5), (0, 2, 3, 4, 6), (0, 2, 3, 5, 6), (1, 2, 3, 5), (0, 1, 3, 5, 6),
            (0, 1, 3, 4, 5, 6), (0, 2, 5), (0, 1, 2, 3, 4, 5, 6), (0, 1, 2, 3, 5, 6))  # fmt: skip
"""Which of a digit's bars are lit: top, upper left, upper right, middle, lower left, lower right, bottom."""
BARS = ((0, 1, 1), (-0.5, 0.5, 0), (0.5, 0.5, 0), (0, 0, 1), (-0.5, -0.5, 0), (0.5, -0.5, 0), (0, -1, 1))
"""The bars' places in a digit, (across, up, whether it lies)."""


def plate(part: Drawn, material: str, at, size, face: str, turn: np.ndarray | None = None) -> None:
    """One face of a box with a picture fitted on it: a screen, a keyboard."""
    shown = box(size, tuple(name for name in FACES if name != face), fitted=True)
    part.surface(material, shown, at, np.eye(3) if turn is None else turn)


def disc(radius: float) -> Mesh:
    """A round picture that faces up, its top to +y."""
    flat = lathe([(radius, 0), (0, 0)], 20)
    return replace(flat, uv=np.column_stack([1 + flat.vertices[:, 0] / radius, 1 - flat.vertices[:, 1] / radius]) / 2)


def rounded(width: float, depth: float, radius: float) -> list[tuple[float, float]]:
    """The outline of a rectangle with round corners."""
    corners = [(1, 1, 0), (-1, 1, 90), (-1, -1, 180), (1, -1, 270)]
    return [
        (a * (width / 2 - radius) + radius * np.cos(np.radians(start + angle)),
         b * (depth / 2 - radius) + radius * np.sin(np.radians(start + angle)))
        for a, b, start in corners for angle in (0, 45, 90)
    ]  # fmt: skip


def _screen(rng: np.random.Generator) -> str:
    """One of the screens' pictures."""
    return f"screen-{rng.integers(8)}#ffffff"


def television(s: Shape, rng: np.random.Generator) -> None:
    """A flat screen on a foot or two legs; without them where its box is as thin as the screen."""
    w, d, h = s.size
    case, screen = pick_tint(rng, CASES), _screen(rng)
    thick = min(d, rng.uniform(0.035, 0.06))
    standing = d > 0.12
    low = h * rng.uniform(0.07, 0.13) if standing else 0.0
    y = 0.0 if standing else -d / 2 + thick / 2
    bezel, chin = rng.uniform(0.012, 0.022), rng.uniform(0.02, 0.045)
    s.box(case, (0, y, (low + h) / 2), (w, thick, h - low))
    plate(
        s, screen, (0, y + 0.001, (low + chin + h - bezel) / 2), (w - 2 * bezel, thick, h - low - chin - bezel), "front"
    )
    if not standing:
        return
    if rng.random() < 0.5:
        foot = w * rng.uniform(0.3, 0.45)
        s.prism(case, rounded(foot, d, min(foot, d) * 0.3), 0.015)
        s.box(case, (0, -thick * 0.3, low / 2 + 0.02), (foot * 0.35, thick * 0.7, low + 0.04), solid=False)
        s.solid_box((0, 0, low / 2), (foot, d * 0.9, low))
    else:
        for x in (-w * 0.34, w * 0.34):
            for side in (-1, 1):
                s.tube(case, [(x, 0, low), (x, side * (d / 2 - 0.01), 0.01)], 0.01, 6)
            s.solid_box((x, 0, low / 2), (0.03, d * 0.9, low))


def laptop(s: Shape, rng: np.random.Generator) -> None:
    """A laptop whose lid swings up from flat on its base; its box is that of the open laptop."""
    w, d, h = s.size
    case = pick_tint(rng, ("b9bcc1", "8f9297", "2c2e32", "d9cdbd", "e6e7e9", "4a5a70"), "metal")
    dark = pick_tint(rng, CASES)
    half, top = 0.013, 0.025
    width = w * rng.uniform(0.93, 1.0)
    # The open lid leans back over a quarter of its length.
    depth = min(d / 1.27, h * 1.02, width * rng.uniform(0.66, 0.74))
    back = (1.26 * depth) / 2 - depth
    y = back + depth / 2
    outline = rounded(width, depth, 0.015)
    s.prism(case, outline, half, (0, y, 0))
    plate(
        s,
        "keys#ffffff",
        (0, back + depth * 0.36, half / 2 + 0.0005),
        (width * 0.9, depth * 0.5, half),
        "top",
        rotation("z", 180),
    )
    s.box(dark, (0, back + depth * 0.82, half), (width * 0.3, depth * 0.26, 0.001), solid=False, without=("bottom",))
    s.solid_box((0, y, half / 2), (width, depth, half))
    lid = s.hinge((1, 0, 0), (0, back + 0.006, half + 0.002), 105)
    lid.prism(case, outline, top - half - 0.002, (0, y, half + 0.002))
    plate(lid, dark, (0, y, top - 0.0055), (width * 0.98, depth * 0.97, top - half - 0.002), "bottom")
    plate(lid, _screen(rng), (0, y, top - 0.006), (width * 0.93, depth * 0.88, top - half - 0.002), "bottom")
    lid.ellipsoid(dark, (0, y, top), (width * 0.05, width * 0.05, 0.0015), segments=10, rings=2)
    lid.solid_box((0, y, (half + top) / 2), (width, depth, top - half))


def desktop(s: Shape, rng: np.random.Generator) -> None:
    """A computer: a screen on its foot, a keyboard and mouse before it, a tower beside it where there is room."""
    w, d, h = s.size
    case = pick_tint(rng, (*CASES, "d9d9d6", "c8c4b8"))
    side = 1 if rng.random() < 0.5 else -1
    tower = min(0.18, w * 0.24) if w > 0.5 else 0.0
    width, x = w - tower - (0.03 if tower else 0), -side * (tower + 0.03) / 2 if tower else 0.0
    high = h - min(h * 0.25, 0.12)
    y, low = -d / 2 + min(0.1, d * 0.3), h - high
    s.box(case, (x, y, low + high / 2), (width, 0.04, high))
    plate(s, _screen(rng), (x, y + 0.001, low + high / 2 + 0.005), (width - 0.04, 0.04, high - 0.05), "front")
    s.box(case, (x, y - 0.02, low), (width * 0.12, 0.025, low * 1.8), solid=False)
    s.prism(case, rounded(width * 0.4, min(0.2, d * 0.5), 0.04), 0.012, (x, y, 0))
    s.solid_box((x, y, low / 2), (width * 0.3, min(0.16, d * 0.5), low))
    keys = min(0.14, d * 0.35)
    board, front = min(width * 0.8, 0.44), d / 2 - keys / 2
    s.box(case, (x, front, 0.01), (board, keys, 0.02))
    plate(s, "keys#ffffff", (x, front, 0.0105), (board * 0.96, keys * 0.9, 0.02), "top", rotation("z", 180))
    if tower:
        at = side * (w / 2 - tower / 2)
        tall = h * rng.uniform(0.7, 0.85)
        s.box(case, (at, -d * 0.02, tall / 2), (tower, d * 0.9, tall))
        s.box(pick_tint(rng, BRIGHTS), (at, d * 0.435, tall * 0.85), (tower * 0.3, 0.006, 0.012), solid=False)
        s.box("plain#77797d", (at, d * 0.432, tall * 0.6), (tower * 0.7, 0.004, tall * 0.1), solid=False)


def _slab(s: Shape, slimness: float) -> tuple[float, float, np.ndarray]:
    """The width and length of a flat handheld thing in its box, and the turn that lays it along the longer side."""
    w, d, _ = s.size
    length, across = max(w, d), min(w, d)
    return min(across, length * slimness), length, rotation("z", 90 if w > d else 0)


def cell_phone(s: Shape, rng: np.random.Generator) -> None:
    """A telephone on its back, its screen lit."""
    h = s.size[2]
    width, length, turn = _slab(s, rng.uniform(0.46, 0.52))
    case = pick_tint(rng, ("1c1d20", "e9e6e0", "b0343a", "30507c", "cfae74", "5a6b5f"))
    s.prism(case, rounded(width, length, width * 0.16), h * 0.96, turn=turn)
    plate(s, _screen(rng), (0, 0, h / 2), (width * 0.9, length * 0.86, h), "top", turn)
    s.solid_box((0, 0, h / 2), (width, length, h), turn)


def remote_control(s: Shape, rng: np.random.Generator) -> None:
    """A slim remote control with rows of buttons and a red one."""
    h = s.size[2]
    width, length, turn = _slab(s, rng.uniform(0.24, 0.34))
    case = pick_tint(rng, ("1f2023", "34363a", "8e9196", "dddad2"))
    s.prism(case, rounded(width, length, width * 0.3), h * 0.9, turn=turn)
    pale = pick_tint(rng, ("c9ccd0", "f0efec", "9aa0a6"))
    pitch = width * 0.28
    rows = int(min(9, length * 0.72 // pitch))
    for row in range(rows):
        for x in (-1, 0, 1):
            at = turn @ (x * pitch, length * 0.33 - row * pitch, h * 0.9 + h * 0.05)
            s.box(pale, at, (pitch * 0.62, pitch * 0.5, h * 0.1), turn, solid=False, without=("bottom",))
    s.cylinder("plain#d0302a", turn @ (-pitch, length * 0.43, h * 0.9), pitch * 0.4, h * 0.1, segments=8)
    s.solid_box((0, 0, h / 2), (width, length, h), turn)


def alarm_clock(s: Shape, rng: np.random.Generator) -> None:
    """A clock with two bells, or one with glowing digits."""
    if rng.random() < 0.55:
        _bell_clock(s, rng)
    else:
        _digital_clock(s, rng)


def _bell_clock(s: Shape, rng: np.random.Generator) -> None:
    """A round clock on two feet under two bells."""
    w, d, h = s.size
    paint, metal = pick_tint(rng, PASTELS), pick_tint(rng, FITTINGS, "metal")
    r = min(w / 2, h * 0.4)
    z, thick = r + h * 0.05, min(d, r * rng.uniform(0.8, 1.1))
    s.lathe(paint, [(0, 0), (r * 0.9, 0), (r, thick * 0.12), (r, thick), (r * 0.88, thick), (r * 0.86, thick * 0.9)],
            (0, -thick / 2, z), FORWARD, 18)  # fmt: skip
    s.surface(f"dial-{rng.integers(8)}#ffffff", disc(r * 0.88), (0, thick * 0.41, z), FORWARD @ rotation("z", 180))
    for side in (-1, 1):
        lean = rotation("y", side * 32)
        at = lean @ (0, 0, r * 0.98) + (0, 0, z)
        bell = min(r * 0.42, (h - at[2]) * 1.1)
        s.lathe(metal, [(bell, 0), (bell * 0.8, bell * 0.4), (bell * 0.3, bell * 0.62), (0, bell * 0.66)], at, lean, 10)
        s.tube(metal, [(side * r * 0.45, 0, z - r * 0.7), (side * r * 0.72, 0, r * 0.04)], r * 0.06, 6)
    s.tube(
        metal,
        [(-r * 0.25, 0, z + r * 0.9), (-r * 0.2, 0, h - 0.006), (r * 0.2, 0, h - 0.006), (r * 0.25, 0, z + r * 0.9)],
        r * 0.04,
        5,
    )
    s.solid_box((0, 0, h / 2), (2 * r, thick, h))


def _digital_clock(s: Shape, rng: np.random.Generator) -> None:
    """A soft box with four lit digits."""
    w, d, h = s.size
    case = pick_tint(rng, ("232427", "e9e6df", "6d4a32", "8f3b36", "3a4a5c"))
    glow = pick_tint(rng, ("ff3b2a", "58e06a", "5fb8ff", "ffb02e"), "shade")
    high = min(h, w * 0.6)
    s.ellipsoid(case, (0, 0, high / 2), (w / 2, d / 2, high / 2), segments=16, rings=8, power=0.22)
    face = (w * 0.86, d, high * 0.66)
    s.box("plain#0c0d0f", (0, 0.001, high * 0.5), face, solid=False, without=("bottom", "back", "left", "right", "top"))
    digit = (min(face[0] * 0.13, face[2] * 0.36), face[2] * 0.34)
    time = (int(rng.integers(0, 3)), int(rng.integers(0, 4)), int(rng.integers(0, 6)), int(rng.integers(0, 10)))
    away = ("bottom", "back", "left", "right", "top")
    y, z = d / 2 + 0.002, high * 0.5
    for number, place in zip(time, (0.36, 0.13, -0.13, -0.36), strict=True):
        for bar in SEGMENTS[number]:
            across, up, lies = BARS[bar]
            # Seen from the front, right is -x.
            at = (place * face[0] - across * digit[0], y - 0.002, z + up * digit[1])
            size = (digit[0] * 0.85, 0.005, digit[1] * 0.22) if lies else (digit[0] * 0.24, 0.005, digit[1] * 0.85)
            s.box(glow, at, size, solid=False, without=away)
    for up in (-0.45, 0.45):
        s.box(
            glow,
            (0, y - 0.002, z + up * digit[1]),
            (digit[0] * 0.25, 0.005, digit[0] * 0.25),
            solid=False,
            without=away,
        )
    s.solid_box((0, 0, high / 2), (w, d, high))


def watch(s: Shape, rng: np.random.Generator) -> None:
    """A wristwatch lying on its closed strap, the dial on top."""
    w, d, h = s.size
    strap = pick_tint(rng, ("5a3a24", "2a2a2c", "8a5a34", "26364f", "7a2f2c"), "leather")
    metal = pick_tint(rng, FITTINGS, "metal")
    band = d * rng.uniform(0.36, 0.48)
    a, t = w / 2, 0.003
    z = h * 0.44
    s.lathe(strap, [(a, 0), (a, band), (a - t, band), (a - t, 0), (a, 0)], (0, -band / 2, z), FORWARD, 16, (1, z / a))
    r = min(d / 2, w * 0.4)
    s.lathe(
        metal,
        [(r * 0.9, 0), (r, h * 0.06), (r, h * 0.16), (r * 0.88, h * 0.2), (0, h * 0.2)],
        (0, 0, h * 0.79),
        segments=14,
    )
    s.surface(f"dial-{rng.integers(8)}#ffffff", disc(r * 0.86), (0, 0, h), rotation("z", 90 * int(rng.integers(4))))
    s.solid_box((0, 0, h / 2), (w, d * 0.8, h))


def _shade(s: Shape, rng: np.random.Generator, at, low: float, high: float, height: float) -> None:
    """A lampshade, open below and above."""
    fabric = pick_tint(rng, LIGHTS, "shade")
    s.lathe(fabric, [(low, 0), (high, height), (high * 0.94, height), (low * 0.94, 0), (low, 0)], at, segments=16)


def desk_lamp(s: Shape, rng: np.random.Generator) -> None:
    """A table lamp with a shade, or a lamp on a jointed arm."""
    w, d, h = s.size
    r = min(w, d) / 2
    if rng.random() < 0.6:
        shade = h * rng.uniform(0.36, 0.5)
        body = (
            s.material("ceramic", pick_tint(rng, PASTELS))
            if rng.random() < 0.6
            else s.material("metal", pick_tint(rng, FITTINGS, "metal"))
        )
        foot, belly, neck = r * rng.uniform(0.45, 0.65), r * rng.uniform(0.3, 0.72), r * 0.1
        top = h - shade
        s.lathe(body, [(foot, 0), (foot, 0.012), (foot * 0.6, top * 0.12), (belly, top * rng.uniform(0.35, 0.6)),
                       (belly * 0.6, top * 0.78), (neck, top * 0.88), (neck, h - shade / 2)], segments=14)  # fmt: skip
        _shade(s, rng, (0, 0, top), r, r * rng.uniform(0.5, 0.95), shade)
        s.solid_box((0, 0, top / 2), (belly * 1.6, belly * 1.6, top))
        s.solid_box((0, 0, h - shade / 2), (r * 1.6, r * 1.6, shade))
        return
    paint = pick_tint(rng, PASTELS)
    foot = min(r * 0.6, 0.1)
    y = -d / 2 + foot
    s.cylinder(paint, (0, y, 0), foot, 0.02)
    knee = (0, -d / 2 + 0.01 + foot * 0.4, h * rng.uniform(0.5, 0.6))
    head = min(r * 0.62, h * 0.22, w / 2)
    tip = np.array((0, d / 2 - head * 1.5, h - 0.012))
    s.tube(paint, [(0, y, 0.02), knee], 0.008, 6)
    s.tube(paint, [knee, tip], 0.008, 6)
    lean = rotation("x", 30)
    s.lathe(paint, [(head * 0.9, -head * 1.1), (head * 0.55, -head * 0.3), (head * 0.2, 0), (0, 0)], tip, lean, 14)
    s.lathe("shade#fff3d6", [(0, -head * 0.95), (head * 0.84, -head * 1.02)], tip, lean, 14)
    s.solid_box((0, y, 0.01), (foot * 1.7, foot * 1.7, 0.02))
    s.solid_capsule((0, y, 0.02), knee, 0.012)
    s.solid_box((0, tip[1] + head * 0.3, tip[2] - head * 0.55), (head * 1.5, head * 1.5, head))


def floor_lamp(s: Shape, rng: np.random.Generator) -> None:
    """A tall lamp: a shade on a pole, on three legs, or a bowl that shines upwards."""
    w, d, h = s.size
    r = min(w, d) / 2
    kind = rng.integers(3)
    metal = s.material("metal", pick_tint(rng, FITTINGS, "metal"))
    shade = h * rng.uniform(0.16, 0.23)
    top = h - shade
    if kind == 0:
        wood = s.material("wood", pick_tint(rng, ("b98a56", "8a5a34", "d6b27c"), "wood"))
        for turn in (90, 210, 330):
            x, y = r * 0.85 * np.cos(np.radians(turn)), r * 0.85 * np.sin(np.radians(turn))
            s.tube(wood, [(x, y, 0.012), (x * 0.08, y * 0.08, top)], 0.014, 6)
        s.solid_box((0, 0, 0.1), (r * 1.3, r * 1.3, 0.2))
    else:
        foot = r * rng.uniform(0.5, 0.65)
        s.lathe(metal, [(foot, 0), (foot, 0.02), (0.03, 0.04), (0.013, 0.06), (0.013, top + shade * 0.4)], segments=14)
        s.solid_box((0, 0, 0.015), (foot * 1.7, foot * 1.7, 0.03))
    s.solid_capsule((0, 0, 0), (0, 0, top), 0.025)
    if kind == 2:
        bowl = shade * 0.55
        s.lathe(
            metal, [(0.02, 0), (r * 0.6, bowl * 0.35), (r * 0.95, bowl), (r * 0.9, bowl)], (0, 0, h - bowl), segments=16
        )
        s.lathe("shade#fff3d6", [(r * 0.9, bowl * 0.96), (0, bowl * 0.9)], (0, 0, h - bowl), segments=16)
        s.tube(metal, [(0, 0, top), (0, 0, h - bowl)], 0.013, 6)
        s.solid_box((0, 0, h - bowl / 2), (r * 1.5, r * 1.5, bowl))
    else:
        _shade(s, rng, (0, 0, top), r, r * rng.uniform(0.5, 0.95), shade)
        s.solid_box((0, 0, h - shade / 2), (r * 1.6, r * 1.6, shade))


def vacuum_cleaner(s: Shape, rng: np.random.Generator) -> None:
    """An upright vacuum cleaner: a wide head in front, a bright bin, a hose and a long handle."""
    w, d, h = s.size
    paint, case = pick_tint(rng, BRIGHTS[:7]), pick_tint(rng, CASES)
    head = d * 0.42
    s.ellipsoid(case, (0, d / 2 - head / 2, 0.06), (w * 0.42, head / 2, 0.06), segments=14, rings=6, power=0.4)
    s.box(paint, (0, d / 2 - head * 0.4, 0.118), (w * 0.6, head * 0.4, 0.012), solid=False)
    lean, r = 10.0, min(w, d) * rng.uniform(0.21, 0.25)
    turn = rotation("x", lean)
    foot = np.array((0, d * 0.06, 0.05))
    length = (h - 0.08) / np.cos(np.radians(lean)) - 0.02

    def up(amount: float, ahead: float = 0.0, right: float = 0.0) -> np.ndarray:
        return foot + turn @ (right, ahead, amount * length)

    s.lathe(case, [(r * 0.9, 0), (r, 0.03), (r, length * 0.16), (r * 0.8, length * 0.18)], foot, turn, 14)
    s.lathe(
        paint,
        [(r * 0.86, 0), (r * 0.9, length * 0.28), (r * 0.6, length * 0.36), (0, length * 0.37)],
        up(0.16),
        turn,
        14,
    )
    s.tube(case, [up(0.5), up(0.9), up(0.98, 0.05), up(1.0, 0.12)], 0.016, 8)
    hose = [
        up(0.6, 0.0, r * 0.2),
        up(0.55, 0, r * 0.8),
        up(0.35, 0, r * 1.3),
        up(0.12, 0, r * 1.25),
        up(0.03, 0.02, r * 0.8),
    ]
    s.tube("plain#8d9095", hose, 0.017, 6)
    s.solid_box((0, d / 2 - head / 2, 0.06), (w * 0.84, head, 0.12))
    s.solid_box(up(0.27), (r * 1.8, r * 1.8, length * 0.5), turn)
    s.solid_capsule(up(0.5), up(1.0), 0.02)


def compact_disc(s: Shape, rng: np.random.Generator) -> None:
    """A disc with a hole and a printed ring."""
    w, d, h = s.size
    r = min(w, d) / 2
    silver = pick_tint(rng, ("d9dce4", "cfd8e6", "e0d8e6", "d6e4dc"), "metal")
    s.lathe(silver, [(r, 0), (r, h * 0.8), (r * 0.15, h * 0.8)], segments=20)
    ring = rng.uniform(0.5, 0.9)
    s.lathe(pick_tint(rng, BRIGHTS), [(ring * r, h), (rng.uniform(0.25, 0.4) * r, h)], segments=20)
    s.lathe(DARK, [(r * 0.15, h * 0.82), (0, h * 0.82)], segments=10)
    s.solid_box((0, 0, h / 2), (r * 1.7, r * 1.7, h))


TYPES = {
    "Television": ObjectType(television),
    "Laptop": ObjectType(laptop, opens=True),
    "Desktop": ObjectType(desktop),
    "CellPhone": ObjectType(cell_phone),
    "RemoteControl": ObjectType(remote_control),
    "AlarmClock": ObjectType(alarm_clock),
    "Watch": ObjectType(watch),
    "DeskLamp": ObjectType(desk_lamp),
    "FloorLamp": ObjectType(floor_lamp),
    "VacuumCleaner": ObjectType(vacuum_cleaner),
    "CD": ObjectType(compact_disc, round=True),
}
