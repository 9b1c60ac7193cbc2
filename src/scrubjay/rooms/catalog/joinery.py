"""Parts of furniture: boards, moldings, handles, legs, cushions, and their colors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from scrubjay.rooms.catalog.mesh import TWO_TRIANGLES, Mesh, rotation
from scrubjay.rooms.catalog.shape import Drawn, Shape

REACH = 0.024
"""Depth of handles. Fronts are set back by it in their box, so that handles stay inside."""
PANEL = 0.018
"""The thickness of doors and drawer fronts."""
GAP = 0.003

UPRIGHT = rotation("x", 90)
"""Rotates a molding's front upwards: for table tops, seats and legs."""
FORWARD = rotation("x", -90)
"""Rotates a lathe's axis to the front: for knobs and dials."""

WOODS = ("wood#b98a56", "wood#d6b27c", "wood#8a5a34", "wood#6b4428", "wood#c79a63", "wood#e4cfa8", "wood#a3673a")
PAINTS = (
    "plain#f1eee6",
    "plain#d9dcd6",
    "plain#b7c4bd",
    "plain#8fa3ad",
    "plain#e6dccb",
    "plain#5f6f76",
    "plain#c9b8a3",
)
METALS = ("metal#c4c7ca", "metal#8d8f92", "metal#4b4a48", "metal#c9a860", "metal#a9714b")
FABRICS = (
    "woven#8c97a3",
    "woven#b7a48a",
    "woven#5f7488",
    "woven#9c5f4d",
    "woven#7f8f6c",
    "woven#d3c9b8",
    "woven#5b5560",
)

Corner = tuple[float, float, float]


def pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    """A random choice."""
    return choices[int(rng.integers(len(choices)))]


def darken(material: str, light: float = 0.72) -> str:
    """A darker tint of a material, for the back of a shelf or the inside of a chest."""
    texture, _, tint = material.partition("#")
    return f"{texture}#" + "".join(f"{round(int(tint[i : i + 2], 16) * light):02x}" for i in (0, 2, 4))


def option(s: Shape, name: str, rng: np.random.Generator, kinds: int) -> int:
    """A variant from 0 to `kinds` - 1: the thing's option of that name, or a random one."""
    random_kind = int(rng.integers(kinds))
    return int(s.options.get(name, random_kind)) % kinds


def molded_panel(width: float, height: float, profile, back: bool = False) -> Mesh:
    """A rectangular panel that faces +y, with a molding of (inset, y) steps from its rim to its center.

    `[(0, 0), (0, 0.02)]` is a board of 2 cm; one more step `(0.005, 0.025)` bevels its edge. The back is open by
    default, since it mostly lies against something.
    """
    rings = []
    for inset, y in profile:
        x, z = max(width / 2 - inset, 0.0), max(height / 2 - inset, 0.0)
        rings.append(np.array([[-x, y, -z], [x, y, -z], [x, y, z], [-x, y, z]]))
    quads = [np.array([low[i], high[i], high[i - 3], low[i - 3]]) for low, high in pairwise(rings) for i in range(4)]
    quads.append(rings[-1][[0, 3, 2, 1]])
    if back:
        quads.append(rings[0])
    return _quads(quads)


def _quads(quads) -> Mesh:
    """Flat quads, textured in meters along the two axes that each faces least."""
    corners = np.asarray(quads, float)
    normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    lengths = np.linalg.norm(normals, axis=1)
    kept = lengths >= 1e-9
    corners, normals = corners[kept], normals[kept] / lengths[kept, None]
    axes = np.array([(1, 2), (0, 2), (0, 1)])[np.abs(normals).argmax(1)]
    uv = -np.take_along_axis(corners, axes[:, None, :], axis=2)
    faces = (TWO_TRIANGLES + 4 * np.arange(len(corners))[:, None, None]).reshape(-1, 3)
    return Mesh(corners.reshape(-1, 3), np.repeat(normals, 4, axis=0), uv.reshape(-1, 2), faces)


def cushion(size, side: float = 0.4, cells: int = 6, underside: bool = True) -> Mesh:
    """A stuffed cushion about the origin; `side` is how much of its height its edges keep: 0 is a bed pillow."""
    half = np.asarray(size, float) / 2
    steps = np.linspace(-1, 1, cells + 1)
    steps = np.sign(steps) * np.abs(steps) ** 0.5
    u, v = (grid.ravel() for grid in np.meshgrid(steps, steps, indexing="ij"))
    # The seam is drawn in a little between the corners, as on a stuffed cushion.
    pull = 0.06 * (1 - side)
    x, y = u * (1 - pull * (1 - v**2)), v * (1 - pull * (1 - u**2))
    z = side + (1 - side) * ((1 - u**4) * (1 - v**4)) ** 0.5
    top = np.column_stack([x, y, z]) * half
    a = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    b = a + cells + 1
    faces = np.concatenate([np.column_stack([a, b, b + 1]), np.column_stack([a, b + 1, a + 1])])
    n = len(top)
    vertices = np.concatenate([top, top * [1, 1, -1]])
    if underside:
        faces = np.concatenate([faces, faces[:, ::-1] + n])
    if side > 0:
        grid = np.arange(n).reshape(cells + 1, cells + 1)
        rim = np.concatenate([grid[:, 0], grid[-1, 1:], grid[-2::-1, -1], grid[0, -2::-1]])
        p, q = rim[:-1], rim[1:]
        faces = np.concatenate([faces, np.column_stack([p + n, q + n, q]), np.column_stack([p + n, q, p])])
    used, faces = np.unique(faces, return_inverse=True)
    vertices, faces = vertices[used], faces.reshape(-1, 3)
    normals = np.zeros_like(vertices)
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
    for i in range(3):
        np.add.at(normals, faces[:, i], across)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return Mesh(vertices, normals, vertices[:, :2] * [1, -1], faces)


