"""Sequences of play for learning: T steps of B games, with all that losses need, images uint8 on their device.

The games are two half-batches with a world each: while the GPU looks at one, the CPU acts in the other. Who learns and
who plays are the same agent, so a sequence begins with the memory that it had then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.memory import MemoryState
from scrubjay.agent.sampling import sample_categorical
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.observation import Observation, observe
from scrubjay.game.placement import FEW_PIXELS, object_pixels
from scrubjay.game.rewards import HidingReward, step_reward
from scrubjay.training.actor import Acting
from scrubjay.training.augmentation import Augmentation
from scrubjay.training.hiding_buffer import FinishedGames, HidingBuffer
from scrubjay.training.hiding_reward import place_values
from scrubjay.training.path_teacher import PathTeacher

THOUGHT_TOGETHER = 64
"""Games that imagine maps at once, each 30 of them."""


@dataclass(frozen=True)
class Rollout:
    """T steps of B games. Stages are the observation's: those in which the actions were taken."""

    observation: Observation
    """(T, B): what was seen before each step."""
    begins: torch.Tensor
    """(T, B) bool: the step is a game's first."""
    action: torch.Tensor
    """(T, B) int64; 0 in PS, which has none."""
    log_probability: torch.Tensor
    """(T, B): of the actions when they were drawn."""
    reward: torch.Tensor
    """(T, B)."""
    success: torch.Tensor
    """(T, B) bool."""
    ended: torch.Tensor
    """(T, B) bool: the stage's episode ended with the step."""
    hit: torch.Tensor
    """(T, B) bool: a manipulation ended with the step, on its target."""
    landed: torch.Tensor
    """(T, B) int64: the target index at which a step dropped the object in OM; -1 if it dropped nothing, or nothing
    that can be seen."""
    opened: torch.Tensor
    """(T, B) bool: the step opened something that its episode had not opened before."""
    claimable: torch.Tensor
    """(T, B) bool: in S, whether a claim would have succeeded instead."""
    toward: torch.Tensor
    """(T, B) int64: in S, the action that the mental map's shortest way to the object begins with; -1 if none does."""
    following: torch.Tensor
    """(B,): the critic's value after the last step."""
    state: MemoryState
    """What the agent remembered before the first step."""
    last: Observation
    """(B,): what was seen after the last step."""
    stages: frozenset[int]
    """Those that there are steps of: what needs no learning is known without asking the device."""

    def __len__(self) -> int:
        return self.action.shape[0]

    def games(self, some: slice | torch.Tensor) -> Rollout:
        """The same of some of the games, by number."""
        cut = {
            f.name: tree.index(getattr(self, f.name), some if f.name in _WITHOUT_TIME else (slice(None), some))
            for f in fields(self)
        }
        return Rollout(**cut)


class Collector:
    """Plays with an agent and writes down what happens."""

    def __init__(
        self,
        agent: Agent,
        caches: Sequence[CacheGame],
        seed: int,
        augmented: bool = False,
        half: Callable[[], torch.autocast] | None = None,
        watch: Callable[[int, CacheGame, StepResult], None] | None = None,
        valued: bool = False,
        hiding: bool = False,
        recorded: bool = False,
    ) -> None:
        """`half` makes the context that networks run in; `watch` is told every outcome, with its cache's number.

        If `valued`, exploring also earns what perspective simulation thinks of the places found. If `hiding`, games
        that come by PS are put on a shelf when they are over. If `recorded`, the agent's steps are, on a GPU.
        """
        self.agent, self.caches, self.watch = agent, list(caches), watch
        self.device = next(agent.parameters()).device
        self.half = half or (lambda: torch.autocast(self.device.type, enabled=False))
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.begins = [torch.ones(len(game), dtype=torch.bool, device=self.device) for game in self.caches]
        self.augmentations = [
            Augmentation(len(game), seed + number, self.device) if augmented else None
            for number, game in enumerate(self.caches)
        ]
        self.acting = [
            Acting(agent, len(game), self.half, augmentation, recorded)
            for game, augmentation in zip(self.caches, self.augmentations, strict=True)
        ]
        self.guides = [PathTeacher(len(game), self.device) for game in self.caches]
        self.values = [HidingReward(len(game), self.device) for game in self.caches] if valued else []
        self.books = [HidingBuffer(agent, game) for game in self.caches] if hiding else []
        self.shelf = FinishedGames()
        several = self.device.type == "cuda" and len(self.caches) > 1
        self.streams = [torch.cuda.Stream(self.device) for _ in self.caches] if several else []
        self.steps = 0
        """Environment steps taken so far."""

    def collect(self, length: int) -> Rollout:
        """The next T steps of all games; those of the second world follow those of the first along B."""
        with torch.no_grad(), self._apart() as beside:
            parts, waiting = [], []
            for number in range(len(self.caches)):
                with beside(number):
                    parts.append(_Sequence(self, number, length))
                    waiting.append(parts[number].decide())
            for step in range(length):
                for number, part in enumerate(parts):
                    with beside(number):
                        part.act(*waiting[number])
                        waiting[number] = part.decide(last=step == length - 1)
        self.steps += length * sum(len(game) for game in self.caches)
        return _joined([part.rollout() for part in parts])

    @contextmanager
    def _apart(self) -> Iterator[Callable[[int], AbstractContextManager]]:
        """Lets the worlds use streams of their own on a GPU: who waits for one's pictures does not wait for another's.

        Outside, everything is in order: they begin after what came before, and what comes after waits for them.
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

    def keep(self, number: int, outcome: StepResult, claimable: np.ndarray) -> None:
        """Tells a cache's book what a step did; finished games go on the shelf, and seekers who begin get a guide."""
        book = self.books[number]
        finished = book.note(outcome, claimable)
        if finished:
            self.shelf.add(finished)
        for games in np.split(book.begun, range(THOUGHT_TOGETHER, len(book.begun), THOUGHT_TOGETHER)):
            if len(games):
                with self.half():
                    numbers = torch.from_numpy(games).to(self.device)
                    self.guides[number].lead(self.agent.perspective, numbers, *book.hidden(games))


