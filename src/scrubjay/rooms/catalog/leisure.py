"""Things for spare time: sports, toys, reading, writing, and what lies about in pockets."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.electronics import plate
from scrubjay.rooms.catalog.mesh import concatenate, rotation, tube
from scrubjay.rooms.catalog.shape import ObjectType, Shape
from scrubjay.rooms.catalog.skins import BRIGHTS, DARK, FITTINGS, FORWARD, SIDEWAYS, TOWELS, pick_tint, sheet, vessel

COVERS = ("8c2f2b", "2d4a73", "35603f", "b98a2e", "5b3a63", "24262b", "c96f3b", "3d7f86")
FURS = ("a8743f", "8a5a34", "d2ab73", "e6d6bd", "6b4a30", "b9b3a8", "d99fa8")
LEATHERS = ("4a2f1d", "6f4526", "2a2522", "8a5a2f", "3d4a35", "7d2e2a")


def _lay(s: Shape, thick: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Where a long thing starts in its box, the turn from up to its direction, and its length.

    It lies along the longest side; an upright box with room for it makes it lean against what is behind.
    """
    w, d, h = s.size
    if h >= max(w, d):
        run = max(0.0, d - thick)
        lean = np.degrees(np.arctan2(run, h - thick))
        length = float(np.hypot(run, h - thick))
        return np.array((0, run / 2, thick * 0.25)), rotation("x", lean), length
    if w >= d:
        return np.array((-w / 2, 0, thick / 2)), SIDEWAYS, w
    return np.array((0, -d / 2, thick / 2)), FORWARD, d


def baseball_bat(s: Shape, rng: np.random.Generator) -> None:
    """A bat with a knob and a wrapped grip, leaning or lying."""
    thick = min(0.07, *sorted(s.size)[:2])
    start, turn, length = _lay(s, thick)
    r = thick / 2
    barrel = pick_tint(rng, ("d9ae74", "c08a50", "e6c896", "7d4a2a"), "wood")
    if rng.random() < 0.3:
        barrel = pick_tint(rng, ("b9bcc1", "2a4a8a", "a8302a", "2a2b2e"), "metal")
    grip = pick_tint(rng, ("2b2b2e", "7a2f2a", "e8e4da", "28406a"), "leather")
    # The barrel is below: a bat leans on its heavy end.
    waist = rng.uniform(0.48, 0.56)
    outline = [
        (0, 0),
        (0.75 * r, 0.004),
        (r, 0.03),
        (r, 0.3 * length),
        (0.6 * r, waist * length),
        (0.4 * r, 0.64 * length),
    ]
    s.lathe(barrel, [*outline, (0.38 * r, 0.7 * length)], start, turn, 12)
    knob = [(0.42, 0.68), (0.4, 0.96), (0.7, 0.975), (0.7, 0.99), (0, 1)]
    s.lathe(grip, [(a * r, b * length) for a, b in knob], start, turn, 10)
    s.solid_capsule(start + turn @ (0, 0, 0.005), start + turn @ (0, 0, 0.55 * length), r * 0.95)
    s.solid_capsule(start + turn @ (0, 0, 0.5 * length), start + turn @ (0, 0, length * 0.99), max(0.5 * r, 0.01))


def basket_ball(s: Shape, rng: np.random.Generator) -> None:
    """An orange ball with black seams."""
    half = np.array(s.size) / 2
    middle = np.array((0, 0, half[2]))
    leather = pick_tint(rng, ("d0682c", "c85a22", "d97a3a", "b8542a"), "leather")
    turn = rotation("z", rng.uniform(0, 360)) @ rotation("x", rng.uniform(0, 360))
    s.ellipsoid(leather, middle, half * 0.985, turn if np.ptp(half) < 1e-3 else np.eye(3), 18, 12)
    around = np.linspace(0, 2 * np.pi, 25)
    circle = np.column_stack([np.zeros(25), np.cos(around), np.sin(around)])
    bend = np.column_stack([np.full(25, 0.58), 0.815 * np.cos(around), 0.815 * np.sin(around)])
    seams = [circle, circle @ rotation("y", 90).T, bend, bend * [-1, 1, 1]]
    for seam in seams:
        side = np.gradient(seam, axis=0)
        side = np.cross(seam, side / np.linalg.norm(side, axis=1, keepdims=True))
        edges = np.stack([seam + 0.025 * side, seam - 0.025 * side])
        edges /= np.linalg.norm(edges, axis=2, keepdims=True)
        s.surface("plain#2a1a12", sheet((edges @ turn.T) * half * 0.992, 0), middle)
    r = min(half)
    s.solid_capsule(middle - (0, 0, r), middle + (0, 0, r), r * 0.99)


