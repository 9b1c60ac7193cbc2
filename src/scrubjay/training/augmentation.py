"""The paper's image augmentation: crop, color jitter and rotation, sampled once per game.

The paper crops first, then jitters colors, then rotates. Crop and rotation are one bilinear sampling here, so that
images stay sharp; color jitter is per pixel, so it can come last.

This is the torch version for the CPU. On a GPU `augmentation_warp.py` does the same from bytes to bytes: float copies
of the images took most of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

SIZE = 224
"""Edge in pixels of the image that crops refer to; those of other images are scaled."""
IDENTITY_PROBABILITY = 0.5
"""Probability of no crop, and of no rotation."""
MAX_CROP = 10
"""Pixels cut from a side."""
MAX_ROTATION = 3
"""Degrees, in either direction."""
BATCH = 256
"""Images processed together: as floats they take four times their bytes, and several copies are alive."""
YIQ = np.array([[0.30, 0.59, 0.11], [0.599, -0.2773, -0.3217], [0.213, -0.5251, 0.3121]])
"""From RGB to YIQ: luma and the two axes of chroma."""


@dataclass(frozen=True)
class Jitter:
    """Ranges of color jitter."""

    brightness: float = 0.1
    """Pixels are multiplied by 1 - this to 1 + this."""
    contrast: float = 0.1
    """Likewise, differences from the image's mean gray."""
    saturation: float = 0.1
    """Likewise, differences from the pixel's own gray."""
    hue: float = 0.02
    """Turns of the hue circle, in either direction; 1/3 takes red to green."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < 1:
                raise ValueError(f"{name}: must be in [0, 1), not {value}")


class Augmentation:
    """Augments the images of `count` games, each with its own sample until it is resampled."""

    def __init__(
        self, count: int, seed: int = 0, device: str | torch.device = "cpu", jitter: Jitter | None = None
    ) -> None:
        """`device` is that of the images."""
        if count < 1:
            raise ValueError(f"count: must be at least 1, not {count}")
        self.device, self.jitter, self.rng = torch.device(device), jitter or Jitter(), np.random.default_rng(seed)
        self.crop = np.zeros((count, 4))
        """Pixels cut from left, right, top and bottom of an image of SIZE, (B, 4)."""
        self.color = np.tile([1.0, 1.0, 1.0, 0.0], (count, 1))
        """Factors of brightness, contrast and saturation, and turns of hue, (B, 4)."""
        self.degrees = np.zeros(count)
        """Counter-clockwise, (B,)."""
        # Updated in place, so that CUDA graphs can read them.
        self._geometry, self._colors, self._gray = (
            torch.empty(count, *shape, device=self.device) for shape in ((6,), (3, 3), (3,))
        )
        self.resample(np.ones(count, bool))
        if self._geometry.is_cuda:
            from scrubjay.training import augmentation_warp  # Imported late: the CPU does without Warp.

            augmentation_warp.load(self._geometry.device)

    def __len__(self) -> int:
        return len(self.degrees)

    def resample(self, games: np.ndarray) -> None:
        """Samples anew for games (B,) bool that begin."""
        games = np.asarray(games)
        if games.shape != (len(self),) or games.dtype != bool:
            raise ValueError(f"games: must be bool ({len(self)},), not {games.dtype} {games.shape}")
        rng, count, j = self.rng, int(games.sum()), self.jitter
        if not count:
            return
        cropped, rotated = rng.random((2, count)) >= IDENTITY_PROBABILITY
        self.crop[games] = rng.integers(1, MAX_CROP + 1, (count, 4)) * cropped[:, None]
        self.degrees[games] = rng.integers(-MAX_ROTATION, MAX_ROTATION + 1, count) * rotated
        ranges = np.array([j.brightness, j.contrast, j.saturation, j.hue])
        self.color[games] = [1, 1, 1, 0] + ranges * rng.uniform(-1, 1, (count, 4))
        self.upload()

    def upload(self) -> None:
        """Copies the samples to the device, as coefficients; needed after setting them by hand."""
        angle = np.radians(self.degrees)
        left, right, top, bottom = self.crop.T / SIZE
        geometry = np.stack([np.cos(angle), np.sin(angle), left, 1 - left - right, top, 1 - top - bottom], 1)
        self._geometry.copy_(torch.from_numpy(geometry))
        self._colors.copy_(torch.from_numpy(color_matrices(self.color)))
        share = (1 - self.color[:, 1]) * self.color[:, 0]
        self._gray.copy_(torch.from_numpy(share[:, None] * YIQ[0]))

    @torch.no_grad()
    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Augmented copies of the games' images (B, height, width, 3) uint8."""
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[::3] != (len(self), 3):
            given = f"{images.dtype} {tuple(images.shape)}"
            raise ValueError(f"images: must be uint8 ({len(self)}, height, width, 3), not {given}")
        if images.device != self._geometry.device:
            raise ValueError(f"images are on {images.device}, the augmentation is on {self._geometry.device}")
        if images.is_cuda:
            from scrubjay.training import augmentation_warp

            return augmentation_warp.augment(images, self._geometry, self._colors, self._gray)
        augmented = torch.empty_like(images, memory_format=torch.contiguous_format)
        for k in range(0, len(self), BATCH):
            part = slice(k, k + BATCH)
            points, inside = _points(self._geometry[part], images.shape[1], images.shape[2])
            sampled = images[part].permute(0, 3, 1, 2).float()
            sampled = functional.grid_sample(sampled, points, "bilinear", "border", align_corners=False)
            sampled *= inside
            mean = sampled.sum((2, 3)) / inside.sum((2, 3))
            new = _apply_colors(sampled, self._colors[part], (mean * self._gray[part]).sum(1))
            augmented[part] = new.clamp_(0, 255).round_().mul_(inside).permute(0, 2, 3, 1)
        return augmented


