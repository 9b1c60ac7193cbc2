"""The agent's memory: a convolutional GRU, an LSTM and the metric map make the DIR of what is seen and remembered.

Every stage's episode begins with empty recurrent states; only the map is carried from exploring to hiding. A
manipulation (OM) runs inside hiding (OH): the state of OH is put aside meanwhile and taken up again, as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from scrubjay import tree
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.metric_map import CAPACITY, Entries, MapReader, MapState, MetricMap, gru_cell
from scrubjay.agent.normalization import RunningNorm
from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.game.observation import NO_ACTION, Observation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS

NO_STAGE = -1
"""The stage before a game's first step."""
# Plain numbers: torch.compile takes a comparison of a tensor with an enumeration's member for false.
EM, OH, OM, S = int(Stage.EM), int(Stage.OH), int(Stage.OM), int(Stage.S)
ALL_STAGES = frozenset(Stage)


@dataclass(frozen=True)
class RecurrentState:
    """The states of the recurrent networks in B games; leading axes as given."""

    grid: torch.Tensor
    """(..., G + 1, 7, 7): the convolutional GRU's, the change map W its last channel."""
    hidden: torch.Tensor
    """(..., L): the LSTM's output."""
    cell: torch.Tensor
    """(..., L): the LSTM's cell."""

    def masked(self, shares: torch.Tensor) -> RecurrentState:
        """A share (B,) of the states in each game: all of them, or nothing."""
        return RecurrentState(
            self.grid * shares[:, None, None, None], self.hidden * shares[:, None], self.cell * shares[:, None]
        )

    def where(self, games: torch.Tensor, other: RecurrentState) -> RecurrentState:
        """These states in some games (B,), and others elsewhere."""
        return RecurrentState(
            torch.where(games[:, None, None, None], self.grid, other.grid),
            torch.where(games[:, None], self.hidden, other.hidden),
            torch.where(games[:, None], self.cell, other.cell),
        )


@dataclass(frozen=True)
class MemoryState:
    """All that an agent remembers of B games from one step to the next."""

    recurrent: RecurrentState
    """Of the stage under way."""
    suspended: RecurrentState
    """Of OH, while OM runs."""
    stage: torch.Tensor
    """(B,) int64: of the last step, or NO_STAGE."""
    metric_map: MapState


@dataclass(frozen=True)
class DynamicRepresentation:
    """The dynamic image representation; leading axes (B,) or (T, B)."""

    flat: torch.Tensor
    """(..., L): the LSTM's output, from which actors and critics read."""
    grid: torch.Tensor
    """(..., G, 7, 7): the convolutional GRU's state."""
    change: torch.Tensor
    """(..., 7, 7): the change map W, before its softmax over the cells."""


class Tiled(nn.Module):
    """A 3 x 3 convolution, padded with 0, of numbers that are the same in all 7 x 7 cells.

    A cell's result depends only on which of the kernel's nine taps fall inside the image, so the taps are multiplied
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

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """(..., inputs) to (..., outputs, 7, 7)."""
        taps = self.taps(numbers).unflatten(-1, (-1, 9))
        return (taps @ self.inside.to(taps.dtype)).unflatten(-1, (CELLS, CELLS))


class ObservationEmbedding(nn.Module):
    """Embeddings of what an agent is told beside the image."""

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        self.action = nn.Embedding(2 * (NO_ACTION + 1), config.action_embedding)
        """One for each action, or none, and its success."""
        self.standing = nn.Embedding(2, config.standing_embedding)
        self.goal = nn.Embedding(len(GOALS), config.goal_embedding)
        side = 2 * CELLS - 1
        self.target = nn.Parameter(torch.randn(len(MODALITIES), config.target_embedding, side, side))
        self.length = 2 * config.action_embedding + config.standing_embedding + config.goal_embedding

    def vector(self, observation: Observation) -> torch.Tensor:
        """(..., length): last action and success, where an object landed, standing, goal."""
        last = self.action(observation.last_action * 2 + observation.last_success.long())
        landed = self.action(observation.landed * 2 + 1)
        landed = landed * (observation.landed != NO_ACTION)[..., None]
        return torch.cat([last, landed, self.standing(observation.standing.long()), self.goal(observation.goal)], -1)

    def target_planes(self, observation: Observation) -> torch.Tensor:
        """(..., 8, 7, 7): the part of the learned tensor whose middle lies on OM's target cell; 0 in other stages."""
        # [m, :, i, j] is the window for cell (i, j): the further down the cell, the higher up the window begins.
        windows = self.target.unfold(2, CELLS, 1).unfold(3, CELLS, 1).flip(2, 3).permute(0, 2, 3, 1, 4, 5)
        modality, row, column = observation.target.unbind(-1)
        chosen = nn.functional.embedding((modality * CELLS + row) * CELLS + column, windows.flatten(0, 2).flatten(1))
        chosen = chosen * (observation.stage == OM)[..., None]
        return chosen.unflatten(-1, (-1, CELLS, CELLS))


