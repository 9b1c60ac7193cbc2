"""Rollouts: T steps of B games with everything that losses need; images stay uint8 on the device.

Games are split over two worlds: while the GPU renders one, the CPU steps the other. A rollout starts with the agent's
recurrent state at that time, so that learning can evaluate the sequence again.

Perspective simulation takes as long for one game as for dozens. Games that reach PS therefore wait, and every few steps
all that wait think together. A waiting game's steps are in the rollout, as steps of PS, which nothing is learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.fuse import varying_shapes
from scrubjay.agent.memory import MemoryState
from scrubjay.agent.metric_map import MapState
from scrubjay.agent.sampling import sample_categorical
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import LABELS, CacheGame, StepResult
from scrubjay.game.observation import Observation, observe
from scrubjay.game.placement import FEW_PIXELS, fullest_target, object_pixels
from scrubjay.game.rewards import HidingReward, step_reward
from scrubjay.training.actor import COLLECTING_PRIORITY, Actor
from scrubjay.training.actor_critic import log_prob
from scrubjay.training.augmentation import Augmentation
from scrubjay.training.class_labels import CLASSES, ClassLabels
from scrubjay.training.demonstrations import Demonstrations
from scrubjay.training.frames import record_frames
from scrubjay.training.hiding_buffer import ChoiceBatch, FinishedGames, HidingBuffer
from scrubjay.training.hiding_reward import place_values
from scrubjay.training.lessons import Lessons

SIMULATION_BATCH = 64
"""Games that run perspective simulation at once; each imagines 30 maps."""


@dataclass(frozen=True)
class Rollout:
    """T steps of B games. A step's stage is its observation's."""

    observation: Observation
    """(T, B): before each step."""
    is_first: torch.Tensor
    """(T, B) bool: the first step of a game."""
    action: torch.Tensor
    """(T, B) int64; 0 in PS, which has none."""
    log_probs: torch.Tensor
    """(T, B): of the actions, under the policy that sampled them."""
    reward: torch.Tensor
    """(T, B)."""
    success: torch.Tensor
    """(T, B) bool."""
    dones: torch.Tensor
    """(T, B) bool: the stage's episode ended with the step: terminated or truncated."""
    truncated: torch.Tensor
    """(T, B) bool: it ended by the stage's step limit alone."""
    hit: torch.Tensor
    """(T, B) bool: a manipulation ended with the step, on its target."""
    landed: torch.Tensor
    """(T, B) int64: where the object landed that a step dropped in OM, as the index of a PlaceAt (modality * 49 + row *
    7 + column); -1 if nothing was dropped, or out of view."""
    opened: torch.Tensor
    """(T, B) bool: the step opened something for the first time in its episode."""
    claimable: torch.Tensor
    """(T, B) bool: in S, a claim would have succeeded."""
    sighted: torch.Tensor
    """(T, B) bool: in S, a claim would have succeeded then or at an earlier step of the search."""
    teacher_action: torch.Tensor
    """(T, B) int64: in S, the first action of the shortest path to the object in the mental map; -1 without one."""
    bootstrap_value: torch.Tensor
    """(B,): the critic's value after the last step."""
    state: MemoryState
    """(B,): the agent's recurrent state before the first step."""
    last: Observation
    """(B,): after the last step."""
    stages: frozenset[int]
    """Stages with at least one step, known to the host without a wait for the device."""
    openable: torch.Tensor | None = None
    """(T, B, 7, 7) bool: before each step, OpenAt would have found something closed and within reach; None if it was
    not recorded."""
    demonstrated: torch.Tensor | None = None
    """(T, B) bool: the action was a demonstration's, not the policy's; None if there are no demonstrations."""
    imitated: torch.Tensor | None = None
    """(T, B) bool: and is to be imitated: detours are not."""
    held_cell: torch.Tensor | None = None
    """(T, B, 2): row and column of the image's cells where the object in the hand is, see `BaseWorld.held_cells`; None
    if it was not recorded."""
    visible: torch.Tensor | None = None
    """(T, B, 101) bool: the types in CLASSES that the images show; None unless they are labeled."""

    def __len__(self) -> int:
        return self.action.shape[0]

    @property
    def terminated(self) -> torch.Tensor:
        """(T, B) bool: the stage's episode ended with the step, by the rules."""
        return self.dones & ~self.truncated

    def games(self, index: slice | torch.Tensor) -> Rollout:
        """The rollout of a subset of the games."""
        parts = {
            f.name: tree.index(getattr(self, f.name), index if f.name in _BATCH_ONLY else (slice(None), index))
            for f in fields(self)
        }
        return Rollout(**parts)


