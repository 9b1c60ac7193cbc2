"""The agent's memory: a convolutional GRU, an LSTM and the metric map compute the DIR from SIRs and observations.

Recurrent states are reset where a stage begins; only the map carries over from exploring to hiding. A manipulation (OM)
runs inside hiding (OH): OH's recurrent state is suspended meanwhile and then restored unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from scrubjay import tree
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.metric_map import CAPACITY, Entries, MapReader, MapState, MetricMap, gru_cell
from scrubjay.agent.normalization import make_norm
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.game.observation import NO_ACTION, Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS

NO_STAGE = -1
"""The stage before a game's first step."""
# ints: under torch.compile, a tensor compared with an enum member is silently False.
EM, OH, OM, S = int(Stage.EM), int(Stage.OH), int(Stage.OM), int(Stage.S)
ALL_STAGES = frozenset(Stage)


@dataclass(frozen=True)
class RecurrentState:
    """The states of the recurrent networks in B games."""

    grid: torch.Tensor
    """(B, G + 1, 7, 7): the convolutional GRU's; its last channel is the change map W."""
    hidden: torch.Tensor
    """(B, L): the LSTM's output."""
    cell: torch.Tensor
    """(B, L): the LSTM's cell."""

    def masked(self, mask: torch.Tensor) -> RecurrentState:
        """The states times a mask (B,) of 0 and 1: resets games where it is 0."""
        return RecurrentState(
            self.grid * mask[:, None, None, None], self.hidden * mask[:, None], self.cell * mask[:, None]
        )

    def where(self, games: torch.Tensor, other: RecurrentState) -> RecurrentState:
        """These states where `games` (B,) bool, `other` elsewhere."""
        return RecurrentState(
            torch.where(games[:, None, None, None], self.grid, other.grid),
            torch.where(games[:, None], self.hidden, other.hidden),
            torch.where(games[:, None], self.cell, other.cell),
        )


@dataclass(frozen=True)
class MemoryState:
    """The memory's state in B games between two steps."""

    recurrent: RecurrentState
    """Of the current stage."""
    suspended: RecurrentState
    """Of OH, while OM runs."""
    stage: torch.Tensor
    """(B,) int64: the last step's, or NO_STAGE."""
    metric_map: MapState


@dataclass(frozen=True)
class DynamicRepresentation:
    """The dynamic image representation; leading axes (B,) or (T, B)."""

    flat: torch.Tensor
    """(..., L): the LSTM's output, which actors and critics read."""
    grid: torch.Tensor
    """(..., G, 7, 7): the convolutional GRU's state."""
    change: torch.Tensor
    """(..., 7, 7): the change map W, before its softmax over the cells."""


class Tiled(nn.Module):
    """A zero-padded 3 x 3 convolution of a vector tiled over all 7 x 7 cells.

    A cell's output depends only on which of the kernel's nine taps fall inside the image, so each tap is multiplied
    once instead of 49 times.
    """

    inside: torch.Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.taps = nn.Linear(inputs, outputs * 9, bias=False)
        nn.init.uniform_(self.taps.weight, -((9 * inputs) ** -0.5), (9 * inputs) ** -0.5)
        along = (torch.arange(CELLS) + torch.arange(-1, 2)[:, None]).clamp(-1, CELLS).remainder(CELLS + 1) < CELLS
        inside = along[:, None, :, None] & along[None, :, None, :]
        self.register_buffer("inside", inside.reshape(9, CELLS**2).float(), persistent=False)

    def forward(self, vector: torch.Tensor) -> torch.Tensor:
        """(..., inputs) to (..., outputs, 7, 7)."""
        taps = self.taps(vector).unflatten(-1, (-1, 9))
        return (taps @ self.inside.to(taps.dtype)).unflatten(-1, (CELLS, CELLS))


