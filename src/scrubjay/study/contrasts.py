"""Differences between encoders in a fitted mixed model, adjusted for how many there are: what R's emmeans reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from scrubjay.errors import StatisticsError
from scrubjay.study.mixed_model import MixedModel

SEED = 0
"""Of the quasi-Monte Carlo integration of the multivariate t distribution."""


@dataclass(frozen=True)
class Contrast:
    """`left` minus `right`, on the model's link scale: a difference of losses, or a log ratio where the link is log."""

    left: str
    right: str
    estimate: float
    standard_error: float
    df: int
    t: float
    p: float
    """Two-sided, adjusted for the family of contrasts it was computed with."""
    low: float
    high: float
    """The simultaneous confidence interval."""


@dataclass(frozen=True)
class MeanEstimate:
    """An encoder's mean on the model's link scale and its confidence interval, adjusted for nothing."""

    encoder: str
    estimate: float
    standard_error: float
    df: int
    low: float
    high: float


def mean_estimates(model: MixedModel, level: float = 0.95) -> list[MeanEstimate]:
    """The encoders' means. With four scene types they have three degrees of freedom: the intervals are wide."""
    _check_level(level)
    errors = np.sqrt(np.diag(model.covariance))
    width = stats.t.ppf((1 + level) / 2, model.mean_df) * errors
    return [
        MeanEstimate(name, float(mean), float(error), model.mean_df, float(mean - w), float(mean + w))
        for name, mean, error, w in zip(model.encoders, model.means, errors, width, strict=True)
    ]


def against_control(model: MixedModel, control: str, level: float = 0.99) -> list[Contrast]:
    """Every other encoder minus the control, with Dunnett's adjustment."""
    if control not in model.encoders:
        raise StatisticsError(f"the model has no encoder {control!r}; it has {', '.join(model.encoders)}")
    _check_level(level)
    pairs = [(name, control) for name in model.encoders if name != control]
    weights = _weights(model, pairs)
    covariance = weights @ model.covariance @ weights.T
    error = np.sqrt(np.diag(covariance))
    t = weights @ model.means / error
    correlation = covariance / np.outer(error, error)
    p = [dunnett_p(value, correlation, model.contrast_df) for value in np.abs(t)]
    return _contrasts(model, pairs, np.array(p), dunnett_quantile(level, correlation, model.contrast_df))


def all_pairs(model: MixedModel, level: float = 0.99) -> list[Contrast]:
    """Every encoder minus every later one in the model's order, with Tukey's adjustment."""
    _check_level(level)
    pairs = list(combinations(model.encoders, 2))
    weights = _weights(model, pairs)
    t = weights @ model.means / np.sqrt(np.diag(weights @ model.covariance @ weights.T))
    means, df = len(model.encoders), model.contrast_df
    p = np.array([tukey_p(value, means, df) for value in np.abs(t)])
    return _contrasts(model, pairs, p, tukey_quantile(level, means, df))


def dunnett_p(t: float, correlation: np.ndarray, df: float) -> float:
    """The probability that the greatest |T| of a multivariate t exceeds t >= 0."""
    inside = _inside(t, correlation, df)
    return _bounded(1 - inside, t, len(correlation), df)


def dunnett_quantile(level: float, correlation: np.ndarray, df: float) -> float:
    """The t that the greatest |T| of a multivariate t stays below with probability `level`."""
    alone = float(stats.t.ppf((1 + level) / 2, df))
    count = len(correlation)
    if count == 1:
        return alone
    bonferroni = float(stats.t.isf((1 - level) / 2 / count, df))
    # The integral's error may put the root slightly outside of its bounds.
    return float(brentq(lambda t: _inside(t, correlation, df) - level, 0.99 * alone, 1.01 * bonferroni, xtol=1e-5))


def tukey_p(t: float, means: int, df: float) -> float:
    """The probability that the greatest |t| among all pairs of `means` independent means exceeds t >= 0."""
    outside = float(stats.studentized_range.sf(np.sqrt(2) * t, means, df)) if means > 2 else 0.0
    return _bounded(outside, t, means * (means - 1) // 2, df)


def tukey_quantile(level: float, means: int, df: float) -> float:
    """The t that the greatest |t| among all pairs of `means` means stays below with probability `level`."""
    if means == 2:
        return float(stats.t.ppf((1 + level) / 2, df))
    return float(stats.studentized_range.ppf(level, means, df) / np.sqrt(2))


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment of p-values, in the order given: for one question asked of several tasks."""
    p = np.asarray(p, float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise StatisticsError("p-values must be a list of numbers between 0 and 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted


def _inside(t: float, correlation: np.ndarray, df: float) -> float:
    count = len(correlation)
    if count == 1:
        return float(1 - 2 * stats.t.sf(t, df))
    box = np.full(count, t)
    distribution = stats.multivariate_t(shape=correlation, df=df, seed=SEED, allow_singular=True)
    return float(distribution.cdf(box, maxpts=4000 * count, lower_limit=-box, random_state=SEED))


def _bounded(p: float, t: float, count: int, df: float) -> float:
    """p between one test's and Bonferroni's, where it must lie: numerical integrals lose p-values near zero."""
    alone = float(2 * stats.t.sf(t, df))
    return float(np.clip(p, alone, min(1.0, count * alone)))


def _weights(model: MixedModel, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    weights = np.zeros((len(pairs), len(model.encoders)))
    for row, (left, right) in zip(weights, pairs, strict=True):
        row[model.encoders.index(left)] += 1
        row[model.encoders.index(right)] -= 1
    return weights


def _contrasts(model: MixedModel, pairs: Sequence[tuple[str, str]], p: np.ndarray, quantile: float) -> list[Contrast]:
    weights = _weights(model, pairs)
    estimate = weights @ model.means
    error = np.sqrt(np.diag(weights @ model.covariance @ weights.T))
    return [
        Contrast(left, right, float(e), float(s), model.contrast_df, float(e / s), float(adjusted),
                 float(e - quantile * s), float(e + quantile * s))
        for (left, right), e, s, adjusted in zip(pairs, estimate, error, p, strict=True)
    ]  # fmt: skip


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise StatisticsError(f"level must be between 0 and 1, not {level}")
