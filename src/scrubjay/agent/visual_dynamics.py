"""Visual dynamics: forward model (the image after an action), action success, and inverse model (the action taken).

The forward model follows U-Nets and spatial transformers: 3 convolutions fuse SIR and action and predict a coarse flow,
then each of five scales has 2 transposed convolutions (13 layers, 10 of them transposed). The first upsamples features
and refines the flow; the flow warps the encoder's skip features of that scale (at the last, the image itself), and the
second merges them in. A 1 x 1 convolution adds a residual for what no flow can bring into view. Flow and residual start
at zero: untrained, the model predicts no change.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.encoder import Encoded, initialize
from scrubjay.game.actions import NAMES, OPEN_CELL, PLACE_AT
from scrubjay.sim.cells import CELLS


@dataclass(frozen=True)
class DynamicsOutput:
    """Predictions for N triplets (image before, action, image after)."""

    images: tuple[torch.Tensor, ...]
    """The image after, predicted at five sizes (N, 3, n, n), coarsest first, 0 to 1; from image before and action."""
    changed: torch.Tensor
    """(N, H, W): logits that a pixel changes; from image before and action."""
    confidence: torch.Tensor
    """(N, H, W): the predicted error of the largest image; from image before and action."""
    would_succeed: torch.Tensor
    """(N,): logits that the action succeeds; from image before and action."""
    inverse: torch.Tensor
    """(N, 219): logits of the action taken; from both images."""


def image_sizes(config: AgentConfig) -> tuple[int, ...]:
    """The five sizes of predicted images, coarsest first: 14 to 224, or 7 to 112."""
    return tuple(config.image_size >> halvings for halvings in (4, 3, 2, 1, 0))


def scaled_images(image: torch.Tensor, config: AgentConfig) -> tuple[torch.Tensor, ...]:
    """Images (N, H, W, 3) uint8 average-pooled to the five sizes, (N, 3, n, n) float, 0 to 1: targets for `images`."""
    full = image.permute(0, 3, 1, 2).float() / 255
    return tuple(F.avg_pool2d(full, config.image_size // size) for size in image_sizes(config))


class ActionPlanes(nn.Module):
    """Actions (N,) as planes (N, action_embedding + 1, 7, 7): a tiled embedding, and a one-hot of the action's cell."""

    cells: torch.Tensor

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(NAMES), config.action_embedding)
        cells = torch.zeros(len(NAMES), CELLS * CELLS)
        for number in range(len(NAMES)):
            # A tiled embedding alone cannot mark a cell for convolutions, which treat all cells alike.
            if OPEN_CELL[number] >= 0:
                cells[number, OPEN_CELL[number]] = 1
            if PLACE_AT[number] >= 0:
                cells[number, PLACE_AT[number] % (CELLS * CELLS)] = 1
        self.register_buffer("cells", cells.view(-1, 1, CELLS, CELLS), persistent=False)

    def forward(self, action: torch.Tensor) -> torch.Tensor:
        tiled = self.embedding(action)[:, :, None, None].expand(-1, -1, CELLS, CELLS)
        return torch.cat((tiled, self.cells[action]), dim=1)


