"""The mental seeker: an LSTM that walks about an imagined map and tells what a seeker would do, and what would succeed.

What it observes is a slice of a map M^e: the numbers at its position. They are four groups, one for each heading, and
are turned so that the group of the heading it faces comes first. Whether an action succeeds is drawn from its own
predictions; a move also needs a position that the hider visited, since the map knows of no other floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scrubjay import tree
from scrubjay.agent.config import AgentConfig
from scrubjay.game.actions import ALLOWED, NAMES, Stage, action_index
from scrubjay.rooms.directions import QUARTERS

SEEKER_ACTIONS = tuple(np.flatnonzero(ALLOWED[Stage.S]).tolist())
"""The 58 actions of a seeker by their numbers among the 219; here they are 0 to 57, in this order."""
NO_SEEKER_ACTION = len(SEEKER_ACTIONS)
"""The last action at the first step."""
POSE_EMBEDDING = 8
CHECK_EVERY = 10
"""Steps after which the trajectories that found the object are put aside."""


def _seeker_table(values: dict[str, int], otherwise: int) -> torch.Tensor:
    """A number for each of the 58 actions, by name."""
    table = torch.full((len(SEEKER_ACTIONS),), otherwise)
    for name, value in values.items():
        table[SEEKER_ACTIONS.index(action_index(name))] = value
    return table


MOVES = _seeker_table({"MoveAhead": 0, "MoveRight": 1, "MoveLeft": 3}, -1)
"""Quarter turns between where a player faces and where it moves; -1 for what is no move."""
TURNS = _seeker_table({"RotateRight": 1, "RotateLeft": 3}, 0)
STANDS = _seeker_table({"Crouch": 0, "Stand": 1}, -1)
"""Standing afterwards; -1 for as before."""
SEEKER_CLAIM = SEEKER_ACTIONS.index(action_index("ClaimVisible"))
SEEKER_INDEX = torch.full((len(NAMES) + 1,), -1)
"""(220,): the number among the 58 of each of the 219 actions, -1 for actions of other stages, and for no action."""
SEEKER_INDEX[list(SEEKER_ACTIONS)] = torch.arange(len(SEEKER_ACTIONS))
SEEKER_INDEX[-1] = NO_SEEKER_ACTION


@dataclass(frozen=True)
class SeekerPrediction:
    """What the mental seeker says at each step of seekers' trajectories."""

    policy: torch.Tensor
    """(T, B, 58) logits of what the seeker does."""
    success: torch.Tensor
    """(T, B, 58) logits of whether each action would succeed."""


@dataclass(frozen=True)
class Rollouts:
    """Mental trajectories: R in each of K imagined maps of B games."""

    steps: torch.Tensor
    """(B, K, R) how many steps were taken, the successful claim included; the limit where there was none."""
    found: torch.Tensor
    """(B, K, R) bool."""
    paths: torch.Tensor
    """(limit, B, K, R) int32: the position before each step, row * w + column; -1 after the end."""


@dataclass(frozen=True)
class _Walkers:
    """Trajectories under way, one in each row of every tensor."""

    number: torch.Tensor
    """Which of all trajectories it is."""
    map_at: torch.Tensor
    """Where its map begins among the positions of all maps."""
    floor_at: torch.Tensor
    """Where its game begins among the free directions of all games."""
    position: torch.Tensor
    quarter: torch.Tensor
    standing: torch.Tensor
    last: torch.Tensor
    """The last action and its success, as the embedding numbers them."""
    output: torch.Tensor
    cell: torch.Tensor
    found: torch.Tensor


