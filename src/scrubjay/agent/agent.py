"""The agent: encoder, memory, heads, perspective simulation and visual dynamics, composed.

`act` takes a step of B games, `evaluate` T steps at once with the same numbers, for learning. Both return all that the
networks made of the images, so that experiments can read SIRs and DIRs out by name (`readings`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import torch
from torch import nn

from scrubjay import tree
from scrubjay.agent import weights
from scrubjay.agent.config import PAPER, AgentConfig
from scrubjay.agent.encoder import Encoded, ImageEncoder
from scrubjay.agent.encoders import check_trusted, make_encoder
from scrubjay.agent.heads import Decision, Heads
from scrubjay.agent.memory import ALL_STAGES, DynamicRepresentation, Memory, MemoryState
from scrubjay.agent.metric_map import CAPACITY, Entries
from scrubjay.agent.perspective import ExploredMaps, PerspectiveSimulation, PlaceChoice, Uniforms
from scrubjay.agent.visual_dynamics import VisualDynamics
from scrubjay.game.actions import NAMES, PLACE_ACTIONS
from scrubjay.game.observation import Observation

FEATURES = ("sir", "sir_pooled", "dir", "dir_grid", "change")
"""What can be read out of a step by name."""


@dataclass(frozen=True)
class AgentOutput:
    """What the agent made of B games' observations, or of T steps of them; leading axes as in the observation."""

    state: MemoryState
    """What it remembers afterwards, (B, ...)."""
    decision: Decision
    dirs: DynamicRepresentation
    encoded: Encoded
    """Of all images in a row: N = B, or T * B."""

    def games(self, some: slice) -> AgentOutput:
        """What is said of some of the games of T steps; of the images, all."""
        decision, dirs = tree.index((self.decision, self.dirs), (slice(None), some))
        return AgentOutput(tree.index(self.state, some), decision, dirs, self.encoded)

    def features(self) -> dict[str, torch.Tensor]:
        """The representations by the names of FEATURES, with the observation's leading axes."""
        lead = self.dirs.flat.shape[:-1]
        return {
            "sir": self.encoded.sir.unflatten(0, lead),
            "sir_pooled": self.encoded.pooled.unflatten(0, lead),
            "dir": self.dirs.flat,
            "dir_grid": self.dirs.grid,
            "change": self.dirs.change,
        }


