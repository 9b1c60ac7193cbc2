"""The losses of perspective simulation: outcomes of hiding, the ranking of places, the mental seeker."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from scrubjay.training.actor_critic import Losses, mean_where


def outcome(logits: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of P (B, 295) at the chosen place with the outcomes (B,) of hiding there."""
    return mean_where(F.cross_entropy(logits, target, reduction="none"), mask)


def ranking(values: torch.Tensor, steps: torch.Tensor, real: torch.Tensor | None = None) -> torch.Tensor:
    """Ranks V (B, 30) of imagined hidings by the mean lengths (B, 30) of mental rollouts.

    Binary cross entropy of each pair's difference with which one took longer; ties are 0.5. A mean over all pairs, or
    those of which both are `real` (B, 30).
    """
    first, second = torch.triu_indices(values.shape[-1], values.shape[-1], 1, device=values.device)
    longer = torch.sign(steps[..., first] - steps[..., second]) / 2 + 0.5
    difference = values[..., first] - values[..., second]
    loss = F.binary_cross_entropy_with_logits(difference, longer.to(values.dtype), reduction="none")
    pairs = torch.ones_like(loss, dtype=torch.bool) if real is None else real[..., first] & real[..., second]
    return mean_where(loss, pairs)


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
    """The mental seeker's losses along a real seeker's path.

    `policy` and `success` (T, B, 58) are its logits, `seeker` (T, B, 58) the real policy's probabilities; `action` and
    `succeeded` (T, B) are the real seeker's, and `claimable` (T, B): a claim would have succeeded.
    """
    imitation = -(seeker.detach() * policy.log_softmax(-1)).sum(-1)
    logit = success.gather(-1, action[..., None])[..., 0]
    done = F.binary_cross_entropy_with_logits(logit, succeeded.to(logit.dtype), reduction="none")
    claims = F.binary_cross_entropy_with_logits(success[..., claim], claimable.to(logit.dtype), reduction="none")
    return {
        "mental_policy": mean_where(imitation, mask),
        "mental_success": mean_where(done, mask),
        "mental_claim": mean_where(claims, mask),
    }
