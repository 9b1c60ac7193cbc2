"""A person's game: the actions available to them, and the steps these expand to.

A seeker plays the last stage of a game. A hider plays in attempts, each a game that starts from the person's current
pose with things open as they are: walking is exploration (E&M), `HideHere` ends it, and every drop counts as a
placement. Replaying a trial's steps reproduces its state bit by bit, so only the steps are stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from scrubjay.game.actions import NAMES, NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, Recorder
from scrubjay.game.stages import LIMITS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.state import State

SEEK, HIDE = "seek", "hide"
UNLIMITED = 10**6
"""Step limit of the stages that a person plays."""
WALK, NO_ACTION = "Walk", ""
"""Steps that are no game actions: discard the attempt and start another; end the stage as if at its limit."""
HIDE_HERE, PICK_UP, GIVE_UP = "HideHere", "PickUp", "GiveUp"
POINT_OPEN, POINT_PLACE = "point:open", "point:place"
BODY = ("Stand", "Crouch", "CloseObjects")
FEET = ("MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", *BODY)
HAND = tuple(name for name in NAMES if name.startswith(("MoveHand", "RotateHand", "DropObject")))
ALLOWED = {
    "prepare": (),
    "seek": (*FEET, "ClaimVisible", GIVE_UP, POINT_OPEN),
    "walk": (*FEET, HIDE_HERE, POINT_OPEN),
    "hold": (*BODY, *HAND, WALK, POINT_OPEN, POINT_PLACE),
    "hand": (*HAND, PICK_UP, WALK, POINT_OPEN, POINT_PLACE),
    "placed": (*BODY, PICK_UP, WALK, "ReadyForSeeker", POINT_OPEN),
    "watch": (),
    "done": (),
}
"""The person's actions in each phase."""
DEFAULT_TARGET = "PlaceAt|0,4,4"
"""Starts a manipulation when a person moves the hand without having pointed anywhere."""


class NotAllowedError(Exception):
    """An action that is not possible now. The message is shown to the person; nothing has changed."""


class _Game(CacheGame):
    """Keeps the final state of a game, since the next one starts at once."""

    final: State | None = None

    def before_reset(self, result: StepResult) -> None:
        if result.finished[0]:
            self.final = self.world.state.copy()


class Trial:
    """One person's game. Trials in one room share a world: call `bind` before using any other method."""

    def __init__(
        self, world: BaseWorld, spec: EpisodeSpec, role: str, players: dict[str, str], human: bool = True
    ) -> None:
        """`human` lifts the step limits of the stages that `role` plays."""
        self.role, self.spec, self.players, self.human = role, spec, players, human
        self.record: Record | None = None
        """Set when the game has ended."""
        self.steps = 0
        """Actions the person has taken, over all attempts."""
        self.success: bool | None = None
        """Whether the last step succeeded."""
        self._begin(world, spec)

    def bind(self, world: BaseWorld) -> None:
        """Loads this trial's state into a world of its room."""
        self.game.world, world.state = world, self.state

    @property
    def phase(self) -> str:
        if self.record is not None:
            return "done"
        stage = Stage(self.game.stage[0])
        if self.role == SEEK:
            return "seek" if stage == Stage.S else "prepare"
        if stage == Stage.OH:
            return "placed" if self.game.placed[0] else "hold"
        return {Stage.EM: "walk", Stage.PS: "walk", Stage.OM: "hand", Stage.S: "watch"}[stage]

    @property
    def agent_pose(self) -> AgentPose:
        state = self.state
        x, y = map(float, state.position[0])
        return AgentPose(x, y, float(state.rotation[0]), bool(state.standing[0]))

    def internals(self) -> dict[str, list[Any]] | None:
        """Values that the players reported: a list per name with one per step, or None. None if there are none.

        Numbers that are not finite are None too.
        """
        names = dict.fromkeys(name for values in self._internals for name in values)
        return {name: [_json_value(values.get(name)) for values in self._internals] for name in names} or None

    def step(self, action: str, internals: Mapping[str, Any] = {}) -> bool:
        """Takes one step, as `steps_for` returns them, and stores the player's internals; returns success."""
        if action == WALK:
            spec = replace(self.spec, place=self.agent_pose, open=tuple(np.flatnonzero(self.state.open[0]).tolist()))
            self._begin(self.game.world, spec)
            self.success = True
            return True
        stage = self.game.stage[0]
        if action == NO_ACTION:
            self.game.limits[stage] = self.game.time[0, stage] + 1
        kind, *numbers = action.split(" ")
        place = np.array([[int(number) for number in numbers]]) if kind == "PS" else None
        result = self.game.step(np.array([NUMBERS.get(action, NOTHING)]), place)
        self._internals.append(internals)
        self._record_step(result, place)
        if action in NUMBERS and self._played_by_person(Stage(stage)):
            self.steps += 1
        self.success = bool(result.success[0])
        return self.success

    def steps_for(self, name: str) -> list[str]:
        """The steps that one of the person's actions expands to; NotAllowedError if it is not available."""
        if name not in ALLOWED[self.phase] or name in (POINT_OPEN, POINT_PLACE):
            raise NotAllowedError(f"{name[:40]} is not possible now.")
        place = self.game.relative_place()[0]
        place_selection = f"PS 0 0 {place[2]} {place[3]}"
        if name == HIDE_HERE:
            return [NO_ACTION, place_selection]
        if name == PICK_UP:
            return [WALK, NO_ACTION, place_selection]
        if name == GIVE_UP:
            return [NO_ACTION]
        return [DEFAULT_TARGET, name] if self.phase == "hold" and name in HAND else [name]

    def _played_by_person(self, stage: Stage) -> bool:
        return (stage == Stage.S) == (self.role == SEEK)

    def _begin(self, world: BaseWorld, spec: EpisodeSpec) -> None:
        """Starts a game with its own copy of the state."""
        world.state = world.state.copy()
        seeking = np.arange(len(Stage)) == Stage.S
        limits = np.where(self.human & (seeking == (self.role == SEEK)), UNLIMITED, LIMITS)
        limits[Stage.PS] = 1
        self.game = _Game(world, lambda *_: spec, limits, forgiving=True)
        self.recorder = Recorder(self.game, self.players)
        self._internals: list[Mapping[str, Any]] = []
        self.state = world.state

    def _record_step(self, result: StepResult, place: np.ndarray | None) -> None:
        for record in self.recorder.note(result, place):
            final = self.game.final
            assert final is not None
            record.limits = self.game.limits.tolist()
            if record.hidden is None:
                record.hidden = {"pose": final.pose[0].tolist(), "open": np.flatnonzero(final.open[0]).tolist()}
            self.record, self.state = record, final
            # The game has already started its next episode; show the final state of this one.
            self.game.world.state = final


def _json_value(value: Any) -> Any:
    """The value; None for numbers that JSON has not."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
