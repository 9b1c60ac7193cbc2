"""Where the mental map leads a seeker: the shortest way to a place from which the object can be claimed in it.

The hider knows where the object is, and its mental seeker tells, for the map M^e of that hiding, from which places a
claim would succeed. A real seeker is encouraged to take the first step of the shortest way there. Ways lead over
positions that the hider visited, in any heading and at either height, as those of mental seekers do.
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

FAR = 2**20
"""The distance of places from which no way leads to a claim; no way is as long."""
CHECK_EVERY = 16
"""Steps of ways after which it is asked whether all of them are known."""
TOGETHER = 4096
"""Positions whose places are asked about at once: larger batches are more than some LSTM kernels take."""
WALKS = ((MOVES >= 0) | (TURNS > 0) | (STANDS >= 0)).nonzero()[:, 0]
"""Those of a seeker's 58 actions that lead from place to place: three moves, two turns, standing and crouching."""
NUMBERS = torch.tensor(SEEKER_ACTIONS)[WALKS]
"""The same among the 219."""
CLAIM_NUMBER = SEEKER_ACTIONS[SEEKER_CLAIM]
DOWN, RIGHT = torch.tensor([-1, 0, 1, 0]), torch.tensor([0, 1, 0, -1])
"""From a position to the next one north, east, south and west, in rows and columns."""


class PathTeacher:
    """The first steps of the ways in B games, kept from the end of hiding for as long as the seeker looks."""

    def __init__(self, games: int, device: torch.device) -> None:
        self.known = torch.zeros(games, dtype=torch.bool, device=device)
        self.origin = torch.zeros(games, 2, dtype=torch.int64, device=device)
        """(B, 2): steps right and ahead of the window's first position."""
        self.steps = torch.full((games, 1, 1, QUARTERS, 2), NOTHING, dtype=torch.int16, device=device)
        """(B, h, w, 4, 2): by row, column, quarter and standing; the window grows with the largest map."""

    @torch.no_grad()
    def lead(
        self,
        perspective: PerspectiveSimulation,
        games: torch.Tensor,
        explored: ExploredMaps,
        origin: torch.Tensor,
        place: torch.Tensor,
        outcome: torch.Tensor,
    ) -> None:
        """Seeking begins in games (n,), by number, whose hiders hid at places (n, 3) with outcomes (n,).

        `explored` are their maps, as PS had them, `origin` (n, 2) the steps right and ahead of the maps' first cells;
        places are row, column and quarter in these maps.
        """
        survey = perspective.encode_maps(explored)
        imagined = perspective.imagine(survey, explored.inside, place[:, None], outcome[:, None, None])[:, 0]
        aims = claimable(perspective.seeker, imagined, explored.floor)
        self.set(games, first_steps(distances(aims, explored.floor)), origin)

    def set(self, games: torch.Tensor, steps: torch.Tensor, origin: torch.Tensor) -> None:
        """First steps (n, h, w, 4, 2) and origins (n, 2) of some games (n,), by number."""
        height, width = (max(mine, new) for mine, new in zip(self.steps.shape[1:3], steps.shape[1:3], strict=True))
        self.steps = _widened(self.steps, height, width)
        self.steps[games] = _widened(steps.to(self.steps.dtype), height, width)
        self.origin[games], self.known[games] = origin, True

    def forget(self, games: torch.Tensor) -> None:
        """New games begin where `games` (B,) bool."""
        self.known = self.known & ~games

    def toward(self, place: torch.Tensor) -> torch.Tensor:
        """The action (B,) int64 that comes nearer from places (B, 4) like the observation's; -1 where none is known."""
        height, width = self.steps.shape[1:3]
        column, row = place[:, 0] - self.origin[:, 0], self.origin[:, 1] - place[:, 1]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        views = self.steps.flatten(1)
        index = ((row.clamp(0, height - 1) * width + column.clamp(0, width - 1)) * QUARTERS + place[:, 2]) * 2
        found = views.gather(1, (index + place[:, 3])[:, None])[:, 0].long()
        return torch.where(self.known & inside, found, NOTHING)


