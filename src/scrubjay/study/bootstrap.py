"""Percentile bootstrap: ratios of mean losses over resampled scenes, paired differences over resampled images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scrubjay.errors import StatisticsError
from scrubjay.study.loss_table import LossTable

DRAWS = 2000
LEVEL = 0.95


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float


def scene_means(table: LossTable) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The encoders, each scene's mean loss by encoder (scenes, encoders), and each scene's type (scenes).

    Scenes are sorted by name. Every encoder must have losses in every scene, else their means would not compare.
    """
    encoders, column = np.unique(table.encoder, return_inverse=True)
    scenes, first, row = np.unique(table.scene, return_index=True, return_inverse=True)
    sums, counts = np.zeros((2, len(scenes), len(encoders)))
    np.add.at(sums, (row, column), table.loss)
    np.add.at(counts, (row, column), 1)
    if (counts == 0).any():
        i, j = np.argwhere(counts == 0)[0]
        raise StatisticsError(f"encoder {encoders[j]} has no losses in scene {scenes[i]}")
    return encoders.tolist(), sums / counts, table.scene_type[first]


def mean_losses(table: LossTable, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> dict[str, Interval]:
    """Each encoder's loss: the mean over scenes of the scene's mean, with an interval as in `loss_ratios`."""
    encoders, means, types = scene_means(table)
    resampled = _resampled_means(means, types, draws, seed)
    return {name: _interval(means[:, k].mean(), resampled[:, k], level) for k, name in enumerate(encoders)}


def loss_ratios(
    table: LossTable, control: str, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> dict[str, Interval]:
    """Each encoder's mean loss relative to the control's (P 256): below 1 is better than the control.

    Losses are averaged within each scene first. Scenes are resampled within their type, one fewer than there are; all
    encoders share a draw's scenes. The control's own ratio is 1. With few scenes intervals are still too short: see
    docs/experiments.md.
    """
    table.require(control)
    encoders, means, types = scene_means(table)
    resampled = _resampled_means(means, types, draws, seed)
    base = encoders.index(control)
    average = means.mean(0)
    return {
        name: _interval(average[k] / average[base], resampled[:, k] / resampled[:, base], level)
        for k, name in enumerate(encoders)
    }


def paired_difference(
    values: np.ndarray, control: np.ndarray, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Interval:
    """The mean of `values` minus that of `control`, two metrics of the same test images (n), over resampled images."""
    values, control = np.asarray(values, float), np.asarray(control, float)
    if values.ndim != 1 or values.shape != control.shape:
        raise StatisticsError(f"paired values must be two equally long lists, not {values.shape} and {control.shape}")
    return mean_interval(values - control, draws, level, seed)


def mean_interval(values: np.ndarray, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Interval:
    """The mean of one metric of test images (n), over resampled images."""
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise StatisticsError("a bootstrap needs two finite values or more")
    rng = _generator(draws, seed)
    # Draw by draw: a matrix of all draws would be large for thousands of images.
    resampled = np.array([values[rng.integers(len(values), size=len(values))].mean() for _ in range(draws)])
    return _interval(values.mean(), resampled, level)


def _resampled_means(means: np.ndarray, types: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Means over resampled scenes (draws, encoders); every type keeps its weight.

    Of a type's n scenes n - 1 are drawn, with replacement: n draws would understate the variance by (n - 1) / n, a half
    where there are two (Rao and Wu 1988). A single scene says nothing of the variance within its type: then types are
    ignored.
    """
    rng = _generator(draws, seed)
    kinds, counts = np.unique(types, return_counts=True)
    if counts.min() < 2:
        types, kinds = np.zeros(len(types)), np.zeros(1)
    total = np.zeros((draws, means.shape[1]))
    for kind in kinds:
        mine = means[types == kind]
        drawn = rng.integers(len(mine), size=(draws, max(len(mine) - 1, 1)))
        total += len(mine) * mine[drawn].mean(1)
    return total / len(means)


def _generator(draws: int, seed: int) -> np.random.Generator:
    if draws < 1:
        raise StatisticsError(f"draws must be 1 or more, not {draws}")
    return np.random.default_rng(seed)


def _interval(estimate: float, resampled: np.ndarray, level: float) -> Interval:
    if not 0 < level < 1:
        raise StatisticsError(f"level must be between 0 and 1, not {level}")
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(estimate), float(low), float(high))
