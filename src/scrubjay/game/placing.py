"""Where a dropped object is, in the paper's terms: on top, contained in, behind, in each of the image's cells."""

from __future__ import annotations

import numpy as np

ENOUGH_PIXELS = 10
"""More than this many pixels of the object must show, seen or hidden, for a placement to count."""
NEARLY_MOST = 0.95


def modality_counts(seen: np.ndarray, alone: np.ndarray, contained: np.ndarray) -> np.ndarray:
    """Pixels (B, 3, 7, 7) of each modality in each cell.

    seen (B, 7, 7) counts the object's visible pixels, alone (B, 7, 7) those with all else invisible; contained (B,) bool.
    Behind are the pixels that only show when all else is invisible; contained are both, if it is contained in something.
    """
    behind = alone - seen
    return np.stack([seen, np.where(contained[:, None, None], alone, 0), behind], 1)


def hits(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Did the object land on its target (B, 3) of modality, row and column? counts (B, 3, 7, 7)."""
    modality, row, column = target.T
    there = counts[np.arange(len(counts)), modality, row, column]
    return _enough(counts) & (there >= NEARLY_MOST * _most(counts))


def placed(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Like `hits`, but contained and behind may also be in the rows above and below: they are hard to foresee."""
    modality, row, column = target.T
    found = hits(counts, target)
    for neighbour in (row - 1, row + 1):
        inside = (neighbour >= 0) & (neighbour < counts.shape[2]) & (modality > 0)
        moved = np.stack([modality, np.clip(neighbour, 0, counts.shape[2] - 1), column], 1)
        found |= inside & hits(counts, moved)
    return found


def _most(counts: np.ndarray) -> np.ndarray:
    """The most pixels of any modality in any cell, (B,)."""
    return counts.reshape(len(counts), -1).max(1)


def _enough(counts: np.ndarray) -> np.ndarray:
    on_top, _, behind = counts.sum((2, 3)).T
    return on_top + behind > ENOUGH_PIXELS
