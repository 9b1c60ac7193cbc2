"""Whole manipulations of whole games: OM's steps are kept until their episode ends, and then trained on together.

Rollouts of whole games are shorter than a manipulation, and hindsight needs where it ended. Only steps taken are kept,
each about 150 KB with the paper's images on the agent's device: 7.5 MB for a manipulation of 50 steps. There is room
for as many as are in progress or wait for training, whatever the number of games: 4.5 GB if half of 960 games
manipulate to the limit at any time. OM reads no map, so none is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.observation import Observation
from scrubjay.training.rollout import Rollout

OM, PS = int(Stage.OM), int(Stage.PS)
GROWTH = 1.5
"""A pool that is full becomes so many times as large."""
SHORT = 20
"""Manipulations of at most so many steps are padded to this number: most drop the object long before OM's limit."""
T = TypeVar("T")


@dataclass(frozen=True)
class ManipulationBatch:
    """Whole manipulations, padded to one length: one in each game of a rollout, from its first step on."""

    rollout: Rollout
    """(T, n): padding has the stage PS, which no loss is about."""


@dataclass(frozen=True)
class _Steps:
    """Steps of OM, (N, ...): see `Rollout`."""

    observation: Observation
    action: torch.Tensor
    log_probs: torch.Tensor
    reward: torch.Tensor
    success: torch.Tensor
    dones: torch.Tensor
    truncated: torch.Tensor
    hit: torch.Tensor
    landed: torch.Tensor
    opened: torch.Tensor
    openable: torch.Tensor | None
    demonstrated: torch.Tensor | None
    imitated: torch.Tensor | None
    held_cell: torch.Tensor | None
    visible: torch.Tensor | None


@dataclass(frozen=True)
class _Episodes:
    """Finished manipulations, on the host."""

    rows: np.ndarray
    """(n, T): their steps in the pool; undefined after the last."""
    length: np.ndarray
    """(n,)."""

    def __len__(self) -> int:
        return len(self.length)

    @property
    def within(self) -> np.ndarray:
        """(n, T) bool: False for padding."""
        return np.arange(self.rows.shape[1]) < self.length[:, None]


class _Pool(Generic[T]):
    """A tree of tensors (N, ...) whose rows are taken, filled and freed; N grows with the demand."""

    def __init__(self) -> None:
        self.tensors: T | None = None
        self._free = np.zeros(0, int)
        self._size = 0

    def __len__(self) -> int:
        """N: rows taken and free."""
        return self._size

    def take(self, count: int) -> np.ndarray:
        """Rows (count,) that are free until now."""
        if count > len(self._free):
            size = max(self._size + count - len(self._free), int(GROWTH * self._size))
            self._free = np.concatenate([self._free, np.arange(self._size, size)])
            self._size = size
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def put(self, rows: np.ndarray, values: T) -> None:
        """Writes values (count, ...) to rows (count,)."""
        first = tree.leaves(values)[0]
        old = 0 if self.tensors is None else len(tree.leaves(self.tensors)[0])
        if old < self._size:
            # Not zeros: rows are only read after they were written.
            grown = tree.map(lambda value: value.new_empty(self._size, *value.shape[1:]), values)
            if self.tensors is not None:
                tree.index_put_(grown, slice(old), self.tensors)
            self.tensors = grown
        tree.index_put_(self.tensors, torch.from_numpy(rows).to(first.device), values)

    def free(self, rows: np.ndarray) -> None:
        self._free = np.concatenate([self._free, rows])


