"""What agents do with a scene's things: open them, take them, move them in the hand, put them down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.sim.physics import Physics, PhysicsState
from scrubjay.sim.quaternion import matrix_from_quat
from scrubjay.thor.cameras import agent_camera
from scrubjay.thor.ground import Ground
from scrubjay.thor.loose import LoosePhysics
from scrubjay.thor.receptacles import Receptacles
from scrubjay.thor.scene_state import ActionFailed, SceneAgent
from scrubjay.thor.things import Things

MAX_THROW = 6.0
"""m/s; faster things could pass through thin ones."""
PUSH_SECONDS = 0.02
"""How long a throw's force acts: one step of Unity's physics."""
MAX_TRIES = 12
"""Places in which a thing is dropped before putting it down fails."""
UPRIGHT = 0.97
"""The least cosine of the angle by which a thing leans while what it carries stays on it."""
UNBOUNDED = float("inf")


class Hands:
    """The hands of all agents. A failed action leaves things in between; `Scene` restores them."""

    def __init__(self, things: Things, receptacles: Receptacles, ground: Ground) -> None:
        self.things, self.receptacles, self.ground = things, receptacles, ground
        self.loose = LoosePhysics(things)
        self.free: int | None = None
        """The thing that moved last: openings carry it or push it aside, like a world's goal object."""
        self.aspect = 1.0
        """The views' width over their height: hands stay in view."""

    def set_openness(self, agents: Sequence[SceneAgent], agent: SceneAgent, thing: int, openness: float) -> None:
        things, name = self.things, self.things.names[thing]
        before = float(things.open[things.openables[thing]])
        if openness == before:
            raise ActionFailed(f"{name} is already {'open' if openness else 'closed'}")
        if thing not in things.moved:
            if self.ground.swept(thing, before, openness, [one.position for one in agents]):
                raise ActionFailed(f"{name} would hit an agent")
            if (other := self.loose.blocked(thing, before, openness, self.free)) is not None:
                raise ActionFailed(f"{things.names[other]} is in the way of {name}")
            if self.free is not None and self.free not in things.absent:
                return self._open_beside(agents, agent, thing, openness, self.free)
        things.set_open(thing, openness)

    def _open_beside(
        self, agents: Sequence[SceneAgent], agent: SceneAgent, thing: int, openness: float, free: int
    ) -> None:
        """Opens where the free thing may be touched: in a hand it blocks, loose it rides along or is pushed aside."""
        holder = next((one for one in agents if one.held == free), agent)
        physics, now = self.loose.state(holder, free, self.aspect, UNBOUNDED)
        pose = now.pose
        if not self.loose.apart(thing, free):
            then = physics.move_openable(now, self.loose.number(thing), openness)
            if then is None:
                raise ActionFailed(f"{self.things.names[free]} is in the way of {self.things.names[thing]}")
            pose = then.pose
        self.things.set_open(thing, openness)
        if holder.held == free:
            self.things.move(free, pose)
        else:
            self._rest(free, pose)

    def pick_up(self, agent: SceneAgent, thing: int) -> None:
        things = self.things
        there = thing not in things.absent
        carried = self._contents(thing) if there else []
        leaning = [other for other in self.receptacles.on_top_of(thing) if other not in carried] if there else []
        for other in carried:
            things.attach(other, thing)
        physics, now = self.loose.state(agent, thing, self.aspect, UNBOUNDED)
        then = physics.hold(now)
        if then is None:
            raise ActionFailed(f"there is no room for {things.names[thing]} in the hand")
        things.held.update([thing, *carried])
        things.absent.discard(thing)
        things.move(thing, then.pose)
        agent.held = thing
        for other in leaning:
            self._fall(agent, other)
        self.free = thing

    def _fall(self, agent: SceneAgent, thing: int) -> None:
        """Lets a thing that nobody holds fall from where it is."""
        physics, now = self.loose.state(agent, thing, self.aspect, UNBOUNDED)
        self._rest(thing, physics.drop(now).pose)

    def _contents(self, thing: int) -> list[int]:
        """What lies in or on a thing, and in or on that."""
        found = [thing]
        for one in found:  # Two bowls may be in each other: each is looked into once.
            found += [inner for inner in self.receptacles.contents(one) if inner not in found]
        return found[1:]

    def walk(self, agent: SceneAgent, offset: np.ndarray) -> None:
        """Takes the held thing along a walk; the agent itself is moved by the caller."""
        self._carry(agent, lambda physics, now: physics.walk(now, offset))

    def carry(
        self, agent: SceneAgent, position: np.ndarray, rotation: float, horizon: float, standing: bool, force: bool
    ) -> None:
        """Takes the held thing along to another pose of the agent."""
        self._carry(agent, lambda physics, now: physics.carry(now, rotation, standing, horizon, position, force))

    def _carry(self, agent: SceneAgent, act: Callable[[Physics, PhysicsState], PhysicsState | None]) -> None:
        thing = self._held(agent)
        physics, now = self.loose.state(agent, thing, self.aspect, UNBOUNDED)
        then = act(physics, now)
        if then is None:
            raise ActionFailed(f"{self.things.names[thing]} in the hand is in the way")
        self.things.move(thing, then.pose)
        self.free = thing

    def move_held(self, agent: SceneAgent, offset: np.ndarray, reach: float) -> None:
        length = float(np.linalg.norm(offset))
        if length == 0:
            raise ActionFailed("the hand would not move")
        ahead, right, up = offset / length
        way = np.array([*(ahead * facing_vector(agent.rotation) + right * right_vector(agent.rotation)), up])
        thing = self._held(agent)
        physics, now = self.loose.state(agent, thing, self.aspect, reach)
        then = physics.move_hand(now, way, length)
        if then is None:
            raise ActionFailed(f"{self.things.names[thing]} cannot move there")
        self.things.move(thing, then.pose)
        self.free = thing

    def turn_held(self, agent: SceneAgent, quaternion: np.ndarray) -> None:
        self._carry(agent, lambda physics, now: physics.turn_hand(now, np.asarray(quaternion, float)))

    def throw(self, agent: SceneAgent, newtons: float) -> None:
        """Lets go with a push along the view; with none it just falls."""
        thing = self._held(agent)
        physics, now = self.loose.state(agent, thing, self.aspect, UNBOUNDED)
        _, matrix = agent_camera(agent)
        speed = min(newtons * PUSH_SECONDS / self.things.mass[thing], MAX_THROW)
        then = physics.throw(now, -matrix[:, 2] * speed)
        self._let_go(agent, then.pose)

    def put(self, agent: SceneAgent, receptacle: int) -> None:
        """Puts the held thing down in or on a receptacle: at the nearest place where it stays."""
        thing, things = self._held(agent), self.things
        physics, now = self.loose.state(agent, thing, self.aspect, UNBOUNDED)
        tries = 0
        for pose in self.receptacles.places(receptacle, thing, agent.position):
            if not physics.fits(now, pose):
                continue
            resting = physics.drop(replace(now, pose=pose)).pose
            if self.receptacles.holds(receptacle, thing, resting):
                return self._let_go(agent, resting)
            tries += 1
            if tries == MAX_TRIES:
                break
        raise ActionFailed(f"{things.names[thing]} does not fit into or onto {things.names[receptacle]}")

    def place(self, agent: SceneAgent, thing: int, pose: np.ndarray, settle: bool, force: bool) -> None:
        """Moves a loose thing that nobody holds."""
        things = self.things
        for other in self._contents(thing) if thing not in things.absent else ():
            things.attach(other, thing)
        if not force or settle:
            physics, now = self.loose.state(agent, thing, self.aspect, UNBOUNDED)
            if not force and not physics.fits(now, pose):
                raise ActionFailed(f"{things.names[thing]} would collide there")
            if settle:
                pose = physics.drop(replace(now, pose=pose)).pose
            self.free = thing
        self._rest(thing, pose)

    def _held(self, agent: SceneAgent) -> int:
        if agent.held is None:
            raise ActionFailed("the agent holds nothing")
        return agent.held

    def _let_go(self, agent: SceneAgent, pose: np.ndarray) -> None:
        thing = self._held(agent)
        riders = self.things.riders(thing)
        agent.held, self.free = None, thing
        self._rest(thing, pose)
        if matrix_from_quat(pose[3:])[2, 2] < UPRIGHT:
            for rider in riders:  # It has tipped over, and what was in it falls out.
                self._fall(agent, rider)

    def _rest(self, thing: int, pose: np.ndarray) -> None:
        """Leaves a thing with all that it carries where it rests, on the moving part that it lies in."""
        things = self.things
        things.held -= {thing, *things.riders(thing)}
        things.move(thing, pose, self.receptacles.body_around(pose))
        self.release(thing)

    def release(self, thing: int) -> None:
        """Takes a thing out of a hand, and leaves what it carries where it is."""
        things = self.things
        things.let_go(thing)
        for rider in things.riders(thing):
            things.move(rider, things.pose(rider), things.body_of(thing))