def tennis_racket(s: Shape, rng: np.random.Generator) -> None:
    """A racket with strings and a wrapped grip, leaning or lying."""
    w, d, h = s.size
    thick = min(0.03, *s.size)
    upright = h >= max(w, d)
    start, turn, length = _lay(s, thick)
    if not upright:
        turn = turn if w < d else rotation("z", -90) @ FORWARD
    across = w if upright or w < d else d
    slim = rng.uniform(0.17, 0.2)
    frame = pick_tint(rng, ("c8302a", "2a5fa8", "2b2b2e", "e0b02a", "3a9a6a", "d9d9d9"))
    grip = pick_tint(rng, ("2b2b2e", "6a4a30", "e8e4da"), "leather")
    # Grip below when it leans, so that the strings show.
    a, b = min(across / 2, slim * length) - 0.008, 0.24 * length
    middle = length - b - 0.008
    angle = np.linspace(-np.pi / 2, 1.5 * np.pi, 25)

    def place(x: float, z: float) -> np.ndarray:
        return start + turn @ (x, 0, z)

    s.tube(frame, [place(a * np.cos(t), middle + b * np.sin(t)) for t in angle], 0.009, 6)
    for side in (-1, 1):
        s.tube(frame, [place(side * a * 0.62, middle - b * 0.76), place(side * 0.006, 0.36 * length)], 0.008, 5)
    s.tube(grip, [place(0, 0.004), place(0, 0.37 * length)], min(0.015, thick / 2), 8)
    strings = []
    for u in np.linspace(-0.8, 0.8, 7):
        v = np.sqrt(1 - u * u)
        strings.append(tube([place(a * u, middle - b * v), place(a * u, middle + b * v)], 0.0018, 3))
        strings.append(tube([place(-a * v, middle + b * u), place(a * v, middle + b * u)], 0.0018, 3))
    s.surface("plain#f1efe2", concatenate(strings))
    s.solid_box(place(0, middle), (2 * a, thick * 0.6, 2 * b), turn)
    s.solid_capsule(place(0, 0.005), place(0, 0.4 * length), 0.013)


def dumbbell(s: Shape, rng: np.random.Generator) -> None:
    """A bar between two weights, six-sided or round."""
    w, d, h = s.size
    r = min(h, min(w, d)) / 2
    length = max(w, d)
    turn = SIDEWAYS if w >= d else FORWARD
    weight = pick_tint(rng, ("2a2b2e", "3d4046", "8a2f2c", "2f5f8a", "7a4a86"))
    end = length * rng.uniform(0.26, 0.34)
    sides = 6 if rng.random() < 0.5 else 16
    for side in (-1, 1):
        at = turn @ (0, 0, -length / 2 if side < 0 else length / 2 - end) + (0, 0, r)
        profile = [(0, 0), (r * 0.8, 0), (r, end * 0.15), (r, end * 0.85), (r * 0.8, end), (0, end)]
        spin = rotation("z", 0 if sides == 16 or w < d else 30)
        s.lathe(weight, profile, at, turn @ spin, sides, smooth=20)
        s.solid_box(at + turn @ (0, 0, end / 2), (r * 1.75, r * 1.75, end), turn)
    left, right = (turn @ (0, 0, side * (length / 2 - end)) + (0, 0, r) for side in (-1, 1))
    s.tube(s.material("metal", "metal#c4c7ca"), [left, right], r * 0.28, 8)
    s.solid_capsule(left, right, min(max(r * 0.28, 0.01), r))


