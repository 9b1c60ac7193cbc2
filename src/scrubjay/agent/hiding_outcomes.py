"""Hiding outcomes: 147 placements, crouching or standing, and none; sampled without replacement, weighted without bias.

Three outcomes are drawn in sequence, each with probability proportional to softmax(P) among those left. Averages under
Murthy's weights are unbiased estimates of expectations under softmax(P).
"""

from __future__ import annotations

import torch

from scrubjay.agent.sampling import gumbel
from scrubjay.game.actions import MODALITIES
from scrubjay.sim.cells import CELLS

NUM_PLACEMENTS = len(MODALITIES) * CELLS * CELLS
"""The targets of PlaceAt, in the order of its target indices."""
NOT_HIDDEN = 2 * NUM_PLACEMENTS
"""The outcome of an object that was dropped, not placed. Before it: placements crouching, then placements standing."""
NUM_OUTCOMES = NOT_HIDDEN + 1
OUTCOME_SAMPLES = 3
"""Outcomes sampled at each place."""


def outcome_index(standing: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The outcome's index for standing (...,) bool and PlaceAt's target index (...,) 0..146, or -1 for not hidden."""
    return torch.where(target < 0, NOT_HIDDEN, standing.long() * NUM_PLACEMENTS + target)


def sample_outcomes(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Three distinct outcomes (..., 3), in the order drawn, from logits (..., E) and uniform numbers (..., E).

    Gumbel top-k: the three largest of logits + noise are distributed as sequential draws without replacement.
    """
    if logits.shape[-1] < OUTCOME_SAMPLES:
        raise ValueError(f"{OUTCOME_SAMPLES} distinct outcomes cannot be drawn from {logits.shape[-1]}")
    return (logits.detach().to(uniforms.dtype) + gumbel(uniforms)).topk(OUTCOME_SAMPLES, dim=-1).indices


def unbiased_weights(logits: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """Murthy's weights (..., 3) of the outcomes drawn (..., 3) from logits (..., E); they sum to 1.

    The weight of outcome a, where a, b and c were drawn, is p(a) P(abc | a first) / P(abc), which is proportional to
    1 / (1 - a) * (1 / (1 - a - b) + 1 / (1 - a - c)) with a, b, c standing for their probabilities.
    """
    # Remaining mass is summed from the other outcomes' log probabilities: 1 - p(a) would be 0 where p(a) is near 1.
    log_p = logits.detach().to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    left = torch.stack([_log_remaining(log_p, drawn[..., [a]]) for a in range(3)], -1)
    without_ab, without_ac, without_bc = (_log_remaining(log_p, drawn[..., pair]) for pair in ([0, 1], [0, 2], [1, 2]))
    pairs = torch.stack(
        [
            torch.logaddexp(-without_ab, -without_ac),
            torch.logaddexp(-without_ab, -without_bc),
            torch.logaddexp(-without_ac, -without_bc),
        ],
        -1,
    )
    return (pairs - left).softmax(-1)


def _log_remaining(log_p: torch.Tensor, removed: torch.Tensor) -> torch.Tensor:
    """The log probability (...,) that remains in log_p (..., E) without the outcomes `removed` (..., n)."""
    return log_p.scatter(-1, removed, -torch.inf).logsumexp(-1)