class ObservationEmbedding(nn.Module):
    """Embeds the observation's inputs other than the image."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.action = nn.Embedding(2 * (NO_ACTION + 1), config.action_embedding)
        """Index 2 * action + success; NO_ACTION included."""
        self.standing = nn.Embedding(2, config.standing_embedding)
        self.goal = nn.Embedding(len(GOALS), config.goal_embedding)
        side = 2 * CELLS - 1
        self.target = nn.Parameter(torch.randn(len(MODALITIES), config.target_embedding, side, side))
        self.length = 2 * config.action_embedding + config.standing_embedding + config.goal_embedding

    def vector(self, observation: Observation) -> torch.Tensor:
        """(..., length): the last action and its success, where the object landed, standing, goal."""
        last = self.action(observation.last_action * 2 + observation.last_success.long())
        landed = self.action(observation.landed * 2 + 1)
        landed = landed * (observation.landed != NO_ACTION)[..., None]
        return torch.cat([last, landed, self.standing(observation.standing.long()), self.goal(observation.goal)], -1)

    def target_planes(self, observation: Observation) -> torch.Tensor:
        """(..., 8, 7, 7): a crop of the learned tensor, centered on OM's target cell; 0 in other stages."""
        # windows[m, i, j] is the crop for cell (i, j): the further down the cell, the higher up the crop begins.
        windows = self.target.unfold(2, CELLS, 1).unfold(3, CELLS, 1).flip(2, 3).permute(0, 2, 3, 1, 4, 5)
        modality, row, column = observation.target.unbind(-1)
        index = (modality * CELLS + row) * CELLS + column
        planes = nn.functional.embedding(index, windows.flatten(0, 2).flatten(1))
        planes = planes * (observation.stage == OM)[..., None]
        return planes.unflatten(-1, (-1, CELLS, CELLS))


