"""Images to static image representations (SIRs): the paper's 13-layer U-Net style encoder, or any other in its place.

The encoder is the contracting half of a U-Net: five scales, each begun by a convolution of stride 2, all but the first
followed by a pair of convolutions with a residual connection: 5 + 4 x 2 = 13. What each scale but the last ends with is
kept for the visual dynamics decoders. Images of 112 pixels reach 7 x 7 one halving earlier, so their last scale has
stride 1. Activations are not normalized: at fine scales that would cost more memory traffic than the convolutions. The
filters are, which costs nothing: they have mean 0.

                     paper             small
    multiply-adds    343 million       18 million an image
    activations      1.57 MB           0.19 MB an image, the convolutions' outputs in bfloat16
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.normalization import CenteredConv2d
from scrubjay.sim.cells import CELLS

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_DEVIATION = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Encoded:
    """What an encoder makes of N images."""

    image: torch.Tensor
    """The images themselves, (N, H, W, 3) uint8."""
    sir: torch.Tensor
    """The static image representation, (N, C, 7, 7)."""
    pooled: torch.Tensor
    """The SIR's mean over the cells, (N, C); it goes into the map."""
    skips: tuple[torch.Tensor, ...]
    """Features of the four finer scales for decoders, finest first; () where an encoder has none."""


class ImageEncoder(Protocol):
    """Anything that turns rendered images into SIRs."""

    config: AgentConfig
    has_skips: bool
    """Whether it gives the four finer scales, which visual dynamics replay needs."""

    def __call__(self, image: torch.Tensor) -> Encoded:
        """Images (N, H, W, 3) uint8 to an SIR (N, sir_channels, 7, 7)."""
        ...


def check_image(image: torch.Tensor, size: int) -> None:
    """Raises ValueError unless an image is (N, size, size, 3) uint8."""
    if image.dtype != torch.uint8:
        raise ValueError(f"image: its type is {image.dtype}; images are torch.uint8, as rendered")
    if image.ndim != 4 or tuple(image.shape[1:]) != (size, size, 3):
        raise ValueError(f"image: its shape is {tuple(image.shape)}; the encoder takes (N, {size}, {size}, 3)")


class NormalizeImage(nn.Module):
    """Rendered images (N, H, W, 3) uint8 to (N, 3, H, W) with ImageNet's mean 0 and deviation 1.

    With `folded`, (N, 12, H / 2, W / 2): the four pixels of each square of two become channels, pixel after pixel.
    """

    scale: torch.Tensor
    shift: torch.Tensor

    def __init__(self, folded: bool = False) -> None:
        super().__init__()
        self.folded = folded
        mean, deviation = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_DEVIATION)
        pixels = 4 if folded else 1
        self.register_buffer("scale", (1 / (255 * deviation)).repeat(pixels), persistent=False)
        self.register_buffer("shift", (-mean / deviation).repeat(pixels), persistent=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        if self.folded:
            image = image.unflatten(2, (-1, 2)).unflatten(1, (-1, 2)).transpose(2, 3).flatten(3)
        # Going to the type of the convolutions at once keeps the largest tensor of all from being written in float32
        # first; whole numbers to 255 are exact in both. The permuted view is what PyTorch calls channels_last.
        kind = image.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.scale.dtype
        return torch.addcmul(self.shift.to(dtype), image.to(dtype), self.scale.to(dtype)).permute(0, 3, 1, 2)


class _Scale(nn.Module):
    """One scale: a convolution that halves the image (or, with stride 1, does not), and a residual pair."""

    def __init__(self, channels_in: int, channels: int, stride: int = 2) -> None:
        super().__init__()
        self.down = CenteredConv2d(channels_in, channels, 3, stride, padding=1)
        self.first = CenteredConv2d(channels, channels, 3, padding=1)
        self.second = CenteredConv2d(channels, channels, 3, padding=1)
        initialize(self)
        with torch.no_grad():
            # A residual pair begins as half of what it could be, so that four of them keep the signal's size.
            self.second.weight.mul_(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.down(x))
        return F.relu(x + self.second(F.relu(self.first(x))))


class Encoder(nn.Module):
    """The paper's encoder: images (N, H, W, 3) uint8 to SIRs (N, sir_channels, 7, 7)."""

    has_skips = True

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        widths = (*config.encoder_channels, config.sir_channels)
        strides = (2, 2, 2, config.image_size // (CELLS * 16))
        # Three channels keep a GPU's units for products of matrices idle: the first convolution, 6 x 6 with stride 2,
        # is one of 3 x 3 on squares of four pixels.
        self.normalize = NormalizeImage(folded=True)
        self.stem = nn.Conv2d(4 * 3, widths[0], 3, padding=1)
        self.scales = nn.ModuleList(
            _Scale(before, after, stride) for before, after, stride in zip(widths, widths[1:], strides, strict=False)
        )
        initialize(self.stem)

    def forward(self, image: torch.Tensor) -> Encoded:
        check_image(image, self.config.image_size)
        x = F.relu(self.stem(self.normalize(image)))
        found = [x]
        for scale in self.scales:
            x = scale(x)
            found.append(x)
        return Encoded(image, sir=x, pooled=x.mean((2, 3)), skips=tuple(found[:-1]))


def initialize(module: nn.Module) -> None:
    """Draws the weights of a module's convolutions for ReLUs (He's way), biases 0, and lays them out channels last."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.ConvTranspose2d):
            # Of a transposed convolution's kernel, an output sees only one in stride x stride.
            seen = part.stride[0] * part.stride[1] if isinstance(part, nn.ConvTranspose2d) else 1
            inputs = part.in_channels * part.kernel_size[0] * part.kernel_size[1] / seen
            nn.init.normal_(part.weight, std=(2 / inputs) ** 0.5)
            part.weight.data = part.weight.data.contiguous(memory_format=torch.channels_last)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
