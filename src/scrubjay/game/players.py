"""Players without networks. They see only what an agent sees: what their stage allows, and how the last action went.

A player is a function of a `Cache` and the games it plays for; it gives actions for those, and places for games in PS.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import Cache

AROUND = 8
"""Steps to each side within which a random hider chooses its place."""


class Player(Protocol):
    """Whoever takes actions."""

    def __call__(self, cache: Cache, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions (B,) and places (B, 4) for the games (B,) bool that it plays for; -1 and zeros elsewhere."""
        ...


class RandomPlayer:
    """Uniform over the actions of its stage, and over the places near where it is."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, cache: Cache, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        allowed = cache.allowed & games[:, None]
        # The largest of independent uniform numbers is at each allowed action equally often.
        draws = np.where(allowed, self.rng.random(allowed.shape), -1)
        action = np.where(allowed.any(1), draws.argmax(1), NOTHING)
        return action, self.place(len(cache)) * games[:, None]

    def place(self, count: int) -> np.ndarray:
        """Random places, (B, 4): right, ahead, quarter turns, standing."""
        steps = self.rng.integers(-AROUND, AROUND + 1, (count, 2))
        return np.concatenate([steps, self.rng.integers(4, size=(count, 1)), self.rng.integers(2, size=(count, 1))], 1)


class Instead:
    """A player for some stages, and another one for those that it leaves alone."""

    def __init__(self, first: Player, otherwise: Player) -> None:
        self.first, self.otherwise = first, otherwise

    def __call__(self, cache: Cache, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, place = self.first(cache, games)
        left = games & (action == NOTHING)
        other, elsewhere = self.otherwise(cache, left)
        return np.where(left, other, action), np.where(left[:, None], elsewhere, place)


def play(cache: Cache, hider: Player, seeker: Player) -> tuple[np.ndarray, np.ndarray]:
    """The actions and places of both: the seeker's in games at S, the hider's in all others."""
    seeking = cache.stage == Stage.S
    hidden, places = hider(cache, ~seeking)
    sought, _ = seeker(cache, seeking)
    return np.where(seeking, sought, hidden), places
