"""The physics of a scene in which any loose thing may be the one that moves.

One thing is free at a time. All others are fixed where they are, in a model of solids that is compiled when another
thing becomes free. For a goal object, with nothing else moved, it is the model of a world.
"""

from __future__ import annotations

import numpy as np

from scrubjay.rooms.floor import SWEEP_SAMPLES
from scrubjay.rooms.room import GOALS
from scrubjay.sim.broadphase import Broadphase, bounding_radius
from scrubjay.sim.compile import CompiledRoom, Placement, compile_moved
from scrubjay.sim.physics import Physics, PhysicsState
from scrubjay.sim.quaternion import compose, inverse, matrix_from_quat
from scrubjay.thor.scene_state import SceneAgent
from scrubjay.thor.things import Things

OVERLAP = 0.01
"""Meters by which boxes around an opening part and a thing may overlap: they are larger than what they bound."""


class LoosePhysics:
    """The engine of a scene."""

    def __init__(self, things: Things) -> None:
        self.things = things
        self._physics: Physics | None = None
        self._key: object = None

    def state(self, agent: SceneAgent, thing: int, aspect: float, reach: float) -> tuple[Physics, PhysicsState]:
        """The engine in which a thing is free, and its state as an agent acts on the thing."""
        things, physics = self.things, self._free(thing)
        openness = np.array([things.open[things.openables[one.thing]] for one in physics.compiled.openables])
        return physics, PhysicsState(
            agent.position, agent.rotation, agent.standing, openness, self._name(thing), things.pose(thing),
            agent.held == thing, agent.horizon, agent.field_of_view, aspect, reach,
        )  # fmt: skip

    def number(self, openable: int) -> int:
        """The number of an openable thing in the engine used last."""
        assert self._physics is not None
        return next(k for k, one in enumerate(self._physics.compiled.openables) if one.thing == openable)

    def apart(self, openable: int, thing: int) -> bool:
        """Does an openable move without touching the free thing?"""
        assert self._physics is not None
        compiled = self._physics.compiled
        radius = bounding_radius(compiled, self._name(thing))
        center = self.things.pose(thing)[None, :3]
        number = np.array([self.number(openable)])
        return bool(Broadphase([compiled]).apart(np.zeros(1, int), number, np.array([radius]), center)[0])

    def blocked(self, openable: int, start: float, end: float, free: int | None) -> int | None:
        """A thing that was moved into the way of an opening part between two fractions."""
        things = self.things
        bodies = set(things.openable(openable).bodies.tolist())
        others = things.moved.keys() - things.absent - {openable, free}
        in_the_way = [other for other in sorted(others) if things.body_of(other) not in bodies]
        if not in_the_way:
            return None
        boxes = Broadphase([things.compiled]).swept[:, 0, things.openables[openable]]
        boxes = boxes[:, np.isfinite(boxes).all((0, 2))]
        each = boxes.shape[1] // SWEEP_SAMPLES
        low, high = sorted((start, end))
        passed = boxes[:, each * int(low * SWEEP_SAMPLES) : each * int(np.ceil(high * SWEEP_SAMPLES))]
        for other in in_the_way:
            corners = things.corners(other)
            meets = (passed[0] < corners.max(0) - OVERLAP) & (passed[1] > corners.min(0) + OVERLAP)
            if meets.all(1).any():
                return other
        return None

    def _name(self, thing: int) -> str:
        """The name of its free body."""
        kind = self.things.types[thing]
        return kind if kind in GOALS else self.things.names[thing]

    def _free(self, thing: int) -> Physics:
        """The engine in which a thing is free; compiled anew if anything else has changed."""
        things, of_room = self.things, len(self.things.room.things)
        riders = things.riders(thing)
        others = sorted(things.moved.keys() - things.absent - {thing, *riders})
        absent = frozenset(other for other in things.absent if other < of_room and other != thing)
        opened = things.stamps.get(thing) if thing in things.openables else None
        key = (thing, opened, tuple(riders), absent, tuple((other, things.stamps[other]) for other in others))
        if self._physics is None or key != self._key:
            self._physics, self._key = Physics(self._compile(thing, riders, others, absent)), key
        return self._physics

    def _compile(self, thing: int, riders: list[int], others: list[int], absent: frozenset[int]) -> CompiledRoom:
        things = self.things
        spare = thing >= len(things.room.things)
        if spare and not others and not absent:
            return things.compiled
        placements = {other: things.placement(other) for other in others}
        if things.types[thing] in GOALS:
            return compile_moved(things.compiled, placements, absent if spare else absent | {thing})
        openness = things.open[things.openables[thing]] if thing in things.openables else 0.0
        carried = {rider: self._on(thing, rider) for rider in riders}
        return compile_moved(things.compiled, placements, absent, thing, things.mass[thing], float(openness), carried)

    def _on(self, thing: int, rider: int) -> Placement:
        """Where a rider is in the frame of the thing that carries it."""
        pose = compose(inverse(self.things.pose(thing)), self.things.pose(rider))
        turn = matrix_from_quat(pose[3:])
        return Placement(pose[:3] - turn @ [0, 0, self.things.size[rider, 2] / 2], turn)
