"""Where the players of B games have been in their stage, and what they opened: what rewards call new.

Positions are relative to the start, as `CacheGame.relative_place` gives them. Rotation does not matter to a new place,
but does to the extrapolated set, which holds the places a step ahead of visited ones and beside those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.rooms.floor import GRID
from scrubjay.sim.pose import HEIGHTS
from scrubjay.sim.world import World

BEYOND = np.stack([COMPASS, COMPASS + np.roll(COMPASS, 1, 0), COMPASS + np.roll(COMPASS, -1, 0)], 1)
"""From a place to the three that extend it, by quarter turn: (4, 3, 2)."""


@dataclass(frozen=True)
class Novelty:
    """What a step brought that its stage had not had before, (B,) each."""

    place: np.ndarray
    """bool: a position and height."""
    opened: np.ndarray
    """bool: a thing, opened by this step."""
    extrap_before: np.ndarray
    extrap_after: np.ndarray
    """The sizes of the extrapolated set."""


class NoveltyTracker:
    """The places and openables of the stages that games are at."""

    def __init__(self, world: World) -> None:
        corners = np.array([room.room.bounds for room in world.rooms])
        # Turned grids reach from corner to corner, and the extrapolated set a step further.
        self._middle = int(np.ceil(np.linalg.norm(corners[:, 2:] - corners[:, :2], axis=1).max() / GRID)) + 3
        side, count = 2 * self._middle + 1, len(world)
        self.visited = np.zeros((count, side, side, HEIGHTS), bool)
        self.extrapolated = np.zeros((count, side, side, QUARTERS, HEIGHTS), bool)
        self.size = np.zeros(count, int)
        """Of the extrapolated set."""
        self.opened = np.zeros((count, len(Stage), world.state.open.shape[1]), bool)
        """In the episode of each stage: those of OM lie within one of OH."""

    def begin(self, games: np.ndarray, stage: Stage, place: np.ndarray) -> None:
        """Episodes of a stage begin at places (B, 4): nothing was visited but those, and nothing opened."""
        if games.any():
            self.visited[games], self.extrapolated[games], self.size[games] = False, False, 0
            self.forget_opened(games, stage)
            self._visit(games, place)

    def forget_opened(self, games: np.ndarray, stage: Stage) -> None:
        """An episode of a stage begins in which nothing was opened yet, and nobody walks."""
        self.opened[games, stage] = False

    def note(self, stage: np.ndarray, place: np.ndarray, opened: np.ndarray) -> Novelty:
        """A step taken in stages (B,) led to places (B, 4) and opened (B, openables); what of it was new."""
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
        for step in range(BEYOND.shape[1]):
            i, j = x + BEYOND[quarter, step, 0], y + BEYOND[quarter, step, 1]
            self.size[rows] += ~self.extrapolated[rows, i, j, quarter, standing]
            self.extrapolated[rows, i, j, quarter, standing] = True
        return new