class _Sequence:
    """One world's part of a rollout under way."""

    def __init__(self, collector: Collector, number: int, length: int) -> None:
        self.of, self.number, self.length = collector, number, length
        self.game = collector.caches[number]
        self.first = collector.acting[number].remembered()
        self.seen: list[Observation] = []
        self.rows: dict[str, list] = {name: [] for name in _ROWS}
        self.following = torch.empty(0)
        self.hide: list[torch.Tensor] = []
        """What E&M's steps earn for the values of the states that they led to, (B,) each."""
        self.stages: set[int] = set()

    def decide(self, last: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Looks and draws actions; they are still on their way from the device when this returns."""
        of, number, game = self.of, self.number, self.game
        begins = of.begins[number]
        # What is seen after the last step is the next sequence's first: the memory stays before it.
        observation, said = of.acting[number](observe(game), begins, remember=not last)
        self.seen.append(observation)
        with of.half():
            if of.values:
                values = place_values(of.agent, said.state.metric_map, observation.place)
                paid = of.values[number].pay(values, observation.stage, begins, keep=not last)
                # The sequence's first state was entered by the last one's last step, which was paid there.
                self.hide += [paid] if self.rows["reward"] else []
        if last:
            self.following = said.decision.value.float().clone()
            return self.following, None
        logits = said.decision.logits.float()
        action = sample_categorical(logits, of.generator)
        of.guides[number].forget(begins)
        self.rows["toward"].append(of.guides[number].toward(observation.place))
        self.rows["begins"].append(begins)
        self.rows["log_probability"].append(logits.log_softmax(-1).gather(-1, action[:, None])[:, 0])
        choosing = game.stage == Stage.PS
        place = None
        if choosing.any():
            games = torch.from_numpy(np.flatnonzero(choosing)).to(of.device)
            place = torch.zeros(len(game), 4, dtype=torch.int64, device=of.device)
            # Imagined maps are large: not too many at once.
            for some in games.split(THOUGHT_TOGETHER):
                with of.half():
                    place[some], choice, _ = of.agent.choose_place(said.state, observation, some, of.generator)
                if of.books:
                    of.books[number].chosen(some, said.state.metric_map, choice)
        if of.books:
            of.books[number].decided(observation, said.decision, action)
        return action, place

    def act(self, action: torch.Tensor, place: torch.Tensor | None) -> None:
        """Takes the actions in the world."""
        game = self.game
        self.stages |= set(np.unique(game.stage).tolist())
        visible, near = game.in_sight() if (game.stage == Stage.S).any() else (np.zeros(len(game), bool),) * 2
        numbers = np.where(game.stage == Stage.PS, NOTHING, action.cpu().numpy())
        outcome = game.step(numbers, np.zeros((len(game), 4), int) if place is None else place.cpu().numpy())
        if self.of.watch:
            self.of.watch(self.number, game, outcome)
        counts = outcome.counts.reshape(len(game), -1)
        for name, value in (
            ("action", np.maximum(numbers, 0)),
            ("reward", step_reward(outcome).astype(np.float32)),
            ("success", outcome.success),
            ("ended", outcome.ended),
            ("hit", outcome.hit),
            ("landed", np.where(object_pixels(outcome.counts) > FEW_PIXELS, counts.argmax(1), NOTHING)),
            ("opened", outcome.novelty.opened),
            ("claimable", visible & near & (outcome.stage == Stage.S)),
        ):
            self.rows[name].append(value)
        if self.of.values:
            self.of.values[self.number].observe(outcome)
        if self.of.books:
            self.of.keep(self.number, outcome, self.rows["claimable"][-1])
        augmentation = self.of.augmentations[self.number]
        if augmentation and outcome.finished.any():
            augmentation.renew(outcome.finished)
        self.of.begins[self.number] = torch.from_numpy(outcome.finished.copy()).to(self.of.device)

    def rollout(self) -> Rollout:
        """What was written down, as tensors on the agent's device."""
        *seen, last = self.seen
        stacked = {
            name: torch.stack(values) if isinstance(values[0], torch.Tensor) else torch.from_numpy(np.stack(values))
            for name, values in self.rows.items()
        }
        tensors = {name: value.to(self.of.device, non_blocking=True) for name, value in stacked.items()}
        if self.hide:
            tensors["reward"] = tensors["reward"] + torch.stack(self.hide)
        observation = tree.stack(seen)
        return Rollout(
            observation, following=self.following, state=self.first, last=last, stages=frozenset(self.stages), **tensors
        )


_ROWS = (
    "begins", "action", "log_probability", "reward", "success", "ended", "hit", "landed", "opened", "claimable",
    "toward",
)  # fmt: skip

_WITHOUT_TIME = ("following", "state", "last")
"""Fields of a rollout whose first axis is B; the others' are T and B."""


def _joined(parts: list[Rollout]) -> Rollout:
    """Rollouts of different worlds side by side."""
    if len(parts) == 1:
        return parts[0]
    joined = {
        f.name: tree.cat([getattr(part, f.name) for part in parts], 0 if f.name in _WITHOUT_TIME else 1)
        for f in fields(Rollout)
    }
    return Rollout(**{**joined, "stages": frozenset().union(*(part.stages for part in parts))})
