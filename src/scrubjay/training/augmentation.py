"""The paper's image augmentation: a crop, a change of colors and a rotation, drawn once for each game.

In the paper's order the crop C comes first, then the colors J, then the rotation R. Crop and rotation are one bilinear
sampling here, so that pictures stay sharp; J changes each pixel by itself, and so may as well come after both.

Here it is in torch, for the CPU. On a GPU `augment_warp.py` does the same in kernels of our own, from bytes to bytes:
copies of the images as floats took most of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

SIZE = 224
"""The image's edge that crops are meant for, in pixels; those of other images are scaled."""
UNCHANGED = 0.5
"""How often a game has no crop, and how often no rotation."""
CROP = 10
"""Pixels, at most, that are cut from a side."""
TURN = 3
"""Degrees, at most, in either direction."""
CHUNK = 256
"""Images that are changed together: as floats they take four times their bytes, and several copies are under way."""
YIQ = np.array([[0.30, 0.59, 0.11], [0.599, -0.2773, -0.3217], [0.213, -0.5251, 0.3121]])
"""From red, green and blue to brightness and the two axes of color."""


@dataclass(frozen=True)
class Jitter:
    """How far colors may change."""

    brightness: float = 0.1
    """Everything is multiplied by 1 - this to 1 + this."""
    contrast: float = 0.1
    """Likewise, differences from the picture's mean grey."""
    saturation: float = 0.1
    """Likewise, differences from a pixel's own grey."""
    hue: float = 0.02
    """Turns of the color circle, in either direction; about 1/3 takes red to green."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < 1:
                raise ValueError(f"{name} may change by 0 up to 1, not by {value}")


class Augmentation:
    """What is done to the images of `count` games, each in its own way until it is renewed."""

    def __init__(
        self, count: int, seed: int = 0, device: str | torch.device = "cpu", jitter: Jitter | None = None
    ) -> None:
        """The same draws for the same seed; `device` is that of the images."""
        if count < 1:
            raise ValueError(f"there is at least one game, not {count}")
        self.device, self.jitter, self.rng = torch.device(device), jitter or Jitter(), np.random.default_rng(seed)
        self.crop = np.zeros((count, 4))
        """Pixels cut from left, right, top and bottom of an image of SIZE, (B, 4)."""
        self.color = np.tile([1.0, 1.0, 1.0, 0.0], (count, 1))
        """Factors of brightness, contrast and saturation, and turns of hue, (B, 4)."""
        self.degrees = np.zeros(count)
        """Counter-clockwise, (B,)."""
        # These stay where they are when their numbers change, so that what reads them can be recorded.
        self._geometry, self._colors, self._grey = (
            torch.empty(count, *shape, device=self.device) for shape in ((6,), (3, 3), (3,))
        )
        self.renew(np.ones(count, bool))
        if self._geometry.is_cuda:
            from scrubjay.training import augmentation_warp  # Imported late: on a CPU nobody waits for Warp.

            augmentation_warp.load(self._geometry.device)

    def __len__(self) -> int:
        return len(self.degrees)

    def renew(self, games: np.ndarray) -> None:
        """Draws anew for games (B,) bool that begin."""
        games = np.asarray(games)
        if games.shape != (len(self),) or games.dtype != bool:
            raise ValueError(f"one truth for each of {len(self)} games is needed, not {games.dtype} {games.shape}")
        rng, count, j = self.rng, int(games.sum()), self.jitter
        if not count:
            return
        cropped, turned = rng.random((2, count)) >= UNCHANGED
        self.crop[games] = rng.integers(1, CROP + 1, (count, 4)) * cropped[:, None]
        self.degrees[games] = rng.integers(-TURN, TURN + 1, count) * turned
        reach = np.array([j.brightness, j.contrast, j.saturation, j.hue])
        self.color[games] = [1, 1, 1, 0] + reach * rng.uniform(-1, 1, (count, 4))
        self.prepare()

    def prepare(self) -> None:
        """Puts what the draws mean onto the device; for those who set them by hand."""
        turn = np.radians(self.degrees)
        left, right, top, bottom = self.crop.T / SIZE
        numbers = np.stack([np.cos(turn), np.sin(turn), left, 1 - left - right, top, 1 - top - bottom], 1)
        self._geometry.copy_(torch.from_numpy(numbers))
        self._colors.copy_(torch.from_numpy(color_matrices(self.color)))
        kept = (1 - self.color[:, 1]) * self.color[:, 0]
        self._grey.copy_(torch.from_numpy(kept[:, None] * YIQ[0]))

    @torch.no_grad()
    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """The games' images, (B, height, width, 3) uint8, changed; new ones of the same shape on the same device."""
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[::3] != (len(self), 3):
            given = f"{images.dtype} {tuple(images.shape)}"
            raise ValueError(f"images are uint8 ({len(self)}, height, width, 3), not {given}")
        if images.device != self._geometry.device:
            raise ValueError(f"images are on {images.device}, their augmentation on {self._geometry.device}")
        if images.is_cuda:
            from scrubjay.training import augmentation_warp

            return augmentation_warp.change(images, self._geometry, self._colors, self._grey)
        changed = torch.empty_like(images, memory_format=torch.contiguous_format)
        for k in range(0, len(self), CHUNK):
            some = slice(k, k + CHUNK)
            points, inside = _points(self._geometry[some], images.shape[1], images.shape[2])
            seen = images[some].permute(0, 3, 1, 2).float()
            seen = functional.grid_sample(seen, points, "bilinear", "border", align_corners=False)
            seen *= inside
            mean = seen.sum((2, 3)) / inside.sum((2, 3))
            new = _colored(seen, self._colors[some], (mean * self._grey[some]).sum(1))
            changed[some] = new.clamp_(0, 255).round_().mul_(inside).permute(0, 2, 3, 1)
        return changed