class Collector:
    """Plays games with an agent and records rollouts."""

    def __init__(
        self,
        agent: Agent,
        games: Sequence[CacheGame],
        seed: int,
        augmented: bool = False,
        autocast: Callable[[], torch.autocast] | None = None,
        on_step: Callable[[int, CacheGame, StepResult], None] | None = None,
        hiding_value: bool = False,
        hiding: bool = False,
        cuda_graph: bool = False,
        record_frames: bool = False,
        think_every: int = 1,
        record_openable: bool = False,
        record_hand: bool = False,
        demonstrations: bool = False,
        turn: AbstractContextManager | None = None,
        classes: bool = False,
    ) -> None:
        """`autocast` makes the context that networks run in; `on_step` gets every result with the index of its games.

        `hiding_value`: E&M is also rewarded by perspective simulation's value of the places reached. `hiding`: games
        that pass through PS are kept in `finished_games` when they end. `cuda_graph`: the agent's step is one.
        `record_frames`: `frames` holds what the last rollout's images were rendered from.
        `record_openable`: rollouts have `openable`; `record_hand`: they have `held_cell`. `demonstrations`: games that
        have one play it, and rollouts say so.
        `think_every`: games in PS wait, and every so many steps all of them choose their places together.
        `turn` is held during every step: another thread that takes it is not disturbed. `classes`: images are
        labeled with the types of objects that they show.
        """
        self.agent, self.games, self.on_step = agent, list(games), on_step
        self.device = next(agent.parameters()).device
        self.autocast = autocast or (lambda: torch.autocast(self.device.type, enabled=False))
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.is_first = [torch.ones(len(game), dtype=torch.bool, device=self.device) for game in self.games]
        self.augmentations = [
            Augmentation(len(game), seed + number, self.device) if augmented else None
            for number, game in enumerate(self.games)
        ]
        self.sighted = [np.zeros(len(game), bool) for game in self.games]
        """(B,) for each world: searches in which a claim would have succeeded at some step."""
        self.actors = [
            Actor(agent, len(game), self.autocast, augmentation, cuda_graph)
            for game, augmentation in zip(self.games, self.augmentations, strict=True)
        ]
        self.demonstrations = [Demonstrations(game) for game in self.games] if demonstrations else []
        self.hiding_rewards = [HidingReward(len(game), self.device) for game in self.games] if hiding_value else []
        labels = len(CLASSES) if classes else 0
        self.hiding_buffers = [HidingBuffer(agent, game, labels) for game in self.games] if hiding else []
        self.lessons = Lessons(agent.perspective, self.hiding_buffers) if hiding else None
        self.finished_games = FinishedGames()
        self.class_labels = [ClassLabels(game.world, self.device) for game in self.games] if classes else []
        self.think_every, self._time = think_every, 0
        self.turn = turn or nullcontext()
        several = self.device.type == "cuda" and len(self.games) > 1
        priority = COLLECTING_PRIORITY
        self.streams = [torch.cuda.Stream(self.device, priority) for _ in self.games] if several else []
        self.record_frames, self.record_openable, self.record_hand = record_frames, record_openable, record_hand
        self.frames: np.ndarray | None = None
        """(T, B): what the last rollout's images were rendered from, if recorded."""
        self.steps = 0
        """Environment steps taken so far, without those that games waited in PS."""

    def collect(self, length: int) -> Rollout:
        """The next T steps of all games; the worlds' games are concatenated along B."""
        with torch.no_grad():
            with self._stream_per_world() as stream:
                parts = []
                with self.turn:
                    for number in range(len(self.games)):
                        with stream(number):
                            parts.append(_Unroll(self, number))
                            parts[number].decide()
                for t in range(length):
                    with self.turn:
                        self._step(parts, stream, last=t == length - 1)
            if self.lessons:
                with self.turn, self.autocast():
                    taught = self.lessons.take()
            else:
                taught = [torch.full((length, len(game)), NOTHING, device=self.device) for game in self.games]
        if self.record_frames:
            self.frames = np.concatenate([np.stack(part.frames) for part in parts], 1)
        return _concatenate([part.rollout(actions) for part, actions in zip(parts, taught, strict=True)])

    def _step(self, parts: list[_Unroll], stream: Callable[[int], AbstractContextManager], last: bool) -> None:
        """A step of all games, and the next decisions."""
        # If all wait, there is nothing to wait for.
        if self._time % self.think_every == 0 or all((g.stage == Stage.PS).all() for g in self.games):
            self._think(parts)
        self._time += 1
        begun = []
        for number, part in enumerate(parts):
            with stream(number):
                part.begin_step()
                if part.game.world.awaits_physics:
                    begun.append(number)
                else:
                    part.finish_step(last)
        # Physics of several worlds runs at the same time.
        for number in begun:
            with stream(number):
                parts[number].finish_step(last)

    def _think(self, parts: list[_Unroll]) -> None:
        """Perspective simulation for the games in PS of all worlds."""
        choosing = [np.flatnonzero(game.stage == Stage.PS) for game in self.games]
        if not any(map(len, choosing)):
            return
        with self._joined_streams(), self.autocast(), varying_shapes():
            index = [torch.from_numpy(games).to(self.device) for games in choosing]
            maps = [tree.index(a.state.metric_map, games) for a, games in zip(self.actors, index, strict=True)]
            here = [part.observations[-1].place[games] for part, games in zip(parts, index, strict=True)]
            place, choice = self._choose_places(tree.cat(maps), torch.cat(here))
            ends = np.cumsum([len(games) for games in choosing])
            for number, (games, end) in enumerate(zip(choosing, ends, strict=True)):
                rows = slice(end - len(games), end)
                chosen = parts[number].place = np.zeros((len(self.games[number]), 4), int)
                chosen[games] = place[rows]
                if self.lessons:
                    self.lessons.keep(number, games)
                    self.hiding_buffers[number].start(games, maps[number], tree.index(choice, rows))

    def _choose_places(self, maps: MapState, here: torch.Tensor) -> tuple[np.ndarray, ChoiceBatch]:
        """The places (n, 4) that n games choose in PS, and what they considered."""
        places, choices = [], []
        # Imagined maps are large: simulate in batches.
        for first in range(0, len(here), SIMULATION_BATCH):
            some = slice(first, first + SIMULATION_BATCH)
            place, choice, _ = self.agent.choose_place(tree.index(maps, some), here[some], self.generator)
            places.append(place)
            choices.append(ChoiceBatch(*(getattr(choice, field.name) for field in fields(ChoiceBatch))))
        return torch.cat(places).cpu().numpy(), tree.cat(choices)

    @contextmanager
    def _stream_per_world(self) -> Iterator[Callable[[int], AbstractContextManager]]:
        """Each world runs on a CUDA stream of its own, so that neither waits for the other's images.

        They start after the work queued so far, and work queued afterwards waits for them.
        """
        if not self.streams:
            yield lambda number: nullcontext()
            return
        main = torch.cuda.current_stream(self.device)
        for stream in self.streams:
            stream.wait_stream(main)
        yield lambda number: torch.cuda.stream(self.streams[number])
        for stream in self.streams:
            main.wait_stream(stream)

    @contextmanager
    def _joined_streams(self) -> Iterator[None]:
        """Work that needs all worlds: it waits for their streams, and they wait for it."""
        for stream in self.streams:
            torch.cuda.current_stream(self.device).wait_stream(stream)
        yield
        for stream in self.streams:
            stream.wait_stream(torch.cuda.current_stream(self.device))

    def record_hiding(self, number: int, result: StepResult, claimable: np.ndarray) -> None:
        """Adds a step to a hiding buffer and to the lessons of its seekers; keeps finished games."""
        finished = self.hiding_buffers[number].record_step(result, claimable)
        if finished:
            self.finished_games.add(finished)
        if self.lessons:
            self.lessons.update(number, result)


