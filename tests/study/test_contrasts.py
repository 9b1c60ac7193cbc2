"""Adjusted contrasts on printed tables and numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from scrubjay.errors import StatisticsError
from scrubjay.study.contrasts import (
    against_control,
    all_pairs,
    dunnett_p,
    dunnett_quantile,
    holm,
    mean_estimates,
    tukey_p,
    tukey_quantile,
)
from scrubjay.study.mixed_model import MixedModel


def model(means: list[float], covariance: np.ndarray, df: int = 20) -> MixedModel:
    return MixedModel(
        encoders=list("abcdef"[: len(means)]),
        means=np.array(means),
        covariance=covariance,
        contrast_df=df,
        mean_df=3,
        scene_type_variance=0,
        scene_variance=0,
        residual_variance=1,
        correlation_range=1,
        link="identity",
        reason="",
        rounds=1,
        rows=100,
    )


def test_holm_on_numbers_worked_out_by_hand():
    # Sorted: .005 x 4 = .02, .01 x 3 = .03, .03 x 2 = .06, .04 x 1 = .04, raised to .06.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1, 1])
    np.testing.assert_allclose(holm([0.04]), [0.04])
    np.testing.assert_allclose(holm([0.02, 0.02, 0.02]), [0.06, 0.06, 0.06])
    assert len(holm([])) == 0


@pytest.mark.parametrize("p", [[0.1, np.nan], [1.1], [-0.1], [[0.1]]])
def test_holm_refuses_what_is_no_p_value(p):
    with pytest.raises(StatisticsError, match="between 0 and 1"):
        holm(p)


@pytest.mark.parametrize(
    ("means", "df", "level", "q"),
    [(3, 10, 0.95, 3.877), (4, 20, 0.95, 3.958), (5, 60, 0.99, 4.818), (3, 20, 0.99, 4.639), (6, 10, 0.95, 4.912)],
)
def test_tukey_quantiles_are_those_of_printed_tables(means, df, level, q):
    assert tukey_quantile(level, means, df) == pytest.approx(q / np.sqrt(2), abs=1e-3)
    assert tukey_p(q / np.sqrt(2), means, df) == pytest.approx(1 - level, rel=5e-3)


@pytest.mark.parametrize(("count", "df", "q"), [(2, 10, 2.57), (3, 20, 2.54), (5, 60, 2.58), (6, 20, 2.80)])
def test_dunnett_quantiles_are_those_of_printed_tables(count, df, q):
    """Two-sided, 5 %, groups of equal size: correlation 1/2 (Dunnett 1964)."""
    correlation = np.full((count, count), 0.5) + 0.5 * np.eye(count)
    assert dunnett_quantile(0.95, correlation, df) == pytest.approx(q, abs=0.01)
    assert dunnett_p(q, correlation, df) == pytest.approx(0.05, abs=0.002)


def test_two_encoders_need_no_adjustment():
    two = model([1.0, 0.0], np.diag([0.09, 0.16]))
    (dunnett,), (tukey,) = against_control(two, "b", level=0.95), all_pairs(two, level=0.95)
    # t = 1 / sqrt(.09 + .16) = 2; the 97.5 % quantile of t with 20 degrees of freedom is 2.086.
    for contrast in (dunnett, tukey):
        assert (contrast.left, contrast.right) == ("a", "b")
        assert contrast.t == pytest.approx(2)
        assert contrast.p == pytest.approx(0.0593, abs=1e-4)
        assert (contrast.low, contrast.high) == pytest.approx((1 - 2.086 * 0.5, 1 + 2.086 * 0.5), abs=1e-3)


def test_contrasts_against_a_control_are_signed_and_use_the_covariance():
    covariance = np.array([[4.0, 1, 1], [1, 5, 1], [1, 1, 6]]) / 100
    found = {c.left: c for c in against_control(model([1.0, 3.0, 0.5], covariance), "c")}
    assert set(found) == {"a", "b"}
    assert found["a"].estimate == pytest.approx(0.5)
    assert found["a"].standard_error == pytest.approx(np.sqrt(0.04 + 0.06 - 0.02))
    assert found["b"].standard_error == pytest.approx(np.sqrt(0.05 + 0.06 - 0.02))
    for c in found.values():
        alone = 2 * stats.t.sf(abs(c.t), 20)
        assert alone <= c.p <= 2 * alone
        # The interval excludes 0 exactly where p < 1 - level.
        assert (c.low > 0 or c.high < 0) == (c.p < 0.01)


def test_tiny_p_values_are_neither_zero_nor_noise():
    big = model([0.0, 2.0, 2.5], np.eye(3) / 200, df=4000)
    for c in [*against_control(big, "a"), *all_pairs(big)]:
        alone = 2 * stats.t.sf(abs(c.t), c.df)
        assert 0 < alone <= c.p <= 3 * alone


def test_contrasts_are_the_same_every_time():
    four = model([0.0, 0.3, 0.2, 0.1], np.eye(4) / 100)
    assert against_control(four, "a") == against_control(four, "a")


def test_means_have_the_degrees_of_freedom_of_scene_types():
    first, _ = mean_estimates(model([1.0, 2.0], np.diag([0.01, 0.04])), level=0.95)
    # The 97.5 % quantile of t with 3 degrees of freedom is 3.1824.
    assert (first.low, first.high) == pytest.approx((1 - 0.31824, 1 + 0.31824), abs=1e-5)
    assert first.df == 3


def test_bad_arguments_get_one_clear_sentence():
    two = model([1.0, 0.0], np.eye(2))
    with pytest.raises(StatisticsError, match="no encoder 'ImageNet'; it has a, b"):
        against_control(two, "ImageNet")
    for call in (
        lambda: against_control(two, "a", level=95),
        lambda: all_pairs(two, 0),
        lambda: mean_estimates(two, 1),
    ):
        with pytest.raises(StatisticsError, match="level must be between 0 and 1"):
            call()
