"""The five losses of visual dynamics replay, on triplets (image before, action, image after)."""

from __future__ import annotations

import functools

import torch
from torch.nn import functional as F

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.visual_dynamics import DynamicsOutput, scaled_images
from scrubjay.game.actions import NAMES
from scrubjay.training.actor_critic import Losses, Metrics, mean_where
from scrubjay.training.replay import Triplets

UNPREDICTABLE = ("Rotate", "OpenAt", "CloseObjects", "PlaceAt", "ReadyForSeeker", "ClaimVisible")
"""Prefixes of actions whose next image cannot be predicted, or does not change: left out of two losses."""
PREDICTABLE = torch.tensor([name.startswith("RotateHand") or not name.startswith(UNPREDICTABLE) for name in NAMES])
"""(219,) bool: actions whose next image is predicted: turns of the hand, not of the head."""
MIN_CHANGE = 1 / 255
"""A pixel has changed if a color channel did by more than this."""
WEIGHTS = {"inverse": 1.0, "forward": 1.0, "pixel_difference": 1.0, "pixel_quality": 1.0, "action_success": 1.0}
"""The weight of each loss in the total."""
CHANGED_WEIGHT = 4.0
"""Weight of changed pixels in the error of the predicted image."""


def replay_losses(agent: Agent, batch: Triplets) -> tuple[Losses, Metrics]:
    """Plain losses of a batch of triplets, one for each of `WEIGHTS`; no diagnostics."""
    before, after = agent.encoder(batch.before), agent.encoder(batch.after)
    output = agent.dynamics(before, batch.action, after)
    return dynamics_losses(output, batch.before, batch.action, batch.after, batch.success, agent.config), {}


def dynamics_losses(
    output: DynamicsOutput,
    before: torch.Tensor,
    action: torch.Tensor,
    after: torch.Tensor,
    success: torch.Tensor,
    config: AgentConfig,
) -> Losses:
    """Plain losses of N triplets: images (N, H, W, 3) uint8, actions (N,), successes (N,) bool."""
    predictable = _predictable(action.device)[action]
    changed = ((after.int() - before.int()).abs().amax(-1) > 255 * MIN_CHANGE).float()
    forward = []
    for imagined, real in zip(output.images, scaled_images(after, config), strict=True):
        weight = 1 + (CHANGED_WEIGHT - 1) * F.adaptive_avg_pool2d(changed[:, None], real.shape[-1])[:, 0]
        error = (imagined.float() - real).abs().mean(1)
        forward.append(mean_where((error * weight).mean((1, 2)) / weight.mean((1, 2)), predictable))
    quality = (output.confidence.float() - error.detach()).square().mean((1, 2))
    pixels = F.binary_cross_entropy_with_logits(output.changed.float(), changed)
    return {
        "inverse": F.cross_entropy(output.inverse.float(), action),
        "forward": torch.stack(forward).sum(),
        "pixel_difference": pixels,
        "pixel_quality": mean_where(quality, predictable),
        "action_success": F.binary_cross_entropy_with_logits(output.would_succeed.float(), success.float()),
    }


@functools.cache
def _predictable(device: torch.device) -> torch.Tensor:
    """PREDICTABLE on a device: a copy from the host would not fit into a CUDA graph."""
    return PREDICTABLE.to(device)