def teddy_bear(s: Shape, rng: np.random.Generator) -> None:
    """A sitting teddy bear with a bow."""
    w, d, h = s.size
    fur = pick_tint(rng, FURS, "carpet")
    pale = pick_tint(rng, ("ecd9b8", "d9bf94", "f2e6d2"), "carpet")
    ribbon = pick_tint(rng, BRIGHTS[:7])
    head = h * rng.uniform(0.19, 0.215)
    z = h - head * 1.12
    y = -d * 0.12
    s.ellipsoid(fur, (0, -d * 0.16, h * 0.31), (w * 0.27, d * 0.3, h * 0.31), segments=10, rings=6)
    s.ellipsoid(fur, (0, y, z), (head * 1.08, head, head * 0.95), segments=10, rings=6)
    s.ellipsoid(
        pale, (0, y + head * 0.85, z - head * 0.28), (head * 0.48, head * 0.42, head * 0.36), segments=8, rings=4
    )
    s.ellipsoid(pale, (0, d * 0.04, h * 0.3), (w * 0.17, d * 0.12, h * 0.2), segments=8, rings=4)
    ear = head * rng.uniform(0.36, 0.44)
    for side in (-1, 1):
        s.ellipsoid(fur, (side * head * 0.82, y - head * 0.1, h - ear), (ear, ear * 0.5, ear), segments=6, rings=4)
        arm = rotation("y", side * -38) @ rotation("x", 25)
        s.ellipsoid(fur, (side * w * 0.28, -d * 0.06, h * 0.42), (w * 0.1, w * 0.11, h * 0.18), arm, 7, 4)
        leg, splay = d * 0.3, rotation("z", -side * 14)
        s.ellipsoid(fur, (side * w * 0.24, d / 2 - leg, h * 0.13), (w * 0.14, leg, h * 0.13), splay, 8, 4)
        s.ellipsoid(
            pale, (side * w * 0.31, d / 2 - leg * 0.28, h * 0.13), (w * 0.09, leg * 0.24, h * 0.085), splay, 6, 3
        )
        s.ellipsoid(
            DARK, (side * head * 0.4, y + head * 0.86, z + head * 0.16), (head * 0.12,) * 3, segments=5, rings=3
        )
        bow = rotation("y", side * 20)
        s.ellipsoid(
            ribbon, (side * head * 0.36, y + head * 0.75, h * 0.57), (head * 0.34, head * 0.12, head * 0.2), bow, 5, 3
        )
    s.ellipsoid(
        DARK, (0, y + head * 1.24, z - head * 0.12), (head * 0.16, head * 0.1, head * 0.11), segments=5, rings=3
    )
    s.solid_box((0, -d * 0.12, h * 0.3), (w * 0.6, d * 0.6, h * 0.6))
    s.solid_box((0, y, h * 0.8), (head * 2, head * 2, h * 0.38))
    s.solid_box((0, d * 0.25, h * 0.12), (w * 0.8, d * 0.48, h * 0.24))


def boots(s: Shape, rng: np.random.Generator) -> None:
    """A pair of boots, toes to the front."""
    w, d, h = s.size
    leather = pick_tint(rng, LEATHERS, "leather")
    sole = pick_tint(rng, ("2a2522", "cdb48a", "3c3128"))
    half = w * 0.23
    heel, wide = -d / 2 + d * 0.28, rng.uniform(0.92, 1.05)
    cuff = rng.uniform(0.94, 1.0)
    for side in (-1, 1):
        x, toe = side * w * 0.26, d / 2
        depth = d * 0.27
        shaft = vessel([
            (half * 0.85, depth * 0.95, 0.02, 2.5, heel), (half * 0.8, depth * 0.9, h * 0.3, 2.2, heel),
            (half * 0.9 * wide, depth, h * 0.75, 2, heel), (half * 0.95, depth, h * cuff, 2, heel),
            (half * 0.85, depth * 0.9, h * cuff, 2, heel), (half * 0.8, depth * 0.85, h * 0.6, 2, heel),
            (0, 0, h * 0.6, 2, heel),
        ], 12)  # fmt: skip
        s.surface(leather, shaft, (x, 0, 0))
        foot = vessel([
            (half * 0.9, d * 0.47, 0.02, 3, 0), (half * 0.95, d * 0.48, h * 0.07, 3, 0),
            (half * 0.85, d * 0.42, h * 0.15, 2.5, -d * 0.04), (half * 0.6, d * 0.3, h * 0.24, 2, -d * 0.12),
            (0, 0, h * 0.28, 2, -d * 0.16),
        ], 12)  # fmt: skip
        s.surface(leather, foot, (x, 0, 0))
        rings = [(half, d * 0.5, 0, 3), (half, d * 0.5, h * 0.045, 3), (0, 0, h * 0.045, 3)]
        s.surface(sole, vessel(rings, 12), (x, 0, 0))
        for z in np.linspace(0.3, 0.62, 4):
            s.box(sole, (x, heel + depth * 0.95, h * z), (half * 0.8, 0.012, h * 0.018), solid=False, without=("back",))
        s.solid_box((x, toe - d / 2, h * 0.11), (half * 1.9, d * 0.96, h * 0.22))
        s.solid_box((x, heel, h * 0.5), (half * 1.7, depth * 1.8, h))


