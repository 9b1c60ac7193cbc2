"""Physics of one room: a hand holds, pushes, turns or drops the goal object; openables open and close.

Actions are pure functions from one state to the next. Each first sets the whole engine state, so its result depends
only on its arguments, not on the thread or batch it runs in. A failed action returns None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import SWEEP_SAMPLES, axis_rotation
from scrubjay.sim.compile import TIMESTEP, CompiledRoom, Goal
from scrubjay.sim.pose import FIELD_OF_VIEW, PITCH, REACH, cameras, in_view, reach
from scrubjay.sim.quaternion import quat_mul

HAND_AHEAD, HAND_BELOW = 0.38, 0.16
"""Meters from the camera to the hand's default position."""
HAND_STEP = 0.1
"""Meters."""
HAND_TURN = 30.0
"""Degrees."""
SWEEP_STEP = 0.01
"""Meters between collision tests along a hand movement."""
WALK_STEP = 0.05
"""Meters between collision tests along a walk."""
PUSH_ACCELERATION = 10.0
"""m/s2; the force is scaled by the object's mass."""
MAX_PUSH_SPEED = 1.0
"""m/s."""
MAX_SECONDS = 4.0
"""Simulated time limit of a push, and of settling."""
MAX_DRIFT = 0.1
"""Sideways drift that ends a push, as a fraction of its length."""
MAX_PENETRATION = 0.001
"""Meters; deeper contacts are collisions."""
MAX_CORRECTION = 0.03
"""Meters by which an overlapping object is moved out at most."""
MIN_MOVE, MIN_TURN = 0.001, 0.001
"""Meters and degrees; a hand movement below both has failed."""
MAX_FALL_SPEED = 8.0
"""m/s; a fall from the ceiling is slower."""
OPENING_SECONDS = 0.8
WATCH_SECONDS, MAX_CREEP = 2.0, 0.002
"""An object at rest moves less than so many meters in this time."""
PUSH_CHUNK = 5
"""Engine steps between two updates of a push's force."""
STALL_STEPS = 25
"""Engine steps (0.1 s) without progress that end a push, and without motion that end settling."""


@dataclass(frozen=True)
class PhysicsState:
    """All that one room's physics depends on."""

    position: np.ndarray
    """The agent's, (2,)."""
    rotation: float
    standing: bool
    open: np.ndarray
    """Per openable, (n,): bool, or the fraction by which it is open."""
    goal: str
    """The goal object's type, or another free body's name; empty if the room has none."""
    pose: np.ndarray
    """The goal object's center and quaternion, (7,)."""
    held: bool
    pitch: float = PITCH
    """Degrees by which the camera looks down."""
    field_of_view: float = FIELD_OF_VIEW
    aspect: float = 1.0
    """The view's width over its height."""
    reach: float = REACH
    """Meters; the hand of an agent with infinite reach also leaves the view."""

    @property
    def camera(self) -> tuple[np.ndarray, np.ndarray]:
        return cameras(self.position, np.asarray(self.rotation), np.asarray(self.standing), self.pitch)


def within_hands_reach(now: PhysicsState, camera: tuple[np.ndarray, np.ndarray], points: np.ndarray) -> np.ndarray:
    """Whether points (..., 3) are within reach and in the camera's view."""
    near = reach(now.position, points) <= now.reach
    return near & (in_view(*camera, points, now.field_of_view, now.aspect) | (now.reach == np.inf))


