"""Turning back to what vanished: the log-odds of rotating back, with the object seen before and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
import torch
from scipy import stats

from scrubjay.agent.agent import AgentOutput
from scrubjay.game.actions import NUMBERS
from scrubjay.study.dynamic_experiments import LAST_STEP
from scrubjay.study.dynamic_probe import cluster_variance
from scrubjay.study.feature_pass import FeaturePass
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


class TurningOdds:
    """An agent's log pi(RotateLeft) - log pi(RotateRight): a source of one feature."""

    precise = True

    def __init__(self, source: DynamicSource) -> None:
        self.name, self.source, self.key = source.name, source, f"odds-{source.key}"

    def prepare(self, one: FeaturePass) -> Callable[[], np.ndarray]:
        left, right = NUMBERS["RotateLeft"], NUMBERS["RotateRight"]

        def capture(output: AgentOutput) -> torch.Tensor:
            logits = output.decision.logits
            return logits[:, left, None] - logits[:, right, None]

        wanted = self.source.watch(one, capture)
        return lambda: wanted.features(self.name)


def turning_back(name: str, data: SequenceData, frames: np.ndarray, odds: np.ndarray) -> list[OddsRow]:
    """An agent's log-odds over the pairs of rotation's data, at each step and in each split.

    `odds` (n,) are those of `TurningOdds` at `frames` (n,): all that follow the forced rotation.
    """
    steps, index = data.read("step", frames), data.index[data.sequence_of(frames)]
    # The forced rotation was to the left: back is to the right.
    odds = np.where(index["turn"] == "left", -odds, odds).astype(np.float64)
    rows = []
    for step in range(1, LAST_STEP + 1):
        mine = np.flatnonzero(steps == step)
        order = mine[np.lexsort((~index["treatment"][mine], index["pair"][mine]))]
        seen, unseen = order[::2], order[1::2]
        assert (index["pair"][seen] == index["pair"][unseen]).all() and index["treatment"][seen].all()
        for split in SPLITS:
            some = np.ones(len(seen), bool) if split == "all" else index["split"][seen] == split
            if some.any():
                rows.append(_row(name, step, split, odds[seen[some]], odds[unseen[some]], index["scene"][seen[some]]))
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
