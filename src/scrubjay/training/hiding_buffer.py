"""Games kept from PS until the seeker has finished, because only then OH's last reward is known.

OH's steps and the seeker's path are recorded while games run, with the map that the hider chose its place from. A game
in progress takes about 2.6 MB with the paper's networks (2.3 MB for the images of OH's 15 steps, 0.3 MB for the map,
0.06 MB for the seeker's 500 steps) and 0.7 MB with the small ones, all but a few KB on the agent's device; a finished
game that waits for training takes as much again. Those that perspective simulation learns from again are kept without
the images.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.heads import Decision
from scrubjay.agent.hiding_outcomes import OUTCOME_SAMPLES, outcome_index
from scrubjay.agent.mental_seeker import SEEKER_ACTIONS, SEEKER_INDEX
from scrubjay.agent.metric_map import MapState
from scrubjay.agent.perspective import CANDIDATES
from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.observation import Observation
from scrubjay.training.actor_critic import log_prob

PLACE_AT = torch.from_numpy(actions.PLACE_AT[:-1])
"""(219,): the target index of each PlaceAt; -1 for other actions."""


@functools.cache
def place_at_table(device: torch.device) -> torch.Tensor:
    """PLACE_AT on a device, copied there once: losses never wait for the device."""
    return PLACE_AT.to(device)


@dataclass(frozen=True)
class ChoiceBatch:
    """What n hiders considered in PS, and the place they chose: see `PlaceChoice`."""

    places: torch.Tensor
    """(n, 10, 3) int64."""
    valid: torch.Tensor
    """(n, 10) bool."""
    outcomes: torch.Tensor
    """(n, 10, 3) int64."""
    mean_steps: torch.Tensor
    """(n, 10, 3)."""
    chosen: torch.Tensor
    """(n,) int64: which of the ten."""

    @property
    def place(self) -> torch.Tensor:
        """(n, 3): row, column and quarter of the chosen place."""
        return self.places[torch.arange(len(self.chosen), device=self.chosen.device), self.chosen]


class _Padded:
    """Episodes of n games, padded to the stage's limit of T steps."""

    action: torch.Tensor
    """(n, T) int64, among all 219."""
    steps: torch.Tensor
    """(n,) int64: lengths."""

    @property
    def mask(self) -> torch.Tensor:
        """(n, T) bool: False for padding."""
        return torch.arange(self.action.shape[1], device=self.action.device) < self.steps[:, None]


@dataclass(frozen=True)
class HidingEpisodes(_Padded):
    """OH's steps in n games, without the manipulations in between."""

    observation: Observation
    """(n, T); undefined in padding."""
    log_probs: torch.Tensor
    """(n, T): of the actions, under the policy that sampled them."""
    hit_probability: torch.Tensor
    """(n, T): of a PlaceAt, the manipulator's probability to hit it."""
    hit: torch.Tensor
    """(n, T) bool: the manipulation of a PlaceAt hit its target exactly, without the relaxation of rows."""
    action: torch.Tensor
    success: torch.Tensor
    """(n, T) bool; a PlaceAt's is that of its manipulation. False in padding."""
    opened: torch.Tensor
    """(n, T) bool: the step opened something for the first time in the episode."""
    steps: torch.Tensor
    visible: torch.Tensor | None = None
    """(n, T, 101) bool: the types in CLASSES that the images show, undefined in padding; (n, T, 0) if not labeled."""

    @property
    def place_at(self) -> torch.Tensor:
        """(n, T): the target index of the PlaceAt that was tried, -1 for other steps."""
        return torch.where(self.mask, place_at_table(self.action.device)[self.action], NOTHING)

    @property
    def manipulated(self) -> torch.Tensor:
        """(n, T) bool: the PlaceAt that began a manipulation. After one that succeeded, others fail at once."""
        placed = (self.success & (self.place_at >= 0)).long()
        return (self.place_at >= 0) & (placed.cumsum(1) - placed == 0)

    @property
    def outcome(self) -> torch.Tensor:
        """(n,): the outcome of hiding, as perspective simulation numbers it."""
        return hiding_outcome(self.place_at, self.success, self.observation.standing)