class _Unroll:
    """One world's part of a rollout in progress."""

    def __init__(self, collector: Collector, number: int) -> None:
        self.collector, self.number = collector, number
        self.game = collector.games[number]
        self.state = collector.actors[number].state_snapshot()
        self.observations: list[Observation] = []
        self.action = torch.empty(0)
        """(B,): sampled for the next step."""
        self.place: np.ndarray | None = None
        """(B, 4): chosen in PS for the next step; None while games in PS wait."""
        self.in_sight = np.zeros(len(self.game), bool)
        """(B,): before the step in progress, the object was in sight and within reach."""
        self.rows: dict[str, list] = {name: [] for name in _ROWS}
        self.bootstrap_value = torch.empty(0)
        self.hiding_rewards: list[torch.Tensor] = []
        """(B,) each: E&M's rewards for the value of the states that its steps led to."""
        self.stages: set[int] = set()
        self.frames: list[np.ndarray] = []
        self.openable: list[torch.Tensor] = []
        self.held_cells: list[np.ndarray] = []
        self.demonstrated: list[np.ndarray] = []
        self.imitated: list[np.ndarray] = []
        self.visible: list[torch.Tensor] = []

    def decide(self, last: bool = False) -> None:
        """Renders and samples actions; does not wait for the device."""
        collector, number, game = self.collector, self.number, self.game
        is_first = collector.is_first[number]
        # The observation after the last step is the next rollout's first: the state is not updated by it twice.
        observation, step = collector.actors[number](observe(game), is_first, update_state=not last)
        self.observations.append(observation)
        if collector.record_frames and not last:
            self.frames.append(record_frames(game.world, collector.augmentations[number], game.hidden()))
        if collector.record_openable and not last:
            self.openable.append(game.world.openable_cells(game.look(LABELS)))
        if collector.record_hand and not last:
            self.held_cells.append(game.world.held_cells().astype(np.float32))
        with collector.autocast():
            if collector.hiding_rewards:
                values = place_values(collector.agent, step.state.metric_map, observation.place)
                reward = collector.hiding_rewards[number].pay(values, observation.stage, is_first, keep=not last)
                # The first state was reached by the last step of the rollout before, and rewarded there.
                self.hiding_rewards += [reward] if self.rows["reward"] else []
        if last:
            self.bootstrap_value = step.decision.value.float().clone()
            return
        logits = step.decision.logits.float()
        self.action = sample_categorical(logits, collector.generator)
        self.rows["is_first"].append(is_first)
        self.rows["log_probs"].append(log_prob(logits, self.action))
        if collector.class_labels:
            self.visible.append(collector.class_labels[number](game.look()))
        if collector.hiding_buffers:
            visible = self.visible[-1] if self.visible else None
            collector.hiding_buffers[number].record_decision(observation, step.decision, self.action, visible)
        if collector.lessons:
            collector.lessons.record_step(number, observation.place)

    def begin_step(self) -> None:
        """Begins a step of the games; those in PS wait unless places were chosen."""
        game = self.game
        self.stages |= set(np.unique(game.stage).tolist())
        visible, near = game.in_sight() if (game.stage == Stage.S).any() else (np.zeros(len(game), bool),) * 2
        self.in_sight = visible & near
        choosing = game.stage == Stage.PS
        actions = np.where(choosing, NOTHING, self.action.cpu().numpy())
        if self.collector.demonstrations:
            demonstrations = self.collector.demonstrations[self.number]
            shown = demonstrations.next_actions()
            self.demonstrated.append(shown != NOTHING)
            self.imitated.append((shown != NOTHING) & ~demonstrations.on_detour())
            actions = np.where(shown != NOTHING, shown, actions)
        game.begin_step(actions, self.place, choosing if self.place is None else None)
        self.place = None

    def finish_step(self, last: bool) -> None:
        """Finishes the step and decides on the next one; see `decide`."""
        collector, result = self.collector, self.game.finish_step()
        collector.steps += int((~result.waited).sum())
        if collector.on_step:
            collector.on_step(self.number, self.game, result)
        seeking = result.stage == Stage.S
        sighted = seeking & (collector.sighted[self.number] | self.in_sight)
        collector.sighted[self.number] = sighted & ~result.finished
        for name, value in (
            ("action", np.maximum(result.action, 0)),
            ("reward", step_reward(result).astype(np.float32)),
            ("success", result.success),
            ("dones", result.ended),
            ("truncated", result.truncated),
            ("hit", result.hit),
            ("landed", np.where(object_pixels(result.counts) > FEW_PIXELS, fullest_target(result.counts), NOTHING)),
            ("opened", result.novelty.opened),
            ("claimable", self.in_sight & seeking),
            ("sighted", sighted),
        ):
            self.rows[name].append(value)
        if collector.hiding_rewards:
            collector.hiding_rewards[self.number].observe(result)
        if collector.hiding_buffers:
            collector.record_hiding(self.number, result, self.rows["claimable"][-1])
        if collector.demonstrations:
            collector.demonstrations[self.number].begin(result.finished)
        augmentation = collector.augmentations[self.number]
        if augmentation and result.finished.any():
            augmentation.resample(result.finished)
        collector.is_first[self.number] = torch.from_numpy(result.finished.copy()).to(collector.device)
        self.decide(last)

    def rollout(self, teacher_action: torch.Tensor) -> Rollout:
        """The recorded steps as tensors on the agent's device, with the teacher's actions (T, B)."""
        *observations, last = self.observations
        stacked = {
            name: torch.stack(values) if isinstance(values[0], torch.Tensor) else torch.from_numpy(np.stack(values))
            for name, values in self.rows.items()
        }
        tensors = {name: value.to(self.collector.device, non_blocking=True) for name, value in stacked.items()}
        if self.hiding_rewards:
            tensors["reward"] = tensors["reward"] + torch.stack(self.hiding_rewards)
        labels = {"demonstrated": self.demonstrated, "imitated": self.imitated, "held_cell": self.held_cells}
        shown = {
            name: torch.from_numpy(np.stack(rows)).to(self.collector.device, non_blocking=True)
            for name, rows in labels.items()
            if rows
        }
        return Rollout(
            tree.stack(observations), bootstrap_value=self.bootstrap_value, state=self.state, last=last,
            stages=frozenset(self.stages), teacher_action=teacher_action,
            openable=torch.stack(self.openable) if self.openable else None, **shown,
            visible=torch.stack(self.visible) if self.visible else None, **tensors,
        )  # fmt: skip


_ROWS = (
    "is_first", "action", "log_probs", "reward", "success", "dones", "truncated", "hit", "landed", "opened",
    "claimable", "sighted",
)  # fmt: skip

_BATCH_ONLY = ("bootstrap_value", "state", "last")
"""Fields of a rollout whose first axis is B; the others' are T and B."""


def _concatenate(parts: list[Rollout]) -> Rollout:
    """Rollouts of different worlds, concatenated along B."""
    if len(parts) == 1:
        return parts[0]
    joined = {
        f.name: tree.cat([getattr(part, f.name) for part in parts], 0 if f.name in _BATCH_ONLY else 1)
        for f in fields(Rollout)
    }
    return Rollout(**{**joined, "stages": frozenset().union(*(part.stages for part in parts))})
