"""Manipulations in which the object in the hand cannot be seen for a while, as if something stood in front of it.

Hands are in view at nearly every step of OM, so that a memory that only looks knows where they are. What is carried
behind things must be remembered, by what the hand did since it was seen.
"""

from __future__ import annotations

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame

FIRST, LENGTH = (2, 10), (3, 12)
"""Ranges of the first step at which the object is hidden, and of the number of such steps."""


class HiddenHands:
    """Which of B games hide the object in the hand; a span of steps for each manipulation."""

    def __init__(self, share: float, games: int, rng: np.random.Generator) -> None:
        """`share` of the manipulations have a span."""
        self.share, self.rng = share, rng
        self._span = np.zeros((games, 2), int)
        """From the first hidden step to the first one after it; both 0 for none."""

    def __call__(self, game: CacheGame) -> np.ndarray:
        """(B,) bool; spans are drawn at the first step of a manipulation."""
        manipulates, time = game.stage == Stage.OM, game.time[:, Stage.OM]
        begun = np.flatnonzero(manipulates & (time == 0))
        first = self.rng.integers(*FIRST, len(begun))
        span = np.stack([first, first + self.rng.integers(*LENGTH, len(begun))], 1)
        self._span[begun] = np.where(self.rng.random((len(begun), 1)) < self.share, span, 0)
        return manipulates & game.world.state.held & (self._span[:, 0] <= time) & (time < self._span[:, 1])
