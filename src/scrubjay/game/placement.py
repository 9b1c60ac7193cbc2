"""Where a dropped object is, in the paper's terms: on top, contained in, behind, in each of the image's cells."""

from __future__ import annotations

import numpy as np

FEW_PIXELS = 10
"""With no more pixels than this, seen or hidden, the object is nowhere."""


def modality_counts(seen: np.ndarray, alone: np.ndarray, contained: np.ndarray) -> np.ndarray:
    """Pixels (B, 3, 7, 7) of each modality in each cell.

    seen (B, 7, 7) counts the object's visible pixels, alone (B, 7, 7) those with all else invisible; contained (B,).
    Behind are the pixels that only show when all else is invisible; contained are both, if anything contains it.
    """
    behind = alone - seen
    return np.stack([seen, np.where(contained[:, None, None], alone, 0), behind], 1)


def object_pixels(counts: np.ndarray) -> np.ndarray:
    """Pixels (B,) of the objects with all else invisible: those on top and those behind, of counts (B, 3, 7, 7)."""
    return counts[..., [0, 2], :, :].sum((-3, -2, -1))


def hit_cells(counts: np.ndarray) -> np.ndarray:
    """Where (B, 3, 7, 7) there are at least 95 % as many pixels as in the fullest cell of any modality."""
    # Whole numbers, for 0.95 has no exact float. An object without pixels hits nothing.
    pixels = counts.astype(np.int64)
    return (20 * pixels >= 19 * pixels.max((-3, -2, -1), keepdims=True)) & (pixels > 0)


def hits(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Did the object land on its target (B, 3) of modality, row and column? counts (B, 3, 7, 7)."""
    return (object_pixels(counts) > FEW_PIXELS) & hit_cells(counts)[np.arange(len(counts)), *target.T]


def placed(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Like `hits`, but contained and behind may also be in the rows above and below: they are hard to foresee."""
    modality, row, column = target.T
    found = hits(counts, target)
    for neighbor in (row - 1, row + 1):
        inside = (neighbor >= 0) & (neighbor < counts.shape[2]) & (modality > 0)
        moved = np.stack([modality, np.clip(neighbor, 0, counts.shape[2] - 1), column], 1)
        found |= inside & hits(counts, moved)
    return found
