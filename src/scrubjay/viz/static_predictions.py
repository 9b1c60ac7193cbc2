"""Predictions of the static study beside the truth, in the same colors: what features let a decoder see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scrubjay.study.static import PLAIN, WITH_SKIPS, read_probes
from scrubjay.study.static_data import StaticData
from scrubjay.study.static_predictions import Predictions, load_predictions
from scrubjay.viz.picture import data_url, depth_colors, normal_colors
from scrubjay.viz.static_samples import CLOSED, OPEN, TAKEN_OUT, WALKABLE, tint

DENSE = ("depth", "normals", "openability", "traversable", "object_depth", "object_normals")
FAR = 6.0
"""Depth in meters at the dark end of the scale, for truth and predictions alike."""
TOP_TYPES = 6


@dataclass(frozen=True)
class Cell:
    """A picture, as a URL that contains it, and its loss; empty where there is no prediction."""

    url: str = ""
    loss: float | None = None


@dataclass(frozen=True)
class Guess:
    """A type that an encoder's probe names, and whether the image shows it."""

    name: str
    probability: float
    right: bool


@dataclass(frozen=True)
class EncoderView:
    """One encoder's predictions for an image, by task; `guesses` are its most probable types."""

    encoder: str
    decoder: str
    cells: dict[str, Cell]
    guesses: list[Guess] = field(default_factory=list)
    class_loss: float | None = None


@dataclass(frozen=True)
class ImageView:
    """A test image, the truth, and what encoders make of it."""

    title: str
    image: str
    taken_out: str
    """The image with the object marked, and which it is."""
    object_type: str
    truth: dict[str, str]
    """URLs by task."""
    types: list[str]
    encoders: list[EncoderView]


def view_predictions(
    data: StaticData, out: Path, rows: Sequence[int] | np.ndarray, encoders: Sequence[str]
) -> list[ImageView]:
    """The kept predictions of a finished study for test images; probes without any, as older ones, are left out."""
    kept = {
        (decoder, task): {
            name: load_predictions(task, files["predictions"])
            for name, files in read_probes(out, task, decoder).items()
            if "predictions" in files
        }
        for decoder in (PLAIN, WITH_SKIPS)
        for task in (*DENSE, "class")
    }
    if not any(kept.values()):
        return []
    return [_view(data, int(row), kept, encoders) for row in rows]


def _view(
    data: StaticData,
    row: int,
    kept: Mapping[tuple[str, str], Mapping[str, Predictions]],
    encoders: Sequence[str],
) -> ImageView:
    place, image = data.index[row], data.images([row])[0]
    tasks = [task for task in DENSE if len(data.usable(task, np.array([row])))]
    there = data.labels("class", [row])["target"][0]
    taken_out = tint(image, data.labels("object_depth", [row])["mask"][0], TAKEN_OUT) if place["object"] >= 0 else image
    views = []
    for decoder in (PLAIN, WITH_SKIPS):
        for name in encoders:
            cells = {task: _cell(kept[decoder, task].get(name), task, row, image) for task in tasks}
            classes = _of_row(kept[decoder, "class"].get(name), row)
            guesses, class_loss = [], None
            if classes is not None:
                chances, class_loss = classes
                order = np.argsort(-chances, kind="stable")[:TOP_TYPES]
                guesses = [Guess(data.classes[i], float(chances[i]), bool(there[i])) for i in order]
            if guesses or any(cell.url for cell in cells.values()):
                views.append(EncoderView(name, decoder, cells, guesses, class_loss))
    return ImageView(
        title=f"{place['scene']}, {place['scene_type'].lower().replace('_', ' ')}",
        image=data_url(image, "WEBP"),
        taken_out=data_url(taken_out, "WEBP"),
        object_type=str(place["object_type"]),
        truth={task: data_url(_colors(task, data.labels(task, [row])["target"][0], image), "WEBP") for task in tasks},
        types=[name for name, shown in zip(data.classes, there, strict=True) if shown],
        encoders=views,
    )


def _cell(predictions: Predictions | None, task: str, row: int, image: np.ndarray) -> Cell:
    found = _of_row(predictions, row)
    if found is None:
        return Cell()
    values, loss = found
    values = values.repeat(len(image) // len(values), 0).repeat(len(image) // values.shape[1], 1)
    if task in ("depth", "object_depth"):
        # Only the truth has pixels where nothing is.
        values = np.maximum(values, 1e-3)
    return Cell(data_url(_colors(task, values, image), "WEBP"), loss)


def _of_row(predictions: Predictions | None, row: int) -> tuple[np.ndarray, float] | None:
    if predictions is None or row not in predictions.rows:
        return None
    place = predictions.rows.tolist().index(row)
    return predictions.values[place], float(predictions.losses[place])


def _colors(task: str, values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Labels or predictions (H, W, ...) as a picture; those of surfaces color the image, the more the more probable."""
    if task in ("depth", "object_depth"):
        return depth_colors(values, FAR)
    if "normals" in task:
        return normal_colors(values)
    if task == "openability":
        closed, opened = (values == 1, values == 2) if values.ndim == 2 else (values[..., 1], values[..., 2])
        return tint(tint(image, closed, CLOSED), opened, OPEN)
    return tint(image, values, WALKABLE)
