"""Sources of features for the dynamic experiments: agents' memories, images alone, stacks of images, forward steps.

A source gives an experiment's examples features (n, D). Agents live through each sequence from its beginning and are
told what they would be told in a game; no source is told the label, and OM's target is the same for all.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent, AgentOutput, load_agent
from scrubjay.agent.config import PAPER, PRESETS, AgentConfig
from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.game.actions import HAND_MOVE, HAND_TURN, NOTHING, NUMBERS, Stage
from scrubjay.game.observation import NO_ACTION, Observation
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.room import GOALS
from scrubjay.study.dynamic_experiments import Examples
from scrubjay.study.encoders import RANDOM, StudyEncoder
from scrubjay.study.features import to_device
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
BATCHES = {"cuda": 256, "cpu": 16}
"""Sequences, or images, at once."""
FEATURE_VERSION = 1
Progress = Callable[[int, int], None]


class Source(Protocol):
    """Gives examples features."""

    name: str
    key: str
    """A digest of all that features depend on beside the examples."""

    def compute(self, data: SequenceData, examples: Examples, device: str, progress: Progress) -> np.ndarray:
        """Features (n, D) float32; D may depend on whether examples are cells."""
        ...


class DynamicSource:
    """An agent's DIR: the LSTM's output, or, for cells, the convolutional GRU's state and change map."""

    def __init__(self, name: str, agent: Agent) -> None:
        self.name, self.agent = name, agent.eval()
        self.is_navigation = getattr(agent.config, "memory", "") == "navigation"
        """A navigation agent has no hand: it is told Stand where its last action was a hand movement."""
        facts = f"{FEATURE_VERSION} {agent.config} {sha256_of(agent.state_dict())}"
        self.key = f"dir-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"

    def begin(self, batch: int) -> None:
        """Empties the memory, for `batch` sequences."""
        self._state = self.agent.initial_state(batch)
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

    def compute(self, data: SequenceData, examples: Examples, device: str, progress: Progress) -> np.ndarray:
        on_grid = examples.cell is not None

        def capture(output: AgentOutput) -> torch.Tensor:
            dirs = output.dirs
            return torch.cat([dirs.grid, dirs.change[:, None]], 1) if on_grid else dirs.flat

        frames, place = np.unique(examples.frame, return_inverse=True)
        return _at_cells(self.live(data, frames, capture, device, progress), place, examples.cell)

    def live(
        self,
        data: SequenceData,
        frames: np.ndarray,
        capture: Callable[[AgentOutput], torch.Tensor],
        device: str = "cpu",
        progress: Progress = lambda done, total: None,
    ) -> np.ndarray:
        """What `capture` takes of the agent's outputs (B, ...) at sorted frames (n,), (n, ...) float32."""
        self.agent.to(device)
        taken: np.ndarray | None = None
        sequences, size = np.unique(data.sequence_of(frames)), BATCHES[torch.device(device).type]
        # Longest first, so that those which have ended are the last of a batch.
        sequences = sequences[np.argsort(-data.index["length"][sequences], kind="stable")]
        progress(0, len(sequences))
        for start in range(0, len(sequences), size):
            batch = sequences[start : start + size]
            self.begin(len(batch))
            for now, observation in self._observations(data, batch, device):
                output = self.step(observation)
                where = np.searchsorted(frames, now)
                wanted = frames[np.minimum(where, len(frames) - 1)] == now
                if wanted.any():
                    values = capture(output)[torch.from_numpy(np.flatnonzero(wanted)).to(device)].float().cpu().numpy()
                    if taken is None:
                        taken = np.empty((len(frames), *values.shape[1:]), np.float32)
                    taken[where[wanted]] = values
            progress(start + len(batch), len(sequences))
        assert taken is not None
        if not np.isfinite(taken).all():
            raise DataError(f"{self.name} gives NaN or infinite features")
        return taken

    def _observations(
        self, data: SequenceData, batch: np.ndarray, device: str
    ) -> Iterator[tuple[np.ndarray, Observation]]:
        """Frames and observations of sequences, longest first, step by step; images of the next are read meanwhile."""
        first, length = data.index["first"][batch], data.index["length"][batch]
        steps = [first[length > step] + step for step in range(int(length.max()))]
        with ThreadPoolExecutor(1) as reader:
            images = reader.submit(data.images, steps[0])
            for step, frames in enumerate(steps):
                now = to_device(images.result(), device)
                if step + 1 < len(steps):
                    images = reader.submit(data.images, steps[step + 1])
                yield frames, self.observe(data, frames, step, now)

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