class Agent(nn.Module):
    """All networks of a player of Cache, hider and seeker in one."""

    def __init__(self, config: AgentConfig = PAPER, encoder: nn.Module | None = None) -> None:
        """`encoder` replaces the one that the config names: an `ImageEncoder` of this image size and SIR."""
        super().__init__()
        self.config = config
        self.encoder = encoder or make_encoder(config)
        self.memory, self.heads = Memory(config), Heads(config)
        self.perspective, self.dynamics = PerspectiveSimulation(config), VisualDynamics(config)
        # For self-prediction: what is expected of an action, and what was seen, as vectors of the same length.
        self.action_embedding = nn.Embedding(len(NAMES), config.action_embedding)
        self.sir_predictor = nn.Linear(config.lstm + config.action_embedding, config.sir_channels)
        self.sir_projection = nn.Conv2d(config.sir_channels, config.sir_channels, 7)
        self.placement_recall = nn.Linear(config.lstm, 2 * len(PLACE_ACTIONS))
        """In OH: which PlaceAt was tried last, and where it landed."""

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MemoryState:
        """What an agent remembers that has seen nothing; `capacity` places fit in its map."""
        return self.memory.initial_state(games, capacity)

    def act(self, state: MemoryState, observation: Observation, begins: torch.Tensor) -> AgentOutput:
        """One step of B games; `begins` (B,) bool where it is a game's first."""
        encoded = self._encode(observation)
        dirs, state = self.memory.step(state, encoded.sir, encoded.pooled, observation, begins)
        return AgentOutput(state, self._decide(dirs, encoded.sir, observation), dirs, encoded)

    def evaluate(
        self,
        state: MemoryState,
        observation: Observation,
        begins: torch.Tensor,
        stages: frozenset[int] = ALL_STAGES,
        targets: torch.Tensor | None = None,
    ) -> AgentOutput:
        """T steps of B games from the state before them, with gradients: the same as T calls of `act`.

        `stages` are those that there are steps of, where that is known. With `targets` (T, B, 3) all steps are read a
        second time, as if these had been OM's: what the agent makes of that follows along B.
        """
        encoded = self._encode(observation)
        sir, pooled = (tensor.unflatten(0, observation.stage.shape) for tensor in (encoded.sir, encoded.pooled))
        if targets is not None:
            state = tree.cat([state, state])
            sir, pooled, begins = (torch.cat([tensor, tensor], 1) for tensor in (sir, pooled, begins))
            # Images are large, and were encoded.
            blind = replace(observation, image=observation.stage)
            observation = replace(tree.cat([blind, blind], 1), target=torch.cat([observation.target, targets], 1))
        dirs, state = self.memory.sequence(state, sir, pooled, observation, begins, stages)
        return AgentOutput(state, self._decide(dirs, sir, observation), dirs, encoded)

    def _encode(self, observation: Observation) -> Encoded:
        """What the encoder makes of all images in a row."""
        lead = observation.stage.shape
        if observation.image.shape[: len(lead)] != lead:
            raise ValueError(f"image: leading axes {tuple(lead)} are needed, not {tuple(observation.image.shape)}")
        return self.encoder(observation.image.flatten(0, len(lead) - 1))

    def _decide(self, dirs: DynamicRepresentation, sir: torch.Tensor, observation: Observation) -> Decision:
        return self.heads(dirs, self.memory.sir_norm(sir, dim=-3), observation)

    def predict_sir(self, flat: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """What is expected to be seen after actions (...,) with DIRs (..., L): (..., C)."""
        return self.sir_predictor(torch.cat([flat, self.action_embedding(action).to(flat.dtype)], -1))

    def project_sir(self, sir: torch.Tensor) -> torch.Tensor:
        """What was seen, SIRs (N, C, 7, 7), in the terms of what is expected: (N, C)."""
        return self.sir_projection(sir).flatten(1)

    def recall_placements(self, flat: torch.Tensor) -> torch.Tensor:
        """Logits (..., 2, 147) of the PlaceAt tried last and of where it landed, from DIRs (..., L)."""
        return self.placement_recall(flat).unflatten(-1, (2, len(PLACE_ACTIONS)))

    def choose_place(
        self,
        state: MemoryState,
        observation: Observation,
        games: torch.Tensor,
        generator: torch.Generator | None = None,
    ) -> tuple[torch.Tensor, PlaceChoice, ExploredMaps]:
        """Where hiders of some games (n,), by number, go in PS: places (n, 4) as the game takes them, and why.

        These are steps right and ahead of where the hider is, quarter turns from the start's heading, standing.
        """
        entries = Entries(
            state.metric_map.keys[games], state.metric_map.values[games], state.metric_map.keys[games] >= 0
        )
        explored, origin = explored_maps(entries)
        choice = self.perspective.choose_place(explored, Uniforms.sample(explored, generator))
        row, column, quarter, standing = choice.place.unbind(-1)
        here = observation.place[games]
        right, ahead = origin[:, 0] + column - here[:, 0], origin[:, 1] - row - here[:, 1]
        return torch.stack([right, ahead, quarter, standing], -1), choice, explored


def explored_maps(entries: Entries) -> tuple[ExploredMaps, torch.Tensor]:
    """Maps of B games as perspective simulation takes them, and (B, 2): steps right and ahead of their first cells."""
    values, origin = entries.as_tensor()
    size = (values.shape[-2], values.shape[-1])
    ones = Entries(entries.keys, entries.values.new_ones(*entries.keys.shape, 1), entries.written)
    visited = ones.as_tensor(size)[0][:, :, :, 0] > 0
    west, north = origin.unbind(-1)
    start = torch.stack([north, -west, torch.zeros_like(west), torch.ones_like(west)], -1)
    return ExploredMaps(values, visited, start), origin


def save_agent(agent: Agent, folder: str | os.PathLike[str]) -> None:
    """Writes an agent's weights and its config into a folder."""
    weights.save(agent, agent.config, folder)


def load_agent(folder: str | os.PathLike[str], encoder: ImageEncoder | None = None, trust_code: bool = False) -> Agent:
    """The agent in a folder of weights or of a training run (its newest checkpoint); WeightsError says what is wrong.

    `encoder` is the module to fill if the agent was saved with one of your own. An agent whose config names a Python
    class as its encoder is loaded only with `trust_code`.
    """
    config, tensors = weights.load(folder)
    if encoder is None:
        check_trusted(config, trust_code)
    assert encoder is None or isinstance(encoder, nn.Module)
    agent = Agent(config, encoder or make_encoder(config, load_weights=False))
    weights.fill(agent, tensors)
    return agent
