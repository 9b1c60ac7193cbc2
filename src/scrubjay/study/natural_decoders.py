"""Decoders of the natural tasks (F.2): a classifier of scenes, and a feature pyramid that pixel shuffles scale up.

Both begin with a 1 x 1 convolution to 64 channels, as in the paper, from however many channels an encoder has: a
projection to the paper's 128 in between would be linear, too, and change nothing. Features are standardized by channel
first, as in `decoders`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.sim.cells import CELLS
from scrubjay.study.decoders import ChannelNorm

WIDTH = 64
"""Channels that the first convolution leaves."""
HIDDEN = 512
"""Units of the classifier's hidden layer."""
DROPOUT = 0.5
WIDTHS = (256, 128, 64, 64)
"""Channels of the pyramid at 14, 28, 56 and 112 pixels."""


class SceneHead(nn.Module):
    """Features (N, C, 7, 7) to logits (N, classes)."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.sir_norm = ChannelNorm(channels)
        self.skip_norms = nn.ModuleList()
        self.reduce = nn.Conv2d(channels, WIDTH, 1)
        self.hidden = nn.Linear(WIDTH * CELLS**2, HIDDEN)
        self.classify = nn.Linear(HIDDEN, classes)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, sir: torch.Tensor, skips: Sequence[torch.Tensor] = ()) -> torch.Tensor:
        x = self.dropout(F.leaky_relu(self.reduce(self.sir_norm(sir))))
        x = self.dropout(F.leaky_relu(self.hidden(x.flatten(1))))
        return self.classify(x)


class _Shuffle(nn.Module):
    """A 3 x 3 convolution to four times the channels, which become pixels: twice the height and width."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, 4 * channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pixel_shuffle(self.conv(x), 2)


class PyramidDecoder(nn.Module):
    """Features (N, C, 7, 7) to predictions (N, outputs, size, size).

    `skip_channels` are those of four finer scales, finest first, or () without skips: each is projected to the
    pyramid's width at its scale and added.
    """

    def __init__(self, channels: int, outputs: int, skip_channels: Sequence[int] = (), size: int = 224) -> None:
        super().__init__()
        doublings = (size // CELLS).bit_length() - 1
        if size != CELLS << doublings or not 0 < doublings <= len(WIDTHS) + 1:
            raise ValueError(f"size: 14, 28, 56, 112 or 224, not {size}")
        self.size = size
        self.sir_norm = ChannelNorm(channels)
        self.skip_norms = nn.ModuleList(map(ChannelNorm, skip_channels))
        self.reduce = nn.Conv2d(channels, WIDTH, 1)
        widths = WIDTHS[: doublings - 1]
        self.up = nn.ModuleList(map(_Shuffle, (WIDTH, *widths), widths))
        self.lateral = nn.ModuleList(
            nn.Conv2d(skip, width, 1) for skip, width in zip(reversed(skip_channels), widths, strict=False)
        )
        self.last = _Shuffle((WIDTH, *widths)[-1], outputs)
        with torch.no_grad():
            self.last.conv.weight.mul_(0.1)  # Depth would start at tens of meters.

    def forward(self, sir: torch.Tensor, skips: Sequence[torch.Tensor] = ()) -> torch.Tensor:
        """sir (N, C, 7, 7), skips finest first."""
        x = F.leaky_relu(self.reduce(self.sir_norm(sir)))
        for place, up in enumerate(self.up):
            x = F.leaky_relu(up(x))
            if len(self.lateral):
                skip = self.skip_norms[-1 - place](skips[-1 - place])
                if skip.shape[2:] != x.shape[2:]:  # Encoders of smaller images have coarser scales.
                    skip = F.interpolate(skip, x.shape[2:], mode="bilinear", align_corners=False)
                x = x + self.lateral[place](skip)
        return self.last(x)


Decoder = SceneHead | PyramidDecoder


def fit_norms(decoder: Decoder, features: Iterable[tuple[torch.Tensor, Sequence[torch.Tensor]]]) -> None:
    """Takes the statistics of batches of features, each (sir, skips)."""
    batches = list(features)
    decoder.sir_norm.fit(sir for sir, _ in batches)
    for scale, norm in enumerate(decoder.skip_norms):
        norm.fit(skips[scale] for _, skips in batches)  # type: ignore[operator]
