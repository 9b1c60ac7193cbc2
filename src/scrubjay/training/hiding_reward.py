"""What exploring earns for finding good places to hide at: E&M's one reward that needs the agent.

The value of a state is what perspective simulation thinks at a glance of the place the explorer is at, with the map it
has just written to. A step is paid for leading to something new that is worth more than the new states before it.
"""

from __future__ import annotations

import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.metric_map import VIEWS, MapState, pack
from scrubjay.agent.perspective import Explored
from scrubjay.game.actions import Stage
from scrubjay.game.cache import StepResult
from scrubjay.game.rewards import EM_HIDE


@torch.no_grad()
def place_values(agent: Agent, metric_map: MapState, place: torch.Tensor) -> torch.Tensor:
    """The value (B,) of places (B, 4) for hiding, as maps of B games tell it now: the mean of V under softmax(P).

    It is what `PerspectiveSimulation.scores` says there, for M^1 at a position depends on that position alone.
    """
    right, ahead, quarter, _ = place.unbind(-1)
    explored = Explored(
        *_at_position(metric_map, place),
        # In a window of that one position, the start is `ahead` rows below it and `right` columns left of it.
        start=torch.stack([ahead, -right, torch.zeros_like(right), torch.ones_like(right)], -1),
    )
    scores = agent.perspective.scores(agent.perspective.survey(explored), torch.ones_like(explored.places))
    return scores[:, :, 0, 0].gather(1, quarter[:, None])[:, 0].float()


def _at_position(metric_map: MapState, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What maps hold at the positions of places (B, 4), as values (B, 4, 2, C, 1, 1) and visited (B, 4, 2, 1, 1)."""
    # The views of a position have keys in a row. Eight slots are looked up: spreading all of them costs a hundred times
    # as much.
    keys = pack(place)[:, None] // VIEWS * VIEWS + torch.arange(VIEWS, device=place.device)
    match = metric_map.keys[:, None] == keys[..., None]
    visited, slot = match.any(-1), match.int().argmax(-1)
    values = metric_map.values.gather(1, slot[..., None].expand(-1, -1, metric_map.values.shape[-1]))
    values = torch.where(visited[..., None], values, 0)
    return values.unflatten(1, (4, 2))[..., None, None], visited.unflatten(1, (4, 2))[..., None, None]


class HidingValue:
    """The mean value of what explorers of B games found new, as it grows, and what they earn for finding better."""

    def __init__(self, games: int, device: torch.device) -> None:
        self.total = torch.zeros(games, device=device)
        self.count = torch.zeros(games, device=device)
        self.unseen = torch.zeros(games, dtype=torch.bool, device=device)
        """Whether the last step opened something, or led to a place, for the first time in the episode."""

    def note(self, outcome: StepResult) -> None:
        """Whether a step brought something new."""
        new = outcome.success & (outcome.news.place | outcome.news.opened)
        self.unseen = torch.from_numpy(new).to(self.total.device, non_blocking=True)

    def pay(self, values: torch.Tensor, stage: torch.Tensor, begins: torch.Tensor, keep: bool = True) -> torch.Tensor:
        """What the last steps earn (B,), now that the values (B,) of the states that they led to are known.

        `stage` and `begins` (B,) are of these states. Without `keep` they are not counted yet: they will be seen again.
        """
        exploring = stage == int(Stage.EM)
        total, count = (torch.where(begins, 0, sums) for sums in (self.total, self.count))
        # The state after the last step of E&M is in PS, which does not write into the map: that step earns nothing.
        better = values - total / count.clamp(min=1)
        paid = torch.where(exploring & ~begins & self.unseen, EM_HIDE * better.clamp(0, 1), 0)
        if keep:
            # A game's start is unseen, so that the mean is never empty.
            counts = exploring & (begins | self.unseen)
            self.total, self.count = total + torch.where(counts, values, 0), count + counts
        return paid
