"""Random changes of training pictures, on the device: crops and flips for scenes, colors for dense tasks.

Images are (N, H, W, 3) uint8. Random numbers come from a generator on the CPU: they are the same on every device.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

SCALE = (0.08, 1.0)
"""Share of a picture's area that a crop has."""
RATIO = (3 / 4, 4 / 3)
"""Width of a crop relative to its height."""
JITTER = (0.4, 0.4, 0.4, 0.2)
"""Most change of brightness, contrast and saturation, and of hue in turns of the color wheel."""
GRAY = 0.2
"""Share of pictures that become gray."""
LUMA = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in gray."""


def crop_randomly(images: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    """Random crops at size x size, every second one mirrored."""
    count = len(images)
    area = _uniform(count, *SCALE, generator=generator)
    ratio = _uniform(count, *(torch.tensor(RATIO).log().tolist()), generator=generator).exp()
    width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    left, top = (_uniform(count, 0, 1, generator=generator) * (1 - length) for length in (width, height))
    mirrored = torch.rand(count, generator=generator) < 0.5
    return crop(images, size, torch.stack([left, top, width, height], 1), mirrored)


def crop(images: torch.Tensor, size: int, boxes: torch.Tensor, mirrored: torch.Tensor) -> torch.Tensor:
    """Boxes (N, 4) of images, as left, top, width and height in shares of an image, at size x size, bilinear."""
    left, top, width, height = boxes.unbind(1)
    none = torch.zeros_like(left)
    # From a crop's pixels to an image's, both in -1 to 1.
    across = torch.stack([torch.where(mirrored, -width, width), none, 2 * left + width - 1], 1)
    down = torch.stack([none, height, 2 * top + height - 1], 1)
    grid = F.affine_grid(torch.stack([across, down], 1), [len(images), 3, size, size], align_corners=False)
    pixels = images.permute(0, 3, 1, 2).float()
    cut = F.grid_sample(pixels, grid.to(images.device), padding_mode="border", align_corners=False)
    return _to_bytes(cut / 255)


def jitter_randomly(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Brightness, contrast, saturation and hue change at random, in an order that a batch shares; some become gray."""
    count = len(images)
    factors = [_uniform(count, 1 - most, 1 + most, generator=generator) for most in JITTER[:3]]
    turns = _uniform(count, -JITTER[3], JITTER[3], generator=generator)
    changes = [set_brightness, set_contrast, set_saturation, turn_hue]
    pixels = images.permute(0, 3, 1, 2).float() / 255
    for number in torch.randperm(len(changes), generator=generator).tolist():
        pixels = changes[number](pixels, [*factors, turns][number].to(images.device)[:, None, None, None])
    gray = (torch.rand(count, generator=generator) < GRAY).to(images.device)
    pixels = torch.where(gray[:, None, None, None], luma(pixels).expand_as(pixels), pixels)
    return _to_bytes(pixels)


def luma(pixels: torch.Tensor) -> torch.Tensor:
    """The gray of pixels (N, 3, H, W) in [0, 1], (N, 1, H, W)."""
    red, green, blue = pixels.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue)[:, None]


def set_brightness(pixels: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Pixels times a factor (N, 1, 1, 1)."""
    return (pixels * factor).clamp(0, 1)


def set_contrast(pixels: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Differences from each image's mean gray times a factor (N, 1, 1, 1)."""
    mean = luma(pixels).mean((2, 3), keepdim=True)
    return (mean + factor * (pixels - mean)).clamp(0, 1)


def set_saturation(pixels: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Differences from each pixel's gray times a factor (N, 1, 1, 1)."""
    gray = luma(pixels)
    return (gray + factor * (pixels - gray)).clamp(0, 1)


def turn_hue(pixels: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """The hue of HSV turned, (N, 1, 1, 1) in turns; a third brings red to green."""
    value, low = pixels.amax(1), pixels.amin(1)
    chroma = value - low
    red, green, blue = pixels.unbind(1)
    safe = chroma.clamp(min=1e-8)
    hue = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    hue = hue + 6 * turns.squeeze(1)
    # Each channel is a trapezoid of the hue: full within one sixth of its own, at the minimum beyond two.
    shades = [((start + hue) % 6) for start in (5, 3, 1)]
    return torch.stack([value - chroma * torch.minimum(shade, 4 - shade).clamp(0, 1) for shade in shades], 1)


def _to_bytes(pixels: torch.Tensor) -> torch.Tensor:
    return (255 * pixels).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _uniform(count: int, low: float, high: float, *, generator: torch.Generator) -> torch.Tensor:
    return low + (high - low) * torch.rand(count, generator=generator)
