"""The four dynamic experiments: which frames are examples of what, what is held out, and what the paper printed (F.2).

Each takes `SequenceData` of its own; `scrubjay study data contained|tracking|rotation|space` makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scrubjay.errors import DataError
from scrubjay.game.cache import CLAIM_PIXELS
from scrubjay.study.dynamic_probe import ProbeTable
from scrubjay.study.sequences import SequenceData

LAST_STEP = 5
"""Representations after the forced rotation; the headline is the last one's."""
RADII = (1.5, 5.0)
"""Meters within which free space is counted; the first is the headline's."""


@dataclass(frozen=True)
class Examples:
    """Examples of an experiment, n in all."""

    frame: np.ndarray
    """(n,): frames of the data."""
    table: ProbeTable
    cell: np.ndarray | None = None
    """(n, 2): row and column of the cell whose features are taken; None for features of the whole image."""

    @property
    def digest(self) -> str:
        """Of the frames and cells: what features depend on."""
        parts = [self.frame.astype(np.int64).tobytes(), b"" if self.cell is None else self.cell.astype("i8").tobytes()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@dataclass(frozen=True)
class Experiment:
    """One of the four."""

    name: str
    data: str
    """The name of its data."""
    title: str
    question: str
    examples: Callable[[SequenceData], Examples]
    printed: Mapping[str, str]
    """What the paper printed, by whose it is."""
    goal: float
    """What we aim for."""
    counts_test_sampling: bool
    """Whether intervals count the sampling of test examples, too."""
    on_grid: bool = False
    """Features are those of cells."""
    with_forward_steps: bool = False
    headline_step: int | None = None
    """The steps since the object was seen that the headline is about."""


def contained_examples(data: SequenceData) -> Examples:
    """The last frame of each sequence: inside the receptacle, or behind it? Held out: 2 of 5 values of each factor."""
    index = data.index
    _require(data, "scene", "receptacle", "table", "label")
    factors = {"scene": index["scene"], "object": index["goal"], "receptacle": index["receptacle"]}
    factors["table"] = index["table"]
    held_out = {name: _held(values, 2) for name, values in factors.items()}
    table = ProbeTable(index["label"].astype(bool), index["scene"], factors, held_out)
    return Examples(index["first"] + index["length"] - 1, table)


def tracking_examples(data: SequenceData) -> Examples:
    """Each occluded step and each cell that the object passes behind the books: is it there now?"""
    _require(data, "scene", "table")
    if not {"cells", "visible"} <= set(data.fields):
        raise DataError(f"{data.folder}: tracking needs the object's pixels (cells, visible); make the data again")
    frames, cells, labels, steps = [], [], [], []
    for number in range(len(data)):
        own = data.frames_of(number)
        alone, seen = data.read("cells", own).astype(int), data.read("visible", own) >= CLAIM_PIXELS
        # Only what is hidden after it was seen is behind the books.
        hidden = ~seen & (np.cumsum(seen) > 0)
        passed = np.argwhere((alone[hidden] >= CLAIM_PIXELS).any(0))
        since = np.arange(len(own)) - np.maximum.accumulate(np.where(seen, np.arange(len(own)), -1))
        for step in np.flatnonzero(hidden):
            frames.append(np.full(len(passed), own[step]))
            cells.append(passed)
            labels.append(alone[step][tuple(passed.T)] > CLAIM_PIXELS)
            steps.append(np.full(len(passed), since[step]))
    frame = np.concatenate([*frames, np.empty(0, int)]).astype(int)
    index = data.index[data.sequence_of(frame)]
    factors = {"scene": index["scene"], "object": index["goal"], "table": index["table"]}
    held_out = {name: _held(values, count) for (name, values), count in zip(factors.items(), (2, 1, 2), strict=True)}
    table = ProbeTable(
        np.concatenate([*labels, np.empty(0, bool)]).astype(bool), index["scene"], factors, held_out,
        balance=True, steps=np.concatenate([*steps, np.empty(0, int)]).astype(int),
    )  # fmt: skip
    return Examples(frame, table, np.concatenate([*cells, np.empty((0, 2), int)]).astype(int))


def rotation_examples(data: SequenceData) -> Examples:
    """The five frames after the forced rotation: was the object there? Held out: an object, and the test scenes."""
    _require(data, "scene", "split", "treatment")
    every = np.arange(data.frames)
    frame = every[data.read("step", every) > 0]
    index, steps = data.index[data.sequence_of(frame)], data.read("step", frame).astype(int)
    table = ProbeTable(
        index["treatment"], index["scene"], {"object": index["goal"]}, {"object": 1},
        train=index["split"] == "train", test=index["split"] == "test", steps=steps,
    )  # fmt: skip
    return Examples(frame, table)


def space_examples(data: SequenceData, radius: int = 0) -> Examples:
    """The four second looks of each sequence: more free space than in the view before?"""
    _require(data, "scene", "split")
    frame = (data.index["first"][:, None] + np.arange(4, 8)).ravel()
    free = data.read("free", frame)[:, radius].astype(int) - data.read("free", frame - 1)[:, radius]
    index = data.index[data.sequence_of(frame)]
    table = ProbeTable(free > 0, index["scene"], train=index["split"] == "train", test=index["split"] == "test")
    return Examples(frame, table)


def far_space_examples(data: SequenceData) -> Examples:
    """As `space_examples`, with free space counted further away."""
    return space_examples(data, radius=1)


def _held(values: np.ndarray, count: int) -> int:
    """How many values are held out: fewer where a small data set has only two."""
    return max(1, min(count, len(np.unique(values)) // 2))


def _require(data: SequenceData, *columns: str) -> None:
    if missing := set(columns) - set(data.index.dtype.names or ()):
        raise DataError(f"{data.folder}: index.csv lacks the column {min(missing)}; make the data again")


SHUFFLED = "labels shuffled"
"""A source that is a control: the first agent's features with permuted labels must give chance."""
EXPERIMENTS = {
    one.name: one
    for one in (
        Experiment(
            "contained", "contained", "Contained or behind", "Was the object moved into the receptacle, or behind it?",
            contained_examples, {"DIR (Cache)": "71.5 %", "next best": "63.4 %"}, 0.80, False, with_forward_steps=True,
        ),
        Experiment(
            "tracking", "tracking", "Behind books", "In which cell is the object that nobody sees?",
            tracking_examples, {"DIR (Cache)": "64 %", "next best": "59.6 %"}, 0.75, False, on_grid=True,
        ),
        Experiment(
            "rotation", "rotation", "Turned away", "Was the object there before the agent turned away?",
            rotation_examples, {}, 0.0, True, headline_step=LAST_STEP,
        ),
        Experiment(
            "space", "space", "Free space", "Is there more free space than in the view before?",
            space_examples, {"DIR (Cache)": "84.92 ± 2.27 %", "others": "less; 4CNN close"}, 0.92, True,
        ),
        Experiment(
            "space_far", "space", "Free space within 5 m", "The same, counted up to 5 m instead of 1.5 m.",
            far_space_examples, {}, 0.0, True,
        ),
    )
}  # fmt: skip
PRINTED_LOG_ODDS = "0.08 ± 0.02"
"""The paper's mean difference of the log-odds of turning back; ours should reach 0.2."""
