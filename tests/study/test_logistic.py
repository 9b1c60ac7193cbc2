"""Logistic regressions in batches: the minima that calculus and scikit-learn find."""

from __future__ import annotations

import numpy as np
import pytest

from scrubjay.study.dynamic_probe import PENALTIES, fit_predict, principal_components
from scrubjay.study.logistic import TOLERANCE, cross_validate, fit


def features(count: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features as a memory has them, bounded and correlated, with labels that depend on some of what is behind them."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(count, 60)) * np.arange(1, 61) ** -0.8
    label = hidden[:, :10] @ rng.normal(size=10) + rng.normal(size=count) > 0
    mixed = np.tanh(hidden @ rng.normal(size=(60, size)) + rng.normal(size=size))
    return (mixed + 0.01 * rng.normal(size=mixed.shape)).astype(np.float32), label


def test_the_loss_of_every_problem_is_at_its_minimum():
    x, label = features(300, 20)
    x, _ = principal_components(x, x)
    assert x.shape == (300, 20)
    used = np.random.default_rng(1).random((300, 4)) < 0.7
    penalties = np.array([0.001, 0.1, 10, 10])
    weights = fit(x, label, penalties, used).astype(np.float64)
    for column, penalty in enumerate(penalties):
        mine = used[:, column]
        logits = x[mine] @ weights[:-1, column] + weights[-1, column]
        share = 1 / (1 + np.exp(-logits))
        with_one = np.column_stack([x[mine], np.ones(mine.sum())])
        gradient = with_one.T @ (share - label[mine]) + np.r_[weights[:-1, column] / penalty, 0]
        hessian = with_one.T * (share * (1 - share)) @ with_one + np.diag(np.r_[np.full(20, 1 / penalty), 0])
        assert gradient @ np.linalg.solve(hessian, gradient) / 2 < TOLERANCE * 300


@pytest.mark.parametrize(("count", "size"), [(60, 120), (600, 80), (400, 500)])
def test_predictions_are_those_of_scikit_learn(count, size):
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold

    x, label = features(count + 1000, size)
    train, test = principal_components(x[:count].astype(float), x[count:].astype(float))
    reference = LogisticRegressionCV(
        Cs=list(PENALTIES), cv=StratifiedKFold(5), l1_ratios=(0,), scoring="accuracy", max_iter=5000, tol=1e-6,
        use_legacy_attributes=False,
    ).fit(train, label[:count])  # fmt: skip
    expected = reference.decision_function(test)
    folds = list(StratifiedKFold(5).split(train, label[:count]))
    weights = cross_validate(train.astype(np.float32), label[:count], folds, PENALTIES)
    np.testing.assert_allclose(test @ weights[:-1] + weights[-1], expected, atol=0.02 * np.abs(expected).max())
    assert np.mean((test @ weights[:-1] + weights[-1] > 0) == (expected > 0)) > 0.995


def test_predictions_from_files_are_those_of_scikit_learn_in_double_precision(tmp_path):
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, label = features(1500, 150)
    np.save(tmp_path / "features.npy", x)
    order = np.random.default_rng(0).permutation(1500)
    train, test = [order[:80], order[:500]], order[500:]
    predictions = fit_predict(str(tmp_path / "features.npy"), label, train, test)
    for mine, rows in zip(predictions, train, strict=True):
        logistic = LogisticRegressionCV(
            Cs=list(PENALTIES), cv=5, l1_ratios=(0,), scoring="accuracy", max_iter=5000, use_legacy_attributes=False
        )
        pipeline = make_pipeline(StandardScaler(), PCA(0.9999, svd_solver="full"), logistic)
        expected = pipeline.fit(x[rows].astype(float), label[rows]).predict(x[test].astype(float))
        assert np.mean(mine == expected) > 0.99


def test_labels_that_features_separate_have_finite_weights():
    x = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
    weights = fit(x, x[:, 0] > 0, np.array([1e-5, 10.0]), np.ones((40, 2), bool))
    assert np.isfinite(weights).all() and weights[0, 1] > weights[0, 0] > 0
    assert np.array_equal(x @ weights[:-1] + weights[-1] > 0, np.repeat(x > 0, 2, 1))


def test_the_signs_of_tiny_logits_are_right():
    """With a strong penalty weights are nearly 0, and yet they decide."""
    from sklearn.linear_model import LogisticRegression

    x, label = features(60, 30)
    label[:] = np.arange(60) % 2
    x, _ = principal_components(x, x)
    weights = fit(x, label, np.array([1e-5]), np.ones((60, 1), bool))[:, 0].astype(np.float64)
    reference = LogisticRegression(C=1e-5, tol=1e-10, max_iter=5000).fit(x.astype(np.float64), label)
    expected, mine = reference.decision_function(x), x @ weights[:-1] + weights[-1]
    np.testing.assert_allclose(mine, expected, atol=0.02 * np.abs(expected).max())
    assert 0 < (mine > 0).sum() < 60 and np.mean((mine > 0) == (expected > 0)) > 0.95
