"""Procedural mesh primitives: boxes, lathes, prisms, superellipsoids, tubes.

Texture coordinates are in meters along the surface, so that wood grain has the same scale on every thing; those of
`fitted` meshes run from 0 to 1 instead, for pictures. Faces are counter-clockwise seen from outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mesh:
    """Triangles. vertices (n, 3), normals (n, 3), uv (n, 2), faces (m, 3)."""

    vertices: np.ndarray
    normals: np.ndarray
    uv: np.ndarray
    faces: np.ndarray

    def translate(self, offset) -> Mesh:
        return Mesh(self.vertices + np.asarray(offset, float), self.normals, self.uv, self.faces)

    def rotate(self, matrix: np.ndarray) -> Mesh:
        """Rotates by a 3 x 3 matrix about the origin."""
        return Mesh(self.vertices @ matrix.T, self.normals @ matrix.T, self.uv, self.faces)


def concatenate(meshes: list[Mesh]) -> Mesh:
    """Merges meshes into one."""
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.normals for mesh in meshes]),
        np.concatenate([mesh.uv for mesh in meshes]),
        np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)]),
    )


def rotation(axis: str, degrees: float) -> np.ndarray:
    """The right-handed rotation about x, y or z."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    matrix = np.eye(3)
    matrix[j, j], matrix[j, k], matrix[k, j], matrix[k, k] = c, -s, s, c
    return matrix


FACES = {"left": (0, -1), "right": (0, 1), "back": (1, -1), "front": (1, 1), "bottom": (2, -1), "top": (2, 1)}


