"""Unity's coordinates and ours.

Unity is left-handed: x east, y up, z north; a room here is right-handed: x east, y north, z up. Swapping two axes is a
reflection, so the same turn has the opposite sense about its axis. Unity's Euler angles are degrees about x, y and z,
applied in the order z, x, y. Quaternions are scalar first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scrubjay.sim.quaternion import matrix_from_quat

Vector = dict[str, float]
"""A point, size or Euler angles as messages have them: x, y and z."""
SWAP = [0, 2, 1]
LEVEL = 1 - 1e-7
"""Sine of a pitch from which y and z turn about the same axis."""


def vector(values: Iterable[float]) -> Vector:
    """Three numbers as a message has them."""
    x, y, z = (float(value) + 0.0 for value in values)  # Adding 0 turns -0.0 into 0.0.
    return {"x": x, "y": y, "z": z}


def numbers(value: Mapping[str, Any]) -> np.ndarray:
    """A message's vector as an array (3,)."""
    return np.array([value["x"], value["y"], value["z"]], float)


def to_unity(points: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Points (..., 3) of a room in Unity's coordinates, where the room's floor is at height `floor`."""
    return np.asarray(points, float)[..., SWAP] + [0.0, floor, 0.0]


def to_room(points: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Points (..., 3) of Unity in the room's coordinates."""
    return (np.asarray(points, float) - [0.0, floor, 0.0])[..., SWAP]


def quat_to_unity(quaternion: np.ndarray) -> np.ndarray:
    """A rotation (..., 4) of a room as Unity's quaternion; the way back is the same."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, float), -1, 0)
    return np.stack([w, -x, -z, -y], -1)


quat_to_room = quat_to_unity


def quat_from_euler(degrees: ArrayLike) -> np.ndarray:
    """The rotation (4,) of a room that Unity's Euler angles (3,) about x, y and z stand for."""
    x, y, z = np.radians(np.asarray(degrees, float)) / 2
    (cx, sx), (cy, sy), (cz, sz) = ((np.cos(half), np.sin(half)) for half in (x, y, z))
    # The product of the quaternions about y, x and z: z turns first.
    unity = [
        cy * cx * cz + sy * sx * sz,
        cy * sx * cz + sy * cx * sz,
        sy * cx * cz - cy * sx * sz,
        cy * cx * sz - sy * sx * cz,
    ]
    return quat_to_room(np.array(unity))


def euler_from_quat(quaternion: np.ndarray) -> np.ndarray:
    """Unity's Euler angles (3,) in [0, 360) of a rotation (4,) of a room."""
    m = matrix_from_quat(quat_to_unity(np.asarray(quaternion, float)))
    down = float(np.clip(-m[1, 2], -1, 1))
    if abs(down) > LEVEL:
        # Looking straight up or down, only the sum of both turns is defined; Unity puts it into y.
        x, y, z = np.arcsin(down), np.arctan2(-m[2, 0], m[0, 0]), 0.0
    else:
        x, y, z = np.arcsin(down), np.arctan2(m[0, 2], m[2, 2]), np.arctan2(m[1, 0], m[1, 1])
    return wrap(np.degrees([x, y, z]))


def wrap(degrees: np.ndarray | float, digits: int = 6) -> Any:
    """Angles in [0, 360), without the noise of a calculation."""
    return np.round(np.asarray(degrees, float), digits) % 360


def object_number(value: float) -> str:
    """A coordinate in an object's id: a sign, two digits, a point and two digits (`+00.93`).

    Halves round away from zero. What is negative and rounds to zero has no sign, as in AI2-THOR's own ids.
    """
    hundredths = int(np.floor(abs(value) * 100 + 0.5))
    sign = "+" if value >= 0 else "-" if hundredths else ""
    return f"{sign}{hundredths // 100:02d}.{hundredths % 100:02d}"


def object_id(kind: str, position: Vector) -> str:
    """An object's id: its type and where it was at first."""
    return "|".join([kind, *(object_number(position[axis]) for axis in "xyz")])
