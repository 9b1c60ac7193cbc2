"""The milestones of runs, beside single folders of weights: agents that are compared over training."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scrubjay.errors import RunError
from scrubjay.evaluation.trials import Players
from scrubjay.players.base import Player
from scrubjay.training.named_agents import NamedAgent, name_folders
from scrubjay.training.run import CONFIG, MILESTONES, PROGRESS, checkpoints


@dataclass(frozen=True)
class Milestone:
    """An agent, and how far its training was."""

    name: str
    """Differs from all others."""
    folder: Path
    run: Path
    """The run's folder; the agent's own if it is not of a run."""
    games: int | None
    """Finished games of training; None if it is not known."""


def find_milestones(folders: Sequence[str | os.PathLike[str]], taken: Collection[str] = ()) -> list[Milestone]:
    """The milestones of runs, in the order of their games, then a run's newest checkpoint if it is later.

    Any other folder, such as one of weights, is an agent by itself. RunError for a run without milestones; names differ
    from those that are `taken`.
    """
    found: list[tuple[Path, Path, int | None]] = []
    for folder in map(Path, folders):
        if not (folder / CONFIG).exists():
            found.append((folder, folder, _games(folder)))
            continue
        kept = sorted((folder / MILESTONES).glob("[0-9]*"))
        if not kept:
            raise RunError(
                f"{folder} has no milestones: name one of its checkpoints, or train with other --milestones "
                "(numbers of games, 0 for the agent before its first update)"
            )
        found += [(path, folder, int(path.name)) for path in kept]
        last = max(_games(path) or 0 for path in kept)
        newest = checkpoints(folder)[-1:]
        found += [(path, folder, games) for path in newest if (games := _games(path)) is not None and games > last]
    names = name_folders([path for path, _, _ in found], taken)
    return [Milestone(name, *parts) for name, parts in zip(names, found, strict=True)]


def _games(folder: Path) -> int | None:
    """The games after which a milestone or a checkpoint was written."""
    try:
        games = json.loads((folder / PROGRESS).read_text())["games"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return games if isinstance(games, int) else None


def label_milestones(milestones: Sequence[Milestone]) -> dict[str, str]:
    """Short labels by name, such as `1M`; with the name of the run where there are several."""
    runs = {milestone.run for milestone in milestones}
    labels = {}
    for milestone in milestones:
        if milestone.games is None:
            labels[milestone.name] = milestone.name
        else:
            run = "" if len(runs) == 1 else milestone.name.rpartition("-")[0].removesuffix("-update") + " "
            labels[milestone.name] = run + short_number(milestone.games)
    return labels if len(set(labels.values())) == len(labels) else {m.name: m.name for m in milestones}


def short_number(number: int) -> str:
    """A number in at most four characters and a unit: 950, 24k, 1.5M."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= 0.9995 * size:  # Rounded to three digits, 999,999 is a million.
            return f"{number / size:.3g}{unit}"
    return str(number)


def with_own_seeds(agents: Mapping[str, NamedAgent]) -> Players:
    """Factories of players that sample with different random numbers.

    With the same ones, agents that have not learned a stage yet would all play the same games of it.
    """
    return {name: partial(_with_own_seed, agent) for name, agent in agents.items()}


def own_seed(agent: NamedAgent, seed: int) -> int:
    """A seed that differs from those of other weights."""
    return seed ^ zlib.crc32(agent.digest.encode())


def _with_own_seed(agent: NamedAgent, seed: int) -> Player:
    return agent(own_seed(agent, seed))


def common_image_size(agents: Mapping[str, NamedAgent]) -> int:
    """The image size of all agents; ValueError if they differ."""
    sizes = {name: agent.agent.config.image_size for name, agent in agents.items()}
    if len(set(sizes.values())) > 1:
        words = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ValueError(
            f"size: agents see images of different sizes ({words} pixels); choose one, which all get resized"
        )
    return next(iter(sizes.values()))
