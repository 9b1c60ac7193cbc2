"""The agent's memory: a convolutional GRU, an LSTM and the metric map compute the DIR from SIRs and observations.

Recurrent states are reset where a stage begins; only the map carries over from exploring to hiding. A manipulation (OM)
runs inside hiding (OH): OH's recurrent state is suspended meanwhile and then restored unchanged. It has no map, so that
it is the same alone as in a whole game.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay import tree
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.deferred import Convolution, DeferredLayer, Linear
from scrubjay.agent.fuse import compute_dtype, fuse
from scrubjay.agent.metric_map import CAPACITY, Entries, MapReader, MapState, MetricMap, gru_cell
from scrubjay.agent.normalization import Norm, make_norm
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.game.observation import NO_ACTION, Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS

NO_STAGE = -1
"""The stage before a game's first step."""
# ints: under torch.compile, a tensor compared with an enum member is silently False.
EM, OH, OM, S = int(Stage.EM), int(Stage.OH), int(Stage.OM), int(Stage.S)
ALL_STAGES = frozenset(Stage)
ALIGNMENT = {"cuda": 8}
"""By device: channels of convolutions, and lengths of products, come in multiples of this."""
TAPS = 16
"""A 3 x 3 kernel's nine taps, padded."""


@dataclass(frozen=True)
class RecurrentState:
    """The states of the recurrent networks in B games."""

    grid: torch.Tensor
    """(B, G + 1, 7, 7): the convolutional GRU's; its last channel is the change map W."""
    hidden: torch.Tensor
    """(B, L): the LSTM's output."""
    cell: torch.Tensor
    """(B, L): the LSTM's cell."""

    @property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.grid, self.hidden, self.cell


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
    """(..., L): the LSTM's output, which actors and critics read; of a navigation agent, the pooled grid."""
    grid: torch.Tensor
    """(..., G, 7, 7): the convolutional GRU's state."""
    change: torch.Tensor
    """(..., 7, 7): the change map W, before its softmax over the cells."""


class Tiled(nn.Module):
    """A zero-padded 3 x 3 convolution of a vector tiled over all 7 x 7 cells, to 3 gates.

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
        inside = F.pad(inside.reshape(9, CELLS**2).T.float(), (0, TAPS - 9))
        self.register_buffer("inside", inside, persistent=False)

    def weight(self, channels: int) -> torch.Tensor:
        """(TAPS * 3 * channels, inputs): the taps' weights, each gate's outputs padded to `channels`."""
        taps = pad_gates(self.taps.weight.unflatten(0, (-1, 9)).transpose(0, 1), channels, dim=1)
        return F.pad(taps, (0, 0, 0, 0, 0, TAPS - 9)).flatten(0, 1)

    def spread(self, taps: torch.Tensor) -> torch.Tensor:
        """Products (..., TAPS * outputs) with the taps to the cells' outputs (..., 49, outputs)."""
        return self.inside.to(taps.dtype) @ taps.unflatten(-1, (TAPS, -1))

    def forward(self, vector: torch.Tensor, channels: int) -> torch.Tensor:
        """(..., inputs) to (..., 49, 3 * channels)."""
        return self.spread(F.linear(vector, self.weight(channels)))


def pad_gates(tensor: torch.Tensor, channels: int, dim: int = 0) -> torch.Tensor:
    """A tensor whose axis `dim` holds three gates, each padded with zeros to `channels`."""
    gates = tensor.unflatten(dim, (3, -1))
    missing = channels - gates.shape[dim + 1]
    if _acts_unpadded(missing):
        return tensor
    return F.pad(gates, (0, 0) * (gates.ndim - dim - 2) + (0, missing)).flatten(dim, dim + 1)


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
        finds the map empty and does not write: OH finds it unchanged. PS does not write either.
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
        entries = replace(entries, written=entries.written & (stage != OM)[..., None])
        around, layers = self.map_reader.read_around(entries, place), _Layers(self, entries)
        gates = self._input_gates(sir, observation, layers.channels)

        recurrent, suspended = layers.to_cells(state.recurrent), layers.to_cells(state.suspended)
        states, lstm_inputs = [], []
        # Not indexed step by step: each step's gradient would be as large as that of the whole sequence.
        for step, inputs in enumerate(zip(gates.unbind(), around.unbind(), entries.written, strict=True)):
            if OH in stages:
                switches = suspend[step], resume[step], entered[step], is_first[step]
                recurrent, suspended = _switch_stage(recurrent, suspended, *switches)
            else:
                recurrent = RecurrentState(*_reset(*recurrent.tensors, entered[step]))
            recurrent, lstm_input = layers.advance(recurrent, *inputs)
            states.append(recurrent)
            lstm_inputs.append(lstm_input)
        if self.config.running_norms and torch.is_grad_enabled():
            self.sir_norm.update(sir.movedim(2, -1))
            self.lstm_norm.update(torch.stack(lstm_inputs))
        grid = from_cells(torch.stack([state.grid for state in states]))
        flat = torch.stack([state.hidden for state in states])
        channels = self.config.gru_channels
        dirs = DynamicRepresentation(flat, grid[:, :, :channels], grid[:, :, channels])
        recurrent, suspended = layers.from_cells(recurrent), layers.from_cells(suspended)
        return dirs, MemoryState(recurrent, suspended, stage[-1], metric_map)

    def _input_gates(self, sir: torch.Tensor, observation: Observation, channels: int) -> torch.Tensor:
        """The inputs' share of the convolutional GRU's gates, for all steps at once: (T, B, 49, 3 * channels)."""
        planes = torch.cat([self.sir_norm(sir, dim=2), self.embedding.target_planes(observation).to(sir.dtype)], 2)
        weight, bias = (pad_gates(parameter, channels) for parameter in self.sir_conv.parameters())
        from_planes = F.conv2d(_channels_last(planes.flatten(0, 1)), _channels_last(weight), bias, padding=1)
        tiled = self.embedding_conv(self.embedding.vector(observation), channels)
        return _flat_cells(from_planes).unflatten(0, sir.shape[:2]) + tiled

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


