"""The static experiments on natural images: scenes, depth and walkable surfaces read out of frozen encoders (F.2).

As in `static`, the scores of each probe are a file that is named after all they depend on: an interrupted study
continues where it stopped, and a new encoder only adds its own probes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors

from scrubjay.errors import DataError, EncoderError
from scrubjay.files import write_atomically
from scrubjay.study.bootstrap import Interval, mean_interval
from scrubjay.study.encoders import StudyEncoder
from scrubjay.study.natural_data import NaturalData
from scrubjay.study.natural_probe import NaturalConfig, NaturalResult, class_weights, train_natural
from scrubjay.study.natural_tasks import TASKS
from scrubjay.study.result_table import table_text
from scrubjay.study.static import PLAIN, WITH_SKIPS

SHOWN = 4
"""Test pictures whose predictions are kept for the page."""
FIELDS = (
    "encoder", "decoder", "task", "metric", "value", "low", "high", "difference", "difference_low", "difference_high",
    "images", "best_epoch", "epochs", "note",
)  # fmt: skip
"""Columns of natural.csv. Intervals are of 95 %, over resampled test images; `difference` is to the control, of the
same images, and empty without one."""
Row = dict[str, str | float | int]


@dataclass(frozen=True)
class NaturalScale:
    """How much a study does."""

    config: NaturalConfig
    classes: int | None = None
    """Classes of scenes at most."""
    images: int | None = None
    """Pictures of a split at most, of a class for scenes."""


SCALES = {
    "paper": NaturalScale(NaturalConfig()),
    "mini": NaturalScale(NaturalConfig(size=28, scene_epochs=2, dense_epochs=2, batch_size=16), classes=8, images=8),
}


class NaturalStudy:
    """Probes of several encoders on natural images; results are in a folder."""

    def __init__(
        self,
        data: Sequence[NaturalData],
        encoders: Sequence[StudyEncoder],
        out: Path,
        config: NaturalConfig | None = None,
        control: str | None = None,
        device: str = "cpu",
    ) -> None:
        """`control` is the encoder that others are compared with; EncoderError or DataError if something is wrong."""
        names = [encoder.description.name for encoder in encoders]
        if len(set(names)) < len(names) or not names:
            raise EncoderError(f"encoders: at least one, each once, not {', '.join(names) or 'none'}")
        if control is not None and control not in names:
            raise EncoderError(f"control: {control} is not among the encoders {', '.join(names)}")
        if not data or len({each.task for each in data}) < len(data):
            raise DataError("natural: one data set of each task, and at least one")
        self.data, self.encoders, self.out = {each.task: each for each in data}, list(encoders), Path(out)
        self.config, self.control, self.device = config or NaturalConfig(), control, device

    def run(self, progress: Callable[[int, int], None] = lambda done, total: None) -> list[Row]:
        """Trains the probes that are missing and writes natural.csv and encoders.json; `progress` counts epochs."""
        probes = [
            (task, decoder, encoder)
            for task in TASKS
            if task in self.data
            for encoder in self.encoders
            for decoder in ((PLAIN, WITH_SKIPS) if TASKS[task].dense else (PLAIN,))
            if decoder == PLAIN or encoder.description.skip_channels
        ]
        lengths = [self.config.dense_epochs if TASKS[task].dense else self.config.scene_epochs for task, _, _ in probes]
        found: dict[tuple[str, str], dict[str, Scored]] = {}
        for number, (task, decoder, encoder) in enumerate(probes):
            before = sum(lengths[:number])
            progress(before, sum(lengths))
            path = self.scores_path(task, decoder, encoder)
            if not path.exists():
                result = train_natural(
                    self.data[task], encoder, decoder == WITH_SKIPS, self.config, self.device, SHOWN,
                    lambda epoch, _, start=before: progress(start + epoch, sum(lengths)),  # type: ignore[misc]
                )  # fmt: skip
                write_atomically(path, _packed(result))
            scored = read_scores(path, len(self.data[task]["test"]))
            found.setdefault((task, decoder), {})[encoder.description.name] = scored
        progress(sum(lengths), sum(lengths))
        rows = [row for (task, decoder), scored in found.items() for row in self._rows(task, decoder, scored)]
        descriptions = [encoder.description.as_dict() for encoder in self.encoders]
        write_atomically(self.out / "encoders.json", json.dumps(descriptions, indent=1) + "\n")
        write_atomically(self.out / "natural.csv", table_text(rows, FIELDS))
        return rows

    def scores_path(self, task: str, decoder: str, encoder: StudyEncoder) -> Path:
        """The file of a probe's scores."""
        parts = [self.data[task].digest, encoder.description.key, decoder, task, asdict(self.config)]
        return self.out / "scores" / f"{task}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.safetensors"

    def _rows(self, task: str, decoder: str, found: Mapping[str, Scored]) -> Iterator[Row]:
        data = self.data[task]
        weights = np.ones(len(data["test"]))
        if not TASKS[task].dense:
            weights = class_weights(torch.from_numpy(data["test"].target)).numpy()
        compared = found.get(self.control or "")  # None too where the control has no skips.
        control = compared.scores * weights if compared else None
        for name, scored in found.items():
            values = scored.scores * weights
            mean, notes = interval(values), []
            row: Row = {
                "encoder": name, "decoder": decoder, "task": task, "metric": TASKS[task].metric,
                "value": mean.estimate, "low": mean.low, "high": mean.high,
                "images": int(np.isfinite(values).sum()), "best_epoch": scored.best_epoch, "epochs": scored.epochs,
            }  # fmt: skip
            if control is not None and name != self.control:
                difference = interval(values - control)
                row |= dict(zip(("difference", "difference_low", "difference_high"), difference, strict=True))
            if data.broken:
                notes.append(f"pictures that could not be decoded: {len(data.broken)}")
            if missing := int(np.isnan(values).sum()):
                notes.append(f"test pictures without walkable surface, true or predicted: {missing}")
            yield {**row, "note": "; ".join(notes)}


@dataclass(frozen=True)
class Scored:
    """What is kept of a probe."""

    scores: np.ndarray
    """Of each test picture, (n,); NaN where there is none."""
    shown: np.ndarray
    """Predictions for the first test pictures; see `NaturalResult`."""
    best_epoch: int
    epochs: int


def read_scores(path: Path, count: int) -> Scored:
    """Reads a probe's file of `count` scores; DataError if it is something else."""
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {})["facts"])
            scores, shown = file.get_tensor("scores").numpy(), file.get_tensor("shown").numpy()
        if scores.shape != (count,) or np.isinf(scores).any():
            raise ValueError(f"not {count} scores")
        return Scored(scores.astype(float), shown, int(facts["best_epoch"]), len(facts["validation"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not the scores of {count} test pictures; delete the file") from error


def interval(values: np.ndarray) -> Interval:
    """The mean of those values that are numbers and its 95 % interval; NaN where they are too few."""
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return Interval(float(values.mean()) if len(values) else math.nan, math.nan, math.nan)
    return mean_interval(values)


def _packed(result: NaturalResult) -> bytes:
    facts = {"best_epoch": result.best_epoch, "validation": result.validation, "seconds": result.seconds}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(getattr(result, name))) for name in ("scores", "shown")}
    return safetensors.save(tensors, {"facts": json.dumps(facts)})
