"""A frontier explorer: walks to where the most new ground is for the distance, and opens what it passes.

`MappingPolicy` is what all walking scripts share: an occupancy map, what was tried, and paths to the most gain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.novelty import EXTRAPOLATED_STEPS
from scrubjay.players.perception import MAP_RADIUS, MAP_SIZE, OccupancyMap, Percept, Window
from scrubjay.players.planning import STEPS, TURN_RIGHT, LatticePose, plan_path, step_direction
from scrubjay.players.policy_player import PolicyPlayer
from scrubjay.rooms.directions import QUARTERS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import HEIGHTS

CLOSE = action_index("CloseObjects")
OPEN_ACTIONS = np.flatnonzero(actions.OPEN_CELL[:-1] != NOTHING).reshape(CELLS, CELLS)
"""The OpenAt actions, by row and column."""
UNKNOWN_GAIN = 0.5
"""Gain of an unknown cell; a free one has 1."""
OPENING_GAIN = 4.0
"""Gain of a pose from which something can be opened."""
MAX_REFUSALS = 3
"""Failures to open a thing after which it is left alone."""


class Attempt(NamedTuple):
    """An action, the pose it was taken at, and the openable it was to open."""

    action: int
    pose: LatticePose
    openable: int = NOTHING


class MappingPolicy:
    """What one player of one game knows, from the first step of E&M or S on."""

    def __init__(self) -> None:
        self.map = OccupancyMap()
        self.looked_from = np.zeros((MAP_SIZE, MAP_SIZE, QUARTERS, HEIGHTS), bool)
        self.refused: dict[int, set[LatticePose]] = {}
        """Poses from which each openable could not be opened."""
        self.opened: set[int] = set()
        self._last = Attempt(NOTHING, (0, 0, 0, 0))

    def update(self, percept: Percept, success: bool) -> None:
        """Integrates a percept and the success of the last action."""
        action, pose, openable = self._last
        if action == CLOSE and success:
            self.map.forget_open()
        elif openable != NOTHING and success:
            self.opened.add(openable)
            self.map.closed.pop(openable, None)
        elif openable != NOTHING:
            self.refused.setdefault(openable, set()).add(pose)
        elif action in STEPS and not success:
            self.map.mark_bump(pose, step_direction(action, pose[2]))
        self._last = Attempt(NOTHING, pose)
        self.map.update(percept)
        self.looked_from[self.map_index(percept)] = True

    @staticmethod
    def map_index(percept: Percept) -> LatticePose:
        """The index of the player's pose in the map's arrays."""
        x, y, quarter, standing = percept.pose
        return x + MAP_RADIUS, y + MAP_RADIUS, quarter, standing

    def commit(self, percept: Percept, action: int, openable: int = NOTHING) -> int:
        """Remembers an action until its success is known, and returns it."""
        self._last = Attempt(action, percept.pose, openable)
        return action

    def open_in_reach(self, percept: Percept) -> int | None:
        """Opens something in reach that was neither opened before nor refused; None without any."""
        for row, column in np.argwhere(percept.at_cells != NOTHING).tolist():
            openable = int(percept.at_cells[row, column])
            refused = self.refused.get(openable, set())
            if openable not in self.opened and percept.pose not in refused and len(refused) < MAX_REFUSALS:
                return self.commit(percept, int(OPEN_ACTIONS[row, column]), openable)
        return None

    def go(self, percept: Percept, gain: Callable[[Window], np.ndarray]) -> int | None:
        """The first step of the path with the most gain per step; None if nothing is to be gained."""
        window = self.map.known_window()
        x, y, quarter, standing = self.map_index(percept)
        start = (x - window[0].start, y - window[1].start, quarter, standing)
        path = plan_path(self.map.passable(window), start, gain(window))
        return self.commit(percept, path[0]) if path else None

    def unstick(self, percept: Percept) -> int:
        """With nothing to be gained: closes what may be in the way, or turns."""
        if self.map.blocked[1].any() or self.map.bumped.any():
            self.map.forget_open()
            return self.commit(percept, CLOSE)
        return self.commit(percept, TURN_RIGHT)

    def opening_poses(self, window: Window) -> np.ndarray:
        """Poses (X, Y, 4, 2) not looked from yet, from which something can be opened."""
        given_up = {number for number, poses in self.refused.items() if len(poses) >= MAX_REFUSALS}
        return (self.map.openings(window, given_up | self.opened) > 0) & ~self.looked_from[window]


class ExplorePolicy(MappingPolicy):
    """Maximizes the paper's coverage+, at both heights."""

    def __init__(self) -> None:
        super().__init__()
        self.covered = np.zeros((MAP_SIZE, MAP_SIZE, HEIGHTS), bool)
        """Cells that coverage+ counts for the poses visited."""

    def act(self, percept: Percept, success: bool) -> int:
        self.update(percept, success)
        x, y, quarter, standing = self.map_index(percept)
        for dx, dy in EXTRAPOLATED_STEPS[quarter].tolist():
            self.covered[x + dx, y + dy, standing] = True
        action = self.open_in_reach(percept)
        if action is None:
            action = self.go(percept, self.gain)
        return self.unstick(percept) if action is None else action

    def gain(self, window: Window) -> np.ndarray:
        """Gain of each pose (X, Y, 4, 2): the cells it newly covers, and what can be opened from it."""
        free, unknown = self.map.free_and_unknown(window)
        value = (free + UNKNOWN_GAIN * unknown)[..., None] * ~self.covered[window]
        padded = np.pad(value, ((1, 1), (1, 1), (0, 0)))
        width, depth = free.shape
        gain = np.zeros((width, depth, QUARTERS, HEIGHTS))
        for quarter in range(QUARTERS):
            for dx, dy in EXTRAPOLATED_STEPS[quarter].tolist():
                gain[:, :, quarter] += padded[1 + dx : 1 + dx + width, 1 + dy : 1 + dy + depth]
        return gain + OPENING_GAIN * self.opening_poses(window)


class Explorer(PolicyPlayer[ExplorePolicy]):
    """Plays E&M."""

    def __init__(self, seed: int = 0) -> None:
        """The seed is unused: exploring is deterministic."""
        super().__init__(lambda *_: ExplorePolicy(), [Stage.EM])
