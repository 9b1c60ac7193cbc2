"""What a run plays, with the files that it needs: its task, what it practices among it, and its hiding spots."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scrubjay.envs.tasks import Explore, Seek, Task
from scrubjay.rooms.room import GOALS
from scrubjay.spots.spots import load_spot_files, make_spot_files
from scrubjay.training.config import TrainConfig
from scrubjay.workers.choose import open_workers


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
        processes = str(min(os.cpu_count() or 1, len(scenes)))
        with tempfile.TemporaryDirectory() as scratch, open_workers(processes) as workers:
            make_spot_files(
                scenes, GOALS, folder or scratch, candidates=candidates or config.spot_candidates, seed=config.seed,
                workers=workers,
            )  # fmt: skip
            spots = load_spot_files(folder or scratch, scenes)
    return Seek(turned=config.rotate_grid, spots=spots, difficulties=tuple(difficulties or config.difficulties))
