"""Manipulations that are demonstrated: games take the actions that are known to lead to their placements."""

from __future__ import annotations

import numpy as np

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.placements.episodes import Demonstration
from scrubjay.placements.placements import MAX_ACTIONS


class Demonstrations:
    """What the demonstrated ones among B games do next."""

    def __init__(self, game: CacheGame) -> None:
        self.game = game
        self._actions = np.full((len(game), MAX_ACTIONS), NOTHING)
        self._detour = np.zeros((len(game), 2), int)
        # A staggered game pretends to be older than it is, and would skip the first actions.
        self.begin(game.time[:, Stage.OM] == 0)

    def begin(self, games: np.ndarray) -> None:
        """Reads the specs of new games (B,) bool."""
        self._actions[games] = NOTHING
        for b in np.flatnonzero(games).tolist():
            spec = self.game.specs[b]
            if isinstance(spec, Demonstration):
                self._actions[b, : len(spec.actions)] = spec.actions
                self._detour[b] = spec.detour

    def next_actions(self) -> np.ndarray:
        """(B,): the actions that games must take, -1 for those that are not demonstrated."""
        time = np.minimum(self.game.time[:, Stage.OM], MAX_ACTIONS - 1)
        return np.where(self.game.stage == Stage.OM, self._actions[np.arange(len(time)), time], NOTHING)

    def on_detour(self) -> np.ndarray:
        """(B,) bool: the next action, if it is demonstrated, is not to be imitated."""
        time = self.game.time[:, Stage.OM]
        return (self._detour[:, 0] <= time) & (time < self._detour[:, 1])
