"""Trained agents as opponents, reporting their value estimates for the watch page."""

from __future__ import annotations

import numpy as np
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.heads import Decision
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.training.agent_player import AgentPlayer


class ThinkingPlayer(AgentPlayer):
    """Plays one game and reports what the agent expects at every step."""

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        super().__init__(agent, seed)
        self.internals: dict[str, float] = {}
        """Of the last step: `value`; in PS also `expected steps`, the predicted search length at the chosen place, and
        `most expected steps`, the largest among the candidate places."""

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        decisions: list[Decision] = []
        # Games share the agent, so the hook is removed after this step.
        hook = self.agent.heads.register_forward_hook(lambda _module, _args, decision: decisions.append(decision))
        try:
            result = super().__call__(game, games)
        finally:
            hook.remove()
        self.internals = {"value": decisions[-1].value[0].item()}
        if game.stage[0] == Stage.PS and self.choice is not None:
            steps, valid = self.choice.expected_steps[0], self.choice.valid[0]
            self.internals["expected steps"] = steps[self.choice.chosen[0]].item()
            self.internals["most expected steps"] = torch.where(valid, steps, -torch.inf).max().item()
        return result
