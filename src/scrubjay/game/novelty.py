"""Where the players of B games have been in their stage, and what they have opened: what rewards count as new.

Places are relative to the start, as in `CacheGame.relative_place`. A new place ignores rotation. The extrapolated set
holds the places one step ahead of visited ones, and those beside them; whether it counts rotations is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.rooms.floor import GRID
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.pose import HEIGHTS

EXTRAPOLATED_STEPS = np.stack([COMPASS, COMPASS + np.roll(COMPASS, 1, 0), COMPASS + np.roll(COMPASS, -1, 0)], 1)
"""Steps from a place to the three that extrapolate it, by quarter turn: (4, 3, 2)."""


@dataclass(frozen=True)
class Novelty:
    """What a step did for the first time in its stage's episode, (B,) each."""

    place: np.ndarray
    """bool: it reached a new position and height."""
    opened: np.ndarray
    """bool: it opened something new."""
    extrap_before: np.ndarray
    extrap_after: np.ndarray
    """Sizes of the extrapolated set before and after."""


class NoveltyTracker:
    """Visited places and opened things of the current episodes of B games."""

    def __init__(self, world: BaseWorld, count_rotations: bool = True) -> None:
        """`count_rotations`: the extrapolated set holds a place once per rotation, else once, as coverage+ counts."""
        self.count_rotations = count_rotations
        corners = np.array([room.room.bounds for room in world.rooms])
        # Rotated grids reach from corner to corner, and the extrapolated set one step further.
        self._middle = int(np.ceil(np.linalg.norm(corners[:, 2:] - corners[:, :2], axis=1).max() / GRID)) + 3
        side, count = 2 * self._middle + 1, len(world)
        self.visited = np.zeros((count, side, side, HEIGHTS), bool)
        self.extrapolated = np.zeros((count, side, side, QUARTERS, HEIGHTS), bool)
        self.size = np.zeros(count, int)
        """Size of the extrapolated set."""
        self.opened = np.zeros((count, len(Stage), world.state.open.shape[1]), bool)
        """By stage, since episodes of OM lie within one of OH."""

    def begin(self, games: np.ndarray, stage: Stage, place: np.ndarray) -> None:
        """Begins episodes of a walking stage at places (B, 4), in games (B,) bool."""
        if games.any():
            self.visited[games], self.extrapolated[games], self.size[games] = False, False, 0
            self.forget_opened(games, stage)
            self._visit(games, place)

    def forget_opened(self, games: np.ndarray, stage: Stage) -> None:
        """Starts episodes of a stage without walking: resets only what was opened."""
        self.opened[games, stage] = False

    def update(self, stage: np.ndarray, place: np.ndarray, opened: np.ndarray) -> Novelty:
        """Adds a step taken in stages (B,) that led to places (B, 4) and opened (B, openables) bool."""
        rows, before = np.arange(len(stage)), self.size.copy()
        new_opened = (opened & ~self.opened[rows, stage]).any(1)
        self.opened[rows, stage] |= opened
        walking = (stage == Stage.EM) | (stage == Stage.S)
        return Novelty(self._visit(walking, place), new_opened, before, self.size.copy())

    def _visit(self, games: np.ndarray, place: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero(games)
        x, y, quarter, standing = place[rows].T
        x, y = x + self._middle, y + self._middle
        new = np.zeros(len(games), bool)
        new[rows] = ~self.visited[rows, x, y, standing]
        self.visited[rows, x, y, standing] = True
        rotation = quarter if self.count_rotations else np.zeros_like(quarter)
        for step in range(EXTRAPOLATED_STEPS.shape[1]):
            i, j = x + EXTRAPOLATED_STEPS[quarter, step, 0], y + EXTRAPOLATED_STEPS[quarter, step, 1]
            self.size[rows] += ~self.extrapolated[rows, i, j, rotation, standing]
            self.extrapolated[rows, i, j, rotation, standing] = True
        return new
