"""Trials: objects hidden by players, by people or in spots, and every seeker's search for each of them.

A hiding is played once; then every seeker searches for the object from the hider's start. Objects that are visible from
no reachable pose, whatever is open, count as not found without a search. Finished games go to a journal, from which
interrupted trials resume.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from scrubjay.evaluation.journal import Additions, Journal, Ledger, SearchResult
from scrubjay.evaluation.matches import Match, play_matches
from scrubjay.evaluation.scores import Score, score
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, new_record
from scrubjay.game.stages import LIMITS, SEEKER_STEPS
from scrubjay.players.base import Player
from scrubjay.rooms.directions import QUARTERS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_rooms
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import free_positions
from scrubjay.spots.spots import Spot
from scrubjay.workers.base import HERE, InProcess, Workers

Players = Mapping[str, Callable[[int], Player]]
"""Factories by name, which take a seed."""
Progress = Callable[[int, int], None]
"""Called with the finished games and all games."""


@dataclass(frozen=True)
class Trial:
    """An object to hide and to search for."""

    hider: str
    """Its name in the results."""
    match: Match
    """Without a seeker: a hiding to play, or, for what is hidden already, the search."""
    player: str = ""
    """Who plays the hiding; empty for a search."""


@dataclass(frozen=True)
class Hiding:
    """A hidden object, and how the seekers did."""

    scene: str
    hider: str
    goal: str
    score: Score
    results: dict[str, SearchResult]
    """By seeker."""
    record: Record | None = None
    """Of the game in which a player hid it; None for spots and people."""

    @property
    def can_be_seen(self) -> bool:
        """Whether it is visible from a reachable pose if the right things are open."""
        return bool(self.score.bfs_found)


@dataclass(frozen=True)
class Playing:
    """How trials are played."""

    seed: int = 0
    size: int = 224
    renderer: str = "auto"
    device: str = "cpu"
    at_once: int = 4
    """Games played side by side."""
    limits: tuple[int, ...] = tuple(LIMITS.tolist())
    """Maximum steps of each stage."""


def play_trials(
    playing: Playing,
    games: Mapping[str, int],
    trials_in: Callable[[CompiledRoom], Sequence[Trial]],
    hiders: Players,
    seekers: Players,
    journal: Journal,
    progress: Progress = lambda done, total: None,
    workers: Workers = HERE,
) -> list[Hiding]:
    """Plays what the journal lacks, and returns all hidings.

    Args:
        playing: Seed, images and devices.
        games: For each scene, how many hidings and searches there are; for the progress.
        trials_in: A room's trials.
        hiders: The players of hidings.
        seekers: Those who search, all for every object.
        journal: Where games are kept.
        progress: Called after every game, or after those of some rooms that a worker has played.
        workers: Who plays. As many rooms as there are games at once are a task; games do not depend on who plays them.
    """
    scenes, total = tuple(games), sum(games.values())
    at_once = min(playing.at_once, len(scenes))
    parts = [scenes[first : first + at_once] for first in range(0, len(scenes), at_once)]
    trials: list[Sequence[Trial]] = []

    def groups() -> Iterator[_Group]:
        for number, part in enumerate(parts):
            rooms = build_rooms(part)
            trials_of = [trials_in(room) for room in rooms]
            trials.extend(trials_of)
            yield _Group(number * at_once, playing.at_once // at_once, rooms, trials_of)

    if isinstance(workers, InProcess):
        # Every game is in the journal as soon as it has ended.
        for part, group in zip(parts, groups(), strict=True):
            done = itertools.count(sum(games[scene] for scene in scenes[: scenes.index(part[0])]))

            def report(done: Iterator[int] = done) -> None:
                progress(min(next(done), total), total)

            report()
            _play_group(playing, hiders, seekers, group, journal, report)
    else:
        progress(0, total)
        play, done_games = partial(_play_apart, playing, hiders, seekers, torch.is_autocast_enabled("cuda")), 0
        tasks = ((group, Additions(journal, part)) for part, group in zip(parts, groups(), strict=True))
        for number, additions in workers.map(play, tasks, gpu=playing.device.startswith("cuda")):
            journal.append(additions)
            done_games += sum(games[scene] for scene in parts[number])
            progress(min(done_games, total), total)
    progress(total, total)
    return [_hiding(trial, journal, seekers) for each in trials for trial in each]


@dataclass(frozen=True)
class _Group:
    """Rooms whose trials are played side by side."""

    number: int
    """Of the first room among all: what is sampled depends on it."""
    copies: int
    """Games at once in each room."""
    rooms: Sequence[CompiledRoom]
    trials: Sequence[Sequence[Trial]]
    """Of each room."""


def _play_group(
    playing: Playing, hiders: Players, seekers: Players, group: _Group, ledger: Ledger, report: Callable[[], None]
) -> None:
    """Plays what the ledger lacks of a group."""
    limits = np.array(playing.limits)
    seed = int(np.random.SeedSequence([playing.seed, group.number]).generate_state(1)[0])
    with World(group.rooms, group.copies, playing.renderer, playing.size, playing.device) as world:
        trials = [(room, trial) for room, own in zip(group.rooms, group.trials, strict=True) for trial in own]
        for name in dict.fromkeys(trial.player for _, trial in trials if trial.player):
            matches = [trial.match for _, trial in trials if trial.player == name]
            _play_missing(ledger, world, matches, hiders[name](seed), report, limits)
        searches = [_scored(ledger, world, room, trial) for room, trial in trials]
        for name, seeker in seekers.items():
            matches = [replace(search, seeker=name) for search in searches if ledger.scores[search].bfs_found]
            _play_missing(ledger, world, matches, seeker(seed), report, limits)


def _play_apart(
    playing: Playing, hiders: Players, seekers: Players, autocast: bool, group: _Group, additions: Additions
) -> Additions:
    """A worker's part: what it adds to the games that there are."""
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        _play_group(playing, hiders, seekers, group, additions, lambda: None)
    return additions


