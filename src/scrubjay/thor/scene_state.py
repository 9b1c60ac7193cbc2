"""What a scene consists of, as its users see it: agents, cameras, pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


class ActionFailed(Exception):
    """An action that did not succeed; its text becomes the event's errorMessage."""


@dataclass
class SceneAgent:
    """An agent's body and camera."""

    position: np.ndarray
    """(2,)"""
    rotation: float
    """Degrees in [0, 360)."""
    horizon: float
    """Degrees by which the camera looks down."""
    standing: bool
    held: int | None = None
    """The id of the thing in its hand."""
    field_of_view: float = 90.0
    """Degrees, vertical."""


@dataclass(frozen=True)
class SceneCamera:
    """A camera that belongs to nobody."""

    position: np.ndarray
    """(3,)"""
    rotation: np.ndarray
    """Pitch (down), yaw (clockwise) and roll in degrees, as Unity orders them: (3,)."""
    field_of_view: float = 90.0
    orthographic_size: float | None = None
    """Half the height of the picture in meters, for a camera without perspective."""


@dataclass(frozen=True)
class Pictures:
    """What one camera sees, rows from the top: None for what was not asked for."""

    rgb: np.ndarray
    """(height, width, 3) uint8."""
    depth: np.ndarray | None = None
    """(height, width) float32, meters along the camera's axis."""
    ids: np.ndarray | None = None
    """(height, width) int16: thing ids, -1 for the background."""
    normals: np.ndarray | None = None
    """(height, width, 3) float32, in the room's frame."""
