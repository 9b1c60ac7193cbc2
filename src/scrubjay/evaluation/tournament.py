"""Tournaments: hiders, and sets of hiding spots, against seekers. Every seeker meets the same hidings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scrubjay.errors import SpotError
from scrubjay.evaluation.journal import Journal
from scrubjay.evaluation.matches import Match, check_names
from scrubjay.evaluation.trials import (
    Hiding,
    Players,
    Playing,
    Progress,
    Trial,
    hiding_specs,
    play_trials,
    search_in_spot,
)
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.generate import SCENES, check_scene
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.spots.spots import DIFFICULTIES, FILES, Spots, load_spots, spots_path
from scrubjay.workers.base import HERE, Workers


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
    limits: tuple[int, ...] = tuple(LIMITS.tolist())
    """Maximum steps of each stage."""

    @property
    def games_per_room(self) -> int:
        """Hidings and searches."""
        playing = [name for name in self.hiders if name not in DIFFICULTIES]
        return self.games * (len(playing) + len(self.hiders) * len(self.seekers))


def play_tournament(
    plan: TournamentPlan,
    hiders: Players,
    seekers: Players,
    folder: Path,
    progress: Progress = lambda done, total: None,
    agents: Mapping[str, str] = {},
    workers: Workers = HERE,
) -> list[Hiding]:
    """Plays what the folder's journal lacks, and returns all hidings of the plan.

    `agents` are the digests of trained players, by name: a folder that holds games of others is refused.
    """
    check_plan(plan, hiders, seekers)
    return play_trials(
        Playing(plan.seed, plan.size, plan.renderer, plan.device, plan.at_once, plan.limits),
        dict.fromkeys(plan.scenes, plan.games_per_room),
        lambda room: _trials_in(plan, room),
        hiders,
        {name: seekers[name] for name in plan.seekers},
        Journal(folder, plan.size, agents),
        progress,
        workers,
    )


def check_plan(plan: TournamentPlan, hiders: Players, seekers: Players) -> None:
    """ValueError for unknown players, rooms or missing spots, before anything is played."""
    check_names("hider", plan.hiders, (*hiders, *DIFFICULTIES))
    check_names("seeker", plan.seekers, seekers)
    for name, value in (("games", plan.games), ("at_once", plan.at_once)):
        if value < 1:
            raise ValueError(f"{name}: 1 or more, not {value}")
    if not plan.scenes or len(set(plan.scenes)) < len(plan.scenes):
        raise ValueError("rooms: at least one, and each only once")
    for scene in plan.scenes:
        check_scene(scene)
    if set(plan.hiders) & set(DIFFICULTIES):
        goals = GOALS[: plan.games]
        for scene, goal in itertools.product(plan.scenes, goals):
            if plan.spots is None or not spots_path(plan.spots, scene, goal).exists():
                raise SpotError(_missing_spots(plan.spots, plan.scenes, goals))
            load_needed_spots(plan.spots, scene, goal)


def load_needed_spots(folder: Path | None, scene: str, goal: str, room: Room | None = None) -> Spots:
    """Reads spots; SpotError says how to make them, also if they are of another version of the room."""
    if folder is None or not (path := spots_path(folder, scene, goal)).exists():
        where = f"in {folder}" if folder else "without a folder of spots"
        raise SpotError(f"there are no spots of a {goal} in {scene} {where}: make them with `scrubjay spots {scene}`")
    spots = load_spots(path, scene, goal)
    if room is not None:
        FILES.check_room(spots, room)
    return spots


def _missing_spots(folder: Path | None, scenes: tuple[str, ...], goals: tuple[str, ...]) -> str:
    """Which spots a tournament lacks, how to make them all, and where it could be played with those that are there."""
    pairs = [(scene, goal) for scene in scenes for goal in goals]
    missing = [pair for pair in pairs if folder is None or not spots_path(folder, *pair).exists()]
    lacking = list(dict.fromkeys(scene for scene, _ in missing))
    there = [] if folder is None else [
        scene for scene in SCENES if all(spots_path(folder, scene, goal).exists() for goal in goals)
    ]  # fmt: skip
    more = f" and {len(missing) - 1} more files" if len(missing) > 1 else ""
    out = folder or "out/spots"
    remedies = [f"make them with `scrubjay spots {' '.join(lacking)} --out {out}`"]
    remedies += [] if folder else [f"name their folder with --spots {out}"]
    remedies += [f"play where they are, with --rooms {' '.join(there[:8])}"] if there else []
    where = f"in {folder}" if folder else "without a folder of spots"
    return f"there are no spots of a {missing[0][1]} in {missing[0][0]}{more} {where}: {', or '.join(remedies)}"


def _trials_in(plan: TournamentPlan, room: CompiledRoom) -> list[Trial]:
    scene = room.room.scene
    specs = list(itertools.islice(hiding_specs(room, plan.seed), plan.games))
    if len(specs) < plan.games:
        raise ValueError(f"{scene} has {len(specs)} start poses, too few for {plan.games} games")
    trials = []
    for hider in plan.hiders:
        for number, spec in enumerate(specs):
            if hider not in DIFFICULTIES:
                trials.append(Trial(hider, Match(scene, hider, "", spec), hider))
            elif spots := load_needed_spots(plan.spots, scene, spec.goal, room.room).spots[hider]:
                spot = spots[number // len(GOALS) % len(spots)]
                trials.append(Trial(hider, Match(scene, hider, "", search_in_spot(room, spec, spot))))
    return trials
