"""Directions on the floor. Rotations are in degrees, clockwise from above: 0 is north (+y), 90 is east (+x)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

QUARTERS = 4
"""Headings on a grid, a quarter turn apart."""
COMPASS = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
"""One lattice step to the grid's north, east, south and west, by quarter turn."""


def facing_vector(rotation: ArrayLike) -> np.ndarray:
    """Unit vectors (..., 2) in the directions of rotations (...)."""
    angle = np.radians(rotation)
    return np.stack([np.sin(angle), np.cos(angle)], -1)


def right_vector(rotation: ArrayLike) -> np.ndarray:
    """Unit vectors (..., 2) to the right of rotations (...)."""
    angle = np.radians(rotation)
    return np.stack([np.cos(angle), -np.sin(angle)], -1)
