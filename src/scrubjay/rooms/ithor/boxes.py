"""Upright boxes of AI2-THOR's objects, in our coordinates: Unity's (x, y, z) is our (x, z, y).

All objects have an axis-aligned box and a rotation in the table; those that can move have an oriented box, too, around
which the smallest upright one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.ithor.table import Record

STRAIGHT, EXACT = 8.0, 0.5
"""Degrees from a multiple of 90 up to which an object is taken as straight, one with an oriented box more exactly."""
MIN_SIDE = 0.004
"""Meters; the table has flatter boxes, such as those of credit cards."""


@dataclass(frozen=True)
class Box:
    """An upright box: the middle of its bottom face, its yaw, and its width, depth and height at yaw 0."""

    position: np.ndarray
    yaw: float
    size: np.ndarray

    @property
    def low(self) -> np.ndarray:
        """The lowest coordinates of its axis-aligned bounding box."""
        return self.position - [*self._extent / 2, 0]

    @property
    def high(self) -> np.ndarray:
        return self.position + [*self._extent / 2, self.size[2]]

    @property
    def _extent(self) -> np.ndarray:
        return _extent(self.size[:2], self.yaw)

    def turned(self, yaw: float) -> Box:
        """The same box with its front to another side: a yaw that differs from its own by a multiple of 90."""
        quarter = round((yaw - self.yaw) / 90)
        width, depth, height = self.size
        size = self.size if quarter % 2 == 0 else np.array([depth, width, height])
        return Box(self.position, (self.yaw + 90 * quarter) % 360, size)

    def local(self, point: np.ndarray) -> np.ndarray:
        """A point (..., 3) of the room in the box's coordinates, from the middle of its bottom."""
        return (point - self.position) @ rotation("z", -self.yaw)


def point(value: dict[str, float]) -> np.ndarray:
    """A position of the table in our coordinates."""
    return np.array([value["x"], value["z"], value["y"]])


def bounds(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest coordinates of an object's axis-aligned box."""
    box = record["axisAlignedBoundingBox"]
    center, half = point(box["center"]), point(box["size"]) / 2
    return center - half, center + half


def box_of(record: Record) -> Box:
    """An object's upright box; its front is where its rotation points, as far as it has one."""
    low, high = bounds(record)
    middle, extent = (low + high) / 2, high - low
    yaw = record["rotation"]["y"] % 360
    oriented = record["objectOrientedBoundingBox"]
    if oriented:
        yaw, sides = _smallest(np.array(oriented["cornerPoints"])[:, [0, 2, 1]], yaw)
    straight = round(yaw / 90) * 90.0
    if abs(yaw - straight) < (EXACT if oriented else STRAIGHT):
        sides = extent[:2] if straight % 180 == 0 else extent[1::-1]
        yaw = straight % 360
    elif oriented:
        # The oriented box of something round is larger than the thing; the other one is not.
        sides = sides * min(1.0, *(extent[:2] / _extent(sides, yaw)))
    else:
        sides = _oblique_sides(extent[0], extent[1], yaw)
    return Box(np.array([*middle[:2], low[2]]), yaw, np.maximum([*sides, extent[2]], MIN_SIDE))


def _extent(sides: np.ndarray, yaw: float) -> np.ndarray:
    """The extent along x and y of a rectangle at a yaw."""
    return np.abs(rotation("z", yaw)[:2, :2]) @ sides


def _smallest(points: np.ndarray, yaw: float) -> tuple[float, np.ndarray]:
    """Yaw and sides of the smallest upright box around points (8, 3); of its four yaws the nearest to the given one."""
    edges = (points[[1, 3, 4]] - points[0])[:, :2]
    edges = edges[np.hypot(*edges.T) > MIN_SIDE]
    angles = [yaw, *np.degrees(np.arctan2(edges[:, 0], edges[:, 1]))]
    best = min(angles, key=lambda angle: np.prod(np.ptp(points @ rotation("z", -angle), axis=0)[:2]).round(6))
    best += 90 * round((yaw - best) / 90)
    return float(best) % 360, np.ptp(points @ rotation("z", -best), axis=0)[:2]


def _oblique_sides(x: float, y: float, yaw: float) -> np.ndarray:
    """Width and depth of a rectangle at a yaw, from the sides of its axis-aligned box."""
    c, s = abs(np.cos(np.radians(yaw))), abs(np.sin(np.radians(yaw)))
    width, depth = (x * c - y * s) / (c**2 - s**2 or 1.0), (y * c - x * s) / (c**2 - s**2 or 1.0)
    if abs(c - s) < 0.25 or min(width, depth) < 0.1 * max(width, depth):
        # At 45 degrees the sides are not determined: a square.
        width = depth = (x + y) / 2 / (c + s)
    return np.array([width, depth])
