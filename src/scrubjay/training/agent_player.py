"""A trained agent as a player of all stages, as hider or seeker."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from scrubjay import tree
from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import check_hides
from scrubjay.agent.perspective import PlaceChoice
from scrubjay.agent.sampling import gumbel
from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.observation import observe
from scrubjay.training.run import newest

TEMPERATURES = tuple(0.25 if stage == Stage.OM else 1.0 for stage in Stage)
"""By stage: what divides the logits unless a player is told otherwise. Hands that prefer likely movements hit more of
their targets; seekers that prefer likely actions find less (results/learning.md)."""


class AgentPlayer:
    """Samples its actions from an agent's policy."""

    def __init__(self, agent: Agent, seed: int = 0, temperature: float | None = None) -> None:
        """`temperature` divides the logits: 1 is the policy as it was trained, less prefers its likely actions.

        By default it is each stage's own (`TEMPERATURES`).
        """
        if temperature is not None and not 0 < temperature < math.inf:
            raise ValueError(f"temperature: a finite number above 0, not {temperature}")
        self.agent, self.seed = agent.eval(), seed
        self.temperatures = np.array(TEMPERATURES if temperature is None else [temperature] * len(Stage), np.float32)
        """By stage."""
        self.device = next(agent.parameters()).device
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.choice: PlaceChoice | None = None
        """The last choice in PS."""
        self._game: CacheGame | None = None

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions (B,) and places (B, 4) for the games (B,) bool that it plays; -1 and zeros elsewhere."""
        if game is not self._game:
            if (games & (game.stage <= Stage.PS) & (game.last >= Stage.PS)).any():
                check_hides(self.agent.config)
            self._game, self._state = game, self.agent.initial_state(len(game))
            self._episode = np.full(len(game), -1)
        uniforms = torch.rand(len(game), len(NAMES), generator=self.generator, device=self.device)
        rows, place = self._rows(games), np.zeros((len(game), 4), int)
        if not len(rows):
            return np.full(len(game), NOTHING), place
        index = torch.from_numpy(rows).to(self.device)
        is_first = torch.from_numpy(self._begins(game)[rows]).to(self.device)
        self._episode[rows] = game.episode[rows]
        with torch.no_grad():
            everything = tree.map(lambda tensor: tensor.to(self.device), observe(game))
            observation = tree.index(everything, index)
            observation = replace(observation, image=resize(observation.image, self.agent.config.image_size))
            step = self.agent.act(tree.index(self._state, index), observation, is_first)
            self._state = tree.map(lambda whole, part: whole.index_copy(0, index, part), self._state, step.state)
            temperature = torch.from_numpy(self.temperatures[game.stage[rows]]).to(self.device)
            drawn = (step.decision.logits.float() / temperature[:, None] + gumbel(uniforms[index])).argmax(-1)
            action = np.full(len(game), NOTHING)
            action[rows] = drawn.cpu().numpy()
            choosing = np.flatnonzero(games & (game.stage == Stage.PS))
            if len(choosing):
                index = torch.from_numpy(choosing).to(self.device)
                places, self.choice, _ = self.agent.choose_place(
                    tree.index(self._state.metric_map, index), everything.place[index], self.generator
                )
                place[choosing] = places.cpu().numpy()
        return np.where(games & (game.stage != Stage.PS), action, NOTHING), place

    def _begins(self, game: CacheGame) -> np.ndarray:
        """Games (B,) bool in which nothing is to be remembered: new ones, and those with a new manipulation, where who
        plays OM alone did not see OH since the one before."""
        manipulates = (game.stage == Stage.OM) & (game.time[:, Stage.OM] == 0)
        return (self._episode != game.episode) | manipulates & (self._state.stage.cpu().numpy() == Stage.OM)

    def _rows(self, games: np.ndarray) -> np.ndarray:
        """The games that the networks look at: those that it plays. Each stage begins with an empty memory.

        On a GPU they look at all, if at any: that takes as long, and they are compiled for batches of one size.
        """
        return np.arange(len(games)) if self.device.type == "cuda" and games.any() else np.flatnonzero(games)


def resize(image: torch.Tensor, size: int) -> torch.Tensor:
    """Images (B, H, W, 3) uint8, resized to the agent's size."""
    if image.shape[1] == size:
        return image
    smooth = functional.interpolate(image.permute(0, 3, 1, 2).float(), (size, size), mode="bilinear", antialias=True)
    return smooth.round().clamp(0, 255).byte().permute(0, 2, 3, 1)


def load_player(
    folder: str | os.PathLike[str],
    seed: int = 0,
    device: str = "cpu",
    trust_code: bool = False,
    temperature: float | None = None,
) -> AgentPlayer:
    """The agent of a run's newest checkpoint, or of a folder of weights, as a player."""
    return AgentPlayer(load_agent(newest(folder), trust_code=trust_code).to(device), seed, temperature)
