"""Top-down map of the parts of a room that a person has seen."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from scrubjay.sim.pose import cameras
from scrubjay.sim.state import State

CELL = 0.1
"""Meters of floor per map pixel."""
SAMPLES = 56
"""Pixels sampled from a view along each side."""
FLOOR_BELOW, TALL_ABOVE, OVERHEAD = 0.04, 1.0, 1.9
"""Heights in meters: points below the first are floor, between the next two tall furniture, above the last ignored."""
UNSEEN, FLOOR, THING, TALL = range(4)
COLORS = ((0, 0, 0), (226, 221, 210), (190, 160, 112), (122, 104, 84))


def backproject(state: State, depth: np.ndarray, stride: int = 1) -> np.ndarray:
    """World positions (H, W, 3) of the pixels of the first agent's view with depth (H, W), every `stride`-th."""
    eye, matrix = cameras(state.position[0], state.rotation[0], state.standing[0])
    size = len(depth)
    ticks = (np.arange(0, size, stride) + 0.5) / size * 2 - 1
    x, y = np.meshgrid(ticks, -ticks)
    local = np.stack([x, y, -np.ones_like(x)], -1) * depth[::stride, ::stride, None]
    return eye + local @ matrix.T


class SeenMap:
    """A room's floor in pixels of 0.1 m, north up: unseen, floor, thing or tall thing."""

    def __init__(self, bounds: tuple[float, float, float, float]) -> None:
        west, south, east, north = bounds
        self.corner = np.array([west, north])
        self.pixels = np.zeros((round((north - south) / CELL) + 1, round((east - west) / CELL) + 1), np.uint8)
        self.changed = True
        """Whether the map differs from the last PNG."""

    def add(self, state: State, depth: np.ndarray) -> None:
        """Adds a view; where points share a pixel, the highest class wins."""
        stride = max(1, len(depth) // SAMPLES)
        points = backproject(state, depth, stride)[depth[::stride, ::stride] > 0]
        points = points[points[:, 2] < OVERHEAD]
        kind = np.where(points[:, 2] < FLOOR_BELOW, FLOOR, np.where(points[:, 2] < TALL_ABOVE, THING, TALL))
        column, row = (np.abs(points[:, :2] - self.corner) / CELL).astype(int).T
        inside = (row < self.pixels.shape[0]) & (column < self.pixels.shape[1])
        before = self.pixels.copy()
        np.maximum.at(self.pixels, (row[inside], column[inside]), kind[inside].astype(np.uint8))
        self.changed |= bool((before != self.pixels).any())

    def png(self) -> bytes:
        """The map as a PNG, transparent where unseen."""
        image = Image.fromarray(self.pixels, "P")
        image.putpalette([channel for color in COLORS for channel in color])
        buffer = io.BytesIO()
        image.save(buffer, "PNG", transparency=UNSEEN)
        self.changed = False
        return buffer.getvalue()
