"""Tasks: a stage to learn, the episodes to learn it in, and who plays the other stages.

A task is one class here; its name in `registration.py` makes it a Gymnasium environment, whose options are its fields.
"""

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
from scrubjay.placements.episodes import PlacementEpisodes
from scrubjay.placements.placements import Placements, load_placement_files, load_placements
from scrubjay.players.base import Player
from scrubjay.players.by_name import SEEKERS, make_hider, make_seeker
from scrubjay.players.explorer import Explorer
from scrubjay.players.manipulator import Manipulator
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.compile import CompiledRoom
from scrubjay.spots.episodes import SpotEpisodes, search_episode
from scrubjay.spots.spots import DIFFICULTIES, Spot, Spots, candidate_spots, load_spot_files, load_spots

MakePlayer = Callable[[int], Player]
"""Makes a player from a seed, as a player's class does; the same seed plays the same games."""
MAX_SPOT_TRIES = 10
"""Tries to draw a hiding spot before a room counts as having none."""


@dataclass(frozen=True)
class Task:
    """Base class of tasks."""

    stage: ClassVar[Stage]
    """The stage that is learned."""
    trainable: ClassVar[bool] = True
    """Whether a training run can learn it."""
    baselines: ClassVar[dict[str, MakePlayer]] = {name: SEEKERS[name] for name in ("random", "possible")}
    """Scripted players that agents are compared with."""
    validation_metric: ClassVar[str]
    """The metric of `Score`, higher is better, by which training picks a run's best checkpoint."""
    goals: tuple[str, ...] = GOALS
    """Objects to hide."""
    turned: bool = False
    """Rotates every other game's grid by a random angle, the paper's data augmentation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "goals", (self.goals,) if isinstance(self.goals, str) else tuple(self.goals))
        self.sampler(0)  # Checks the goals before any room is made.

    def sampler(self, seed: int) -> EpisodeSampler:
        """Samples the task's episodes, the same ones for the same seed."""
        raise NotImplementedError

    def players(self, seed: int) -> Player:
        """Plays all stages but the learned one."""
        return ByStage({})

    def load(self, scenes: Sequence[str]) -> Task:
        """The task with its files read, for rooms of these names."""
        return self


@dataclass(frozen=True)
class Explore(Task):
    """E&M alone: 200 steps to visit and open as much as possible."""

    stage: ClassVar[Stage] = Stage.EM
    validation_metric: ClassVar[str] = "coverage_plus"
    baselines: ClassVar[dict[str, MakePlayer]] = {**Task.baselines, "frontier": Explorer}

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned, Stage.EM, Stage.EM)


@dataclass(frozen=True)
class Manipulate(Task):
    """OM alone: 50 steps to bring the object in the hand to a plausible target, or to any of the 147.

    Without placements targets are uniform, and most cannot be hit.
    """

    stage: ClassVar[Stage] = Stage.OM
    validation_metric: ClassVar[str] = "hit_target"
    baselines: ClassVar[dict[str, MakePlayer]] = {**Task.baselines, "scripted": Manipulator}
    placements: str | os.PathLike[str] | Sequence[Placements] = ()
    """Plausible placements to draw from: a folder of `scrubjay placements`, one of its files, or `Placements`."""

    def sampler(self, seed: int) -> EpisodeSampler:
        if not self.placements:
            return RandomEpisodes(seed, self.goals, self.turned, Stage.OM, Stage.OM)
        loaded = () if isinstance(self.placements, str | os.PathLike) else self.placements
        return PlacementEpisodes(loaded, self.goals, self.turned, seed)

    def load(self, scenes: Sequence[str]) -> Task:
        if not self.placements or not isinstance(self.placements, str | os.PathLike):
            return self
        path = Path(self.placements)
        loaded = load_placement_files(path, scenes, self.goals) if path.is_dir() else [load_placements(path)]
        return replace(self, placements=loaded)


