"""What a person has seen of a room, from above: a small picture that grows with every view."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from scrubjay.sim.pose import cameras
from scrubjay.sim.state import State

PIXEL = 0.1
"""Metres of the floor along a pixel's side."""
SAMPLES = 56
"""Pixels of a view that are looked at, along each side."""
FLOOR_BELOW, OVERHEAD = 0.04, 1.9
"""Metres: lower points are the floor; higher ones do not matter to people."""
UNSEEN, FLOOR, THING, TALL = range(4)
TALL_ABOVE = 1.0
COLORS = ((0, 0, 0), (226, 221, 210), (190, 160, 112), (122, 104, 84))


def points(state: State, depth: np.ndarray, stride: int = 1) -> np.ndarray:
    """Where in the room the pixels of one player's view are: (height, width, 3) for depth (height, width)."""
    eye, matrix = cameras(state.position[0], state.rotation[0], state.standing[0])
    size = len(depth)
    ticks = (np.arange(0, size, stride) + 0.5) / size * 2 - 1
    x, y = np.meshgrid(ticks, -ticks)
    local = np.stack([x, y, -np.ones_like(x)], -1) * depth[::stride, ::stride, None]
    return eye + local @ matrix.T


class SeenMap:
    """The floor of a room in pixels of 0.1 m, north up, each unseen, floor, or things of two heights."""

    def __init__(self, bounds: tuple[float, float, float, float]) -> None:
        west, south, east, north = bounds
        self.corner = np.array([west, north])
        self.pixels = np.zeros((round((north - south) / PIXEL) + 1, round((east - west) / PIXEL) + 1), np.uint8)
        self.changed = True
        """Since the picture was last made."""

    def add(self, state: State, depth: np.ndarray) -> None:
        """Adds what one view shows; where things and floor share a pixel, the highest thing counts."""
        stride = max(1, len(depth) // SAMPLES)
        seen = points(state, depth, stride)[depth[::stride, ::stride] > 0]
        seen = seen[seen[:, 2] < OVERHEAD]
        kind = np.where(seen[:, 2] < FLOOR_BELOW, FLOOR, np.where(seen[:, 2] < TALL_ABOVE, THING, TALL))
        column, row = (np.abs(seen[:, :2] - self.corner) / PIXEL).astype(int).T
        inside = (row < self.pixels.shape[0]) & (column < self.pixels.shape[1])
        before = self.pixels.copy()
        np.maximum.at(self.pixels, (row[inside], column[inside]), kind[inside].astype(np.uint8))
        self.changed |= bool((before != self.pixels).any())

    def png(self) -> bytes:
        """The map as a picture, transparent where nothing was seen."""
        image = Image.fromarray(self.pixels, "P")
        image.putpalette([part for color in COLORS for part in color])
        buffer = io.BytesIO()
        image.save(buffer, "PNG", transparency=UNSEEN)
        self.changed = False
        return buffer.getvalue()
