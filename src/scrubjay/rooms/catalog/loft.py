"""Lofts: smooth surfaces through rings of points."""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.catalog.mesh import Mesh


def loft(rings) -> Mesh:
    """A smooth surface through rings (n, m, 3), whose points run right-handed about the direction of the rings.

    A ring may shrink to a point, which closes that end.
    """
    rings = np.asarray(rings, float)
    n, m, _ = rings.shape
    point = np.ptp(rings, axis=1).max(axis=1) < 1e-6
    around = np.roll(rings, -1, axis=1) - np.roll(rings, 1, axis=1)
    normals = np.cross(around, np.gradient(rings, axis=0))
    normals /= np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-12)
    for end in np.flatnonzero(point):
        mean = normals[end + 1 if end + 1 < n else end - 1].sum(axis=0)
        normals[end] = mean / np.linalg.norm(mean)
    steps = np.linalg.norm(np.diff(rings, axis=0), axis=2).max(axis=1)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    girth = np.linalg.norm(around / 2, axis=2).sum(axis=1).max()
    uv = np.stack(np.broadcast_arrays(np.linspace(0, girth, m + 1)[None, :], -along[:, None]), axis=2)
    faces = []
    for i in range(n - 1):
        a = i * (m + 1) + np.arange(m)
        b = a + m + 1
        if not point[i]:
            faces.append(np.column_stack([a, a + 1, b + 1]))
        if not point[i + 1]:
            faces.append(np.column_stack([a, b + 1, b]))
    vertices, normals = (np.concatenate([grid, grid[:, :1]], axis=1).reshape(-1, 3) for grid in (rings, normals))
    return Mesh(vertices, normals, uv.reshape(-1, 2), np.concatenate(faces))


def superellipse(points: int, power: float = 1.0) -> np.ndarray:
    """A counter-clockwise outline within -1 to 1, (points, 2): a circle at power 1, a rounded square at 0.3."""
    angles = np.arange(points) * 2 * np.pi / points
    outline = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    outline[np.abs(outline) < 1e-9] = 0
    return np.sign(outline) * np.abs(outline) ** power


def strip(stations, thickness: float) -> Mesh:
    """A flat bar along y through stations of (y, height of its middle, width): cutlery, straps, handles."""
    corners = np.array([(-0.5, 0.5), (0.5, 0.5), (0.5, -0.5), (-0.5, -0.5)])
    rings = [[(a * width, y, z + b * thickness) for a, b in corners] for y, z, width in stations]
    ends = [[(0, y, z)] * 4 for y, z, _ in (stations[0], stations[-1])]
    return loft([ends[0], *rings, ends[1]])
