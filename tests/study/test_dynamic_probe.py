"""Probes of features made up: what can be learned is, what cannot is not, and intervals are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from scrubjay.errors import DataError, ProbeError
from scrubjay.study.dynamic_probe import (
    VARIANCE,
    Probes,
    ProbeTable,
    Score,
    accuracy,
    cluster_variance,
    draw_repetitions,
    mean_score,
    principal_components,
)
from scrubjay.workers.pool import ProcessWorkers


def grid(copies: int = 2, balance: bool = False, share: float = 0.5, seed: int = 0) -> ProbeTable:
    """Examples of 5 scenes, objects and tables, `copies` of each combination."""
    scene, item, table = (values.ravel() for values in np.meshgrid(*[np.arange(5)] * 3, indexing="ij"))
    factors = {"scene": np.tile(scene, copies), "object": np.tile(item, copies), "table": np.tile(table, copies)}
    label = np.random.default_rng(seed).random(len(factors["scene"])) < share
    return ProbeTable(label, factors["scene"], factors, {"scene": 2, "object": 1, "table": 2}, balance=balance)


def write(folder, features):
    path = folder / "features.npy"
    np.save(path, np.asarray(features, np.float32))
    return path


def test_what_is_held_out_never_occurs_in_training():
    table = grid()
    sizes, repetitions = draw_repetitions(table, (10, 20, 4000), 20)
    assert sizes == (10, 20, 3 * 4 * 3 * 2), "all that there is takes the place of a size that is too large"
    assert draw_repetitions(table, (10, 20), 2)[0] == (10, 20)
    combinations = set()
    for one in repetitions:
        for name, values in one.held_out.items():
            assert not set(table.factors[name][one.train[-1]]) & set(values)
            assert set(table.factors[name][one.test]) == set(values)
        assert len(one.test) == 2 * 1 * 2 * 2
        assert [len(rows) for rows in one.train] == list(sizes) and set(one.train[0]) < set(one.train[1])
        combinations.add(tuple(one.held_out.items()))
    assert len(combinations) > 15
    again = draw_repetitions(table, (10, 20, 4000), 20)[1]
    assert all(np.array_equal(one.train[-1], two.train[-1]) for one, two in zip(repetitions, again, strict=True))


def test_subsamples_keep_the_proportion_of_labels_or_balance_it():
    table = grid(20, share=0.3)
    _, repetitions = draw_repetitions(table, (50, 200), 5)
    for one in repetitions:
        held = np.isin(table.factors["scene"], one.held_out["scene"])
        for name in ("object", "table"):
            held |= np.isin(table.factors[name], one.held_out[name])
        share = table.label[~held].mean()
        for rows in one.train:
            assert abs(table.label[rows].sum() - share * len(rows)) <= 1
    _, repetitions = draw_repetitions(grid(20, balance=True, share=0.3), (50, 200), 5)
    assert all(table.label[rows].sum() == len(rows) / 2 for one in repetitions for rows in one.train)


def test_separable_features_give_all_and_noise_gives_half(tmp_path):
    rng, table = np.random.default_rng(0), grid(12)
    told = rng.normal(size=(len(table), 8)) + 8 * table.label[:, None] * np.eye(8)[0]
    known = Probes(table, tmp_path, (50, 200), 6).run(write(tmp_path, told))
    assert known.score(50).mean > 0.99 and known.score(200).mean > 0.99
    noise = write(tmp_path, rng.normal(size=(len(table), 8)))
    unknown = Probes(table, tmp_path, (200,), 40).run(noise).score(200)
    assert abs(unknown.mean - 0.5) < 0.05


@pytest.mark.parametrize("shape", [(60, 20), (20, 60)])
def test_principal_components_are_those_of_scikit_learn(shape):
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    # Variances that fall so fast that the last components are left out, and a feature that never changes.
    train, test = (rng.normal(size=(rows, shape[1])) * 2.0 ** -np.arange(shape[1]) for rows in (shape[0], 7))
    mix = rng.normal(size=(shape[1], shape[1]))
    train, test = train @ mix + 3, test @ mix + 3
    train[:, 4] = test[:, 4] = 5
    expected = make_pipeline(StandardScaler(), PCA(VARIANCE, svd_solver="full")).fit(train)
    for mine, features in zip(principal_components(train, test), (train, test), strict=True):
        theirs = expected.transform(features)
        assert mine.shape == theirs.shape and 2 < mine.shape[1] < min(shape)
        np.testing.assert_allclose(np.abs(mine), np.abs(theirs), atol=1e-6)


def test_shuffled_labels_give_half(tmp_path):
    table = grid(40)
    rng = np.random.default_rng(1)
    told = write(tmp_path, rng.normal(size=(len(table), 4)) + 3 * table.label[:, None])
    score = Probes(table.shuffled(3), tmp_path, (400,), 30).run(told).score(400)
    assert abs(score.mean - 0.5) < 0.02


def test_interrupted_probes_continue_and_equal_unbroken_ones(tmp_path):
    table = grid(4)
    path = write(tmp_path, np.random.default_rng(0).normal(size=(len(table), 5)) + table.label[:, None])
    probes = Probes(table, tmp_path / "cut", (50,), 4)

    def interrupt(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        probes.run(path, interrupt)
    assert len(list((tmp_path / "cut").iterdir())) == 2
    seen = []
    cut = probes.run(path, lambda *numbers: seen.append(numbers))
    assert seen[0] == (2, 4)
    with ProcessWorkers(2) as workers:
        whole = Probes(table, tmp_path / "whole", (50,), 4, workers=workers).run(path)
    assert all(np.array_equal(*pair) for pair in zip(cut.values, whole.values, strict=True))
    next((tmp_path / "cut").iterdir()).write_bytes(b"no")
    with pytest.raises(DataError, match="delete the file"):
        probes.run(path)


def test_the_interval_of_resampling_is_students(tmp_path):
    score = Score(np.array([0.5, 0.7, 0.6]), np.zeros(3), np.arange(3))
    # s = 0.1, t(0.975, 2) = 4.3027: 4.3027 * 0.1 / sqrt(3).
    assert score.mean == pytest.approx(0.6) and score.half_width(False) == pytest.approx(0.24841, abs=1e-4)


def test_the_interval_with_test_sampling_adds_clusters_of_scenes():
    correct, scene = np.array([1.0, 1, 0, 0.5, np.nan]), np.array(["a", "a", "b", "b", "c"])
    # Mean 0.625; sums 0.75 and -0.75; 2 / 1 * (0.5625 + 0.5625) / 16.
    assert cluster_variance(correct[:4], scene[:4]) == pytest.approx(0.140625)
    score = Score(np.array([0.5, 0.75]), correct, scene)
    # s^2 / R = 0.03125 / 2; t(0.975, 1) = 12.7062.
    assert score.half_width(True) == pytest.approx(12.7062 * np.sqrt(0.015625 + 0.140625), rel=1e-4)


def test_differences_are_paired_and_networks_averaged():
    one = Score(np.array([0.6, 0.8]), np.array([1.0, 0.5]), np.arange(2))
    other = Score(np.array([0.5, 0.7]), np.array([0.5, 0.5]), np.arange(2))
    difference = one.minus(other)
    assert difference.mean == pytest.approx(0.1) and difference.half_width(False) == pytest.approx(0, abs=1e-9)
    assert mean_score([one, other]).accuracies.tolist() == pytest.approx([0.55, 0.75])


def test_balanced_accuracy_weighs_labels_alike():
    correct, label = np.array([True, True, True, False, False]), np.array([False, False, False, False, True])
    assert accuracy(correct, label, False) == pytest.approx(0.6)
    assert accuracy(correct, label, True) == pytest.approx((0.75 + 0) / 2)


def test_accuracy_by_steps_counts_only_those_examples(tmp_path):
    table = grid(8)
    steps = np.arange(len(table)) % 2
    told = np.where(steps == 0, table.label * 2.0 - 1, 0)
    mixed = ProbeTable(**{**vars(table), "steps": steps})
    path = write(tmp_path, np.column_stack([told, np.random.default_rng(0).normal(size=(len(table), 2)) * 0.01]))
    predictions = Probes(mixed, tmp_path, (150,), 4).run(path)
    assert predictions.score(150, step=0).mean == 1 and predictions.score(150, step=1).mean < 0.8


def test_examples_that_cannot_be_split_are_refused(tmp_path):
    table = grid()
    with pytest.raises(ProbeError, match="both labels"):
        draw_repetitions(ProbeTable(np.ones(4, bool), np.arange(4)))
    with pytest.raises(ProbeError, match="table: 5 of 5 values cannot be held out"):
        draw_repetitions(ProbeTable(**{**vars(table), "held_out": {"table": 5}}))
    with pytest.raises(DataError, match="not \\(250, D\\)"):
        Probes(table, tmp_path, (10,), 2).run(write(tmp_path, np.zeros((7, 3))))
