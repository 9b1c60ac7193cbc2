"""The paper's mixed model of test losses (F.1.3): what `MASS::glmmPQL` fits in R.

The loss is Gamma distributed with an identity link. Fixed effect: the encoder. Random effects: scene type, and scene
within type. Losses of one encoder in one scene and rotation are correlated by a spherical function of the distance
between places; those of other encoders, scenes or rotations are not, given the random effects.

Penalized quasi-likelihood (PQL) alternates between linearizing the generalized model at its fitted means and fitting a
weighted linear mixed model by maximum likelihood, with coefficients and residual variance profiled out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from scrubjay.errors import StatisticsError
from scrubjay.study.loss_table import LossTable

POINTS = 50
"""The paper's limit on examples per scene and encoder."""
ROUNDS = 50
"""Most PQL rounds; three or four are usual."""
DAMPED = 10
"""Rounds after which steps are halved: rounds that alternate between two fits then meet at the same fixed point."""
TOLERANCE = 1e-6
"""PQL has converged when the fitted values' squared change is below this share of their squares, as in glmmPQL."""
RATIO_BOUNDS = (-25.0, 10.0)
"""Logarithm of a random effect's variance over the residual variance."""

Link = Literal["identity", "log"]


@dataclass(frozen=True)
class MixedModel:
    """A fitted model. Means and their covariance are on the link's scale: losses, or log losses where `link` is log."""

    encoders: list[str]
    """Sorted; the order of `means` and `covariance`."""
    means: np.ndarray
    """Estimated mean of each encoder (p)."""
    covariance: np.ndarray
    """Of the means (p, p), with the small-sample factor n / (n - p) of `summary.lme`."""
    contrast_df: int
    """Degrees of freedom of differences between encoders: within scenes."""
    mean_df: int
    """Degrees of freedom of the means: between scene types, or between scenes where there is one type."""
    scene_type_variance: float
    scene_variance: float
    residual_variance: float
    """The Gamma distribution's dispersion."""
    correlation_range: float
    """Metres beyond which losses are uncorrelated; NaN if no two places share an encoder, scene and rotation."""
    link: Link
    """`log` where the identity link could not be fitted: then contrasts are log ratios; say so in a table."""
    reason: str
    """Why the link is not the identity; empty where it is, or was asked for."""
    rounds: int
    """PQL rounds until convergence."""
    rows: int
    """Examples that were fitted, after the limit per scene and encoder."""


def fit_mixed_model(table: LossTable, points: int = POINTS, seed: int = 0, link: Link | None = None) -> MixedModel:
    """Fits the model to two encoders or more.

    Args:
        table: The losses; two scenes or more.
        points: At most so many examples per scene and encoder are used, sampled with `seed`.
        seed: Of that sample; the fit itself has no randomness.
        link: None tries the identity link and falls back to log where a fitted mean is not positive or PQL does not
            converge.

    Raises:
        StatisticsError: Fewer than two encoders or scenes, constant losses, too few examples, a model that does not
            converge, or, with `link="identity"`, a fitted mean that is not positive.
    """
    table.require()
    table = table.capped(points, seed)
    problem = _Problem(table)
    if link is not None:
        return _fit(problem, table, link)
    try:
        return _fit(problem, table, "identity")
    except _Unfit as error:
        return replace(_fit(problem, table, "log"), reason=str(error))


class _Unfit(StatisticsError):
    """A model that another link may fit."""


