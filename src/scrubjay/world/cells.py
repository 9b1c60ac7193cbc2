"""The image's 7 x 7 cells, reduced on the renderer's device to the few numbers that the game needs."""

from __future__ import annotations

import torch

CELLS = 7
NEAR_PIXELS = 8
"""An openable counts as near a cell's centre up to this many pixels away, in images of 224."""


def pixels_per_cell(mask: torch.Tensor) -> torch.Tensor:
    """Counts (B, 7, 7) of the True pixels of masks (B, height, width); rows from the top, columns from the left."""
    batch, height, width = mask.shape
    blocks = mask.reshape(batch, CELLS, height // CELLS, CELLS, width // CELLS)
    return blocks.sum((2, 4), dtype=torch.int32)


def openables_at_cells(ids: torch.Tensor, openable_of_thing: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The openable at or near each cell's centre, (B, 7, 7), -1 for none, and its pixel's flat index.

    ids (B, height, width) are things' numbers; openable_of_thing (B, things + 1) gives each thing's openable or -1, the
    last column being for pixels without a thing. The pixel under the centre decides; if that is nothing openable, the
    nearest openable pixel within 8 pixels does.
    """
    batch, height, width = ids.shape
    reach = round(NEAR_PIXELS * height / 224)
    offsets, order = _offsets(reach, ids.device)
    middles = (torch.arange(CELLS, device=ids.device) * height // CELLS) + height // (2 * CELLS)
    rows = (middles[:, None, None] + offsets[order, 0]).expand(CELLS, CELLS, -1)
    columns = (middles[None, :, None] + offsets[order, 1]).expand(CELLS, CELLS, -1)
    flat = rows * width + columns
    nearby = ids.reshape(batch, -1)[:, flat.reshape(-1)].long()
    openable = torch.gather(openable_of_thing, 1, torch.where(nearby < 0, openable_of_thing.shape[1] - 1, nearby))
    openable = openable.reshape(batch, CELLS, CELLS, -1)
    first = (openable >= 0).int().argmax(-1, keepdim=True)
    found = torch.gather(openable, 3, first).squeeze(-1)
    pixel = torch.gather(flat.expand(batch, -1, -1, -1), 3, first).squeeze(-1)
    return found, pixel


def _offsets(reach: int, device) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixel offsets within a circle, and their order from the centre outwards (ties: upper, then left ones first)."""
    ticks = torch.arange(-reach, reach + 1, device=device)
    grid = torch.cartesian_prod(ticks, ticks)
    squared = (grid**2).sum(1)
    grid, squared = grid[squared <= reach**2], squared[squared <= reach**2]
    return grid, torch.sort(squared, stable=True).indices
