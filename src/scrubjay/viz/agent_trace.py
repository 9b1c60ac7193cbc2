"""One whole game of a run's agent, watched from inside: what it attended to, what it expected, what it thought through.

The agent plays as it does everywhere; what is kept beside the game are the numbers that its networks made on the way.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional as F

from scrubjay import tree
from scrubjay.agent.agent import Agent, Step
from scrubjay.agent.config import PRESETS as AGENTS
from scrubjay.agent.memory import EM, MemoryState, S
from scrubjay.agent.metric_map import HEADS, Entries, unpack
from scrubjay.agent.perspective import Choice, Explored
from scrubjay.game.actions import ALLOWED, NAMES, NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.observation import Observation, observe
from scrubjay.game.record import Record, Recorder
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import GRID
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Progress, load_checkpoint, newest, training_of

OTHER_STARTS = 2
"""How many other starts of the seeker are tried out in PS, as the paper's figure does."""


@dataclass(frozen=True)
class Moment:
    """What the agent made of what it saw, before it acted."""

    stage: Stage
    action: str
    """Its name; in PS, `PS` and the four numbers of the place."""
    success: bool
    picture: np.ndarray
    """(H, W, 3) uint8: what it saw."""
    place: AgentPose
    """Where it was."""
    probabilities: np.ndarray
    """(219,): the policy; 0 in PS, which has none."""
    value: float
    hittable: np.ndarray
    """(3, 7, 7): the probabilities that a manipulation with this target would succeed."""
    remembered: np.ndarray
    """(N, 2): the positions x and y of what is in the map; some have several places."""
    attention: np.ndarray
    """(4, N): the weights that each head gives to these; what is left of 1 goes to nothing at all."""

    @property
    def chance(self) -> float:
        """The probability of the action that was taken; PS has its own, in `Reasons`."""
        return float(self.probabilities[NAMES.index(self.action)]) if self.stage != Stage.PS else float("nan")

    @property
    def entropy(self) -> float:
        """Of the policy, as a share of the largest that the stage allows: 1 is blind chance."""
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum() / np.log(ALLOWED[self.stage].sum())) if len(p) else float("nan")


@dataclass(frozen=True)
class Reasons:
    """What was thought in PS, and so why the hider went where it did."""

    choice: Choice
    explored: Explored
    elsewhere: list[tuple[tuple[int, int], np.ndarray]]
    """The scores (4, h, w) at a glance if the seeker began elsewhere: row and column of the start, scores."""

    @property
    def scores(self) -> np.ndarray:
        """(4, h, w): at a glance; -inf where the hider never was."""
        return self.choice.scores[0].cpu().numpy()


@dataclass(frozen=True)
class AgentTrace:
    """A whole game, with what the agent made of it."""

    record: Record
    moments: list[Moment]
    """One for each step."""
    reasons: Reasons

    def of(self, *stages: Stage) -> list[Moment]:
        return [moment for moment in self.moments if moment.stage in stages]


def open_run(folder: str | os.PathLike[str]) -> tuple[Agent, TrainConfig, Progress]:
    """A run's newest agent, what it is trained with, and how far it was; RunError if there is none."""
    training = training_of(folder)
    agent = Agent(AGENTS[training.agent])
    progress = load_checkpoint(newest(folder), agent, {})
    return agent.eval(), training, progress


@torch.no_grad()
def watch(
    agent: Agent, scene: str, goal: str, seed: int = 0, renderer: str = "auto", limits: np.ndarray = LIMITS
) -> AgentTrace:
    """Plays a whole game, the agent as hider and as seeker. The same seed plays the same game."""
    deals, generator = RandomEpisodes(seed, (goal,)), torch.Generator().manual_seed(seed)
    with World([scene], size=agent.config.image_size, renderer=renderer) as world:
        game = CacheGame(world, deals, limits)
        recorder, state = Recorder(game, {"hider": "agent", "seeker": "agent"}), agent.initial_state(1)
        moments: list[Moment] = []
        records: list[Record] = []
        reasons: Reasons | None = None
        while not records:
            # OpenGL draws the next picture over this one.
            seen, before = tree.map(torch.clone, observe(game)), state
            said = agent.act(before, seen, torch.tensor([not moments]))
            state, place = said.state, np.zeros((1, 4), int)
            probabilities = said.decision.logits[0].double().softmax(-1)
            action = np.array([int(torch.multinomial(probabilities, 1, generator=generator))])
            if game.stage[0] == Stage.PS:
                action[0] = NOTHING
                place, reasons = _think(agent, state, seen, generator)
            start, here = AgentPose(*game.start[0]), world.agent_pose(0)
            outcome = game.step(action, place)
            records = recorder.note(outcome, place)
            moments.append(_moment(agent, before, said, seen, start, here, bool(outcome.success[0])))
    (record,) = records
    named = [replace(moment, action=name) for moment, name in zip(moments, record.actions, strict=True)]
    assert reasons is not None, "a whole game has PS"
    return AgentTrace(record, named, reasons)