def hollow(part: Drawn, material: str, low: Corner, high: Corner, wall: float, without: tuple[str, ...]) -> None:
    """A box of boards between two corners; `without` omits sides."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    floor, lid = (z0 if "bottom" in without else z0 + wall), (z1 if "top" in without else z1 - wall)
    boards = {
        "left": ((x0, y0, z0), (x0 + wall, y1, z1)),
        "right": ((x1 - wall, y0, z0), (x1, y1, z1)),
        "bottom": ((x0 + wall, y0, z0), (x1 - wall, y1, z0 + wall)),
        "top": ((x0 + wall, y0, z1 - wall), (x1 - wall, y1, z1)),
        "back": ((x0 + wall, y0, floor), (x1 - wall, y0 + wall, lid)),
        "front": ((x0 + wall, y1 - wall, floor), (x1 - wall, y1, lid)),
    }
    for name, (a, b) in boards.items():
        if name not in without:
            between(part, material, a, b)


def between(part: Drawn, material: str, low: Corner, high: Corner, solid: bool = True) -> None:
    """A board between two corners."""
    a, b = np.asarray(low, float), np.asarray(high, float)
    part.box(material, (a + b) / 2, b - a, solid=solid)


def slab(part: Drawn, material: str, at: Corner, size, bevel: float = 0.006) -> None:
    """A level board or mattress with a bevelled upper edge, standing on `at`."""
    width, depth, height = size
    part.surface(
        material, molded_panel(width, depth, [(0, 0), (0, height - bevel), (bevel, height)], back=True), at, UPRIGHT
    )
    part.solid_box((at[0], at[1], at[2] + height / 2), size)


def front(part: Drawn, material: str, at: Corner, width: float, height: float, kind: int) -> None:
    """A door or drawer front that stands on its back face's middle `at`: 0 plain, 1 framed, 2 with a raised field."""
    rim = min(0.055, 0.22 * min(width, height))
    steps = [(0, 0), (0, PANEL - 0.006), (0.006, PANEL)]
    if kind == 1:
        steps += [(rim, PANEL), (rim + 0.008, PANEL - 0.011)]
    if kind == 2:
        steps += [(0.7 * rim, PANEL), (0.85 * rim, PANEL - 0.01), (1.5 * rim, PANEL - 0.001)]
    part.surface(material, molded_panel(width, height, steps, back=True), at)
    part.solid_box((at[0], at[1] + PANEL / 2, at[2]), (width, PANEL, height))


def handle(part: Drawn, material: str, at: Corner, kind: int, length: float, upright: bool = False) -> None:
    """A grip on a front's face: 0 a bar, 1 a knob, 2 a shell, 3 a flat strip."""
    turn = rotation("y", 90) if upright else np.eye(3)
    if kind == 0:
        half, out = length / 2, REACH - 0.005
        path = [(-half, 0, 0), (-half, 0.7 * out, 0), (0.3 * out - half, out, 0)]
        path += [(-x, y, z) for x, y, z in reversed(path)]
        part.tube(material, [turn @ point + np.asarray(at) for point in path], 0.0048, 6)
    elif kind == 1:
        r = 0.014
        knob = [
            (0.5 * r, 0),
            (0.4 * r, 0.5 * REACH),
            (r, 0.65 * REACH),
            (r, 0.85 * REACH),
            (0.5 * r, REACH),
            (0, REACH),
        ]
        part.lathe(material, knob, at, FORWARD, segments=10, smooth=60)
    elif kind == 2:
        part.ellipsoid(material, at, (0.04, REACH, 0.014), turn, segments=10, rings=6, power=0.7)
    else:
        part.box(material, np.asarray(at) + [0, 0.006, 0], (length, 0.012, 0.012), turn, solid=False, without=("back",))


def leg(part: Drawn, material: str, at: Corner, height: float, thick: float, kind: int) -> None:
    """A leg that stands on `at`: 0 square, 1 tapered, 2 turned, 3 round."""
    if kind <= 1:
        foot = 0.25 * thick if kind == 1 else 0.0
        part.surface(material, molded_panel(thick, thick, [(foot, 0), (0, 0.85 * height), (0, height)]), at, UPRIGHT)
    else:
        r = thick / 2
        turned = [(0.6, 0), (0.75, 0.08), (0.55, 0.14), (0.9, 0.6), (0.6, 0.68), (1, 0.74), (1, 1)]
        profile = turned if kind == 2 else [(0.7, 0), (1, 1)]
        part.lathe(material, [(r * a, height * b) for a, b in profile], at, segments=8, smooth=70)
    part.solid_box((at[0], at[1], at[2] + height / 2), (0.9 * thick, 0.9 * thick, height))


def legs(part: Drawn, material: str, low: Corner, high: Corner, thick: float, kind: int) -> None:
    """Four legs in the corners between two corners of a box."""
    for x in (low[0] + thick / 2, high[0] - thick / 2):
        for y in (low[1] + thick / 2, high[1] - thick / 2):
            leg(part, material, (x, y, low[2]), high[2] - low[2], thick, kind)
