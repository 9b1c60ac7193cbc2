"""Who plays against people: players by name, made from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

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
"""Not a player: the object simply lies in a random hiding spot, at once."""


@runtime_checkable
class Thinking(Protocol):
    """A player that says what it thought at its last step, as numbers by name."""

    thought: Mapping[str, float]


@dataclass(frozen=True)
class Opponents:
    """Those that people can choose: the scripted ones, and whoever is added to them."""

    hiders: Mapping[str, Callable[[int], Player]] = field(default_factory=lambda: dict(HIDERS))
    seekers: Mapping[str, Callable[[int], Player]] = field(default_factory=lambda: dict(SEEKERS))


def dealt(world: World, role: str, goal: str, opponent: str, seed: int) -> EpisodeSpec:
    """What a trial begins with for which no study gives a hiding place, drawn from its seed."""
    drawn = RandomEpisodes(seed, (goal,))(world, 0)
    if role == HIDE:
        return replace(drawn, last=Stage.S if opponent else Stage.OH, anywhere=True)
    if opponent != SOMEWHERE:
        return drawn
    rng, found = np.random.default_rng(seed), list[Spot]()
    while not found:
        found = candidate_spots(world.rooms[0], goal, 1, rng)
    return replace(drawn, first=Stage.S, pose=found[0].pose, open=found[0].open)


def internals_of(player: Player) -> Mapping[str, float]:
    """What a player thought at its last step; nothing for those that do not say."""
    return player.thought if isinstance(player, Thinking) else {}


def next_step(player: Player, game: CacheGame) -> str:
    """What a player does next in a game alone, as a trial's step."""
    action, place = player(game, np.ones(1, bool))
    if game.stage[0] == Stage.PS:
        return "PS " + " ".join(str(int(number)) for number in place[0])
    return NAMES[action[0]] if action[0] != NOTHING else NO_ACTION