class GridLayers:
    """The convolutional GRU's recurrent layer, prepared for the steps of one sequence.

    Inside a sequence the grids are (B, 49, P): cells first, as convolutions on a GPU want them, and with their G + 1
    channels padded to a multiple of 8, without which tensor cores are idle. Padding stays 0.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory, config = memory, memory.config
        like = memory.grid_conv.weight
        self.align = ALIGNMENT.get(like.device.type, 1)
        self.dtype, self.channels = compute_dtype(like), -(-(config.gru_channels + 1) // self.align) * self.align
        grid_weight, grid_bias = (pad_gates(parameter, self.channels) for parameter in memory.grid_conv.parameters())
        missing = self.channels - like.shape[1]
        if not _acts_unpadded(missing):
            grid_weight = F.pad(grid_weight, (0, 0, 0, 0, 0, missing))
        self.grid_conv = self.deferred(Convolution(), _channels_last(grid_weight), grid_bias)

    def deferred(self, operation: Linear | Convolution, *weights: torch.Tensor) -> DeferredLayer:
        return DeferredLayer(operation, *(weight.to(self.dtype) for weight in weights))

    def hidden_gates(self, grid: torch.Tensor) -> torch.Tensor:
        """The last state's share (B, 49, 3 P) of the gates."""
        return _flat_cells(self.grid_conv(from_cells(grid.to(self.dtype))))

    def to_cells(self, state: RecurrentState) -> RecurrentState:
        """A state with its grid (B, G + 1, 7, 7) as cells (B, 49, P)."""
        grid = state.grid.flatten(2).transpose(1, 2)
        return RecurrentState(F.pad(grid, (0, self.channels - grid.shape[-1])), state.hidden, state.cell)

    def from_cells(self, state: RecurrentState) -> RecurrentState:
        """The inverse of `to_cells`."""
        grid = from_cells(state.grid)[:, : self.memory.config.gru_channels + 1]
        return RecurrentState(grid.contiguous(), state.hidden, state.cell)


class _Layers(GridLayers):
    """All of the memory's recurrent layers, prepared for the steps of one sequence."""

    def __init__(self, memory: Memory, entries: Entries) -> None:
        super().__init__(memory)
        config = memory.config
        self.hidden_taps = self.deferred(Linear(), memory.hidden_conv.weight(self.channels))
        lstm_weight = memory.lstm_gates.weight
        from_input, from_hidden = lstm_weight.split([config.gru_channels + config.map_read, config.lstm], 1)
        self.lstm_padding = -from_input.shape[1] % self.align
        bias = () if memory.lstm_gates.bias is None else (memory.lstm_gates.bias,)
        if not _acts_unpadded(self.lstm_padding):
            lstm_weight = torch.cat([F.pad(from_input, (0, self.lstm_padding)), from_hidden], 1)
        self.lstm_gates = self.deferred(Linear(), lstm_weight, *bias)
        self.read_map = memory.map_reader.attention(entries)

    def advance(
        self, last: RecurrentState, gates: torch.Tensor, around: torch.Tensor, written: torch.Tensor
    ) -> tuple[RecurrentState, torch.Tensor]:
        """One step of the recurrent networks, and the LSTM's input before normalization (B, G + map_read)."""
        memory, dtype = self.memory, self.dtype
        tiled = memory.hidden_conv.spread(self.hidden_taps(last.hidden[:, : memory.config.tiled].to(dtype)))
        hidden_gates = self.hidden_gates(last.grid)
        grid, pooled = _grid_step(gates, tiled, hidden_gates, last.grid, memory.config.gru_channels)
        read = self.read_map(pooled, written)
        lstm_input, inputs = _lstm_inputs(memory.lstm_norm, pooled, around, read, last.hidden, self.lstm_padding, dtype)
        lstm_gates = self.lstm_gates(inputs)
        if memory.gate_norm is not None:
            lstm_gates = _normalize_gates(lstm_gates, memory.gate_norm.weight, memory.gate_norm.bias, last.cell.dtype)
        hidden, cell = _lstm_step(lstm_gates, last.cell)
        return RecurrentState(grid, hidden, cell), lstm_input


