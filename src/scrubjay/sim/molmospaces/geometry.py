"""Geometry of a compiled MJCF model as the catalog's: meshes, solids and spaces, all in the room's frame."""

from __future__ import annotations

import mujoco
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from scrubjay.rooms.catalog import mesh
from scrubjay.rooms.catalog.mesh import Mesh
from scrubjay.rooms.catalog.shape import Solid, Space
from scrubjay.rooms.floor import CORNERS

GEOM = mujoco.mjtGeom
MIN_HALF = 5e-4
"""Meters; flat colliders are made so thick."""
BOXY = 0.999
"""A hull that fills so much of its box is one."""


def visible_mesh(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> Mesh:
    """The surface of a geom."""
    if model.geom_type[geom] == GEOM.mjGEOM_MESH:
        shape = _mesh_of(model, int(model.geom_dataid[geom]))
    else:
        shape = _primitive(int(model.geom_type[geom]), model.geom_size[geom])
    return shape.rotate(data.geom_xmat[geom].reshape(3, 3)).translate(data.geom_xpos[geom])


def solid_of(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> Solid:
    """A collider as a solid: what MuJoCo collides with, which is a mesh's convex hull."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    position, rotation = data.geom_xpos[geom].copy(), data.geom_xmat[geom].reshape(3, 3).copy()
    if kind == GEOM.mjGEOM_BOX:
        return Solid("box", position, tuple(np.maximum(size, MIN_HALF)), rotation)
    if kind in (GEOM.mjGEOM_CAPSULE, GEOM.mjGEOM_SPHERE):
        straight = size[1] if kind == GEOM.mjGEOM_CAPSULE else 0.0
        return Solid("capsule", position, (float(size[0]), max(float(straight), MIN_HALF)), rotation)
    if kind == GEOM.mjGEOM_MESH:
        points = _hull_points(model, int(model.geom_dataid[geom]))
    else:
        points = _primitive(kind, size).vertices
    return hull(points @ rotation.T + position)


def corners(solid: Solid) -> np.ndarray:
    """Points (n, 3) whose bounding box is a solid's, nearly so for capsules."""
    if solid.kind == "hull":
        local = solid.points
    elif solid.kind == "box":
        local = CORNERS * solid.size
    else:
        radius, half = solid.size
        return np.concatenate([solid.position + radius * CORNERS + end * solid.rotation[:, 2] for end in (-half, half)])
    return local @ solid.rotation.T + solid.position


def hull(points: np.ndarray) -> Solid:
    """The convex hull of points (n, 3), in the narrowest upright frame; a box if it is one."""
    turn = _narrowest_turn(points[:, :2])
    local = points @ turn
    low, high = local.min(0), local.max(0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, MIN_HALF)
    volume = _volume(local)
    if volume < MIN_HALF**3 or volume > BOXY * 8 * half.prod():
        return Solid("box", turn @ middle, tuple(half), turn)
    return Solid("hull", turn @ middle, tuple(half), turn, local - middle)


def upright_space(position: np.ndarray, rotation: np.ndarray, half: np.ndarray) -> Space:
    """A box as a space whose third axis points up, or nearly so."""
    up = int(np.abs(rotation[2]).argmax())
    order = [(up + 1) % 3, (up + 2) % 3, up]
    axes = rotation[:, order].copy()
    if axes[2, 2] < 0:
        axes[:, 1:] *= -1
    return Space(position, half[order], axes)


def _mesh_of(model: mujoco.MjModel, number: int) -> Mesh:
    """A mesh of a model, with a vertex for each combination of position, normal and texture coordinates."""
    rows = slice(model.mesh_faceadr[number], model.mesh_faceadr[number] + model.mesh_facenum[number])
    point, normal = (indices[rows].ravel().astype(np.int64) for indices in (model.mesh_face, model.mesh_facenormal))
    has_uv = model.mesh_texcoordadr[number] >= 0
    at = model.mesh_facetexcoord[rows].ravel().astype(np.int64) if has_uv else np.zeros_like(point)
    keys = (point * (normal.max(initial=0) + 1) + normal) * (at.max(initial=0) + 1) + at
    _, first, faces = np.unique(keys, return_index=True, return_inverse=True)
    vertices = model.mesh_vert[model.mesh_vertadr[number] + point[first]].astype(float)
    normals = model.mesh_normal[model.mesh_normaladr[number] + normal[first]].astype(float)
    uv = np.zeros((len(first), 2))
    if has_uv:
        uv = model.mesh_texcoord[model.mesh_texcoordadr[number] + at[first]].astype(float)
    return Mesh(vertices, normals, uv, faces.reshape(-1, 3))


def has_texture_coordinates(model: mujoco.MjModel, geom: int) -> bool:
    """Does a geom say where on a texture its points are?"""
    is_mesh = model.geom_type[geom] == GEOM.mjGEOM_MESH
    return bool(is_mesh and model.mesh_texcoordadr[model.geom_dataid[geom]] >= 0)


def _hull_points(model: mujoco.MjModel, number: int) -> np.ndarray:
    """The vertices (n, 3) of a mesh's convex hull, as MuJoCo found it."""
    start = model.mesh_vertadr[number]
    vertices = model.mesh_vert[start : start + model.mesh_vertnum[number]].astype(float)
    graph = model.mesh_graphadr[number]
    if graph < 0:
        return vertices
    count = model.mesh_graph[graph]
    chosen = model.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]
    return vertices[chosen]


def _primitive(kind: int, size: np.ndarray) -> Mesh:
    """The surface of a primitive geom."""
    if kind == GEOM.mjGEOM_BOX:
        return mesh.box(2 * size)
    if kind == GEOM.mjGEOM_CYLINDER:
        radius, half = size[:2]
        return mesh.lathe([(0, -half), (radius, -half), (radius, half), (0, half)], 24)
    if kind == GEOM.mjGEOM_CAPSULE:
        radius, half = size[:2]
        angles = np.linspace(-np.pi / 2, np.pi / 2, 10)
        profile = [(radius * np.cos(a), radius * np.sin(a) + np.sign(a) * half) for a in angles]
        return mesh.lathe(profile, 24)
    if kind == GEOM.mjGEOM_PLANE:
        return mesh.box((*(2 * size[:2]), 2e-3), without=("left", "right", "back", "front", "bottom"))
    return mesh.ellipsoid([size[0]] * 3 if kind == GEOM.mjGEOM_SPHERE else size, 24, 12)


def _narrowest_turn(points: np.ndarray) -> np.ndarray:
    """The rotation about the vertical whose axes bound points (n, 2) by the smallest rectangle."""
    try:
        outline = points[ConvexHull(points).vertices]
    except QhullError:  # They are on a line.
        far = points[np.linalg.norm(points - points[0], axis=1).argmax()]
        outline = np.stack([points[0], far])
    along = np.roll(outline, -1, axis=0) - outline
    lengths = np.linalg.norm(along, axis=1)
    along = along[lengths > 1e-9] / lengths[lengths > 1e-9, None]
    best, turn = np.inf, np.eye(3)
    for x, y in [(1.0, 0.0), *along.tolist()]:
        candidate = np.array([[x, -y, 0], [y, x, 0], [0, 0, 1]])
        width, depth = np.ptp(outline @ candidate[:2, :2], axis=0)
        # Axes of the room are preferred to equal ones.
        if width * depth < best - 1e-9:
            best, turn = width * depth, candidate
    return turn


def _volume(points: np.ndarray) -> float:
    try:
        return float(ConvexHull(points).volume)
    except QhullError:
        return 0.0
