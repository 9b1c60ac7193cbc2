"""Decoders that read tasks out of frozen features, shaped like the visual dynamics decoder.

`DenseDecoder` brings 7 x 7 features to pixels: a convolution, then five doublings, each a transposed convolution, what
is known at that scale (skips, mask) and a convolution. `ClassHead` is the maximum over cells and a linear layer.
Features are standardized by channel first, with the training examples' mean and deviation: linear layers can undo
that, so it adds nothing that a decoder could not express, and one learning rate serves encoders whose features differ
a thousandfold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.encoder import initialize
from scrubjay.sim.cells import CELLS

WIDTH = 128
"""Channels at 7 x 7: those of the paper's SIR."""
WIDTHS = (128, 64, 32, 32, 16)
"""Channels after each doubling, at 14, 28, 56, 112 and 224 pixels."""
GROUPS = 8
LEAST_STD = 0.1
"""Channels deviate by at least this share of the mean deviation, so that rarely active ones are not blown up."""


class ChannelNorm(nn.Module):
    """Standardizes channels of (N, C, h, w) by fixed statistics; the identity until `fit`."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels, 1, 1))
        self.register_buffer("std", torch.ones(channels, 1, 1))

    def fit(self, batches: Iterable[torch.Tensor]) -> None:
        """Takes the mean and the deviation of batches (n, C, h, w), over examples and cells."""
        count, total, squares = 0, torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for batch in batches:
            values = batch.to(torch.float64)
            count += values.numel() // values.shape[1]
            total = total.to(values.device) + values.sum((0, 2, 3))
            squares = squares.to(values.device) + values.square().sum((0, 2, 3))
        mean = total / count
        std = (squares / count - mean.square()).clamp(min=0).sqrt()
        std = std.clamp(min=(LEAST_STD * std.mean()).clamp(min=1e-6))
        self.mean.copy_(mean[:, None, None])
        self.std.copy_(std[:, None, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.float() - self.mean) / self.std


class _Block(nn.Module):
    """A 3 x 3 convolution, group norm and ReLU."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, 3, padding=1)
        # At the paper's learning rate training may diverge without a norm; batch norm would mix examples.
        self.norm = nn.GroupNorm(GROUPS, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


class DenseDecoder(nn.Module):
    """Features (N, C, 7, 7) to predictions (N, outputs, size, size).

    `skip_channels` are those of four finer scales, finest first, or () without skips. `masked` decoders get a mask,
    whose share in each cell is a further channel at every scale.
    """

    def __init__(
        self, channels: int, outputs: int, skip_channels: Sequence[int] = (), masked: bool = False, size: int = 224
    ) -> None:
        super().__init__()
        doublings = (size // CELLS).bit_length() - 1
        if size != CELLS << doublings or not 0 < doublings <= len(WIDTHS):
            raise ValueError(f"size: 14, 28, 56, 112 or 224, not {size}")
        self.size, self.masked = size, masked
        self.sir_norm = ChannelNorm(channels)
        self.skip_norms = nn.ModuleList(map(ChannelNorm, skip_channels))
        # Without skips every encoder has the same rule, one learned projection; with them ours is read as it is.
        plain = bool(skip_channels) and channels == WIDTH
        self.project = nn.Identity() if plain else nn.Conv2d(channels, WIDTH, 1)
        self.first = _Block(WIDTH + masked, WIDTH)
        self.upsample, self.merge = nn.ModuleList(), nn.ModuleList()
        before = WIDTH
        for place, width in enumerate(WIDTHS[:doublings]):
            skip = skip_channels[-1 - place] if place < len(skip_channels) else 0
            self.upsample.append(nn.ConvTranspose2d(before, width, 4, stride=2, padding=1))
            self.merge.append(_Block(width + skip + masked, width))
            before = width
        self.head = nn.Conv2d(before, outputs, 1)
        initialize(self)
        with torch.no_grad():
            self.head.weight.mul_(0.1)

    def fit(self, batches: Iterable[torch.Tensor]) -> None:
        """Takes the statistics of the training examples' features (n, C, 7, 7)."""
        self.sir_norm.fit(batches)

    def forward(
        self, sir: torch.Tensor, skips: Sequence[torch.Tensor] = (), mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """sir (N, C, 7, 7), skips finest first, mask (N, size, size), bool."""
        x = self.first(self._with_mask(self.project(self.sir_norm(sir)), mask))
        for place, (upsample, merge) in enumerate(zip(self.upsample, self.merge, strict=True)):
            x = F.relu(upsample(x))
            if place < len(skips):
                skip = self.skip_norms[-1 - place](skips[-1 - place])
                if skip.shape[2:] != x.shape[2:]:  # Encoders of smaller images have coarser scales.
                    skip = F.interpolate(skip, x.shape[2:], mode="bilinear", align_corners=False)
                x = torch.cat([x, skip], 1)
            x = merge(self._with_mask(x, mask))
        return self.head(x)

    def _with_mask(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if not self.masked:
            return x
        if mask is None:
            raise ValueError("mask: missing")
        share = mask.to(x.dtype)[:, None]
        if share.shape[2:] != x.shape[2:]:
            share = F.avg_pool2d(share, share.shape[2] // x.shape[2])
        return torch.cat([x, share], 1)


class ClassHead(nn.Module):
    """Features (N, C, 7, 7) to logits (N, outputs): the maximum over cells, then linear; other widths are projected.

    At the paper's learning rate a step of Adam moves all weights by 0.01, which on 128 features of size 1 changes a
    logit by 1. So inputs of linear layers are divided by the root of their number, and training starts at the labels'
    frequencies: both only change where training starts and how fast it goes.
    """

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.sir_norm = ChannelNorm(channels)
        """Of the maxima, or of all cells before a projection."""
        self.skip_norms = nn.ModuleList()
        self.project = None if channels == WIDTH else nn.Conv2d(channels, WIDTH, 1)
        self.linear = nn.Linear(WIDTH, outputs)
        nn.init.zeros_(self.linear.weight)
        if self.project is not None:
            nn.init.normal_(self.project.weight)

    def fit(self, batches: Iterable[torch.Tensor]) -> None:
        """Takes the statistics of the training examples' features (n, C, 7, 7)."""
        self.sir_norm.fit(batch if self.project is not None else batch.amax((2, 3), keepdim=True) for batch in batches)

    @torch.no_grad()
    def start_at(self, target: torch.Tensor) -> None:
        """Makes the initial prediction the frequencies of labels (n, outputs), 0 or 1."""
        frequency = (target.sum(0) + 0.5) / (len(target) + 1)
        self.linear.bias.copy_(frequency.logit())

    def forward(
        self, sir: torch.Tensor, skips: Sequence[torch.Tensor] = (), mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.project is None:
            maxima = self.sir_norm(sir.amax((2, 3), keepdim=True)).flatten(1)
        else:
            maxima = self.project(self.sir_norm(sir) / sir.shape[1] ** 0.5).amax((2, 3))
        return self.linear(maxima / WIDTH**0.5)
