"""Fixed games in the validation rooms: what a run's agent has learned, beside players without networks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrubjay.agent.agent import Agent
from scrubjay.envs.tasks import TASKS, Seek, Task
from scrubjay.evaluation.evaluate import evaluate
from scrubjay.game.metrics import Summary
from scrubjay.players.base import Player
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_rooms
from scrubjay.spots.spots import DIFFICULTIES, load_spot_files, make_spot_files
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.training.config import VALIDATION, TrainConfig
from scrubjay.training.run import EXAMS, Progress, Run


class Validation:
    """Games that are the same for everyone who plays them."""

    def __init__(
        self,
        training: TrainConfig,
        folder: Path | None = None,
        games: int = 1,
        seed: int = 7,
        device: str = "cpu",
        scenes: Sequence[str] = VALIDATION,
        difficulties: Sequence[str] = DIFFICULTIES,
    ) -> None:
        """Some games in each of the rooms; `folder` keeps the hiding spots that are made for searches."""
        self.training, self.games, self.seed, self.device = training, games, seed, device
        self.task: Task = training.make_task() or searching(scenes, training, folder, difficulties)
        self.rooms = build_rooms(list(scenes))

    def marks(self, player: Player) -> dict[str, Summary]:
        """How well a player does, by measure."""
        size = self.training.agent.image_size
        return evaluate(player, self.task, self.rooms, self.games, self.seed, size, self.device)

    def scripted(self, name: str) -> Player:
        """A player without networks by name; ValueError says which there are."""
        return scripted(self.training.task, name, self.seed)


def scripted(task: str, name: str, seed: int) -> Player:
    """A player without networks by name; ValueError says which a task has."""
    known = TASKS[task].baselines
    if name not in known:
        raise ValueError(f"unknown player {name!r} of {task}; there are {', '.join(known)}")
    return known[name](seed)


def validate(run: Run, exam: Validation, agent: Agent, progress: Progress) -> dict[str, Any]:
    """Lets the agent sit an exam, and the first time the others too; all marks go into the run's folder."""
    players: dict[str, Player] = {"agent": AgentPlayer(agent, exam.seed)}
    if {row["player"] for row in run.rows(EXAMS)} <= {"agent"}:
        players |= {name: exam.scripted(name) for name in TASKS[run.config.task].baselines}
    marks = {name: exam.marks(player) for name, player in players.items()}
    agent.train()
    when = {"update": progress.update, "steps": progress.steps}
    for name, its_marks in marks.items():
        run.log({**when, "player": name, **{measure: list(mark) for measure, mark in its_marks.items()}}, EXAMS)
    return {**when, "validation": {measure: mark.mean for measure, mark in marks["agent"].items()}}


def searching(
    scenes: Sequence[str], training: TrainConfig, folder: Path | None = None, difficulties: Sequence[str] = ()
) -> Seek:
    """Searches in the hiding spots that a run names, or else in those in the folder; what is missing is made first.

    They are of the run's difficulties, if no others are given.
    """
    if training.spots:
        spots = load_spot_files(training.spots, scenes)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            make_spot_files(
                scenes, GOALS, folder or scratch, candidates=training.spot_candidates, seed=training.seed,
                processes=min(os.cpu_count() or 1, len(scenes)),
            )  # fmt: skip
            spots = load_spot_files(folder or scratch, scenes)
    return Seek(turned=training.rotate_grid, spots=spots, difficulties=tuple(difficulties or training.difficulties))
