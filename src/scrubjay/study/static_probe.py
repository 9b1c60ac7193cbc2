"""One task of the static experiments for one encoder: rows, features and labels of a data set brought to a probe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import torch

from scrubjay.study.features import HELD_BYTES, DataFeatures
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


class HeldLabels:
    """A data set's labels on a device; kept there for the next encoder, the most recent ones, as far as they fit."""

    def __init__(self, data: ProbeData, device: str | torch.device = "cpu") -> None:
        self.data, self.device = data, device
        self._held: dict[tuple[str, bytes], dict[str, torch.Tensor]] = {}

    def __call__(self, task: str, rows: np.ndarray) -> dict[str, torch.Tensor]:
        """A task's labels; see `probe_losses`."""
        key = task, np.asarray(rows, np.int64).tobytes()
        if key in self._held:
            self._held[key] = self._held.pop(key)
        else:
            labels = self.data.labels(task, rows)
            self._held[key] = {name: torch.from_numpy(value).to(self.device) for name, value in labels.items()}
        while len(self._held) > 1 and self._bytes() > HELD_BYTES[torch.device(self.device).type]:
            del self._held[next(iter(self._held))]
        return self._held[key]

    def _bytes(self) -> int:
        return sum(value.nbytes for labels in self._held.values() for value in labels.values())


def probe_task(
    data: ProbeData,
    features: DataFeatures,
    task: str,
    rows: Mapping[str, np.ndarray] | None = None,
    with_skips: bool = False,
    config: ProbeConfig | None = None,
    progress: Callable[[int, Epoch], None] | None = None,
    labels: HeldLabels | None = None,
) -> ProbeResult:
    """Trains a task's decoder on an encoder's features; losses are in the order of `rows["test"]`.

    `labels` of the same data set spare reading them again for each encoder.

    A result with skips is comparable only to others with skips; EncoderError if the encoder has none.
    """
    rows = rows or probe_rows(data, task)
    sets = {
        name: Examples(
            sir=features.sir(rows[name]),
            labels=labels(task, rows[name]) if labels is not None else data.labels(task, rows[name]),
            skips=features.skips(rows[name]) if with_skips else None,
        )
        for name in ("train", "validation", "test")
    }
    return train_probe(task, **sets, config=config, device=features.device, progress=progress)
