"""Turning back to what vanished: the log-odds of rotating back, with the object seen before and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
import torch
from scipy import stats

from scrubjay.agent.agent import AgentOutput
from scrubjay.game.actions import NUMBERS
from scrubjay.study.dynamic_experiments import LAST_STEP
from scrubjay.study.dynamic_probe import cluster_variance
from scrubjay.study.result_table import table_text
from scrubjay.study.sequences import SequenceData
from scrubjay.study.sources import DynamicSource

SPLITS = ("all", "train", "test")


@dataclass(frozen=True)
class OddsRow:
    """Log-odds of an agent so many steps after the forced rotation."""

    source: str
    step: int
    """At 1 both have the same image and last action, and differ in memory alone."""
    split: str
    pairs: int
    scenes: int
    difference: float
    """log pi(back) - log pi(other rotation), of those that saw the object less those that did not."""
    low: float
    high: float
    """A 95 % t interval, scenes as clusters."""
    treatment: float
    control: float


def turning_back(source: DynamicSource, data: SequenceData, device: str = "cpu") -> list[OddsRow]:
    """An agent's log-odds over the pairs of rotation's data, at each step and in each split."""
    left, right = NUMBERS["RotateLeft"], NUMBERS["RotateRight"]

    def capture(output: AgentOutput) -> torch.Tensor:
        logits = output.decision.logits
        return logits[:, left] - logits[:, right]

    every = np.arange(data.frames)
    steps = data.read("step", every)
    frames = every[steps > 0]
    odds = source.live(data, frames, capture, device).astype(np.float64)
    index = data.index[data.sequence_of(frames)]
    # The forced rotation was to the left: back is to the right.
    odds = np.where(index["turn"] == "left", -odds, odds)
    rows = []
    for step in range(1, LAST_STEP + 1):
        mine = np.flatnonzero(steps[frames] == step)
        order = mine[np.lexsort((~index["treatment"][mine], index["pair"][mine]))]
        seen, unseen = order[::2], order[1::2]
        assert (index["pair"][seen] == index["pair"][unseen]).all() and index["treatment"][seen].all()
        for split in SPLITS:
            some = np.ones(len(seen), bool) if split == "all" else index["split"][seen] == split
            if some.any():
                rows.append(
                    _row(source.name, step, split, odds[seen[some]], odds[unseen[some]], index["scene"][seen[some]])
                )
    return rows


def _row(name: str, step: int, split: str, seen: np.ndarray, unseen: np.ndarray, scene: np.ndarray) -> OddsRow:
    difference, scenes = seen - unseen, len(np.unique(scene))
    half = np.nan
    if scenes > 1:
        half = stats.t.ppf(0.975, scenes - 1) * np.sqrt(cluster_variance(difference, scene))
    mean = float(difference.mean())
    low, high = float(mean - half), float(mean + half)
    return OddsRow(name, step, split, len(seen), scenes, mean, low, high, float(seen.mean()), float(unseen.mean()))


def odds_text(rows: Sequence[OddsRow]) -> str:
    """odds.csv."""
    return table_text([asdict(row) for row in rows], [field.name for field in fields(OddsRow)])
