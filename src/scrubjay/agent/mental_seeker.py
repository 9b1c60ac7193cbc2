"""The mental seeker: an LSTM that searches an imagined map and predicts a seeker's actions and their success.

It observes a slice of a map M^e: the features at its position, in four groups, one per heading, rotated so that the
group of its own heading comes first. Whether an action succeeds is sampled from its own predictions; a move also needs
a position that the hider visited, since the map knows no other floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scrubjay import tree
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.mental_graphs import SeekerGraphs
from scrubjay.game.actions import ALLOWED, NAMES, Stage, action_index
from scrubjay.rooms.directions import QUARTERS

SEEKER_ACTIONS = tuple(np.flatnonzero(ALLOWED[Stage.S]).tolist())
"""Indices among the 219 actions of a seeker's 58; in this module they are 0 to 57, in this order."""
NO_SEEKER_ACTION = len(SEEKER_ACTIONS)
"""The last action at the first step."""
POSE_EMBEDDING = 8
COMPACT_EVERY = 10
"""Steps between removals of finished trajectories from the batch, on a CPU."""


def _seeker_table(values: dict[str, int], default: int) -> torch.Tensor:
    """(58,): a value per action, given by name."""
    table = torch.full((len(SEEKER_ACTIONS),), default)
    for name, value in values.items():
        table[SEEKER_ACTIONS.index(action_index(name))] = value
    return table


MOVES = _seeker_table({"MoveAhead": 0, "MoveRight": 1, "MoveLeft": 3}, -1)
"""Direction of a move in quarter turns from the heading; -1 for other actions."""
TURNS = _seeker_table({"RotateRight": 1, "RotateLeft": 3}, 0)
"""Quarter turns of the heading."""
STANDS = _seeker_table({"Crouch": 0, "Stand": 1}, -1)
"""Standing after the action; -1 for unchanged."""
SEEKER_CLAIM = SEEKER_ACTIONS.index(action_index("ClaimVisible"))
SEEKER_INDEX = torch.full((len(NAMES) + 1,), -1)
"""(220,): the index among the 58 of each of the 219 actions and of NO_ACTION; -1 for actions of other stages."""
SEEKER_INDEX[list(SEEKER_ACTIONS)] = torch.arange(len(SEEKER_ACTIONS))
SEEKER_INDEX[-1] = NO_SEEKER_ACTION


@dataclass(frozen=True)
class SeekerPrediction:
    """Predictions along seekers' trajectories."""

    policy: torch.Tensor
    """(T, B, 58): action logits."""
    success: torch.Tensor
    """(T, B, 58): logits that each action would succeed."""


@dataclass(frozen=True)
class Rollouts:
    """Simulated trajectories: R in each of K imagined maps of B games."""

    steps: torch.Tensor
    """(B, K, R): steps taken, the successful claim included; the limit if the object was not found."""
    found: torch.Tensor
    """(B, K, R) bool."""
    paths: torch.Tensor
    """(limit, B, K, R) int32: the position before each step, row * w + column; -1 after the end."""


@dataclass(frozen=True)
class SeekerBatch:
    """The trajectories still running, one per row; all (R,) but the LSTM's state."""

    index: torch.Tensor
    """The trajectory's index among all."""
    map_offset: torch.Tensor
    """Where its map begins among the positions of all maps."""
    floor_offset: torch.Tensor
    """Where its game begins among the free directions of all games."""
    position: torch.Tensor
    """row * w + column."""
    quarter: torch.Tensor
    """Heading in quarter turns."""
    standing: torch.Tensor
    last: torch.Tensor
    """2 * last action + its success: the index in the action embedding."""
    hidden: torch.Tensor
    """(R, H): the LSTM's output."""
    cell: torch.Tensor
    """(R, H): the LSTM's cell."""
    found: torch.Tensor


