"""Visual dynamics: what an action would change in an image, whether it would succeed, and which action was taken.

The largest part imagines the image after an action from the image before it. It follows U-Nets and spatial
transformers: 3 convolutions join SIR and action and aim a coarse flow, then each of five scales has 2 transposed
convolutions (13 in all, 10 of them transposed). The first makes the features larger and the flow finer; the flow then
moves the encoder's features of that scale (at the last, the image itself) to where they would be seen after the
action, and the second takes them in. A 1 x 1 convolution paints what no flow can bring. Flow and paint begin at zero:
untrained, it imagines that nothing changes.
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
    """What is said of N triplets (image before, action, image after)."""

    images: tuple[torch.Tensor, ...]
    """The image after, imagined from the image before and the action: five (N, 3, n, n), coarsest first, 0 to 1."""
    changed: torch.Tensor
    """Logits (N, H, W) of whether a pixel changes; from the image before and the action."""
    confidence: torch.Tensor
    """The error (N, H, W) that the largest of `images` is expected to have; from the image before and the action."""
    would_succeed: torch.Tensor
    """Logits (N,) of whether the action succeeds; from the image before and the action."""
    inverse: torch.Tensor
    """Logits (N, 219) of which action was taken; from both images."""


def image_sizes(config: AgentConfig) -> tuple[int, ...]:
    """The five sizes at which images are imagined, coarsest first: 14 to 224, or 7 to 112."""
    return tuple(config.image_size >> halvings for halvings in (4, 3, 2, 1, 0))


def scaled_images(image: torch.Tensor, config: AgentConfig) -> tuple[torch.Tensor, ...]:
    """Images (N, H, W, 3) uint8 at the five sizes, each (N, 3, n, n) float from 0 to 1: what `images` should be."""
    full = image.permute(0, 3, 1, 2).float() / 255
    return tuple(F.avg_pool2d(full, config.image_size // size) for size in image_sizes(config))


class ActionPlanes(nn.Module):
    """Actions (N,) as planes (N, action_embedding + 1, 7, 7): an embedding, tiled, and the cell an action points at."""

    cells: torch.Tensor

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(NAMES), config.action_embedding)
        cells = torch.zeros(len(NAMES), CELLS * CELLS)
        for number in range(len(NAMES)):
            # A tiled embedding alone can hardly say "here" to convolutions, which treat all cells alike.
            if OPEN_CELL[number] >= 0:
                cells[number, OPEN_CELL[number]] = 1
            if PLACE_AT[number] >= 0:
                cells[number, PLACE_AT[number] % (CELLS * CELLS)] = 1
        self.register_buffer("cells", cells.view(-1, 1, CELLS, CELLS), persistent=False)

    def forward(self, action: torch.Tensor) -> torch.Tensor:
        tiled = self.embedding(action)[:, :, None, None].expand(-1, -1, CELLS, CELLS)
        return torch.cat((tiled, self.cells[action]), dim=1)


class _Upscale(nn.Module):
    """A decoder's scale: larger features and finer flow, then the skip's features, moved along the flow, joined in."""

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
        """The scale's features, flow, and imagined image; without a skip the image takes its place."""
        size = image.shape[2:]
        x = self.upsample(x)
        x, finer = F.leaky_relu(x[:, :-2]), x[:, -2:]
        # bfloat16 cannot tell neighboring pixels apart: places are float32.
        flow = F.interpolate(flow, size=size, mode="bilinear", align_corners=False) + finer.float()
        moved = warp(image, flow)
        brought = moved if skip is None else warp(skip, flow)
        # Skips know nothing of the action; each scale is told again, or it would be lost among them.
        told = F.interpolate(self.action_conv(planes), size=size)
        x = F.leaky_relu(self.merge(torch.cat((x, brought.to(x.dtype)), dim=1)) + told)
        return x, flow, moved + self.residual(x).float()


def warp(x: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """Features (N, C, H, W) taken from where a flow (N, 2, H, W) points: x and y, half the image's size being 1."""
    rows, columns = ((2 * torch.arange(size, device=x.device) + 1) / size - 1 for size in x.shape[2:])
    here = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)
    grid = here + flow.permute(0, 2, 3, 1)
    return F.grid_sample(x.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)


class ForwardDynamics(nn.Module):
    """The image after an action, where pixels change, and how far the image is trusted, from the image before."""

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
        # Leaky, because the last scales are narrow: a channel that dies there is missed.
        x = F.leaky_relu(self.first(torch.cat((encoded.sir, planes), dim=1)))
        x = F.leaky_relu(self.second(x))
        flow = self.flow_head(x).float()
        imagined = []
        before = scaled_images(encoded.image, self.config)
        for scale, skip, image in zip(self.scales, (*reversed(encoded.skips), None), before, strict=True):
            x, flow, seen = scale(x, flow, planes, skip, image)
            imagined.append(seen)
        changed, confidence = self.pixel_head(x).float().unbind(1)
        return tuple(imagined), changed, confidence


class VisualDynamics(nn.Module):
    """All that visual dynamics replay asks of triplets: image before, action, image after."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        sir = config.sir_channels
        self.action_planes = ActionPlanes(config)
        self.forward_dynamics = ForwardDynamics(config)
        self.success_head = _over_cells(sir + config.action_embedding + 1, sir, 1)
        self.inverse_head = _over_cells(2 * sir, sir, len(NAMES))

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
            raise ValueError(f"skips: their channels are {channels}; the decoder takes {self.config.encoder_channels}")
        if action.dtype != torch.int64 or action.shape != before.sir.shape[:1]:
            found = f"{tuple(action.shape)} {action.dtype}"
            raise ValueError(f"action: one int64 for each of {len(before.sir)} images, not {found}")
        if after.sir.shape != before.sir.shape:
            raise ValueError(f"after: its SIR is {tuple(after.sir.shape)}, that before {tuple(before.sir.shape)}")


def _over_cells(channels_in: int, channels: int, outputs: int) -> nn.Sequential:
    """Planes (N, channels_in, 7, 7) to (N, outputs, 1, 1), by convolutions; the last sees where each cell is."""
    narrow = max(channels // 4, 8)
    last = nn.Conv2d(narrow, outputs, CELLS)
    net = nn.Sequential(
        *(nn.Conv2d(channels_in, channels, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(channels, narrow, 3, padding=1), nn.ReLU()),
        last,
    )
    initialize(net)
    with torch.no_grad():
        # Logits near 0: before it has seen anything, the network is sure of nothing.
        last.weight.mul_(0.1)
    return net
