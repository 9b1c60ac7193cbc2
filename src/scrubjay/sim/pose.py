"""Agent poses, and the camera and hand directions that follow from them.

Rotations are in degrees, 0 north and 90 east. The functions take arrays with any leading axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scrubjay.rooms.directions import facing_vector, right_vector

CAMERA_STANDING, CAMERA_CROUCHING = 1.5765, 0.9015
"""Camera heights in meters."""
PITCH = 30.0
"""Degrees by which the camera looks down."""
FIELD_OF_VIEW = 90.0
REACH = 1.5
"""Meters from the agent's vertical axis within which it can interact."""
HEIGHTS = 2
"""Number of camera heights: crouching and standing."""


class AgentPose(NamedTuple):
    """The paper's location tuple (its z is our y): where an agent is, its rotation in degrees, and its posture."""

    x: float
    y: float
    rotation: float
    standing: bool


def cameras(
    position: np.ndarray, rotation: np.ndarray, standing: np.ndarray, pitch: float = PITCH
) -> tuple[np.ndarray, np.ndarray]:
    """Eye positions (..., 3) and matrices (..., 3, 3) whose columns are the camera's right, up and backward axes."""
    height = np.where(standing, CAMERA_STANDING, CAMERA_CROUCHING)
    eye = np.concatenate([position, height[..., None]], -1)
    facing = facing_vector(rotation)
    right = np.concatenate([right_vector(rotation), np.zeros_like(height)[..., None]], -1)
    down, level = np.sin(np.radians(pitch)), np.cos(np.radians(pitch))
    look = np.concatenate([facing * level, np.full_like(height, -down)[..., None]], -1)
    up = np.concatenate([facing * down, np.full_like(height, level)[..., None]], -1)
    return eye, np.stack([right, up, -look], -1)


def hand_directions(rotation: np.ndarray) -> np.ndarray:
    """Unit vectors (6, ..., 3) of the hand's movements: ahead, left, right, back, up, down."""
    facing, right = facing_vector(rotation), right_vector(rotation)
    directions = np.zeros((6, *facing.shape[:-1], 3))
    directions[:4, ..., :2] = np.stack([facing, -right, right, -facing])
    directions[4, ..., 2], directions[5, ..., 2] = 1, -1
    return directions


def reach(position: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Horizontal distances of points (..., 3) from agents at positions (..., 2)."""
    return np.linalg.norm(point[..., :2] - position, axis=-1)


def project(eye: np.ndarray, matrix: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Row and column (..., 2) of points (..., 3) in square images, from 0 to 1; NaN behind the camera."""
    local = np.einsum("...ji,...j->...i", matrix, point - eye)
    # At half of 90 degrees the image's edge is as far from its middle as the image from the camera.
    depth = np.where(local[..., 2] < 0, -local[..., 2], np.nan)
    return np.stack([(1 - local[..., 1] / depth) / 2, (1 + local[..., 0] / depth) / 2], -1)


def unproject(eye: np.ndarray, matrix: np.ndarray, image: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Points (..., 3) at rows and columns (..., 2) of square images and meters (...) along the camera's axis."""
    across, up = 2 * image[..., 1] - 1, 1 - 2 * image[..., 0]
    local = depth[..., None] * np.stack([across, up, np.full_like(up, -1)], -1)
    return eye + np.einsum("...ij,...j->...i", matrix, local)


def in_view(
    eye: np.ndarray, matrix: np.ndarray, point: np.ndarray, field_of_view: float = FIELD_OF_VIEW, aspect: float = 1.0
) -> np.ndarray:
    """Whether points (..., 3) are inside the camera's frustum; the field of view is vertical."""
    local = np.einsum("...ji,...j->...i", matrix, point - eye)
    edge = np.tan(np.radians(field_of_view / 2))
    depth = -local[..., 2]
    return (depth > 0) & (np.abs(local[..., 0]) <= edge * aspect * depth) & (np.abs(local[..., 1]) <= edge * depth)
