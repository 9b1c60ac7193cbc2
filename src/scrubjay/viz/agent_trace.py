"""One whole game of an agent with the internals of its networks: policy, value, attention, perspective simulation."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent import metric_map
from scrubjay.agent.agent import Agent, AgentOutput
from scrubjay.agent.config import check_hides
from scrubjay.agent.encoders import check_trusted, make_encoder
from scrubjay.agent.memory import EM, OM, MemoryState, S
from scrubjay.agent.metric_map import NUM_HEADS, Entries, unpack
from scrubjay.agent.perspective import ExploredMaps, PlaceChoice
from scrubjay.game.actions import ALLOWED, NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.observation import Observation, observe
from scrubjay.game.record import Record, Recorder
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import GRID
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Progress, load_checkpoint, newest, read_config

OTHER_STARTS = 2
"""Other starts of the seeker for which PS is scored too, as in the paper's figure."""


@dataclass(frozen=True)
class TraceStep:
    """One step: what the agent saw, and what its networks computed before it acted."""

    stage: Stage
    action: str
    """Its name; in PS, `PS` and the four numbers of the pose."""
    success: bool
    picture: np.ndarray
    """(H, W, 3) uint8: the observation."""
    agent_pose: AgentPose
    probabilities: np.ndarray
    """(219,): the policy; zeros in PS, which has none."""
    value: float
    hittable: np.ndarray
    """(3, 7, 7): predicted probability that a manipulation hits each target."""
    remembered: np.ndarray
    """(N, 2): the positions of the map's entries; a position has an entry for each heading and height seen."""
    attention: np.ndarray
    """(4, N): each head's weights; the rest up to 1 is on the null entry."""

    @property
    def probability(self) -> float:
        """The policy's probability of the action taken; NaN in PS."""
        return float(self.probabilities[NAMES.index(self.action)]) if self.stage != Stage.PS else float("nan")

    @property
    def entropy(self) -> float:
        """The policy's entropy divided by that of a uniform policy over the stage's actions."""
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum() / np.log(ALLOWED[self.stage].sum())) if len(p) else float("nan")


@dataclass(frozen=True)
class HidingDecision:
    """Perspective simulation: which poses the hider compared, and which it chose."""

    choice: PlaceChoice
    explored: ExploredMaps
    other_starts: list[tuple[tuple[int, int], np.ndarray]]
    """Quick scores (4, h, w) for other starts of the seeker, each with the start's row and column."""

    @property
    def scores(self) -> np.ndarray:
        """(4, h, w): the quick scores of all poses; -inf where the hider never was."""
        return self.choice.scores[0].cpu().numpy()


@dataclass(frozen=True)
class AgentTrace:
    """A whole game with the agent's internals."""

    record: Record
    steps: list[TraceStep]
    hiding: HidingDecision

    def steps_in(self, *stages: Stage) -> list[TraceStep]:
        return [step for step in self.steps if step.stage in stages]


def load_run_agent(folder: str | os.PathLike[str], trust_code: bool = False) -> tuple[Agent, TrainConfig, Progress]:
    """A run's newest agent, its config and its progress; RunError if there is none."""
    config = read_config(folder)
    check_trusted(config.agent, trust_code)
    agent = Agent(config.agent, make_encoder(config.agent, load_weights=False))
    progress = load_checkpoint(newest(folder), agent, {})
    return agent.eval(), config, progress