@torch.no_grad()
def claimable(seeker: MentalSeeker, maps: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
    """(n, h, w, 4, 2) bool: would a claim succeed that a seeker begins with, in maps (n, h, w, C) on floor (n, h, w)?

    By row, column, quarter and standing. In a game where no claim is more likely to succeed than not, the likeliest
    counts: a seeker that knows little yet should go where it is best.
    """
    odds = torch.full((*floor.shape, QUARTERS, 2), -torch.inf, device=floor.device)
    for at in floor.nonzero().split(TOGETHER):
        if not len(at):
            continue
        game, row, column = at.unbind(1)
        # What a seeker observes is at its position alone: every place is a map of its own, gone through in one step.
        alone = maps[game, row, column].repeat_interleave(VIEWS, 0)[:, None, None]
        view = torch.arange(VIEWS, device=floor.device).repeat(len(at))
        nowhere = torch.zeros_like(view)
        places = torch.stack([nowhere, nowhere, view // 2, view % 2], -1)
        said = seeker.predict(alone, places[None], torch.full_like(view, NO_SEEKER_ACTION)[None], (view < 0)[None])
        odds[game, row, column] = said.success[0, :, SEEKER_CLAIM].float().view(-1, QUARTERS, 2)
    likeliest = odds.flatten(1).amax(1).view(-1, 1, 1, 1, 1)
    return torch.isfinite(odds) & ((odds > 0) | (odds == likeliest) & (likeliest <= 0))


def distances(aims: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
    """(n, h, w, 4, 2) int32: actions from each place to the nearest aim (n, h, w, 4, 2), over floor (n, h, w).

    FAR where no way leads there. All games and places at once, one more action at a time.
    """
    onward = _onward(floor.shape[1], floor.shape[2], floor.device)
    walkable = floor[..., None, None].expand_as(aims).flatten(1)
    far = torch.full_like(walkable, FAR, dtype=torch.int32)
    found = torch.where(aims.flatten(1) & walkable, 0, far)
    for step in range(found.shape[1]):
        before = found
        near = _beyond(found)[:, onward].amin(-1) + 1
        found = torch.where(walkable, torch.minimum(found, near), far)
        # The only place where the host waits for the device.
        if step % CHECK_EVERY == CHECK_EVERY - 1 and torch.equal(before, found):
            break
    return found.view(aims.shape)


def first_steps(away: torch.Tensor) -> torch.Tensor:
    """(n, h, w, 4, 2) int64: the action that comes nearer from each place, given its distances (n, h, w, 4, 2).

    ClaimVisible at an aim, -1 where no way leads to one. Of several, moves come before turns, turns before the rest.
    """
    onward, flat = _onward(away.shape[1], away.shape[2], away.device), away.flatten(1).long()
    # Which of several equal ones argmin gives depends on the device.
    order = torch.arange(len(NUMBERS), device=away.device)
    best = (_beyond(flat)[:, onward] * len(NUMBERS) + order).argmin(-1)
    steps = torch.where(flat == 0, CLAIM_NUMBER, NUMBERS.to(away.device)[best])
    return torch.where(flat >= FAR, NOTHING, steps).view(away.shape)


def _beyond(flat: torch.Tensor) -> torch.Tensor:
    """Distances (n, places) with one more place behind them, which is outside the window."""
    return F.pad(flat, (0, 1), value=FAR)


def _onward(height: int, width: int, device: torch.device) -> torch.Tensor:
    """(places, 7): the place, by number, that each of WALKS leads to; the number after the last is outside."""
    moves, turns, stands = (table[WALKS].to(device) for table in (MOVES, TURNS, STANDS))
    number = torch.arange(height * width * VIEWS, device=device)[:, None]
    position, quarter, standing = number // VIEWS, number // 2 % QUARTERS, number % 2
    heading = (quarter + moves) % QUARTERS
    row = position // width + torch.where(moves >= 0, DOWN.to(device)[heading], 0)
    column = position % width + torch.where(moves >= 0, RIGHT.to(device)[heading], 0)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    quarter, standing = (quarter + turns) % QUARTERS, torch.where(stands >= 0, stands, standing)
    there = ((row * width + column) * QUARTERS + quarter) * 2 + standing
    return torch.where(inside, there, height * width * VIEWS)


def _widened(steps: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Steps (n, h, w, 4, 2) in a window of at least their size; nothing is known of what is added."""
    return F.pad(steps, (0, 0, 0, 0, 0, width - steps.shape[2], 0, height - steps.shape[1]), value=NOTHING)