class ManipulationBuffer:
    """Keeps the manipulations of all games of a collector. Those that began before it was there are left out."""

    def __init__(self, agent: Agent, games: Sequence[CacheGame]) -> None:
        self.agent, self.limit = agent, int(games[0].limits[OM])
        self.lengths = (SHORT, self.limit) if self.limit > SHORT else (self.limit,)
        """Steps that manipulations are padded to: the first of these that they fit in."""
        count = sum(map(len, games))
        self._steps: _Pool[_Steps] = _Pool()
        self._rows = np.zeros((count, self.limit), int)
        self._length = np.full(count, NOTHING)
        """(B,): steps so far of each game's manipulation; -1 for none."""
        self._finished = _Episodes(np.zeros((0, self.limit), int), np.zeros(0, int))

    def __len__(self) -> int:
        """Finished manipulations that wait for training."""
        return len(self._finished)

    def add(self, rollout: Rollout) -> None:
        """Adds the steps of a rollout, which follows the last one."""
        observation = rollout.observation
        begins = (observation.stage == OM) & (observation.time_left == 1)
        stage, dones, begun = torch.stack([observation.stage, rollout.dones.long(), begins.long()]).cpu().numpy()
        finished, kept = [self._finished], []
        for t in range(len(stage)):
            self._length[begun[t] > 0] = 0
            acting = np.flatnonzero((stage[t] == OM) & (self._length >= 0))
            rows = self._steps.take(len(acting))
            kept.append(np.stack([rows, np.full_like(rows, t), acting]))
            self._rows[acting, self._length[acting]] = rows
            self._length[acting] += 1
            ended = acting[dones[t, acting] > 0]
            finished.append(_Episodes(self._rows[ended], self._length[ended]))
            self._length[ended] = NOTHING
        self._finished = tree.map(lambda *parts: np.concatenate(parts), *finished)
        rows, t, b = np.concatenate(kept, 1)
        if len(rows):
            at = torch.from_numpy(np.stack([t, b])).to(rollout.action.device)
            steps = _Steps(**{f.name: getattr(rollout, f.name) for f in fields(_Steps)})
            self._steps.put(rows, tree.index(steps, (at[0], at[1])))

    def ready(self, count: int) -> list[int]:
        """For each of `lengths`, the minibatches of `count` finished manipulations that there are."""
        return [len(its) // count for its in self._by_length()]

    def minibatches(self, batches: Sequence[int], count: int, epochs: int) -> Iterator[ManipulationBatch]:
        """Removes the oldest manipulations, `batches` times `count` of each length, and yields each once per epoch."""
        taken = [its[: each * count] for its, each in zip(self._by_length(), batches, strict=True)]
        every = self._finished
        self._finished = tree.index(every, np.setdiff1d(np.arange(len(every)), np.concatenate(taken)))
        for _ in range(epochs):
            parts = [
                (its[part.numpy()], length)
                for its, length in zip(taken, self.lengths, strict=True)
                for part in torch.randperm(len(its)).split(count)
                if len(part)
            ]
            for each in torch.randperm(len(parts)).tolist():
                episodes, length = parts[each]
                yield self._batch(tree.index(every, episodes), length)
        freed = tree.index(every, np.concatenate(taken))
        self._steps.free(freed.rows[freed.within])

    def _by_length(self) -> list[np.ndarray]:
        """Indices of finished manipulations, oldest first, for each of `lengths`."""
        which = np.searchsorted(self.lengths, self._finished.length)
        return [np.flatnonzero(which == number) for number in range(len(self.lengths))]

    def _batch(self, episodes: _Episodes, length: int) -> ManipulationBatch:
        """A copy of manipulations of at most so many steps, on the agent's device."""
        assert self._steps.tensors is not None
        episodes = replace(episodes, rows=episodes.rows[:, :length])
        # Any step of the episode can stand for padding.
        rows = np.where(episodes.within, episodes.rows, episodes.rows[:, :1])
        arrays, device = (rows.T.copy(), episodes.within.T.copy()), self._steps.tensors.action.device
        index, mask = (torch.from_numpy(array).to(device) for array in arrays)
        steps = tree.index(self._steps.tensors, index)
        observation = replace(steps.observation, stage=torch.where(mask, steps.observation.stage, PS))
        empty = self.agent.memory.initial_state(len(episodes), capacity=1)
        state = replace(empty, stage=torch.full_like(empty.stage, Stage.OH))
        never = torch.zeros_like(mask)
        flags = {name: getattr(steps, name) & mask for name in ("success", "dones", "truncated", "hit", "opened")}
        return ManipulationBatch(Rollout(
            observation=observation, is_first=never, action=steps.action, log_probs=steps.log_probs,
            reward=torch.where(mask, steps.reward, 0), landed=torch.where(mask, steps.landed, NOTHING),
            claimable=never, sighted=never, teacher_action=torch.full_like(steps.action, NOTHING),
            bootstrap_value=torch.zeros_like(steps.reward[0]), state=state, last=tree.index(observation, -1),
            stages=frozenset({OM}), openable=steps.openable, demonstrated=steps.demonstrated, imitated=steps.imitated,
            held_cell=steps.held_cell, visible=steps.visible, **flags,
        ))  # fmt: skip
