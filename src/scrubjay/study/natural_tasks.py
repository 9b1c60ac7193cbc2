"""The three natural tasks: losses to train with, and the scores of test images that are reported.

Targets are those of `natural_data.Labelled`. A score is one number for each image; a task's metric is their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

DEPTH_UNIT = 10.0
"""Meters of a decoder's 1: depths are trained as meters / 10."""
WALKABLE_SHARE = 0.107
"""Of the training pixels, which weights undo."""
WALKABLE_WEIGHTS = (1 / (1 - WALKABLE_SHARE), 2 / WALKABLE_SHARE)
"""Of other pixels and of walkable ones, which count twice."""
LEAST = 1e-6


def scenes_loss(predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy, mean over images, of logits (N, K) and classes (N,)."""
    # As products: cross_entropy is not deterministic on a GPU.
    return -(predicted.log_softmax(1) * F.one_hot(target, predicted.shape[1])).sum(1).mean()


def depth_loss(predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Huber loss of (N, 1, H, W) in DEPTH_UNIT and meters (N, H, W), mean over pixels whose depth is known."""
    valid = (target > 0).float()
    error = F.smooth_l1_loss(predicted.squeeze(1), target / DEPTH_UNIT, reduction="none")
    return (error * valid).sum() / valid.sum().clamp(min=1)


def walkable_loss(predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Weighted cross entropy of logits (N, 2, H, W) and walkable (N, H, W), bool."""
    logarithms, walkable = predicted.log_softmax(1), target.float()
    weights = WALKABLE_WEIGHTS[0] * (1 - walkable) + WALKABLE_WEIGHTS[1] * walkable
    entropy = -(logarithms[:, 1] * walkable + logarithms[:, 0] * (1 - walkable))
    return (weights * entropy).sum() / weights.sum()


def scenes_scores(predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """1 where the most probable class is right, else 0, (N,)."""
    return (predicted.argmax(1) == target).float()


def depth_scores(predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean of |predicted - true| / true over pixels whose depth is known, (N,)."""
    valid = target > 0
    error = (predicted.squeeze(1) * DEPTH_UNIT - target).abs() / target.clamp(min=LEAST)
    return torch.where(valid, error, 0).sum((1, 2)) / valid.sum((1, 2)).clamp(min=1)


def walkable_scores(predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Intersection over union of walkable pixels, (N,); NaN for images that have none, neither true nor predicted."""
    walkable = predicted[:, 1] > predicted[:, 0]
    return (walkable & target).sum((1, 2)) / (walkable | target).sum((1, 2)).float()


@dataclass(frozen=True)
class NaturalTask:
    """What a decoder predicts, and how it is judged."""

    name: str
    outputs: int
    """Channels of the decoder's output; 0 for as many as there are classes."""
    metric: str
    higher: bool
    """Whether a higher score is better."""
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """Of a batch."""
    scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """Of each image."""

    @property
    def dense(self) -> bool:
        """Whether pixels are predicted."""
        return self.outputs > 0


TASKS = {
    task.name: task
    for task in (
        NaturalTask("scenes", 0, "top-1 accuracy", True, scenes_loss, scenes_scores),
        NaturalTask("depth", 1, "absolute relative error", False, depth_loss, depth_scores),
        NaturalTask("walkable", 2, "IoU of walkable surface", True, walkable_loss, walkable_scores),
    )
}
"""The tasks by name, in the paper's order."""
