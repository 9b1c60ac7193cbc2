"""The image's 7 x 7 cells, reduced on the renderer's device to the few numbers that the game needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.render.base import View

CELLS = 7
NEAR_PIXELS = 8
"""An openable counts as near a cell's center up to this many pixels away, in images of 224."""


def pixels_per_cell(mask: torch.Tensor) -> torch.Tensor:
    """Counts (B, 7, 7) of the True pixels of masks (B, height, width); rows from the top, columns from the left."""
    batch, height, width = mask.shape
    blocks = mask.reshape(batch, CELLS, height // CELLS, CELLS, width // CELLS)
    return blocks.sum((2, 4), dtype=torch.int32)


def pixels_of(ids: torch.Tensor, thing: np.ndarray) -> torch.Tensor:
    """Where in ids (B, height, width) one thing of each picture is, things (B,) by number: masks of the same shape."""
    if len(ids) != len(thing):
        raise ValueError(f"one thing for each of {len(ids)} pictures is needed, not {len(thing)}")
    # Of the ids' own type: comparing two types is many times slower on a CPU.
    numbers = torch.from_numpy(thing).to(ids.dtype).to(ids.device, non_blocking=True)
    return torch.eq(ids, numbers[:, None, None])


def openables_at_cells(ids: torch.Tensor, openable_of_thing: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The openable at or near each cell's center, (B, 7, 7), -1 for none, and its pixel's flat index.

    ids (B, height, width) are things' numbers; openable_of_thing (B, things + 1) gives each thing's openable or -1, the
    last column being for pixels without a thing. The pixel under the center decides; if that is nothing openable, the
    nearest openable pixel within 8 pixels does.
    """
    batch, height, width = ids.shape
    pixels = _around(height, width, ids.device).expand(batch, -1, -1)
    found, pixel = _nearest(ids, openable_of_thing, torch.arange(batch, device=ids.device), pixels)
    return found.reshape(batch, CELLS, CELLS), pixel.reshape(batch, CELLS, CELLS)


def openables_at(view: View, openable_of_thing: torch.Tensor, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The same at one cell of each picture, rows and columns (B,): its openable, its pixel and the depth there, (3, B).

    Where a row or column is -1 nothing is looked for, and all are -1. The three come as one array, whole numbers too:
    waiting for a device once is enough.
    """
    _, height, width = view.ids.shape
    asked = np.flatnonzero((row >= 0) & (column >= 0))
    sent = torch.from_numpy(np.stack([asked, row[asked] * CELLS + column[asked]]))
    worlds, cell = sent.to(view.ids.device, non_blocking=True)
    pixels = _around(height, width, view.ids.device)[cell, None]
    found, pixel = (values[:, 0] for values in _nearest(view.ids, openable_of_thing, worlds, pixels))
    seen = np.full((3, len(row)), -1.0)
    depth = view.depth.flatten(1)[worlds, pixel]
    seen[:, asked] = torch.stack([found.double(), pixel.double(), depth.double()]).cpu().numpy()
    return seen


def openable_table(rooms: Sequence[CompiledRoom]) -> np.ndarray:
    """Each thing's number among its room's openables, (R, most things + 1); -1 for none and for no thing."""
    table = np.full((len(rooms), max(len(room.things) for room in rooms) + 1), -1)
    for row, room in zip(table, rooms, strict=True):
        for number, openable in enumerate(room.openables):
            row[openable.thing] = number
    return table


def _nearest(
    ids: torch.Tensor, openable_of_thing: torch.Tensor, worlds: torch.Tensor, pixels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The first openable on each list of pixels (n, lists, k) in worlds (n,), (n, lists), and its pixel."""
    worlds = worlds[:, None, None]
    # Pixels without a thing have the number -1, which is the table's last column.
    openable = openable_of_thing[worlds, ids.flatten(1)[worlds, pixels].long()]
    first = (openable >= 0).int().argmax(-1, keepdim=True)
    return torch.gather(openable, -1, first).squeeze(-1), torch.gather(pixels, -1, first).squeeze(-1)


@lru_cache
def _around(height: int, width: int, device: torch.device) -> torch.Tensor:
    """Flat indices (49, k) of the pixels around each cell's center, from the center outwards (ties: upper, then left).

    Made on the CPU and sent once: a choice by a mask would make it wait for the device.
    """
    reach = round(NEAR_PIXELS * height / 224)
    ticks = torch.arange(-reach, reach + 1)
    offsets = torch.cartesian_prod(ticks, ticks)
    squared = (offsets**2).sum(1)
    offsets, squared = offsets[squared <= reach**2], squared[squared <= reach**2]
    offsets = offsets[torch.sort(squared, stable=True).indices]
    middles = torch.cartesian_prod(*[torch.arange(CELLS) * height // CELLS + height // (2 * CELLS)] * 2)
    row, column = (middles[:, None] + offsets).unbind(-1)
    return (row * width + column).to(device)