def _switch_stage(
    last: RecurrentState,
    suspended: RecurrentState,
    suspend: torch.Tensor,
    resume: torch.Tensor,
    entered: torch.Tensor,
    is_first: torch.Tensor,
) -> tuple[RecurrentState, RecurrentState]:
    """States before a step: of its stage, and of a suspended OH. The other arguments are (B,) bool."""
    pairs = zip(last.tensors, suspended.tensors, strict=True)
    parts = [_switch_part(*pair, suspend, resume, entered, is_first) for pair in pairs]
    return RecurrentState(*(part[0] for part in parts)), RecurrentState(*(part[1] for part in parts))


@fuse
def _switch_part(
    last: torch.Tensor,
    suspended: torch.Tensor,
    suspend: torch.Tensor,
    resume: torch.Tensor,
    entered: torch.Tensor,
    is_first: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor (B, ...) of `_switch_stage`."""
    suspended = torch.where(_like(suspend, last), last, suspended) * ~_like(is_first, last)
    return torch.where(_like(resume, last), suspended, last * ~_like(entered, last)), suspended


@fuse
def _reset(
    grid: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor, entered: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """States (B, ...), 0 where `entered` (B,) bool."""
    return tuple(last * ~_like(entered, last) for last in (grid, hidden, cell))


def _like(games: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """Flags (B,) with as many axes as states (B, ...)."""
    return games.view(-1, *(1,) * (states.ndim - 1))


@fuse
def _grid_step(
    gates: torch.Tensor, tiled: torch.Tensor, hidden_gates: torch.Tensor, last: torch.Tensor, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The convolutional GRU's next state (B, 49, P) from three shares of its gates (B, 49, 3 P).

    And the mean of its first channels over cells (B, channels).
    """
    inputs = gates.to(last.dtype) + tiled.to(last.dtype)
    grid = gru_cell(inputs, hidden_gates, last, dim=-1)
    return grid, grid[..., :channels].mean(1)


@fuse
def _lstm_inputs(
    norm: Norm,
    pooled: torch.Tensor,
    around: torch.Tensor,
    read: torch.Tensor,
    hidden: torch.Tensor,
    padding: int,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The LSTM's input (B, G + map_read); and normalized, with padding, followed by the last output."""
    lstm_input = torch.cat([part.to(pooled.dtype) for part in (pooled, around, read)], 1)
    return lstm_input, torch.cat([F.pad(norm(lstm_input), (0, padding)), hidden], 1).to(dtype)


@fuse
def _normalize_gates(gates: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The LSTM's gates (B, 4 L), layer-normalized one by one."""
    normalized = F.layer_norm(gates.to(dtype).unflatten(1, (4, -1)), (gates.shape[1] // 4,))
    return normalized.flatten(1) * weight + bias


@fuse
def _lstm_step(gates: torch.Tensor, last: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The LSTM's output and cell (B, L) from its gates (B, 4 L)."""
    input_gate, forget_gate, new, output_gate = gates.to(last.dtype).chunk(4, 1)
    cell = torch.sigmoid(forget_gate) * last + torch.sigmoid(input_gate) * torch.tanh(new)
    return torch.sigmoid(output_gate) * torch.tanh(cell), cell


def _acts_unpadded(missing: int) -> bool:
    """Whether weights serve as they are: an agent that acts on a CPU would copy all of them at every step."""
    return missing == 0 and not torch.is_grad_enabled()


def from_cells(cells: torch.Tensor) -> torch.Tensor:
    """Cells (..., 49, C) as images (..., C, 7, 7), a view in channels_last memory format."""
    return cells.unflatten(-2, (CELLS, CELLS)).movedim(-1, -3)


def _flat_cells(image: torch.Tensor) -> torch.Tensor:
    """Images (N, C, 7, 7) as cells (N, 49, C)."""
    return image.permute(0, 2, 3, 1).flatten(1, 2)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last)