class Memory(nn.Module):
    """SIRs and observations to DIRs; the state goes in and comes out."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = ObservationEmbedding(config)
        self.metric_map, self.map_reader = MetricMap(config.map_value), MapReader(config)
        channels = config.gru_channels + 1
        self.sir_conv = nn.Conv2d(config.sir_channels + config.target_embedding, 3 * channels, 3, padding=1)
        self.embedding_conv = Tiled(self.embedding.length, 3 * channels)
        self.hidden_conv = Tiled(config.tiled, 3 * channels)
        self.grid_conv = nn.Conv2d(channels, 3 * channels, 3, padding=1)
        inputs = config.gru_channels + config.map_read
        self.sir_norm = make_norm(config.sir_channels, config.running_norms)
        self.lstm_norm = make_norm(inputs, config.running_norms)
        self.lstm_gates = nn.Linear(inputs + config.lstm, 4 * config.lstm, bias=not config.gate_norm)
        self.gate_norm = nn.GroupNorm(4, 4 * config.lstm) if config.gate_norm else None
        """Layer norm of each gate's pre-activations, so that no gate saturates for good."""
        # The forget gate's bias is 1, so that gradients reach back over many steps from the beginning.
        biased = self.lstm_gates if self.gate_norm is None else self.gate_norm
        nn.init.ones_(biased.bias[config.lstm : 2 * config.lstm])

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MemoryState:
        """Zero recurrent states and empty maps."""
        config, like = self.config, self.metric_map.initial_hidden

        def empty() -> RecurrentState:
            grid = like.new_zeros(games, config.gru_channels + 1, CELLS, CELLS)
            return RecurrentState(grid, like.new_zeros(games, config.lstm), like.new_zeros(games, config.lstm))

        stage = torch.full((games,), NO_STAGE, device=like.device)
        return MemoryState(empty(), empty(), stage, self.metric_map.initial_state(games, capacity))

    def step(
        self,
        state: MemoryState,
        sir: torch.Tensor,
        pooled: torch.Tensor,
        observation: Observation,
        is_first: torch.Tensor,
    ) -> tuple[DynamicRepresentation, MemoryState]:
        """One step of B games: `sequence` without the time axis."""
        inputs = tree.index((sir, pooled, observation, is_first), None)
        dirs, state = self.sequence(state, *inputs)
        return tree.index(dirs, 0), state

    def sequence(
        self,
        state: MemoryState,
        sir: torch.Tensor,
        pooled: torch.Tensor,
        observation: Observation,
        is_first: torch.Tensor,
        stages: frozenset[int] = ALL_STAGES,
    ) -> tuple[DynamicRepresentation, MemoryState]:
        """T steps of B games: the DIRs (T, B, ...) and the state after the last step.

        `sir` is (T, B, C, 7, 7). `pooled` (T, B, C) is written into the map together with the goal's embedding.
        `is_first` (T, B) bool marks the first steps of games; stages begin where the observation's stage changes. OM
        reads the map without writing: it stays at OH's place, and OH finds its map unchanged. PS does not write either.
        `stages`: the stages that occur, if known; without OH there is nothing to suspend.
        """
        self._check(state, sir, pooled, observation, is_first)
        stage, place = observation.stage, observation.place
        previous = torch.cat([state.stage[None], stage[:-1]])
        entered = is_first | (stage != previous)
        suspend = (previous == OH) & (stage == OM)
        resume = (previous == OM) & (stage == OH)

        value = torch.cat([pooled, self.embedding.goal(observation.goal)], -1)
        writes = (stage == EM) | (stage == OH) | (stage == S)
        clears = is_first | entered & ((stage == EM) | (stage == S))
        entries, metric_map = self.metric_map.write(state.metric_map, place, value, writes, clears)
        around, entries = self.map_reader.read_around(entries, place), _cast_for_autocast(entries)
        gates = self._input_gates(sir, observation)

        recurrent, suspended = state.recurrent, state.suspended
        continues = (~entered).to(recurrent.cell.dtype)
        states, lstm_inputs = [], []
        for step in range(len(stage)):
            before, recurrent = recurrent, recurrent.masked(continues[step])
            if OH in stages:
                kept = (~is_first[step]).to(recurrent.cell.dtype)
                suspended = before.where(suspend[step], suspended).masked(kept)
                recurrent = suspended.where(resume[step], recurrent)
            recurrent, lstm_input = self._advance(recurrent, gates[step], around[step], entries.at(step))
            states.append(recurrent)
            lstm_inputs.append(lstm_input)
        if self.config.running_norms and torch.is_grad_enabled():
            self.sir_norm.update(sir.movedim(2, -1))
            self.lstm_norm.update(torch.stack(lstm_inputs))
        grid = torch.stack([state.grid for state in states])
        flat = torch.stack([state.hidden for state in states])
        dirs = DynamicRepresentation(flat, grid[:, :, :-1], grid[:, :, -1])
        return dirs, MemoryState(recurrent, suspended, stage[-1], metric_map)

    def _input_gates(self, sir: torch.Tensor, observation: Observation) -> torch.Tensor:
        """The inputs' share of the convolutional GRU's gates, for all steps at once: (T, B, 3 (G + 1), 7, 7)."""
        planes = torch.cat([self.sir_norm(sir, dim=2), self.embedding.target_planes(observation).to(sir.dtype)], 2)
        from_planes = self.sir_conv(planes.flatten(0, 1)).unflatten(0, sir.shape[:2])
        return from_planes + self.embedding_conv(self.embedding.vector(observation))

    def _advance(
        self, last: RecurrentState, gates: torch.Tensor, around: torch.Tensor, entries: Entries
    ) -> tuple[RecurrentState, torch.Tensor]:
        """One step of the recurrent networks, and the LSTM's input before normalization (B, G + map_read)."""
        gates = gates + self.hidden_conv(last.hidden[:, : self.config.tiled])
        grid = gru_cell(gates, self.grid_conv(last.grid), last.grid)
        pooled = grid[:, :-1].mean((2, 3))
        parts = (pooled, around, self.map_reader.attend(entries, pooled))
        lstm_input = torch.cat([part.to(pooled.dtype) for part in parts], 1)
        gates = self.lstm_gates(torch.cat([self.lstm_norm(lstm_input), last.hidden], 1))
        if self.gate_norm is not None:
            gates = self.gate_norm(gates)
        input_gate, forget_gate, new, output_gate = gates.to(last.cell.dtype).chunk(4, 1)
        cell = torch.sigmoid(forget_gate) * last.cell + torch.sigmoid(input_gate) * torch.tanh(new)
        return RecurrentState(grid, torch.sigmoid(output_gate) * torch.tanh(cell), cell), lstm_input

    def _check(
        self,
        state: MemoryState,
        sir: torch.Tensor,
        pooled: torch.Tensor,
        observation: Observation,
        is_first: torch.Tensor,
    ) -> None:
        """Raises ValueError that names the argument of a wrong shape or type."""
        lead = tuple(observation.stage.shape)
        channels = self.config.sir_channels
        shapes = {
            "sir": (sir, (*lead, channels, CELLS, CELLS)),
            "pooled": (pooled, (*lead, channels)),
            "place": (observation.place, (*lead, 4)),
            "target": (observation.target, (*lead, 3)),
            "is_first": (is_first, lead),
            "state.stage": (state.stage, lead[1:]),
        }
        for name, (tensor, shape) in shapes.items():
            if tuple(tensor.shape) != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
        if is_first.dtype != torch.bool:
            raise ValueError(f"is_first: expected torch.bool, got {is_first.dtype}")


def _cast_for_autocast(entries: Entries) -> Entries:
    """Entries in autocast's dtype, so that they are converted once and not at every step."""
    kind = entries.values.device.type
    if not torch.is_autocast_enabled(kind):
        return entries
    return Entries(entries.keys, entries.values.to(torch.get_autocast_dtype(kind)), entries.written)