class Memory(nn.Module):
    """Turns SIRs and observations into DIRs; state goes in and comes out."""

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
        self.sir_norm, self.lstm_norm = (
            RunningNorm(config.sir_channels),
            RunningNorm(config.gru_channels + config.map_read),
        )
        self.lstm_gates = nn.Linear(config.gru_channels + config.map_read + config.lstm, 4 * config.lstm, bias=False)
        self.gate_norm = nn.GroupNorm(4, 4 * config.lstm)
        """Each gate's numbers, taken together, keep mean 0 and deviation 1, so that no gate is shut for good."""
        # The LSTM begins by keeping what it has, so that errors reach back over many steps from the first.
        nn.init.ones_(self.gate_norm.bias[config.lstm : 2 * config.lstm])

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MemoryState:
        """Nothing remembered."""
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
        summary: torch.Tensor,
        observation: Observation,
        begins: torch.Tensor,
    ) -> tuple[DynamicRepresentation, MemoryState]:
        """One step of B games, like `sequence` without its leading axis."""
        one = tree.index(observation, None)
        dirs, state = self.sequence(state, sir[None], summary[None], one, begins[None])
        return tree.index(dirs, 0), state

    def sequence(
        self,
        state: MemoryState,
        sir: torch.Tensor,
        summary: torch.Tensor,
        observation: Observation,
        begins: torch.Tensor,
        stages: frozenset[int] = ALL_STAGES,
    ) -> tuple[DynamicRepresentation, MemoryState]:
        """T steps of B games: the DIRs (T, B, ...) and the state after the last step.

        `sir` is (T, B, C, 7, 7), `summary` (T, B, C) its pooled vector, which is written into the map with the goal's
        embedding. `begins` (T, B) bool says where a game begins; stages begin where the observation's changes. OM
        reads the map and does not write: it stays at OH's place, and OH finds its map as it was. Nor does PS write.
        `stages` are those that there are steps of, where that is known: without OH, nothing has to be put aside.
        """
        self._check(state, sir, summary, observation, begins)
        stage, place = observation.stage, observation.place
        before = torch.cat([state.stage[None], stage[:-1]])
        entered = begins | (stage != before)
        aside = (before == OH) & (stage == OM)
        back = (before == OM) & (stage == OH)

        value = torch.cat([summary, self.embedding.goal(observation.goal)], -1)
        writes = (stage == EM) | (stage == OH) | (stage == S)
        emptied = begins | entered & ((stage == EM) | (stage == S))
        entries, metric_map = self.metric_map.write(state.metric_map, place, value, writes, emptied)
        around, entries = self.map_reader.read_around(entries, place), _lightened(entries)
        driven = self._driven(sir, observation)

        now, kept = state.recurrent, state.suspended
        goes_on = (~entered).to(now.cell.dtype)
        states, inputs = [], []
        for step in range(len(stage)):
            before_it, now = now, now.masked(goes_on[step])
            if OH in stages:
                kept = before_it.where(aside[step], kept).masked((~begins[step]).to(now.cell.dtype))
                now = kept.where(back[step], now)
            now, its_inputs = self._advance(now, driven[step], around[step], entries.at(step))
            states.append(now)
            inputs.append(its_inputs)
        if torch.is_grad_enabled():
            self.sir_norm.update(sir.movedim(2, -1))
            self.lstm_norm.update(torch.stack(inputs))
        grid = torch.stack([each.grid for each in states])
        flat = torch.stack([each.hidden for each in states])
        return DynamicRepresentation(flat, grid[:, :, :-1], grid[:, :, -1]), MemoryState(
            now, kept, stage[-1], metric_map
        )

    def _driven(self, sir: torch.Tensor, observation: Observation) -> torch.Tensor:
        """What the inputs give to the convolutional GRU's gates, all steps at once: (T, B, 3 (G + 1), 7, 7)."""
        seen = torch.cat([self.sir_norm(sir, dim=2), self.embedding.target_planes(observation).to(sir.dtype)], 2)
        return self.sir_conv(seen.flatten(0, 1)).unflatten(0, sir.shape[:2]) + self.embedding_conv(
            self.embedding.vector(observation)
        )

    def _advance(
        self, last: RecurrentState, driven: torch.Tensor, around: torch.Tensor, entries: Entries
    ) -> tuple[RecurrentState, torch.Tensor]:
        """One step of the recurrent networks, and what the LSTM was given beside its own last output."""
        driven = driven + self.hidden_conv(last.hidden[:, : self.config.tiled])
        grid = gru_cell(driven, self.grid_conv(last.grid), last.grid)
        pooled = grid[:, :-1].mean((2, 3))
        inputs = torch.cat(
            [part.to(pooled.dtype) for part in (pooled, around, self.map_reader.attend(entries, pooled))], 1
        )
        gates = self.gate_norm(self.lstm_gates(torch.cat([self.lstm_norm(inputs), last.hidden], 1)))
        enter, keep, new, show = gates.to(last.cell.dtype).chunk(4, 1)
        cell = torch.sigmoid(keep) * last.cell + torch.sigmoid(enter) * torch.tanh(new)
        return RecurrentState(grid, torch.sigmoid(show) * torch.tanh(cell), cell), inputs

    def _check(
        self,
        state: MemoryState,
        sir: torch.Tensor,
        summary: torch.Tensor,
        observation: Observation,
        begins: torch.Tensor,
    ) -> None:
        """ValueError that names what has a wrong shape or type."""
        lead = tuple(observation.stage.shape)
        channels = self.config.sir_channels
        shapes = {
            "sir": (sir, (*lead, channels, CELLS, CELLS)),
            "summary": (summary, (*lead, channels)),
            "place": (observation.place, (*lead, 4)),
            "target": (observation.target, (*lead, 3)),
            "begins": (begins, lead),
            "the state's stage": (state.stage, lead[1:]),
        }
        for name, (tensor, shape) in shapes.items():
            if tuple(tensor.shape) != shape:
                raise ValueError(f"{name}: {shape} is needed, not {tuple(tensor.shape)}")
        if begins.dtype != torch.bool:
            raise ValueError(f"begins: true or false is needed, not {begins.dtype}")


def _lightened(entries: Entries) -> Entries:
    """Entries in the precision that products are made in, so that they are converted once and not at every step."""
    kind = entries.values.device.type
    if not torch.is_autocast_enabled(kind):
        return entries
    return Entries(entries.keys, entries.values.to(torch.get_autocast_dtype(kind)), entries.written)
