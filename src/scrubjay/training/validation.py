"""Fixed games in the validation rooms, played by a run's agent and by scripted players."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrubjay.agent.agent import Agent
from scrubjay.envs.tasks import TASKS
from scrubjay.evaluation import evaluate as evaluation
from scrubjay.game.metrics import Summary
from scrubjay.players.base import Player
from scrubjay.sim.build import build_rooms
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import VALIDATION_LOG, Progress, Run
from scrubjay.training.tasks import load_task


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