def _fit(problem: _Problem, table: LossTable, link: Link) -> MixedModel:
    y, encoder = table.loss, problem.encoder
    count = np.bincount(encoder)
    start = np.bincount(encoder, y) / count
    eta = (start if link == "identity" else np.log(start))[encoder]
    last: np.ndarray | None = None
    rounds, converged = 0, False
    while not converged:
        rounds += 1
        mean = eta if link == "identity" else np.exp(eta)
        slope = np.ones_like(mean) if link == "identity" else mean  # of the mean in eta
        linear = _LinearModel(problem, response=eta + (y - mean) / slope, weight=(slope / mean) ** 2)
        parameters = last = linear.optimize(last)
        solution = linear.solve(parameters)
        before, eta = eta, solution.fitted
        if link == "identity" and (eta <= 0).any():
            raise _Unfit("a fitted mean is not positive")
        if rounds == ROUNDS or not np.isfinite(eta).all():
            raise _Unfit(f"the mixed model with {link} link did not converge in {rounds} rounds")
        converged = np.square(eta - before).sum() < TOLERANCE * np.square(eta).sum()
        if rounds > DAMPED:
            eta = (before + eta) / 2
    n, p = len(table), len(count)
    types, scenes = problem.types, problem.scenes
    variance = solution.residual_variance
    return MixedModel(
        encoders=table.encoders,
        means=solution.coefficients,
        covariance=solution.covariance * n / (n - p),
        contrast_df=n - scenes - (p - 1),
        mean_df=types - 1 if types > 1 else scenes - 1,
        scene_type_variance=float(variance * np.exp(parameters[0])) if types > 1 else 0.0,
        scene_variance=float(variance * np.exp(parameters[1])),
        residual_variance=float(variance),
        correlation_range=float(np.exp(parameters[2])) if len(problem.distances) else float("nan"),
        link=link,
        reason="",
        rounds=rounds,
        rows=n,
    )


