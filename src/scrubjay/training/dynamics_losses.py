"""The five losses of visual dynamics replay, on triplets (image before, action, image after)."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.visual_dynamics import DynamicsOutput, scaled_images
from scrubjay.game.actions import NAMES
from scrubjay.training.actor_critic import Losses, mean_where

UNFORESEEABLE = ("Rotate", "OpenAt", "CloseObjects", "PlaceAt", "ReadyForSeeker", "ClaimVisible")
"""Beginnings of actions whose pictures no one can foretell, or that change none: left out of two losses."""
FORESEEABLE = torch.tensor([name.startswith("RotateHand") or not name.startswith(UNFORESEEABLE) for name in NAMES])
"""(219,) bool: whose next image is predicted. Turning the hand is, turning the head is not."""
DIFFERENT = 1 / 255
"""A pixel is different if a color changed by more than this share."""
WEIGHTS = {"inverse": 1.0, "forward": 1.0, "pixel_difference": 1.0, "pixel_quality": 1.0, "action_success": 1.0}
"""The weight of each loss in the total."""
CHANGED_WEIGHT = 4.0
"""How much more pixels that changed count in the mean error of the predicted image."""


def dynamics_losses(
    said: DynamicsOutput,
    before: torch.Tensor,
    action: torch.Tensor,
    after: torch.Tensor,
    success: torch.Tensor,
    config: AgentConfig,
) -> Losses:
    """All five for N triplets: images (N, H, W, 3) uint8, actions (N,), whether they succeeded (N,) bool."""
    foreseeable = FORESEEABLE.to(action.device)[action]
    changed = ((after.int() - before.int()).abs().amax(-1) > 255 * DIFFERENT).float()
    forward = []
    for imagined, real in zip(said.images, scaled_images(after, config), strict=True):
        weight = 1 + (CHANGED_WEIGHT - 1) * F.adaptive_avg_pool2d(changed[:, None], real.shape[-1])[:, 0]
        error = (imagined.float() - real).abs().mean(1)
        forward.append(mean_where((error * weight).mean((1, 2)) / weight.mean((1, 2)), foreseeable))
    quality = (said.confidence.float() - error.detach()).square().mean((1, 2))
    pixels = F.binary_cross_entropy_with_logits(said.changed.float(), changed)
    return {
        "inverse": F.cross_entropy(said.inverse.float(), action),
        "forward": torch.stack(forward).sum(),
        "pixel_difference": pixels,
        "pixel_quality": mean_where(quality, foreseeable),
        "action_success": F.binary_cross_entropy_with_logits(said.would_succeed.float(), success.float()),
    }