def book(s: Shape, rng: np.random.Generator) -> None:
    """A book lying flat: its front cover opens about the spine on the left."""
    w, d, h = s.size
    board = min(0.004, h * 0.14)
    cover, color = f"cover-{rng.integers(32)}#ffffff", pick_tint(rng, COVERS)
    inset = min(0.006, w * 0.03)
    s.box(color, (0, 0, board / 2), (w, d, board), solid=False)
    s.box(color, (-w / 2 + board / 2, 0, h / 2), (board, d, h - 2 * board), solid=False)
    pages = (w - inset - board, d - 2 * inset, h - 2 * board)
    at = (board / 2 - inset / 2, 0, h / 2)
    s.box("paper#f3ecd9", at, pages, solid=False, without=("top", "bottom", "left"))
    plate(s, f"print-{rng.integers(8)}#fbf6ea", at, pages, "top")
    s.solid_box((0, 0, (h - board) / 2), (w, d, h - board))
    lid = s.hinge((0, -1, 0), (-w / 2 + board / 2, 0, h - board / 2), 170)
    lid.box(color, (0, 0, h - board / 2), (w, d, board), without=("top",))
    plate(lid, cover, (0, 0, h - board / 2), (w, d, board), "top")


def newspaper(s: Shape, rng: np.random.Generator) -> None:
    """A folded newspaper, its sheets a little apart, or rolled up where its box is slim."""
    w, d, h = s.size
    page = f"print-{rng.integers(8)}#f2efe6"
    if min(w, d) < 0.35 * max(w, d):
        length, r = max(w, d), min(h, min(w, d)) / 2
        turn = SIDEWAYS if w >= d else FORWARD
        at = turn @ (0, 0, -length / 2) + (0, 0, r)
        roll = [(0, 0.004), (r, 0), (r, length), (r * 0.5, length - 0.004), (0, length - 0.01)]
        s.lathe("paper#e6e2d6", roll, at, turn, 12)
        s.lathe(pick_tint(rng, BRIGHTS), [(r * 1.02, length * 0.47), (r * 1.02, length * 0.53)], at, turn, 12)
        s.solid_box((0, 0, r), (length, r * 1.7, r * 1.7) if w >= d else (r * 1.7, length, r * 1.7))
        return
    sheets = int(rng.integers(3, 5))
    for i in range(sheets):
        slip = rng.uniform(-0.012, 0.012, 2) if i < sheets - 1 else (0, 0)
        size = (w - 0.026, d - 0.026, h / sheets * 0.9)
        s.box(
            "paper#e6e2d6",
            (*slip, h * (i + 0.5) / sheets),
            size,
            rotation("z", rng.uniform(-1, 1)),
            solid=False,
            without=("bottom",),
        )
    turn = rotation("z", 180 if w >= d else 90)
    wide, deep = w - 0.026, d - 0.026
    plate(s, page, (0, 0, h - 0.001), (wide, deep, 0.002) if w >= d else (deep, wide, 0.002), "top", turn)
    s.tube("paper#dcd7c8", [(-w / 2 + h * 0.45, -deep / 2, h / 2), (-w / 2 + h * 0.45, deep / 2, h / 2)], h * 0.45, 8)
    s.solid_box((0, 0, h / 2), (w, d, h))


