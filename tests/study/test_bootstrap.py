"""Bootstrap intervals against a slow, obvious reference and numbers worked out by hand."""

import numpy as np
import pytest
from study.synthetic import make_losses

from scrubjay.errors import StatisticsError
from scrubjay.study.bootstrap import (
    _resampled_means,
    loss_ratios,
    mean_interval,
    mean_losses,
    paired_difference,
    scene_means,
)
from scrubjay.study.loss_table import LossTable


def table(rows: list[tuple[str, str, str, float]]) -> LossTable:
    """Rows of encoder, type, scene and loss; places are numbered."""
    encoder, kind, scene, loss = zip(*rows, strict=True)
    place = np.zeros((len(rows), 3))
    place[:, 0] = np.arange(len(rows))
    return LossTable(np.array(encoder), np.array(kind), np.array(scene), place, np.zeros(len(rows)), np.array(loss))


def test_losses_are_averaged_within_each_scene_first():
    losses = table(
        [
            ("a", "K", "K1", 1.0),
            ("a", "K", "K1", 3.0),
            ("a", "K", "K2", 6.0),
            ("b", "K", "K1", 4.0),
            ("b", "K", "K2", 4.0),
        ]
    )
    encoders, means, types = scene_means(losses)
    assert encoders == ["a", "b"] and types.tolist() == ["K", "K"]
    np.testing.assert_allclose(means, [[2, 4], [6, 4]])
    # (2 + 6) / 2 = 4, not (1 + 3 + 6) / 3.
    assert mean_losses(losses)["a"].estimate == 4
    ratio = loss_ratios(losses, "b")
    # One of the two scenes is drawn: 2 / 4 or 6 / 4.
    assert ratio["a"] == (1.0, 0.5, 1.5)
    assert ratio["b"] == (1.0, 1.0, 1.0)


def test_scenes_are_resampled_within_their_type():
    values = {"K1": 1.0, "K2": 1.0, "L1": 5.0, "L2": 5.0}
    losses = table([(name, s[0], s, v if name == "a" else 2.0) for s, v in values.items() for name in "ab"])
    # Scenes of a type are equal: every draw is the data.
    assert loss_ratios(losses, "b")["a"] == (1.5, 1.5, 1.5)


def test_types_are_ignored_where_one_has_a_single_scene():
    losses = table([("a", "K", "K1", 1.0), ("b", "K", "K1", 2.0), ("a", "L", "L1", 5.0), ("b", "L", "L1", 2.0)])
    # One of the two scenes is drawn, not an interval without width.
    assert loss_ratios(losses, "b")["a"] == (1.5, 0.5, 2.5)


@pytest.mark.parametrize("scenes", [2, 5])
def test_resampled_means_vary_as_means_of_new_scenes_would(scenes):
    rng = np.random.default_rng(0)
    types = np.repeat(["B", "K", "L", "R"], scenes)
    variances = [
        _resampled_means(rng.normal(10, 1, (4 * scenes, 1)), types, 200, seed).var(ddof=1) for seed in range(200)
    ]
    assert np.mean(variances) == pytest.approx(1 / (4 * scenes), rel=0.1)


def test_ratio_intervals_agree_with_a_loop_over_rows():
    losses = make_losses({"a": 0.45, "b": 0.5}, scenes=3, places=5, seed=2)
    rng = np.random.default_rng(11)
    by_type = {kind: np.unique(losses.scene[losses.scene_type == kind]) for kind in np.unique(losses.scene_type)}
    picks = {kind: rng.integers(len(scenes), size=(300, len(scenes) - 1)) for kind, scenes in by_type.items()}
    ratios = []
    for draw in range(300):
        drawn = [scene for kind, scenes in by_type.items() for scene in scenes[picks[kind][draw]]]
        mean = {
            name: np.mean([losses.loss[(losses.scene == s) & (losses.encoder == name)].mean() for s in drawn])
            for name in "ab"
        }
        ratios.append(mean["a"] / mean["b"])
    found = loss_ratios(losses, "b", draws=300, level=0.9, seed=11)["a"]
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(ratios, [5, 95])), rel=1e-12)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(300):
        found = mean_interval(rng.normal(2, 1, 60), draws=300, seed=seed)
        hits += found.low < 2 < found.high
    assert 0.91 <= hits / 300 <= 0.98


def test_paired_differences_agree_with_a_loop():
    rng = np.random.default_rng(3)
    hard = rng.uniform(0, 10, 50)
    left, right = hard + rng.normal(0, 0.1, 50), hard + rng.normal(0.2, 0.1, 50)
    found = paired_difference(left, right, draws=200, level=0.95, seed=5)
    again, differences = np.random.default_rng(5), []
    for _ in range(200):
        picked = [int(i) for i in again.integers(50, size=50)]
        differences.append(sum(left[i] for i in picked) / 50 - sum(right[i] for i in picked) / 50)
    assert found.estimate == pytest.approx(np.mean(left) - np.mean(right))
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])), rel=1e-9)
    # Pairing removes the images' difficulty.
    alone = mean_interval(left)
    assert found.high - found.low < 0.1 * (alone.high - alone.low)


def test_bad_input_gets_one_clear_sentence():
    losses = table([("a", "K", "K1", 1.0), ("a", "K", "K2", 3.0), ("b", "K", "K1", 4.0)])
    with pytest.raises(StatisticsError, match="encoder b has no losses in scene K2"):
        loss_ratios(losses, "a")
    with pytest.raises(StatisticsError, match="no losses of encoder 'ImageNet'; there are a, b"):
        loss_ratios(losses, "ImageNet")
    with pytest.raises(StatisticsError, match="there is only a"):
        loss_ratios(losses.rows(losses.encoder == "a"), "a")
    whole = losses.rows(losses.scene == "K1")
    with pytest.raises(StatisticsError, match="draws must be 1 or more"):
        loss_ratios(whole, "a", draws=0)
    with pytest.raises(StatisticsError, match="level must be between 0 and 1"):
        mean_losses(whole, level=95)
    with pytest.raises(StatisticsError, match="equally long"):
        paired_difference(np.ones(3), np.ones(4))
    with pytest.raises(StatisticsError, match="two finite values"):
        paired_difference(np.array([1.0, np.nan]), np.ones(2))
