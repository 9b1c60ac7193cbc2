"""The players that people can choose to play against, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.players.base import Player
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.sim.world import World
from scrubjay.spots.spots import Spot, candidate_spots
from scrubjay.web.trial import HIDE, NO_ACTION

SOMEWHERE = "somewhere"
"""Stands for a hider: the object starts in a random hiding spot."""


@runtime_checkable
class ReportsInternals(Protocol):
    """A player that exposes values of its last step by name, such as its value estimate: numbers, or lists."""

    internals: Mapping[str, Any]


@dataclass(frozen=True)
class Opponents:
    """Factories of players by name, called with a seed: the scripted ones by default."""

    hiders: Mapping[str, Callable[[int], Player]] = field(default_factory=lambda: dict(HIDERS))
    seekers: Mapping[str, Callable[[int], Player]] = field(default_factory=lambda: dict(SEEKERS))


def sample_spec(world: World, role: str, goal: str, opponent: str, seed: int) -> EpisodeSpec:
    """Samples the episode of a trial outside a study from its seed."""
    spec = RandomEpisodes(seed, (goal,))(world, 0)
    if role == HIDE:
        return replace(spec, last=Stage.S if opponent else Stage.OH, anywhere=True)
    if opponent != SOMEWHERE:
        return spec
    rng, spots = np.random.default_rng(seed), list[Spot]()
    while not spots:
        spots = candidate_spots(world.rooms[0], goal, 1, rng)
    return replace(spec, first=Stage.S, pose=spots[0].pose, open=spots[0].open)


def internals_of(player: Player) -> Mapping[str, Any]:
    """What the player reported about its last step; empty for most players."""
    return player.internals if isinstance(player, ReportsInternals) else {}


def next_step(player: Player, game: CacheGame) -> str:
    """The player's next action in a single game, as a step of a trial."""
    action, place = player(game, np.ones(1, bool))
    if game.stage[0] == Stage.PS:
        return "PS " + " ".join(str(int(number)) for number in place[0])
    return NAMES[action[0]] if action[0] != NOTHING else NO_ACTION
