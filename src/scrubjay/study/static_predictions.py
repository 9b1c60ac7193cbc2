"""Predictions of the probes for a few test images, as the static study's page shows them beside the truth.

A file holds one probe's predictions: `rows` (k,) of the data set, the `loss` of each, and `values`, in few bytes: depth
in millimeters, normals in 127ths, probabilities in 255ths.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scrubjay.errors import ProbeError
from scrubjay.files import write_atomically
from scrubjay.study.features import DataFeatures, Skips
from scrubjay.study.probe import Examples, ProbeResult, predict
from scrubjay.study.probe_losses import TASKS
from scrubjay.study.static_data import MIN_PIXELS, OPENABILITY, TRAVERSABLE, StaticData


@dataclass(frozen=True)
class Predictions:
    """What one probe predicts for k images."""

    rows: np.ndarray
    """Of the data set, (k,)."""
    losses: np.ndarray
    """(k,)."""
    values: np.ndarray
    """Meters (k, H, W), unit normals (k, H, W, 3), or probabilities: of nothing to open, closed and open (k, H, W, 3),
    of traversable surface (k, H, W), of types (k, 90)."""


def shown_rows(data: StaticData) -> np.ndarray:
    """A test image of each room type, chosen by its labels alone: one that shows much of every task.

    The most types among those with an object to take out, openables and a floor to walk on, as far as there are any.
    """
    test = data.split("test")
    kinds = data.index["scene_type"][test]
    return np.array([_richest(data, test[kinds == kind]) for kind in dict.fromkeys(kinds.tolist())])


def _richest(data: StaticData, rows: np.ndarray) -> int:
    flags = data.read("flags", rows)
    there = [
        data.index["object"][rows] >= 0,
        *((bits > 0).mean((1, 2)) > 0.02 for bits in (flags & OPENABILITY, flags & TRAVERSABLE)),
    ]
    types = (data.read("types", rows) >= MIN_PIXELS).sum(1)
    return int(rows[np.argmax(1000 * np.sum(there, 0) + types)])


def make_predictions(
    data: StaticData, features: DataFeatures, result: ProbeResult, rows: np.ndarray, tested: np.ndarray
) -> Predictions:
    """A probe's predictions for those of the rows that have labels of its task; `tested` are the rows of its losses."""
    rows = data.usable(result.task, rows)
    # Not `features.skips`: its place in memory is that of the training examples.
    skips = Skips(features.encoder, features.images, rows, features.device) if result.with_skips else None
    examples = Examples(features.sir(rows), data.labels(result.task, rows), skips)
    return Predictions(rows, result.losses[np.searchsorted(tested, rows)], predict(result, examples, features.device))


def save_predictions(predictions: Predictions, task: str, path: Path) -> None:
    """Writes a file that `load_predictions` reads back, rounded as the module's description says."""
    values = predictions.values
    if task in ("depth", "object_depth"):
        stored = np.clip(values * 1000, 0, 65535).round().astype(np.uint16)
    elif "normals" in task:
        stored = (values * 127).round().astype(np.int8)
    else:
        stored = (values * 255).round().astype(np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, rows=predictions.rows, loss=predictions.losses, values=stored)
    write_atomically(path, buffer.getvalue())


def load_predictions(task: str, path: Path) -> Predictions:
    """Reads the predictions of a task's probe; ProbeError if the file is something else."""
    try:
        with np.load(path, allow_pickle=False) as file:
            rows, losses, stored = (file[name] for name in ("rows", "loss", "values"))
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ProbeError(f"{path}: not predictions of a probe, or damaged; delete the file: {error}") from error
    dimensions = 2 if not TASKS[task].dense else 3 if TASKS[task].outputs == 1 else 4
    if len(stored) != len(rows) or len(losses) != len(rows) or stored.ndim != dimensions:
        raise ProbeError(f"{path}: not predictions of {task}; delete the file")
    if task in ("depth", "object_depth"):
        values = stored / np.float32(1000)
    elif "normals" in task:
        values = stored / np.float32(127)
    else:
        values = stored / np.float32(255)
    return Predictions(rows, losses, values)
