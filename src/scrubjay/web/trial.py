"""A person's game: what they may do in it, and the steps that this comes to.

A seeker plays the last stage of a game of record. A hider plays in attempts, each a game that begins where the person
is with what is open then: walking is exploring, hiding from here ends it, and every drop is a placement. All that
happens is a list of steps as text, and the same steps always lead to the same state; so a trial survives as its steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from scrubjay.game.actions import NAMES, NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, Recorder
from scrubjay.game.stages import LIMITS
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.state import State
from scrubjay.sim.world import World

SEEK, HIDE = "seek", "hide"
UNLIMITED = 10**6
"""Steps: people may take as many as they like."""
WALK, NO_ACTION = "Walk", ""
"""As steps: the attempt is thrown away and another one begins; the stage ends here, as if its steps were used up."""
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
"""What a person can do in each phase."""
FIRST_TARGET = "PlaceAt|0,4,4"
"""Begins a manipulation for people who move the hand without having pointed anywhere."""


class NotAllowedError(Exception):
    """What a person asked for cannot be done as things are; the message is for them, and nothing has changed."""


class _Game(CacheGame):
    """A game that remembers how it ended: the next one begins at once."""

    final: State | None = None

    def before_reset(self, outcome: StepResult) -> None:
        if outcome.finished[0]:
            self.final = self.world.state.copy()


class Trial:
    """One game of one person. It shares its world with other trials, so `bind` it before anything else is asked."""

    def __init__(
        self, world: World, deal: EpisodeSpec, role: str, players: dict[str, str], people: bool = True
    ) -> None:
        """`people` play without limits in their stages."""
        self.role, self.deal, self.players, self.people = role, deal, players, people
        self.record: Record | None = None
        """The game, once it has ended."""
        self.steps = 0
        """Actions that the person has taken, in all attempts."""
        self.success: bool | None = None
        """Of the last step."""
        self._begin(world, deal)

    def bind(self, world: World) -> None:
        """Puts this trial's state into a world of its room."""
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
    def place(self) -> AgentPose:
        state = self.state
        x, y = map(float, state.position[0])
        return AgentPose(x, y, float(state.rotation[0]), bool(state.standing[0]))

    def internals(self) -> dict[str, list[float | None]] | None:
        """What players thought: a list for each name, a number or None for each step. None if they said nothing."""
        names = dict.fromkeys(name for thought in self._thoughts for name in thought)
        numbers = {name: [thought.get(name, math.nan) for thought in self._thoughts] for name in names}
        return {name: [x if math.isfinite(x) else None for x in numbers[name]] for name in names} or None

    def step(self, action: str, thought: Mapping[str, float] = {}) -> bool:
        """Takes one step, as `steps_for` gives them, with what was thought at it; did it succeed?"""
        if action == WALK:
            here = replace(self.deal, place=self.place, open=tuple(np.flatnonzero(self.state.open[0]).tolist()))
            self._begin(self.game.world, here)
            self.success = True
            return True
        stage = self.game.stage[0]
        if action == NO_ACTION:
            self.game.limits[stage] = self.game.time[0, stage] + 1
        kind, *numbers = action.split(" ")
        place = np.array([[int(number) for number in numbers]]) if kind == "PS" else None
        outcome = self.game.step(np.array([NUMBERS.get(action, NOTHING)]), place)
        self._thoughts.append(thought)
        self._note(outcome, place)
        if action in NUMBERS and self._is_mine(Stage(stage)):
            self.steps += 1
        self.success = bool(outcome.success[0])
        return self.success

    def steps_for(self, name: str) -> list[str]:
        """The steps that one of the things that a person can do comes to; NotAllowedError if it is none of these."""
        if name not in ALLOWED[self.phase] or name in (POINT_OPEN, POINT_PLACE):
            raise NotAllowedError(f"{name[:40]} cannot be done now.")
        place = self.game.relative_place()[0]
        choice = f"PS 0 0 {place[2]} {place[3]}"
        if name == HIDE_HERE:
            return [NO_ACTION, choice]
        if name == PICK_UP:
            return [WALK, NO_ACTION, choice]
        if name == GIVE_UP:
            return [NO_ACTION]
        return [FIRST_TARGET, name] if self.phase == "hold" and name in HAND else [name]

    def _is_mine(self, stage: Stage) -> bool:
        """Does the person play this stage?"""
        return (stage == Stage.S) == (self.role == SEEK)

    def _begin(self, world: World, deal: EpisodeSpec) -> None:
        """A game with a state of its own begins."""
        world.state = world.state.copy()
        seeking = np.arange(len(Stage)) == Stage.S
        limits = np.where(self.people & (seeking == (self.role == SEEK)), UNLIMITED, LIMITS)
        limits[Stage.PS] = 1
        self.game = _Game(world, lambda *_: deal, limits, forgiving=True)
        self.recorder = Recorder(self.game, self.players)
        self._thoughts: list[Mapping[str, float]] = []
        self.state = world.state

    def _note(self, outcome: StepResult, place: np.ndarray | None) -> None:
        for record in self.recorder.note(outcome, place):
            final = self.game.final
            assert final is not None
            record.limits = self.game.limits.tolist()
            if record.hidden is None:
                record.hidden = {"pose": final.pose[0].tolist(), "open": np.flatnonzero(final.open[0]).tolist()}
            self.record, self.state = record, final
            # The next game has begun; what is looked at is how this one ended.
            self.game.world.state = final
