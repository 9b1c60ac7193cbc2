"""One stage to be learned: what games are dealt, and who plays the stages that are not the learner's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from scrubjay.errors import SpotError
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import ROTATED_SHARE, EpisodeSampler, EpisodeSpec, RandomEpisodes
from scrubjay.players.base import Player
from scrubjay.players.by_name import SEEKERS, make_hider, make_seeker
from scrubjay.players.explorer import Explorer
from scrubjay.players.manipulator import Manipulator
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import SpotEpisodes, free_positions
from scrubjay.spots.spots import DIFFICULTIES, Spot, Spots, candidate_spots, load_spot_files, load_spots

MakePlayer = Callable[[int], Player]
"""Makes a player from a seed, so that the same seed plays the same games; a player's class often does."""
HIDES = 10
"""How many times a hiding spot is looked for before a room counts as having none."""


@dataclass(frozen=True)
class Task:
    """What all four have."""

    stage: ClassVar[Stage]
    """The learner's."""
    trainable: ClassVar[bool] = True
    """Whether a training run can learn it."""
    baselines: ClassVar[dict[str, MakePlayer]] = {name: SEEKERS[name] for name in ("random", "possible")}
    """Scripted players that agents are compared with."""
    goals: tuple[str, ...] = GOALS
    """The objects that are hidden."""
    turned: bool = False
    """Turns every other game's grid by a random angle, as the paper augments its data."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "goals", (self.goals,) if isinstance(self.goals, str) else tuple(self.goals))
        self.sampler(0)  # Says what is wrong with the goals before any room is made.

    def sampler(self, seed: int) -> EpisodeSampler:
        """Deals games, the same ones for the same seed."""
        raise NotImplementedError

    def players(self, seed: int) -> Player:
        """Plays all stages but the learner's."""
        return ByStage({})

    def loaded(self, scenes: Sequence[str]) -> Task:
        """The same with all that is in files read, for rooms of these names."""
        return self


@dataclass(frozen=True)
class Explore(Task):
    """E&M alone: 200 steps to see and open as much as there is."""

    stage: ClassVar[Stage] = Stage.EM
    baselines: ClassVar[dict[str, MakePlayer]] = {**Task.baselines, "frontier": Explorer}

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned, Stage.EM, Stage.EM)


@dataclass(frozen=True)
class Manipulate(Task):
    """OM alone: 50 steps to bring the object in the hand to a target that is drawn at random."""

    stage: ClassVar[Stage] = Stage.OM
    baselines: ClassVar[dict[str, MakePlayer]] = {**Task.baselines, "scripted": Manipulator}

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned, Stage.OM, Stage.OM)


