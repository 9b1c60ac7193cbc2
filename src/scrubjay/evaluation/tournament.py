"""Tournaments: hiders, and sets of hiding spots, against seekers. Every seeker meets the same hidings.

A hiding is played once; then every seeker searches for the object from the hider's start. Objects that are visible from
no reachable pose, whatever is open, count as not found without a search. Finished games go to a journal, from which an
interrupted tournament resumes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scrubjay.errors import SpotError
from scrubjay.evaluation.journal import Journal, SearchResult
from scrubjay.evaluation.matches import Match, check_names, play_matches
from scrubjay.evaluation.scores import Score, score
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, new_record
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.players.base import Player
from scrubjay.rooms.directions import QUARTERS
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.episodes import free_positions
from scrubjay.spots.spots import DIFFICULTIES, load_spots, spots_path

Players = Mapping[str, Callable[[int], Player]]
"""Factories by name, which take a seed."""
Progress = Callable[[int, int], None]
"""Called with the finished games and all games."""


@dataclass(frozen=True)
class TournamentPlan:
    """Players, rooms and games of a tournament."""

    hiders: tuple[str, ...]
    """Names of players, or difficulties: spots, which need no hider."""
    seekers: tuple[str, ...]
    scenes: tuple[str, ...]
    games: int = 5
    """Hidings per hider and room, of the five objects in turn."""
    seed: int = 0
    spots: Path | None = None
    """The folder of the spots files."""
    size: int = 224
    renderer: str = "auto"
    device: str = "cpu"
    at_once: int = 4
    """Games played side by side."""

    @property
    def playing_hiders(self) -> tuple[str, ...]:
        """Hiders other than difficulties."""
        return tuple(name for name in self.hiders if name not in DIFFICULTIES)

    @property
    def games_per_room(self) -> int:
        """Hidings and searches."""
        return self.games * (len(self.playing_hiders) + len(self.hiders) * len(self.seekers))


@dataclass(frozen=True)
class Hiding:
    """A hidden object, and how the seekers did."""

    scene: str
    hider: str
    goal: str
    score: Score
    results: dict[str, SearchResult]
    """By seeker."""

    @property
    def can_be_seen(self) -> bool:
        """Whether it is visible from a reachable pose if the right things are open."""
        return bool(self.score.bfs_found)


def play_tournament(
    plan: TournamentPlan, hiders: Players, seekers: Players, folder: Path, progress: Progress = lambda done, total: None
) -> list[Hiding]:
    """Plays what the folder's journal lacks, and returns all hidings of the plan."""
    check_plan(plan, hiders, seekers)
    journal = Journal(folder, plan.size)
    rooms_at_once = min(plan.at_once, len(plan.scenes))
    total = len(plan.scenes) * plan.games_per_room
    hidings: list[Hiding] = []
    for first in range(0, len(plan.scenes), rooms_at_once):
        done = itertools.count(first * plan.games_per_room)

        def report(done: Iterator[int] = done) -> None:
            progress(next(done), total)

        report()
        seed = int(np.random.SeedSequence([plan.seed, first]).generate_state(1)[0])
        scenes = plan.scenes[first : first + rooms_at_once]
        with World(scenes, plan.at_once // rooms_at_once, plan.renderer, plan.size, plan.device) as world:
            specs = {room.room.scene: _plan_specs(plan, room) for room in world.rooms}
            for name in plan.playing_hiders:
                matches = [Match(scene, name, "", spec) for scene in scenes for spec in specs[scene]]
                _play_missing(journal, world, matches, hiders[name](seed), report)
            searches = [
                search
                for room in world.rooms
                for name in plan.hiders
                for search in _searches(plan, journal, world, room, name, specs[room.room.scene])
            ]
            for name in plan.seekers:
                matches = [replace(search, seeker=name) for search in searches if journal.scores[search].bfs_found]
                _play_missing(journal, world, matches, seekers[name](seed), report)
        hidings += [_hiding(plan, journal, search) for search in searches]
    progress(total, total)
    return hidings


def check_plan(plan: TournamentPlan, hiders: Players, seekers: Players) -> None:
    """ValueError for unknown players, rooms or missing spots, before anything is played."""
    check_names("hider", plan.hiders, (*hiders, *DIFFICULTIES))
    check_names("seeker", plan.seekers, seekers)
    if plan.games < 1 or plan.at_once < 1 or not plan.scenes or len(set(plan.scenes)) < len(plan.scenes):
        raise ValueError("a tournament needs different rooms, at least one game in each, and one at a time")
    for scene in plan.scenes:
        make_room(scene)
    if len(plan.playing_hiders) < len(plan.hiders):
        for scene, goal in itertools.product(plan.scenes, GOALS[: plan.games]):
            _load_spots(plan, scene, goal)


def hiding_specs(room: CompiledRoom, seed: int) -> Iterator[EpisodeSpec]:
    """Hiding episodes in a room, the same for every hider: the objects in turn, every start once."""
    rng = np.random.default_rng([seed, *room.room.scene.encode()])
    positions = room.floor.reachable().positions
    for number, start in enumerate(rng.permutation(QUARTERS * len(positions)).tolist()):
        x, y = positions[start // QUARTERS].tolist()
        pose = AgentPose(x, y, 360 / QUARTERS * (start % QUARTERS), True)
        yield EpisodeSpec(GOALS[number % len(GOALS)], pose, Stage.EM, Stage.OH)


def _plan_specs(plan: TournamentPlan, room: CompiledRoom) -> list[EpisodeSpec]:
    specs = list(itertools.islice(hiding_specs(room, plan.seed), plan.games))
    if len(specs) < plan.games:
        raise ValueError(f"{room.room.scene} has {len(specs)} start poses, too few for {plan.games} games")
    return specs


def _play_missing(
    journal: Journal, world: World, matches: Sequence[Match], player: Player, report: Callable[[], None]
) -> None:
    """Plays the matches that the journal lacks."""
    missing = [match for match in matches if not journal.has(match)]
    for _ in range(len(matches) - len(missing)):
        report()
    for match, record in play_matches(world, missing, player) if missing else ():
        journal.add_game(match, record)
        report()


def _searches(
    plan: TournamentPlan, journal: Journal, world: World, room: CompiledRoom, hider: str, specs: Sequence[EpisodeSpec]
) -> list[Match]:
    """The searches, without a seeker yet, for what a hider hid; scores each hiding if the journal has not."""
    scene, searches = room.room.scene, []
    for number, spec in enumerate(specs):
        record = None
        if hider in DIFFICULTIES:
            spots = _load_spots(plan, scene, spec.goal).get(hider, ())
            if not spots:
                continue
            spot = spots[number // len(GOALS) % len(spots)]
            start = _nearest(free_positions(room, spot), spec.start)
            search = replace(spec, start=start, first=Stage.S, last=Stage.S, pose=spot.pose, open=spot.open)
        else:
            record = journal.hidings[Match(scene, hider, "", spec)]
            assert record.hidden
            pose, is_open = tuple(record.hidden["pose"]), tuple(record.hidden["open"])
            search = replace(spec, first=Stage.S, last=Stage.S, pose=pose, open=is_open)
        match = Match(scene, hider, "", search)
        if match not in journal.scores:
            unplayed = unplayed_record(match, world)
            journal.add_score(match, unplayed, score(record or unplayed, room))
        searches.append(match)
    return searches


def _nearest(positions: np.ndarray, pose: AgentPose) -> AgentPose:
    """A pose moved to the nearest of positions (n, 2): what is open for a spot may block the start."""
    x, y = positions[np.linalg.norm(positions - pose[:2], axis=1).argmin()].tolist()
    return pose._replace(x=x, y=y)


def _load_spots(plan: TournamentPlan, scene: str, goal: str) -> dict:
    if plan.spots is None or not (path := spots_path(plan.spots, scene, goal)).exists():
        where = f"in {plan.spots}" if plan.spots else "without a folder of spots"
        raise SpotError(f"there are no spots of a {goal} in {scene} {where}: make them with `scrubjay spots {scene}`")
    return load_spots(path, scene, goal).spots


def unplayed_record(match: Match, world: World) -> Record:
    """The record of a search before its first step."""
    record = new_record(match.scene, match.spec, world, {"hider": match.hider})
    record.hidden = {"pose": list(match.spec.pose or ()), "open": list(match.spec.open)}
    return record


def _hiding(plan: TournamentPlan, journal: Journal, search: Match) -> Hiding:
    hiding_score, not_found = journal.scores[search], SearchResult(False, SEEKER_STEPS, 0)
    results = {
        name: journal.results[replace(search, seeker=name)] if hiding_score.bfs_found else not_found
        for name in plan.seekers
    }
    return Hiding(search.scene, search.hider, search.spec.goal, hiding_score, results)