@dataclass(frozen=True)
class SeekingEpisodes(_Padded):
    """The seekers' steps in n games."""

    place: torch.Tensor
    """(n, T, 4) int16: before each step, as observed."""
    policy: torch.Tensor
    """(n, T, 58) float16: probabilities of the seeker's actions."""
    action: torch.Tensor
    success: torch.Tensor
    """(n, T) bool."""
    claimable: torch.Tensor
    """(n, T) bool: a claim would have succeeded."""
    steps: torch.Tensor
    found: torch.Tensor
    """(n,) bool."""


@dataclass(frozen=True)
class PerspectiveBatch:
    """What perspective simulation learns from n finished games."""

    choice: ChoiceBatch
    metric_map: MapState
    """The hider's map in PS."""
    outcome: torch.Tensor
    """(n,): of hiding, as perspective simulation numbers them."""
    seeking: SeekingEpisodes

    def __len__(self) -> int:
        return len(self.outcome)


@dataclass(frozen=True)
class FinishedBatch:
    """Everything that training needs of n finished games."""

    choice: ChoiceBatch
    metric_map: MapState
    """The hider's map in PS, which is also that at the start of OH."""
    hiding: HidingEpisodes
    seeking: SeekingEpisodes

    def __len__(self) -> int:
        return len(self.hiding.steps)

    @property
    def perspective(self) -> PerspectiveBatch:
        return PerspectiveBatch(self.choice, self.metric_map, self.hiding.outcome, self.seeking)


class FinishedGames:
    """A queue of finished games that wait for training."""

    def __init__(self) -> None:
        self._batches: list[FinishedBatch] = []

    def __len__(self) -> int:
        return sum(len(batch) for batch in self._batches)

    def add(self, batch: FinishedBatch) -> None:
        self._batches.append(batch)

    def take(self, count: int) -> FinishedBatch:
        """Removes and returns the oldest games."""
        if not 0 < count <= len(self):
            raise ValueError(f"count: must be from 1 to {len(self)}, the number of games in the queue, not {count}")
        games = tree.cat(self._batches)
        self._batches = [tree.index(games, slice(count, None))] if count < len(games) else []
        return tree.index(games, slice(count))


