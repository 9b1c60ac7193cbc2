"""A canvas for procedural pictures, and its pigments.

Shapes are painted over one another. Coordinates run from (0, 0), top left, to (1, 1), bottom right.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from scrubjay.rooms.materials.textures import Rng, mix, smooth

Color = float | Sequence[float] | np.ndarray
"""Red, green and blue from 0 to 1, one brightness for all three, or an image."""
Point = Sequence[float] | np.ndarray
"""(x, y) on the canvas."""


class Canvas:
    """An image being painted, (height, width, 3)."""

    def __init__(self, height: int, width: int, color: Color) -> None:
        self.pixels = np.empty((height, width, 3))
        self.pixels[:] = color
        self.x = ((np.arange(width) + 0.5) / width)[None, :]
        self.y = ((np.arange(height) + 0.5) / height)[:, None]
        self.soft = 0.8 / height

    @property
    def shape(self) -> tuple[int, int]:
        return self.pixels.shape[:2]

    def paint(self, depth: np.ndarray, color: Color, share: float = 1.0) -> None:
        """Paints where `depth`, the signed distance to the shape's border, is positive; the color may be an image."""
        cover = share * smooth(-self.soft, self.soft, depth)
        self.pixels += (np.asarray(color) - self.pixels) * cover[..., None]

    def part(self, left: float, top: float, right: float, bottom: float) -> Canvas:
        """A view of the pixels around a rectangle, so that small shapes are cheap to paint."""
        height, width = self.pixels.shape[:2]
        rows = slice(max(int(top * height) - 1, 0), max(int(bottom * height) + 2, 0))
        columns = slice(max(int(left * width) - 1, 0), max(int(right * width) + 2, 0))
        part = copy.copy(self)
        part.pixels, part.x, part.y = self.pixels[rows, columns], self.x[:, columns], self.y[rows]
        return part

    def gradient(self, top: Color, bottom: Color, start: float = 0.0, end: float = 1.0) -> None:
        """Fades from one color at height `start` to another at `end`."""
        self.pixels[:] = mix(top, bottom, np.clip((self.y - start) / (end - start), 0, 1))

    def disc(self, x: float, y: float, radius: float, color: Color, stretch: float = 1.0, share: float = 1.0) -> None:
        """A circle, or an ellipse `stretch` times as high as wide."""
        part = self.part(x - radius, y - radius * stretch, x + radius, y + radius * stretch)
        part.paint(radius - np.sqrt((part.x - x) ** 2 + ((part.y - y) / stretch) ** 2), color, share)

    def ring(self, x: float, y: float, radius: float, width: float, color: Color) -> None:
        self.paint(width / 2 - np.abs(np.sqrt((self.x - x) ** 2 + (self.y - y) ** 2) - radius), color)

    def box(self, left: float, top: float, right: float, bottom: float, color: Color, share: float = 1.0) -> None:
        part = self.part(left, top, right, bottom)
        across, down = np.minimum(part.x - left, right - part.x), np.minimum(part.y - top, bottom - part.y)
        part.paint(np.minimum(across, down), color, share)

    def line(self, start: Point, end: Point, width: float, color: Color) -> None:
        """A stroke from (x, y) to (x, y) with round ends."""
        (left, right), (top, bottom) = (sorted(ends) for ends in zip(start, end, strict=True))
        part = self.part(left - width, top - width, right + width, bottom + width)
        (x, y), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
        along = np.clip(((part.x - x) * dx + (part.y - y) * dy) / max(dx * dx + dy * dy, 1e-9), 0, 1)
        part.paint(width / 2 - np.sqrt((part.x - x - along * dx) ** 2 + (part.y - y - along * dy) ** 2), color)

    def ground(self, skyline: np.ndarray, color: Color) -> None:
        """Everything below a skyline (width,), one height per column."""
        self.paint(self.y - skyline[None, :], color)


PIGMENTS = np.array([
    [0.8, 0.18, 0.14], [0.9, 0.45, 0.15], [0.95, 0.75, 0.22], [0.55, 0.62, 0.22], [0.2, 0.48, 0.28], [0.16, 0.5, 0.52],
    [0.2, 0.42, 0.72], [0.14, 0.22, 0.46], [0.45, 0.26, 0.5], [0.78, 0.4, 0.5], [0.55, 0.34, 0.2], [0.35, 0.38, 0.42],
])  # fmt: skip
LIGHT = np.array([0.97, 0.94, 0.86])
DARK = np.array([0.1, 0.1, 0.12])


def tones(rng: Rng, count: int, shade: float = 1.0, pale: float = 0.0) -> np.ndarray:
    """Different pigments, (count, 3), darkened by `shade` and mixed with white by `pale`."""
    return PIGMENTS[rng.permutation(len(PIGMENTS))[:count]] * shade * (1 - pale) + pale