class ImageSource:
    """SIRs of the last `frames` images, concatenated; for whole images, the mean of all cells.

    Before there are as many images, the first one is repeated. `forward_steps` adds their number as a last feature.
    """

    def __init__(self, name: str, encoder: StudyEncoder, frames: int = 1, forward_steps: bool = False) -> None:
        self.name, self.encoder, self.frames, self.forward_steps = name, encoder, frames, forward_steps
        self.key = f"sir-{FEATURE_VERSION}-{encoder.description.key}-{frames}{'f' if forward_steps else ''}"

    def compute(self, data: SequenceData, examples: Examples, device: str, progress: Progress) -> np.ndarray:
        first = data.index["first"][data.sequence_of(examples.frame)]
        needed = [np.maximum(examples.frame - back, first) for back in range(self.frames - 1, -1, -1)]
        frames, place = np.unique(np.concatenate(needed), return_inverse=True)
        encoder, size, parts = self.encoder.to(device), BATCHES[torch.device(device).type], []
        for start in range(0, len(frames), size):
            sir = encoder(to_device(data.images(frames[start : start + size]), device)).sir.float()
            parts.append((sir if examples.cell is not None else sir.mean((2, 3))).cpu().numpy())
            progress(min(start + size, len(frames)), len(frames))
        values = np.concatenate(parts)
        if not np.isfinite(values).all():
            raise DataError(f"{self.name} gives NaN or infinite features")
        stacked = [_at_cells(values, one, examples.cell) for one in np.split(place, self.frames)]
        if self.forward_steps:
            stacked.append(count_forward_steps(data, examples.frame)[:, None])
        return np.concatenate(stacked, 1)


class ForwardSteps:
    """The number of MoveHandAhead actions so far: objects are moved further ahead to get behind than into."""

    name, key = "Forward Steps", f"forward-{FEATURE_VERSION}"

    def compute(self, data: SequenceData, examples: Examples, device: str, progress: Progress) -> np.ndarray:
        return count_forward_steps(data, examples.frame)[:, None]


def count_forward_steps(data: SequenceData, frames: np.ndarray) -> np.ndarray:
    """How many MoveHandAhead actions (n,) float32 there were up to frames (n,), in their sequences."""
    ahead = data.read("last_action", np.arange(data.frames)) == NUMBERS["MoveHandAhead"]
    total = np.r_[0, np.cumsum(ahead)]
    return (total[frames + 1] - total[data.index["first"][data.sequence_of(frames)]]).astype(np.float32)


def _at_cells(values: np.ndarray, place: np.ndarray, cell: np.ndarray | None) -> np.ndarray:
    """Rows `place` (n,) of values (m, D), or of values (m, D, 7, 7) at cells (n, 2): (n, D)."""
    return values[place] if cell is None else values[place, :, cell[:, 0], cell[:, 1]]


def features_file(
    source: Source,
    data: SequenceData,
    examples: Examples,
    folder: Path,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> Path:
    """The file of a source's features (n, D) float32 of examples, computed if it is not there."""
    path = Path(folder) / f"{data.experiment}-{data.digest}-{examples.digest}-{source.key}.npy"
    if not path.exists():
        buffer = io.BytesIO()
        np.save(buffer, source.compute(data, examples, device, progress).astype(np.float32))
        write_atomically(path, buffer.getvalue())
    return path


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
    return [DynamicSource(f"untrained {seed}", untrained(config, seed)) for seed in seeds]
