"""Tournaments: the same hiding places, of players and of spot sets, for every seeker.

A hiding is played once, and then every seeker searches for what was hidden from where the hider began. What cannot be
seen from any reachable place, whatever is open, is shown to no seeker and counts as not found. Finished games go to a
journal, so that a tournament that was stopped goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scrubjay.errors import SpotError
from scrubjay.evaluation.journal import Journal, Result
from scrubjay.evaluation.matches import Trial, check_names, matches
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
"""Names, and what makes a player of each from a seed."""
Progress = Callable[[int, int], None]
"""Told how many games are done, and of how many."""


@dataclass(frozen=True)
class Plan:
    """What is played."""

    hiders: tuple[str, ...]
    """Names of players, or difficulties of spots, which nobody has to hide."""
    seekers: tuple[str, ...]
    scenes: tuple[str, ...]
    games: int = 5
    """Hidings of each hider in each room, of the five objects in turn."""
    seed: int = 0
    spots: Path | None = None
    """The folder of the spots."""
    size: int = 224
    renderer: str = "auto"
    device: str = "cpu"
    at_once: int = 4
    """Games that are played side by side."""

    @property
    def active(self) -> tuple[str, ...]:
        """Hiders that play."""
        return tuple(name for name in self.hiders if name not in DIFFICULTIES)

    @property
    def games_a_room(self) -> int:
        """Hidings and searches."""
        return self.games * (len(self.active) + len(self.hiders) * len(self.seekers))


@dataclass(frozen=True)
class Hiding:
    """An object that waited to be found, and how the seekers did."""

    scene: str
    hider: str
    goal: str
    score: Score
    results: dict[str, Result]
    """By seeker."""

    @property
    def seen(self) -> bool:
        """Can it be seen from any reachable place, if the right things are opened?"""
        return bool(self.score.bfs_found)


def play_tournament(
    plan: Plan, hiders: Players, seekers: Players, folder: Path, progress: Progress = lambda done, total: None
) -> list[Hiding]:
    """Plays what the folder's journal does not have yet, and gives all hidings of the plan."""
    check(plan, hiders, seekers)
    journal = Journal(folder, plan.size)
    rooms = min(plan.at_once, len(plan.scenes))
    found: list[Hiding] = []
    for wave in range(0, len(plan.scenes), rooms):
        done = itertools.count(wave * plan.games_a_room)

        def tell(done: Iterator[int] = done) -> None:
            progress(next(done), len(plan.scenes) * plan.games_a_room)

        tell()
        seed = int(np.random.SeedSequence([plan.seed, wave]).generate_state(1)[0])
        scenes = plan.scenes[wave : wave + rooms]
        with World(scenes, plan.at_once // rooms, plan.renderer, plan.size, plan.device) as world:
            specs = {room.room.scene: _episodes(plan, room) for room in world.rooms}
            for name in plan.active:
                trials = [Trial(scene, name, "", spec) for scene in scenes for spec in specs[scene]]
                _fill(journal, world, trials, hiders[name](seed), tell)
            places = [
                place
                for room in world.rooms
                for name in plan.hiders
                for place in _places(plan, journal, world, room, name, specs[room.room.scene])
            ]
            for name in plan.seekers:
                trials = [replace(place, seeker=name) for place in places if journal.scores[place].bfs_found]
                _fill(journal, world, trials, seekers[name](seed), tell)
        found += [_hiding(plan, journal, place) for place in places]
    progress(len(plan.scenes) * plan.games_a_room, len(plan.scenes) * plan.games_a_room)
    return found


def check(plan: Plan, hiders: Players, seekers: Players) -> None:
    """ValueError where something in the plan is not there, before anything is played."""
    check_names("hider", plan.hiders, (*hiders, *DIFFICULTIES))
    check_names("seeker", plan.seekers, seekers)
    if plan.games < 1 or plan.at_once < 1 or not plan.scenes or len(set(plan.scenes)) < len(plan.scenes):
        raise ValueError("a tournament has rooms, each once, and at least one game in each and at once")
    for scene in plan.scenes:
        make_room(scene)
    if len(plan.active) < len(plan.hiders):
        for scene, goal in itertools.product(plan.scenes, GOALS[: plan.games]):
            _spots(plan, scene, goal)


def episodes(room: CompiledRoom, seed: int) -> Iterator[EpisodeSpec]:
    """Hidings in a room, the same for every hider: the objects in turn, no start twice."""
    rng = np.random.default_rng([seed, *room.room.scene.encode()])
    positions = room.floor.reachable().positions
    for number, start in enumerate(rng.permutation(QUARTERS * len(positions)).tolist()):
        x, y = positions[start // QUARTERS].tolist()
        place = AgentPose(x, y, 360 / QUARTERS * (start % QUARTERS), True)
        yield EpisodeSpec(GOALS[number % len(GOALS)], place, Stage.EM, Stage.OH)


def _episodes(plan: Plan, room: CompiledRoom) -> list[EpisodeSpec]:
    some = list(itertools.islice(episodes(room, plan.seed), plan.games))
    if len(some) < plan.games:
        raise ValueError(f"{room.room.scene} has {len(some)} places to begin at, too few for {plan.games} games")
    return some


def _fill(journal: Journal, world: World, trials: Sequence[Trial], player: Player, tell: Callable[[], None]) -> None:
    """Plays those trials that the journal does not have."""
    left = [trial for trial in trials if not journal.has(trial)]
    for _ in range(len(trials) - len(left)):
        tell()
    for trial, record in matches(world, left, player) if left else ():
        journal.add_game(trial, record)
        tell()


def _places(
    plan: Plan, journal: Journal, world: World, room: CompiledRoom, hider: str, specs: Sequence[EpisodeSpec]
) -> list[Trial]:
    """Where a hider hid what it was dealt, as searches that have no seeker yet, each with its score in the journal."""
    scene, found = room.room.scene, []
    for number, spec in enumerate(specs):
        record = None
        if hider in DIFFICULTIES:
            some = _spots(plan, scene, spec.goal).get(hider, ())
            if not some:
                continue
            spot = some[number // len(GOALS) % len(some)]
            start = _nearest(free_positions(room, spot), spec.start)
            search = replace(spec, start=start, first=Stage.S, last=Stage.S, pose=spot.pose, open=spot.open)
        else:
            record = journal.hidings[Trial(scene, hider, "", spec)]
            assert record.hidden
            pose, is_open = tuple(record.hidden["pose"]), tuple(record.hidden["open"])
            search = replace(spec, first=Stage.S, last=Stage.S, pose=pose, open=is_open)
        trial = Trial(scene, hider, "", search)
        if trial not in journal.scores:
            place = waiting(trial, world)
            journal.add_score(trial, place, score(record or place, room))
        found.append(trial)
    return found


def _nearest(positions: np.ndarray, place: AgentPose) -> AgentPose:
    """The place at the nearest of positions (n, 2): what is open for a spot may stand where others begin."""
    x, y = positions[np.linalg.norm(positions - place[:2], axis=1).argmin()].tolist()
    return place._replace(x=x, y=y)


def _spots(plan: Plan, scene: str, goal: str) -> dict:
    if plan.spots is None or not (path := spots_path(plan.spots, scene, goal)).exists():
        where = plan.spots or "no folder"
        raise SpotError(f"no spots of a {goal} in {scene} in {where}; `scrubjay spots {scene}` makes them")
    return load_spots(path, scene, goal).spots


def waiting(trial: Trial, world: World) -> Record:
    """The record of a search before its first step."""
    record = new_record(trial.scene, trial.spec, world, {"hider": trial.hider})
    record.hidden = {"pose": list(trial.spec.pose or ()), "open": list(trial.spec.open)}
    return record


def _hiding(plan: Plan, journal: Journal, place: Trial) -> Hiding:
    kept, nothing = journal.scores[place], Result(False, SEEKER_STEPS, 0)
    results = {
        name: journal.results[replace(place, seeker=name)] if kept.bfs_found else nothing for name in plan.seekers
    }
    return Hiding(place.scene, place.hider, place.spec.goal, kept, results)
