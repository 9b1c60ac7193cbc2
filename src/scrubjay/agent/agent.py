"""The agent: encoder, memory, heads, perspective simulation and visual dynamics, composed.

`act` takes one step of B games. `evaluate` takes T steps at once, for learning, and gives the same outputs. Both return
all representations; `AgentOutput.features` names them for probing experiments.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import torch
from torch import nn

from scrubjay import tree
from scrubjay.agent import weights
from scrubjay.agent.config import PAPER, AgentConfig, check_hides
from scrubjay.agent.encoder import Encoded, ImageEncoder
from scrubjay.agent.encoders import check_trusted, make_encoder
from scrubjay.agent.heads import Decision, Heads
from scrubjay.agent.memory import ALL_STAGES, DynamicRepresentation, Memory, MemoryState
from scrubjay.agent.metric_map import CAPACITY, Entries, MapState
from scrubjay.agent.navigation import NavigationMemory
from scrubjay.agent.perspective import ExploredMaps, PerspectiveSimulation, PlaceChoice, Uniforms
from scrubjay.agent.visual_dynamics import VisualDynamics
from scrubjay.errors import WeightsError
from scrubjay.game.actions import NAMES, PLACE_ACTIONS
from scrubjay.game.observation import Observation

FEATURES = ("sir", "sir_pooled", "dir", "dir_grid", "change")
"""Names of the representations that `AgentOutput.features` returns."""


@dataclass(frozen=True)
class AgentOutput:
    """The agent's output for B games, or for T steps of them; leading axes as in the observation."""

    state: MemoryState
    """The state after the (last) step, (B, ...)."""
    decision: Decision
    dirs: DynamicRepresentation
    encoded: Encoded
    """Of all images, flattened: N = B, or T * B."""

    def games(self, index: slice) -> AgentOutput:
        """The output of T steps for a slice of the games; `encoded` stays whole."""
        decision, dirs = tree.index((self.decision, self.dirs), (slice(None), index))
        return AgentOutput(tree.index(self.state, index), decision, dirs, self.encoded)

    def features(self) -> dict[str, torch.Tensor]:
        """The representations by name (FEATURES), with the observation's leading axes."""
        lead = self.dirs.flat.shape[:-1]
        return {
            "sir": self.encoded.sir.unflatten(0, lead),
            "sir_pooled": self.encoded.pooled.unflatten(0, lead),
            "dir": self.dirs.flat,
            "dir_grid": self.dirs.grid,
            "change": self.dirs.change,
        }


