"""A picture of an auto-encoder's reconstructions: originals above, reconstructions below."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scrubjay.viz.picture import tile_pictures, write_picture

SIDE = 224
"""Pictures are enlarged to this height and width in pixels."""


def write_reconstructions(path: Path, originals: np.ndarray, reconstructions: np.ndarray) -> None:
    """Writes images (n, size, size, 3) uint8 in two rows."""
    times = max(1, SIDE // originals.shape[1])
    pictures = [picture.repeat(times, 0).repeat(times, 1) for picture in (*originals, *reconstructions)]
    write_picture(path, tile_pictures(pictures, len(originals)))