def _unit_box() -> dict[str, tuple[np.ndarray, np.ndarray, tuple[int, int]]]:
    """For each face of the box from -1 to 1: corners, normals, and the axes of its texture coordinates."""
    faces = {}
    for name, (axis, sign) in FACES.items():
        normal = np.zeros(3)
        normal[axis] = sign
        up = np.array([0.0, 0.0, 1.0]) if axis != 2 else np.array([0.0, 1.0, 0.0])
        right = np.cross(up, normal)
        corners = np.array([normal + a * right + b * up for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        faces[name] = (corners, np.tile(normal, (4, 1)), (int(np.abs(right).argmax()), int(up.argmax())))
    return faces


UNIT_BOX = _unit_box()
CORNER_SIGNS = np.array([[-1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
TWO_TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]])


def box(size, without: tuple[str, ...] = (), fitted: bool = False) -> Mesh:
    """A box about the origin with flat faces; `without` omits faces that nobody sees."""
    half = np.asarray(size, float) / 2
    sides = [UNIT_BOX[name] for name in FACES if name not in without]
    vertices = np.concatenate([corners for corners, _, _ in sides]) * half
    normals = np.concatenate([normal for _, normal, _ in sides])
    if fitted:
        uv = np.tile((CORNER_SIGNS + 1) / 2, (len(sides), 1))
    else:
        uv = np.concatenate([CORNER_SIGNS * (half[along], half[upwards]) for _, _, (along, upwards) in sides])
    faces = (TWO_TRIANGLES + 4 * np.arange(len(sides))[:, None, None]).reshape(-1, 3)
    return Mesh(vertices, normals, uv, faces)


def lathe(profile, segments: int = 16, scale=(1.0, 1.0), smooth: float = 50.0) -> Mesh:
    """Revolves a profile of (radius, height) points about z; the outside is on its right going up.

    Start at the bottom's center, go up the outside, and for a vessel down the inside again. Edges of the profile
    sharper than `smooth` degrees stay sharp. `scale` makes it elliptic.
    """
    points = np.asarray(profile, float)
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    keep = np.concatenate([[True], lengths > 1e-6])
    points = points[keep]
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    outward = np.stack([steps[:, 1], -steps[:, 0]], 1) / lengths[:, None]
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    angles = np.linspace(0, 2 * np.pi, segments + 1)
    ring = np.stack([np.cos(angles), np.sin(angles)], 1)
    girth = 2 * np.pi * max(points[:, 0].max(), 1e-6)
    sharp = np.cos(np.radians(smooth))
    vertices, normals, uv, faces = [], [], [], []
    for i in range(len(steps)):
        start = 2 * i * (segments + 1)
        for end, other in ((i, i - 1), (i + 1, i + 1)):
            normal = outward[i]
            if 0 <= other < len(steps) and outward[i] @ outward[other] > sharp:
                normal = outward[i] + outward[other]
                normal = normal / np.linalg.norm(normal)
            radius, height = points[end]
            vertices.append(np.column_stack([ring * radius * np.array(scale), np.full(segments + 1, height)]))
            rotated = np.column_stack([ring * normal[0] / np.array(scale), np.full(segments + 1, normal[1])])
            normals.append(rotated / np.linalg.norm(rotated, axis=1, keepdims=True))
            uv.append(np.column_stack([angles / (2 * np.pi) * girth, np.full(segments + 1, -along[end])]))
        low, high = start + np.arange(segments), start + segments + 1 + np.arange(segments)
        if points[i, 0] > 1e-6:
            faces.append(np.column_stack([low, low + 1, high + 1]))
        if points[i + 1, 0] > 1e-6:
            faces.append(np.column_stack([low, high + 1, high]))
    return Mesh(np.concatenate(vertices), np.concatenate(normals), np.concatenate(uv), np.concatenate(faces))


def prism(outline, height: float) -> Mesh:
    """A convex outline of (x, y) corners, counter-clockwise, extruded along z from 0 to `height`."""
    corners = np.asarray(outline, float)
    n = len(corners)
    sides = []
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        length = np.hypot(*(b - a))
        normal = np.array([b[1] - a[1], a[0] - b[0], 0.0]) / max(length, 1e-9)
        vertices = np.array([[*a, 0], [*b, 0], [*b, height], [*a, height]])
        uv = np.array([[0, 0], [length, 0], [length, -height], [0, -height]])
        sides.append(Mesh(vertices, np.tile(normal, (4, 1)), uv, np.array([[0, 1, 2], [0, 2, 3]])))
    fan = np.column_stack([np.zeros(n - 2, int), np.arange(1, n - 1), np.arange(2, n)])
    flat = np.column_stack([corners, np.full(n, float(height))])
    up = np.tile([0.0, 0.0, 1.0], (n, 1))
    top = Mesh(flat, up, corners * [1, -1], fan)
    bottom = Mesh(flat * [1, 1, 0], -up, corners, fan[:, ::-1])
    return concatenate([*sides, top, bottom])


def ellipsoid(radii, segments: int = 16, rings: int = 8, power: float = 1.0) -> Mesh:
    """A superellipsoid about the origin: an ellipsoid at `power` 1, boxier below (0.3 is a pillow or a cushion)."""
    radii = np.asarray(radii, float)
    latitude = np.linspace(-np.pi / 2, np.pi / 2, rings + 1)
    longitude = np.linspace(-np.pi, np.pi, segments + 1)
    lat, lon = (grid.ravel() for grid in np.meshgrid(latitude, longitude, indexing="ij"))

    def signed_power(value, p):
        return np.sign(value) * np.abs(value) ** p

    unit = [
        signed_power(np.cos(lat), power) * signed_power(np.cos(lon), power),
        signed_power(np.cos(lat), power) * signed_power(np.sin(lon), power),
    ]
    vertices = np.column_stack([*unit, signed_power(np.sin(lat), power)]) * radii
    bend = 2 - power
    slope = [
        signed_power(np.cos(lat), bend) * signed_power(np.cos(lon), bend),
        signed_power(np.cos(lat), bend) * signed_power(np.sin(lon), bend),
    ]
    normals = np.column_stack([*slope, signed_power(np.sin(lat), bend)]) / radii
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    uv = np.column_stack([lon / np.pi * radii[:2].max() * 2, -lat / np.pi * radii.max() * 2])
    faces = []
    for ring in range(rings):
        a = ring * (segments + 1) + np.arange(segments)
        b = a + segments + 1
        if ring > 0:
            faces.append(np.column_stack([a, a + 1, b + 1]))
        if ring < rings - 1:
            faces.append(np.column_stack([a, b + 1, b]))
    return Mesh(vertices, normals, uv, np.concatenate(faces))


def tube(path, radius: float, segments: int = 8) -> Mesh:
    """A round bar along a path of points, with closed ends: handles, taps, wires, legs."""
    points = np.asarray(path, float)
    tangents = np.gradient(points, axis=0)
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-9)
    side = np.cross(tangents[0], [0.0, 0.0, 1.0] if abs(tangents[0][2]) < 0.9 else [1.0, 0.0, 0.0])
    angles = np.linspace(0, 2 * np.pi, segments + 1)
    vertices, normals, uv = [], [], []
    traveled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    for point, tangent, length in zip(points, tangents, traveled, strict=True):
        side = side - tangent * (side @ tangent)
        side = side / np.linalg.norm(side)
        other = np.cross(tangent, side)
        ring = np.outer(np.cos(angles), side) + np.outer(np.sin(angles), other)
        vertices.append(point + radius * ring)
        normals.append(ring)
        uv.append(np.column_stack([angles * radius, np.full(segments + 1, length)]))
    faces = []
    for i in range(len(points) - 1):
        a = i * (segments + 1) + np.arange(segments)
        b = a + segments + 1
        faces += [np.column_stack([a, a + 1, b + 1]), np.column_stack([a, b + 1, b])]
    body = Mesh(np.concatenate(vertices), np.concatenate(normals), np.concatenate(uv), np.concatenate(faces))
    fan = np.column_stack([np.zeros(segments - 2, int), np.arange(1, segments - 1), np.arange(2, segments)])
    first = Mesh(vertices[0][:-1], np.tile(-tangents[0], (segments, 1)), uv[0][:-1], fan[:, ::-1])
    last = Mesh(vertices[-1][:-1], np.tile(tangents[-1], (segments, 1)), uv[-1][:-1], fan)
    return concatenate([body, first, last])