@dataclass(frozen=True)
class Hide(Task):
    """OH from a random place: 15 steps to hide an object, each PlaceAt a whole manipulation."""

    stage: ClassVar[Stage] = Stage.OH
    validation_metric: ClassVar[str] = "placed"
    trainable: ClassVar[bool] = False
    manipulator: MakePlayer = Manipulator
    """Plays the manipulations, scripted by default."""
    opponent: str | MakePlayer | None = None
    """The seeker, or its name. Without one the game ends with OH, and only OH itself is rewarded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "opponent", player_maker(self.opponent, make_seeker))
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
    """S: 500 steps to find an object in a random hiding spot, in a given one, or where an opponent hid it.

    Drawing a spot takes a few tenths of a second in a furnished room; spots from files cost nothing.
    """

    stage: ClassVar[Stage] = Stage.S
    validation_metric: ClassVar[str] = "found"
    baselines: ClassVar[dict[str, MakePlayer]] = {**Task.baselines, "frontier": SEEKERS["frontier"]}
    opponent: str | MakePlayer | None = None
    """The hider, or its name. It plays each game from the beginning, with 200 steps of E&M."""
    spots: str | os.PathLike[str] | Sequence[Spots] = ()
    """Hiding spots to draw from: a folder of `scrubjay spots`, one of its files, or `Spots`."""
    difficulties: tuple[str, ...] = DIFFICULTIES
    """Difficulties of the given spots."""

    def __post_init__(self) -> None:
        if self.opponent and self.spots:
            raise ValueError("an object is hidden by an opponent or lies in a given spot, not both")
        object.__setattr__(self, "opponent", player_maker(self.opponent, make_hider))
        one = isinstance(self.difficulties, str)
        object.__setattr__(self, "difficulties", (self.difficulties,) if one else tuple(self.difficulties))
        super().__post_init__()

    def sampler(self, seed: int) -> EpisodeSampler:
        return RandomEpisodes(seed, self.goals, self.turned) if self.opponent else SearchEpisodes(self, seed)

    def players(self, seed: int) -> Player:
        return self.opponent(seed) if callable(self.opponent) else ByStage({})

    def load(self, scenes: Sequence[str]) -> Task:
        if not isinstance(self.spots, str | os.PathLike):
            return self
        path = Path(self.spots)
        return replace(self, spots=load_spot_files(path, scenes, self.goals) if path.is_dir() else [load_spots(path)])


class SearchEpisodes:
    """Samples episodes of S alone for a `Seek` task: in its spots, or in spots drawn at random."""

    def __init__(self, task: Seek, seed: int) -> None:
        self.task, self.rng = task, np.random.default_rng(seed)
        spots = () if isinstance(task.spots, str | os.PathLike) else task.spots
        self.in_given_spots = SpotEpisodes(spots, task.goals, task.difficulties, seed)

    def __call__(self, world: BaseWorld, number: int) -> EpisodeSpec:
        rng, room = self.rng, world.rooms[world.room_of[number]]
        if self.task.spots:
            spec = self.in_given_spots(world, number)
        else:
            spec = search_episode(room, self._draw_spot(room), rng)
        if self.task.turned and rng.random() < ROTATED_SHARE:
            return replace(spec, start=spec.start._replace(rotation=float(rng.integers(360))))
        return spec

    def _draw_spot(self, room: CompiledRoom) -> Spot:
        for _ in range(MAX_SPOT_TRIES):
            try:
                return candidate_spots(room, self.task.goals[self.rng.integers(len(self.task.goals))], 1, self.rng)[0]
            except SpotError:
                continue  # Not every kind of spot has room for every object.
        raise SpotError(f"{room.room.scene}: nowhere to hide a {' or '.join(self.task.goals)}")


def player_maker(player: str | MakePlayer | None, make: Callable[[str, int], Player]) -> MakePlayer | None:
    """Resolves a player that may be given by name; ValueError names the choices."""
    if not isinstance(player, str):
        return player
    make(player, 0)  # Checks the name.
    return partial(make, player)


class ByStage:
    """Combines players by stage."""

    def __init__(self, players: dict[Stage, Player]) -> None:
        self.players = players

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, place = np.full(len(game), NOTHING), np.zeros((len(game), 4), int)
        for stage, player in self.players.items():
            mine = games & (game.stage == stage)
            if mine.any():
                own_action, own_place = player(game, mine)
                action, place = np.where(mine, own_action, action), np.where(mine[:, None], own_place, place)
        return action, place


@dataclass(frozen=True)
class WholeGame(Task):
    """All stages, from exploring to seeking, by one agent."""

    stage: ClassVar[Stage] = Stage.S
    # Not `found`: hider and seeker are one agent, and a better hider is found less.
    validation_metric: ClassVar[str] = "placed"

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
