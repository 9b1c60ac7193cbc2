"""Advantages, the actor-critic losses, and the weighted sum of losses. Sequences are (T, B): T steps of B games."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch.nn import functional as F

from scrubjay.agent.config import CHECKED, explain_errors
from scrubjay.agent.normalization import Norm

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Discount = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Losses = dict[str, torch.Tensor]
"""Plain (unweighted) scalar losses by name: `em/policy_loss`, `self_prediction`."""
Metrics = dict[str, torch.Tensor]
"""Detached scalar diagnostics by name: `em/approx_kl`."""
Weights = dict[str, float]
"""Loss name -> weight in the total."""
Total = Callable[[torch.Tensor], torch.Tensor]
"""Adds a tensor up over processes."""
_total: ContextVar[Total | None] = ContextVar("total", default=None)
MIN_STD = 1e-6
"""Advantages are divided by at least this."""
MIN_VARIANCE = 1e-12
"""Returns that vary less have no explained variance."""


@explain_errors
@dataclass(frozen=True, config=CHECKED)
class ActorCriticObjective:
    """Hyperparameters of a stage's actor and critic; subclasses add the weights of their auxiliary losses."""

    gamma: Discount = 0.99
    """Discount factor of the rewards."""
    gae_lambda: Discount = 1.0
    """Lambda of generalized advantage estimation; 1 gives discounted returns minus values."""
    entropy: Weight = 0.01
    """Weight of the entropy bonus."""
    vf_coef: Weight = 1.0
    """Weight of the value loss."""
    clip_coef: Weight = 0.0
    """PPO's clip range; 0 is the plain policy gradient, as in the paper."""
    normalize_advantages: bool = False
    """Normalize advantages per minibatch, so that the entropy bonus weighs the same in all stages."""
    bootstrap_time_limits: bool = False
    """Bootstrap returns where a stage's step limit alone ends an episode; else the limit is terminal."""

    def actor_critic_weights(self, stage: str) -> Weights:
        """Weights of what `actor_critic_losses` returns, for a stage's names. Entropy is maximized."""
        return {
            f"{stage}/policy_loss": 1.0,
            f"{stage}/value_loss": self.vf_coef,
            f"{stage}/entropy": -self.entropy,
        }

    def stage_losses(
        self,
        return_norm: Norm,
        logits: torch.Tensor,
        values: torch.Tensor,
        actions: torch.Tensor,
        advantages: torch.Tensor,
        mask: torch.Tensor,
        old_log_probs: torch.Tensor,
        behavior_log_probs: torch.Tensor | None = None,
    ) -> tuple[Losses, Metrics]:
        """`actor_critic_losses` of one stage. Updates its running norm of returns, whose scale the value loss has."""
        returns = advantages + values.detach()
        return_norm.update(returns[..., None], mask)
        return actor_critic_losses(
            logits, values, actions, advantages, returns, mask, old_log_probs, self.clip_coef,
            self.normalize_advantages, return_norm.std, behavior_log_probs,
        )  # fmt: skip


def total_loss(losses: Losses, weights: Mapping[str, float]) -> torch.Tensor:
    """sum(weight * loss); ValueError if a loss has no weight or a weight no loss."""
    if losses.keys() != weights.keys():
        raise ValueError(
            f"losses without a weight: {sorted(losses.keys() - weights.keys())}; "
            f"weights without a loss: {sorted(weights.keys() - losses.keys())}"
        )
    return torch.stack([weights[name] * loss.float() for name, loss in losses.items()]).sum()


def compute_gae(
    rewards: torch.Tensor,
    values: torch.Tensor,
    bootstrap_value: torch.Tensor,
    dones: torch.Tensor,
    gamma: float | torch.Tensor = 0.99,
    gae_lambda: float = 1.0,
    truncated: torch.Tensor | None = None,
) -> torch.Tensor:
    """Generalized advantage estimates (T, B) from rewards and values (T, B).

    `bootstrap_value` (B,) is the value after the last step; `dones` (T, B) bool are the last steps of episodes.
    Advantages plus values are the critic's targets.

    Where `truncated` (T, B) bool, returns are bootstrapped. V(s_t) stands in for V(s_t+1): the state after a truncated
    step is never rendered, because the next game has begun. To a critic that does not see the time both are nearly
    equal: they differ by one step's reward and discount.
    """
    next_values = torch.cat([values[1:], bootstrap_value[None]])
    not_done = (~dones).to(values.dtype)
    following_values = not_done * next_values
    if truncated is not None:
        following_values = torch.where(truncated, values, following_values)
    deltas = rewards + gamma * following_values - values
    decay = gamma * gae_lambda * not_done
    advantages, following = [], torch.zeros_like(bootstrap_value)
    for step in reversed(range(len(rewards))):
        following = deltas[step] + decay[step] * following
        advantages.append(following)
    return torch.stack(advantages[::-1])


@contextmanager
def over_processes(total: Total | None) -> Iterator[None]:
    """Means and deviations of losses within are those of all processes, which compute the same ones, if there are many.

    Gradients are averaged over processes, and the average of means is not the mean where each has another number of
    steps; and a few steps' advantages deviate less than those of all.
    """
    token = _total.set(total)
    try:
        yield
    finally:
        _total.reset(token)