class _Upscale(nn.Module):
    """One decoder scale: upsamples features, refines the flow, and merges in the warped skip features."""

    def __init__(self, before: int, skip: int, planes: int, channels: int, stride: int) -> None:
        super().__init__()
        self.upsample = nn.ConvTranspose2d(before, channels + 2, stride + 2, stride, padding=1)
        self.merge = nn.ConvTranspose2d(channels + skip, channels, 3, padding=1)
        self.action_conv = nn.Conv2d(planes, channels, 1)
        self.residual = nn.Conv2d(channels, 3, 1)
        initialize(self)
        nn.init.zeros_(self.residual.weight)
        with torch.no_grad():
            self.upsample.weight[:, channels:] = 0

    def forward(
        self, x: torch.Tensor, flow: torch.Tensor, planes: torch.Tensor, skip: torch.Tensor | None, image: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The scale's features, flow and predicted image; without a skip, the warped image is merged instead."""
        size = image.shape[2:]
        x = self.upsample(x)
        x, finer = F.leaky_relu(x[:, :-2]), x[:, -2:]
        # float32: bfloat16 cannot tell neighboring pixels apart.
        flow = F.interpolate(flow, size=size, mode="bilinear", align_corners=False) + finer.float()
        warped = warp(image, flow)
        warped_skip = warped if skip is None else warp(skip, flow)
        # Skips carry no action, so each scale is conditioned on it again.
        condition = F.interpolate(self.action_conv(planes), size=size)
        x = F.leaky_relu(self.merge(torch.cat((x, warped_skip.to(x.dtype)), dim=1)) + condition)
        return x, flow, warped + self.residual(x).float()


def warp(x: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """Samples features (N, C, H, W) bilinearly along a flow (N, 2, H, W) of x and y; half the image's size is 1."""
    rows, columns = ((2 * torch.arange(size, device=x.device) + 1) / size - 1 for size in x.shape[2:])
    here = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)
    grid = here + flow.permute(0, 2, 3, 1)
    return F.grid_sample(x.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)


class ForwardDynamics(nn.Module):
    """Predicts the image after an action, the pixels that change, and the prediction's error."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        planes, deepest = config.action_embedding + 1, config.decoder_channels[0]
        self.first = nn.Conv2d(config.sir_channels + planes, deepest, 3, padding=1)
        self.second = nn.Conv2d(deepest, deepest, 3, padding=1)
        self.flow_head = nn.Conv2d(deepest, 2, 3, padding=1)
        initialize(self)
        nn.init.zeros_(self.flow_head.weight)
        self.scales = nn.ModuleList()
        strides = (config.image_size // (CELLS * 16), 2, 2, 2, 2)
        skips = (*reversed(config.encoder_channels), 3)
        before = deepest
        for channels, skip, stride in zip(config.decoder_channels, skips, strides, strict=True):
            self.scales.append(_Upscale(before, skip, planes, channels, stride))
            before = channels
        self.pixel_head = nn.Conv2d(before, 2, 1)
        initialize(self.pixel_head)
        with torch.no_grad():
            self.pixel_head.weight.mul_(0.1)

    def forward(
        self, encoded: Encoded, planes: torch.Tensor
    ) -> tuple[tuple[torch.Tensor, ...], torch.Tensor, torch.Tensor]:
        """`images`, `changed` and `confidence` of DynamicsOutput."""
        planes = planes.to(encoded.sir.dtype)
        # Leaky: the last scales are narrow, and a dead channel would be missed there.
        x = F.leaky_relu(self.first(torch.cat((encoded.sir, planes), dim=1)))
        x = F.leaky_relu(self.second(x))
        flow = self.flow_head(x).float()
        images = []
        before = scaled_images(encoded.image, self.config)
        for scale, skip, image in zip(self.scales, (*reversed(encoded.skips), None), before, strict=True):
            x, flow, predicted = scale(x, flow, planes, skip, image)
            images.append(predicted)
        changed, confidence = self.pixel_head(x).float().unbind(1)
        return tuple(images), changed, confidence


class VisualDynamics(nn.Module):
    """The predictions that visual dynamics replay trains, from triplets (image before, action, image after)."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        sir = config.sir_channels
        self.action_planes = ActionPlanes(config)
        self.forward_dynamics = ForwardDynamics(config)
        self.success_head = _conv_head(sir + config.action_embedding + 1, sir, 1)
        self.inverse_head = _conv_head(2 * sir, sir, len(NAMES))

    def forward(self, before: Encoded, action: torch.Tensor, after: Encoded) -> DynamicsOutput:
        """Actions (N,) int64 between two sets of N encoded images."""
        self._check(before, action, after)
        planes = self.action_planes(action)
        images, changed, confidence = self.forward_dynamics(before, planes)
        would_succeed = self.success_head(torch.cat((before.sir, planes.to(before.sir.dtype)), dim=1))
        inverse = self.inverse_head(torch.cat((before.sir, after.sir), dim=1))
        return DynamicsOutput(images, changed, confidence, would_succeed.flatten().float(), inverse.flatten(1).float())

    def _check(self, before: Encoded, action: torch.Tensor, after: Encoded) -> None:
        channels = tuple(skip.shape[1] for skip in before.skips)
        if channels != self.config.encoder_channels:
            raise ValueError(f"skips: expected channels {self.config.encoder_channels}, got {channels}")
        if action.dtype != torch.int64 or action.shape != before.sir.shape[:1]:
            raise ValueError(
                f"action: expected ({len(before.sir)},) torch.int64, got {tuple(action.shape)} {action.dtype}"
            )
        if after.sir.shape != before.sir.shape:
            raise ValueError(f"after: expected SIRs {tuple(before.sir.shape)}, got {tuple(after.sir.shape)}")


def _conv_head(channels_in: int, channels: int, outputs: int) -> nn.Sequential:
    """Convolutions from (N, channels_in, 7, 7) to (N, outputs, 1, 1); the last has a weight per cell."""
    narrow = max(channels // 4, 8)
    last = nn.Conv2d(narrow, outputs, CELLS)
    net = nn.Sequential(
        *(nn.Conv2d(channels_in, channels, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(channels, narrow, 3, padding=1), nn.ReLU()),
        last,
    )
    initialize(net)
    with torch.no_grad():
        # Initial logits near 0.
        last.weight.mul_(0.1)
    return net
