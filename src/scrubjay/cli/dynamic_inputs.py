"""Agents and data of `scrubjay study dynamic`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scrubjay.agent.agent import Agent
from scrubjay.cli.terminal import progress_bar
from scrubjay.errors import DataError
from scrubjay.study import foyer_data, rotation_data, space_data
from scrubjay.study.encoders import RANDOM
from scrubjay.study.foyer_data import CONTAINED_SCALES, TRACKING_SCALES
from scrubjay.study.sequences import SequenceData
from scrubjay.study.sources import load_agent_named
from scrubjay.training.named_agents import name_folders
from scrubjay.workers.base import Workers

NAMES = ("contained", "tracking", "rotation", "space")
"""Experiments that have data of their own."""


def named_agents(agents: Sequence[str], scale: str, trust_code: bool) -> dict[str, Agent]:
    """Agents by readable names; untrained ones are small in trials."""
    if len(set(agents)) < len(agents):
        raise DataError("agents: each once")
    untrained = [name for name in agents if name.split(":")[0] == RANDOM]
    folders = {
        str(path): name for name, path in name_folders([a for a in agents if a not in untrained], untrained).items()
    }
    preset = "paper" if scale == "paper" else "small"
    return {folders.get(str(Path(name)), name): load_agent_named(name, preset, trust_code) for name in agents}


def check_experiments(experiments: Sequence[str]) -> None:
    """DataError unless all have data."""
    if unknown := set(experiments) - set(NAMES):
        raise DataError(f"experiments: unknown {min(unknown)}; choose from {', '.join(NAMES)}")


def make_data(
    folder: Path,
    experiments: Sequence[str],
    seeker: Agent,
    scale: str,
    device: str,
    made: bool,
    workers: Workers | None = None,
) -> dict[str, SequenceData]:
    """The data of experiments; where it is `made` here, what is missing is made first. Else what a folder lacks is left
    out, unless it was asked for."""
    data: dict[str, SequenceData] = {}
    for name in experiments or NAMES:
        if not made and not experiments and not (folder / name).exists():
            continue
        if made and not _lacks_images(folder / name, name):
            with progress_bar(f"Data: {name}") as progress:
                _make(name, folder / name, seeker, scale, device, progress, workers)
        data[name] = SequenceData(folder / name, name)
    if not data:
        raise DataError(f"{folder}: no data of {', '.join(NAMES)}")
    return data


def _lacks_images(folder: Path, name: str) -> bool:
    """Whether the data is complete but for its images: it was made elsewhere, by another renderer maybe."""
    try:
        return not SequenceData(folder, name).has_images
    except DataError:
        return False


def _make(
    name: str,
    folder: Path,
    seeker: Agent,
    scale: str,
    device: str,
    progress: Callable[[int, int], None],
    workers: Workers | None,
) -> None:
    """Makes what an experiment's data lacks."""
    how: dict[str, Any] = {"device": device, "progress": progress, "workers": workers}
    if name == "contained":
        foyer_data.make_contained_data(folder, CONTAINED_SCALES[scale], **how)
    elif name == "tracking":
        foyer_data.make_tracking_data(folder, TRACKING_SCALES[scale], **how)
    elif name == "rotation":
        rotation_data.make_rotation_data(folder, seeker, rotation_data.SCALES[scale], **how)
    else:
        space_data.make_space_data(folder, space_data.SCALES[scale], **how)
