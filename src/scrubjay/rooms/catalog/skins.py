"""Meshes that are neither boxes nor lathed: vessels of level rings and hanging cloth; and tints."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.mesh import Mesh, concatenate, rotation

FORWARD = rotation("x", -90)
"""Rotates up to forward."""
SIDEWAYS = rotation("y", 90)
"""Rotates up to right."""
CHROME = "metal#d2d5d9"
FITTINGS = ("d2d5d9", "b99b5e", "4a4a4d")
WHITES = ("f6f5f1", "f3efe4", "eef2f4", "e9e4dc")
TOWELS = ("e8e4da", "b7cfe0", "d9a9a0", "8fb3a4", "d8c27a", "6f87a8", "b05f5c", "f2f0ea", "9c8fb5", "5f7f74")
BRIGHTS = ("d33f34", "2f7fc4", "3aa35b", "e8b021", "e06f9a", "2aa6a0", "8a56b0", "f0f0ee")
DARK = "plain#2b2b2e"


def pick_tint(rng: np.random.Generator, colors: tuple[str, ...], texture: str = "plain") -> str:
    """A material in a random one of the colors."""
    return f"{texture}#{colors[rng.integers(len(colors))]}"


def vessel(rings, segments: int = 16) -> Mesh:
    """A surface over level rings of (half width, half depth, height, squareness, y), in the order of a lathe's profile.

    Squareness is the ring's norm: 2 is an ellipse, 5 a rounded box, infinity a rectangle. y offsets its center.
    """
    angles = np.linspace(0, 2 * np.pi, segments + 1)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    points = []
    for half_width, half_depth, height, square, *y in rings:
        flat = ring / np.linalg.norm(ring, ord=square, axis=1)[:, None] * (half_width, half_depth)
        points.append(np.column_stack([flat + (0, y[0] if y else 0), np.full(segments + 1, height)]))
    around = [np.roll(p[:-1], -1, 0) - np.roll(p[:-1], 1, 0) for p in points]
    bands = []
    for low, high in zip(range(len(points) - 1), range(1, len(points)), strict=True):
        wider = max(low, high, key=lambda k: np.ptp(points[k][:, 0]))
        outward = np.cross(around[wider], (points[high] - points[low])[:-1])
        bands.append(outward / np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), 1e-12))
    meshes = []
    for low, band in enumerate(bands):
        ends = []
        for other in (low - 1, low + 1):
            near = bands[other] if 0 <= other < len(bands) else band
            soft = np.sum(band * near, axis=1, keepdims=True) > 0.64
            normal = np.where(soft, band + near, band)
            normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
            ends.append(np.concatenate([normal, normal[:1]]))
        a, b = np.arange(segments), np.arange(segments) + segments + 1
        low_faces, high_faces = np.column_stack([a, a + 1, b + 1]), np.column_stack([a, b + 1, b])
        faces = [f for f, r in ((low_faces, rings[low]), (high_faces, rings[low + 1])) if r[0] > 1e-6]
        vertices = np.concatenate(points[low : low + 2])
        flat = np.ptp(vertices[:, 2]) < 0.01
        uv = vertices[:, :2] if flat else np.column_stack([vertices[:, 0] + vertices[:, 1], -vertices[:, 2]])
        meshes.append(Mesh(vertices, np.concatenate(ends), uv, np.concatenate(faces)))
    return concatenate(meshes)


def sheet(points: np.ndarray, thickness: float = 0.004) -> Mesh:
    """Cloth through a grid of points (rows, columns, 3), visible from both sides; without thickness, from its front.

    Seen from the front, rows go down and columns go right.
    """
    rows, columns = points.shape[:2]
    down, right = np.gradient(points, axis=0), np.gradient(points, axis=1)
    normals = np.cross(down, right).reshape(-1, 3)
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    vertices = points.reshape(-1, 3)
    along = np.cumsum(np.linalg.norm(np.diff(points, axis=0, prepend=points[:1]), axis=2), axis=0)
    across = np.cumsum(np.linalg.norm(np.diff(points, axis=1, prepend=points[:, :1]), axis=2), axis=1)
    uv = np.column_stack([across.ravel(), along.ravel()])
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    faces = np.concatenate([
        np.column_stack([corner, corner + columns, corner + columns + 1]),
        np.column_stack([corner, corner + columns + 1, corner + 1]),
    ])  # fmt: skip
    front = Mesh(vertices, normals, uv, faces)
    if not thickness:
        return front
    return concatenate([front, Mesh(vertices - thickness * normals, -normals, uv, faces[:, ::-1])])
