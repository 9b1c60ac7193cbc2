"""From which places a goal object is visible, by rays between its surface and the eyes, without rendering.

A ray goes through the center of a pixel that a point of the object projects to, so visible here is what an image would
show. Distant objects cover few pixels and cost few rays. Only slivers that no point falls on are missed.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import mujoco
import numpy as np

from scrubjay.rooms.directions import QUARTERS
from scrubjay.rooms.floor import Grid
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import FIELD_OF_VIEW, cameras
from scrubjay.sim.render.base import EVERYTHING, WITHOUT_OPENABLES
from scrubjay.sim.render.triangles import triangles_of

SIZE = 224
"""Pixels along an image's side."""
EDGE = float(np.tan(np.radians(FIELD_OF_VIEW / 2)))
"""Half an image's width at a depth of 1."""
POSTURES = (True, False)
"""Standing, crouching."""
MIN_POINTS, MAX_POINTS, CANDIDATES = 24, 1024, 4096
"""Points on an object's surface that are tested, and the random ones they are chosen from."""
ROUNDS = (0, 6, MIN_POINTS, 96, 384, MAX_POINTS)
"""Points tested after each round; images that show the object take no part in the next."""
DENSITY = 1.0
"""Points for each pixel that the unoccluded object would cover."""


def visible_from(
    compiled: CompiledRoom,
    is_open: np.ndarray,
    goal: str,
    pose: np.ndarray,
    grid: Grid,
    through_openables: bool = False,
    size: int = SIZE,
) -> np.ndarray:
    """Is any part of a goal object in view, (positions, 2, 4) bool, for is_open (openables,) and its pose (7,).

    The second axis is standing and crouching, the third quarter turns clockwise from the grid's angle.
    """
    model, body = compiled.model, compiled.goals[goal].body
    data = mujoco.MjData(model)
    number = np.array([GOALS.index(goal)])
    data.qpos[:] = compiled.qpos(np.asarray(is_open)[None], number, np.asarray(pose, float)[None])[0]
    mujoco.mj_kinematics(model, data)
    points, area = surface_points(compiled, goal)
    points = points @ data.xmat[body].reshape(3, 3).T + data.xpos[body]
    groups = WITHOUT_OPENABLES if through_openables else EVERYTHING
    shown = np.array([group in groups for group in range(6)], np.uint8)

    angles = grid.angle + 360 / QUARTERS * np.arange(QUARTERS)
    positions = np.repeat(grid.positions, len(POSTURES), axis=0)
    eyes, _ = cameras(positions, np.zeros(len(positions)), np.tile(POSTURES, len(grid)))
    _, matrices = cameras(np.zeros((QUARTERS, 2)), angles, np.ones(QUARTERS, bool))
    counts = _counts(eyes, points, area, size)
    middle = points.mean(0)
    radius = np.linalg.norm(points - middle, axis=1).max()
    # Rays end behind the object.
    far = np.linalg.norm(eyes - middle, axis=1) + 2 * radius
    possible = _near_view(eyes, matrices, middle, radius)
    seen = np.zeros((len(eyes), QUARTERS), bool)
    for first, last in pairwise(ROUNDS):
        eye, quarter = np.nonzero(possible & ~seen & (counts > first)[:, None])
        pixels = _pixels(eyes[eye], matrices[quarter], points[first:last], size)
        pixels[np.arange(first, last) >= counts[eye, None]] = -1
        picture, pixel = _unique(pixels, size)
        eye, quarter = eye[picture], quarter[picture]
        met = _first_bodies(model, data, eyes, eye, _rays(pixel, matrices[quarter], size), shown, far) == body
        seen[eye[met], quarter[met]] = True
    return seen.reshape(len(grid), len(POSTURES), QUARTERS)


def surface_points(compiled: CompiledRoom, goal: str) -> tuple[np.ndarray, float]:
    """Fixed points spread over a goal object, (MAX_POINTS, 3) in its body's frame, and its surface area."""
    triangles = triangles_of(compiled, compiled.goals[goal].body)
    return _spread(triangles.points[triangles.faces].astype(float).tobytes())


