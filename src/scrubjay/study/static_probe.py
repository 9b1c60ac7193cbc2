"""One task of the static experiments for one encoder: rows, features and labels of a data set brought to a probe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from scrubjay.study.features import DataFeatures
from scrubjay.study.probe import Epoch, Examples, ProbeConfig, ProbeResult, train_probe


class ProbeData(Protocol):
    """What a probe needs of a data set, as `static_data.StaticData` has it."""

    def split(self, name: str) -> np.ndarray:
        """Row numbers of "train", "validation" or "test"."""
        ...

    def usable(self, task: str, rows: np.ndarray) -> np.ndarray:
        """Those of the rows that have labels of a task."""
        ...

    def training_rows(self, task: str, count: int = ..., seed: int = ...) -> np.ndarray:
        """Rows to train a task's probe."""
        ...

    def labels(self, task: str, rows: np.ndarray) -> dict[str, np.ndarray]:
        """A task's labels; see `probe_losses`."""
        ...


def probe_rows(data: ProbeData, task: str, count: int = 1200) -> dict[str, np.ndarray]:
    """Rows of "train" (at most `count`), "validation" and "test" for a task."""
    rows = {name: data.usable(task, data.split(name)) for name in ("validation", "test")}
    return {"train": data.training_rows(task, count), **rows}


def probe_task(
    data: ProbeData,
    features: DataFeatures,
    task: str,
    rows: Mapping[str, np.ndarray] | None = None,
    with_skips: bool = False,
    config: ProbeConfig | None = None,
    progress: Callable[[int, Epoch], None] | None = None,
) -> ProbeResult:
    """Trains a task's decoder on an encoder's features; losses are in the order of `rows["test"]`.

    A result with skips is comparable only to others with skips; EncoderError if the encoder has none.
    """
    rows = rows or probe_rows(data, task)
    sets = {
        name: Examples(
            sir=features.sir(rows[name]),
            labels=data.labels(task, rows[name]),
            skips=features.skips(rows[name]) if with_skips else None,
        )
        for name in ("train", "validation", "test")
    }
    return train_probe(task, **sets, config=config, device=features.device, progress=progress)
