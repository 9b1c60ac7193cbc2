"""The paper's auxiliary losses: pure functions, each a mean over steps, without weights.

Sequences are (T, B). `mask` (T, B) bool selects the steps of a loss, mostly those of one stage; values elsewhere may be
anything. Where the paper describes only an intent, the docstring gives our reading.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from scrubjay.agent.fuse import fuse
from scrubjay.game import actions
from scrubjay.game.actions import Stage, action_index
from scrubjay.sim.cells import CELLS
from scrubjay.training.actor_critic import log_prob, mean_where

CHANGED_NORM, CHANGED_SHARE = 1e-3, 0.1
"""A cell has changed if a tenth of its pixels' features differ by more than this norm."""
# Actions of a kind are contiguous: slices need no lookup on the GPU.
FIRST_OPEN, FIRST_PLACE = action_index("OpenAt|1,1"), int(actions.PLACE_ACTIONS[0])
EXPLORE = slice(int(actions.ALLOWED[Stage.EM].sum()))
"""E&M's actions, the first of all."""
OPEN_AT = slice(FIRST_OPEN, FIRST_OPEN + CELLS**2)
PLACE_AT = slice(FIRST_PLACE, FIRST_PLACE + len(actions.PLACE_ACTIONS))
CLOSE, CLAIM = action_index("CloseObjects"), action_index("ClaimVisible")
MIN_OPEN_TRIES = 32
"""Fewer tries of OpenAt weigh less."""
MIN_CLAIMABLE = 8
"""Fewer steps at which the object can be claimed weigh less."""
MODALITY_SHARE = 0.1
"""Smallest share of each modality in the probability of all PlaceAt, early in training."""
EPS = 1e-8


# Shared by all stages: sums over `masks`, one for each stage, of the means over its steps.


def self_prediction(
    embeddings: torch.Tensor, predictions: torch.Tensor, episode: torch.Tensor, *masks: torch.Tensor
) -> torch.Tensor:
    """Contrastive (InfoNCE) loss of predicting the next step's embedding among all steps of the episode.

    `embeddings` (T + 1, B, D) are of SIRs, `predictions` (T, B, D) of the DIR and action before each of the last T;
    `episode` (T + 1, B) are ids. Similarities are scaled dot products.
    """
    similarity = torch.einsum("tbd,sbd->tsb", predictions.float(), embeddings.float()) * embeddings.shape[-1] ** -0.5
    same = episode[:-1, None] == episode[None]
    similarity = similarity.masked_fill(~same, -torch.inf)
    steps = torch.arange(len(predictions), device=embeddings.device)
    positive = similarity[steps, steps + 1]
    loss, follows = similarity.logsumexp(1) - positive, episode[1:] == episode[:-1]
    return torch.stack([mean_where(loss, mask & follows) for mask in masks]).sum()