@lru_cache(maxsize=32)
def _spread(corners: bytes) -> tuple[np.ndarray, float]:
    """Farthest-point samples of triangles: any first few are spread over the whole surface too."""
    triangles = np.frombuffer(corners).reshape(-1, 3, 3)
    a, b = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    areas = np.cumsum(np.linalg.norm(np.cross(a, b), axis=1) / 2)
    rng = np.random.default_rng(0)
    face = np.searchsorted(areas, rng.random(CANDIDATES) * areas[-1])
    u, v = rng.random((2, CANDIDATES, 1))
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    candidates = triangles[face, 0] + u * a[face] + v * b[face]
    chosen = [0]
    apart = np.full(CANDIDATES, np.inf)
    while len(chosen) < MAX_POINTS:
        away = candidates - candidates[chosen[-1]]
        apart = np.minimum(apart, np.einsum("ij,ij->i", away, away))
        chosen.append(int(apart.argmax()))
    return candidates[chosen], float(areas[-1])


def _counts(eyes: np.ndarray, points: np.ndarray, area: float, size: int) -> np.ndarray:
    """How many of the points each eye tests, (eyes,): in proportion to the pixels that the object covers."""
    away = np.linalg.norm(eyes[:, None] - points[None, :MIN_POINTS], axis=-1).min(1)
    pixel = 2 * EDGE * away / size
    # A convex body's projection is on average a quarter of its surface.
    return np.clip(DENSITY * area / 4 / pixel**2, MIN_POINTS, MAX_POINTS).astype(int)


def _near_view(eyes: np.ndarray, matrices: np.ndarray, middle: np.ndarray, radius: float) -> np.ndarray:
    """The images (eyes, 4) in which any of a ball could be, bool."""
    right, up, back = np.moveaxis((middle - eyes)[:, None, None] @ matrices, -1, 0)[..., 0]
    beside = np.maximum(np.abs(right), np.abs(up)) + EDGE * back
    return beside < radius * np.hypot(1, EDGE)


def _pixels(eyes: np.ndarray, matrices: np.ndarray, points: np.ndarray, size: int) -> np.ndarray:
    """Pixels (n, k) that points (k, 3) project to in images with eyes (n, 3) and matrices (n, 3, 3).

    Pixels are numbered row by row; -1 is out of view.
    """
    right, up, back = np.moveaxis((points - eyes[:, None]) @ matrices, -1, 0)
    depth = np.where(back < 0, -back * EDGE, np.inf)
    inside = (back < 0) & (np.abs(right) < depth) & (np.abs(up) < depth)
    column = ((right / depth + 1) / 2 * size).astype(int)
    row = ((1 - up / depth) / 2 * size).astype(int)
    return np.where(inside, row * size + column, -1)


def _unique(pixels: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Unique pairs of image and pixel, in order, from pixels (n, k)."""
    picture, point = np.nonzero(pixels >= 0)
    return np.divmod(np.unique(picture * size**2 + pixels[picture, point]), size**2)


def _rays(pixels: np.ndarray, matrices: np.ndarray, size: int) -> np.ndarray:
    """Unit rays (n, 3) through the centers of pixels (n,) of images with matrices (n, 3, 3)."""
    row, column = np.divmod(pixels, size)
    x, y = ((2 * column + 1) / size - 1) * EDGE, (1 - (2 * row + 1) / size) * EDGE
    local = np.stack([x, y, -np.ones_like(x)], 1)
    local /= np.linalg.norm(local, axis=1, keepdims=True)
    return np.einsum("nij,nj->ni", matrices, local)


def _first_bodies(
    model, data, eyes: np.ndarray, eye: np.ndarray, rays: np.ndarray, shown: np.ndarray, far: np.ndarray
) -> np.ndarray:
    """The first bodies (n,) that rays (n, 3) hit; -1 where none is nearer than the eye's `far`.

    `eye` (n,), sorted, is the index of each ray's eye.
    """
    geom, away = np.empty(len(rays), np.int32), np.empty(len(rays))
    starts = np.searchsorted(eye, np.arange(len(eyes) + 1))
    for number, (start, end) in enumerate(pairwise(starts.tolist())):
        if start < end:
            part = slice(start, end)
            mujoco.mj_multiRay(
                model, data, eyes[number], rays[part].ravel(), shown, True, -1, geom[part], away[part], None,
                end - start, float(far[number]),
            )  # fmt: skip
    return np.where(geom >= 0, model.geom_bodyid[geom], -1)
