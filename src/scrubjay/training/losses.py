"""The paper's additional losses: pure functions of what the agent said and what happened, a mean over steps each.

Sequences are (T, B). `mask` (T, B) bool says which steps a loss is about, mostly those of one stage; what is not
mask may be anything. Where the paper describes only an intent, the docstring says what we made of it.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from scrubjay.game import actions
from scrubjay.game.actions import action_index
from scrubjay.sim.cells import CELLS
from scrubjay.training.actor_critic import mean_where

CHANGED_NORM, CHANGED_SHARE = 1e-3, 0.1
"""A cell has changed if a tenth of its features differ by more than this."""
# Actions of a kind follow one another, so that nothing has to be looked up on a GPU.
FIRST_OPEN, FIRST_PLACE = action_index("OpenAt|1,1"), int(actions.PLACE_ACTIONS[0])
OPEN_AT = slice(FIRST_OPEN, FIRST_OPEN + CELLS**2)
PLACE_AT = slice(FIRST_PLACE, FIRST_PLACE + len(actions.PLACE_ACTIONS))
CLOSE, CLAIM = action_index("CloseObjects"), action_index("ClaimVisible")
FEW_TRIES = 32
"""Fewer tries of OpenAt than these weigh less."""
MODALITY_SHARE = 0.1
"""Of the probability of all PlaceAt, how much each modality should keep, at least, early in training."""
LEAST = 1e-8
"""Probabilities count as no smaller than this in logarithms."""


# Shared by all stages.


def self_prediction(
    seen: torch.Tensor, expected: torch.Tensor, episode: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Is what was expected of a step the most like what was seen next, of all that was seen in the episode?

    `seen` (T + 1, B, D) embeds the SIRs, `expected` (T, B, D) the DIR and action before each of the last T of them;
    `episode` (T + 1, B) numbers episodes. Contrast by dot products: a softmax over the steps of the episode.
    """
    likeness = torch.einsum("tbd,sbd->tsb", expected.float(), seen.float()) * seen.shape[-1] ** -0.5
    same = episode[:-1, None] == episode[None]
    likeness = likeness.masked_fill(~same, -torch.inf)
    steps = torch.arange(len(expected), device=seen.device)
    right = likeness[steps, steps + 1]
    follows = mask & (episode[1:] == episode[:-1])
    return mean_where(likeness.logsumexp(1) - right, follows)


