"""B games in which a learner plays one stage, and other players take the steps of the other stages in between.

To the learner it is an ordinary environment: actions are numbers within its stage, a game begins when it is the
learner's turn, and all that others do after its action belongs to the same step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scrubjay.envs.base import EnvGame
from scrubjay.envs.tasks import Task
from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import StepResult
from scrubjay.game.rewards import OH_PERCENTILE, oh_percentile, place_at_terms, seeker_steps, step_reward, total
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.sim.base_world import BaseWorld

ACTIONS = {stage: np.flatnonzero(actions.ALLOWED[stage]) for stage in Stage}
"""The actions of each stage: action k of the stage is ACTIONS[stage][k]."""
UNIFORM_LENGTHS = np.arange(1, SEEKER_STEPS + 1)
"""Stands in for the lengths of mental rollouts, which need an agent: every length is equally likely."""


@dataclass
class LearnerStep:
    """A learner's step in B games, with all that others did in it, (B,) each."""

    reward: np.ndarray
    success: np.ndarray
    """bool; of a PlaceAt, whether the object was placed."""
    hit: np.ndarray
    placed: np.ndarray
    finished: np.ndarray
    found: np.ndarray
    """bool; like those of `StepResult`, over all steps."""
    truncated: np.ndarray
    """bool: the game finished because the learner's stage ran out of steps."""

    @property
    def terminated(self) -> np.ndarray:
        """(B,) bool: the game finished by the rules."""
        return self.finished & ~self.truncated

    def info(self) -> dict[str, np.ndarray]:
        """The environment's info."""
        return {name: getattr(self, name).copy() for name in ("success", "hit", "placed", "found")}


class StageGames(EnvGame):
    """The games of a task."""

    def __init__(
        self, world: BaseWorld, task: Task, rng: np.random.Generator, keep_final_obs: bool, tensors: bool
    ) -> None:
        sampler_seed, player_seed = (int(seed) for seed in rng.integers(2**31, size=2))
        self.learned, self.others = task.stage, task.players(player_seed)
        self._index_in_stage = np.full(len(actions.NAMES) + 1, len(ACTIONS[task.stage]))
        self._index_in_stage[ACTIONS[task.stage]] = np.arange(len(ACTIONS[task.stage]))
        self._search_steps = np.zeros(len(world), int)
        """Steps of the searches that ended last."""
        super().__init__(world, task.sampler(sampler_seed), tensors, keep_final_obs, forgiving=True)

    def observe(self) -> dict[str, Any]:
        """The learners' observations, in the batched observation space."""
        place = self.relative_place()
        observation = {
            "image": self.image(),
            "last_action": self._index_in_stage[self.last_action],
            "last_success": self.last_success.astype(int),
            "standing": place[:, 3],
            "goal": self.goal.copy(),
            "place": place.astype(np.float32),
        }
        if self.learned == Stage.OH:
            none = len(actions.PLACE_ACTIONS)
            observation["landed"] = np.where(self.landed == NOTHING, none, actions.PLACE_AT[self.landed])
        if self.learned == Stage.OM:
            observation["target"] = self.target.copy()
        return observation

    def await_turn(self) -> None:
        """Lets others play until it is the learner's turn in every game; forgets final observations."""
        self.final_obs = {}
        while (others_turn := self.stage != self.learned).any():
            self._others_step(others_turn)

    def act(self, action: np.ndarray) -> LearnerStep:
        """Takes the learner's actions (B,), numbers within its stage, and lets others play until its next turn.

        The end of a manipulation pays the PlaceAt that began it. The end of a search pays the hider who placed the
        object: the paper's percentile reward, with `UNIFORM_LENGTHS` for the mental rollouts that only its agent has,
        and with the hider's last action, whether that succeeded or not.
        """
        action = np.asarray(action)
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            given = f"{action.dtype} {action.shape}"
            raise ValueError(f"one action's number for each of {len(self)} games is needed, a whole one, not {given}")
        if (action < 0).any() or (action >= len(ACTIONS[self.learned])).any():
            raise ValueError(f"actions of {self.learned.name} are numbers from 0 to {len(ACTIONS[self.learned]) - 1}")
        self.final_obs = {}
        result = self.step(ACTIONS[self.learned][action])
        step = LearnerStep(
            step_reward(result), result.success, result.hit, result.placed, result.finished.copy(), result.found,
            result.finished & result.truncated,
        )  # fmt: skip
        while (others_turn := (self.stage != self.learned) & ~step.finished).any():
            # A search for an object that was not placed earns nothing: it is cut short.
            hopeless = others_turn & (self.stage == Stage.S) & ~self.placed
            self.time[hopeless, Stage.S] = self.limits[Stage.S] - 1
            self._add(step, self._others_step(others_turn), others_turn)
        return step

    def before_reset(self, result: StepResult) -> None:
        self._search_steps[result.finished] = self.time[result.finished, Stage.S]
        super().before_reset(result)

    def _add(self, step: LearnerStep, result: StepResult, games: np.ndarray) -> None:
        """Adds a step of others, in games (B,) bool, to the learner's."""
        manipulated = games & (result.stage == Stage.OM) & result.ended
        step.reward += np.where(manipulated, total(place_at_terms(result)), 0.0)
        step.success = np.where(manipulated, result.placed, step.success)
        sought = games & (result.stage == Stage.S) & result.finished & result.placed_before
        steps = seeker_steps(result.found, self._search_steps)
        step.reward += np.where(sought, OH_PERCENTILE * oh_percentile(UNIFORM_LENGTHS, steps), 0.0)
        step.hit = step.hit | games & result.hit
        step.placed = step.placed | games & result.placed
        step.finished = step.finished | games & result.finished
        # A game that finishes with a manipulation within OH does so because that began with OH's last step.
        step.truncated = step.truncated | games & result.finished & (result.stage == Stage.OM)
        step.found = step.found | games & result.found

    def _others_step(self, games: np.ndarray) -> StepResult:
        """A step in the games (B,) bool where it is others' turn; in the rest no time passes."""
        kept = {name: getattr(self, name).copy() for name in ("time", "last_action", "last_success", "landed")}
        action, place = self.others(self, games)
        self.time[~games] = -1  # No action takes a step, which must not be a stage's last.
        result = self.step(np.where(games, action, NOTHING), place)
        for name, values in kept.items():
            getattr(self, name)[~games] = values[~games]
        return result