def hiding_specs(room: CompiledRoom, seed: int) -> Iterator[EpisodeSpec]:
    """Hiding episodes in a room, the same for every hider: the objects in turn, every start once."""
    rng = np.random.default_rng([seed, *room.room.scene.encode()])
    positions = room.floor.reachable().positions
    for number, start in enumerate(rng.permutation(QUARTERS * len(positions)).tolist()):
        x, y = positions[start // QUARTERS].tolist()
        pose = AgentPose(x, y, 360 / QUARTERS * (start % QUARTERS), True)
        yield EpisodeSpec(GOALS[number % len(GOALS)], pose, Stage.EM, Stage.OH)


def search_in_spot(room: CompiledRoom, spec: EpisodeSpec, spot: Spot) -> EpisodeSpec:
    """The search for an object in a spot from the free position that is nearest to a hiding's start."""
    positions = free_positions(room, spot)  # What is open for a spot may block the start.
    x, y = positions[np.linalg.norm(positions - spec.start[:2], axis=1).argmin()].tolist()
    start = spec.start._replace(x=x, y=y)
    return replace(spec, start=start, first=Stage.S, last=Stage.S, pose=spot.pose, open=spot.open)


def search_after(record: Record) -> EpisodeSpec:
    """The search for what was hidden in a recorded game, from the start of that game."""
    assert record.hidden is not None
    pose, is_open = tuple(map(float, record.hidden["pose"])), tuple(map(int, record.hidden["open"]))
    return EpisodeSpec(record.goal, record.start, Stage.S, Stage.S, pose=pose, open=is_open)


def _play_missing(
    ledger: Ledger,
    world: World,
    matches: Sequence[Match],
    player: Player,
    report: Callable[[], None],
    limits: np.ndarray,
) -> None:
    """Plays the matches that the ledger lacks."""
    missing = [match for match in matches if not ledger.has(match)]
    for _ in range(len(matches) - len(missing)):
        report()
    for match, record in play_matches(world, missing, player, limits) if missing else ():
        ledger.add_game(match, record)
        report()


def _search(ledger: Ledger, trial: Trial) -> Match:
    """The search, without a seeker yet, for a trial's object."""
    return replace(trial.match, spec=search_after(ledger.hidings[trial.match])) if trial.player else trial.match


def _scored(ledger: Ledger, world: World, room: CompiledRoom, trial: Trial) -> Match:
    """The search for a trial's object; scores the hiding if the ledger has not."""
    search = _search(ledger, trial)
    if search not in ledger.scores:
        unplayed = _unplayed_record(search, world, room)
        ledger.add_score(search, unplayed, score(ledger.hidings[trial.match] if trial.player else unplayed, room))
    return search


def _unplayed_record(match: Match, world: World, room: CompiledRoom) -> Record:
    """The record of a search before its first step."""
    record = new_record(room.room, match.spec, world, {"hider": match.hider})
    record.hidden = {"pose": list(match.spec.pose or ()), "open": list(match.spec.open)}
    return record


def _hiding(trial: Trial, ledger: Ledger, seekers: Players) -> Hiding:
    search = _search(ledger, trial)
    hiding_score, not_found = ledger.scores[search], SearchResult(False, SEEKER_STEPS, 0)
    results = {
        name: ledger.results[replace(search, seeker=name)] if hiding_score.bfs_found else not_found for name in seekers
    }
    record = ledger.hidings[trial.match] if trial.player else None
    return Hiding(search.scene, trial.hider, search.spec.goal, hiding_score, results, record)
