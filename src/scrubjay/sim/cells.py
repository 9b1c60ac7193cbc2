"""Reduces images to their 7 x 7 cells, on the renderer's device: what the game needs of a view."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from scrubjay.sim.render.base import View

if TYPE_CHECKING:
    from scrubjay.sim.base_world import WorldRoom

CELLS = 7
REFERENCE_SIZE = 224
"""The paper's image size, which all thresholds in pixels are about."""
NEAR_PIXELS = 8
"""Radius in which a cell's center finds an openable, in pixels of images of 224 x 224."""


def pixels_per_cell(mask: torch.Tensor) -> torch.Tensor:
    """Counts (B, 7, 7) of the True pixels of masks (B, height, width); rows from the top, columns from the left."""
    batch, height, width = mask.shape
    blocks = mask.reshape(batch, CELLS, height // CELLS, CELLS, width // CELLS)
    return blocks.sum((2, 4), dtype=torch.int32)


def reference_pixels(counts: np.ndarray, size: int) -> np.ndarray:
    """Counts of pixels in images of another size, as they would be in images of 224: four times as many as at 112."""
    if size == REFERENCE_SIZE:
        return counts
    return np.rint(counts * (REFERENCE_SIZE / size) ** 2).astype(counts.dtype)


def pixels_of(ids: torch.Tensor, thing: np.ndarray) -> torch.Tensor:
    """Masks (B, height, width) of one thing per image, given ids (B, height, width) and the things' ids (B,)."""
    if len(ids) != len(thing):
        raise ValueError(f"expected one thing for each of {len(ids)} images, not {len(thing)}")
    # Cast to the dtype of ids: comparing mixed dtypes is many times slower on a CPU.
    things = torch.from_numpy(thing).to(ids.dtype).to(ids.device, non_blocking=True)
    return torch.eq(ids, things[:, None, None])


def openables_at_cells(ids: torch.Tensor, openable_of_thing: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The openable at or near each cell's center, -1 for none, and its pixel's flat index, both (B, 7, 7).

    ids (B, height, width) are things' ids; openable_of_thing (B, things + 1) maps them to openables or -1, its last
    column standing for pixels without a thing. The center's pixel counts; if nothing there is openable, the nearest
    openable pixel within 8 pixels.
    """
    batch, height, width = ids.shape
    pixels = _pixels_around(height, width, ids.device).expand(batch, -1, -1)
    openable, pixel = _nearest(ids, openable_of_thing, torch.arange(batch, device=ids.device), pixels)
    return openable.reshape(batch, CELLS, CELLS), pixel.reshape(batch, CELLS, CELLS)


def openables_at(view: View, openable_of_thing: torch.Tensor, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """As `openables_at_cells` for one cell per image, rows and columns (B,): openable, pixel and depth, (3, B).

    All -1 where row or column is -1. One float array for the three, so that the device is waited for only once.
    """
    _, height, width = view.ids.shape
    queried = np.flatnonzero((row >= 0) & (column >= 0))
    query = torch.from_numpy(np.stack([queried, row[queried] * CELLS + column[queried]]))
    worlds, cell = query.to(view.ids.device, non_blocking=True)
    pixels = _pixels_around(height, width, view.ids.device)[cell, None]
    openable, pixel = (values[:, 0] for values in _nearest(view.ids, openable_of_thing, worlds, pixels))
    result = np.full((3, len(row)), -1.0)
    depth = view.depth.flatten(1)[worlds, pixel]
    result[:, queried] = torch.stack([openable.double(), pixel.double(), depth.double()]).cpu().numpy()
    return result


def openable_table(rooms: Sequence[WorldRoom]) -> np.ndarray:
    """Maps things to openables of their room, (R, max things + 1); -1 for what does not open, and for no thing."""
    table = np.full((len(rooms), max(len(room.things) for room in rooms) + 1), -1)
    for row, room in zip(table, rooms, strict=True):
        for number, openable in enumerate(room.openables):
            row[openable.thing] = number
    return table


def _nearest(
    ids: torch.Tensor, openable_of_thing: torch.Tensor, worlds: torch.Tensor, pixels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The first openable on each list of pixels (n, lists, k) of worlds (n,), and its pixel, both (n, lists)."""
    worlds = worlds[:, None, None]
    # Pixels without a thing have id -1, which indexes the table's last column.
    openable = openable_of_thing[worlds, ids.flatten(1)[worlds, pixels].long()]
    first = (openable >= 0).int().argmax(-1, keepdim=True)
    return torch.gather(openable, -1, first).squeeze(-1), torch.gather(pixels, -1, first).squeeze(-1)


@lru_cache
def _pixels_around(height: int, width: int, device: torch.device) -> torch.Tensor:
    """Flat indices (49, k) of the pixels around each cell's center, nearest first (ties: upper, then left).

    Computed on the CPU: indexing by a mask would synchronize with the device.
    """
    reach = round(NEAR_PIXELS * height / REFERENCE_SIZE)
    ticks = torch.arange(-reach, reach + 1)
    offsets = torch.cartesian_prod(ticks, ticks)
    squared = (offsets**2).sum(1)
    offsets, squared = offsets[squared <= reach**2], squared[squared <= reach**2]
    offsets = offsets[torch.sort(squared, stable=True).indices]
    centers = torch.cartesian_prod(*[torch.arange(CELLS) * height // CELLS + height // (2 * CELLS)] * 2)
    row, column = (centers[:, None] + offsets).unbind(-1)
    return (row * width + column).to(device)
