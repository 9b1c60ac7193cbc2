"""The memory of the navigation baseline: the convolutional GRU alone, without LSTM and map (the paper's G.1).

The flat DIR is an average of the GRU's state over its cells, weighted by a softmax of a 1 x 1 convolution, which is
learned with the policy.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.fuse import fuse
from scrubjay.agent.memory import (
    ALL_STAGES,
    NO_STAGE,
    DynamicRepresentation,
    GridLayers,
    Memory,
    MemoryState,
    ObservationEmbedding,
    RecurrentState,
    Tiled,
    from_cells,
)
from scrubjay.agent.metric_map import CAPACITY, EMPTY, MapState, gru_cell
from scrubjay.agent.normalization import make_norm
from scrubjay.game.observation import Observation
from scrubjay.sim.cells import CELLS


class NavigationMemory(Memory):
    """SIRs and observations to DIRs; of the state, only the GRU's grid and the stage are in use."""

    def __init__(self, config: AgentConfig) -> None:
        nn.Module.__init__(self)  # Not the parts of a full memory.
        self.config = config
        self.embedding = ObservationEmbedding(config)
        channels = config.gru_channels + 1
        self.sir_conv = nn.Conv2d(config.sir_channels + config.target_embedding, 3 * channels, 3, padding=1)
        self.embedding_conv = Tiled(self.embedding.length, 3 * channels)
        self.grid_conv = nn.Conv2d(channels, 3 * channels, 3, padding=1)
        self.sir_norm = make_norm(config.sir_channels, config.running_norms)
        self.pool = nn.Conv2d(config.gru_channels, 1, 1, bias=False)
        # All cells weigh the same at first.
        nn.init.zeros_(self.pool.weight)

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MemoryState:
        """A zero grid; there is no map, whatever its capacity."""
        like = self.pool.weight
        grid, none = like.new_zeros(games, self.config.gru_channels + 1, CELLS, CELLS), like.new_zeros(games, 0)
        stage = torch.full((games,), NO_STAGE, device=like.device)
        keys = torch.full((games, 1), EMPTY, device=like.device)
        return MemoryState(
            RecurrentState(grid, none, none), RecurrentState(none, none, none), stage,
            MapState(keys, like.new_zeros(games, 1, 0), torch.zeros_like(stage)),
        )  # fmt: skip

    def sequence(
        self,
        state: MemoryState,
        sir: torch.Tensor,
        pooled: torch.Tensor,
        observation: Observation,
        is_first: torch.Tensor,
        stages: frozenset[int] = ALL_STAGES,
    ) -> tuple[DynamicRepresentation, MemoryState]:
        """T steps of B games: the DIRs (T, B, ...) and the state after the last step. Every stage begins anew."""
        self._check(state, sir, pooled, observation, is_first)
        stage = observation.stage
        entered = is_first | (stage != torch.cat([state.stage[None], stage[:-1]]))
        layers = GridLayers(self)
        gates = self._input_gates(sir, observation, layers.channels)
        recurrent, grids = layers.to_cells(state.recurrent), []
        grid = recurrent.grid
        # Not indexed step by step: each step's gradient would be as large as that of the whole sequence.
        for inputs, begins in zip(gates.unbind(), entered, strict=True):
            grid = grid * ~begins[:, None, None]
            grid = _grid_step(inputs, layers.hidden_gates(grid), grid)
            grids.append(grid)
        if torch.is_grad_enabled():
            self.sir_norm.update(sir.movedim(2, -1))
        cells, channels = torch.stack(grids), self.config.gru_channels
        image = from_cells(cells)
        dirs = DynamicRepresentation(self.pooled(cells[..., :channels]), image[:, :, :channels], image[:, :, channels])
        after = layers.from_cells(RecurrentState(grid, recurrent.hidden, recurrent.cell))
        return dirs, MemoryState(after, state.suspended, stage[-1], state.metric_map)

    def pooled(self, cells: torch.Tensor) -> torch.Tensor:
        """Cells (..., 49, G) averaged with their weights: (..., G)."""
        logits = F.linear(cells, self.pool.weight.flatten(1)).to(cells.dtype)
        return (logits.softmax(-2) * cells).sum(-2)


@fuse
def _grid_step(gates: torch.Tensor, hidden_gates: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """The convolutional GRU's next state (B, 49, P) from two shares of its gates (B, 49, 3 P)."""
    return gru_cell(gates, hidden_gates, last, dim=-1)