@dataclass(frozen=True)
class Hide(Task):
    """OH from a place that is drawn at random: 15 steps to hide an object. Each PlaceAt is a whole manipulation."""

    stage: ClassVar[Stage] = Stage.OH
    trainable: ClassVar[bool] = False
    manipulator: MakePlayer = Manipulator
    """Plays the manipulations, by default with a script."""
    opponent: str | MakePlayer | None = None
    """The seeker, or its name; without one the game ends with the hiding, and only the hiding itself is rewarded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "opponent", by_name(self.opponent, make_seeker))
        super().__post_init__()

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned, Stage.OH, Stage.S if self.opponent else Stage.OH)

    def players(self, seed: int) -> Player:
        players = {Stage.OM: self.manipulator(seed)}
        if callable(self.opponent):
            players[Stage.S] = self.opponent(seed)
        return ByStage(players)


@dataclass(frozen=True)
class Seek(Task):
    """S: 500 steps to find an object, in a hiding spot drawn anew for every game unless an opponent or spots are given.

    Drawing a spot takes a few tenths of a second in a furnished room; spots from files cost nothing.
    """

    stage: ClassVar[Stage] = Stage.S
    baselines: ClassVar[dict[str, MakePlayer]] = {**Task.baselines, "frontier": SEEKERS["frontier"]}
    opponent: str | MakePlayer | None = None
    """The hider, or its name: it plays whole games from the beginning, 200 steps of exploring and all."""
    spots: str | os.PathLike[str] | Sequence[Spots] = ()
    """Hiding spots to draw from: a folder of files that `scrubjay spots` made, such a file, or what is in some."""
    difficulties: tuple[str, ...] = DIFFICULTIES
    """Which of these spots."""

    def __post_init__(self) -> None:
        if self.opponent and self.spots:
            raise ValueError("an object is hidden by an opponent or lies in a given spot, not both")
        object.__setattr__(self, "opponent", by_name(self.opponent, make_hider))
        one = isinstance(self.difficulties, str)
        object.__setattr__(self, "difficulties", (self.difficulties,) if one else tuple(self.difficulties))
        super().__post_init__()

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned) if self.opponent else Searches(self, seed)

    def players(self, seed: int) -> Player:
        return self.opponent(seed) if callable(self.opponent) else ByStage({})

    def loaded(self, scenes: Sequence[str]) -> Task:
        if not isinstance(self.spots, str | os.PathLike):
            return self
        path = Path(self.spots)
        return replace(self, spots=load_spot_files(path, scenes, self.goals) if path.is_dir() else [load_spots(path)])


class Searches:
    """Deals searches alone."""

    def __init__(self, task: Seek, seed: int) -> None:
        self.task, self.rng = task, np.random.default_rng(seed)
        spots = () if isinstance(task.spots, str | os.PathLike) else task.spots
        self.given = SpotEpisodes(spots, task.goals, task.difficulties, seed)

    def __call__(self, world: World, number: int) -> EpisodeSpec:
        rng, room = self.rng, world.rooms[world.room_of[number]]
        if self.task.spots:
            deal = self.given(world, number)
        else:
            spot = self._spot(room)
            positions = free_positions(room, spot)
            x, y = positions[rng.integers(len(positions))]
            start = AgentPose(float(x), float(y), 90.0 * int(rng.integers(4)), True)
            deal = EpisodeSpec(spot.goal, start, Stage.S, Stage.S, pose=spot.pose, open=spot.open)
        if self.task.turned and rng.random() < ROTATED_SHARE:
            return replace(deal, start=deal.start._replace(rotation=float(rng.integers(360))))
        return deal

    def _spot(self, room: CompiledRoom) -> Spot:
        """A hiding spot nobody has chosen."""
        for _ in range(HIDES):
            try:
                return candidate_spots(room, self.task.goals[self.rng.integers(len(self.task.goals))], 1, self.rng)[0]
            except SpotError:
                continue  # Not every kind of spot has room for every object.
        raise SpotError(f"{room.room.scene}: nowhere to hide a {' or '.join(self.task.goals)}")


def by_name(player: str | MakePlayer | None, make: Callable[[str, int], Player]) -> MakePlayer | None:
    """What makes a player who may be given by a name; ValueError names the choices."""
    if not isinstance(player, str):
        return player
    make(player, 0)
    return partial(make, player)


class ByStage:
    """Players who play a stage each."""

    def __init__(self, players: dict[Stage, Player]) -> None:
        self.of = players

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, place = np.full(len(game), NOTHING), np.zeros((len(game), 4), int)
        for stage, player in self.of.items():
            mine = games & (game.stage == stage)
            if mine.any():
                now, there = player(game, mine)
                action, place = np.where(mine, now, action), np.where(mine[:, None], there, place)
        return action, place


@dataclass(frozen=True)
class WholeGame(Task):
    """All stages, from exploring to seeking, by one agent."""

    stage: ClassVar[Stage] = Stage.S

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned)


TASKS: dict[str, type[Task]] = {
    "explore": Explore,
    "manipulate": Manipulate,
    "hide": Hide,
    "seek": Seek,
    "cache": WholeGame,
}
"""Tasks by name. To add one: a class like these, and its line here."""
