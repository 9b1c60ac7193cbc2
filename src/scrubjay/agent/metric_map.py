"""The metric map: what an agent wrote at the places it visited, for B games with different maps.

A game's map is a list of slots, one for each place written to, so it grows with the places visited and not with the
room. T steps are written at once: the map as it was before them is left alone, what they write stands beside it, and
masks say which of both is in the map at each step. A step reads before it writes. So learning over a sequence keeps
(T, B, C) numbers for the gradient and no copy of the map for each step, and acting is the case T = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.config import AgentConfig

CAPACITY = 500
"""Places that fit in a map: an agent writes at most one new place a step, and no stage has more steps."""
EMPTY = -1
"""The key of a slot that holds nothing."""
EXTENT = 2048
"""Places are fewer steps than this from the game's start, in both directions."""
VIEWS = 8
"""Places at one position: four rotations, crouching and standing."""
NUM_HEADS = 4
WINDOW = 9
"""Positions along a side of the part of the egocentric map that the convolutions see: a meter in each direction."""


def pack(place: torch.Tensor) -> torch.Tensor:
    """One number for each place (..., 4): steps right, steps ahead, quarter turns, standing."""
    right, ahead, quarters, standing = place.unbind(-1)
    return (((right + EXTENT) * 2 * EXTENT + ahead + EXTENT) * 4 + quarters) * 2 + standing