class RecentGames:
    """The newest finished games, which perspective simulation learns from again and again."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._games: PerspectiveBatch | None = None

    def __len__(self) -> int:
        return 0 if self._games is None else len(self._games)

    def add(self, games: PerspectiveBatch) -> None:
        """Adds games; the oldest make room for them."""
        every = games if self._games is None else tree.cat([self._games, games])
        self._games = tree.index(every, slice(max(0, len(every) - self.capacity), None))

    def sample(self, count: int) -> PerspectiveBatch:
        """`count` different games at random, or all if there are fewer."""
        assert self._games is not None
        chosen = torch.randperm(len(self))[:count]
        return tree.index(self._games, chosen.to(self._games.outcome.device))


class _StepLog:
    """Actions and flags of B games' steps on the host."""

    def __init__(self, games: int, limit: int) -> None:
        self.action = np.zeros((games, limit), np.int16)
        self.success, self.flag = np.zeros((games, limit), bool), np.zeros((games, limit), bool)
        self.count = np.zeros(games, int)

    def add(self, games: np.ndarray, action: np.ndarray, success: np.ndarray, flag: np.ndarray) -> None:
        """Appends a step to games (n,), given by index; the other arguments are (B,)."""
        at = games, self.count[games]
        self.action[at], self.success[at], self.flag[at] = action[games], success[games], flag[games]
        self.count[games] += 1

    def tensors(
        self, games: np.ndarray, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, successes and flags (n, T) of games (n,), 0 in padding, and the numbers of steps (n,)."""
        count = self.count[games]
        mask = np.arange(self.action.shape[1]) < count[:, None]
        padded = (np.where(mask, values[games], 0) for values in (self.action, self.success, self.flag))
        action, success, flag = (torch.from_numpy(values).to(device) for values in padded)
        return action.long(), success.bool(), flag.bool(), torch.from_numpy(count).to(device)


class HidingBuffer:
    """Records B games from PS on. Games that do not pass through PS, or whose choice fails, are left out."""

    def __init__(self, agent: Agent, game: CacheGame, classes: int = 0) -> None:
        """`classes`: images are labeled with the presence of so many."""
        self.game, self.device = game, next(agent.parameters()).device
        self._place_at = place_at_table(self.device)
        self._seeker_actions = torch.tensor(SEEKER_ACTIONS).to(self.device)
        games, hide, seek = len(game), int(game.limits[Stage.OH]), int(game.limits[Stage.S])

        def zeros(*shape: int, kind: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(games, *shape, dtype=kind, device=self.device)

        self.active = np.zeros(games, bool)
        """(B,): games being recorded."""
        self.seeking_begun = np.zeros(0, int)
        """(n,): indices of games whose seeker began with the last step."""
        self.metric_map = agent.memory.metric_map.initial_state(games)
        self.choice = ChoiceBatch(
            zeros(CANDIDATES, 3), zeros(CANDIDATES, kind=torch.bool), zeros(CANDIDATES, OUTCOME_SAMPLES),
            zeros(CANDIDATES, OUTCOME_SAMPLES, kind=torch.float32), zeros(),
        )  # fmt: skip
        self._hider, self._seeker = _StepLog(games, hide), _StepLog(games, seek)
        self._hit = np.zeros((games, hide), bool)
        self._observation: Observation | None = None
        self._visible = zeros(hide, classes, kind=torch.bool)
        self._log_probs = zeros(hide, kind=torch.float32)
        self._hit_probability = zeros(hide, kind=torch.float32)
        self._place = zeros(seek, 4, kind=torch.int16)
        self._policy = zeros(seek, len(SEEKER_ACTIONS), kind=torch.float16)

    def start(self, games: np.ndarray, metric_map: MapState, choice: ChoiceBatch) -> None:
        """Starts recording games (n,), given by index, in PS, with their maps and choices (n, ...)."""
        index = self._to_device(games)
        tree.index_put_(self.choice, index, choice)
        tree.index_put_(self.metric_map, index, metric_map)
        self.active[games] = True
        self._hider.count[games] = self._seeker.count[games] = 0

    def record_decision(
        self, observation: Observation, decision: Decision, action: torch.Tensor, visible: torch.Tensor | None = None
    ) -> None:
        """Records observations and policies (B,) of the next step, in OH and in S, and images' classes if labeled."""
        logits = decision.logits.float()
        hiding = np.flatnonzero(self.active & (self.game.stage == Stage.OH))
        if len(hiding):
            games, step = self._indices(hiding, self._hider)
            if self._observation is None:
                shape = self._log_probs.shape
                self._observation = tree.map(lambda tensor: tensor.new_zeros(*shape, *tensor.shape[1:]), observation)
            tree.index_put_(self._observation, (games, step), tree.index(observation, games))
            if visible is not None:
                self._visible[games, step] = visible[games]
            self._log_probs[games, step] = log_prob(logits[games], action[games])
            place_at = self._place_at[action[games, None]].clamp(min=0)
            hittable = decision.hittable[games].float().flatten(1)
            self._hit_probability[games, step] = hittable.gather(-1, place_at)[:, 0].sigmoid()
        seeking = np.flatnonzero(self.active & (self.game.stage == Stage.S))
        if len(seeking):
            games, step = self._indices(seeking, self._seeker)
            self._place[games, step] = observation.place[games].to(self._place.dtype)
            policy = logits[games][:, self._seeker_actions].softmax(-1)
            self._policy[games, step] = policy.to(self._policy.dtype)

    def record_step(self, result: StepResult, claimable: np.ndarray) -> FinishedBatch | None:
        """Records a step's result and, in S, whether a claim would have succeeded (B,); returns finished games."""
        stage = result.stage
        self.active &= (stage != Stage.PS) | result.success
        hiding = self.active & (stage == Stage.OH)
        # Whether a PlaceAt succeeds is known when its manipulation ends.
        success = result.success & (actions.PLACE_AT[result.action] == NOTHING)
        self._hit[hiding, self._hider.count[hiding]] = False
        self._hider.add(np.flatnonzero(hiding), result.action, success, result.novelty.opened)
        manipulated = np.flatnonzero(self.active & (stage == Stage.OM) & result.ended)
        step = self._hider.count[manipulated] - 1
        self._hider.success[manipulated, step] = result.placed[manipulated]
        self._hit[manipulated, step] = result.hit[manipulated]
        seeking = self.active & (stage == Stage.S)
        self._seeker.add(np.flatnonzero(seeking), result.action, result.success, claimable)
        finished = np.flatnonzero(self.active & result.finished)
        batch = self._batch(finished, result.found) if len(finished) else None
        self.active &= ~result.finished
        self.seeking_begun = np.flatnonzero(self.active & (stage != Stage.S) & (self.game.stage == Stage.S))
        return batch

    def hidden(self, games: np.ndarray) -> tuple[MapState, torch.Tensor, torch.Tensor]:
        """Of games (n,), given by index, whose OH has ended: the maps in PS, the hiders' places there (n, 3) as row,
        column and quarter, and the outcomes of hiding (n,)."""
        index = self._to_device(games)
        action, success, _, _ = self._hider.tensors(games, self.device)
        if self._observation is None:  # Nobody has hidden anything yet.
            standing = torch.zeros_like(success)
        else:
            standing = self._observation.standing[index]
        outcome = hiding_outcome(self._place_at[action], success, standing)
        return tree.index(self.metric_map, index), self.choice.place[index], outcome

    def _indices(self, games: np.ndarray, log: _StepLog) -> tuple[torch.Tensor, torch.Tensor]:
        """Games and the steps that they record next."""
        at = self._to_device(np.stack([games, log.count[games]]))
        return at[0], at[1]

    def _to_device(self, values: np.ndarray) -> torch.Tensor:
        """Without waiting for the device, which may be busy with the agent's step."""
        return torch.from_numpy(values).to(self.device, non_blocking=True)

    def _batch(self, games: np.ndarray, found: np.ndarray) -> FinishedBatch:
        """A copy of the records of games (n,)."""
        assert self._observation is not None
        index = torch.from_numpy(games).to(self.device)
        action, success, opened, steps = self._hider.tensors(games, self.device)
        within = np.arange(self._hit.shape[1]) < self._hider.count[games, None]
        seeking = (*self._seeker.tensors(games, self.device), torch.from_numpy(found[games]).to(self.device))
        return FinishedBatch(
            tree.index(self.choice, index),
            tree.index(self.metric_map, index),
            HidingEpisodes(
                tree.index(self._observation, index),
                self._log_probs[index],
                self._hit_probability[index],
                torch.from_numpy(self._hit[games] & within).to(self.device),
                action,
                success,
                opened,
                steps,
                self._visible[index],
            ),
            SeekingEpisodes(self._place[index], self._policy[index], *seeking),
        )


def hiding_outcome(place_at: torch.Tensor, success: torch.Tensor, standing: torch.Tensor) -> torch.Tensor:
    """Outcomes of hiding (n,) from OH's steps (n, T): target indices or -1, successes, standing."""
    placed, games = success & (place_at >= 0), torch.arange(len(place_at), device=place_at.device)
    step = placed.int().argmax(1)
    # After a PlaceAt that succeeds no other does.
    return outcome_index(standing[games, step], torch.where(placed.any(1), place_at[games, step], NOTHING))


def seeker_action_ids(action: torch.Tensor) -> torch.Tensor:
    """Actions among the 219 as indices into the seeker's 58."""
    return SEEKER_INDEX.to(action.device)[action]
