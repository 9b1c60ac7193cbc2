"""Advantages against the definition; losses, diagnostics and the total's gradient on numbers worked out by hand."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.game.actions import Stage
from scrubjay.training.actor_critic import (
    ActorCriticObjective,
    actor_critic_losses,
    compute_gae,
    entropy,
    explained_variance,
    mean_where,
    normalize,
    over_processes,
    total_loss,
)
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.learner import Objective


@given(seed=st.integers(0, 10**6), steps=st.integers(1, 12), gamma=st.floats(0.5, 1), gae_lambda=st.floats(0, 1))
def test_advantages_are_the_discounted_sum_of_td_errors_until_the_episode_ends(seed, steps, gamma, gae_lambda):
    rng = np.random.default_rng(seed)
    rewards, values, bootstrap = rng.normal(size=(steps, 3)), rng.normal(size=(steps, 3)), rng.normal(size=3)
    dones = rng.random((steps, 3)) < 0.3
    advantages = compute_gae(
        *(torch.from_numpy(x) for x in (rewards, values, bootstrap, dones)), gamma, gae_lambda
    ).numpy()
    next_values = np.concatenate([values[1:], bootstrap[None]])
    for b in range(3):
        for t in range(steps):
            total, weight = 0.0, 1.0
            for s in range(t, steps):
                not_done = 0.0 if dones[s, b] else 1.0
                total += weight * (rewards[s, b] + gamma * not_done * next_values[s, b] - values[s, b])
                if dones[s, b]:
                    break
                weight *= gamma * gae_lambda
            assert advantages[t, b] == pytest.approx(total)


def test_with_lambda_one_advantages_and_values_are_returns():
    """Rewards 1, 2, 3 at gamma 0.5, then a value of 4: 1 + 1 + 0.75 + 0.5."""
    rewards = torch.tensor([[1.0], [2.0], [3.0]])
    values = torch.tensor([[0.3], [-1.0], [7.0]])
    advantages = compute_gae(rewards, values, torch.tensor([4.0]), torch.zeros(3, 1, dtype=torch.bool), 0.5)
    assert (advantages + values)[0].item() == pytest.approx(3.25)


def test_at_a_time_limit_the_value_before_the_last_step_stands_in_for_the_one_after():
    """Three steps of reward 1 at gamma 0.5, values 2, 4 and 6; the episode ends with the second.

    By the rules: returns 1.5 and 1. By the limit: the second is 1 + 0.5 * 4 = 3, and the first 1 + 0.5 * 3 = 2.5.
    """
    rewards, values = torch.ones(3, 1), torch.tensor([[2.0], [4.0], [6.0]])
    bootstrap, dones = torch.tensor([8.0]), torch.tensor([[False], [True], [False]])
    never = torch.zeros_like(dones)
    for truncated, expected in ((None, [1.5, 1.0, 5.0]), (never, [1.5, 1.0, 5.0]), (dones, [2.5, 3.0, 5.0])):
        advantages = compute_gae(rewards, values, bootstrap, dones, 0.5, truncated=truncated)
        assert (advantages + values).flatten().tolist() == expected
    # Lambda 0: one-step TD errors, of which only that of the second step changes.
    td = compute_gae(rewards, values, bootstrap, dones, 0.5, 0.0, dones)
    assert td.flatten().tolist() == [1 + 2 - 2, 1 + 2 - 4, 1 + 4 - 6]


def test_a_constant_reward_surprises_a_critic_that_cannot_see_the_time_only_if_the_limit_is_terminal():
    rewards, values = torch.full((20, 1), 0.1), torch.full((20, 1), 10.0)
    dones = torch.zeros(20, 1, dtype=torch.bool)
    dones[9] = True
    assert compute_gae(rewards, values, values[0], dones, 0.99, truncated=dones).abs().max() < 1e-4
    assert compute_gae(rewards, values, values[0], dones, 0.99).abs().max() > 5


def test_a_step_can_have_its_own_discount():
    gamma, dones = torch.tensor([[0.8], [0.5]]), torch.zeros(2, 1, dtype=torch.bool)
    advantages = compute_gae(torch.zeros(2, 1), torch.zeros(2, 1), torch.ones(1), dones, gamma)
    assert advantages.flatten().tolist() == pytest.approx([0.4, 0.5])


def test_the_losses_by_hand():
    """Two actions with probabilities 3/4 and 1/4; the second step is masked out."""
    logits = torch.log(torch.tensor([[[0.75, 0.25]], [[0.5, 0.5]]]))
    logits = torch.cat([logits, torch.full((2, 1, 1), -torch.inf)], -1)
    mask = torch.tensor([[True], [False]])
    losses, _ = actor_critic_losses(
        logits, torch.tensor([[1.0], [9.0]]), torch.tensor([[1], [2]]), torch.tensor([[2.0], [5.0]]),
        torch.tensor([[4.0], [0.0]]), mask,
    )  # fmt: skip
    assert losses["policy_loss"].item() == pytest.approx(-2 * np.log(0.25))
    assert losses["value_loss"].item() == pytest.approx(0.5 * 9)
    assert losses["entropy"].item() == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_the_clipped_loss_stops_where_the_ratio_leaves_its_range():
    """An action twice as likely as before, clipped at 0.2: a gain counts 1.2 times, a loss in full."""
    logits = torch.log(torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    before = torch.log(torch.full((2, 1), 0.25))
    advantage = torch.tensor([[1.0], [-1.0]])
    losses, _ = actor_critic_losses(
        logits, torch.zeros(2, 1), torch.zeros(2, 1, dtype=torch.long), advantage, torch.zeros(2, 1),
        torch.ones(2, 1, dtype=torch.bool), old_log_probs=before, clip_coef=0.2,
    )  # fmt: skip
    assert losses["policy_loss"].item() == pytest.approx(-(1.2 - 2.0) / 2)


def test_normalized_advantages_and_scaled_values_by_hand():
    """Advantages 2, 6 and 10 have mean 6 and deviation sqrt(32 / 3); the fourth step is masked out."""
    chances = torch.tensor([0.5, 0.25, 0.125, 0.5])[:, None]
    logits = torch.log(torch.stack([chances, 1 - chances], -1))
    advantage = torch.tensor([2.0, 6.0, 10.0, torch.nan])[:, None]
    value, target = torch.tensor([[1.0], [2.0], [3.0], [9.0]]), torch.tensor([[3.0], [2.0], [-1.0], [torch.nan]])
    losses, _ = actor_critic_losses(
        logits, value, torch.zeros(4, 1, dtype=torch.long), advantage, target,
        torch.tensor([[True], [True], [True], [False]]), normalize_advantages=True, return_scale=torch.tensor([2.0]),
    )  # fmt: skip
    # Of advantages -4, 0 and 4 around their mean, and errors of -1, 0 and 2 units.
    far = 4 / (32 / 3) ** 0.5
    assert losses["policy_loss"].item() == pytest.approx(-(far * np.log(0.125) - far * np.log(0.5)) / 3)
    assert losses["value_loss"].item() == pytest.approx(0.5 * (1 + 4) / 3)


def test_advantages_are_normalized_over_all_processes_by_hand():
    """One has 2 and 6, the other 10: together their mean is 6 and their deviation sqrt(32 / 3)."""
    mine, mask = torch.tensor([[2.0], [torch.nan], [6.0]]), torch.tensor([[True], [False], [True]])
    others = torch.tensor([1.0, 10.0, 100.0])
    with over_processes(lambda moments: moments + others):
        normal = normalize(mine, mask)
    assert normal[mask].tolist() == pytest.approx([-4 / (32 / 3) ** 0.5, 0])


def test_the_average_of_processes_means_is_the_mean_of_all():
    """One has 2 and 6, the other 10: their mean is 6; of at least five, 18 / 5."""
    parts = [torch.tensor([2.0, torch.nan, 6.0]), torch.tensor([torch.nan, 10.0, torch.nan])]
    total = lambda counts: torch.tensor([3, 2])  # noqa: E731
    for min_count, expected in ((1, 6.0), (5, 18 / 5)):
        with over_processes(total):
            means = [mean_where(part, ~part.isnan(), min_count).item() for part in parts]
        assert sum(means) / 2 == pytest.approx(expected)
    assert mean_where(parts[0], ~parts[0].isnan()).item() == 4


def test_equal_advantages_have_no_policy_gradient():
    logits, every = torch.randn(3, 2, 4, requires_grad=True), torch.ones(3, 2, dtype=torch.bool)
    same = torch.full((3, 2), 7.0)
    losses, _ = actor_critic_losses(logits, same, every.long(), same, same, every, normalize_advantages=True)
    losses["policy_loss"].backward()
    assert losses["policy_loss"].item() == 0 and not logits.grad.any()


def test_gradients_are_finite_where_actions_are_not_allowed():
    logits = torch.tensor([[[0.3, -torch.inf, 0.2]]], requires_grad=True)
    losses, _ = actor_critic_losses(
        logits, torch.zeros(1, 1), torch.tensor([[2]]), torch.ones(1, 1), torch.zeros(1, 1),
        torch.ones(1, 1, dtype=torch.bool),
    )  # fmt: skip
    sum(losses.values()).backward()
    assert torch.isfinite(logits.grad).all() and logits.grad[0, 0, 1] == 0


def test_diagnostics_by_hand():
    """Ratios of 2 and 1 with a clip range of 0.2, values that explain half of what varies; the third step is masked."""
    logits = torch.log(torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]], [[0.5, 0.5]]]))
    old = torch.log(torch.tensor([[0.25], [0.25], [torch.nan]]))
    returns, values = torch.tensor([[1.0], [3.0], [torch.nan]]), torch.tensor([[1.0], [2.0], [9.0]])
    mask, actions = torch.tensor([[True], [True], [False]]), torch.zeros(3, 1, dtype=torch.long)
    _, metrics = actor_critic_losses(logits, values, actions, returns, returns, mask, old_log_probs=old, clip_coef=0.2)
    assert metrics["approx_kl"].item() == pytest.approx((2 - 1 - np.log(2)) / 2)
    assert metrics["clipfrac"].item() == pytest.approx(0.5)
    # Errors 0 and 1 have variance 1/4, returns 1 and 3 have variance 1.
    assert metrics["explained_variance"].item() == pytest.approx(0.75)
    assert explained_variance(values, torch.full_like(values, 5.0), mask).item() == 0, "returns that do not vary"
    # Advantages are 1 and 3 here, and are measured before they are normalized.
    assert metrics["advantage_std"].item() == pytest.approx(1)
    _, normalized = actor_critic_losses(logits, values, actions, 5 * returns, returns, mask, normalize_advantages=True)
    assert normalized["advantage_std"].item() == pytest.approx(5)
    _, plain = actor_critic_losses(logits, values, actions, returns, returns, mask, old_log_probs=old)
    assert set(plain) == {"approx_kl", "explained_variance", "advantage_std"}, "without a clip range nothing is clipped"


def test_the_totals_gradient_is_the_weighted_sum_by_hand():
    """Logits 0 and 0, action 0 with advantage 2, value 1 against a return of 4, weights 1, 0.5 and -0.1.

    d policy_loss = -2 * (1/2, -1/2); d value_loss = -3; entropy is at its maximum, and so has no gradient; at logits
    log 3 and 0 it has p (-log p - H) = 3/4 * 1/4 * (-log 3), and the opposite.
    """
    objective = ActorCriticObjective(vf_coef=0.5, entropy=0.1)
    for odds, d_policy, d_entropy in ((1.0, -1.0, 0.0), (3.0, -0.5, -3 / 16 * np.log(3))):
        logits = torch.log(torch.tensor([[[odds, 1.0]]])).requires_grad_()
        value = torch.tensor([[1.0]], requires_grad=True)
        losses, _ = actor_critic_losses(
            logits, value, torch.zeros(1, 1, dtype=torch.long), torch.tensor([[2.0]]), torch.tensor([[4.0]]),
            torch.ones(1, 1, dtype=torch.bool),
        )  # fmt: skip
        losses = {f"em/{name}": loss for name, loss in losses.items()}
        total = total_loss(losses, objective.actor_critic_weights("em"))
        p = odds / (1 + odds)
        h = -(p * np.log(p) + (1 - p) * np.log(1 - p))
        assert losses["em/entropy"].item() == pytest.approx(h), "logged as positive entropy"
        assert total.item() == pytest.approx(-2 * np.log(p) + 0.5 * 4.5 - 0.1 * h)
        total.backward()
        expected = d_policy - 0.1 * d_entropy
        assert logits.grad.flatten().tolist() == pytest.approx([expected, -expected], abs=1e-6)
        assert value.grad.item() == pytest.approx(0.5 * -3)


def test_losses_and_weights_must_agree():
    losses = {"em/policy_loss": torch.ones(()), "change": torch.ones(())}
    assert total_loss(losses, {"change": 3.0, "em/policy_loss": 0.5}).item() == 3.5
    with pytest.raises(ValueError, match=r"losses without a weight: \['change'\]; weights without a loss: \[\]"):
        total_loss(losses, {"em/policy_loss": 1.0})
    with pytest.raises(ValueError, match=r"weights without a loss: \['forgotten'\]"):
        total_loss(losses, {"em/policy_loss": 1.0, "change": 1.0, "forgotten": 1.0})


def test_every_weight_of_an_objective_is_in_its_table():
    """Each field set to a number of its own appears in the tables, but for those that are no weights.

    Demonstrations, and where the hand is, have a weight where a rollout has them.
    """
    others = {
        "gamma", "gae_lambda", "clip_coef", "normalize_advantages", "bootstrap_time_limits", "early",
        "openable_everywhere", "demonstration", "hand", "claim_odds", "center_percentile",
    }  # fmt: skip

    def numbered(kind):
        names = [f.name for f in fields(kind) if f.name not in others]
        return kind(**{name: 100.0 + k for k, name in enumerate(names)}), {100.0 + k for k in range(len(names))}

    objective, expected = numbered(Objective)
    assert {abs(weight) for weight in objective.weights(set(Stage)).values()} == expected | {1.0}
    hiding, expected = numbered(HidingObjective)
    tables = hiding.hiding_weights(early=True) | hiding.perspective_weights()
    assert {abs(weight) for weight in tables.values()} == expected | {1.0}


def test_a_mean_of_nothing_is_nothing():
    assert mean_where(torch.tensor([torch.nan, 3.0]), torch.tensor([False, True])).item() == 3
    assert mean_where(torch.tensor([torch.nan]), torch.tensor([False])).item() == 0
    assert entropy(torch.zeros(4)).item() == pytest.approx(np.log(4))
