"""Probes of the static study as tasks: each of one encoder, decoder, task and number of training examples.

Workers read data and features from the study's folders; what they send back is written where the study runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scrubjay.study.encoders import StudyEncoder
from scrubjay.study.features import DataFeatures
from scrubjay.study.probe import ProbeConfig, ProbeResult
from scrubjay.study.static_data import TRAIN_IMAGES, StaticData
from scrubjay.study.static_predictions import Predictions, make_predictions, shown_rows
from scrubjay.study.static_probe import HeldLabels, probe_rows, probe_task

PLAIN, WITH_SKIPS = "7 x 7", "skips"
"""What decoders read: the features alone, which any encoder has, or the finer scales too. Never compare the two."""


@dataclass(frozen=True)
class StaticScale:
    """How much a study does."""

    config: ProbeConfig
    training_images: int = TRAIN_IMAGES
    """Training examples of each probe."""


class Probe(NamedTuple):
    """A probe to train."""

    encoder: str
    decoder: str
    size: int
    """Training examples."""
    task: str


class StaticProber:
    """Trains probes. Other processes get it without what it holds in memory."""

    def __init__(
        self,
        data: StaticData,
        encoders: dict[str, StudyEncoder],
        cache: Path,
        digest: str,
        scale: StaticScale,
        device: str,
    ) -> None:
        """`cache` is the folder of features, `digest` that of the data."""
        self.data, self.encoders, self.scale, self.device = data, encoders, scale, device
        self.cache, self.digest = Path(cache).resolve(), digest
        self.shown = shown_rows(data)
        """Test images whose predictions are kept for the page."""
        self._labels: HeldLabels
        self._features: dict[str, DataFeatures]
        self._rows: dict[tuple[str, int], dict[str, np.ndarray]]
        self._forget()

    def __call__(self, *words: Any) -> tuple[ProbeResult, Predictions | None]:
        """Trains the probe of these fields; with predictions of what is shown if it has the study's own size."""
        probe = Probe(*words)
        rows, features = self.rows(probe.task, probe.size), self.features(probe.encoder)
        with_skips = probe.decoder == WITH_SKIPS
        result = probe_task(self.data, features, probe.task, rows, with_skips, self.scale.config, labels=self._labels)
        if probe.size != self.scale.training_images:
            return result, None
        return result, make_predictions(self.data, features, result, self.shown, rows["test"])

    def features(self, encoder: str) -> DataFeatures:
        """An encoder's features; only one encoder's finer scales are kept in memory."""
        if encoder not in self._features:
            found = DataFeatures(self.encoders[encoder], self.data.images, self.cache, self.digest, self.device)
            self._features = {encoder: found}
        return self._features[encoder]

    def rows(self, task: str, size: int) -> dict[str, np.ndarray]:
        """`probe_rows`, found once."""
        if (task, size) not in self._rows:
            self._rows[task, size] = probe_rows(self.data, task, size)
        return self._rows[task, size]

    def _forget(self) -> None:
        self._labels = HeldLabels(self.data, self.device)
        self._features, self._rows = {}, {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_labels", "_features", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()
