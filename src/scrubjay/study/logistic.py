"""Many logistic regressions at once, on the same examples: all penalties and folds of a cross-validation.

Problems are columns of matrices and share each product with the examples, in float32. L-BFGS with a diagonal that is
nearly the Hessian's inverse: coordinates along principal components are almost uncorrelated. scikit-learn's
LogisticRegressionCV finds the same weights, and is what tests compare with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

TOLERANCE = 3e-7
"""Of the mean loss above its minimum, about."""
RELATIVE = 5e-9
"""The same in shares of w'Hw, the square of the logits' size: strong penalties have tiny weights, whose signs count. Of
few examples, a single one can decide which penalty is the best."""
ITERATIONS = 1000
MEMORY = 10
"""Steps that L-BFGS remembers."""
EVERY = 5
"""Iterations until the diagonal is computed again."""


def cross_validate(
    x: np.ndarray, label: np.ndarray, folds: Sequence[tuple[np.ndarray, np.ndarray]], penalties: Sequence[float]
) -> np.ndarray:
    """Weights (k + 1,), the intercept last, with the penalty C of the highest mean accuracy over folds.

    Among equals the strongest penalty wins, if `penalties` begin with it. `folds` are rows to fit and rows to test, as
    scikit-learn has them; x (n, k) are coordinates along principal components.
    """
    number, choices = len(folds), np.asarray(penalties, np.float32)
    used = np.ones((len(x), number), bool)
    for fold, (_, tested) in enumerate(folds):
        used[tested, fold] = False
    weights = fit(x, label, np.repeat(choices, number), np.tile(used, len(choices)))
    weights = weights.reshape(-1, len(choices), number)
    correct = np.empty((len(choices), number))
    for fold, (_, tested) in enumerate(folds):
        logits = x[tested] @ weights[:-1, :, fold] + weights[-1, :, fold]
        correct[:, fold] = ((logits > 0) == label[tested, None]).mean(0)
    best = int(np.argmax(correct.mean(1)))
    return fit(x, label, choices[[best]], np.ones((len(x), 1), bool), weights[:, best].mean(1)[:, None])[:, 0]


def fit(
    x: np.ndarray, label: np.ndarray, penalties: np.ndarray, used: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Weights (k + 1, p) float32 of p logistic regressions, the intercept last: minima w of

        sum over used examples of log(1 + exp(-y w.x)) + |w|^2 / (2 C), the intercept not in the square.

    x (n, k) are all examples, label (n,) bool, `penalties` (p,) the C, `used` (n, p) bool the examples of each problem,
    `start` weights to begin with.
    """
    count, size = x.shape
    x = np.column_stack([x, np.ones(count)]).astype(np.float32, copy=False)
    squares = np.square(x)
    sign: np.ndarray = np.where(label, 1, -1).astype(np.float32)[:, None]
    mask: np.ndarray = used.astype(np.float32)
    ridge: np.ndarray = np.tile(1 / np.asarray(penalties, np.float32), (size + 1, 1))
    ridge[-1] = 0
    weights: np.ndarray = np.zeros_like(ridge) if start is None else start.astype(np.float32)
    result, open_ = weights.copy(), np.arange(len(penalties))
    logits: np.ndarray = x @ weights
    history: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = deque(maxlen=MEMORY)
    before: tuple[np.ndarray, np.ndarray] | None = None
    for iteration in range(ITERATIONS):
        wrong = mask * _sigmoid(-sign * logits)
        gradient: np.ndarray = ridge * weights - x.T @ (sign * wrong)
        curvature: np.ndarray = wrong * (1 - wrong)
        if before is not None:
            step, change = before[0], gradient - before[1]
            product = _dot(step, change)
            history.append((step, change, np.where(product > 0, 1 / np.maximum(product, 1e-30), 0)))
        if iteration < EVERY or iteration % EVERY == 0:
            diagonal: np.ndarray = 1 / (squares.T @ curvature + ridge)
        direction = _descend(gradient, diagonal, history)
        slope = _dot(gradient, direction)
        spread = logits - weights[-1]
        size_of_logits = _dot(ridge * weights, weights) + _dot(curvature * spread, spread)
        going = -slope > count * np.minimum(TOLERANCE, RELATIVE * size_of_logits)
        if not going.all():
            result[:, open_[~going]] = weights[:, ~going]
            if not going.any():
                return result
            open_, slope = open_[going], slope[going]
            weights, logits, mask, ridge, gradient, curvature, diagonal, direction = (
                each[:, going] for each in (weights, logits, mask, ridge, gradient, curvature, diagonal, direction)
            )
            kept = [(step[:, going], change[:, going], inverse[going]) for step, change, inverse in history]
            history = deque(kept, maxlen=MEMORY)
        moved = x @ direction
        length = _line_search(weights, logits, direction, moved, sign, mask, ridge, slope, curvature)
        before = length * direction, gradient
        weights, logits = weights + before[0], logits + length * moved
    result[:, open_] = weights
    return result


def _descend(
    gradient: np.ndarray, diagonal: np.ndarray, history: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The direction of L-BFGS (k + 1, p)."""
    direction, factors = -gradient, []
    for step, change, inverse in reversed(history):
        factors.append(inverse * _dot(step, direction))
        direction -= factors[-1] * change
    direction *= diagonal
    for (step, change, inverse), factor in zip(history, reversed(factors), strict=True):
        direction += (factor - inverse * _dot(change, direction)) * step
    return direction


def _line_search(
    weights: np.ndarray, logits: np.ndarray, direction: np.ndarray, moved: np.ndarray, sign: np.ndarray,
    mask: np.ndarray, ridge: np.ndarray, slope: np.ndarray, curvature: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Lengths (p,) of steps: two of Newton's iterations along the direction, which need no product with x."""
    squared, pull, stiff = moved * moved, _dot(ridge * weights, direction), _dot(ridge * direction, direction)
    length = np.minimum(-slope / np.maximum(_dot(curvature, squared) + stiff, 1e-30), 4)
    wrong = mask * _sigmoid(-sign * (logits + length * moved))
    rise = pull + length * stiff - _dot(sign * wrong, moved)
    bend = _dot(wrong * (1 - wrong), squared) + stiff
    return np.clip(length - rise / np.maximum(bend, 1e-30), 0.1 * length, 4 * length)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(np.minimum(-values, 80)))


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products (p,) of columns."""
    return np.einsum("np,np->p", a, b)