class MentalSeeker(nn.Module):
    """An LSTM on slices of imagined maps, with a policy over the 58 actions and predictions of their success."""

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
        for name, table in (("moves", MOVES), ("turns", TURNS), ("stands", STANDS)):
            self.register_buffer(name, table, persistent=False)

    def predict(
        self, maps: torch.Tensor, places: torch.Tensor, last_action: torch.Tensor, last_success: torch.Tensor
    ) -> SeekerPrediction:
        """Goes the way of real seekers through maps (B, h, w, C): places (T, B, 4) are row, column, quarter, standing.

        last_action (T, B) is 0..57 or NO_SEEKER_ACTION, last_success (T, B) bool. Off the map slices are 0.
        """
        games, height, width, _ = maps.shape
        row, column, quarter, standing = places.unbind(-1)
        known = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        position = torch.where(known, row * width + column, 0)
        map_at = torch.arange(games, device=maps.device) * height * width
        seen = self._slices(maps, (map_at + position).flatten(), quarter.flatten()).view(*known.shape, self.channels)
        seen = torch.where(known[..., None], seen, 0)
        output, _ = self.lstm(self._input(seen, quarter, standing, 2 * last_action + last_success.long()))
        return SeekerPrediction(self.policy(output), self.success(output))

    @torch.no_grad()
    def simulate(
        self, maps: torch.Tensor, floor: torch.Tensor, start: torch.Tensor, uniforms: torch.Tensor
    ) -> Rollouts:
        """Lets R seekers search each of K maps of B games, all at once.

        maps (B, K, h, w, C); floor (B, h, w) bool, where one may walk; start (B, 4) row, column, quarter, standing;
        uniforms (limit, B, K, R, 2) in [0, 1), which choose each step's action and its success.
        """
        limit, games, copies, repeats, _ = uniforms.shape
        if maps.shape[:2] != (games, copies) or maps.shape[2:4] != floor.shape[1:]:
            raise ValueError(
                f"maps {tuple(maps.shape)} do not fit floor {tuple(floor.shape)} and {games} x {copies} maps"
            )
        shape = (games, copies, repeats)
        uniforms, maps = uniforms.reshape(limit, -1, 2), maps.flatten(0, 1).contiguous()
        walkers = self._at_start(shape, floor, start, maps.dtype)
        free = _free_directions(floor).flatten()
        way = torch.tensor([-floor.shape[2], 1, floor.shape[2], -1], device=maps.device)
        steps = torch.zeros_like(walkers.number)
        found = torch.zeros_like(walkers.found)
        paths = torch.full((limit, len(steps)), -1, dtype=torch.int32, device=maps.device)
        for step in range(limit):
            if step and step % CHECK_EVERY == 0:
                # The only place where the host waits for the device.
                walkers = tree.index(walkers, (~walkers.found).nonzero()[:, 0])
                if not len(walkers.number):
                    break
            paths[step, walkers.number] = torch.where(walkers.found, -1, walkers.position).int()
            steps[walkers.number] += (~walkers.found).long()
            walkers = self._step(walkers, maps, free, way, uniforms[step, walkers.number])
            found[walkers.number] = walkers.found
        return Rollouts(steps.view(shape), found.view(shape), paths.view(limit, *shape))

    def _at_start(
        self, shape: tuple[int, int, int], floor: torch.Tensor, start: torch.Tensor, dtype: torch.dtype
    ) -> _Walkers:
        """As many walkers as games x maps x repeats, each where its game starts."""
        (games, copies, repeats), (height, width) = shape, floor.shape[1:]
        number = torch.arange(games * copies * repeats, device=floor.device)
        game = number // (copies * repeats)
        row, column, quarter, standing = start[game].unbind(-1)
        blank = torch.zeros(len(number), self.lstm.hidden_size, device=floor.device, dtype=dtype)
        return _Walkers(
            number=number,
            map_at=number // repeats * (height * width),
            floor_at=game * (QUARTERS * height * width),
            position=row * width + column,
            quarter=quarter,
            standing=standing,
            last=torch.full_like(number, 2 * NO_SEEKER_ACTION),
            output=blank,
            cell=blank,
            found=torch.zeros_like(number, dtype=torch.bool),
        )

    def _step(
        self,
        walkers: _Walkers,
        maps: torch.Tensor,
        free: torch.Tensor,
        way: torch.Tensor,
        uniforms: torch.Tensor,
    ) -> _Walkers:
        """One action of each walker, its action and success chosen by uniforms (R, 2).

        Walkers that found the object go on until they are put aside, and nobody looks.
        """
        seen = self._slices(maps, walkers.map_at + walkers.position, walkers.quarter)
        observed = self._input(seen, walkers.quarter, walkers.standing, walkers.last)
        output, cell = self._lstm_step(observed, walkers.output, walkers.cell)
        action = _chosen(self.policy(output), uniforms[:, 0])
        chance = self.success(output).gather(1, action[:, None])[:, 0].to(uniforms.dtype).sigmoid()
        success = uniforms[:, 1] < chance

        heading = (walkers.quarter + self.moves[action]) % QUARTERS
        moves = self.moves[action] >= 0
        success &= ~moves | free[walkers.floor_at + walkers.position * QUARTERS + heading]
        stands = self.stands[action]
        return replace(
            walkers,
            position=walkers.position + torch.where(success & moves, way[heading], 0),
            quarter=(walkers.quarter + torch.where(success, self.turns[action], 0)) % QUARTERS,
            standing=torch.where(success & (stands >= 0), stands, walkers.standing),
            last=2 * action + success.long(),
            output=output,
            cell=cell,
            found=walkers.found | (success & (action == SEEKER_CLAIM)),
        )

    def _slices(self, maps: torch.Tensor, at: torch.Tensor, quarter: torch.Tensor) -> torch.Tensor:
        """(R, C): the numbers at places of maps (N, h, w, C), at (R,) counted through all maps, the heading's first."""
        groups = maps.reshape(-1, self.channels // QUARTERS)
        turned = (quarter[:, None] + torch.arange(QUARTERS, device=maps.device)) % QUARTERS
        return groups[at[:, None] * QUARTERS + turned].flatten(1)

    def _input(
        self, seen: torch.Tensor, quarter: torch.Tensor, standing: torch.Tensor, last: torch.Tensor
    ) -> torch.Tensor:
        """The LSTM's input (..., C + 8 + 16): a slice, where the seeker faces from, what it did last."""
        parts = (seen, self.pose_embedding(2 * quarter + standing), self.action_embedding(last))
        return torch.cat([part.to(seen.dtype) for part in parts], -1)

    def _lstm_step(
        self, observed: torch.Tensor, output: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One step of the LSTM: (R, input), (R, H), (R, H) -> (R, H), (R, H)."""
        return torch.lstm_cell(observed, (output, cell), *self.lstm.all_weights[0])


def _free_directions(floor: torch.Tensor) -> torch.Tensor:
    """(B, h, w, 4): whether the next position north, east, south and west is floor (B, h, w) too."""
    wider = F.pad(floor, (1, 1, 1, 1))
    beside = (wider[:, :-2, 1:-1], wider[:, 1:-1, 2:], wider[:, 2:, 1:-1], wider[:, 1:-1, :-2])
    return torch.stack(beside, -1)


def _chosen(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Draws from softmax(logits) (R, A) by one uniform number (R,) each."""
    heap = logits.to(uniforms.dtype).softmax(-1).cumsum(-1)
    return (uniforms[:, None] >= heap[:, :-1]).sum(-1)