def mean_where(values: torch.Tensor, mask: torch.Tensor, min_count: int = 1) -> torch.Tensor:
    """The mean of values where `mask`; 0 where it is empty. Masked-out values may be anything, NaN too.

    The sum is divided by at least `min_count`, so that fewer values weigh less. `over_processes`, what all of them get
    averages to the mean of all their values.
    """
    count, total = mask.sum(), _total.get()
    if total is None:
        share = count.clamp(min=min_count)
    else:
        every, processes = total(torch.stack([count, torch.ones_like(count)])).unbind()
        share = every.clamp(min=min_count) / processes
    return torch.where(mask, values, torch.zeros_like(values)).sum() / share


def log_prob(logits: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of actions (...,) under logits (..., A)."""
    return logits.log_softmax(-1).gather(-1, actions[..., None])[..., 0]


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Entropies (...,) of logits (..., A); logits of -inf, actions that a stage lacks, add nothing."""
    log_probs = logits.log_softmax(-1)
    # 0 * -inf is 0 here, and so must its gradient be.
    return -(log_probs.exp() * log_probs.masked_fill(log_probs == -torch.inf, 0)).sum(-1)


def mean_and_variance(values: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of values where `mask`, those of all processes; 0 where it is empty."""
    inside = torch.where(mask, values, torch.zeros_like(values)).double()
    sums, total = torch.stack([mask.sum().double(), inside.sum(), (inside**2).sum()]), _total.get()
    count, first, second = (sums if total is None else total(sums)).unbind()
    mean = first / count.clamp(min=1)
    return mean, (second / count.clamp(min=1) - mean**2).clamp(min=0)


def normalize(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Values with mean 0 and standard deviation 1 where `mask`; elsewhere they may be anything."""
    mean, variance = mean_and_variance(values, mask)
    return ((values - mean) / variance.sqrt().clamp(min=MIN_STD)).to(values.dtype)


def variance(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The variance of values where `mask`; 0 where it is empty."""
    return mean_and_variance(values, mask)[1].to(values.dtype)


def explained_variance(values: torch.Tensor, returns: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """1 - Var[returns - values] / Var[returns] where `mask`; 0 if returns do not vary."""
    total = variance(returns, mask)
    explained = 1 - variance(returns - values, mask) / total.clamp(min=MIN_VARIANCE)
    return torch.where(total > MIN_VARIANCE, explained, 0)


def actor_critic_losses(
    logits: torch.Tensor,
    values: torch.Tensor,
    actions: torch.Tensor,
    advantages: torch.Tensor,
    returns: torch.Tensor,
    mask: torch.Tensor,
    old_log_probs: torch.Tensor | None = None,
    clip_coef: float = 0.0,
    normalize_advantages: bool = False,
    return_scale: torch.Tensor | float = 1.0,
    behavior_log_probs: torch.Tensor | None = None,
) -> tuple[Losses, Metrics]:
    """Policy loss, value loss and entropy, each a mean over the steps in `mask` (T, B); and diagnostics.

    With `clip_coef` PPO's clipped loss against the log-probabilities `old_log_probs` (T, B) that actions were sampled
    with, else the plain policy gradient. The value loss is half the squared error, in units of `return_scale`.

    Steps that were sampled long ago have `behavior_log_probs` (T, B) beside `old_log_probs`, those of the policy that
    learning starts from: what is clipped is how far learning goes from there (decoupled PPO), and steps that this
    policy would take more rarely weigh less, by an importance weight of at most 1 as in V-trace.
    """
    log_probs = log_prob(logits, torch.where(mask, actions, logits.argmax(-1)))
    advantages, returns = advantages.detach(), returns.detach()
    metrics = {
        "explained_variance": explained_variance(values.detach(), returns, mask),
        "advantage_std": variance(advantages, mask).sqrt(),
    }
    if normalize_advantages:
        advantages = normalize(advantages, mask)
    if clip_coef:
        assert old_log_probs is not None
        ratio = torch.where(mask, log_probs - old_log_probs, torch.zeros_like(log_probs)).exp()
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(1 - clip_coef, 1 + clip_coef) * advantages)
        if behavior_log_probs is not None:
            drift = torch.where(mask, old_log_probs - behavior_log_probs, torch.zeros_like(log_probs)).detach()
            surrogate = surrogate * drift.exp().clamp(max=1)
            metrics["behavior_kl"] = mean_where(drift.exp() - 1 - drift, mask)
    else:
        surrogate = log_probs * advantages
    if old_log_probs is not None:
        log_ratio = log_probs.detach() - old_log_probs
        metrics["approx_kl"] = mean_where(log_ratio.exp() - 1 - log_ratio, mask)
        if clip_coef:
            metrics["clipfrac"] = mean_where(((log_ratio.exp() - 1).abs() > clip_coef).float(), mask)
    losses = {
        "policy_loss": -mean_where(surrogate, mask),
        "value_loss": 0.5
        * mean_where(F.mse_loss(values / return_scale, returns / return_scale, reduction="none"), mask),
        "entropy": mean_where(entropy(logits), mask),
    }
    return losses, metrics


def prefixed(stage: str, scalars: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Names of a stage: `policy_loss` -> `em/policy_loss`."""
    return {f"{stage}/{name}": value for name, value in scalars.items()}
