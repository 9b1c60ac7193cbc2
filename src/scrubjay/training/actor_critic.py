"""Advantages and the losses of actors and critics. Sequences are (T, B): T steps of B games."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional as F

Losses = dict[str, torch.Tensor]
LEAST = 1e-6
"""The deviation of advantages that are all the same."""


@dataclass(frozen=True)
class ActorCritic:
    """The numbers that every stage's actor and critic are learned with; an objective adds the weights of its losses."""

    gamma: float = 0.99
    tau: float = 1.0
    entropy: float = 0.01
    clip: float = 0.0
    """PPO's band; 0 is the plain policy gradient, as in the paper."""
    normalized: bool = False
    """Advantages have mean 0 and deviation 1 in every batch, so that the entropy weighs the same in all stages."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name}: a number from 0 up is needed, not {value}")
        if self.gamma > 1 or self.tau > 1:
            raise ValueError(f"gamma and tau are at most 1, not {self.gamma} and {self.tau}")


def compute_gae(
    reward: torch.Tensor,
    value: torch.Tensor,
    following: torch.Tensor,
    ended: torch.Tensor,
    gamma: float | torch.Tensor = 0.99,
    tau: float = 1.0,
) -> torch.Tensor:
    """Generalized advantage estimates (T, B) of rewards and values (T, B).

    `following` (B,) is the value after the last step. Where `ended` (T, B) an episode is over: nothing that comes later
    counts. Advantages plus values are what the critic should have said.
    """
    later = torch.cat([value[1:], following[None]])
    going_on = (~ended).to(value.dtype)
    surprise = reward + gamma * going_on * later - value
    kept = gamma * tau * going_on
    found, behind = [], torch.zeros_like(following)
    for step in reversed(range(len(reward))):
        behind = surprise[step] + kept[step] * behind
        found.append(behind)
    return torch.stack(found[::-1])


def mean_where(values: torch.Tensor, chosen: torch.Tensor, few: int = 1) -> torch.Tensor:
    """The mean of values where they are chosen, 0 where none is; values elsewhere may be anything, NaN too.

    Where fewer than `few` are chosen, it is as if the others were 0.
    """
    count = chosen.sum().clamp(min=few)
    return torch.where(chosen, values, torch.zeros_like(values)).sum() / count


def log_probabilities(logits: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """Of actions (...,) under logits (..., A)."""
    return logits.log_softmax(-1).gather(-1, action[..., None])[..., 0]


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Of the distributions (...,) that logits (..., A) stand for; actions that a stage does not have add nothing."""
    logs = logits.log_softmax(-1)
    # 0 times minus infinity is 0 here, and so must its gradient be.
    return -(logs.exp() * logs.masked_fill(logs == -torch.inf, 0)).sum(-1)


def actor_critic(
    logits: torch.Tensor,
    value: torch.Tensor,
    action: torch.Tensor,
    advantage: torch.Tensor,
    target: torch.Tensor,
    chosen: torch.Tensor,
    beta: float = 0.01,
    before: torch.Tensor | None = None,
    clip: float = 0.0,
    normalized: bool = False,
    unit: torch.Tensor | float = 1.0,
) -> Losses:
    """The losses of the steps that are `chosen` (T, B): policy, value and (negative) entropy, each a mean.

    With `clip`, PPO's clipped loss against the log-probabilities `before` (T, B) that the actions were drawn with; else
    the plain policy gradient. If `normalized`, advantages have mean 0 and deviation 1. The entropy's weight is `beta`,
    the squared error of the values, in multiples of `unit`, counts half.
    """
    now = log_probabilities(logits, torch.where(chosen, action, logits.argmax(-1)))
    advantage = advantage.detach()
    if normalized:
        advantage = advantage - mean_where(advantage, chosen)
        advantage = advantage / mean_where(advantage**2, chosen).sqrt().clamp(min=LEAST)
    if clip:
        assert before is not None
        ratio = torch.where(chosen, now - before, torch.zeros_like(now)).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    else:
        gain = now * advantage
    return {
        "policy": -mean_where(gain, chosen),
        "value": 0.5 * mean_where(F.mse_loss(value / unit, target.detach() / unit, reduction="none"), chosen),
        "entropy": -beta * mean_where(entropy(logits), chosen),
    }
