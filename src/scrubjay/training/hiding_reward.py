"""The value of a place for hiding, which E&M's `HidingReward` pays for: the only reward of E&M that needs the agent.

It is the quick score that perspective simulation gives the explorer's place, with the map just written to.
"""

from __future__ import annotations

import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.metric_map import VIEWS, MapState, pack
from scrubjay.agent.perspective import ExploredMaps


@torch.no_grad()
def place_values(agent: Agent, metric_map: MapState, place: torch.Tensor) -> torch.Tensor:
    """The value (B,) of hiding at places (B, 4) in the maps of B games: the mean of V under softmax(P).

    Equals `PerspectiveSimulation.place_scores` there, because M^1 at a position depends on that position alone.
    """
    right, ahead, quarter, _ = place.unbind(-1)
    explored = ExploredMaps(
        *_at_position(metric_map, place),
        # In a window of that one position, the start is `ahead` rows below it and `right` columns left of it.
        start=torch.stack([ahead, -right, torch.zeros_like(right), torch.ones_like(right)], -1),
    )
    scores = agent.perspective.place_scores(agent.perspective.encode_maps(explored), torch.ones_like(explored.places))
    return scores[:, :, 0, 0].gather(1, quarter[:, None])[:, 0].float()


def _at_position(metric_map: MapState, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The maps at the positions of places (B, 4): values (B, 4, 2, C, 1, 1) and visited (B, 4, 2, 1, 1)."""
    # The views of a position have consecutive keys. Looking up eight slots costs a hundredth of unpacking the map.
    keys = pack(place)[:, None] // VIEWS * VIEWS + torch.arange(VIEWS, device=place.device)
    match = metric_map.keys[:, None] == keys[..., None]
    visited, slot = match.any(-1), match.int().argmax(-1)
    values = metric_map.values.gather(1, slot[..., None].expand(-1, -1, metric_map.values.shape[-1]))
    values = torch.where(visited[..., None], values, 0)
    return values.unflatten(1, (4, 2))[..., None, None], visited.unflatten(1, (4, 2))[..., None, None]