class MentalSeeker(nn.Module):
    """An LSTM over slices of imagined maps, with a policy over the 58 actions and predictions of their success."""

    moves: torch.Tensor
    turns: torch.Tensor
    stands: torch.Tensor

    def __init__(self, config: AgentConfig) -> None:
        super().__init__()
        if config.mental_channels % QUARTERS:
            raise ValueError(f"mental_channels must be a multiple of {QUARTERS}, not {config.mental_channels}")
        self.channels = config.mental_channels
        self.pose_embedding = nn.Embedding(2 * QUARTERS, POSE_EMBEDDING)
        self.action_embedding = nn.Embedding(2 * (NO_SEEKER_ACTION + 1), config.action_embedding)
        self.lstm = nn.LSTM(self.channels + POSE_EMBEDDING + config.action_embedding, config.mental_lstm)
        self.policy = nn.Linear(config.mental_lstm, len(SEEKER_ACTIONS))
        self.success = nn.Linear(config.mental_lstm, len(SEEKER_ACTIONS))
        self.success_here = nn.Linear(self.channels, len(SEEKER_ACTIONS)) if config.mental_offsets else None
        """What the slice adds to success: where the map says that the object is, the LSTM need not remember."""
        for name, table in (("moves", MOVES), ("turns", TURNS), ("stands", STANDS)):
            self.register_buffer(name, table, persistent=False)
        self._graphs = SeekerGraphs()

    def predict(
        self, maps: torch.Tensor, places: torch.Tensor, last_action: torch.Tensor, last_success: torch.Tensor
    ) -> SeekerPrediction:
        """Predictions along given trajectories (teacher forcing) in maps (B, h, w, C).

        places (T, B, 4): row, column, quarter, standing; last_action (T, B): 0..57 or NO_SEEKER_ACTION; last_success
        (T, B) bool. Outside the map, slices are 0.
        """
        games, height, width, _ = maps.shape
        row, column, quarter, standing = places.unbind(-1)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        position = torch.where(inside, row * width + column, 0)
        map_offset = torch.arange(games, device=maps.device) * height * width
        slices = self._slices(maps, (map_offset + position).flatten(), quarter.flatten())
        slices = torch.where(inside[..., None], slices.view(*inside.shape, self.channels), 0)
        hidden, _ = self.lstm(self._input(slices, quarter, standing, 2 * last_action + last_success.long()))
        return SeekerPrediction(self.policy(hidden), self._success(hidden, slices))

    @torch.no_grad()
    def simulate(
        self, maps: torch.Tensor, floor: torch.Tensor, start: torch.Tensor, uniforms: torch.Tensor
    ) -> Rollouts:
        """Simulates R seekers in each of K maps of B games, as one batch.

        maps (B, K, h, w, C); floor (B, h, w) bool: the walkable positions; start (B, 4): row, column, quarter,
        standing; uniforms (limit, B, K, R, 2) in [0, 1): they sample each step's action and its success.
        """
        limit, games, copies, repeats, _ = uniforms.shape
        if maps.shape[:2] != (games, copies) or maps.shape[2:4] != floor.shape[1:]:
            raise ValueError(
                f"maps: shape {tuple(maps.shape)} does not fit floor {tuple(floor.shape)} and {games} x {copies} maps"
            )
        shape = (games, copies, repeats)
        uniforms, maps = uniforms.reshape(limit, -1, 2), maps.flatten(0, 1).contiguous()
        batch = self._start_batch(shape, floor, start, maps.dtype)
        free = _free_directions(floor).flatten()
        strides = torch.tensor([-floor.shape[2], 1, floor.shape[2], -1], device=maps.device)
        run = self._simulate if maps.device.type == "cpu" else partial(self._graphs.simulate, self)
        found, paths = run(batch, maps, free, strides, uniforms)
        return Rollouts((paths >= 0).sum(0).view(shape), found.view(shape), paths.view(limit, *shape))

    def _simulate(
        self,
        batch: SeekerBatch,
        maps: torch.Tensor,
        free: torch.Tensor,
        strides: torch.Tensor,
        uniforms: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of R trajectories find the object (R,), and their positions (limit, R); as `SeekerGraphs.simulate`."""
        found = torch.zeros_like(batch.found)
        paths = torch.full(uniforms.shape[:2], -1, dtype=torch.int32, device=maps.device)
        for step in range(len(uniforms)):
            if step and step % COMPACT_EVERY == 0:
                # The only synchronization with the device.
                batch = tree.index(batch, (~batch.found).nonzero()[:, 0])
                if not len(batch.index):
                    break
            paths[step, batch.index] = torch.where(batch.found, -1, batch.position).int()
            batch = self.step(batch, maps, free, strides, uniforms[step, batch.index])
            found[batch.index] = batch.found
        return found, paths

    def _start_batch(
        self, shape: tuple[int, int, int], floor: torch.Tensor, start: torch.Tensor, dtype: torch.dtype
    ) -> SeekerBatch:
        """games x maps x repeats trajectories, each at its game's start."""
        (games, copies, repeats), (height, width) = shape, floor.shape[1:]
        index = torch.arange(games * copies * repeats, device=floor.device)
        game = index // (copies * repeats)
        row, column, quarter, standing = start[game].unbind(-1)
        blank = torch.zeros(len(index), self.lstm.hidden_size, device=floor.device, dtype=dtype)
        return SeekerBatch(
            index=index,
            map_offset=index // repeats * (height * width),
            floor_offset=game * (QUARTERS * height * width),
            position=row * width + column,
            quarter=quarter,
            standing=standing,
            last=torch.full_like(index, 2 * NO_SEEKER_ACTION),
            hidden=blank,
            cell=blank,
            found=torch.zeros_like(index, dtype=torch.bool),
        )

    def step(
        self,
        batch: SeekerBatch,
        maps: torch.Tensor,
        free: torch.Tensor,
        strides: torch.Tensor,
        uniforms: torch.Tensor,
    ) -> SeekerBatch:
        """One step of each trajectory; uniforms (R, 2) sample its action and success.

        Finished trajectories keep stepping, unrecorded, until they are removed.
        """
        slices = self._slices(maps, batch.map_offset + batch.position, batch.quarter)
        inputs = self._input(slices, batch.quarter, batch.standing, batch.last)
        hidden, cell = torch.lstm_cell(inputs, (batch.hidden, batch.cell), *self.lstm.all_weights[0])
        action = _sample_categorical(self.policy(hidden), uniforms[:, 0])
        probability = self._success(hidden, slices).gather(1, action[:, None])[:, 0].to(uniforms.dtype).sigmoid()
        success = uniforms[:, 1] < probability

        heading = (batch.quarter + self.moves[action]) % QUARTERS
        moves = self.moves[action] >= 0
        success &= ~moves | free[batch.floor_offset + batch.position * QUARTERS + heading]
        stands = self.stands[action]
        return replace(
            batch,
            position=batch.position + torch.where(success & moves, strides[heading], 0),
            quarter=(batch.quarter + torch.where(success, self.turns[action], 0)) % QUARTERS,
            standing=torch.where(success & (stands >= 0), stands, batch.standing),
            last=2 * action + success.long(),
            hidden=hidden,
            cell=cell,
            found=batch.found | (success & (action == SEEKER_CLAIM)),
        )

    def _success(self, hidden: torch.Tensor, slices: torch.Tensor) -> torch.Tensor:
        """Logits (..., 58) that actions succeed, from the LSTM's output and the slice."""
        logits = self.success(hidden)
        return logits if self.success_here is None else logits + self.success_here(slices).to(logits.dtype)

    def _slices(self, maps: torch.Tensor, at: torch.Tensor, quarter: torch.Tensor) -> torch.Tensor:
        """(R, C): features at positions `at` (R,) of maps (N, h, w, C), counted through all maps; own heading first."""
        groups = maps.reshape(-1, self.channels // QUARTERS)
        headings = (quarter[:, None] + torch.arange(QUARTERS, device=maps.device)) % QUARTERS
        return groups[at[:, None] * QUARTERS + headings].flatten(1)

    def _input(
        self, slices: torch.Tensor, quarter: torch.Tensor, standing: torch.Tensor, last: torch.Tensor
    ) -> torch.Tensor:
        """The LSTM's input (..., C + 8 + 16): the slice, the pose's and the last action's embeddings."""
        parts = (slices, self.pose_embedding(2 * quarter + standing), self.action_embedding(last))
        return torch.cat([part.to(slices.dtype) for part in parts], -1)


def _free_directions(floor: torch.Tensor) -> torch.Tensor:
    """(B, h, w, 4): whether the neighbors north, east, south and west are floor (B, h, w)."""
    padded = F.pad(floor, (1, 1, 1, 1))
    neighbors = (padded[:, :-2, 1:-1], padded[:, 1:-1, 2:], padded[:, 2:, 1:-1], padded[:, 1:-1, :-2])
    return torch.stack(neighbors, -1)


def _sample_categorical(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Samples softmax(logits) (R, A) by inverting its CDF at uniforms (R,)."""
    cdf = logits.to(uniforms.dtype).softmax(-1).cumsum(-1)
    return (uniforms[:, None] >= cdf[:, :-1]).sum(-1)
