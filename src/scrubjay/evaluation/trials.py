"""Trials: objects hidden by players, by people or in spots, and every seeker's search for each of them.

A hiding is played once; then every seeker searches for the object from the hider's start. Objects that are visible from
no reachable pose, whatever is open, count as not found without a search. Finished games go to a journal, from which
interrupted trials resume.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrubjay.evaluation.journal import Journal, SearchResult
from scrubjay.evaluation.matches import Match, play_matches
from scrubjay.evaluation.scores import Score, score
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, new_record
from scrubjay.game.stages import LIMITS, SEEKER_STEPS
from scrubjay.players.base import Player
from scrubjay.rooms.directions import QUARTERS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import free_positions
from scrubjay.spots.spots import Spot

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
) -> list[Hiding]:
    """Plays what the journal lacks, and returns all hidings.

    Args:
        playing: Seed, images and devices.
        games: For each scene, how many hidings and searches there are; for the progress.
        trials_in: A room's trials.
        hiders: The players of hidings.
        seekers: Those who search, all for every object.
        journal: Where games are kept.
        progress: Called after every game.
    """
    scenes, total = tuple(games), sum(games.values())
    rooms_at_once, limits = min(playing.at_once, len(scenes)), np.array(playing.limits)
    hidings: list[Hiding] = []
    for first in range(0, len(scenes), rooms_at_once):
        done = itertools.count(sum(games[scene] for scene in scenes[:first]))

        def report(done: Iterator[int] = done) -> None:
            progress(min(next(done), total), total)

        report()
        seed = int(np.random.SeedSequence([playing.seed, first]).generate_state(1)[0])
        here = scenes[first : first + rooms_at_once]
        with World(here, playing.at_once // rooms_at_once, playing.renderer, playing.size, playing.device) as world:
            trials = [(room, trial) for room in world.rooms for trial in trials_in(room)]
            for name in dict.fromkeys(trial.player for _, trial in trials if trial.player):
                matches = [trial.match for _, trial in trials if trial.player == name]
                _play_missing(journal, world, matches, hiders[name](seed), report, limits)
            searches = [(trial.hider, _search(journal, world, room, trial)) for room, trial in trials]
            for name, seeker in seekers.items():
                matches = [replace(search, seeker=name) for _, search in searches if journal.scores[search].bfs_found]
                _play_missing(journal, world, matches, seeker(seed), report, limits)
        hidings += [
            _hiding(hider, journal, search, seekers, journal.hidings[trial.match] if trial.player else None)
            for (hider, search), (_, trial) in zip(searches, trials, strict=True)
        ]
    progress(total, total)
    return hidings


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
    journal: Journal,
    world: World,
    matches: Sequence[Match],
    player: Player,
    report: Callable[[], None],
    limits: np.ndarray,
) -> None:
    """Plays the matches that the journal lacks."""
    missing = [match for match in matches if not journal.has(match)]
    for _ in range(len(matches) - len(missing)):
        report()
    for match, record in play_matches(world, missing, player, limits) if missing else ():
        journal.add_game(match, record)
        report()


def _search(journal: Journal, world: World, room: CompiledRoom, trial: Trial) -> Match:
    """The search, without a seeker yet, for a trial's object; scores the hiding if the journal has not."""
    match, record = trial.match, None
    if trial.player:
        record = journal.hidings[match]
        match = replace(match, spec=search_after(record))
    if match not in journal.scores:
        unplayed = _unplayed_record(match, world, room)
        journal.add_score(match, unplayed, score(record or unplayed, room))
    return match


def _unplayed_record(match: Match, world: World, room: CompiledRoom) -> Record:
    """The record of a search before its first step."""
    record = new_record(room.room, match.spec, world, {"hider": match.hider})
    record.hidden = {"pose": list(match.spec.pose or ()), "open": list(match.spec.open)}
    return record


def _hiding(hider: str, journal: Journal, search: Match, seekers: Players, record: Record | None) -> Hiding:
    hiding_score, not_found = journal.scores[search], SearchResult(False, SEEKER_STEPS, 0)
    results = {
        name: journal.results[replace(search, seeker=name)] if hiding_score.bfs_found else not_found for name in seekers
    }
    return Hiding(search.scene, hider, search.spec.goal, hiding_score, results, record)
