"""Matches: games between given players, many side by side or one alone, as records."""

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
from scrubjay.players.base import HiderAndSeeker, Player
from scrubjay.players.by_name import HIDERS, make_hider, make_seeker
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import SpotEpisodes
from scrubjay.spots.spots import DIFFICULTIES, load_spots, make_spots, spots_path

QUICK_CANDIDATES = 100
"""Candidates from which the spots of a single game are selected if there is no spots file."""


@dataclass(frozen=True)
class Match:
    """A game to play: room, players by name, and episode. A hiding alone has no seeker."""

    scene: str
    hider: str
    seeker: str
    spec: EpisodeSpec


def play_scripted_game(
    scene: str,
    goal: str,
    hider: str,
    seeker: str,
    seed: int = 0,
    renderer: str = "auto",
    spots: Path | None = None,
    size: int = 224,
) -> Record:
    """Plays one game of scripted players, by name.

    With a difficulty as `hider` nobody hides: the object starts in a spot of that difficulty, from the folder `spots`
    or else selected on the fly.
    """
    check_names("hider", [hider], (*HIDERS, *DIFFICULTIES))
    searching = hider in DIFFICULTIES
    players = HiderAndSeeker(None if searching else make_hider(hider, seed), make_seeker(seeker, seed))
    sampler: EpisodeSampler = RandomEpisodes(seed, (goal,))
    with World([scene], renderer=renderer, size=size) as world:
        if searching:
            room_spots = (
                load_spots(spots_path(spots, scene, goal), scene, goal)
                if spots
                else make_spots(world.rooms[0], goal, QUICK_CANDIDATES)
            )
            sampler = SpotEpisodes([room_spots], (goal,), (hider,), seed)
        match = Match(scene, hider, seeker, sampler(world, 0))
        ((_, record),) = play_matches(world, [match], players)
    return record


def check_names(role: str, names: Sequence[str], known: Iterable[str]) -> None:
    """ValueError if players are unknown or named twice, or if there are none."""
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ValueError(f"unknown {role} {', '.join(unknown) or 'none'}; choose from {', '.join(known)}")
    if len(set(names)) < len(names):
        raise ValueError(f"name every {role} once")


def play_matches(
    world: World, matches: Sequence[Match], player: Player, limits: np.ndarray = LIMITS
) -> Iterator[tuple[Match, Record]]:
    """Plays matches in the rooms of a world, one per world at a time, and yields each when it is over."""
    waiting: dict[str, deque[Match]] = {room.room.scene: deque() for room in world.rooms}
    for match in matches:
        waiting[match.scene].append(match)
    playing: list[Match | None] = [None] * len(world)

    def next_spec(world: World, number: int) -> EpisodeSpec:
        room = world.rooms[world.room_of[number]]
        queue = waiting[room.room.scene]
        started = playing[number] = queue.popleft() if queue else None
        # A world without a match idles until the others are done.
        return started.spec if started else _idle_spec(room)

    game = CacheGame(world, next_spec, limits, forgiving=True)
    recorder = Recorder(game)
    while any(playing):
        before, games = playing.copy(), np.array([match is not None for match in playing])
        action, place = player(game, games)
        outcome = game.step(np.where(games, action, NOTHING), place)
        records = recorder.note(outcome, place)
        for number, record in zip(np.flatnonzero(outcome.finished).tolist(), records, strict=True):
            if (done := before[number]) is not None:
                record.players = {"hider": done.hider} | ({"seeker": done.seeker} if done.seeker else {})
                yield done, record


def _idle_spec(room: CompiledRoom) -> EpisodeSpec:
    """An episode in which nobody acts."""
    x, y = room.floor.reachable().positions[0].tolist()
    return EpisodeSpec(GOALS[0], AgentPose(x, y, 0.0, True), Stage.EM, Stage.EM)
