"""Colors of objects and types in segmentation pictures: the same for the same name, and distinct within a scene."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

BACKGROUND = (0, 0, 0)
OPAQUE = 255


class Colors:
    """The colors of a scene's things."""

    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        """Takes the things' object ids (what is no object has its type's name here) and types, by thing id."""
        used = {BACKGROUND}
        colors: dict[str, tuple[int, int, int]] = {}
        # Types come first, so that a class has the same color whatever else is in the room.
        for name in (*sorted(set(types)), *names):
            if name not in colors:
                colors[name] = _unused(name, used)
                used.add(colors[name])
        self.listing: list[dict[str, Any]] = [{"name": name, "color": list(color)} for name, color in colors.items()]
        """As an event's metadata has them."""
        self._ids = _table([colors[name] for name in names])
        self._classes = _table([colors[kind] for kind in types])

    def ids(self, things: np.ndarray) -> np.ndarray:
        """Pictures (..., 4) uint8 from thing ids (...), -1 for the background."""
        return self._look_up(self._ids, things)

    def classes(self, things: np.ndarray) -> np.ndarray:
        """Pictures (..., 4) uint8 of types from thing ids (...)."""
        return self._look_up(self._classes, things)

    @staticmethod
    def _look_up(table: np.ndarray, things: np.ndarray) -> np.ndarray:
        # One 32-bit number a pixel; the last entry is the background, which -1 finds.
        return table[np.where(things < len(table) - 1, things, -1)].view(np.uint8).reshape(*things.shape, 4)


def _table(colors: Sequence[tuple[int, int, int]]) -> np.ndarray:
    rows = [(*color, OPAQUE) for color in (*colors, BACKGROUND)]
    return np.array(rows, np.uint8).view(np.uint32).reshape(-1)


def _unused(name: str, used: set[tuple[int, int, int]]) -> tuple[int, int, int]:
    attempt = 0
    while True:
        red, green, blue = hashlib.sha256(f"{name}{attempt or ''}".encode()).digest()[:3]
        if (red, green, blue) not in used:
            return red, green, blue
        attempt += 1
