"""Fixed games in the validation rooms, played by a run's agent and by scripted players."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrubjay.agent.agent import Agent
from scrubjay.envs.tasks import TASKS, Explore, Seek, Task
from scrubjay.evaluation import evaluate as evaluation
from scrubjay.game.metrics import Summary
from scrubjay.players.base import Player
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_rooms
from scrubjay.spots.spots import DIFFICULTIES, load_spot_files, make_spot_files
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import VALIDATION_LOG, Progress, Run


class Validation:
    """The same games for every player."""

    def __init__(
        self,
        config: TrainConfig,
        folder: Path | None = None,
        games: int = 1,
        seed: int = 7,
        device: str = "cpu",
        scenes: Sequence[str] = (),
        difficulties: Sequence[str] = DIFFICULTIES,
    ) -> None:
        """`games` in each of the rooms, by default the config's; `folder` keeps the hiding spots made for seeking."""
        scenes = scenes or config.validation_scenes
        self.config, self.games, self.seed, self.device = config, games, seed, device
        self.task = load_task(scenes, config, folder, difficulties, config.validation_spot_candidates)
        self.rooms = build_rooms(list(scenes))

    def evaluate(self, player: Player) -> dict[str, Summary]:
        """A player's scores by metric."""
        size = self.config.agent.image_size
        return evaluation.evaluate(player, self.task, self.rooms, self.games, self.seed, size, self.device)

    def scripted(self, name: str) -> Player:
        """A scripted player by name; ValueError lists them."""
        return make_scripted_player(self.config.task, name, self.seed)


def make_scripted_player(task: str, name: str, seed: int) -> Player:
    """A task's scripted player by name; ValueError lists them."""
    players = TASKS[task].baselines
    if name not in players:
        raise ValueError(f"unknown player {name!r} of {task}; there are {', '.join(players)}")
    return players[name](seed)


def validate(run: Run, validation: Validation, agent: Agent, progress: Progress) -> dict[str, Any]:
    """Scores the agent, and the first time the scripted players; logs all scores into the run's folder.

    The task's own metric becomes the checkpoint's score, by which the best one is kept.
    """
    players: dict[str, Player] = {"agent": AgentPlayer(agent, validation.seed)}
    if {row["player"] for row in run.rows(VALIDATION_LOG)} <= {"agent"}:
        players |= {name: validation.scripted(name) for name in TASKS[run.config.task].baselines}
    scores = {name: validation.evaluate(player) for name, player in players.items()}
    agent.train()
    when = {"update": progress.update, "steps": progress.steps}
    for name, summaries in scores.items():
        run.log(
            {**when, "player": name, **{metric: list(summary) for metric, summary in summaries.items()}}, VALIDATION_LOG
        )
    metric = TASKS[run.config.task].validation_metric
    if metric in scores["agent"]:
        run.save_score(progress, metric, scores["agent"][metric].mean)
    return {**when, "validation": {metric: summary.mean for metric, summary in scores["agent"].items()}}


def load_task(
    scenes: Sequence[str],
    config: TrainConfig,
    folder: Path | None = None,
    difficulties: Sequence[str] = (),
    candidates: int = 0,
) -> Task:
    """A config's task with the files that it needs for these rooms; see `make_seek_task`."""
    task = config.make_task()
    return task.load(scenes) if task else make_seek_task(scenes, config, folder, difficulties, candidates)


def load_practice(scenes: Sequence[str], config: TrainConfig, folder: Path | None = None) -> list[tuple[Task, float]]:
    """What a run plays beside its task, with the files that it needs, and the shares of the episodes."""
    if config.rehearses_exploring:
        return [(Explore(turned=config.rotate_grid), config.explore_share)]
    explore, manipulate, seek = config.practice
    practice: list[tuple[Task, float]] = []
    if explore:
        practice.append((Explore(turned=config.rotate_grid), explore))
    if manipulate:
        practice.append((config.make_manipulate_task().load(scenes), manipulate))
    if seek:
        practice.append((make_seek_task(scenes, config, folder), seek))
    return practice


def make_seek_task(
    scenes: Sequence[str],
    config: TrainConfig,
    folder: Path | None = None,
    difficulties: Sequence[str] = (),
    candidates: int = 0,
) -> Seek:
    """Seeking in the hiding spots that a config names, else in those of the folder, which are made where missing.

    `difficulties` and `candidates` default to the config's.
    """
    if config.spots:
        spots = load_spot_files(config.spots, scenes)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            make_spot_files(
                scenes, GOALS, folder or scratch, candidates=candidates or config.spot_candidates, seed=config.seed,
                processes=min(os.cpu_count() or 1, len(scenes)),
            )  # fmt: skip
            spots = load_spot_files(folder or scratch, scenes)
    return Seek(turned=config.rotate_grid, spots=spots, difficulties=tuple(difficulties or config.difficulties))
