"""Players that keep a policy for each game they play."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

import numpy as np

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.players.perception import Percept, perceive

NO_POSE = np.zeros(4, int)
"""What a policy returns as its pose in all stages but PS."""


class Policy(Protocol):
    """Plays one game, step by step, with whatever it remembers of it."""

    def act(self, percept: Percept, success: bool) -> int:
        """The next action, given what is seen and whether the last action succeeded."""
        ...


P = TypeVar("P", bound=Policy)


class PolicyPlayer(Generic[P]):
    """Acts in given stages with a policy per game, made when the game starts. Gives no action in other stages.

    Subclasses whose policies need more than a percept override `decide`.
    """

    def __init__(self, make_policy: Callable[[CacheGame, int], P], stages: Collection[Stage]) -> None:
        """`make_policy` takes the games and the index of one."""
        self._make_policy, self._stages = make_policy, [int(stage) for stage in stages]
        self._policies: dict[int, tuple[weakref.ref[CacheGame], int, P]] = {}

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, place = np.full(len(game), NOTHING), np.zeros((len(game), 4), int)
        acting = np.flatnonzero(games & np.isin(game.stage, self._stages))
        for b, percept in zip(acting.tolist(), perceive(game, acting), strict=True):
            action[b], place[b] = self.decide(game, b, percept)
        return action, place

    def decide(self, game: CacheGame, b: int, percept: Percept) -> tuple[int, np.ndarray]:
        """The action of game b, and the pose (4,) that it chooses in PS."""
        return self.policy(game, b).act(percept, bool(game.last_success[b])), NO_POSE

    def policy(self, game: CacheGame, b: int) -> P:
        """The policy of game b; a new one if the game has just started."""
        number = int(game.episode[b])
        kept = self._policies.get(b)
        if kept is None or kept[0]() is not game or kept[1] != number:
            kept = self._policies[b] = (weakref.ref(game), number, self._make_policy(game, b))
        return kept[2]

    def reset(self, b: int) -> None:
        """Drops the policy of game b."""
        self._policies.pop(b, None)