class Agent(nn.Module):
    """All networks of a Cache player; the same ones play hider and seeker.

    With the memory of a navigation agent it has neither perspective simulation nor visual dynamics.
    """

    def __init__(self, config: AgentConfig = PAPER, encoder: nn.Module | None = None) -> None:
        """`encoder` replaces the one that the config names: an `ImageEncoder` of this image size and SIR."""
        super().__init__()
        self.config = config
        self.encoder = encoder or make_encoder(config)
        full = config.memory == "full"
        self.memory, self.heads = Memory(config) if full else NavigationMemory(config), Heads(config)
        if full:
            self.perspective, self.dynamics = PerspectiveSimulation(config), VisualDynamics(config)
        # Self-prediction: the DIR and an action predict a projection of the next SIR.
        self.action_embedding = nn.Embedding(len(NAMES), config.action_embedding)
        self.sir_predictor = nn.Linear(config.dir_length + config.action_embedding, config.sir_channels)
        self.sir_projection = nn.Conv2d(config.sir_channels, config.sir_channels, 7)
        self.placement_recall = nn.Linear(config.dir_length, 2 * len(PLACE_ACTIONS))
        """Auxiliary loss in OH: which PlaceAt was tried last, and where the object landed."""

    def initial_state(self, games: int, capacity: int = CAPACITY) -> MemoryState:
        """The state before the first step, with maps that hold `capacity` places."""
        return self.memory.initial_state(games, capacity)

    def act(self, state: MemoryState, observation: Observation, is_first: torch.Tensor) -> AgentOutput:
        """One step of B games; `is_first` (B,) bool marks the first step of a game and resets its state."""
        encoded = self._encode(observation)
        dirs, state = self.memory.step(state, encoded.sir, encoded.pooled, observation, is_first)
        return AgentOutput(state, self._decide(dirs, encoded.sir, observation), dirs, encoded)

    def evaluate(
        self,
        state: MemoryState,
        observation: Observation,
        is_first: torch.Tensor,
        stages: frozenset[int] = ALL_STAGES,
        targets: torch.Tensor | None = None,
    ) -> AgentOutput:
        """T steps of B games from the state before them, with gradients; equals T calls of `act`.

        `stages`: the stages that occur, if known; the others are skipped. With `targets` (T, B, 3), the steps are
        evaluated a second time with these as OM's targets (hindsight), and the outputs follow along B: (T, 2 B, ...).
        """
        encoded = self._encode(observation)
        sir, pooled = (tensor.unflatten(0, observation.stage.shape) for tensor in (encoded.sir, encoded.pooled))
        if targets is not None:
            state = tree.cat([state, state])
            sir, pooled, is_first = (torch.cat([tensor, tensor], 1) for tensor in (sir, pooled, is_first))
            # Images are large and already encoded: any small tensor stands in for them.
            blind = replace(observation, image=observation.stage)
            observation = replace(tree.cat([blind, blind], 1), target=torch.cat([observation.target, targets], 1))
        dirs, state = self.memory.sequence(state, sir, pooled, observation, is_first, stages)
        return AgentOutput(state, self._decide(dirs, sir, observation), dirs, encoded)

    def _encode(self, observation: Observation) -> Encoded:
        """Encodes all images, with their leading axes flattened."""
        lead = observation.stage.shape
        if observation.image.shape[: len(lead)] != lead:
            raise ValueError(f"image: expected leading axes {tuple(lead)}, got shape {tuple(observation.image.shape)}")
        return self.encoder(observation.image.flatten(0, len(lead) - 1))

    def _decide(self, dirs: DynamicRepresentation, sir: torch.Tensor, observation: Observation) -> Decision:
        return self.heads(dirs, self.memory.sir_norm(sir, dim=-3), observation)

    def predict_sir(self, flat: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Predicts the next projected SIR (..., C) from flat DIRs (..., L) and actions (...,)."""
        return self.sir_predictor(torch.cat([flat, self.action_embedding(action).to(flat.dtype)], -1))

    def project_sir(self, sir: torch.Tensor) -> torch.Tensor:
        """SIRs (N, C, 7, 7) projected to (N, C), the targets of `predict_sir`."""
        return self.sir_projection(sir).flatten(1)

    def recall_placements(self, flat: torch.Tensor) -> torch.Tensor:
        """Logits (..., 2, 147) of the last PlaceAt tried and of where the object landed, from flat DIRs (..., L)."""
        return self.placement_recall(flat).unflatten(-1, (2, len(PLACE_ACTIONS)))

    def choose_place(
        self, metric_map: MapState, here: torch.Tensor, generator: torch.Generator | None = None
    ) -> tuple[torch.Tensor, PlaceChoice, ExploredMaps]:
        """PS: chooses hiding places for n games, and returns them with the simulation behind the choice.

        `here` (n, 4) are the hiders' places, as observed. Those chosen (n, 4) are in the game's action format: steps
        right and ahead of the hider, quarter turns from the start's heading, standing. ValueError for an agent
        without a map.
        """
        check_hides(self.config)
        explored, origin = explored_maps(metric_map.entries)
        choice = self.perspective.choose_place(explored, Uniforms.sample(explored, generator))
        row, column, quarter, standing = choice.place.unbind(-1)
        right, ahead = origin[:, 0] + column - here[:, 0], origin[:, 1] - row - here[:, 1]
        return torch.stack([right, ahead, quarter, standing], -1), choice, explored


def explored_maps(entries: Entries) -> tuple[ExploredMaps, torch.Tensor]:
    """Maps of B games as dense tensors, and the position (B, 2) of cell (0, 0): steps right and ahead of the start."""
    values, origin = entries.as_tensor()
    size = (values.shape[-2], values.shape[-1])
    ones = Entries(entries.keys, entries.values.new_ones(*entries.keys.shape, 1), entries.written)
    visited = ones.as_tensor(size)[0][:, :, :, 0] > 0
    west, north = origin.unbind(-1)
    start = torch.stack([north, -west, torch.zeros_like(west), torch.ones_like(west)], -1)
    return ExploredMaps(values, visited, start), origin


def save_agent(agent: Agent, folder: str | os.PathLike[str]) -> None:
    """Writes an agent's weights and config to a folder."""
    weights.save(agent, agent.config, folder)


def load_agent(folder: str | os.PathLike[str], encoder: ImageEncoder | None = None, trust_code: bool = False) -> Agent:
    """The agent in a folder of weights or of a training run (its newest checkpoint), or a released one by its name.

    WeightsError says what is wrong.
    `encoder` is the module to fill if the agent was saved with one of your own. An agent whose config names a Python
    class as its encoder is loaded only with `trust_code`.
    """
    config, tensors = weights.load(folder)
    if encoder is None:
        check_trusted(config, trust_code)
    assert encoder is None or isinstance(encoder, nn.Module)
    agent = Agent(config, encoder or make_encoder(config, load_weights=False))
    try:
        weights.fill(agent, tensors)
    except WeightsError as error:
        raise WeightsError(f"{folder}: weights of another network: {error}") from error
    return agent
