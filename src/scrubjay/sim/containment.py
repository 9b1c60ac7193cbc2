"""Which thing contains an object, for B worlds at once: the containing volumes of R rooms, closed and open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from scrubjay.sim.compile import CompiledRoom, cached_per_room


@dataclass(frozen=True)
class _Frames:
    """A room's n volumes, smallest first."""

    thing: np.ndarray
    """(n,): the thing it belongs to."""
    openable: np.ndarray
    """(n,): the openable with which it moves, or -1."""
    middle: np.ndarray
    """(2, n, 3): closed and open."""
    rotation: np.ndarray
    """(2, n, 3, 3): columns are its axes."""
    half: np.ndarray
    """(n, 3)."""


class Containment:
    """The volumes of R rooms."""

    def __init__(self, rooms: Sequence[CompiledRoom]) -> None:
        stacked = [_frames(room) for room in rooms]
        # At least one, so that rooms without volumes can be looked up; the padding contains nothing.
        shape = (len(rooms), max(1, *(len(frames.thing) for frames in stacked)))
        self.thing, self.openable = np.full(shape, -1), np.full(shape, -1)
        self.middle, self.rotation = np.zeros((*shape, 2, 3)), np.zeros((*shape, 2, 3, 3))
        self.half = np.full((*shape, 3), -1.0)
        for number, frames in enumerate(stacked):
            filled = np.s_[number, : len(frames.thing)]
            self.thing[filled], self.openable[filled], self.half[filled] = frames.thing, frames.openable, frames.half
            self.middle[filled] = frames.middle.swapaxes(0, 1)
            self.rotation[filled] = frames.rotation.swapaxes(0, 1)

    def containing(self, room: np.ndarray, is_open: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The things whose volumes contain points (b, 3), (b,); the smallest volume counts, -1 for none."""
        openable = self.openable[room]
        moved = (openable >= 0) & np.take_along_axis(is_open, np.maximum(openable, 0), 1)
        volume, when = np.arange(openable.shape[1]), moved.astype(int)
        away = point[:, None] - self.middle[room[:, None], volume, when]
        local = np.einsum("bnji,bnj->bni", self.rotation[room[:, None], volume, when], away)
        inside = (np.abs(local) <= self.half[room]).all(2)
        return np.where(inside.any(1), self.thing[room, inside.argmax(1)], -1)


@cached_per_room
def things_within(room: CompiledRoom) -> np.ndarray:
    """What goes with each thing, (ids, ids) bool by row: itself, and all that is in or on it, over any chain."""
    count, number = len(room.things), {name: index for index, name in enumerate(room.things)}
    within = np.eye(count, dtype=bool)
    for index, thing in enumerate(room.room.things):
        holder, steps = thing.inside, 0
        while holder and steps < count:
            within[number[holder], index] = True
            holder, steps = room.room.things[number[holder]].inside, steps + 1
    return within


@cached_per_room
def _frames(room: CompiledRoom) -> _Frames:
    model, volumes, data = room.model, room.volumes, mujoco.MjData(room.model)
    order = np.argsort(volumes.half.prod(1), kind="stable")
    owner = np.full(model.nbody, -1)
    middle, rotation = [], []
    for is_open in (0, 1):
        for number, openable in enumerate(room.openables):
            owner[openable.bodies] = number
            data.qpos[openable.qpos] = openable.travel * is_open
        mujoco.mj_kinematics(model, data)
        turn = data.xmat[volumes.body].reshape(-1, 3, 3)
        middle.append(data.xpos[volumes.body] + np.einsum("nij,nj->ni", turn, volumes.position))
        rotation.append(turn @ volumes.rotation)
    return _Frames(volumes.thing[order], owner[volumes.body][order], np.stack(middle)[:, order],
                   np.stack(rotation)[:, order], volumes.half[order])  # fmt: skip
