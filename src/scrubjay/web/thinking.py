"""Trained agents as opponents, reporting their value estimates and what they attend to, for the watch page."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.heads import Decision
from scrubjay.agent.memory import DynamicRepresentation, MemoryState
from scrubjay.agent.metric_map import unpack
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.sim.pose import AgentPose
from scrubjay.training.agent_player import AgentPlayer
from scrubjay.viz.agent_trace import map_attention, to_room_frame

ATTENDED = "attended"
MAX_ATTENDED = 12
"""Positions reported of each step, those with the most attention."""


class ThinkingPlayer(AgentPlayer):
    """Plays one game and reports what the agent expects, and looks up in its map, at every step."""

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        super().__init__(agent, seed)
        self.internals: dict[str, Any] = {}
        """Of the last step: `value`; in PS also `expected steps`, the predicted search length at the chosen place, and
        `most expected steps`, the largest among the candidate places. `attended`, of an agent with a map: the positions
        in the room, x and y in meters, and the share of attention to each, most first."""

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls: list[tuple[DynamicRepresentation, Decision]] = []
        before = self._state if game is self._game else self.agent.initial_state(len(game))
        # Games share the agent, so the hook is removed after this step.
        hook = self.agent.heads.register_forward_hook(lambda _module, args, decision: calls.append((args[0], decision)))
        try:
            result = super().__call__(game, games)
        finally:
            hook.remove()
        if not calls:
            return result  # Its opponent plays.
        dirs, decision = calls[-1]
        self.internals = {"value": decision.value[0].item()}
        if game.stage[0] == Stage.PS and self.choice is not None:
            steps, valid = self.choice.expected_steps[0], self.choice.valid[0]
            self.internals["expected steps"] = steps[self.choice.chosen[0]].item()
            self.internals["most expected steps"] = torch.where(valid, steps, -torch.inf).max().item()
        if self.agent.config.memory == "full":
            self.internals[ATTENDED] = self._attended(game, before, dirs)
        return result

    @torch.no_grad()
    def _attended(self, game: CacheGame, before: MemoryState, dirs: DynamicRepresentation) -> list[list[float]]:
        """The positions that the agent attended to most; headings and heights at one position are added up."""
        entries, weights = map_attention(self.agent, before, self._state.stage, dirs.grid)
        written = entries.written[0]
        places = to_room_frame(AgentPose(*game.start[0]), unpack(entries.keys[0, written])[:, :2].cpu().numpy())
        positions, which = np.unique(places.round(2), axis=0, return_inverse=True)
        share = np.bincount(which.ravel(), weights[0][:, written].mean(0).cpu().numpy(), len(positions))
        most = np.argsort(-share)[:MAX_ATTENDED]
        return [[*positions[i].tolist(), round(float(share[i]), 3)] for i in most]
