"""Batched quaternions, scalar first."""

from __future__ import annotations

import numpy as np


def quat_from_axis_angle(axis: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) of right-handed rotations about unit axes (..., 3)."""
    half = np.radians(np.asarray(degrees, float))[..., None] / 2
    axis = np.broadcast_to(axis, (*half.shape[:-1], 3))
    return np.concatenate([np.cos(half), np.sin(half) * axis], -1)


def quat_mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Normalized products (..., 4): rotation by b, then by a."""
    w, v = a[..., :1], a[..., 1:]
    x, u = b[..., :1], b[..., 1:]
    product = np.concatenate([w * x - (v * u).sum(-1, keepdims=True), w * u + x * v + np.cross(v, u)], -1)
    return product / np.linalg.norm(product, axis=-1, keepdims=True)


def matrix_from_quat(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def compose(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """A pose (..., 7), center and quaternion, that is given in the frame of another."""
    center = outer[..., :3] + np.einsum("...ij,...j->...i", matrix_from_quat(outer[..., 3:]), inner[..., :3])
    return np.concatenate([center, quat_mul(outer[..., 3:], inner[..., 3:])], -1)


def inverse(pose: np.ndarray) -> np.ndarray:
    """The pose (..., 7) that, composed with this one, gives the identity."""
    turned = pose[..., 3:] * [1, -1, -1, -1]
    return np.concatenate([-np.einsum("...ij,...j->...i", matrix_from_quat(turned), pose[..., :3]), turned], -1)
