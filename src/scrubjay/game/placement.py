"""Where a dropped object is, in the paper's modalities: on top, contained in or behind, in each cell of the image."""

from __future__ import annotations

import numpy as np
import torch

from scrubjay.sim.base_world import NOTHING, BaseWorld
from scrubjay.sim.cells import pixels_per_cell, reference_pixels

FEW_PIXELS = 10
"""An object of no more pixels than this in an image of 224, visible or occluded, counts as off-screen."""
TIE_ORDER = np.array([1, 0, 2])
"""Contained before on top: an object in full view inside something has as many pixels in both."""


def dropped_counts(world: BaseWorld, worlds: np.ndarray) -> np.ndarray:
    """Pixels (n, 3, 7, 7), as in an image of 224, of each modality in each cell, in n of the worlds, (B,) bool."""
    masks = world.goal_pixels(worlds)
    seen, alone = torch.stack([pixels_per_cell(mask) for mask in masks]).cpu().numpy()
    contained = world.contained(worlds)[worlds] != NOTHING
    return reference_pixels(modality_counts(seen, np.maximum(alone, seen), contained), world.size)


def modality_counts(seen: np.ndarray, alone: np.ndarray, contained: np.ndarray) -> np.ndarray:
    """Pixels (B, 3, 7, 7) of each modality in each cell.

    seen (B, 7, 7) counts the object's visible pixels, alone (B, 7, 7) those with all else invisible; contained (B,).
    Occluded pixels count as behind; all pixels count as contained if something contains the object.
    """
    behind = alone - seen
    return np.stack([seen, np.where(contained[:, None, None], alone, 0), behind], 1)


def object_pixels(counts: np.ndarray) -> np.ndarray:
    """Pixels (B,) of the objects with all else invisible, on top plus behind, from counts (B, 3, 7, 7)."""
    return counts[..., [0, 2], :, :].sum((-3, -2, -1))


def fullest_target(counts: np.ndarray) -> np.ndarray:
    """PlaceAt's target index (B,) where the most pixels of counts (B, 3, 7, 7) are; contained in if tied."""
    _, _, rows, columns = counts.shape
    first = counts[:, TIE_ORDER].reshape(len(counts), -1).argmax(1)
    return TIE_ORDER[first // (rows * columns)] * (rows * columns) + first % (rows * columns)


def hit_cells(counts: np.ndarray) -> np.ndarray:
    """Cells (B, 3, 7, 7) with at least 95 % as many pixels as the fullest cell of any modality."""
    # In integers, since 0.95 has no exact float. An object without pixels hits nothing.
    pixels = counts.astype(np.int64)
    return (20 * pixels >= 19 * pixels.max((-3, -2, -1), keepdims=True)) & (pixels > 0)


def hits(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Did objects land on their targets (B, 3), modality, row and column, given counts (B, 3, 7, 7)?"""
    return (object_pixels(counts) > FEW_PIXELS) & hit_cells(counts)[np.arange(len(counts)), *target.T]


def placed(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Like `hits`, but contained and behind may be one row off: where they end up is hard to foresee."""
    modality, row, column = target.T
    success = hits(counts, target)
    for neighbor in (row - 1, row + 1):
        inside = (neighbor >= 0) & (neighbor < counts.shape[2]) & (modality > 0)
        shifted = np.stack([modality, np.clip(neighbor, 0, counts.shape[2] - 1), column], 1)
        success |= inside & hits(counts, shifted)
    return success
