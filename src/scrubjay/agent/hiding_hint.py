"""What an imagined map tells of a hiding: at every position, where from there the object was hidden, and how.

The hider knows its own place and the cell of its view into which it put the object. From another position that is an
offset, ahead and to the right, for each of the four headings. A network of these offsets is the same everywhere: what
is learned about one hiding holds for all.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from scrubjay.agent.hiding_outcomes import NOT_HIDDEN, NUM_PLACEMENTS
from scrubjay.game.actions import MODALITIES
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import HEIGHTS

HIDDEN, EMBEDDING = 64, 32
OFFSET_SCALE = 8.0
"""Positions, 2 m, that count as 1; offsets are cut off at twice that."""
HEADINGS = torch.from_numpy(np.stack([-COMPASS[:, 1], COMPASS[:, 0]], 1)).float()
"""Rows and columns of a step ahead, by quarter turn; north is up."""


class HidingHint(nn.Module):
    """Features (N, h, w, C) of N hidings; of each position's C channels, a quarter belongs to each heading."""

    headings: torch.Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        # Each has one more entry, for an object that was dropped.
        self.height, self.modality = nn.Embedding(HEIGHTS + 1, EMBEDDING), nn.Embedding(len(MODALITIES) + 1, EMBEDDING)
        self.row, self.column = nn.Embedding(CELLS + 1, EMBEDDING), nn.Embedding(CELLS + 1, EMBEDDING)
        self.turn = nn.Embedding(QUARTERS, EMBEDDING)
        """The hider's heading, in quarter turns from one's own."""
        self.outcome, self.offset = nn.Linear(EMBEDDING, HIDDEN), nn.Linear(5, HIDDEN)
        self.mlp = nn.Sequential(
            nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, channels // QUARTERS)
        )
        self.register_buffer("headings", HEADINGS.clone(), persistent=False)

    def forward(self, place: torch.Tensor, outcome: torch.Tensor, height: int, width: int) -> torch.Tensor:
        """Hidings from places (N, 3), row, column and quarter, with outcomes (N,), on maps of h x w positions."""
        turn = (place[:, 2:] - torch.arange(QUARTERS, device=place.device)) % QUARTERS
        how = self.outcome(self._embed(outcome)[:, None] + self.turn(turn))
        return self.mlp(self.offset(self.offsets(place, height, width)) + how[:, None, None]).flatten(-2)

    def offsets(self, place: torch.Tensor, height: int, width: int) -> torch.Tensor:
        """(N, h, w, 4, 5): steps ahead and to the right to the hider's place, for each heading, their distance, and the
        direction."""
        down = place[:, :1] - torch.arange(height, device=place.device)
        right = place[:, 1:2] - torch.arange(width, device=place.device)
        down, right = down[:, :, None, None], right[:, None, :, None]
        # No matrix products: autocast would round them.
        ahead, beside = (
            down * rows + right * columns for rows, columns in (self.headings.T, self.headings.roll(-1, 0).T)
        )
        distance = torch.hypot(ahead, beside)
        lengths = torch.stack([ahead, beside, distance], -1) / OFFSET_SCALE
        return torch.cat([lengths.clamp(-2, 2), torch.stack([ahead, beside], -1) / (distance[..., None] + 1)], -1)

    def _embed(self, outcome: torch.Tensor) -> torch.Tensor:
        """Outcomes (N,) as vectors (N, 32): the sum of their height's, modality's, row's and column's."""
        placed = outcome != NOT_HIDDEN
        standing, target = outcome // NUM_PLACEMENTS, outcome % NUM_PLACEMENTS
        parts = (
            (self.height, standing), (self.modality, target // CELLS**2), (self.row, target // CELLS % CELLS),
            (self.column, target % CELLS),
        )  # fmt: skip
        return torch.stack([part(torch.where(placed, value, part.num_embeddings - 1)) for part, value in parts]).sum(0)
