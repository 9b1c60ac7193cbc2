"""B games in which a learner plays one stage; players take the steps of the other stages in between.

What the learner meets is an ordinary problem of its own: actions are numbers within its stage, its games begin when
it is its turn, and all that others do after its action belongs to the same step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scrubjay.envs.cache import Games
from scrubjay.envs.tasks import Task
from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import StepResult
from scrubjay.game.rewards import OH_PERCENTILE, oh_percentile, place_at_terms, seeker_steps, step_reward, total
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.sim.world import World

ACTIONS = {stage: np.flatnonzero(actions.ALLOWED[stage]) for stage in Stage}
"""The actions of each stage, by their numbers within it."""
ANY_LENGTH = np.arange(1, SEEKER_STEPS + 1)
"""Stands for the lengths of mental rollouts, which only an agent has: a search is as likely to take any time."""


@dataclass
class Played:
    """What a learner's step came to in B games, (B,) each."""

    reward: np.ndarray
    success: np.ndarray
    """bool; of a PlaceAt, whether the object is where it should be."""
    hit: np.ndarray
    placed: np.ndarray
    finished: np.ndarray
    found: np.ndarray
    """bool, like those of `StepResult`, of all steps together."""

    def told(self) -> dict[str, np.ndarray]:
        """What an info says."""
        return {name: getattr(self, name).copy() for name in ("success", "hit", "placed", "found")}


class StageGames(Games):
    """Games of a task."""

    def __init__(self, world: World, task: Task, rng: np.random.Generator, last_looks: bool, tensors: bool) -> None:
        deals, players = (int(seed) for seed in rng.integers(2**31, size=2))
        self.learns, self.others = task.stage, task.players(players)
        self._own_number = np.full(len(actions.NAMES) + 1, len(ACTIONS[task.stage]))
        self._own_number[ACTIONS[task.stage]] = np.arange(len(ACTIONS[task.stage]))
        self._sought = np.zeros(len(world), int)
        """How long the seeker took in the games that ended last."""
        super().__init__(world, task.sampler(deals), tensors, last_looks, forgiving=True)

    def observe(self) -> dict[str, Any]:
        """What learners see now, in the batched observation space."""
        place = self.relative_place()
        seen = {
            "image": self.image(),
            "last_action": self._own_number[self.last_action],
            "last_success": self.last_success.astype(int),
            "standing": place[:, 3],
            "goal": self.goal.copy(),
            "place": place.astype(np.float32),
        }
        if self.learns == Stage.OH:
            seen["landed"] = np.where(self.landed == NOTHING, len(actions.PLACE_ACTIONS), actions.PLACE_AT[self.landed])
        if self.learns == Stage.OM:
            seen["target"] = self.target.copy()
        return seen

    def await_turn(self) -> None:
        """Others play until it is the learner's turn in every game; what was seen at ends is forgotten."""
        self.last_look = {}
        while (theirs := self.stage != self.learns).any():
            self._others_step(theirs)

    def act(self, action: np.ndarray) -> Played:
        """The learner's actions (B,), numbers within its stage, and all that others do until its next turn or the end.

        A manipulation's end pays the PlaceAt that began it. The end of a search pays the hider who placed the object:
        the paper's percentile reward, with `ANY_LENGTH` for the mental rollouts that only its agent has, and with the
        hider's last action, whether that succeeded or not.
        """
        action = np.asarray(action)
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            raise ValueError(f"one action's number for each of {len(self)} games is needed, not {action.shape}")
        if (action < 0).any() or (action >= len(ACTIONS[self.learns])).any():
            raise ValueError(f"actions of {self.learns.name} are numbers from 0 to {len(ACTIONS[self.learns]) - 1}")
        self.last_look = {}
        outcome = self.step(ACTIONS[self.learns][action])
        played = Played(
            step_reward(outcome), outcome.success, outcome.hit, outcome.placed, outcome.finished.copy(), outcome.found
        )
        while (theirs := (self.stage != self.learns) & ~played.finished).any():
            # Where nothing was placed a search earns nobody anything: it is cut short.
            hopeless = theirs & (self.stage == Stage.S) & ~self.placed
            self.time[hopeless, Stage.S] = self.limits[Stage.S] - 1
            self._add(played, self._others_step(theirs), theirs)
        return played

    def before_reset(self, outcome: StepResult) -> None:
        self._sought[outcome.finished] = self.time[outcome.finished, Stage.S]
        super().before_reset(outcome)

    def _add(self, played: Played, outcome: StepResult, theirs: np.ndarray) -> None:
        """What a step of others, in some games, adds to the learner's."""
        manipulated = theirs & (outcome.stage == Stage.OM) & outcome.ended
        played.reward += np.where(manipulated, total(place_at_terms(outcome)), 0.0)
        played.success = np.where(manipulated, outcome.placed, played.success)
        sought = theirs & (outcome.stage == Stage.S) & outcome.finished & outcome.placed_before
        steps = seeker_steps(outcome.found, self._sought)
        played.reward += np.where(sought, OH_PERCENTILE * oh_percentile(ANY_LENGTH, steps), 0.0)
        played.hit = played.hit | theirs & outcome.hit
        played.placed = played.placed | theirs & outcome.placed
        played.finished = played.finished | theirs & outcome.finished
        played.found = played.found | theirs & outcome.found

    def _others_step(self, theirs: np.ndarray) -> StepResult:
        """A step in the games where it is others' turn; in the rest no time passes."""
        kept = {name: getattr(self, name).copy() for name in ("time", "last_action", "last_success", "landed")}
        action, place = self.others(self, theirs)
        self.time[~theirs] = -1  # An action that is none takes a step, which must not be a stage's last.
        outcome = self.step(np.where(theirs, action, NOTHING), place)
        for name, values in kept.items():
            getattr(self, name)[~theirs] = values[~theirs]
        return outcome
