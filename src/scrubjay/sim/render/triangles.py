"""A compiled room's visible surfaces as arrays of triangles."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from scrubjay.sim.compile import SOLID, CompiledRoom

MIN_COSINE = 0.8
"""Vertex normals with a smaller cosine to the face's are replaced by it, as in MuJoCo's renderer."""


@dataclass(frozen=True)
class Triangles:
    """The triangles of one rigid body, in its frame."""

    points: np.ndarray
    """(n, 3); faces share them."""
    faces: np.ndarray
    """(m, 3) indices of points."""
    normals: np.ndarray
    """(m, 3, 3): one per corner."""
    uv: np.ndarray
    """(m, 3, 2)"""
    material: np.ndarray
    """(m,): the model's material."""
    thing: np.ndarray
    """(m,): the thing's id."""
    detail: np.ndarray
    """(m,): texels per meter."""

    def take(self, order: np.ndarray) -> Triangles:
        """The triangles with the given indices, in that order."""
        rest = (getattr(self, name)[order] for name in ("faces", "normals", "uv", "material", "thing", "detail"))
        return Triangles(self.points, *rest)


def triangles_of(compiled: CompiledRoom, body: int) -> Triangles:
    """The visible triangles of a body; body 0 is everything that never moves."""
    model = compiled.model
    geoms = np.flatnonzero((model.geom_bodyid == body) & (model.geom_group != SOLID))
    corners, normals, uvs, counts = [], [], [], []
    for geom in geoms:
        mesh = model.geom_dataid[geom]
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
        turn = rotation.reshape(3, 3)
        rows = slice(model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh])
        points = model.mesh_vert[model.mesh_vertadr[mesh] :][model.mesh_face[rows]]
        normal = model.mesh_normal[model.mesh_normaladr[mesh] :][model.mesh_facenormal[rows]]
        corners.append(points @ turn.T + model.geom_pos[geom])
        normals.append(normal @ turn.T)
        uvs.append(model.mesh_texcoord[model.mesh_texcoordadr[mesh] :][model.mesh_facetexcoord[rows]])
        counts.append(len(points))
    corner, normal, uv = (np.concatenate(parts) for parts in (corners, normals, uvs))
    material = np.repeat(model.geom_matid[geoms], counts)
    points, faces = _merge_points(corner)
    normal, area = _repair_normals(corner, normal)
    thing = np.repeat(compiled.geom_thing[geoms], counts)
    return Triangles(points, faces, normal, uv, material, thing, _detail(model, uv, material, area))


def concatenate(parts: list[Triangles]) -> Triangles:
    """The triangles of several bodies whose frames coincide."""
    starts = np.cumsum([0] + [len(part.points) for part in parts[:-1]])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)])
    rest = ("normals", "uv", "material", "thing", "detail")
    return Triangles(
        np.concatenate([part.points for part in parts]),
        faces,
        *(np.concatenate([getattr(part, name) for part in parts]) for name in rest),
    )


def _merge_points(corner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merges equal corners (m, 3, 3) into points (n, 3), and faces (m, 3) that index them."""
    flat = corner.reshape(-1, 3)
    away = flat - flat.min(0)
    # Hundredths of a millimeter, 21 bits for each axis; coarser in rooms of more than 20 m.
    scale = min(1e5, (1 << 21) / max(float(away.max()), 1e-9) - 1)
    key = np.round(away * scale).astype(np.int64) @ np.array([1, 1 << 21, 1 << 42])
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return flat[first], number.reshape(-1, 3)


def _repair_normals(corner: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertex normals, with those that deviate from their face replaced, and the faces' areas."""
    across = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(across, axis=1)
    face = across / np.maximum(length, 1e-12)[:, None]
    off = (normals * face[:, None]).sum(-1) < MIN_COSINE
    return np.where(off[..., None], face[:, None], normals), length / 2


def _detail(model: mujoco.MjModel, uv: np.ndarray, material: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Texels of each face's texture per meter."""
    a, b = uv[:, 1] - uv[:, 0], uv[:, 2] - uv[:, 0]
    stretch = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2 / np.maximum(area, 1e-12)
    texture = model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB]
    texels = model.tex_width[texture] * model.tex_height[texture] * model.mat_texrepeat[material].prod(1)
    return np.where(texture >= 0, np.sqrt(stretch * texels), 0)