@fuse
def changed_cells(before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Cells (..., 7, 7) that changed between two images, from their features (..., C, H, W) of the first block."""
    # The norm is accumulated in float32 without a float32 copy of the features.
    differ = torch.linalg.vector_norm(now - before, dim=-3, dtype=torch.float32) > CHANGED_NORM
    side = differ.shape[-1] // CELLS
    shares = differ.unflatten(-1, (CELLS, side)).unflatten(-3, (CELLS, side)).float().mean((-3, -1))
    return shares >= CHANGED_SHARE


def change_localization(change: torch.Tensor, changed: torch.Tensor, *masks: torch.Tensor) -> torch.Tensor:
    """Negative log-mass of the change map's softmax (T, B, 7, 7) on the cells that changed, where any did."""
    cells, anything = changed.flatten(-2), changed.flatten(-2).any(-1)
    # Where nothing changed all cells count: the loss is 0, and its gradient finite.
    inside = change.flatten(-2).masked_fill(~(cells | ~anything[..., None]), -torch.inf).logsumexp(-1)
    loss = change.flatten(-2).logsumexp(-1) - inside
    return torch.stack([mean_where(loss, mask & anything) for mask in masks]).sum()


def openable(
    logits: torch.Tensor,
    action: torch.Tensor,
    success: torch.Tensor,
    mask: torch.Tensor,
    everywhere: torch.Tensor | None = None,
) -> torch.Tensor:
    """Binary cross entropy of the logits (T, B, 7, 7) that OpenAt succeeds, at the cells where it was tried.

    Not in the paper. Nearly all of 49 OpenAt fail, and an actor would drop them all before it knows which do not. Few
    tries weigh less than a mean over them: a single success would outweigh all other losses.

    `everywhere` (T, B, 7, 7) bool says of all cells whether there is something to open, and is believed but where
    OpenAt was tried. Then the loss is a mean over steps of the cells' sums.
    """
    cell = action - FIRST_OPEN
    tried = (cell >= 0) & (cell < CELLS**2)
    logits, cell = logits.flatten(-2), torch.where(tried, cell, 0)[..., None]
    if everywhere is None:
        loss = F.binary_cross_entropy_with_logits(logits.gather(-1, cell)[..., 0], success.to(logits), reduction="none")
        return mean_where(loss, mask & tried, min_count=MIN_OPEN_TRIES)
    known = everywhere.flatten(-2)
    succeeded = torch.where(tried, success, known.gather(-1, cell)[..., 0])
    labels = known.scatter(-1, cell, succeeded[..., None]).to(logits)
    return mean_where(F.binary_cross_entropy_with_logits(logits, labels, reduction="none").sum(-1), mask)


def open_closed(logits: torch.Tensor, openable: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Negative log-probability of OpenAt at any cell (T, B, 7, 7) bool with something to open; 0 without such a cell.

    Not in the paper. An agent that has learned to walk before it has learned what opens would never find out that
    opening pays more. It is a mean over all steps: where there is nothing to open there is nothing to learn.
    """
    cells, anything = openable.flatten(-2), openable.flatten(-2).any(-1)
    # Where nothing can be opened all cells count: the gradient is finite, and left out.
    opens = logits.log_softmax(-1)[..., OPEN_AT].masked_fill(~(cells | ~anything[..., None]), -torch.inf)
    return mean_where(torch.where(anything, -opens.logsumexp(-1), 0), mask)


@torch.no_grad()
def open_at_probability(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The policy's mean probability of all OpenAt together: a diagnostic, not a loss."""
    return mean_where(logits.softmax(-1)[..., OPEN_AT].sum(-1), mask)


# Object hiding.


def modality_collapse(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Hinge on the log-probabilities of contained and behind: each should keep a tenth of that of all PlaceAt."""
    log_probs = _place_log_probs(logits, mask).flatten(-2).logsumexp(-1)
    hinge = F.relu(math.log(MODALITY_SHARE) - log_probs[..., 1:]).sum(-1)
    return mean_where(hinge, mask)


def spatial_collapse(logits: torch.Tensor, hittable: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of PlaceAt with the manipulator's probabilities (logits (T, B, 3, 7, 7)), normalized to 1."""
    target = hittable.detach().sigmoid().flatten(-3)
    target = target / target.sum(-1, keepdim=True).clamp(min=EPS)
    return mean_where(-(target * _place_log_probs(logits, mask).flatten(-3)).sum(-1), mask)


def recall(logits: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the logits (T, B, 147) with target indices (T, B) of an earlier step; -1 for nothing to recall.

    Used twice: for the last PlaceAt tried, and for where the object landed.
    """
    return mean_where(-log_prob(logits, target.clamp(min=0)), mask & (target >= 0))


def closing(logits: torch.Tensor, contained: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Negative log-probability of CloseObjects while the object is `contained` (T, B) in something open."""
    return mean_where(-logits.log_softmax(-1)[..., CLOSE], mask & contained)


# Object manipulation.


def hindsight(relabeled: torch.Tensor, action: torch.Tensor, missed: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Imitation of missed manipulations, relabeled with where the object landed.

    `relabeled` (T, B, 219) are the logits given that target; `missed` (T, B): the episode ended with the object in
    view, but not on its target.
    """
    return mean_where(-log_prob(relabeled, action), mask & missed)


def opening(logits: torch.Tensor, target: torch.Tensor, opened: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Negative log-probability of all OpenAt while the target is inside something and nothing was opened (T, B)."""
    log_probs = logits.log_softmax(-1)[..., OPEN_AT].logsumexp(-1)
    return mean_where(-log_probs, mask & (target[..., 0] == 1) & ~opened)


def attainable(hittable: torch.Tensor, target: torch.Tensor, hit: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Binary cross entropy of the logits (T, B, 3, 7, 7) at the target (T, B, 3) with whether the episode hit it.

    `mask` (T, B): steps whose episode ended within the sequence.
    """
    modality, row, column = target.unbind(-1)
    cell = (modality * CELLS + row) * CELLS + column
    logit = hittable.flatten(-3).gather(-1, cell[..., None])[..., 0]
    return mean_where(F.binary_cross_entropy_with_logits(logit, hit.to(logit.dtype), reduction="none"), mask)


def hand(logits: torch.Tensor, held_cell: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the logits (T, B, 7, 7) with the row and column (T, B, 2) of the object in the hand.

    Not in the paper. Between the middles of cells it counts in part for each of the four around it, so that the mean of
    the cells' positions is its own. Steps at which the object is outside the image (NaN) are left out.
    """
    shown = ~held_cell.isnan().any(-1)
    place = torch.where(shown[..., None], held_cell, 0).clamp(0, CELLS - 1)
    middles = torch.arange(CELLS, device=logits.device)
    row, column = ((1 - (each[..., None] - middles).abs()).clamp(min=0) for each in place.unbind(-1))
    labels = row[..., :, None] * column[..., None, :]
    return mean_where(-(labels.flatten(-2) * logits.flatten(-2).log_softmax(-1)).sum(-1), mask & shown)


# Seeking.


def imitation(logits: torch.Tensor, teacher_action: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy with the path teacher's action (T, B); -1 without one."""
    return mean_where(-log_prob(logits, teacher_action.clamp(min=0)), mask & (teacher_action >= 0))


def demonstration(logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the policy with demonstrated actions (T, B). Not in the paper."""
    return mean_where(-log_prob(logits, action), mask)


def claiming(logits: torch.Tensor, claimable: torch.Tensor, mask: torch.Tensor, odds: float = 1.0) -> torch.Tensor:
    """Binary cross entropy of ClaimVisible's probability with whether a claim would succeed (T, B).

    Steps at which it would weigh `odds`: the loss is least where a claim has so many times the odds of success.
    """
    log_claim = logits.log_softmax(-1)[..., CLAIM]
    log_other = torch.log1p(-log_claim.exp().clamp(max=1 - 1e-6))
    return mean_where(-torch.where(claimable, odds * log_claim, log_other), mask)


def visible(logits: torch.Tensor, claimable: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Binary cross entropy of the logits (T, B) that the object can be claimed, with both answers weighing the same.

    Not in the paper. It can be claimed at one step in thirty, and `claiming` alone learns how often, and hardly when.
    """
    loss = F.binary_cross_entropy_with_logits(logits, claimable.to(logits), reduction="none")
    return 0.5 * (mean_where(loss, mask & claimable, MIN_CLAIMABLE) + mean_where(loss, mask & ~claimable))


def exploring(logits: torch.Tensor, explorer: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """KL divergence of S's policy, claims aside, from E&M's, both given by logits (T, B, 219). Not in the paper.

    Finding something is a rare reward for exploring; until there was something to claim, E&M knows better what to do.
    After that a seeker may have turned away from the object, which E&M knows nothing of.
    """
    # Other stages lack some of E&M's actions: their -inf has no finite gradient.
    mine = torch.where(mask[..., None], logits[..., EXPLORE], 0).log_softmax(-1)
    its = explorer[..., EXPLORE].log_softmax(-1)
    return mean_where((its.exp() * (its - mine)).sum(-1), mask)


def _place_log_probs(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Log-probabilities (..., 3, 7, 7) of the PlaceAt actions among themselves."""
    # Stages without PlaceAt have only -inf there, whose softmax has no finite gradient.
    log_probs = torch.where(mask[..., None], logits[..., PLACE_AT], 0).log_softmax(-1)
    return log_probs.unflatten(-1, (len(actions.MODALITIES), CELLS, CELLS))
