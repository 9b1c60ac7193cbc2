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
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.spots.spots import DIFFICULTIES, Spots, load_spots, spots_path


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
    )


def check_plan(plan: TournamentPlan, hiders: Players, seekers: Players) -> None:
    """ValueError for unknown players, rooms or missing spots, before anything is played."""
    check_names("hider", plan.hiders, (*hiders, *DIFFICULTIES))
    check_names("seeker", plan.seekers, seekers)
    if plan.games < 1 or plan.at_once < 1 or not plan.scenes or len(set(plan.scenes)) < len(plan.scenes):
        raise ValueError("a tournament needs different rooms, at least one game in each, and one at a time")
    for scene in plan.scenes:
        make_room(scene)
    if set(plan.hiders) & set(DIFFICULTIES):
        for scene, goal in itertools.product(plan.scenes, GOALS[: plan.games]):
            load_needed_spots(plan.spots, scene, goal)


def load_needed_spots(folder: Path | None, scene: str, goal: str) -> Spots:
    """Reads spots; SpotError says how to make them."""
    if folder is None or not (path := spots_path(folder, scene, goal)).exists():
        where = f"in {folder}" if folder else "without a folder of spots"
        raise SpotError(f"there are no spots of a {goal} in {scene} {where}: make them with `scrubjay spots {scene}`")
    return load_spots(path, scene, goal)


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
            elif spots := load_needed_spots(plan.spots, scene, spec.goal).spots[hider]:
                spot = spots[number // len(GOALS) % len(spots)]
                trials.append(Trial(hider, Match(scene, hider, "", search_in_spot(room, spec, spot))))
    return trials
