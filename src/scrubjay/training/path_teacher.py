"""Teaches seekers the shortest path, in the hider's mental map, to a place from which the object can be claimed.

The hider knows where the object is, and for the map M^e of that hiding its mental seeker predicts from which places a
claim would succeed. The teacher's action is the first of the shortest path there. Paths lead over positions that the
hider visited, in any heading and at either height, like those of mental seekers.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from scrubjay.agent.mental_seeker import (
    MOVES,
    NO_SEEKER_ACTION,
    SEEKER_ACTIONS,
    SEEKER_CLAIM,
    STANDS,
    TURNS,
    MentalSeeker,
)
from scrubjay.agent.metric_map import VIEWS
from scrubjay.agent.perspective import ExploredMaps, PerspectiveSimulation
from scrubjay.game.actions import NOTHING
from scrubjay.rooms.directions import QUARTERS

UNREACHABLE = 2**20
"""The distance of places without a path to a claim; longer than any path."""
CHECK_EVERY = 16
"""Relaxation steps between checks for convergence, each of which waits for the device."""
MAX_POSITIONS = 4096
"""Positions whose views are evaluated at once: some LSTM kernels take no larger batches."""
WALK_ACTIONS = ((MOVES >= 0) | (TURNS > 0) | (STANDS >= 0)).nonzero()[:, 0]
"""Those of a seeker's 58 actions that change its place: three moves, two turns, Stand and Crouch."""
WALK_ACTION_IDS = torch.tensor(SEEKER_ACTIONS)[WALK_ACTIONS]
"""The same among the 219."""
CLAIM_ID = SEEKER_ACTIONS[SEEKER_CLAIM]
DOWN, RIGHT = torch.tensor([-1, 0, 1, 0]), torch.tensor([0, 1, 0, -1])
"""From a position to the next one north, east, south and west, in rows and columns."""


class PathTeacher:
    """The teacher's actions at every place of B games."""

    def __init__(self, games: int, device: torch.device) -> None:
        self.origin = torch.zeros(games, 2, dtype=torch.int64, device=device)
        """(B, 2): steps right and ahead of the window's first position."""
        self.actions = torch.full((games, 1, 1, QUARTERS, 2), NOTHING, dtype=torch.int16, device=device)
        """(B, h, w, 4, 2): by row, column, quarter and standing; the window grows with the largest map."""

    def set(self, games: torch.Tensor, actions: torch.Tensor, origin: torch.Tensor) -> None:
        """Sets the actions (n, h, w, 4, 2) and origins (n, 2) of games (n,), given by index."""
        height, width = (max(mine, new) for mine, new in zip(self.actions.shape[1:3], actions.shape[1:3], strict=True))
        self.actions = _pad_window(self.actions, height, width)
        self.actions[games] = _pad_window(actions.to(self.actions.dtype), height, width)
        self.origin[games] = origin

    def action(self, place: torch.Tensor) -> torch.Tensor:
        """The teacher's actions (..., B) int64 at places (..., B, 4) like the observation's; -1 without a path."""
        height, width = self.actions.shape[1:3]
        column, row = place[..., 0] - self.origin[:, 0], self.origin[:, 1] - place[..., 1]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        position = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
        index = (position * QUARTERS + place[..., 2]) * 2 + place[..., 3]
        action = self.actions.flatten(1).gather(1, index.reshape(-1, len(self.origin)).T).T.reshape(index.shape)
        return torch.where(inside, action.long(), NOTHING)


@torch.no_grad()
def teach(
    perspective: PerspectiveSimulation, explored: ExploredMaps, place: torch.Tensor, outcome: torch.Tensor
) -> torch.Tensor:
    """The teacher's actions (n, h, w, 4, 2) in maps of PS whose hiders hid at places (n, 3) with outcomes (n,).

    Places are row, column and quarter on the maps.
    """
    survey = perspective.encode_maps(explored)
    imagined = perspective.imagine(survey, explored.inside, place[:, None], outcome[:, None, None])[:, 0]
    return first_actions(distances(claimable(perspective.seeker, imagined, explored.floor), explored.floor))


