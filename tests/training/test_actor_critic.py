"""Advantages against the definition, and the actor-critic's losses by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.training.actor_critic import actor_critic, compute_gae, entropy, mean_where


@given(seed=st.integers(0, 10**6), steps=st.integers(1, 12), gamma=st.floats(0.5, 1), tau=st.floats(0, 1))
def test_advantages_are_the_discounted_sum_of_surprises_until_the_episode_ends(seed, steps, gamma, tau):
    rng = np.random.default_rng(seed)
    reward, value, following = rng.normal(size=(steps, 3)), rng.normal(size=(steps, 3)), rng.normal(size=3)
    ended = rng.random((steps, 3)) < 0.3
    found = compute_gae(*(torch.from_numpy(x) for x in (reward, value, following, ended)), gamma, tau).numpy()
    later = np.concatenate([value[1:], following[None]])
    for b in range(3):
        for t in range(steps):
            total, weight = 0.0, 1.0
            for s in range(t, steps):
                goes_on = 0.0 if ended[s, b] else 1.0
                total += weight * (reward[s, b] + gamma * goes_on * later[s, b] - value[s, b])
                if ended[s, b]:
                    break
                weight *= gamma * tau
            assert found[t, b] == pytest.approx(total)


def test_with_tau_one_advantages_and_values_are_returns():
    """Rewards 1, 2, 3 at gamma 0.5, then a value of 4: 1 + 1 + 0.75 + 0.5."""
    reward = torch.tensor([[1.0], [2.0], [3.0]])
    value = torch.tensor([[0.3], [-1.0], [7.0]])
    found = compute_gae(reward, value, torch.tensor([4.0]), torch.zeros(3, 1, dtype=torch.bool), 0.5)
    assert (found + value)[0].item() == pytest.approx(3.25)


def test_a_step_can_have_its_own_discount():
    gamma = torch.tensor([[0.8], [0.5]])
    found = compute_gae(torch.zeros(2, 1), torch.zeros(2, 1), torch.ones(1), torch.zeros(2, 1, dtype=torch.bool), gamma)
    assert found.flatten().tolist() == pytest.approx([0.4, 0.5])


def test_the_losses_by_hand():
    """Two actions with probabilities 3/4 and 1/4; the second step does not count."""
    logits = torch.log(torch.tensor([[[0.75, 0.25]], [[0.5, 0.5]]]))
    logits = torch.cat([logits, torch.full((2, 1, 1), -torch.inf)], -1)
    chosen = torch.tensor([[True], [False]])
    losses = actor_critic(
        logits, torch.tensor([[1.0], [9.0]]), torch.tensor([[1], [2]]), torch.tensor([[2.0], [5.0]]),
        torch.tensor([[4.0], [0.0]]), chosen, beta=0.1,
    )  # fmt: skip
    assert losses["policy"].item() == pytest.approx(-2 * np.log(0.25))
    assert losses["value"].item() == pytest.approx(0.5 * 9)
    assert losses["entropy"].item() == pytest.approx(0.1 * (0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_the_clipped_loss_stops_where_the_ratio_leaves_its_band():
    """An action twice as likely as before, with a band of 0.2: a gain counts 1.2 times, a loss in full."""
    logits = torch.log(torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    before = torch.log(torch.full((2, 1), 0.25))
    advantage = torch.tensor([[1.0], [-1.0]])
    losses = actor_critic(
        logits, torch.zeros(2, 1), torch.zeros(2, 1, dtype=torch.long), advantage, torch.zeros(2, 1),
        torch.ones(2, 1, dtype=torch.bool), before=before, clip=0.2,
    )  # fmt: skip
    assert losses["policy"].item() == pytest.approx(-(1.2 - 2.0) / 2)


def test_normalized_advantages_and_values_in_units_by_hand():
    """Advantages 2, 6 and 10 have mean 6 and deviation sqrt(32 / 3); a fourth step, of any numbers, does not count."""
    chances = torch.tensor([0.5, 0.25, 0.125, 0.5])[:, None]
    logits = torch.log(torch.stack([chances, 1 - chances], -1))
    advantage = torch.tensor([2.0, 6.0, 10.0, torch.nan])[:, None]
    value, target = torch.tensor([[1.0], [2.0], [3.0], [9.0]]), torch.tensor([[3.0], [2.0], [-1.0], [torch.nan]])
    losses = actor_critic(
        logits, value, torch.zeros(4, 1, dtype=torch.long), advantage, target,
        torch.tensor([[True], [True], [True], [False]]), normalized=True, unit=torch.tensor([2.0]),
    )  # fmt: skip
    # Of advantages -4, 0 and 4 around their mean, and errors of -1, 0 and 2 units.
    far = 4 / (32 / 3) ** 0.5
    assert losses["policy"].item() == pytest.approx(-(far * np.log(0.125) - far * np.log(0.5)) / 3)
    assert losses["value"].item() == pytest.approx(0.5 * (1 + 4) / 3)


def test_advantages_that_are_all_the_same_ask_for_nothing():
    logits, every = torch.randn(3, 2, 4, requires_grad=True), torch.ones(3, 2, dtype=torch.bool)
    same = torch.full((3, 2), 7.0)
    losses = actor_critic(logits, same, every.long(), same, same, every, normalized=True)
    losses["policy"].backward()
    assert losses["policy"].item() == 0 and not logits.grad.any()


def test_gradients_are_finite_where_actions_are_not_allowed():
    logits = torch.tensor([[[0.3, -torch.inf, 0.2]]], requires_grad=True)
    losses = actor_critic(
        logits, torch.zeros(1, 1), torch.tensor([[2]]), torch.ones(1, 1), torch.zeros(1, 1),
        torch.ones(1, 1, dtype=torch.bool),
    )  # fmt: skip
    sum(losses.values()).backward()
    assert torch.isfinite(logits.grad).all() and logits.grad[0, 0, 1] == 0


def test_a_mean_of_nothing_is_nothing():
    assert mean_where(torch.tensor([torch.nan, 3.0]), torch.tensor([False, True])).item() == 3
    assert mean_where(torch.tensor([torch.nan]), torch.tensor([False])).item() == 0
    assert entropy(torch.zeros(4)).item() == pytest.approx(np.log(4))
