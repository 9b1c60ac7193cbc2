"""The floors of R rooms, stacked so that B worlds are looked up at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scrubjay.rooms.floor import BODY_RADIUS, MAP_PITCH, Floor, distance


class Floors:
    """The floors of R rooms. `room` is always (B,): the room of each world; points are (B, 2)."""

    def __init__(self, floors: Sequence[Floor]) -> None:
        self.origins = np.stack([floor.origin for floor in floors])
        # Padded with zero clearance, so that nothing outside a room is free.
        shape = np.max([floor.map.shape for floor in floors], axis=0) + 2
        self.maps = np.zeros((len(floors), *shape), np.float32)
        for row, floor in zip(self.maps, floors, strict=True):
            row[: floor.map.shape[0], : floor.map.shape[1]] = floor.map
        self.open_parts = _pad([floor.open_parts for floor in floors])
        self.swept = _pad([floor.swept for floor in floors])
        self.reach_rectangles = _pad([floor.reach_rectangles for floor in floors])

    def clearance(self, room: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Distances to the nearest fixed obstacle, (B,), interpolated from the maps."""
        at = (points - self.origins[room]) / MAP_PITCH
        at = np.clip(at, 0, np.array(self.maps.shape[1:]) - 1.001)
        cell = at.astype(int)
        (u, v), (i, j) = (at - cell).T, cell.T
        maps = self.maps
        south = maps[room, i, j] * (1 - u) + maps[room, i + 1, j] * u
        north = maps[room, i, j + 1] * (1 - u) + maps[room, i + 1, j + 1] * u
        outside = (points < self.origins[room]).any(1)
        return np.where(outside, 0, south * (1 - v) + north * v)

    def free(self, room: np.ndarray, points: np.ndarray, is_open: np.ndarray) -> np.ndarray:
        """Where a body fits, with openables open or closed as in `is_open` (B, openables)."""
        fits = self.clearance(room, points) >= BODY_RADIUS
        worlds, openable = np.nonzero(is_open & fits[:, None])
        if len(worlds):
            gaps = distance(points[worlds, None], self.open_parts[room[worlds], openable])
            fits[worlds[gaps.min(1) < BODY_RADIUS]] = False
        return fits

    def swept_by(self, room: np.ndarray, points: np.ndarray, openable: np.ndarray) -> np.ndarray:
        """Whether an openable (B,) would hit the body while it opens or closes."""
        return distance(points[:, None], self.swept[room, openable]).min(1) < BODY_RADIUS

    def reach(self, room: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Distances from the bodies' axes to each openable's parts, (B, openables)."""
        return distance(points[:, None, None], self.reach_rectangles[room]).min(2)


def _pad(arrays: list[np.ndarray]) -> np.ndarray:
    """Stacks arrays (n, k, 6) as (R, max n, max k, 6), padded with rectangles far away."""
    # At least one row, so that rooms without openables can be looked up.
    shape = np.maximum(np.max([array.shape[:2] for array in arrays], axis=0), 1)
    stack = np.zeros((len(arrays), *shape, 6))
    stack[..., :2], stack[..., 2] = 1e6, 1.0
    for row, array in zip(stack, arrays, strict=True):
        row[: array.shape[0], : array.shape[1]] = array
    return stack
