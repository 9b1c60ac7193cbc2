"""The metric map: a key-value memory of the places an agent visited, for B games with different maps.

A game's map is a list of slots, one per place written to: it grows with the places visited, not with the room. T steps
are written at once: the old map is left alone, new values stand beside it, and masks say which of both each step sees.
A step reads before it writes. So learning over a sequence keeps (T, B, C) values for the gradient instead of a copy of
the map per step, and acting is the case T = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig

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

    def attend(self, queries: torch.Tensor) -> torch.Tensor:
        """Attention of queries (B, H, C) over one step's values: (B, H, C).

        An extra zero logit with value 0 lets an empty map read as 0 and a query match nothing.
        """
        scores = torch.einsum("bhc,bmc->bhm", queries, self.values) * queries.shape[-1] ** -0.5
        scores = scores.masked_fill(~self.written[:, None], -torch.inf)
        weights = F.pad(scores, (1, 0)).softmax(-1)[..., 1:].to(self.values.dtype)
        return torch.einsum("bhm,bmc->bhc", weights, self.values)

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


def gru_cell(input_gates: torch.Tensor, hidden_gates: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """A GRU's next state (B, C, ...) from the input's and the state's shares of the gates, (B, 3 C, ...) each.

    The reset gate acts after the state's weights, so that one product serves all three gates.
    """
    # In the state's precision, also under autocast: states live for hundreds of steps.
    reset_in, update_in, new_in = input_gates.to(hidden.dtype).chunk(3, 1)
    reset_hidden, update_hidden, new_hidden = hidden_gates.to(hidden.dtype).chunk(3, 1)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_hidden) * new_hidden)
    return new + torch.sigmoid(update_in + update_hidden) * (hidden - new)


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
        row = plan.previous.clamp(min=0) * len(state.count) + torch.arange(len(state.count), device=value.device)
        # One tensor filled in place: with a list, each step's gradient would be a sum over all earlier steps.
        written = torch.zeros_like(initial)
        for step, previous in enumerate(plan.previous):
            hidden = initial[step]
            if step:
                earlier = written.flatten(0, 1).index_select(0, row[step])
                hidden = torch.where(previous[:, None] >= 0, earlier, hidden)
            written[step] = gru_cell(gates[step], self.hidden_gates(hidden), hidden)
        return written


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

    def attend(self, entries: Entries, state: torch.Tensor) -> torch.Tensor:
        """Attention with states (B, gru_channels) as queries, at one step: (B, map_read - gru_channels)."""
        return self.output(entries.attend(self.query(state).unflatten(-1, (NUM_HEADS, -1))).flatten(1))
