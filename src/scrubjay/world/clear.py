"""Clear space: whether anything solid is near a held object, for B worlds at once.

Most movements of a hand happen in free air. Where no solid's box meets the ball around the object anywhere on its
way, the engine has nothing to say, and the movement is arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from scrubjay.world.mjcf import SOLID, Compiled
from scrubjay.world.room import GOALS

_KNOWN: WeakKeyDictionary[Compiled, tuple[np.ndarray, np.ndarray, np.ndarray]] = WeakKeyDictionary()
"""Boxes of rooms that were asked for before: when one room of many is swapped, the others cost nothing."""


class Clearings:
    """Boxes around the solids of R rooms, with openables' parts as they are when closed and when open."""

    def __init__(self, rooms: Sequence[Compiled]) -> None:
        for room in rooms:
            if room not in _KNOWN:
                _KNOWN[room] = _boxes(room)
        boxes = [_KNOWN[room] for room in rooms]
        most = max(len(low) for low, _, _ in boxes)
        self.low = np.full((len(rooms), most, 3), np.inf, np.float32)
        self.high = np.full((len(rooms), most, 3), -np.inf, np.float32)
        self.openable = np.full((len(rooms), most, 2), -1)
        """For each box the openable whose part it is and whether it is the open one, or -1 for what never moves."""
        for number, (low, high, openable) in enumerate(boxes):
            self.low[number, : len(low)], self.high[number, : len(low)] = low, high
            self.openable[number, : len(low)] = openable
        self.radius = np.array([_radius(rooms[0], kind) for kind in GOALS])
        """Of the balls around the goal objects."""

    def clear(
        self, room: np.ndarray, is_open: np.ndarray, goal: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> np.ndarray:
        """Is there nothing solid near objects (b,) on their straight ways from starts to ends (b, 3)?"""
        margin = self.radius[goal][:, None]
        low, high = np.minimum(start, end) - margin, np.maximum(start, end) + margin
        # The room's box for box, so that nothing larger than (b, boxes) is made.
        met = np.ones((len(room), self.low.shape[1]), bool)
        for axis in range(3):
            met &= self.low[room, :, axis] <= high[:, axis, None]
            met &= self.high[room, :, axis] >= low[:, axis, None]
        number, when_open = self.openable[room, :, 0], self.openable[room, :, 1]
        there = (number < 0) | (np.take_along_axis(is_open, np.maximum(number, 0), 1) == when_open)
        return ~(met & there).any(1)


def _boxes(room: Compiled) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low and high corners (n, 3) of the solids' boxes, and (n, 2) openable and open or not."""
    model, data = room.model, mujoco.MjData(room.model)
    solid = model.geom_group == SOLID
    goals = np.isin(model.geom_bodyid, [goal.body for goal in room.goals.values()])
    owner = np.full(model.nbody, -1)
    for number, openable in enumerate(room.openables):
        owner[openable.bodies] = number
    found = []
    for is_open in (0, 1):
        for openable in room.openables:
            data.qpos[openable.qpos] = openable.travel * is_open
        mujoco.mj_kinematics(model, data)
        moving = owner[model.geom_bodyid] >= 0
        chosen = np.flatnonzero(solid & ~goals & (moving | (is_open == 0)))
        reach = _reach(model, data, chosen)
        which = owner[model.geom_bodyid[chosen]]
        found.append((data.geom_xpos[chosen] - reach, data.geom_xpos[chosen] + reach,
                      np.stack([which, np.where(which >= 0, is_open, -1)], 1)))  # fmt: skip
    low, high, owners = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return low, high, owners


def _reach(model: mujoco.MjModel, data: mujoco.MjData, geoms: np.ndarray) -> np.ndarray:
    """Half sizes (n, 3) of the upright boxes around boxes and capsules."""
    size = model.geom_size[geoms].copy()
    capsule = model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_CAPSULE
    radius, half = size[capsule, 0], size[capsule, 1]
    size[capsule] = np.stack([radius, radius, radius + half], 1)
    return np.einsum("nij,nj->ni", np.abs(data.geom_xmat[geoms].reshape(-1, 3, 3)), size)


def _radius(room: Compiled, kind: str) -> float:
    """Of the ball about a goal object's centre that holds all its solids, with a millimetre to spare."""
    model = room.model
    geoms = room.goals[kind].geoms
    capsule = model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_CAPSULE
    corner = np.where(capsule, model.geom_size[geoms, :2].sum(1), np.linalg.norm(model.geom_size[geoms], axis=1))
    return float((np.linalg.norm(model.geom_pos[geoms], axis=1) + corner).max()) + 0.001