def color_matrices(color: np.ndarray) -> np.ndarray:
    """What multiplies red, green and blue, (B, 3, 3), for brightness, contrast, saturation and hue (B, 4).

    Saturation stretches the plane of colors at equal brightness and hue turns it, so that neither changes how bright a
    pixel is. Contrast adds a share of the mean grey besides.
    """
    brightness, contrast, saturation, hue = color.T
    turn = 2 * np.pi * hue
    plane = np.zeros((len(color), 3, 3))
    plane[:, 0, 0] = 1
    plane[:, 1, 1] = plane[:, 2, 2] = saturation * np.cos(turn)
    # In these axes the way from red over yellow to green is clockwise.
    plane[:, 1, 2], plane[:, 2, 1] = saturation * np.sin(turn), -saturation * np.sin(turn)
    return (brightness * contrast)[:, None, None] * (np.linalg.inv(YIQ) @ plane @ YIQ)


def _points(geometry: torch.Tensor, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Where n images are sampled, (n, height, width, 2) from -1 to 1, and which pixels are, (n, 1, height, width).

    The others come from beyond the edges of the picture that is rotated; they stay black.
    """
    cos, sin, left, across, top, down = geometry[:, :, None, None].unbind(1)
    x = torch.arange(width, device=geometry.device) - (width - 1) / 2
    y = (torch.arange(height, device=geometry.device) - (height - 1) / 2)[:, None]
    u, v = cos * x - sin * y, sin * x + cos * y
    inside = (u.abs() <= width / 2) & (v.abs() <= height / 2)
    points = torch.stack([_along(u, left, across, width), _along(v, top, down, height)], -1)
    return points, inside[:, None]


def _along(offset: torch.Tensor, first: torch.Tensor, share: torch.Tensor, size: int) -> torch.Tensor:
    """From pixels from the middle to positions in the uncropped image, not beyond the middles of the outermost kept."""
    at = 2 * (first + share * (offset / size + 0.5)) - 1
    return at.clamp(2 * first - 1 + 1 / size, 2 * (first + share) - 1 - 1 / size)


def _colored(images: torch.Tensor, matrices: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """Images (n, 3, height, width) times matrices (n, 3, 3), plus greys (n,). Not as a product of matrices: that may be
    set to a coarse precision that is meant for networks."""
    new = added[:, None, None, None].expand_as(images)
    for k in range(3):
        new = torch.addcmul(new, matrices[:, :, k, None, None], images[:, k : k + 1])
    return new
