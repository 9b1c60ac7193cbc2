"""The metric map: a key-value memory of the places an agent visited, for B games with different maps.

A game's map is a list of slots, one per place written to: it grows with the places visited, not with the room. T steps
are written at once: the old map is left alone, new values stand beside it, and masks say which of both each step sees.
A step reads before it writes. So learning over a sequence keeps (T, B, C) values for the gradient instead of a copy of
the map per step, and acting is the case T = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig
from scrubjay.agent.deferred import DeferredLayer, Linear, Scores, WeightedSum
from scrubjay.agent.fuse import compute_dtype, fuse, fuse_always

CAPACITY = 500
"""Places that fit in a map: a step writes at most one new place, and no stage has more steps."""
EMPTY = -1
"""The key of an empty slot."""
EXTENT = 2048
"""Bound on the distance from the game's start, in steps along each axis."""
VIEWS = 8
"""Places at one position: four rotations, crouching and standing."""
NUM_HEADS = 4
"""Attention heads that read the map."""
WINDOW = 9
"""Side of the egocentric window that the convolutions see, in positions: a meter in each direction."""


def pack(place: torch.Tensor) -> torch.Tensor:
    """Keys (...,) of places (..., 4): steps right, steps ahead, quarter turns, standing."""
    right, ahead, quarters, standing = place.unbind(-1)
    return (((right + EXTENT) * 2 * EXTENT + ahead + EXTENT) * 4 + quarters) * 2 + standing