def unpack(key: torch.Tensor) -> torch.Tensor:
    """The places (..., 4) of keys that are not EMPTY."""
    position = key // VIEWS
    right, ahead = position // (2 * EXTENT) - EXTENT, position % (2 * EXTENT) - EXTENT
    return torch.stack([right, ahead, key // 2 % 4, key % 2], -1)


@dataclass(frozen=True)
class MapState:
    """The maps of B games. The last slot is scrap: what is not to be kept is written there."""

    keys: torch.Tensor
    """(B, N + 1) int64: the packed places, or EMPTY."""
    values: torch.Tensor
    """(B, N + 1, C): what was written last at the places; of no meaning in empty slots."""
    count: torch.Tensor
    """(B,) int64: how many slots are taken; they are the first ones."""

    @property
    def capacity(self) -> int:
        """How many places fit. A full map takes no new ones; those it has can still be written to."""
        return self.keys.shape[1] - 1

    def with_capacity(self, capacity: int) -> MapState:
        """The same maps with room for more places: small maps are faster, as long as games are young."""
        more = capacity - self.capacity
        if more < 0:
            raise ValueError(f"capacity: maps for {self.capacity} places cannot shrink to {capacity}")
        return MapState(F.pad(self.keys, (0, more), value=EMPTY), F.pad(self.values, (0, 0, 0, more)), self.count)

    @property
    def entries(self) -> Entries:
        """What is in the maps now, for reading."""
        return Entries(self.keys, self.values, self.keys != EMPTY)


@dataclass(frozen=True)
class Entries:
    """What can be read from maps; no two that are written at the same time in a game have the same place."""

    keys: torch.Tensor
    """(B, M) int64."""
    values: torch.Tensor
    """(B, M, C)."""
    written: torch.Tensor
    """(..., B, M) bool: what is in the map when it is read, with a leading axis (T,) for T steps."""

    def at(self, step: int) -> Entries:
        """What can be read at one of T steps."""
        return replace(self, written=self.written[step])

    def value_at(self, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is saved at places (..., B, 4): values (..., B, C), 0 where there are none, and if there are any."""
        match = self.written & (self.keys == pack(place)[..., None])
        return torch.einsum("...bm,bmc->...bc", match.to(self.values.dtype), self.values), match.any(-1)

    def attend(self, keys: torch.Tensor) -> torch.Tensor:
        """Sums (B, H, C) of what is saved, weighted by how like the keys (B, H, C) it is; of one step.

        One weight belongs to nothing at all, so that an empty map reads as 0 and no key must find something.
        """
        scores = torch.einsum("bhc,bmc->bhm", keys, self.values) * keys.shape[-1] ** -0.5
        scores = scores.masked_fill(~self.written[:, None], -torch.inf)
        weights = F.pad(scores, (1, 0)).softmax(-1)[..., 1:].to(self.values.dtype)
        return torch.einsum("bhm,bmc->bhc", weights, self.values)

    def egocentric(self, place: torch.Tensor, size: int) -> torch.Tensor:
        """What is saved around places (..., B, 4), 0 where nothing is: (..., B, 4, 2, C, size, size).

        The place is in the middle and faces upwards; rotations count from its own. At a place with rotation 0, the
        window is a part of `as_tensor`'s.
        """
        there, here = unpack(self.keys), place[..., None, :]
        (right, ahead), turn = (there[..., :2] - here[..., :2]).unbind(-1), here[..., 2]
        sine, cosine = (turn == 1).long() - (turn == 3).long(), (turn == 0).long() - (turn == 2).long()
        row = size // 2 - (right * sine + ahead * cosine)
        column = size // 2 + (right * cosine - ahead * sine)
        return self._spread(row, column, (there[..., 2] - turn) % 4, (size, size))

    def as_tensor(self, size: tuple[int, int] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Whole maps (B, 4, 2, C, h, w), north up, of one step, and (B, 2): the steps right and ahead of cell (0, 0).

        `size` is (h, w), and what does not fit is left out; without it, h and w are the largest map's, for which the
        device is waited for. An empty map's first cell is the start.
        """
        there = unpack(self.keys)
        right, ahead = there[..., 0], there[..., 1]
        taken = self.written.any(-1, keepdim=True)
        west = right.masked_fill(~self.written, EXTENT).amin(-1, keepdim=True) * taken
        north = ahead.masked_fill(~self.written, -EXTENT).amax(-1, keepdim=True) * taken
        row, column = north - ahead, right - west
        if size is None:
            far = torch.stack([row, column]).masked_fill(~self.written, 0).amax((1, 2)) + 1
            size = (int(far[0]), int(far[1]))
        return self._spread(row, column, there[..., 2], size), torch.cat([west, north], -1)

    def _spread(
        self, row: torch.Tensor, column: torch.Tensor, rotation: torch.Tensor, size: tuple[int, int]
    ) -> torch.Tensor:
        """Values in their cells: rows, columns and rotations (..., B, M) give (..., B, 4, 2, C, h, w)."""
        (height, width), count = size, size[0] * size[1] * VIEWS
        inside = self.written & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        cell = torch.where(inside, ((row * width + column) * 4 + rotation) * 2 + self.keys % 2, count)
        shape = (*cell.shape, self.values.shape[-1])
        # One more cell takes all that is not seen. Cells have one writer each, so the gradient is a plain gather.
        cells = self.values.new_zeros(*cell.shape[:-1], count + 1, shape[-1])
        cells = cells.scatter(-2, cell[..., None].expand(shape), self.values.expand(shape))[..., :count, :]
        return cells.unflatten(-2, (height, width, 4, 2)).movedim((-5, -4), (-2, -1))


@dataclass(frozen=True)
class _Plan:
    """Where T writes of B games go, by their places alone."""

    previous: torch.Tensor
    """(T, B): the step that wrote there before, among these; -1 if none did."""
    slot: torch.Tensor
    """(T, B): the slot of the place, in the end; the scrap slot if the map is full."""
    known: torch.Tensor
    """(T, B): the place was in the map before the first step, and still is."""
    last: torch.Tensor
    """(T, B): what is written is in the map after the last step."""
    cleared: torch.Tensor
    """(B,): the map was emptied on the way."""
    count: torch.Tensor
    """(B,): places in the map after the last step."""
    written: torch.Tensor
    """(T, B, M): what each step reads, of the map's N + 1 slots and the T - 1 first writes."""


def _plan(state: MapState, keys: torch.Tensor, writes: torch.Tensor, resets: torch.Tensor) -> _Plan:
    """Where writes at keys (T, B) go; steps write where `writes` and find an empty map where `resets`."""
    steps, scrap = len(keys), state.capacity
    time = torch.arange(steps, device=keys.device)
    episode = resets.long().cumsum(0)
    before = (time[:, None] > time)[..., None] & (episode[:, None] == episode)
    # (T, T, B): in [t, s], step s wrote at the place of step t, before it and into the same map.
    earlier = before & (keys[:, None] == keys) & writes
    previous = torch.where(earlier, time[:, None], -1).amax(1)
    first = torch.where(earlier, time[:, None], time[:, None, None]).amin(1)
    replaced = torch.where(earlier & writes[:, None], time[:, None, None], steps).amin(0)

    in_state = (keys[..., None] == state.keys) & (episode == 0)[..., None]
    known = in_state.any(-1)
    new = (writes & (previous < 0) & ~known).long()
    places = new.cumsum(0)
    places = places - torch.where(resets, places - new, 0).cummax(0).values + torch.where(episode == 0, state.count, 0)
    slot = torch.where(known, in_state.int().argmax(-1), places - 1).gather(0, first).clamp(0, scrap)
    kept = writes & (slot < scrap)

    rewritten = (in_state & writes[..., None]).int()
    old = (state.keys != EMPTY) & (episode == 0)[..., None] & (rewritten.cumsum(0) == rewritten)
    fresh = before & kept & (replaced >= time[:, None, None])
    return _Plan(
        previous,
        slot,
        known,
        kept & (replaced == steps) & (episode == episode[-1]),
        episode[-1] > 0,
        places[-1].clamp(max=scrap),
        torch.cat([old, fresh[:, :-1].transpose(1, 2)], -1),
    )


def gru_cell(driven: torch.Tensor, recurrent: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """A GRU's next state (B, C, ...) from what its input and its state give to the three gates, (B, 3 C, ...) each.

    The reset gate acts behind the state's weights, so that one product serves all three gates.
    """
    # States stay as exact as they are where products are made in half precision: they live for hundreds of steps.
    reset_in, update_in, new_in = driven.to(hidden.dtype).chunk(3, 1)
    reset_on, update_on, new_on = recurrent.to(hidden.dtype).chunk(3, 1)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_on) * new_on)
    return new + torch.sigmoid(update_in + update_on) * (hidden - new)


class MetricMap(nn.Module):
    """Writes into maps through a GRU whose hidden state is what was written at the place before."""

    def __init__(self, length: int) -> None:
        """`length` is C, how many numbers a place has."""
        super().__init__()
        self.length = length
        self.input_gates, self.hidden_gates = nn.Linear(length, 3 * length), nn.Linear(length, 3 * length)
        self.initial_hidden = nn.Parameter(torch.zeros(length))
        """The hidden state where nothing was written before."""

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MapState:
        """Empty maps."""
        keys = torch.full((games, capacity + 1), EMPTY, device=self.initial_hidden.device)
        return MapState(keys, self.initial_hidden.new_zeros(*keys.shape, self.length), keys.new_zeros(games))

    def write(
        self, state: MapState, place: torch.Tensor, value: torch.Tensor, writes: torch.Tensor, resets: torch.Tensor
    ) -> tuple[Entries, MapState]:
        """T steps: values (T, B, C) at places (T, B, 4), where `writes`, into maps emptied first where `resets`.

        Returns what each step can read, before it writes, and the maps after the last step.
        """
        if value.shape != (*place.shape[:-1], self.length):
            raise ValueError(f"value: {(*place.shape[:-1], self.length)} is needed, not {tuple(value.shape)}")
        keys = pack(place)
        plan = _plan(state, keys, writes, resets)
        written = self._passed(state, value, plan)
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

    def _passed(self, state: MapState, value: torch.Tensor, plan: _Plan) -> torch.Tensor:
        """What the GRU makes of values (T, B, C). Only the way from one write to the next at a place is in the loop."""
        driven = self.input_gates(value)
        old = state.values.gather(1, plan.slot.T[..., None].expand(-1, -1, self.length)).transpose(0, 1)
        begun = torch.where(plan.known[..., None], old, self.initial_hidden)
        row = plan.previous.clamp(min=0) * len(state.count) + torch.arange(len(state.count), device=value.device)
        # One tensor that is filled step by step: the gradient of many would be a sum over all earlier ones at each.
        written = torch.zeros_like(begun)
        for step, previous in enumerate(plan.previous):
            hidden = begun[step]
            if step:
                earlier = written.flatten(0, 1).index_select(0, row[step])
                hidden = torch.where(previous[:, None] >= 0, earlier, hidden)
            written[step] = gru_cell(driven[step], self.hidden_gates(hidden), hidden)
        return written


class MapReader(nn.Module):
    """What an agent reads from its map at each step, `map_read` numbers: by convolutions around it, and by attention.

    The convolutions need only places, so a sequence is read at once; attention asks with the agent's state.
    """

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        value, around, width = config.map_value, config.gru_channels, max(config.sir_channels // 2, 1)
        if config.map_read <= around:
            raise ValueError(f"map_read: more than the {around} numbers from around the agent, not {config.map_read}")
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
        """What is around places (..., B, 4): (..., B, gru_channels)."""
        window = replace(entries, values=self.value_projection(entries.values)).egocentric(place, WINDOW)
        seen = self.local_net(window.flatten(-5, -3).flatten(0, -4))
        return seen.unflatten(0, place.shape[:-1])

    def attend(self, entries: Entries, state: torch.Tensor) -> torch.Tensor:
        """What states (B, gru_channels) ask for, at one step: (B, map_read - gru_channels)."""
        return self.output(entries.attend(self.query(state).unflatten(-1, (NUM_HEADS, -1))).flatten(1))
