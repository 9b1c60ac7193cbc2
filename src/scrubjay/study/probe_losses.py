"""The seven tasks on static images and their losses, one number for each example.

Labels are a dictionary of tensors for N examples of H x W pixels: `target`; where pixels may lack one `valid`
(N, H, W), bool; and for the two tasks that take an object out `mask` (N, H, W), bool: its pixels. Predictions are
(N, K, H, W), of the class task (N, K). All losses are positive, as the Gamma model of the statistics needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

Labels = dict[str, torch.Tensor]
OPENABILITY_WEIGHTS = (0.2, 1.0, 1.0)
"""Of pixels that are not openable, openable and closed, open (P 643)."""
CLASSES = 90
LEAST = 1e-6
"""Added to 1 - cos, so that it is positive."""


def depth_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """Mean absolute error over valid pixels, (N,); target (N, H, W) in metres, 0 where nothing is."""
    error, valid = _depth_error(predicted, labels)
    return _mean(error, valid)


def normals_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """Mean of 1 - cos over valid pixels, (N,); target (N, H, W, 3), of any length, 0 where nothing is."""
    error, valid = _normals_error(predicted, labels)
    return _mean(error, valid)


def class_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """Binary cross entropy, mean over the types, (N,); target (N, K), 0 or 1."""
    return F.binary_cross_entropy_with_logits(predicted, labels["target"].float(), reduction="none").mean(1)


def openability_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """Weighted cross entropy, sum(w ce) / sum(w) over pixels, (N,); target (N, H, W), 0 other, 1 closed, 2 open."""
    # As products: cross_entropy is not deterministic on a GPU.
    chosen = torch.stack([labels["target"] == kind for kind in range(len(OPENABILITY_WEIGHTS))], 1)
    entropy = -(predicted.log_softmax(1) * chosen).sum(1)
    weights = sum(weight * chosen[:, kind] for kind, weight in enumerate(OPENABILITY_WEIGHTS))
    assert isinstance(weights, torch.Tensor)
    return _mean(entropy, weights * labels["valid"] if "valid" in labels else weights)


def traversable_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """Binary cross entropy, mean over pixels, (N,); target (N, H, W), 0 or 1."""
    target = labels["target"].float()
    entropy = F.binary_cross_entropy_with_logits(predicted.squeeze(1), target, reduction="none")
    return _mean(entropy, labels.get("valid", torch.ones_like(target)))


def object_depth_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """`depth_loss` without the object: half of the mean in its mask, half of the mean outside, (N,)."""
    return _halves(*_depth_error(predicted, labels), labels["mask"])


def object_normals_loss(predicted: torch.Tensor, labels: Labels) -> torch.Tensor:
    """`normals_loss` without the object: half of the mean in its mask, half of the mean outside, (N,)."""
    return _halves(*_normals_error(predicted, labels), labels["mask"])


@dataclass(frozen=True)
class Task:
    """What a decoder predicts, and how its predictions are judged."""

    name: str
    outputs: int
    """Channels of the decoder's output."""
    loss: Callable[[torch.Tensor, Labels], torch.Tensor]
    dense: bool = True
    """Predicts pixels; else one vector an image."""
    masked: bool = False
    """The decoder gets the mask of the object that was taken out."""


TASKS = {
    task.name: task
    for task in (
        Task("depth", 1, depth_loss),
        Task("normals", 3, normals_loss),
        Task("class", CLASSES, class_loss, dense=False),
        Task("openability", 3, openability_loss),
        Task("traversable", 1, traversable_loss),
        Task("object_depth", 1, object_depth_loss, masked=True),
        Task("object_normals", 3, object_normals_loss, masked=True),
    )
}
"""The tasks by name, in the paper's order."""


def unit_vectors(normals: torch.Tensor) -> torch.Tensor:
    """Normals (N, 3, H, W) of any length to length 1."""
    return F.normalize(normals, dim=1, eps=1e-6)


def _depth_error(predicted: torch.Tensor, labels: Labels) -> tuple[torch.Tensor, torch.Tensor]:
    target = labels["target"].float()
    valid = target > 0
    return (predicted.squeeze(1) - target).abs(), valid & labels["valid"] if "valid" in labels else valid


def _normals_error(predicted: torch.Tensor, labels: Labels) -> tuple[torch.Tensor, torch.Tensor]:
    target = labels["target"].float().permute(0, 3, 1, 2)
    valid = target.square().sum(1) > 0
    error = 1 - (unit_vectors(predicted) * unit_vectors(target)).sum(1) + LEAST
    return error, valid & labels["valid"] if "valid" in labels else valid


def _mean(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted mean over the pixels of each example, (N,); 0 if all weights are 0."""
    weights = weights.to(values.dtype)
    return (values * weights).sum((1, 2)) / weights.sum((1, 2)).clamp(min=LEAST)


def _halves(error: torch.Tensor, valid: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (_mean(error, valid & mask) + _mean(error, valid & ~mask)) / 2