def _writing(s: Shape, rng: np.random.Generator, pencil: bool) -> None:
    """A stick along the box's longest side: a pencil with a tip and a rubber, or a pen with a cap and a clip."""
    thick = min(0.011, *sorted(s.size)[:2])
    start, turn, length = _lay(s, thick)
    r = thick / 2
    paint = pick_tint(rng, BRIGHTS if pencil else (*BRIGHTS, "1f2a44", "24262b"))
    if pencil:
        cut, rubber = rng.uniform(0.1, 0.16), rng.uniform(0.88, 0.94)
        s.lathe(paint, [(r, length * cut), (r, length * rubber)], start, turn, 6, smooth=20)
        s.lathe("plain#e3b592", [(r * 0.3, length * 0.04), (r, length * cut)], start, turn, 6)
        s.lathe("plain#e3b592", [(r, length * rubber), (r, length * 0.99), (0, length)], start, turn, 6)
        s.lathe(DARK, [(0, 0), (r * 0.32, length * 0.042)], start, turn, 6)
    else:
        metal = pick_tint(rng, FITTINGS, "metal")
        barrel = [(0.7, 0.08), (0.9, rng.uniform(0.15, 0.25)), (1, 0.97), (0.6, 1), (0, 1)]
        s.lathe(paint, [(a * r, b * length) for a, b in barrel], start, turn, 8)
        s.lathe(metal, [(0, 0), (r * 0.25, length * 0.01), (r * 0.72, length * 0.09)], start, turn, 8)
        s.lathe(metal, [(r * 1.02, length * 0.58), (r * 1.02, length * 0.62)], start, turn, 8)
        clip = start + turn @ (0, 0, length * 0.8) + (0, 0, r)
        s.box(metal, clip, (r * 0.5, r * 0.4, length * 0.3), turn, solid=False)
    s.solid_capsule(start, start + turn @ (0, 0, length), max(r, 0.003))


def pen(s: Shape, rng: np.random.Generator) -> None:
    """A ballpoint pen."""
    _writing(s, rng, pencil=False)


def pencil(s: Shape, rng: np.random.Generator) -> None:
    """A six-sided pencil."""
    _writing(s, rng, pencil=True)


def credit_card(s: Shape, rng: np.random.Generator) -> None:
    """A bank card with a chip and a stripe."""
    w, d, h = s.size
    length = max(w, d)
    wide, deep = min(length, min(w, d) * 1.6), min(min(w, d), length / 1.55)
    turn = rotation("z", 0 if w >= d else 90)
    card = pick_tint(rng, ("2a4a8a", "b8302e", "2f7a5a", "c9a24a", "3a3b40", "7a4a96", "d9dce2"))
    s.box(card, (0, 0, h * 0.4), (wide, deep, h * 0.8), turn, without=("bottom",))
    s.box(
        "metal#dcc07a",
        turn @ (-wide * 0.28, deep * 0.06, 0) + (0, 0, h * 0.9),
        (wide * 0.15, deep * 0.2, h * 0.2),
        turn,
        solid=False,
    )
    pale = pick_tint(rng, ("f0f0ee", "e8b021", "d33f34"))
    for low, line in zip((0.22, 0.36), rng.uniform((0.45, 0.25), (0.65, 0.45)), strict=True):
        at = turn @ (wide * (line / 2 - 0.42), -deep * low, 0) + (0, 0, h * 0.85)
        s.box(pale, at, (wide * line, deep * 0.07, h * 0.1), turn, solid=False, without=("bottom",))
    s.cylinder(pale, turn @ (wide * 0.34, -deep * 0.28, 0) + (0, 0, h * 0.8), deep * 0.13, h * 0.1, segments=10)


