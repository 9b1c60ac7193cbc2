"""Things on walls, floors and ceilings: windows and what hangs before them, pictures, mirrors, doors, rugs, lamps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from scrubjay.rooms.catalog.joinery import FABRICS, METALS, PAINTS, UPRIGHT, WOODS, molded_panel, option, pick
from scrubjay.rooms.catalog.mesh import Mesh, concatenate
from scrubjay.rooms.catalog.shape import Drawn, ObjectType, Shape

EDGES = ("left", "right", "top", "bottom", "back")
FRAMES = WOODS + ("plain#f4f2ec", "plain#2c2b2a", "metal#c9a860", "metal#b9bcbf")
CURTAINS = FABRICS + ("printed-0#e6ddcf", "printed-1#c9d3dc", "printed-2#d8c0b4")


def _picture(part: Drawn, material: str, y: float, z: float, width: float, height: float) -> None:
    """A flat picture that faces the room, stretched over its whole face."""
    part.box(material, (0, y - 0.0005, z), (width, 0.001, height), solid=False, without=EDGES, fitted=True)


def _frame(
    part: Drawn, material: str, width: float, height: float, z: float, rim: float, back: float, front: float
) -> None:
    """Four moldings around a rectangle, from the wall at `back` to `front`, falling inwards to what they frame."""
    deep = front - back
    steps = [(0, 0), (0, 0.7 * deep), (0.25 * rim, deep), (0.7 * rim, 0.9 * deep), (rim, 0.35 * deep)]
    whole = molded_panel(width, height, steps)
    # The last two triangles close the middle, where the picture goes.
    ring = Mesh(whole.vertices[:-4], whole.normals[:-4], whole.uv[:-4], whole.faces[:-2])
    part.surface(material, ring, (0, back, z))


def window(s: Shape, rng: np.random.Generator) -> None:
    """A frame with bars before a bright view, and a sill."""
    w, d, h = s.size
    paint = s.material(
        "frame", pick(rng, ("plain#f6f4ee", "plain#e9e4d8", "plain#ffffff", "wood#b98a56", "plain#6a7074"))
    )
    deep, rim = min(d, 0.1), min(rng.uniform(0.05, 0.08), 0.12 * min(w, h))
    back, glass = -d / 2, 0.3 * deep - d / 2
    _frame(s, paint, w, h, h / 2, rim, back, back + 0.8 * deep)
    view = s.material("view", f"sky-{rng.integers(6)}#ffffff")
    _picture(s, view, glass, h / 2, w - 1.6 * rim, h - 1.6 * rim)
    bar = 0.45 * rim
    columns = int(s.options.get("columns", rng.integers(1, 3) if w < 1.3 else rng.integers(2, 4)))
    rows = int(s.options.get("rows", rng.integers(1 if columns > 1 else 2, 4)))
    for x in np.linspace(-0.5, 0.5, columns + 1)[1:-1] * (w - 2 * rim):
        s.box(paint, (x, glass + 0.01, h / 2), (bar, 0.02, h - 2 * rim), solid=False, without=("back", "top", "bottom"))
    for z in np.linspace(0, 1, rows + 1)[1:-1] * (h - 2 * rim) + rim:
        s.box(paint, (0, glass + 0.009, z), (w - 2 * rim, 0.018, bar), solid=False, without=("back", "left", "right"))
    s.box(paint, (0, back + deep / 2, 0.015), (w, deep, 0.03), solid=False, without=("back",))
    s.solid_box((0, back + 0.4 * deep, h / 2), (w, 0.8 * deep, h))


def blinds(s: Shape, rng: np.random.Generator) -> None:
    """Slats under a head rail, in three bunches that slide up into one another."""
    w, d, h = s.size
    slats = s.material(
        "frame", pick(rng, ("plain#eeeae0", "plain#d8d2c4", "wood#c79a63", "wood#8a5a34", "plain#c4ccd0"))
    )
    head, bunches = min(0.045, 0.2 * h), 3
    s.box(slats, (0, 0, h - head / 2), (w, d, head))
    each = (h - head) / bunches
    pitch = each / max(2, round(each / rng.uniform(0.035, 0.05)))
    tilt, deep = rng.uniform(0.8, 0.9) * pitch, min(0.6 * d, 0.02)
    for i in range(bunches):
        top = h - head - i * each
        # Each bunch stops a third of a slat lower than the one above it, so that no two slats fall together.
        bunch = s.slide((0, 0, 1), max(i * (each - pitch / bunches), 0.001)) if i else s
        for z in np.arange(top - pitch / 2, top - each + pitch / 4, -pitch):
            bunch.surface(slats, _slat(0.98 * w, deep, tilt), (0, 0, z))
        bunch.solid_box((0, 0, top - each / 2), (0.98 * w, max(deep, 0.01), each))


def _slat(width: float, deep: float, tall: float) -> Mesh:
    """A thin strip bent along its middle, seen from both sides; the bend draws a line that tells slats apart."""
    x, bend = width / 2, [(-0.5 * deep, 0.5 * tall), (0.3 * deep, 0.2 * tall), (0.5 * deep, -0.5 * tall)]
    strips = []
    for (y1, z1), (y0, z0) in pairwise(bend):
        normal = np.array([0.0, z1 - z0, y0 - y1]) / np.hypot(z1 - z0, y0 - y1)
        corners = np.array([[x, y0, z0], [-x, y0, z0], [-x, y1, z1], [x, y1, z1]])
        uv = np.array([[0, -z0], [width, -z0], [width, -z1], [0, -z1]])
        faces = np.array([[0, 1, 2], [0, 2, 3]])
        strips.append(Mesh(corners, np.tile(normal, (4, 1)), uv, faces))
        strips.append(Mesh(corners - 0.001 * normal, np.tile(-normal, (4, 1)), uv, faces[:, ::-1]))
    return concatenate(strips)


def curtains(s: Shape, rng: np.random.Generator) -> None:
    """Two lengths of cloth in folds on a rod; `drawn` says how much of the width they cover."""
    w, d, h = s.size
    cloth, metal = s.material("fabric", pick(rng, CURTAINS)), s.material("metal", pick(rng, METALS))
    rod = min(0.014, 0.2 * d)
    s.tube(metal, [(-w / 2, 0, h - 2 * rod), (w / 2, 0, h - 2 * rod)], rod, 8)
    for x in (0.03 - w / 2, w / 2 - 0.03):
        s.box(metal, (x, -d / 4, h - 2 * rod), (0.015, d / 2, 0.015), solid=False)
    drawn = float(s.options.get("drawn", rng.uniform(0.4, 0.6)))
    wide, swing = min(0.5, drawn / 2) * w, 0.38 * d
    waves = max(2, round(wide / rng.uniform(0.09, 0.14)))
    for side in (-1, 1):
        x = side * (w - wide) / 2
        s.surface(cloth, _folds(wide, h - 3 * rod, swing, waves), (x, 0, 0))
        s.solid_box((x, 0, h / 2), (wide, swing, h - 4 * rod))


def _folds(width: float, height: float, swing: float, waves: int) -> Mesh:
    """Cloth in waves, seen from both sides."""
    steps = 6 * waves + 1
    t = np.linspace(0, 1, steps)
    x, phase = (t - 0.5) * width, 2 * np.pi * waves * t
    y = swing * np.sin(phase)
    slope = swing * 2 * np.pi * waves / width * np.cos(phase)
    normal = np.column_stack([-slope, np.ones(steps), np.zeros(steps)])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    low, high = np.column_stack([x, y, np.zeros(steps)]), np.column_stack([x, y, np.full(steps, height)])
    front = np.concatenate([low, high])
    normals = np.concatenate([normal, normal])
    uv = np.concatenate(
        [np.column_stack([-along, np.zeros(steps)]), np.column_stack([-along, np.full(steps, -height)])]
    )
    a = np.arange(steps - 1)
    faces = np.concatenate([np.column_stack([a, a + steps, a + steps + 1]), np.column_stack([a, a + steps + 1, a + 1])])
    vertices = np.concatenate([front, front - 0.002 * normals])
    both = np.concatenate([faces, faces[:, ::-1] + 2 * steps])
    return Mesh(vertices, np.concatenate([normals, -normals]), np.concatenate([uv, uv]), both)


def mirror(s: Shape, rng: np.random.Generator) -> None:
    """Bluish glass with streaks of light, framed."""
    w, d, h = s.size
    frame = s.material("frame", pick(rng, FRAMES))
    deep, rim = min(d, 0.05), min(rng.uniform(0.015, 0.06), 0.15 * min(w, h))
    back = -d / 2
    _frame(s, frame, w, h, h / 2, rim, back, back + deep)
    wide, high, glass = w - 1.8 * rim, h - 1.8 * rim, back + 0.4 * deep
    s.box("plain#c6d8e0", (0, glass - 0.002, h / 2), (wide, 0.004, high), solid=False, without=EDGES)
    for start, width in ((rng.uniform(-0.3, -0.1), rng.uniform(0.1, 0.16)), (rng.uniform(0.1, 0.2), 0.05)):
        s.surface("plain#eef6f8", _streak(wide, high, start * wide, width * wide), (0, glass + 0.002, h / 2))
    s.solid_box((0, back + deep / 2, h / 2), (w, deep, h))


def _streak(width: float, height: float, start: float, thick: float) -> Mesh:
    """A leaning band of light across a mirror."""
    lean, z = min(0.35 * height, 0.28 * width), 0.5 * height
    x = np.clip([start - lean, start - lean + thick, start + lean + thick, start + lean], -width / 2, width / 2)
    vertices = np.array([[x[0], 0, -z], [x[3], 0, z], [x[2], 0, z], [x[1], 0, -z]])
    return Mesh(vertices, np.tile([0.0, 1.0, 0.0], (4, 1)), vertices[:, [0, 2]], np.array([[0, 1, 2], [0, 2, 3]]))


def painting(s: Shape, rng: np.random.Generator) -> None:
    """A picture in a frame."""
    w, d, h = s.size
    frame = s.material("frame", pick(rng, FRAMES))
    deep, rim = min(d, 0.05), min(rng.uniform(0.02, 0.07), 0.12 * min(w, h))
    back, picture = -d / 2, int(s.options.get("picture", rng.integers(32)))
    _frame(s, frame, w, h, h / 2, rim, back, back + deep)
    _picture(s, f"picture-{picture}#ffffff", back + 0.45 * deep, h / 2, w - 1.8 * rim, h - 1.8 * rim)
    s.solid_box((0, back + deep / 2, h / 2), (w, deep, h))


def poster(s: Shape, rng: np.random.Generator) -> None:
    """A printed sheet with a white margin, flat on the wall."""
    w, d, h = s.size
    back, margin = -d / 2, rng.uniform(0.02, 0.06) * min(w, h)
    picture = int(s.options.get("picture", rng.integers(32)))
    s.box("paper#f7f5ef", (0, back + 0.002, h / 2), (w, 0.004, h), solid=False, without=("back",))
    _picture(s, f"picture-{picture}#f4f0ea", back + 0.006, h / 2, w - 2 * margin, h - 2 * margin)
    s.solid_box((0, back + 0.005, h / 2), (w, 0.01, h))


def light_switch(s: Shape, rng: np.random.Generator) -> None:
    """A plate with one or two rockers."""
    w, d, h = s.size
    plate = s.material("plate", pick(rng, ("plain#f3f1ea", "plain#e3ddd0", "plain#fafafa")))
    steps = [(0, 0), (0, 0.25 * d), (0.04 * w, 0.45 * d)]
    s.surface(plate, molded_panel(w, h, steps), (0, -d / 2, h / 2))
    rockers = 2 if w > 0.14 else int(rng.integers(1, 3))
    wide, high = 0.55 * w / rockers, rng.uniform(0.4, 0.55) * h
    for i in range(rockers):
        x = (i - (rockers - 1) / 2) * 1.3 * wide
        face = [(0, 0), (0, 0.25 * d), (0.2 * wide, 0.45 * d)]
        s.surface("plain#cfcabd", molded_panel(wide, high, face), (x, -0.05 * d, h / 2))
    s.solid_box((0, -d / 4, h / 2), (w, d / 2, h))


def doorway(s: Shape, rng: np.random.Generator) -> None:
    """A closed door in its frame."""
    w, d, h = s.size
    frame = s.material("frame", pick(rng, PAINTS[:2] + WOODS[:3]))
    leaf = s.material("front", pick(rng, PAINTS + WOODS[:3]))
    metal = s.material("handle", pick(rng, METALS))
    rim, back = min(0.08, 0.1 * w), -d / 2
    deep = min(0.45 * d, 0.045)
    for edge in (-1, 1):
        s.box(frame, (edge * (w - rim) / 2, back + deep / 2, h / 2), (rim, deep, h), solid=False, without=("back",))
    s.box(frame, (0, back + deep / 2, h - rim / 2), (w - 2 * rim, deep, rim), solid=False, without=("back",))
    wide, high, thick = w - 2 * rim - 0.008, h - rim - 0.008, 0.6 * deep
    s.box(leaf, (0, back + thick / 2, high / 2), (wide, thick, high), solid=False, without=("back", "bottom"))
    rows, columns = ((1, 1), (2, 1), (2, 2), (3, 2))[option(s, "panel", rng, 4)]
    margin = 0.09 * w
    field = (wide - margin) / columns - margin
    heights = np.array([0.4, 0.6]) if rows == 2 else np.full(rows, 1 / rows)
    z = margin * 1.4
    for share in heights:
        tall = share * (high - margin * (rows + 1.4))
        for i in range(columns):
            x = (i - (columns - 1) / 2) * (field + margin)
            steps = [(0, 0), (0.012, 0.006), (0.02, 0.006), (0.035, 0.0015)]
            s.surface(leaf, molded_panel(field, tall, steps), (x, back + thick, z + tall / 2))
        z += tall + margin
    side = 1 if s.options.get("hinge", 1.0) > 0 else -1
    reach = min(0.05, d - thick - 0.012)
    at = np.array((side * (wide / 2 - 0.06), back + thick, min(1.02, 0.5 * h)))
    s.box(metal, at + [0, 0.003, 0], (0.045, 0.006, 0.22), solid=False, without=("back",))
    lever = [at, at + [0, 0.8 * reach, 0], at + [-side * 0.02, reach, 0], at + [-side * 0.12, reach, 0]]
    s.tube(metal, lever, 0.011, 6)
    s.solid_box((0, back + deep / 2, h / 2), (w, deep, h))


def rug(s: Shape, rng: np.random.Generator) -> None:
    """A flat rug with a border and a field; it has no solid, so that feet walk over it."""
    w, d, h = s.size
    field = s.material(
        "fabric", pick(rng, tuple(f"printed-{i}#d8ccb8" for i in range(6)) + ("carpet#b7a48a", "carpet#8c97a3"))
    )
    border = s.material(
        "frame", pick(rng, ("carpet#7c4a3c", "carpet#46586a", "carpet#d9cdb6", "carpet#5f6d55", "carpet#a98a5c"))
    )
    high, rim = min(h, 0.012), rng.uniform(0.07, 0.14) * min(w, d)
    if s.options.get("round", 0) > 0:
        scale = (1.0, d / w)
        s.lathe(border, [(w / 2, 0), (w / 2, 0.6 * high), (w / 2 - rim, high)], segments=32, scale=scale, smooth=10)
        s.surface(field, _disc(w / 2 - rim, d / 2 - rim * d / w, high))
        return
    whole = molded_panel(w, d, [(0, 0), (0.004, 0.8 * high), (rim, 0.8 * high), (rim + 0.004, high)])
    ring = Mesh(whole.vertices[:-4], whole.normals[:-4], whole.uv[:-4], whole.faces[:-2])
    s.surface(border, ring, turn=UPRIGHT)
    inner = (w - 2 * rim - 0.008, d - 2 * rim - 0.008)
    s.box(
        field, (0, 0, high - 0.001), (*inner, 0.002), solid=False, without=("left", "right", "front", "back", "bottom")
    )
    if rng.random() < 0.5:
        line = 0.12 * rim
        for x in (-1, 1):
            at = (x * (inner[0] / 2 - 2 * line), 0, high)
            s.box(border, at, (line, inner[1] - 2 * line, 0.002), solid=False, without=("bottom",))


def _disc(a: float, b: float, z: float, segments: int = 32) -> Mesh:
    """A level ellipse whose texture lies straight."""
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    vertices = np.column_stack([a * np.cos(angles), b * np.sin(angles), np.full(segments, z)])
    fan = np.column_stack([np.zeros(segments - 2, int), np.arange(1, segments - 1), np.arange(2, segments)])
    return Mesh(vertices, np.tile([0.0, 0.0, 1.0], (segments, 1)), vertices[:, :2] * [1, -1], fan)


def ceiling_lamp(s: Shape, rng: np.random.Generator) -> None:
    """A glowing shade: on a rod under the ceiling, or close to it."""
    w, d, h = s.size
    metal, glow = (
        s.material("metal", pick(rng, METALS)),
        s.material("shade", pick(rng, ("shade#fff1d6", "shade#fff8ea", "shade#ffe6bd"))),
    )
    r, scale, kind = w / 2, (1.0, d / w), option(s, "kind", rng, 3)
    s.lathe(metal, [(0.25 * r, h - 0.025), (0.3 * r, h - 0.02), (0.3 * r, h)], segments=14, scale=scale)
    if kind == 0 or h < 0.2:
        profile = [
            (0, 0),
            (0.5 * r, 0.12 * h),
            (0.85 * r, rng.uniform(0.35, 0.5) * h),
            (r, 0.8 * h),
            (0.3 * r, h - 0.02),
        ]
        s.lathe(glow, profile, segments=20, scale=scale, smooth=80)
        low = 0.0
    else:
        low = rng.uniform(0.3, 0.5) * h
        s.tube(metal, [(0, 0, low), (0, 0, h - 0.02)], 0.007, 6)
        if kind == 1:
            profile = [(0, 0.1 * low), (0.92 * r, 0.1 * low), (r, 0), (0.55 * r, low), (0, low)]
        else:
            profile = [(r * np.sin(a), low * (0.5 - 0.5 * np.cos(a))) for a in np.linspace(0, np.pi, 9)]
        s.lathe(glow, profile, segments=20, scale=scale)
        s.cylinder(metal, (0, 0, low - 0.01), 0.2 * r, 0.03, segments=10)
        s.solid_box((0, 0, (low + h) / 2), (0.05, 0.05, h - low))
    s.solid_box((0, 0, (low or h) / 2), (1.4 * r, 1.4 * r * d / w, low or h))


TYPES = {
    "Window": ObjectType(window),
    "Blinds": ObjectType(blinds, opens=True),
    "Curtains": ObjectType(curtains),
    "Mirror": ObjectType(mirror),
    "Painting": ObjectType(painting),
    "Poster": ObjectType(poster),
    "LightSwitch": ObjectType(light_switch),
    "Doorway": ObjectType(doorway),
    "Rug": ObjectType(rug),
    "CeilingLamp": ObjectType(ceiling_lamp),
}
