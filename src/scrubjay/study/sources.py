"""Sources of features for the dynamic experiments: agents' memories, images alone, stacks of images, forward steps.

A source gives an experiment's examples features (n, D). Agents live through each sequence from its beginning and are
told what they would be told in a game; no source is told the label, and OM's target is the same for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent, AgentOutput, load_agent
from scrubjay.agent.config import PAPER, PRESETS, AgentConfig
from scrubjay.agent.metric_map import CAPACITY
from scrubjay.errors import DataError
from scrubjay.game.actions import HAND_MOVE, HAND_TURN, NOTHING, NUMBERS, Stage
from scrubjay.game.observation import NO_ACTION, Observation
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.room import GOALS
from scrubjay.study.encoders import RANDOM, StudyEncoder
from scrubjay.study.feature_pass import FeaturePass, Progress, Wanted
from scrubjay.study.sequences import SequenceData
from scrubjay.study.weight_files import sha256_of
from scrubjay.training.agent_player import resize
from scrubjay.training.run import newest

NEUTRAL_TARGET = (0, 3, 3)
"""OM's target in every sequence, the paper's (0, 4, 4): on top, in the middle. A true one would give the label away."""
UNTRAINED = 3
"""Untrained networks, whose accuracies are averaged."""
STACK = 4
"""Images in a stack."""
IMAGES = 256
"""Images that an encoder encodes at once, at most."""
FEATURE_VERSION = 3


class Source(Protocol):
    """Gives examples features."""

    name: str
    key: str
    """A digest of all that features depend on beside the examples."""
    precise: bool
    """Whether features are stored in full precision."""

    def prepare(self, one: FeaturePass) -> Callable[[], np.ndarray]:
        """Tells a pass what it wants to see; what is returned gives features (n, D) float32 after the pass. D may
        depend on whether examples are cells."""
        ...


class DynamicSource:
    """An agent's DIR: the LSTM's output, or, for cells, the convolutional GRU's state and change map."""

    precise = False

    def __init__(self, name: str, agent: Agent, identity: str = "") -> None:
        """`identity` says whose weights these are, by default their digest."""
        self.name, self.agent = name, agent.eval()
        self.is_navigation = getattr(agent.config, "memory", "") == "navigation"
        """A navigation agent has no hand: it is told Stand where its last action was a hand movement."""
        facts = f"{FEATURE_VERSION} {agent.config} {identity or sha256_of(agent.state_dict())}"
        self.key = f"dir-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"

    def begin(self, batch: int, steps: int = CAPACITY) -> None:
        """Empties the memory, for `batch` sequences of at most `steps` steps, none of which visits more places."""
        self._state = self.agent.initial_state(batch, steps)
        self._first = True

    @torch.no_grad()
    def step(self, observation: Observation) -> AgentOutput:
        """The next step of the sequences, or of the first of them, if the others have ended."""
        count = len(observation.stage)
        if count < len(self._state.stage):
            self._state = tree.index(self._state, slice(0, count))
        is_first = torch.full((count,), self._first, device=observation.stage.device)
        output = self.agent.act(self._state, observation, is_first)
        self._state, self._first = output.state, False
        return output

    def prepare(self, one: FeaturePass) -> Callable[[], np.ndarray]:
        on_grid = one.cell is not None

        def capture(output: AgentOutput) -> torch.Tensor:
            dirs = output.dirs
            return torch.cat([dirs.grid, dirs.change[:, None]], 1) if on_grid else dirs.flat

        wanted = self.watch(one, capture, one.cell)
        return lambda: wanted.features(self.name)

    def watch(
        self, one: FeaturePass, capture: Callable[[AgentOutput], torch.Tensor], cell: np.ndarray | None = None
    ) -> Wanted:
        """What `capture` takes of the agent's outputs at a pass's examples: (B, D) or, with cells, (B, D, 7, 7)."""
        watcher = one.watcher(self.key, lambda: AgentWatcher(self, one))
        return watcher.take(Wanted(one.frame, cell), capture)

    def observe(self, data: SequenceData, frames: np.ndarray, step: int, image: torch.Tensor) -> Observation:
        """What the agent is told at frames (B,), all of them `step` steps after the beginning."""
        stage = Stage.S if self.is_navigation else data.stage
        action = data.read("last_action", frames).astype(np.int64)
        if self.is_navigation:
            by_hand = (HAND_MOVE[action] != NOTHING) | (HAND_TURN[action] != NOTHING)
            action = np.where(by_hand, NUMBERS["Stand"], action)
        place = data.read("place", frames).astype(np.int64)
        goal = np.array([GOALS.index(name) for name in data.index["goal"][data.sequence_of(frames)]])
        count = len(frames)
        target = NEUTRAL_TARGET if stage == Stage.OM else (0, 0, 0)

        def tensor(values: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(values).to(image.device)

        return Observation(
            image=resize(image, self.agent.config.image_size),
            last_action=tensor(np.where(action == NOTHING, NO_ACTION, action)),
            last_success=tensor(data.read("last_success", frames)),
            standing=tensor(place[:, 3] > 0),
            goal=tensor(goal),
            stage=tensor(np.full(count, int(stage))),
            place=tensor(place),
            landed=tensor(np.full(count, NO_ACTION)),
            target=tensor(np.tile(target, (count, 1))),
            time_left=tensor(np.full(count, 1 - step / LIMITS[stage], np.float32)),
        )


class AgentWatcher:
    """An agent that lives through sequences."""

    lives = True

    def __init__(self, source: DynamicSource, one: FeaturePass) -> None:
        self.source, self.data, self.wanted = source, one.data, list[Wanted]()
        self._captures: list[Callable[[AgentOutput], torch.Tensor]] = []
        source.agent.to(one.device)

    def take(self, wanted: Wanted, capture: Callable[[AgentOutput], torch.Tensor]) -> Wanted:
        """Has what `capture` gives taken where it is wanted."""
        self.wanted.append(wanted)
        self._captures.append(capture)
        return wanted

    def begin(self, sequences: int, steps: int) -> None:
        self.source.begin(sequences, steps)

    def see(self, frames: np.ndarray, step: int, images: torch.Tensor) -> None:
        output = self.source.step(self.source.observe(self.data, frames, step, images))
        for wanted, capture in zip(self.wanted, self._captures, strict=True):
            if wanted.among(frames).any():
                wanted.put(frames, capture(output))


class ImageSource:
    """SIRs of the last `frames` images, concatenated; for whole images, the mean of all cells.

    Before there are as many images, the first one is repeated. `forward_steps` adds their number as a last feature.
    """

    precise = False

    def __init__(self, name: str, encoder: StudyEncoder, frames: int = 1, forward_steps: bool = False) -> None:
        self.name, self.encoder, self.frames, self.forward_steps = name, encoder, frames, forward_steps
        self.key = f"sir-{FEATURE_VERSION}-{encoder.description.key}-{frames}{'f' if forward_steps else ''}"

    def prepare(self, one: FeaturePass) -> Callable[[], np.ndarray]:
        data, frame = one.data, one.frame
        first = data.index["first"][data.sequence_of(frame)]
        needed = np.concatenate([np.maximum(frame - back, first) for back in range(self.frames - 1, -1, -1)])
        wanted = Wanted(needed, None if one.cell is None else np.tile(one.cell, (self.frames, 1)))
        # Encoders of several stacks encode an image once.
        watcher = one.watcher(self.encoder.description.key, lambda: EncoderWatcher(self.encoder, one.device))
        watcher.wanted.append(wanted)

        def features() -> np.ndarray:
            values = wanted.values(self.name)
            stacked = [values[place] for place in np.split(wanted.place, self.frames)]
            if self.forward_steps:
                stacked.append(count_forward_steps(data, frame)[:, None])
            return np.concatenate(stacked, 1)

        return features


class EncoderWatcher:
    """An encoder that sees images, each once."""

    lives = False

    def __init__(self, encoder: StudyEncoder, device: str) -> None:
        self.encoder, self.wanted = encoder.to(device), list[Wanted]()

    def begin(self, sequences: int, steps: int) -> None:
        pass

    def see(self, frames: np.ndarray, step: int, images: torch.Tensor) -> None:
        rows = np.flatnonzero(np.any([wanted.among(frames) for wanted in self.wanted], 0))
        for start in range(0, len(rows), IMAGES):
            some = rows[start : start + IMAGES]
            sir = self.encoder(images[torch.from_numpy(some).to(images.device)]).sir.float()
            pooled = sir.mean((2, 3))
            for wanted in self.wanted:
                wanted.put(frames[some], pooled if wanted.cell is None else sir)


class ForwardSteps:
    """The number of MoveHandAhead actions so far: objects are moved further ahead to get behind than into."""

    name, key, precise = "Forward Steps", f"forward-{FEATURE_VERSION}", True

    def prepare(self, one: FeaturePass) -> Callable[[], np.ndarray]:
        return lambda: count_forward_steps(one.data, one.frame)[:, None]


def count_forward_steps(data: SequenceData, frames: np.ndarray) -> np.ndarray:
    """How many MoveHandAhead actions (n,) float32 there were up to frames (n,), in their sequences."""
    ahead = data.read("last_action", np.arange(data.frames)) == NUMBERS["MoveHandAhead"]
    total = np.r_[0, np.cumsum(ahead)]
    return (total[frames + 1] - total[data.index["first"][data.sequence_of(frames)]]).astype(np.float32)


def compute_features(
    sources: Sequence[Source],
    data: SequenceData,
    frame: np.ndarray,
    cell: np.ndarray | None = None,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> list[np.ndarray]:
    """Features (n, D) float32 of each source at frames (n,), or at cells (n, 2) of them, in one pass."""
    one = FeaturePass(data, frame, cell, device)
    features = [source.prepare(one) for source in sources]
    one.run(progress)
    return [each() for each in features]


def load_agent_named(name: str, preset: str = "paper", trust_code: bool = False) -> Agent:
    """The agent of a run or of weights, or an untrained one: random[:SEED]."""
    if name.split(":")[0] != RANDOM:
        return load_agent(newest(name), trust_code=trust_code)
    _, colon, seed = name.partition(":")
    if colon and not seed.isdecimal():
        raise DataError(f"agent: {name}: the seed must be a number, not {seed!r}")
    return untrained(PRESETS[preset], int(seed or 0))


def untrained(config: AgentConfig = PAPER, seed: int = 0) -> Agent:
    """An agent with the weights that training begins with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Agent(config)


def untrained_sources(config: AgentConfig, seeds: Sequence[int] = range(1, UNTRAINED + 1)) -> list[DynamicSource]:
    """Untrained networks of a trained one's sizes: their accuracies are averaged."""
    # Not their digests: the last bits of initial weights depend on the machine and its number of threads, and features
    # must be found again elsewhere.
    return [DynamicSource(f"untrained {seed}", untrained(config, seed), f"untrained {seed}") for seed in seeds]
