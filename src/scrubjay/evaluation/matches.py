"""Matches: games between given players, many in parallel, as records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, Recorder
from scrubjay.game.stages import LIMITS
from scrubjay.players.base import Player
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld, WorldRoom
from scrubjay.sim.pose import AgentPose


@dataclass(frozen=True)
class Match:
    """A game to play: room, players by name, and episode. A hiding alone has no seeker."""

    scene: str
    hider: str
    seeker: str
    spec: EpisodeSpec


def check_names(role: str, names: Sequence[str], known: Iterable[str]) -> None:
    """ValueError if players are unknown or named twice, or if there are none."""
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ValueError(f"unknown {role} {', '.join(unknown) or 'none'}; choose from {', '.join(known)}")
    if len(set(names)) < len(names):
        raise ValueError(f"name every {role} once")


def play_matches(
    world: BaseWorld, matches: Sequence[Match], player: Player, limits: np.ndarray = LIMITS
) -> Iterator[tuple[Match, Record]]:
    """Plays matches in the rooms of a world, one per world at a time, and yields each with its record when it ends."""
    waiting: dict[str, deque[Match]] = {room.room.scene: deque() for room in world.rooms}
    for match in matches:
        waiting[match.scene].append(match)
    playing: list[Match | None] = [None] * len(world)

    def next_spec(world: BaseWorld, number: int) -> EpisodeSpec:
        room = world.rooms[world.room_of[number]]
        queue = waiting[room.room.scene]
        started = playing[number] = queue.popleft() if queue else None
        # A world without a match idles until the others are done.
        return started.spec if started else idle_spec(room)

    game = CacheGame(world, next_spec, limits, forgiving=True)
    recorder = Recorder(game)
    while any(playing):
        before, games = playing.copy(), np.array([match is not None for match in playing])
        game.watched = games
        action, place = player(game, games)
        result = game.step(np.where(games, action, NOTHING), place)
        records = recorder.note(result, place)
        for number, record in zip(np.flatnonzero(result.finished).tolist(), records, strict=True):
            if (done := before[number]) is not None:
                record.players = {"hider": done.hider} | ({"seeker": done.seeker} if done.seeker else {})
                yield done, record


def idle_spec(room: WorldRoom) -> EpisodeSpec:
    """An episode for a world that waits: nothing to do but to stand there."""
    x, y = room.floor.reachable().positions[0].tolist()
    return EpisodeSpec(GOALS[0], AgentPose(x, y, 0.0, True), Stage.EM, Stage.EM)