def key_chain(s: Shape, rng: np.random.Generator) -> None:
    """A ring with keys and a fob, lying flat."""
    w, d, h = s.size
    long_x = w >= d
    length, across = max(w, d), min(w, d)
    turn = rotation("z", 0 if long_x else 90)
    ring = min(across * 0.3, length * 0.16)
    r = min(h * 0.25, 0.002)
    metal, brass = pick_tint(rng, FITTINGS[:1], "metal"), pick_tint(rng, ("c9a85a", "b5b8bc", "d9c07a"), "metal")
    x = -length / 2 + length * 0.36
    loop = [turn @ (x + ring * np.cos(t), ring * np.sin(t), h * 0.5) for t in np.linspace(0, 2 * np.pi, 15)]
    s.tube(metal, loop, r, 5)
    fob = length * 0.36 - ring * 0.8
    s.ellipsoid(
        pick_tint(rng, BRIGHTS),
        turn @ (-length / 2 + fob / 2, 0, h / 2),
        (fob / 2, min(across * 0.3, fob * 0.4), h / 2),
        turn,
        10,
        4,
        0.6,
    )
    keys = int(rng.integers(2, 4))
    reach = length * 0.64 - ring * 0.7
    for i, angle in enumerate(np.linspace(-1, 1, keys)):
        limit = np.degrees(np.arcsin(min(0.9, across * 0.36 / reach)))
        spin = turn @ rotation("z", angle * limit * rng.uniform(0.8, 1.0))
        z = h * (0.2 + 0.6 * i / keys)
        start = turn @ (x + ring * 0.7, 0, 0) + (0, 0, z)
        s.cylinder(brass, start + spin @ (reach * 0.16, 0, 0), across * 0.13, h * 0.2, segments=8)
        s.box(
            brass,
            start + spin @ (reach * 0.6, 0, h * 0.1),
            (reach * 0.7, across * 0.07, h * 0.2),
            spin,
            solid=False,
            without=("bottom",),
        )
        for tooth in (0.7, 0.84):
            s.box(
                brass,
                start + spin @ (reach * tooth, across * 0.05, h * 0.1),
                (reach * 0.07, across * 0.06, h * 0.2),
                spin,
                solid=False,
            )
    s.solid_box((0, 0, h / 2), (w * 0.9, d * 0.7, h))


def tissue_box(s: Shape, rng: np.random.Generator) -> None:
    """A printed box with a tissue standing out of its slot."""
    w, d, h = s.size
    top = h * rng.uniform(0.62, 0.72)
    s.box(pick_tint(rng, TOWELS, f"printed-{rng.integers(32)}"), (0, 0, top / 2), (w, d, top), without=("bottom",))
    slot = min(w, d) * 0.3
    s.lathe(
        DARK, [(slot, top + 0.001), (0, top + 0.001)], segments=14, scale=(1.3 if w > d else 1, 1 if w > d else 1.3)
    )
    turns = np.linspace(0, 2 * np.pi, 13)
    phase, lobes = rng.uniform(0, 6.3), int(rng.integers(3, 5))
    rows = []
    for height, size, wave in ((0.0, 0.45, 0.1), (0.5, 0.6, 0.25), (1.0, 0.95, 0.4)):
        radius = slot * size * (1 + wave * np.sin(lobes * turns + phase)) / (1 + wave)
        up = top + (h - top) * (height - 0.3 * height * (1 + np.cos(2 * turns + phase)) / 2)
        rows.append(np.column_stack([radius * np.cos(turns), radius * np.sin(turns), up]))
    s.surface("paper#fbfbf9", sheet(np.array(rows[::-1]), 0.002))
    s.solid_box((0, 0, (top + h) / 2), (slot, slot, h - top))


TYPES = {
    "BaseballBat": ObjectType(baseball_bat),
    "BasketBall": ObjectType(basket_ball),
    "TennisRacket": ObjectType(tennis_racket),
    "Dumbbell": ObjectType(dumbbell),
    "TeddyBear": ObjectType(teddy_bear),
    "Boots": ObjectType(boots),
    "Book": ObjectType(book, opens=True),
    "Newspaper": ObjectType(newspaper),
    "Pen": ObjectType(pen),
    "Pencil": ObjectType(pencil),
    "CreditCard": ObjectType(credit_card),
    "KeyChain": ObjectType(key_chain),
    "TissueBox": ObjectType(tissue_box),
}
