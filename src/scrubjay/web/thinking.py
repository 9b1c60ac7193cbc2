"""Trained agents that play here, and what they think at every step, for those who watch the game afterwards."""

from __future__ import annotations

import numpy as np
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.heads import Decision
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.training.agent_player import AgentPlayer


class ThinkingPlayer(AgentPlayer):
    """An agent that plays one game and says what it expects of it."""

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        super().__init__(agent, seed)
        self.thought: dict[str, float] = {}
        """Of its last step: the value; in PS also the steps that a search is expected to take at the place that it
        chose, and at the best of those that it thought through."""

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        decisions: list[Decision] = []
        # The agent is shared between games: its heads are listened to for this step alone.
        hook = self.agent.heads.register_forward_hook(lambda _module, _given, decision: decisions.append(decision))
        try:
            answer = super().__call__(game, games)
        finally:
            hook.remove()
        self.thought = {"value": decisions[-1].value[0].item()}
        if game.stage[0] == Stage.PS and self.choice is not None:
            steps, real = self.choice.expected_steps[0], self.choice.valid[0]
            self.thought["expected steps"] = steps[self.choice.chosen[0]].item()
            self.thought["most expected steps"] = torch.where(real, steps, -torch.inf).max().item()
        return answer