@torch.no_grad()
def claimable(seeker: MentalSeeker, maps: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
    """(n, h, w, 4, 2) bool: would a claim succeed as a seeker's first action, in maps (n, h, w, C) on floor (n, h, w)?

    By row, column, quarter and standing. A mental seeker that expects no claim to succeed anywhere teaches nothing: the
    likeliest of places that it cannot tell apart is a random one, and seekers learned to walk there.
    """
    logits = torch.full((*floor.shape, QUARTERS, 2), -torch.inf, device=floor.device)
    for at in floor.nonzero().split(MAX_POSITIONS):
        if not len(at):
            continue
        game, row, column = at.unbind(1)
        # A seeker observes its own position alone: every place is a map of its own, evaluated in one step.
        alone = maps[game, row, column].repeat_interleave(VIEWS, 0)[:, None, None]
        view = torch.arange(VIEWS, device=floor.device).repeat(len(at))
        zeros = torch.zeros_like(view)
        places = torch.stack([zeros, zeros, view // 2, view % 2], -1)
        output = seeker.predict(alone, places[None], torch.full_like(view, NO_SEEKER_ACTION)[None], (view < 0)[None])
        logits[game, row, column] = output.success[0, :, SEEKER_CLAIM].float().view(-1, QUARTERS, 2)
    return logits > 0


def distances(targets: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
    """(n, h, w, 4, 2) int32: actions from each place to the nearest target (n, h, w, 4, 2), over floor (n, h, w).

    UNREACHABLE without a path. Breadth-first, for all games and places at once.
    """
    successors = _successors(floor.shape[1], floor.shape[2], floor.device)
    walkable = floor[..., None, None].expand_as(targets).flatten(1)
    unreachable = torch.full_like(walkable, UNREACHABLE, dtype=torch.int32)
    distance = torch.where(targets.flatten(1) & walkable, 0, unreachable)
    for step in range(distance.shape[1]):
        before = distance
        via_next = _with_outside(distance)[:, successors].amin(-1) + 1
        distance = torch.where(walkable, torch.minimum(distance, via_next), unreachable)
        # The only place where the host waits for the device.
        if step % CHECK_EVERY == CHECK_EVERY - 1 and torch.equal(before, distance):
            break
    return distance.view(targets.shape)


def first_actions(distance: torch.Tensor) -> torch.Tensor:
    """(n, h, w, 4, 2) int64: the first action of a shortest path from each place, given distances (n, h, w, 4, 2).

    ClaimVisible at a target, -1 without a path. Ties: moves before turns before the rest.
    """
    successors = _successors(distance.shape[1], distance.shape[2], distance.device)
    flat = distance.flatten(1).long()
    # argmin breaks ties differently on different devices.
    order = torch.arange(len(WALK_ACTION_IDS), device=distance.device)
    best = (_with_outside(flat)[:, successors] * len(WALK_ACTION_IDS) + order).argmin(-1)
    actions = torch.where(flat == 0, CLAIM_ID, WALK_ACTION_IDS.to(distance.device)[best])
    return torch.where(flat >= UNREACHABLE, NOTHING, actions).view(distance.shape)


def _with_outside(flat: torch.Tensor) -> torch.Tensor:
    """Distances (n, places), with one more place that stands for all outside the window."""
    return F.pad(flat, (0, 1), value=UNREACHABLE)


def _successors(height: int, width: int, device: torch.device) -> torch.Tensor:
    """(places, 7): the index of the place that each of WALK_ACTIONS leads to; the one after the last is outside."""
    moves, turns, stands = (table[WALK_ACTIONS].to(device) for table in (MOVES, TURNS, STANDS))
    index = torch.arange(height * width * VIEWS, device=device)[:, None]
    position, quarter, standing = index // VIEWS, index // 2 % QUARTERS, index % 2
    heading = (quarter + moves) % QUARTERS
    row = position // width + torch.where(moves >= 0, DOWN.to(device)[heading], 0)
    column = position % width + torch.where(moves >= 0, RIGHT.to(device)[heading], 0)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    quarter, standing = (quarter + turns) % QUARTERS, torch.where(stands >= 0, stands, standing)
    successor = ((row * width + column) * QUARTERS + quarter) * 2 + standing
    return torch.where(inside, successor, height * width * VIEWS)


def _pad_window(actions: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Actions (n, h, w, 4, 2) padded with -1 to a window of height and width."""
    return F.pad(actions, (0, 0, 0, 0, 0, width - actions.shape[2], 0, height - actions.shape[1]), value=NOTHING)