class Physics:
    """One room's engine. Not thread-safe."""

    def __init__(self, compiled: CompiledRoom) -> None:
        self.compiled = compiled
        self.model = compiled.model
        self.data = mujoco.MjData(compiled.model)

    def load(self, now: PhysicsState) -> Goal | None:
        """Sets the engine to a state, at rest; returns the goal object's body, if there is one."""
        data = self.data
        mujoco.mj_resetData(self.model, data)
        data.qpos[:] = self.compiled.qpos(now.open[None], np.array([-1]), now.pose[None])[0]
        for goal in self.compiled.goals.values():
            self._set_lift(goal, True)
        if not now.goal:
            return None
        goal = self.compiled.goals[now.goal]
        self._pose(goal)[:] = now.pose
        self._set_lift(goal, now.held)
        return goal

    def hold(self, now: PhysicsState) -> PhysicsState | None:
        """Puts the goal object into the hand: at the default position, or closer to the body if that is occupied."""
        goal = self.load(now)
        assert goal is not None
        eye, _ = now.camera
        facing, up = np.array([*facing_vector(now.rotation), 0.0]), np.array([0.0, 0, 1])
        if now.pitch != PITCH:  # The hand goes up and down with the camera.
            tilt = axis_rotation(np.cross(facing, up), np.radians(PITCH - now.pitch))
            facing, up = tilt @ facing, tilt @ up
        quat = np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, np.array([0.0, 0, 1]), -np.radians(now.rotation))
        for below in (HAND_BELOW, 0.05, 0.3, 0.45):
            for out in np.arange(HAND_AHEAD, 0.01, -0.04):
                pose = np.concatenate([eye + facing * out - up * below, quat])
                if not self.collides(goal, pose):
                    return replace(now, pose=pose, held=True)
        return None

    def carry(
        self,
        now: PhysicsState,
        rotation: float,
        standing: bool,
        pitch: float | None = None,
        position: np.ndarray | None = None,
        force: bool = False,
    ) -> PhysicsState | None:
        """Turns, stands up or crouches with the held object, or takes it elsewhere; None if it would collide there.

        With `force`, it may.
        """
        goal = self.load(now)
        assert goal is not None
        then = replace(now, rotation=rotation, standing=standing, pitch=now.pitch if pitch is None else pitch,
                       position=now.position if position is None else position)  # fmt: skip
        (eye, _), (new_eye, _) = now.camera, then.camera
        up = np.array([0.0, 0, 1])
        turn = axis_rotation(up, -np.radians(then.rotation - now.rotation))
        quat = np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, up, -np.radians(then.rotation - now.rotation))
        mujoco.mju_mulQuat(turned := np.zeros(4), quat, now.pose[3:])
        offset = turn @ (now.pose[:3] - eye)
        if then.pitch != now.pitch:
            right, angle = np.array([*right_vector(then.rotation), 0.0]), np.radians(now.pitch - then.pitch)
            offset = axis_rotation(right, angle) @ offset
            mujoco.mju_axisAngle2Quat(quat, right, angle)
            mujoco.mju_mulQuat(turned, quat, turned.copy())
        pose = np.concatenate([new_eye + offset, turned])
        return None if not force and self.collides(goal, pose) else replace(then, pose=pose)

    def walk(self, now: PhysicsState, offset: np.ndarray) -> PhysicsState | None:
        """Walks along (2,) with the held object; None if that would collide on the way."""
        goal = self.load(now)
        assert goal is not None
        pose = now.pose.copy()
        for share in np.linspace(0, 1, max(int(np.ceil(np.linalg.norm(offset) / WALK_STEP)), 1) + 1)[1:]:
            pose[:2] = now.pose[:2] + share * offset
            if self.collides(goal, pose):
                return None
        return replace(now, position=now.position + offset, pose=pose)

    def move_hand(self, now: PhysicsState, direction: np.ndarray, length: float = HAND_STEP) -> PhysicsState | None:
        """Moves the held object along a unit vector: swept through free space, then pushed on from a contact."""
        goal = self.load(now)
        assert goal is not None
        pose = now.pose.copy()
        steps = np.minimum(np.arange(1, int(np.ceil(length / SWEEP_STEP - 1e-9)) + 1) * SWEEP_STEP, length)
        points = now.pose[:3] + steps[:, None] * direction
        for point, reachable in zip(points, within_hands_reach(now, now.camera, points), strict=True):
            next_pose = np.concatenate([point, pose[3:]])
            if not reachable:
                break
            if self.collides(goal, next_pose):
                return self._finish_move(now, goal, self._push(now, goal, pose, direction, length))
            pose = next_pose
        return self._finish_move(now, goal, pose)

    def rotate_hand(self, now: PhysicsState, axis: np.ndarray, degrees: float) -> PhysicsState | None:
        """Rotates the held object about an axis through its center; None if it would collide."""
        goal = self.load(now)
        assert goal is not None
        quat, turned = np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, axis, np.radians(degrees))
        mujoco.mju_mulQuat(turned, quat, now.pose[3:])
        mujoco.mju_normalize4(turned)
        pose = np.concatenate([now.pose[:3], turned])
        return None if self.collides(goal, pose) else replace(now, pose=pose)

    def turn_hand(self, now: PhysicsState, turn: np.ndarray) -> PhysicsState | None:
        """As `rotate_hand`, by a quaternion (4,), to the very numbers that a world has in free space."""
        goal = self.load(now)
        assert goal is not None
        pose = np.concatenate([now.pose[:3], quat_mul(turn, now.pose[3:])])
        return None if self.collides(goal, pose) else replace(now, pose=pose)

    def drop(self, now: PhysicsState) -> PhysicsState:
        """Releases the held object and simulates until it rests."""
        return self.throw(now, np.zeros(3))

    def throw(self, now: PhysicsState, velocity: np.ndarray) -> PhysicsState:
        """Releases the held object with a velocity (3,) and simulates until it rests."""
        goal = self.load(now)
        assert goal is not None
        self._set_lift(goal, False)
        self._velocity(goal)[:3] = velocity
        return replace(now, pose=self._settle(now, goal), held=False)

    def move_openable(self, now: PhysicsState, number: int, openness: float) -> PhysicsState | None:
        """Opens or closes an openable, or moves it to a fraction of its travel.

        A held object can block it; a loose one rides along or is pushed aside.
        """
        openable = self.compiled.openables[number]
        after, start, change = now.open.copy(), float(now.open[number]), float(openness) - float(now.open[number])
        after[number] = openness
        then = replace(now, open=after)
        if not now.goal or not self._can_touch(now, number):
            return then
        goal = self.load(now)
        assert goal is not None
        if now.held:
            for k in range(1, SWEEP_SAMPLES + 1):
                self.data.qpos[openable.qpos] = openable.travel * (start + change * k / SWEEP_SAMPLES)
                if self.collides(goal, now.pose):
                    return None
            return then
        return self._move_with_object(now, then, goal, number, change)

    def close(self, now: PhysicsState, openables: np.ndarray) -> PhysicsState | None:
        """Closes the given openables (n,) bool, skipping those that are blocked; None if none can close."""
        start = now
        for number in np.flatnonzero(openables):
            now = self.move_openable(now, int(number), False) or now
        return now if now is not start else None

    def fits(self, now: PhysicsState, pose: np.ndarray) -> bool:
        """Would the object collide with nothing in a pose?"""
        goal = self.load(now)
        assert goal is not None
        return not self.collides(goal, pose)

    def contains(self, now: PhysicsState) -> int:
        """The id of the thing with the smallest volume around the goal object's center, -1 for none."""
        volumes = self.compiled.volumes
        if not now.goal or now.held or not len(volumes.thing):
            return -1
        self.load(now)
        mujoco.mj_kinematics(self.model, self.data)
        rotation, origin = self.data.xmat[volumes.body].reshape(-1, 3, 3), self.data.xpos[volumes.body]
        in_body = np.einsum("nji,nj->ni", rotation, now.pose[:3] - origin)
        local = np.einsum("nji,nj->ni", volumes.rotation, in_body - volumes.position)
        inside = np.flatnonzero((np.abs(local) <= volumes.half).all(1))
        smallest = inside[np.argsort(volumes.half[inside].prod(1), kind="stable")]
        return int(volumes.thing[smallest[0]]) if len(smallest) else -1

    def _set_lift(self, goal: Goal, held: bool) -> None:
        """Applies the hand's upward force, which cancels the weight of a held object."""
        lift = -goal.mass * self.model.opt.gravity if held else np.zeros(3)
        self.data.xfrc_applied[goal.body, :3] = lift

    def _pose(self, goal: Goal) -> np.ndarray:
        return self.data.qpos[goal.qpos : goal.qpos + 7]

    def _velocity(self, goal: Goal) -> np.ndarray:
        """Linear and angular velocity, (6,); a writable view."""
        return self.data.qvel[goal.dof : goal.dof + 6]

    def _contacts(self, goal: Goal, pose: np.ndarray):
        """The contacts with the object moved to a pose."""
        self._pose(goal)[:] = pose
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        return self.data.contact

    def collides(self, goal: Goal, pose: np.ndarray) -> bool:
        """Would the object collide in a pose, in the situation loaded last?"""
        contacts = self._contacts(goal, pose)
        return bool(len(contacts.dist)) and contacts.dist.min() < -MAX_PENETRATION

    def _push(
        self, now: PhysicsState, goal: Goal, pose: np.ndarray, direction: np.ndarray, length: float
    ) -> np.ndarray:
        """Pushes the object on from the end of its sweep, until one of the paper's end conditions or a stall."""
        data, start, camera = self.data, now.pose[:3], now.camera
        self._pose(goal)[:] = pose
        velocity = self._velocity(goal)
        velocity[:] = 0
        last, best, stalled = pose.copy(), float(direction @ (pose[:3] - start)), 0
        for _ in range(int(MAX_SECONDS / TIMESTEP / PUSH_CHUNK)):
            speed = direction @ velocity[:3]
            push = PUSH_ACCELERATION * goal.mass * direction if speed < MAX_PUSH_SPEED else np.zeros(3)
            data.xfrc_applied[goal.body, :3] = push - goal.mass * self.model.opt.gravity
            mujoco.mj_step(self.model, data, PUSH_CHUNK)
            velocity[3:] *= 0.7
            forward = direction * (direction @ velocity[:3])
            velocity[:3] = forward + 0.7 * (velocity[:3] - forward)
            here = self._pose(goal)
            offset = here[:3] - start
            along = float(direction @ offset)
            if (
                not within_hands_reach(now, camera, here[:3])
                or np.linalg.norm(offset - along * direction) > MAX_DRIFT * length
            ):
                break
            last = here.copy()
            if along >= length:
                break
            stalled = 0 if along > best + MIN_MOVE else stalled + PUSH_CHUNK
            best = max(best, along)
            if stalled >= STALL_STEPS:
                break
        velocity[:] = 0
        return last

    def _finish_move(self, now: PhysicsState, goal: Goal, pose: np.ndarray) -> PhysicsState | None:
        """The state after a hand movement; None if the object did not move or overlaps something."""
        free = self._resolve_penetration(goal, pose)
        if free is None:
            return None
        mujoco.mju_subQuat(turn := np.zeros(3), free[3:], now.pose[3:])
        if np.linalg.norm(free[:3] - now.pose[:3]) < MIN_MOVE and np.degrees(np.linalg.norm(turn)) < MIN_TURN:
            return None
        return replace(now, pose=free)

    def _resolve_penetration(self, goal: Goal, pose: np.ndarray) -> np.ndarray | None:
        """Moves an overlapping object out along its contact normals, by up to MAX_CORRECTION; None if stuck."""
        pose = pose.copy()
        start = pose[:3].copy()
        for _ in range(8):
            contacts = self._contacts(goal, pose)
            if not len(contacts.dist) or contacts.dist.min() >= -MAX_PENETRATION:
                return pose
            deepest = int(contacts.dist.argmin())
            normal = contacts.frame[deepest][:3].copy()
            if contacts.geom[deepest][0] in goal.geoms:
                normal = -normal
            pose[:3] += normal * (-contacts.dist[deepest] + MAX_PENETRATION / 2)
            if np.linalg.norm(pose[:3] - start) > MAX_CORRECTION:
                return None
        return None

    def rests(self, now: PhysicsState) -> bool:
        """Does a dropped object stay where it is for WATCH_SECONDS?

        Settling ends after 0.1 s without motion; an object that creeps may fall much later.
        """
        goal = self.load(now)
        assert goal is not None and not now.held
        mujoco.mj_step(self.model, self.data, round(WATCH_SECONDS / TIMESTEP))
        return bool(np.linalg.norm(self._pose(goal)[:3] - now.pose[:3]) < MAX_CREEP)

    def _settle(self, now: PhysicsState, goal: Goal) -> np.ndarray:
        """Simulates until the object has not moved for 0.1 s, or for MAX_SECONDS."""
        before = self._pose(goal).copy()
        for _ in range(int(MAX_SECONDS / TIMESTEP / STALL_STEPS)):
            mujoco.mj_step(self.model, self.data, STALL_STEPS)
            after, speed = self._pose(goal).copy(), np.abs(self._velocity(goal))
            if not self._in_room(after) or speed[:3].max() > MAX_FALL_SPEED:
                # A contact launched it faster than any fall: undo these steps and let it fall from rest.
                self.load(replace(now, pose=before, held=False))
                continue
            mujoco.mju_subQuat(turn := np.zeros(3), after[3:], before[3:])
            still = np.linalg.norm(after[:3] - before[:3]) < 0.0005 and np.linalg.norm(turn) < 0.005
            before = after
            if still and speed[:3].max() < 0.01 and speed[3:].max() < 0.1:
                break
        return before

    def _in_room(self, pose: np.ndarray) -> bool:
        west, south, east, north = self.compiled.room.bounds
        x, y, z = pose[:3]
        return bool(west < x < east and south < y < north and 0 < z < self.compiled.room.height)

    def _can_touch(self, now: PhysicsState, number: int) -> bool:
        """Whether an openable is near enough that its moving part could touch or carry the goal object."""
        thing = self.compiled.room.things[self.compiled.openables[number].thing]
        radius = np.linalg.norm(thing.size) / 2 + max(thing.size[:2]) + 0.3
        middle = np.asarray(thing.position) + [0, 0, thing.size[2] / 2]
        return bool(np.linalg.norm(now.pose[:3] - middle) < radius)

    def _move_with_object(
        self, now: PhysicsState, then: PhysicsState, goal: Goal, number: int, change: float
    ) -> PhysicsState | None:
        """Simulates the part at constant speed together with the loose object; None if that would be crushed."""
        openable = self.compiled.openables[number]
        joints = [self.model.jnt_dofadr[self.model.body_jntadr[body]] for body in openable.bodies]
        self.data.qvel[joints] = openable.travel * change / OPENING_SECONDS
        mujoco.mj_step(self.model, self.data, round(OPENING_SECONDS / TIMESTEP))
        self.data.qpos[openable.qpos] = openable.travel * float(then.open[number])
        self.data.qvel[joints] = 0
        pose = self._settle(then, goal)
        mujoco.mju_subQuat(turn := np.zeros(3), pose[3:], now.pose[3:])
        if np.linalg.norm(pose[:3] - now.pose[:3]) < 0.002 and np.linalg.norm(turn) < 0.02:
            pose = now.pose
        self.load(then)
        contacts = self._contacts(goal, pose)
        crushed = len(contacts.dist) and contacts.dist.min() < -0.01
        return None if crushed or not self._in_room(pose) else replace(then, pose=pose)
