"""Images to static image representations (SIRs): the paper's 13-layer U-Net encoder, and the interface for others.

The encoder is the contracting path of a U-Net with five scales. Each begins with a convolution of stride 2; all but the
first add a residual pair of convolutions: 5 + 4 x 2 = 13 layers. The outputs of all scales but the last are skip
connections for the visual dynamics decoder. Images of 112 pixels reach 7 x 7 one halving earlier, so their last scale
has stride 1. Activations are not normalized: at fine scales that would cost more memory traffic than the convolutions.
Filters are centered instead (`CenteredConv2d`), which is free, unless `centered_filters` is off.

                     paper             small
    multiply-adds    343 million       18 million per image
    activations      1.57 MB           0.19 MB per image: convolution outputs in bfloat16
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.fuse import compute_dtype, fuse_always
from scrubjay.agent.normalization import CenteredConv2d
from scrubjay.sim.cells import CELLS

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Encoded:
    """An encoder's output for N images."""

    image: torch.Tensor
    """The input, (N, H, W, 3) uint8."""
    sir: torch.Tensor
    """The static image representation, (N, C, 7, 7)."""
    pooled: torch.Tensor
    """The SIR averaged over its cells, (N, C); it is written into the metric map."""
    skips: tuple[torch.Tensor, ...]
    """Features of the four finer scales, finest first, for decoders; () if the encoder has none."""


class ImageEncoder(Protocol):
    """The interface of encoders: rendered images to SIRs."""

    config: AgentConfig
    has_skips: bool
    """Whether it gives the four finer scales, which visual dynamics replay needs."""

    def __call__(self, image: torch.Tensor) -> Encoded:
        """Images (N, H, W, 3) uint8 to an SIR (N, sir_channels, 7, 7)."""
        ...


def check_image(image: torch.Tensor, size: int) -> None:
    """Raises ValueError unless images are (N, size, size, 3) uint8."""
    if image.dtype != torch.uint8:
        raise ValueError(f"image: expected torch.uint8, got {image.dtype}")
    if image.ndim != 4 or tuple(image.shape[1:]) != (size, size, 3):
        raise ValueError(f"image: expected shape (N, {size}, {size}, 3), got {tuple(image.shape)}")


class NormalizeImage(nn.Module):
    """Normalizes images (N, H, W, 3) uint8 by ImageNet's mean and standard deviation, to (N, 3, H, W).

    With `folded`, to (N, 12, H / 2, W / 2): space-to-depth of 2 x 2 blocks, pixel by pixel.
    """

    scale: torch.Tensor
    shift: torch.Tensor

    def __init__(self, folded: bool = False) -> None:
        super().__init__()
        self.folded = folded
        mean, std = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_STD)
        pixels = 4 if folded else 1
        self.register_buffer("scale", (1 / (255 * std)).repeat(pixels), persistent=False)
        self.register_buffer("shift", (-mean / std).repeat(pixels), persistent=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        if self.folded:
            image = image.unflatten(2, (-1, 2)).unflatten(1, (-1, 2)).transpose(2, 3).flatten(3)
        # Cast to the convolutions' dtype at once, so that the largest tensor is never written in float32; integers up
        # to 255 are exact in bfloat16 too. The permuted view is in channels_last memory format.
        dtype = compute_dtype(self.scale)
        return torch.addcmul(self.shift.to(dtype), image.to(dtype), self.scale.to(dtype)).permute(0, 3, 1, 2)


class _Scale(nn.Module):
    """One scale: a strided convolution, then a residual pair."""

    def __init__(self, channels_in: int, channels: int, stride: int = 2, centered: bool = True) -> None:
        super().__init__()
        convolution = CenteredConv2d if centered else nn.Conv2d
        self.down = convolution(channels_in, channels, 3, stride, padding=1)
        self.first = convolution(channels, channels, 3, padding=1)
        self.second = convolution(channels, channels, 3, padding=1)
        initialize(self)
        with torch.no_grad():
            # Half the residual branch at initialization, so that four scales preserve the variance.
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
        # Three input channels leave tensor cores idle: the stem, 6 x 6 with stride 2, is computed as 3 x 3 on 2 x 2
        # blocks of pixels.
        self.normalize = NormalizeImage(folded=True)
        self.stem = nn.Conv2d(4 * 3, widths[0], 3, padding=1)
        self.scales = nn.ModuleList(
            _Scale(before, after, stride, config.centered_filters)
            for before, after, stride in zip(widths, widths[1:], strides, strict=False)
        )
        initialize(self.stem)

    def forward(self, image: torch.Tensor) -> Encoded:
        check_image(image, self.config.image_size)
        *skips, sir, pooled = self._features(image)
        return Encoded(image, sir, pooled, tuple(skips))

    @fuse_always
    def _features(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The features of all scales, finest first, and the last ones' mean over cells."""
        # Tensor cores take multiples of 8 channels: zeros make the 12 to 16.
        missing = 4 if image.is_cuda else 0
        folded = F.pad(self.normalize(image).permute(0, 2, 3, 1), (0, missing)).permute(0, 3, 1, 2)
        weight = F.pad(self.stem.weight, (0, 0, 0, 0, 0, missing))
        x = F.relu(F.conv2d(folded, weight, self.stem.bias, padding=1))
        features = [x]
        for scale in self.scales:
            x = scale(x)
            features.append(x)
        return *features, x.mean((2, 3))


def initialize(module: nn.Module) -> None:
    """He initialization of a module's convolutions, biases 0, weights in channels_last memory format."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.ConvTranspose2d):
            # An output of a transposed convolution sees only one in stride x stride of the kernel's taps.
            skipped = part.stride[0] * part.stride[1] if isinstance(part, nn.ConvTranspose2d) else 1
            fan_in = part.in_channels * part.kernel_size[0] * part.kernel_size[1] / skipped
            nn.init.normal_(part.weight, std=(2 / fan_in) ** 0.5)
            part.weight.data = part.weight.data.contiguous(memory_format=torch.channels_last)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
