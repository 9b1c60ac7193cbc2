"""What hiding can come to: 294 spots in the image and none, drawn without replacement and weighed without bias.

Three outcomes are drawn one after another, each with a probability proportional to softmax(P) among those left. With
Murthy's weights their mean of any quantity is an unbiased estimate of what softmax(P) expects of it.
"""

from __future__ import annotations

import torch

from scrubjay.agent.sampling import gumbel
from scrubjay.game.actions import MODALITIES
from scrubjay.sim.cells import CELLS

NUM_PLACEMENTS = len(MODALITIES) * CELLS * CELLS
"""The spots of PlaceAt, in its order: target indices."""
NOT_HIDDEN = 2 * NUM_PLACEMENTS
"""The outcome of an object that was not hidden but dropped; before it come those crouching, then those standing."""
NUM_OUTCOMES = NOT_HIDDEN + 1
OUTCOME_SAMPLES = 3
"""Outcomes drawn at each place."""


def outcome_index(standing: torch.Tensor, spot: torch.Tensor) -> torch.Tensor:
    """The outcome's number for standing (...,) bool and PlaceAt's spot (...,) 0..146, or -1 for not hidden."""
    return torch.where(spot < 0, NOT_HIDDEN, standing.long() * NUM_PLACEMENTS + spot)


def sample_outcomes(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Three distinct outcomes in the order drawn, (..., 3), from logits (..., E) with as many uniform numbers.

    The largest of logits + noise, the second and the third are distributed as draws one after another.
    """
    if logits.shape[-1] < OUTCOME_SAMPLES:
        raise ValueError(f"{OUTCOME_SAMPLES} distinct outcomes cannot be drawn from {logits.shape[-1]}")
    return (logits.detach().to(uniforms.dtype) + gumbel(uniforms)).topk(OUTCOME_SAMPLES, dim=-1).indices


def unbiased_weights(logits: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """Murthy's weights (..., 3) of the outcomes drawn (..., 3) from logits (..., E); they sum to 1.

    The weight of outcome a, where a, b and c were drawn, is p(a) P(abc | a first) / P(abc), which is proportional to
    1 / (1 - a) * (1 / (1 - a - b) + 1 / (1 - a - c)) with a, b, c standing for their probabilities.
    """
    # What is left is summed up from the others' logarithms: 1 - p(a) would be 0 where p(a) is nearly 1.
    log_p = logits.detach().to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    left = torch.stack([_log_left(log_p, drawn[..., [a]]) for a in range(3)], -1)
    without_ab, without_ac, without_bc = (_log_left(log_p, drawn[..., pair]) for pair in ([0, 1], [0, 2], [1, 2]))
    pairs = torch.stack(
        [
            torch.logaddexp(-without_ab, -without_ac),
            torch.logaddexp(-without_ab, -without_bc),
            torch.logaddexp(-without_ac, -without_bc),
        ],
        -1,
    )
    return (pairs - left).softmax(-1)


def _log_left(log_p: torch.Tensor, gone: torch.Tensor) -> torch.Tensor:
    """The logarithm of the probability (...,) that is left when some outcomes (..., n) are gone from log_p (..., E)."""
    return log_p.scatter(-1, gone, -torch.inf).logsumexp(-1)