def unpack(key: torch.Tensor) -> torch.Tensor:
    """Places (..., 4) of keys (...,); undefined for EMPTY."""
    position = key // VIEWS
    right, ahead = position // (2 * EXTENT) - EXTENT, position % (2 * EXTENT) - EXTENT
    return torch.stack([right, ahead, key // 2 % 4, key % 2], -1)


@dataclass(frozen=True)
class MapState:
    """The maps of B games. The last slot is scratch space: discarded writes go there."""

    keys: torch.Tensor
    """(B, N + 1) int64: packed places, or EMPTY."""
    values: torch.Tensor
    """(B, N + 1, C): the last value written at each place; undefined in empty slots."""
    count: torch.Tensor
    """(B,) int64: slots in use, which come first."""

    @property
    def capacity(self) -> int:
        """N, the places that fit. A full map drops new places; known ones can still be rewritten."""
        return self.keys.shape[1] - 1

    def with_capacity(self, capacity: int) -> MapState:
        """The same maps with more slots: games can begin with small maps, which are faster."""
        more = capacity - self.capacity
        if more < 0:
            raise ValueError(f"capacity: maps for {self.capacity} places cannot shrink to {capacity}")
        return MapState(F.pad(self.keys, (0, more), value=EMPTY), F.pad(self.values, (0, 0, 0, more)), self.count)

    @property
    def entries(self) -> Entries:
        """The maps' present content, for reading."""
        return Entries(self.keys, self.values, self.keys != EMPTY)


@dataclass(frozen=True)
class Entries:
    """Readable entries of B maps. Within a game, no two entries valid at the same step share a place."""

    keys: torch.Tensor
    """(B, M) int64."""
    values: torch.Tensor
    """(B, M, C)."""
    written: torch.Tensor
    """(..., B, M) bool: the entries in the map at the time of reading; leading axis (T,) for T steps."""

    def at(self, step: int) -> Entries:
        """The entries at one of T steps."""
        return replace(self, written=self.written[step])

    def value_at(self, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Values (..., B, C) at places (..., B, 4), 0 where unknown, and whether they are known (..., B)."""
        match = self.written & (self.keys == pack(place)[..., None])
        return torch.einsum("...bm,bmc->...bc", match.to(self.values.dtype), self.values), match.any(-1)

    def egocentric(self, place: torch.Tensor, size: int) -> torch.Tensor:
        """Egocentric windows around places (..., B, 4), 0 where unknown: (..., B, 4, 2, C, size, size).

        The place is in the middle, facing up; rotations are relative to its own. At rotation 0 the window is a crop of
        `as_tensor`.
        """
        there, here = unpack(self.keys), place[..., None, :]
        (right, ahead), turn = (there[..., :2] - here[..., :2]).unbind(-1), here[..., 2]
        sine, cosine = (turn == 1).long() - (turn == 3).long(), (turn == 0).long() - (turn == 2).long()
        row = size // 2 - (right * sine + ahead * cosine)
        column = size // 2 + (right * cosine - ahead * sine)
        return self._scatter(row, column, (there[..., 2] - turn) % 4, (size, size))

    def as_tensor(self, size: tuple[int, int] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Dense maps (B, 4, 2, C, h, w) of one step, north up, and the position (B, 2) of cell (0, 0).

        Positions are steps right and ahead of the start, where an empty map's cell (0, 0) lies. Entries outside `size`
        (h, w) are dropped; without it, the largest map's extent is used, which synchronizes with the device.
        """
        there = unpack(self.keys)
        right, ahead = there[..., 0], there[..., 1]
        taken = self.written.any(-1, keepdim=True)
        west = right.masked_fill(~self.written, EXTENT).amin(-1, keepdim=True) * taken
        north = ahead.masked_fill(~self.written, -EXTENT).amax(-1, keepdim=True) * taken
        row, column = north - ahead, right - west
        if size is None:
            extent = torch.stack([row, column]).masked_fill(~self.written, 0).amax((1, 2)) + 1
            size = (int(extent[0]), int(extent[1]))
        return self._scatter(row, column, there[..., 2], size), torch.cat([west, north], -1)

    def _scatter(
        self, row: torch.Tensor, column: torch.Tensor, rotation: torch.Tensor, size: tuple[int, int]
    ) -> torch.Tensor:
        """Scatters values to their cells: rows, columns and rotations (..., B, M) to (..., B, 4, 2, C, h, w)."""
        (height, width), count = size, size[0] * size[1] * VIEWS
        inside = self.written & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        cell = torch.where(inside, ((row * width + column) * 4 + rotation) * 2 + self.keys % 2, count)
        shape = (*cell.shape, self.values.shape[-1])
        # One more cell takes everything outside. Each cell has one writer, so the gradient is a plain gather.
        cells = self.values.new_zeros(*cell.shape[:-1], count + 1, shape[-1])
        cells = cells.scatter(-2, cell[..., None].expand(shape), self.values.expand(shape))[..., :count, :]
        return cells.unflatten(-2, (height, width, 4, 2)).movedim((-5, -4), (-2, -1))


@dataclass(frozen=True)
class _WritePlan:
    """Where T writes of B games go; depends on their places only."""

    previous: torch.Tensor
    """(T, B): the latest earlier step among these that wrote to the place; -1 if none."""
    slot: torch.Tensor
    """(T, B): the place's final slot; the scratch slot if the map is full."""
    known: torch.Tensor
    """(T, B): the place was in the map before the first step, and still is."""
    last: torch.Tensor
    """(T, B): the value is still in the map after the last step."""
    cleared: torch.Tensor
    """(B,): the map was cleared during the sequence."""
    count: torch.Tensor
    """(B,): places in the map after the last step."""
    written: torch.Tensor
    """(T, B, M): the entries that each step reads, among the map's N + 1 slots and the first T - 1 writes."""


def _plan_writes(state: MapState, keys: torch.Tensor, writes: torch.Tensor, clears: torch.Tensor) -> _WritePlan:
    """Plans writes at keys (T, B): steps write where `writes`, into a map that is cleared first where `clears`."""
    steps, scratch = len(keys), state.capacity
    time = torch.arange(steps, device=keys.device)
    episode = clears.long().cumsum(0)
    before = (time[:, None] > time)[..., None] & (episode[:, None] == episode)
    # (T, T, B): earlier[t, s] if step s < t wrote to the place of step t in the same map.
    earlier = before & (keys[:, None] == keys) & writes
    previous = torch.where(earlier, time[:, None], -1).amax(1)
    first = torch.where(earlier, time[:, None], time[:, None, None]).amin(1)
    replaced = torch.where(earlier & writes[:, None], time[:, None, None], steps).amin(0)

    in_state = (keys[..., None] == state.keys) & (episode == 0)[..., None]
    known = in_state.any(-1)
    new = (writes & (previous < 0) & ~known).long()
    places = new.cumsum(0)
    places = places - torch.where(clears, places - new, 0).cummax(0).values + torch.where(episode == 0, state.count, 0)
    slot = torch.where(known, in_state.int().argmax(-1), places - 1).gather(0, first).clamp(0, scratch)
    kept = writes & (slot < scratch)

    rewritten = (in_state & writes[..., None]).int()
    old = (state.keys != EMPTY) & (episode == 0)[..., None] & (rewritten.cumsum(0) == rewritten)
    fresh = before & kept & (replaced >= time[:, None, None])
    return _WritePlan(
        previous,
        slot,
        known,
        kept & (replaced == steps) & (episode == episode[-1]),
        episode[-1] > 0,
        places[-1].clamp(max=scratch),
        torch.cat([old, fresh[:, :-1].transpose(1, 2)], -1),
    )


def gru_cell(input_gates: torch.Tensor, hidden_gates: torch.Tensor, hidden: torch.Tensor, dim: int = 1) -> torch.Tensor:
    """A GRU's next state from the input's and the state's shares of the gates, three times as long along `dim`.

    The reset gate acts after the state's weights, so that one product serves all three gates.
    """
    # In the state's precision, also under autocast: states live for hundreds of steps.
    reset_in, update_in, new_in = input_gates.to(hidden.dtype).chunk(3, dim)
    reset_hidden, update_hidden, new_hidden = hidden_gates.to(hidden.dtype).chunk(3, dim)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_hidden) * new_hidden)
    return new + torch.sigmoid(update_in + update_hidden) * (hidden - new)


@fuse_always
def gru_cell_gradients(
    gradient: torch.Tensor, input_gates: torch.Tensor, hidden_gates: torch.Tensor, hidden: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of `gru_cell`'s inputs (B, 3 C), (B, 3 C) and (B, C), given that of its output (B, C)."""
    reset_in, update_in, new_in = input_gates.to(hidden.dtype).chunk(3, 1)
    reset_hidden, update_hidden, new_hidden = hidden_gates.to(hidden.dtype).chunk(3, 1)
    reset, update = torch.sigmoid(reset_in + reset_hidden), torch.sigmoid(update_in + update_hidden)
    new = torch.tanh(new_in + reset * new_hidden)
    of_new = gradient * (1 - update) * (1 - new**2)
    of_reset = of_new * new_hidden * reset * (1 - reset)
    of_update = gradient * (hidden - new) * update * (1 - update)
    return (
        torch.cat([of_reset, of_update, of_new], 1).to(input_gates.dtype),
        torch.cat([of_reset, of_update, of_new * reset], 1).to(hidden_gates.dtype),
        gradient * update,
    )


class MetricMap(nn.Module):
    """Writes into maps through a GRU whose hidden state is the place's previous value."""

    def __init__(self, length: int) -> None:
        """`length` is C, the length of a place's value."""
        super().__init__()
        self.length = length
        self.input_gates, self.hidden_gates = nn.Linear(length, 3 * length), nn.Linear(length, 3 * length)
        self.initial_hidden = nn.Parameter(torch.zeros(length))
        """The hidden state at places not yet written."""

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MapState:
        """Empty maps."""
        keys = torch.full((games, capacity + 1), EMPTY, device=self.initial_hidden.device)
        return MapState(keys, self.initial_hidden.new_zeros(*keys.shape, self.length), keys.new_zeros(games))

    def write(
        self, state: MapState, place: torch.Tensor, value: torch.Tensor, writes: torch.Tensor, clears: torch.Tensor
    ) -> tuple[Entries, MapState]:
        """T steps: writes values (T, B, C) at places (T, B, 4) where `writes`, into maps cleared first where `clears`.

        Returns the entries that each step reads, before it writes, and the maps after the last step.
        """
        if value.shape != (*place.shape[:-1], self.length):
            raise ValueError(f"value: expected shape {(*place.shape[:-1], self.length)}, got {tuple(value.shape)}")
        keys = pack(place)
        plan = _plan_writes(state, keys, writes, clears)
        written = self._gru_outputs(state, value, plan)
        readable = Entries(
            torch.cat([state.keys, keys[:-1].T], 1),
            torch.cat([state.values, written[:-1].transpose(0, 1)], 1),
            plan.written,
        )
        slot = torch.where(plan.last, plan.slot, state.capacity).T
        return readable, MapState(
            state.keys.masked_fill(plan.cleared[:, None], EMPTY).scatter(1, slot, keys.where(plan.last, EMPTY).T),
            state.values.scatter(1, slot[..., None].expand(-1, -1, self.length), written.transpose(0, 1)),
            plan.count,
        )

    def _gru_outputs(self, state: MapState, value: torch.Tensor, plan: _WritePlan) -> torch.Tensor:
        """The GRU's outputs (T, B, C) for values (T, B, C); only the recurrence along writes to a place is a loop."""
        gates = self.input_gates(value)
        old = state.values.gather(1, plan.slot.T[..., None].expand(-1, -1, self.length)).transpose(0, 1)
        initial = torch.where(plan.known[..., None], old, self.initial_hidden)
        if len(value) == 1:  # Acting: nothing was written before.
            return gru_cell(gates[0], self.hidden_gates(initial[0]), initial[0])[None]
        weight, bias = (tensor.to(compute_dtype(initial)) for tensor in self.hidden_gates.parameters())
        return _WriteSequence.apply(gates, initial, weight, bias, plan.previous)


class _WriteSequence(torch.autograd.Function):
    """A GRU along the writes to each place, over T steps of B games: the weights' gradients are computed once.

    `previous` (T, B) is the step that wrote to the place before, whose output is the hidden state; where it is -1,
    `initial` (T, B, C) is. Returns the outputs (T, B, C).
    """

    @staticmethod
    def forward(
        ctx: Any,
        gates: torch.Tensor,
        initial: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        previous: torch.Tensor,
    ) -> torch.Tensor:
        steps, games = previous.shape
        # Rows of a table of all outputs; one more row takes what nobody reads.
        row = previous * games + torch.arange(games, device=previous.device)
        table = initial.new_zeros(steps * games + 1, initial.shape[-1])
        hidden, hidden_gates = torch.empty_like(initial), []
        for step in range(steps):
            hidden[step] = _hidden_state(table, row[step], previous[step], initial[step])
            hidden_gates.append(F.linear(hidden[step].to(weight.dtype), weight, bias))
            table[step * games : (step + 1) * games] = _write(gates[step], hidden_gates[step], hidden[step])
        ctx.save_for_backward(gates, hidden, torch.stack(hidden_gates), weight, row, previous)
        return table[:-1].view_as(initial)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        gates, hidden, hidden_gates, weight, row, previous = ctx.saved_tensors
        steps, games = previous.shape
        table = F.pad(gradients[0].flatten(0, 1), (0, 0, 0, 1))
        row = torch.where(previous < 0, steps * games, row)
        of_gates, of_hidden_gates, of_hidden = [], [], torch.empty_like(hidden)
        for step in reversed(range(steps)):
            gradient = table[step * games : (step + 1) * games]
            of_input, of_product, direct = gru_cell_gradients(gradient, gates[step], hidden_gates[step], hidden[step])
            of_hidden[step] = direct + (of_product @ weight).to(direct.dtype)
            table.index_add_(0, row[step], of_hidden[step])
            of_gates.append(of_input)
            of_hidden_gates.append(of_product)
        product = torch.stack(of_hidden_gates[::-1]).flatten(0, 1)
        of_weight = product.T @ hidden.flatten(0, 1).to(product.dtype)
        of_initial = of_hidden * (previous < 0)[..., None]
        return torch.stack(of_gates[::-1]), of_initial, of_weight, product.sum(0), None


@fuse_always
def _hidden_state(
    table: torch.Tensor, row: torch.Tensor, previous: torch.Tensor, initial: torch.Tensor
) -> torch.Tensor:
    """Rows (B,) of a table, or `initial` (B, C) where there is no previous write."""
    return torch.where(previous[:, None] >= 0, table[row.clamp(min=0)], initial)


@fuse_always
def _write(gates: torch.Tensor, hidden_gates: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    return gru_cell(gates, hidden_gates, hidden)


class MapReader(nn.Module):
    """Reads the map at each step, `map_read` features: convolutions over the local window, and attention.

    Convolutions depend on places only, so a sequence is read at once; attention queries with the recurrent state.
    """

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        value, around, width = config.map_value, config.gru_channels, max(config.sir_channels // 2, 1)
        if config.map_read <= around:
            raise ValueError(f"map_read: must exceed the {around} features of the local window, not {config.map_read}")
        narrow = max(config.sir_channels // 8, 1)
        self.value_projection = nn.Linear(value, narrow)
        self.local_net = nn.Sequential(
            nn.Conv2d(VIEWS * narrow, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(width * ((WINDOW - 1) // 2) ** 2, around),
            nn.ReLU(),
        )
        self.query = nn.Linear(config.gru_channels, NUM_HEADS * value)
        self.output = nn.Linear(NUM_HEADS * value, config.map_read - around)

    def read_around(self, entries: Entries, place: torch.Tensor) -> torch.Tensor:
        """Features (..., B, gru_channels) of the windows around places (..., B, 4)."""
        window = replace(entries, values=self.value_projection(entries.values)).egocentric(place, WINDOW)
        features = self.local_net(window.flatten(-5, -3).flatten(0, -4))
        return features.unflatten(0, place.shape[:-1])

    def attention(self, entries: Entries) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Reads entries at the steps of one sequence by attention.

        A function of states (B, gru_channels), which query, and of the entries in the map (B, M) bool, to features (B,
        map_read - gru_channels).
        """
        dtype = compute_dtype(entries.values)

        def deferred(layer: nn.Linear) -> DeferredLayer:
            return DeferredLayer(Linear(), layer.weight.to(dtype), layer.bias.to(dtype))

        query, output, read = deferred(self.query), deferred(self.output), attend_to(entries.values.to(dtype))

        def features(state: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
            return output(read(query(state.to(dtype)).unflatten(-1, (NUM_HEADS, -1)), written).flatten(1))

        return features


def attend_to(values: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Attention to values (B, M, C): a function of queries (B, H, C) and of the valid values (B, M) bool, to (B, H, C).

    An extra zero logit with value 0 lets an empty map read as 0 and a query match nothing.
    """
    scores, weighted_sum = DeferredLayer(Scores(), values), DeferredLayer(WeightedSum(), values)
    return lambda queries, written: weighted_sum(attention_weights(scores(queries), written, values.shape[-1]))


@fuse
def attention_weights(scores: torch.Tensor, written: torch.Tensor, length: int) -> torch.Tensor:
    """Weights (B, H, M) from products of queries and values of a length; 0 where not `written` (B, M)."""
    scaled = scores.to(torch.promote_types(scores.dtype, torch.float32)) * length**-0.5
    masked = scaled.masked_fill(~written[:, None], -torch.inf)
    # The zero logit is not a column of its own: columns would lose their alignment.
    top = masked.amax(-1, keepdim=True).clamp(min=0)
    exponentials = torch.exp(masked - top)
    return (exponentials / (exponentials.sum(-1, keepdim=True) + torch.exp(-top))).to(scores.dtype)
