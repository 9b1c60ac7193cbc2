"""Places: where an agent is, how it is turned, and what its camera is.

A place is the paper's location tuple (x, z, rotation, standing). Rotation is in degrees, 0 north and 90 east; a turned
grid adds its angle to it. The functions take arrays with any leading axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CAMERA_STANDING, CAMERA_CROUCHING = 1.5765, 0.9015
PITCH = 30.0
FIELD_OF_VIEW = 90.0
REACH = 1.5
"""Metres from the agent's upright axis within which it can interact."""


class AgentPose(NamedTuple):
    """The paper's location tuple. The paper's z is the engine's y."""

    x: float
    z: float
    rotation: float
    standing: bool


def ahead(rotation: np.ndarray) -> np.ndarray:
    """The unit vectors (..., 2) that agents with these rotations face."""
    turn = np.radians(rotation)
    return np.stack([np.sin(turn), np.cos(turn)], -1)


def cameras(position: np.ndarray, rotation: np.ndarray, standing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eye positions (..., 3) and matrices (..., 3, 3) whose columns are the camera's right, up and backward axes."""
    height = np.where(standing, CAMERA_STANDING, CAMERA_CROUCHING)
    eye = np.concatenate([position, height[..., None]], -1)
    facing = ahead(rotation)
    right = np.stack([facing[..., 1], -facing[..., 0], np.zeros_like(height)], -1)
    down, level = np.sin(np.radians(PITCH)), np.cos(np.radians(PITCH))
    look = np.concatenate([facing * level, np.full_like(height, -down)[..., None]], -1)
    up = np.concatenate([facing * down, np.full_like(height, level)[..., None]], -1)
    return eye, np.stack([right, up, -look], -1)


def reach(position: np.ndarray, point: np.ndarray) -> np.ndarray:
    """How far points (..., 3) are from the upright axes of agents at positions (..., 2)."""
    return np.linalg.norm(point[..., :2] - position, axis=-1)


def in_view(eye: np.ndarray, matrix: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Is a point (..., 3) inside the camera's square frustum?"""
    local = np.einsum("...ji,...j->...i", matrix, point - eye)
    edge = np.tan(np.radians(FIELD_OF_VIEW / 2))
    depth = -local[..., 2]
    return (depth > 0) & (np.abs(local[..., 0]) <= edge * depth) & (np.abs(local[..., 1]) <= edge * depth)
