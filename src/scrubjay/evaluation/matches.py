"""Games of given players, many side by side or one alone, as records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSampler, EpisodeSpec, RandomEpisodes
from scrubjay.game.record import Record, Recorder
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import Player
from scrubjay.players.by_name import HIDERS, make_hider, make_seeker
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import SpotEpisodes
from scrubjay.spots.spots import DIFFICULTIES, load_spots, make_spots, spots_path

QUICK = 100
"""Candidates from which the spots of a single game are chosen if there is no file of them."""


@dataclass(frozen=True)
class Trial:
    """A game to be played: who hides, who seeks, and where; a hiding alone has no seeker."""

    scene: str
    hider: str
    seeker: str
    spec: EpisodeSpec


def one_game(
    scene: str,
    goal: str,
    hider: str,
    seeker: str,
    seed: int = 0,
    renderer: str = "auto",
    spots: Path | None = None,
    size: int = 224,
) -> Record:
    """A game of scripted players, by name. A difficulty in the hider's place is a search for one of its spots."""
    check_names("hider", [hider], (*HIDERS, *DIFFICULTIES))
    hides, seeks = None if hider in DIFFICULTIES else make_hider(hider, seed), make_seeker(seeker, seed)
    sampler: EpisodeSampler = RandomEpisodes(seed, (goal,))
    with World([scene], renderer=renderer, size=size) as world:
        if hides is None:
            room = world.rooms[0]
            some = load_spots(spots_path(spots, scene, goal), scene, goal) if spots else make_spots(room, goal, QUICK)
            sampler = SpotEpisodes([some], (goal,), (hider,), seed)
        trial = Trial(scene, hider, seeker, sampler(world, 0))
        ((_, record),) = matches(world, [trial], Sides(hides, seeks))
    return record


def check_names(what: str, wanted: Sequence[str], known: Iterable[str]) -> None:
    """ValueError where players that are wanted are not known, or named twice."""
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise ValueError(f"unknown {what} {', '.join(unknown) or 'none'}; there are {', '.join(known)}")
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"every {what} is named once")


class Sides:
    """A player that hides and one that seeks, as one; without a hider only searches can be played."""

    def __init__(self, hider: Player | None, seeker: Player) -> None:
        self.hider, self.seeker = hider, seeker

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seeking = games & (game.stage == Stage.S)
        action, place = self.seeker(game, seeking)
        if self.hider is not None:
            hiding = games & ~seeking
            hidden, place = self.hider(game, hiding)
            action = np.where(hiding, hidden, action)
        return action, place


def matches(
    world: World, trials: Sequence[Trial], player: Player, limits: np.ndarray = LIMITS
) -> Iterator[tuple[Trial, Record]]:
    """Plays trials in the rooms of a world, as many at once as it has worlds, and gives each when it is over."""
    left: dict[str, deque[Trial]] = {room.room.scene: deque() for room in world.rooms}
    for each in trials:
        left[each.scene].append(each)
    now: list[Trial | None] = [None] * len(world)

    def sampler(world: World, number: int) -> EpisodeSpec:
        room = world.rooms[world.room_of[number]]
        trial = now[number] = left[room.room.scene].popleft() if left[room.room.scene] else None
        # A world that has no game left stands still until the others are done.
        return trial.spec if trial else _idle(room)

    game = CacheGame(world, sampler, limits, forgiving=True)
    recorder = Recorder(game)
    while any(now):
        before, games = now.copy(), np.array([trial is not None for trial in now])
        action, place = player(game, games)
        outcome = game.step(np.where(games, action, NOTHING), place)
        records = recorder.note(outcome, place)
        for number, record in zip(np.flatnonzero(outcome.finished).tolist(), records, strict=True):
            if (trial := before[number]) is not None:
                record.players = {"hider": trial.hider} | ({"seeker": trial.seeker} if trial.seeker else {})
                yield trial, record


def _idle(room: CompiledRoom) -> EpisodeSpec:
    """A game in which nobody does anything."""
    x, y = room.floor.reachable().positions[0].tolist()
    return EpisodeSpec(GOALS[0], AgentPose(x, y, 0.0, True), Stage.EM, Stage.EM)
