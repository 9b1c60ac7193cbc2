"""Hiding outcomes: indices, sampling without replacement, and unbiased weights."""

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.agent.hiding_outcomes import (
    NOT_HIDDEN,
    NUM_OUTCOMES,
    OUTCOME_SAMPLES,
    outcome_index,
    sample_outcomes,
    unbiased_weights,
)

LOGITS = st.lists(st.floats(-6, 6), min_size=3, max_size=6).map(lambda x: torch.tensor(x, dtype=torch.float64))


def ordered_draws(probability: torch.Tensor) -> list[tuple[tuple[int, ...], float]]:
    """Every ordered draw of three, and how probable it is: p(a) p(b) / (1 - p(a)) p(c) / (1 - p(a) - p(b))."""
    p = probability.tolist()
    return [
        ((a, b, c), p[a] * p[b] / (sum(p) - p[a]) * p[c] / (sum(p) - p[a] - p[b]))
        for a, b, c in permutations(range(len(p)), 3)
    ]


def test_outcome_indices_are_crouching_then_standing_then_not_hidden():
    standing = torch.tensor([False, True, True, False])
    assert outcome_index(standing, torch.tensor([5, 5, -1, -1])).tolist() == [5, 147 + 5, 294, 294]
    assert (NOT_HIDDEN, NUM_OUTCOMES) == (294, 295)


@settings(max_examples=50, deadline=None)
@given(LOGITS, st.integers(0, 2**31))
def test_the_estimate_is_unbiased_over_all_draws(logits, seed):
    probability = logits.softmax(0)
    steps = 100 * torch.rand(len(logits), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    draws = ordered_draws(probability)
    drawn = torch.tensor([triple for triple, _ in draws])
    chance = torch.tensor([chance for _, chance in draws], dtype=torch.float64)
    assert chance.sum().item() == pytest.approx(1)
    weights = unbiased_weights(logits.expand(len(drawn), -1), drawn)
    estimates = (weights * steps[drawn]).sum(1)
    assert (chance * estimates).sum().item() == pytest.approx((probability * steps).sum().item(), rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(LOGITS)
def test_weights_equal_murthys_estimator(logits):
    """p(a) P(abc | a first) / P(abc), summed up over the orders of drawing."""
    probability = logits.softmax(0)
    chance = dict(ordered_draws(probability))
    together = sum(chance[order] for order in permutations((0, 1, 2)))
    expected = [sum(chance[o] for o in permutations((0, 1, 2)) if o[0] == a) / together for a in range(3)]
    assert unbiased_weights(logits, torch.tensor([0, 1, 2])).tolist() == pytest.approx(expected, rel=1e-6)


def test_weights_by_hand():
    assert unbiased_weights(torch.zeros(7), torch.tensor([4, 0, 2])).tolist() == pytest.approx([1 / 3] * 3)
    # With only three outcomes all are drawn, and the estimate is the expectation.
    logits = torch.tensor([0.5, 0.3, 0.2]).log()
    assert unbiased_weights(logits, torch.tensor([2, 0, 1])).tolist() == pytest.approx([0.2, 0.5, 0.3])


def test_weights_are_stable_if_one_outcome_is_almost_certain():
    logits = torch.zeros(NUM_OUTCOMES)
    logits[7] = 60.0
    weights = unbiased_weights(logits, torch.tensor([7, 1, 2]))
    assert weights.tolist() == pytest.approx([1, 0, 0], abs=1e-6)
    # Probabilities apart by a factor of e^2000, and still no 0 / 0.
    logits[:3] = torch.tensor([-2000.0, 3000.0, 1000.0])
    assert unbiased_weights(logits, torch.tensor([1, 2, 0])).tolist() == pytest.approx([1, 0, 0])


def test_samples_are_distinct_and_follow_sequential_sampling():
    probability = torch.tensor([0.5, 0.3, 0.15, 0.05])
    count = 200_000
    uniforms = torch.rand(count, 4, generator=torch.Generator().manual_seed(0))
    drawn = sample_outcomes(probability.log().expand(count, 4), uniforms)
    assert drawn.shape == (count, OUTCOME_SAMPLES)
    code = drawn @ torch.tensor([16, 4, 1])
    for (a, b, c), chance in ordered_draws(probability):
        # Five standard deviations of the frequency.
        share = (code == 16 * a + 4 * b + c).float().mean().item()
        assert share == pytest.approx(chance, abs=5 * (chance / count) ** 0.5 + 1e-4)


def test_samples_do_not_depend_on_the_batch():
    generator = torch.Generator().manual_seed(1)
    logits, uniforms = torch.randn(5, 10, NUM_OUTCOMES, generator=generator), torch.rand(5, 10, NUM_OUTCOMES)
    whole = sample_outcomes(logits, uniforms)
    assert torch.equal(whole[3, 4], sample_outcomes(logits[3, 4], uniforms[3, 4]))
    assert (whole.sort(-1).values.diff(dim=-1) > 0).all()


def test_too_few_outcomes_are_refused():
    with pytest.raises(ValueError, match="cannot be drawn from 2"):
        sample_outcomes(torch.zeros(2), torch.rand(2))
