"""Broad-phase collision tests for B worlds at once: bounding boxes of solids against the goal object's bounding sphere.

Most hand movements are in free air, and most openings are far from the goal object. Where no box meets the sphere, the
action needs no physics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from scrubjay.rooms.floor import SWEEP_SAMPLES
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import SOLID, CompiledRoom, cached_per_room

MARGIN = 0.02
"""Meters between an opening part and the object; more than a part leaves its boxes between two sampled moments."""


@dataclass(frozen=True)
class _Boxes:
    """A room's axis-aligned boxes: low and high corners (n, 3)."""

    low: np.ndarray
    high: np.ndarray
    openable: np.ndarray
    """(n, 2): the openable whose part it is, and 1 for the open part, 0 for the closed; -1 for what never moves."""
    swept: list[np.ndarray]
    """For each openable the low and high corners (2, k, 3) of the boxes that its solids sweep."""


class Broadphase:
    """Boxes around the solids of R rooms, with openables' parts closed, open, and moving between."""

    def __init__(self, rooms: Sequence[CompiledRoom]) -> None:
        boxes = [_boxes(room) for room in rooms]
        most = max(len(one.low) for one in boxes)
        self.low = np.full((len(rooms), most, 3), np.inf, np.float32)
        self.high = np.full((len(rooms), most, 3), -np.inf, np.float32)
        self.openable = np.full((len(rooms), most, 2), -1)
        """As in `_Boxes`."""
        openables = max(1, *(len(one.swept) for one in boxes))
        steps = max([passed.shape[1] for one in boxes for passed in one.swept], default=1)
        self.swept = np.empty((2, len(rooms), openables, steps, 3), np.float32)
        """Low and high corners of the boxes that each openable's solids sweep."""
        self.swept[0], self.swept[1] = np.inf, -np.inf
        for number, one in enumerate(boxes):
            filled = np.s_[number, : len(one.low)]
            self.low[filled], self.high[filled], self.openable[filled] = one.low, one.high, one.openable
            for openable, passed in enumerate(one.swept):
                self.swept[:, number, openable, : passed.shape[1]] = passed
        self.radius = np.array([bounding_radius(rooms[0], kind) for kind in GOALS])
        """Of the goal objects' bounding spheres."""

    def clear(
        self, room: np.ndarray, is_open: np.ndarray, goal: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> np.ndarray:
        """Whether objects (b,) move straight from starts to ends (b, 3) through free space, (b,) bool."""
        margin = self.radius[goal][:, None]
        low, high = np.minimum(start, end) - margin, np.maximum(start, end) + margin
        # Axis by axis, so that no array is larger than (b, boxes).
        met = np.ones((len(room), self.low.shape[1]), bool)
        for axis in range(3):
            met &= self.low[room, :, axis] <= high[:, axis, None]
            met &= self.high[room, :, axis] >= low[:, axis, None]
        number, when_open = self.openable[room, :, 0], self.openable[room, :, 1]
        there = (number < 0) | (np.take_along_axis(is_open, np.maximum(number, 0), 1) == when_open)
        return ~(met & there).any(1)

    def untouched(self, room: np.ndarray, openable: np.ndarray, goal: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Whether openables (b,) move without touching objects at (b, 3), (b,) bool. Resting on a part is touching."""
        return self.apart(room, openable, self.radius[goal], center)

    def apart(self, room: np.ndarray, openable: np.ndarray, radius: np.ndarray, center: np.ndarray) -> np.ndarray:
        """As `untouched`, for anything within radii (b,)."""
        low, high = self.swept[:, room, openable]
        gap = np.maximum(np.maximum(low - center[:, None], center[:, None] - high), 0)
        return np.linalg.norm(gap, axis=2).min(1) > radius + MARGIN


@cached_per_room
def _boxes(room: CompiledRoom) -> _Boxes:
    model, data = room.model, mujoco.MjData(room.model)
    solid = model.geom_group == SOLID
    goals = np.isin(model.geom_bodyid, [goal.body for goal in room.goals.values()])
    owner = np.full(model.nbody, -1)
    for number, openable in enumerate(room.openables):
        owner[openable.bodies] = number
    states = []
    for is_open in (0, 1):
        for openable in room.openables:
            data.qpos[openable.qpos] = openable.travel * is_open
        mujoco.mj_kinematics(model, data)
        moving = owner[model.geom_bodyid] >= 0
        chosen = np.flatnonzero(solid & ~goals & (moving | (is_open == 0)))
        which = owner[model.geom_bodyid[chosen]]
        states.append((*_bounds(model, data, chosen), np.stack([which, np.where(which >= 0, is_open, -1)], 1)))
    low, high, owners = (np.concatenate(parts) for parts in zip(*states, strict=True))
    return _Boxes(low, high, owners, _swept(room, data, np.flatnonzero(solid & moving), owner[model.geom_bodyid]))


def _swept(room: CompiledRoom, data: mujoco.MjData, geoms: np.ndarray, owner: np.ndarray) -> list[np.ndarray]:
    """For each openable boxes (2, k, 3), each around one of its solids between two sampled moments."""
    lows, highs = [], []
    for moment in range(SWEEP_SAMPLES + 1):
        for openable in room.openables:
            data.qpos[openable.qpos] = openable.travel * moment / SWEEP_SAMPLES
        mujoco.mj_kinematics(room.model, data)
        low, high = _bounds(room.model, data, geoms)
        lows.append(low)
        highs.append(high)
    low, high = np.stack(lows), np.stack(highs)
    passed = np.stack([np.minimum(low[:-1], low[1:]), np.maximum(high[:-1], high[1:])])
    return [passed[:, :, owner[geoms] == number].reshape(2, -1, 3) for number in range(len(room.openables))]


def _bounds(model: mujoco.MjModel, data: mujoco.MjData, geoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high corners (n, 3) of the axis-aligned boxes around solids."""
    center, half = model.geom_aabb[geoms, :3], model.geom_aabb[geoms, 3:]
    turn = data.geom_xmat[geoms].reshape(-1, 3, 3)
    middle = data.geom_xpos[geoms] + np.einsum("nij,nj->ni", turn, center)
    reach = np.einsum("nij,nj->ni", np.abs(turn), half)
    return middle - reach, middle + reach


def bounding_radius(room: CompiledRoom, kind: str) -> float:
    """Of the sphere about a free body's center that bounds its solids, plus a millimeter."""
    model = room.model
    geoms = room.goals[kind].geoms
    capsule = model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_CAPSULE
    center, half = model.geom_aabb[geoms, :3], model.geom_aabb[geoms, 3:]
    corner = np.where(capsule, model.geom_size[geoms, :2].sum(1), np.linalg.norm(half, axis=1))
    away = np.linalg.norm(model.geom_pos[geoms], axis=1) + np.linalg.norm(center, axis=1)
    return float((away + corner).max()) + 0.001