def changed_cells(before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Which cells (..., 7, 7) of an image changed, from the encodings (..., C, H, W) of both by the first block."""
    # Features are many: half-precision ones are not copied in full, only summed in it.
    differ = torch.linalg.vector_norm(now - before, dim=-3, dtype=torch.float32) > CHANGED_NORM
    side = differ.shape[-1] // CELLS
    shares = differ.unflatten(-1, (CELLS, side)).unflatten(-3, (CELLS, side)).float().mean((-3, -1))
    return shares >= CHANGED_SHARE


def change_localization(change: torch.Tensor, changed: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The change map's softmax (T, B, 7, 7) should lie on cells that changed (T, B, 7, 7); no matter where none did."""
    cells, anything = changed.flatten(-2), changed.flatten(-2).any(-1)
    # Where nothing changed all cells are taken: the loss is 0, and its gradient a number.
    inside = change.flatten(-2).masked_fill(~(cells | ~anything[..., None]), -torch.inf).logsumexp(-1)
    return mean_where(change.flatten(-2).logsumexp(-1) - inside, mask & anything)


def openable(said: torch.Tensor, action: torch.Tensor, success: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Binary cross entropy of the logits (T, B, 7, 7) that OpenAt succeeds, at the cells where it was tried.

    Not in the paper. Nearly all of 49 OpenAt fail, and an actor would leave them all before it knows which do not. A
    mean over the tries, and less than that where there are few: one that succeeds would outweigh all other losses.
    """
    cell = action - FIRST_OPEN
    tried = (cell >= 0) & (cell < CELLS**2)
    there = said.flatten(-2).gather(-1, torch.where(tried, cell, 0)[..., None])[..., 0]
    wrong = F.binary_cross_entropy_with_logits(there, success.to(there.dtype), reduction="none")
    return mean_where(wrong, mask & tried, min_count=FEW_TRIES)


# Object hiding.


def modality_collapse(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Contained and behind should keep a tenth each of the probability that PlaceAt has: hinged logarithms."""
    placing = _placing(logits, mask).flatten(-2).logsumexp(-1)
    short = F.relu(math.log(MODALITY_SHARE) - placing[..., 1:]).sum(-1)
    return mean_where(short, mask)


def spatial_collapse(logits: torch.Tensor, hittable: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """PlaceAt's probabilities should be like the manipulator's (logits (T, B, 3, 7, 7)), scaled to sum to 1."""
    wanted = hittable.detach().sigmoid().flatten(-3)
    wanted = wanted / wanted.sum(-1, keepdim=True).clamp(min=LEAST)
    return mean_where(-(wanted * _placing(logits, mask).flatten(-3)).sum(-1), mask)


def recall(logits: torch.Tensor, where: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy of what the agent says of an earlier step, logits (T, B, 147), and what was, `where` (T, B).

    Used twice: for the last PlaceAt it tried, and for where that landed; -1 where there is nothing to recall.
    """
    known = mask & (where >= 0)
    right = logits.log_softmax(-1).gather(-1, where.clamp(min=0)[..., None])[..., 0]
    return mean_where(-right, known)


def closing(logits: torch.Tensor, contained: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """CloseObjects should be likely in steps (T, B) after the object was placed into something, until it is closed."""
    return mean_where(-logits.log_softmax(-1)[..., CLOSE], mask & contained)


# Object manipulation.


def hindsight(relabeled: torch.Tensor, action: torch.Tensor, landed: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Imitates what was done as if the target had been where the object landed.

    `relabeled` (T, B, 219) are the logits of the same steps, told that target; `landed` (T, B) says whether the
    episode ended with the object somewhere in view, and not on its target.
    """
    right = relabeled.log_softmax(-1).gather(-1, action[..., None])[..., 0]
    return mean_where(-right, mask & landed)


def opening(logits: torch.Tensor, target: torch.Tensor, opened: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Where the target is contained in something, OpenAt should be likely until something was opened (T, B)."""
    logs = logits.log_softmax(-1)[..., OPEN_AT].logsumexp(-1)
    return mean_where(-logs, mask & (target[..., 0] == 1) & ~opened)


def attainable(hittable: torch.Tensor, target: torch.Tensor, hit: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Binary cross entropy of the logits (T, B, 3, 7, 7) at the target (T, B, 3) and whether the episode hit it.

    `known` (T, B): steps whose episode's end is known.
    """
    modality, row, column = target.unbind(-1)
    cell = (modality * CELLS + row) * CELLS + column
    said = hittable.flatten(-3).gather(-1, cell[..., None])[..., 0]
    return mean_where(F.binary_cross_entropy_with_logits(said, hit.to(said.dtype), reduction="none"), known)


# Seeking.


def imitation(logits: torch.Tensor, toward: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Cross entropy with the first action of the shortest path in the mental map, `toward` (T, B); -1 where none is."""
    right = logits.log_softmax(-1).gather(-1, toward.clamp(min=0)[..., None])[..., 0]
    return mean_where(-right, mask & (toward >= 0))


def claiming(logits: torch.Tensor, visible: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Binary cross entropy of ClaimVisible's probability and whether the object could be claimed (T, B)."""
    log_claim = logits.log_softmax(-1)[..., CLAIM]
    log_other = torch.log1p(-log_claim.exp().clamp(max=1 - 1e-6))
    return mean_where(-torch.where(visible, log_claim, log_other), mask)


def _placing(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Log-probabilities (..., 3, 7, 7) of the PlaceAt actions among themselves."""
    # Stages without PlaceAt have only minus infinity there, whose softmax has no gradient.
    found = torch.where(mask[..., None], logits[..., PLACE_AT], 0).log_softmax(-1)
    return found.unflatten(-1, (len(actions.MODALITIES), CELLS, CELLS))
