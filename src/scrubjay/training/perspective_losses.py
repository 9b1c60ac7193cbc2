"""The losses of perspective simulation: what hiding comes to, which place is better, what the seeker does."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from scrubjay.training.actor_critic import Losses, mean_where


def outcome(logits: torch.Tensor, happened: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of P (B, 295) at the place that was chosen and the hiding (B,) that came of it."""
    return mean_where(F.cross_entropy(logits, happened, reduction="none"), mask)


def ranking(values: torch.Tensor, steps: torch.Tensor, real: torch.Tensor | None = None) -> torch.Tensor:
    """V (B, 30) of imagined hidings should be ordered like the mean lengths (B, 30) of mental rollouts there.

    Binary cross entropy of each pair's difference and which one took longer, a mean over all pairs; ties count half.
    Pairs count only if both are `real` (B, 30), where that is given.
    """
    first, second = torch.triu_indices(values.shape[-1], values.shape[-1], 1, device=values.device)
    longer = torch.sign(steps[..., first] - steps[..., second]) / 2 + 0.5
    apart = values[..., first] - values[..., second]
    wrong = F.binary_cross_entropy_with_logits(apart, longer.to(values.dtype), reduction="none")
    pairs = torch.ones_like(wrong, dtype=torch.bool) if real is None else real[..., first] & real[..., second]
    return mean_where(wrong, pairs)


def mental(
    policy: torch.Tensor,
    success: torch.Tensor,
    seeker: torch.Tensor,
    action: torch.Tensor,
    succeeded: torch.Tensor,
    claimable: torch.Tensor,
    mask: torch.Tensor,
    claim: int,
) -> Losses:
    """The mental seeker's losses along a real seeker's way.

    policy and success (T, B, 58) are its logits; `seeker` (T, B, 58) the real policy's probabilities; action (T, B) and
    succeeded (T, B) what was done; claimable (T, B) whether a claim would have succeeded.
    """
    mimic = -(seeker.detach() * policy.log_softmax(-1)).sum(-1)
    said = success.gather(-1, action[..., None])[..., 0]
    done = F.binary_cross_entropy_with_logits(said, succeeded.to(said.dtype), reduction="none")
    claims = F.binary_cross_entropy_with_logits(success[..., claim], claimable.to(said.dtype), reduction="none")
    return {
        "mental_policy": mean_where(mimic, mask),
        "mental_success": mean_where(done, mask),
        "mental_claim": mean_where(claims, mask),
    }