@torch.no_grad()
def trace_agent(
    agent: Agent,
    scene: str,
    goal: str,
    seed: int = 0,
    renderer: str = "auto",
    limits: np.ndarray = LIMITS,
    start: AgentPose | None = None,
) -> AgentTrace:
    """Plays a whole game with the agent as hider and seeker, on the agent's device. A seed plays the same game.

    The game begins at `start`, or at a pose that the seed decides.
    """
    check_hides(agent.config)
    device = next(agent.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    episodes = (lambda *_: EpisodeSpec(goal, start)) if start else RandomEpisodes(seed, (goal,))
    with World([scene], size=agent.config.image_size, renderer=renderer, device=str(device)) as world:
        game = CacheGame(world, episodes, limits)
        recorder, state = Recorder(game, {"hider": "agent", "seeker": "agent"}), agent.initial_state(1)
        steps: list[TraceStep] = []
        records: list[Record] = []
        hiding: HidingDecision | None = None
        while not records:
            # OpenGL reuses its buffers: copy the observation.
            observation = tree.map(lambda tensor: tensor.clone().to(device), observe(game))
            before = state
            output = agent.act(before, observation, torch.tensor([not steps], device=device))
            state, place = output.state, np.zeros((1, 4), int)
            probabilities = output.decision.logits[0].double().softmax(-1)
            action = np.array([int(torch.multinomial(probabilities, 1, generator=generator))])
            if game.stage[0] == Stage.PS:
                action[0] = NOTHING
                place, hiding = _simulate_perspectives(agent, state, observation, generator)
            began, here = AgentPose(*game.start[0]), world.agent_pose(0)
            result = game.step(action, place)
            records = recorder.note(result, place)
            steps.append(_trace_step(agent, before, output, observation, began, here, bool(result.success[0])))
    (record,) = records
    steps = [replace(step, action=name) for step, name in zip(steps, record.actions, strict=True)]
    assert hiding is not None, "a whole game has PS"
    return AgentTrace(record, steps, hiding)


def attention_weights(agent: Agent, before: MemoryState, output: AgentOutput) -> tuple[Entries, torch.Tensor]:
    """The map entries of B games that a step could read, and the heads' weights (B, 4, M) over them."""
    return map_attention(agent, before, output.state.stage, output.dirs.grid)


def map_attention(
    agent: Agent, before: MemoryState, stage: torch.Tensor, grid: torch.Tensor
) -> tuple[Entries, torch.Tensor]:
    """`attention_weights` of a step at stages (B,) whose DIR grids are (B, G, 7, 7)."""
    entries = before.metric_map.entries
    unread = (stage == OM) | (stage != before.stage) & ((stage == EM) | (stage == S))
    entries = replace(entries, written=entries.written & ~unread[:, None])
    queries = agent.memory.map_reader.query(grid.mean((-2, -1))).unflatten(-1, (NUM_HEADS, -1))
    scores = queries @ entries.values.transpose(1, 2)
    return entries, metric_map.attention_weights(scores, entries.written, queries.shape[-1])


def to_room_frame(start: AgentPose, steps: np.ndarray) -> np.ndarray:
    """Positions (..., 2) in the room, of steps (..., 2) right and ahead of a game's start."""
    facing, right = facing_vector(start.rotation), right_vector(start.rotation)
    return np.array(start[:2]) + GRID * (steps[..., :1] * right + steps[..., 1:] * facing)


def cells_to_room_frame(start: AgentPose, explored: ExploredMaps, cells: np.ndarray) -> np.ndarray:
    """Positions (..., 2) in the room, of rows and columns (..., 2) of the first game's map in PS."""
    row, column = explored.start[0, :2].tolist()
    return to_room_frame(start, np.stack([cells[..., 1] - column, row - cells[..., 0]], -1))


def _trace_step(
    agent: Agent,
    before: MemoryState,
    output: AgentOutput,
    observation: Observation,
    start: AgentPose,
    here: AgentPose,
    success: bool,
) -> TraceStep:
    """A step whose action is not filled in yet: records have the names."""
    stage = Stage(int(observation.stage[0]))
    entries, weights = attention_weights(agent, before, output)
    written = entries.written[0]
    probabilities = output.decision.logits[0].softmax(-1).cpu().numpy()
    return TraceStep(
        stage=stage,
        action="",
        success=success,
        picture=observation.image[0].cpu().numpy(),
        agent_pose=here,
        probabilities=np.where(stage == Stage.PS, 0, probabilities),
        value=float(output.decision.value[0]),
        hittable=output.decision.hittable[0].sigmoid().cpu().numpy(),
        remembered=to_room_frame(start, unpack(entries.keys[0, written])[:, :2].cpu().numpy()),
        attention=weights[0][:, written].cpu().numpy(),
    )


def _simulate_perspectives(
    agent: Agent, state: MemoryState, observation: Observation, generator: torch.Generator
) -> tuple[np.ndarray, HidingDecision]:
    """Runs PS: the chosen pose (1, 4), and what led to it."""
    place, choice, explored = agent.choose_place(state.metric_map, observation.place, generator)
    other_starts = []
    for row, column in _distant_positions(explored):
        moved = replace(explored, start=explored.start.new_tensor([[row, column, 0, 1]]))
        scores = agent.perspective.place_scores(agent.perspective.encode_maps(moved), explored.places)
        other_starts.append(((row, column), scores[0].cpu().numpy()))
    choice, explored = tree.map(torch.Tensor.cpu, choice), tree.map(torch.Tensor.cpu, explored)
    return place.cpu().numpy(), HidingDecision(choice, explored, other_starts)


def _distant_positions(explored: ExploredMaps) -> list[tuple[int, int]]:
    """Visited positions, row and column: the farthest from the start, and the farthest from both, if they differ."""
    floor = explored.floor[0].nonzero().cpu().numpy()
    kept = [explored.start[0, :2].cpu().numpy()]
    while len(kept) <= OTHER_STARTS:
        gaps = np.min([np.linalg.norm(floor - position, axis=1) for position in kept], axis=0)
        if not gaps.max():
            break
        kept.append(floor[gaps.argmax()])
    return [(int(row), int(column)) for row, column in kept[1:]]