def color_matrices(color: np.ndarray) -> np.ndarray:
    """RGB matrices (B, 3, 3) for brightness, contrast, saturation and hue (B, 4).

    Saturation scales the chroma plane and hue rotates it, so that neither changes luma. Contrast also adds a share of
    the mean gray, which is not part of the matrix.
    """
    brightness, contrast, saturation, hue = color.T
    angle = 2 * np.pi * hue
    plane = np.zeros((len(color), 3, 3))
    plane[:, 0, 0] = 1
    plane[:, 1, 1] = plane[:, 2, 2] = saturation * np.cos(angle)
    # In these axes, red to yellow to green is clockwise.
    plane[:, 1, 2], plane[:, 2, 1] = saturation * np.sin(angle), -saturation * np.sin(angle)
    return (brightness * contrast)[:, None, None] * (np.linalg.inv(YIQ) @ plane @ YIQ)


def _points(geometry: torch.Tensor, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sampling points (n, height, width, 2) in [-1, 1], and a mask (n, 1, height, width) of pixels inside the image.

    Pixels outside the rotated image stay black.
    """
    cos, sin, left, across, top, down = geometry[:, :, None, None].unbind(1)
    x = torch.arange(width, device=geometry.device) - (width - 1) / 2
    y = (torch.arange(height, device=geometry.device) - (height - 1) / 2)[:, None]
    u, v = cos * x - sin * y, sin * x + cos * y
    inside = (u.abs() <= width / 2) & (v.abs() <= height / 2)
    points = torch.stack([_along(u, left, across, width), _along(v, top, down, height)], -1)
    return points, inside[:, None]


def _along(offset: torch.Tensor, first: torch.Tensor, share: torch.Tensor, size: int) -> torch.Tensor:
    """From pixel offsets from the center to positions in the uncropped image, clamped to the kept pixels' centers."""
    at = 2 * (first + share * (offset / size + 0.5)) - 1
    return at.clamp(2 * first - 1 + 1 / size, 2 * (first + share) - 1 - 1 / size)


def _apply_colors(images: torch.Tensor, matrices: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """Images (n, 3, height, width) times matrices (n, 3, 3), plus grays (n,).

    Not as a matrix product, which may run in a reduced precision that is meant for networks.
    """
    new = added[:, None, None, None].expand_as(images)
    for k in range(3):
        new = torch.addcmul(new, matrices[:, :, k, None, None], images[:, k : k + 1])
    return new