def attention(agent: Agent, before: MemoryState, said: Step) -> tuple[Entries, torch.Tensor]:
    """What could be read from the maps in a step of B games, and the weights (B, 4, M) with which it was.

    `Entries.attend` computes the same weights and keeps only what they sum up to.
    """
    entries, stage = before.metric_map.entries, said.state.stage
    emptied = (stage != before.stage) & ((stage == EM) | (stage == S))
    entries = replace(entries, written=entries.written & ~emptied[:, None])
    keys = agent.memory.reader.asks(said.dirs.grid.mean((-2, -1))).unflatten(-1, (HEADS, -1))
    scores = torch.einsum("bhc,bmc->bhm", keys, entries.values) * keys.shape[-1] ** -0.5
    scores = scores.masked_fill(~entries.written[:, None], -torch.inf)
    return entries, F.pad(scores, (1, 0)).softmax(-1)[..., 1:]


def in_room(start: AgentPose, steps: np.ndarray) -> np.ndarray:
    """Positions x and y (..., 2) of steps right and ahead of a game's start (..., 2)."""
    facing, right = facing_vector(start.rotation), right_vector(start.rotation)
    return np.array(start[:2]) + GRID * (steps[..., :1] * right + steps[..., 1:] * facing)


def cells_in_room(start: AgentPose, explored: Explored, cells: np.ndarray) -> np.ndarray:
    """Positions x and y (..., 2) of rows and columns (..., 2) of the first game's map in PS."""
    row, column = explored.start[0, :2].tolist()
    return in_room(start, np.stack([cells[..., 1] - column, row - cells[..., 0]], -1))


def _moment(
    agent: Agent, before: MemoryState, said: Step, seen: Observation, start: AgentPose, here: AgentPose, success: bool
) -> Moment:
    """What is kept of a step; its action is named when the game is over."""
    stage = Stage(int(seen.stage[0]))
    entries, weights = attention(agent, before, said)
    written = entries.written[0]
    probabilities = said.decision.logits[0].softmax(-1).numpy()
    return Moment(
        stage=stage,
        action="",
        success=success,
        picture=seen.image[0].numpy(),
        place=here,
        probabilities=np.where(stage == Stage.PS, 0, probabilities),
        value=float(said.decision.value[0]),
        hittable=said.decision.hittable[0].sigmoid().numpy(),
        remembered=in_room(start, unpack(entries.keys[0, written])[:, :2].numpy()),
        attention=weights[0][:, written].numpy(),
    )


def _think(
    agent: Agent, state: MemoryState, seen: Observation, generator: torch.Generator
) -> tuple[np.ndarray, Reasons]:
    """Perspective simulation: where the hider goes, (1, 4), and why."""
    place, choice, explored = agent.choose(state, seen, torch.tensor([0]), generator)
    elsewhere = []
    for row, column in _far_apart(explored):
        moved = replace(explored, start=torch.tensor([[row, column, 0, 1]]))
        scores = agent.perspective.scores(agent.perspective.survey(moved), explored.places)
        elsewhere.append(((row, column), scores[0].numpy()))
    return place.numpy(), Reasons(choice, explored, elsewhere)


def _far_apart(explored: Explored) -> list[tuple[int, int]]:
    """Visited positions, row and column: the farthest from the start, and the farthest from both, if they differ."""
    floor = explored.floor[0].nonzero().numpy()
    kept = [explored.start[0, :2].numpy()]
    while len(kept) <= OTHER_STARTS:
        gaps = np.min([np.linalg.norm(floor - each, axis=1) for each in kept], axis=0)
        if not gaps.max():
            break
        kept.append(floor[gaps.argmax()])
    return [(int(row), int(column)) for row, column in kept[1:]]