class _Problem:
    """What stays the same in all rounds: groups of correlated rows, their distances, and their random effects."""

    def __init__(self, table: LossTable) -> None:
        _, self.encoder = np.unique(table.encoder, return_inverse=True)
        _, scene = np.unique(table.scene, return_inverse=True)
        _, kind = np.unique(table.scene_type, return_inverse=True)
        _, rotation = np.unique(table.rotation, return_inverse=True)
        self.scenes, self.types = int(scene.max()) + 1, int(kind.max()) + 1
        p = int(self.encoder.max()) + 1
        if self.scenes < 2:
            raise StatisticsError("the mixed model needs two scenes or more")
        if len(table) - self.scenes - (p - 1) < 1:
            raise StatisticsError(
                f"{len(table)} examples are too few for {p} encoders in {self.scenes} scenes; give more per scene"
            )
        if all(np.ptp(table.loss[self.encoder == k]) == 0 for k in range(p)):
            raise StatisticsError("every encoder's losses are constant; there is no variance to model")
        # A group holds the rows of one scene, encoder and rotation, padded to the largest group's size.
        _, self.group = np.unique(np.stack([scene, self.encoder, rotation]), axis=1, return_inverse=True)
        self.group = self.group.reshape(-1)
        sizes = np.bincount(self.group)
        order = np.argsort(self.group, kind="stable")
        self.slot = np.empty(len(table), int)
        self.slot[order] = np.arange(len(table)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.shape = (len(sizes), int(sizes.max()))
        place = np.zeros((*self.shape, 3))
        place[self.group, self.slot] = table.place
        real = np.zeros(self.shape, bool)
        real[self.group, self.slot] = True
        self.pairs = real[:, :, None] & real[:, None, :] & ~np.eye(self.shape[1], dtype=bool)
        self.distance = np.where(self.pairs, np.linalg.norm(place[:, :, None] - place[:, None], axis=-1), np.inf)
        self.distances = np.unique(self.distance[self.pairs])
        # One column per scene type, scene and encoder, one row per group. A single type is the intercept.
        first = order[np.cumsum(sizes) - sizes]
        self.incidence = np.zeros((len(sizes), self.types + self.scenes + p))
        rows = np.arange(len(sizes))
        self.incidence[rows, kind[first]] = float(self.types > 1)
        self.incidence[rows, self.types + scene[first]] = 1
        self.incidence[rows, self.types + self.scenes + self.encoder[first]] = 1
        self.effects = self.types + self.scenes
        self.columns = np.stack([kind, self.types + scene], axis=1)

    def padded(self, values: np.ndarray) -> np.ndarray:
        """Values of rows (n) as (groups, largest group), zero where padded."""
        result = np.zeros(self.shape)
        result[self.group, self.slot] = values
        return result

    def correlation(self, correlation_range: float) -> np.ndarray:
        """Spherical correlation (groups, size, size); padding is uncorrelated."""
        h = np.minimum(self.distance / correlation_range, 1.0)
        result = 1 - 1.5 * h + 0.5 * h**3
        result[:, np.arange(self.shape[1]), np.arange(self.shape[1])] = 1
        return result


@dataclass(frozen=True)
class _Solution:
    log_likelihood: float
    """Up to a constant."""
    coefficients: np.ndarray
    covariance: np.ndarray
    residual_variance: float
    fitted: np.ndarray
    """Random effects included (n)."""


class _LinearModel:
    """A weighted linear mixed model: response = encoder + scene type + scene + error.

    The errors' covariance is W^-1/2 R W^-1/2, up to the residual variance. Parameters are the logarithms of the two
    variance ratios (scene type, scene) and of the correlation's range. Rows of a group share all columns of the design,
    so that after whitening a group is three numbers: 1'1, 1'z and z'z.
    """

    def __init__(self, problem: _Problem, response: np.ndarray, weight: np.ndarray) -> None:
        self.problem = problem
        root = np.sqrt(weight)
        self.sides = np.stack([problem.padded(root), problem.padded(root * response)], axis=-1)
        self.log_weight = np.log(weight).sum()
        # Finite differences in the variance ratios keep the range.
        self.products = lru_cache(maxsize=8)(self._products)

    def _products(self, log_range: float) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Whitened cross products: design (q + p, q + p), design and response (q + p), response; and log |R|."""
        sides, incidence = self.sides, self.problem.incidence
        if len(self.problem.distances):
            factor = np.linalg.cholesky(self.problem.correlation(np.exp(log_range)))
            sides = np.linalg.solve(factor, sides)
            log_det = 2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum()
        else:
            log_det = 0.0
        gram = np.einsum("gni,gnj->gij", sides, sides)
        design = incidence.T @ (gram[:, 0, 0, None] * incidence)
        return design, incidence.T @ gram[:, 0, 1], float(gram[:, 1, 1].sum()), float(log_det)

    def solve(self, parameters: np.ndarray) -> _Solution:
        """The profile likelihood's maximum in coefficients and residual variance, by Woodbury in the random effects."""
        problem, n, q = self.problem, len(self.problem.group), self.problem.effects
        design, moment, square, log_det = self.products(float(parameters[2]))
        scale = np.exp(0.5 * np.repeat(parameters[:2], [problem.types, problem.scenes]))
        inner = np.eye(q) + scale[:, None] * design[:q, :q] * scale
        factor = np.linalg.cholesky(inner)
        right = scale[:, None] * np.column_stack([design[:q, q:], moment[:q]])
        right = linalg.solve_triangular(factor, right, lower=True, check_finite=False)
        fixed, last = right[:, :-1], right[:, -1]
        information = design[q:, q:] - fixed.T @ fixed
        score = moment[q:] - fixed.T @ last
        coefficients = np.linalg.solve(information, score)
        variance = (square - last @ last - coefficients @ score) / n
        log_likelihood = -0.5 * (n * np.log(variance) + log_det - self.log_weight) - np.log(np.diagonal(factor)).sum()
        residual = last - fixed @ coefficients
        effects = scale * linalg.solve_triangular(factor, residual, lower=True, trans=1, check_finite=False)
        if problem.types == 1:
            effects[0] = 0
        fitted = coefficients[problem.encoder] + effects[problem.columns].sum(1)
        return _Solution(float(log_likelihood), coefficients, variance * np.linalg.inv(information), variance, fitted)

    def optimize(self, start: np.ndarray | None) -> np.ndarray:
        """The parameters of greatest likelihood, from those of the last round or from a search over ranges."""
        known = self.problem.distances
        low, high = (np.log(known[0]), np.log(4 * known[-1])) if len(known) else (0.0, 0.0)
        if start is None:
            # Below the least distance the likelihood is flat in the range: a start there would stay there.
            ranges = np.linspace(low, high, 9)[1:-1] if len(known) else [0.0]
            starts = [np.array([-3.0, -3.0, value]) for value in ranges]
            start = min(starts, key=self._loss)
        result = minimize(
            self._loss_and_gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[RATIO_BOUNDS, RATIO_BOUNDS, (low, high)],
            options={"ftol": 1e-13, "gtol": 1e-7, "maxiter": 200},
        )
        return result.x

    def _loss(self, parameters: np.ndarray) -> float:
        return -self.solve(parameters).log_likelihood / len(self.problem.group)

    def _loss_and_gradient(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Central differences; a step across a bound is harmless."""
        gradient = np.zeros(3)
        for i in range(2 if not len(self.problem.distances) else 3):
            step = np.zeros(3)
            step[i] = 1e-4
            gradient[i] = (self._loss(parameters + step) - self._loss(parameters - step)) / 2e-4
        return self._loss(parameters), gradient
