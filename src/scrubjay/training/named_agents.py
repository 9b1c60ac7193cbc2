"""Trained agents by name: readable names for folders, a run's milestones and checkpoints, and players made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrubjay.agent import released, weights
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.errors import RunError
from scrubjay.evaluation.plan_file import EvaluationPlan
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.training.run import CONFIG, MILESTONES, best_checkpoint, newest


@dataclass(frozen=True)
class NamedAgent:
    """A loaded agent: a factory of players that share it."""

    folder: Path
    digest: str
    """Of its weights."""
    agent: Agent

    def __call__(self, seed: int) -> AgentPlayer:
        return AgentPlayer(self.agent, seed)


def load_agents(folders: Mapping[str, Path], device: str = "cpu", trust_code: bool = False) -> dict[str, NamedAgent]:
    """Loads the agents of runs, milestones or folders of weights; a RunError or WeightsError says what is wrong."""
    agents = {}
    for name, folder in folders.items():
        found = newest(folder)
        agent = load_agent(found, trust_code=trust_code).to(device)
        digest = json.loads((found / weights.CONFIG_FILE).read_text())["weights"]
        agents[name] = NamedAgent(found, digest, agent)
    return agents


def name_folders(folders: Sequence[str | os.PathLike[str]], taken: Collection[str] = ()) -> dict[str, Path]:
    """Folders of agents by names that are readable and differ from each other and from those that are `taken`.

    A run or a folder of weights has its folder's name, a milestone `RUN-GAMES`, a checkpoint `RUN-update-NUMBER`. Where
    names are equal, parent folders precede them: `first/cache`, `second/cache`.
    """
    paths = [Path(folder) for folder in folders]
    resolved = [path.resolve() for path in paths]
    for path, where in zip(paths, resolved, strict=True):
        if resolved.count(where) > 1:
            raise ValueError(f"agents: {path} is given twice")
    names = [_name(where, 0) for where in resolved]
    for depth in range(1, max((len(where.parts) for where in resolved), default=0)):
        unclear = [name in taken or names.count(name) > 1 for name in names]
        names = [
            _name(where, depth) if again else name for name, where, again in zip(names, resolved, unclear, strict=True)
        ]
    return dict(zip(names, paths, strict=True))


def _name(folder: Path, depth: int) -> str:
    """A folder's name, preceded by `depth` parents."""
    kind, number = folder.parent.name, folder.name
    run, suffix = folder, ""
    if number.isdecimal() and kind in (MILESTONES, "checkpoints"):
        run, suffix = folder.parents[1], f"-{'update-' if kind == 'checkpoints' else ''}{int(number)}"
    return "/".join(run.parts[1:][-1 - depth :]) + suffix


def milestone_folder(run: str | os.PathLike[str], games: int) -> Path:
    """A run's agent after a number of games; RunError lists those that were kept."""
    _check_run(run)
    kept = sorted(int(path.name) for path in (Path(run) / MILESTONES).glob("[0-9]*"))
    if games not in kept:
        words = ", ".join(f"{number:,}" for number in kept) or "none"
        raise RunError(f"{run} has no milestone after {games:,} games; its milestones: {words}")
    return Path(run) / MILESTONES / f"{games:012d}"


def checkpoint(run: str | os.PathLike[str], which: str) -> Path:
    """A run's `newest` checkpoint, or its `best` one in validation; RunError if it has none."""
    _check_run(run)
    found = newest(run) if which == "newest" else best_checkpoint(run)
    if found is None:
        raise RunError(f"{run} has no best checkpoint, since it had no validation: use its newest")
    return found


def plan_folders(plan: EvaluationPlan, run: str | os.PathLike[str] | None, base: Path) -> dict[str, Path]:
    """The folders of the agents of a plan, whose own folders are relative to `base`; RunError if one does not exist."""
    folders = {}
    for name, source in plan.agents.items():
        if source.folder is not None:
            folders[name] = Path(source.folder) if released.is_name(source.folder) else base / source.folder
        elif run is None:
            raise RunError(f"the plan's {name} is an agent of a run: name its folder with --run")
        elif source.milestone is not None:
            folders[name] = milestone_folder(run, source.milestone)
        else:
            folders[name] = checkpoint(run, source.checkpoint or "newest")
    return folders


def _check_run(run: str | os.PathLike[str]) -> None:
    if not (Path(run) / CONFIG).exists():
        raise RunError(f"{run} is not a run: it has no {CONFIG}")
