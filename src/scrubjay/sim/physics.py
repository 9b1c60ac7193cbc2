"""What happens when a hand holds, pushes, turns or drops the goal object, and when things open and close.

Each function takes one room's situation and returns the next: it sets the whole engine state first, so a result depends
on nothing but its arguments, whatever thread or batch it runs in, and a failed action changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import SWEEP, axis_rotation
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import TIMESTEP, CompiledRoom, Goal
from scrubjay.sim.pose import REACH, cameras, in_view, reach

HAND_AHEAD, HAND_BELOW = 0.38, 0.16
"""The hand's default position, from the camera's."""
HAND_STEP = 0.1
HAND_TURN = 30.0
SWEPT_STEP = 0.01
MAX_SPEED = 1.0
PUSH = 10.0
"""Acceleration of a push, m/s2: the force is scaled with the object's mass."""
MAX_SECONDS = 4.0
DRIFT = 0.1
"""How far a pushed object may slide sideways, as a share of the way."""
TOUCHING = 0.001
"""Overlaps up to this are contact, not collision."""
PUSH_OUT = 0.03
MOVED, TURNED = 0.001, 0.001
"""Metres and degrees under which a hand movement has failed."""
FASTEST = 8.0
"""m/s; a fall from the ceiling is slower."""
OPENING_SECONDS = 0.8
CHUNK = 5
STALL = 25
"""Engine steps (0.1 s) in which a push must get somewhere, and in which a settled object must not."""


@dataclass(frozen=True)
class Situation:
    """What one room's physics depends on."""

    position: np.ndarray
    """Of the agent, (2,)."""
    rotation: float
    standing: bool
    open: np.ndarray
    """Which openables are, (n,) bool."""
    goal: str
    """The goal object's type; empty when there is none in the room."""
    pose: np.ndarray
    """The goal object's center and quaternion, (7,)."""
    held: bool

    @property
    def camera(self) -> tuple[np.ndarray, np.ndarray]:
        return cameras(self.position, np.asarray(self.rotation), np.asarray(self.standing))


def within_hands_reach(now: Situation, camera: tuple[np.ndarray, np.ndarray], points: np.ndarray) -> np.ndarray:
    """Which points (..., 3) are at arm's length and in the camera's view."""
    return (reach(now.position, points) <= REACH) & in_view(*camera, points)


class Physics:
    """One room's engine. Not for two threads at once."""

    def __init__(self, compiled: CompiledRoom) -> None:
        self.compiled = compiled
        self.model = compiled.model
        self.data = mujoco.MjData(compiled.model)

    def load(self, now: Situation) -> Goal | None:
        """Puts the engine into a situation, at rest."""
        data = self.data
        mujoco.mj_resetData(self.model, data)
        number = GOALS.index(now.goal) if now.goal else -1
        data.qpos[:] = self.compiled.qpos(now.open[None], np.array([number]), now.pose[None])[0]
        for goal in self.compiled.goals.values():
            self._carry(goal, True)
        if not now.goal:
            return None
        goal = self.compiled.goals[now.goal]
        self._carry(goal, now.held)
        return goal

    def hold(self, now: Situation) -> Situation | None:
        """Takes the goal object into the hand, at its default position or, where that is taken, closer to the body."""
        goal = self.load(now)
        assert goal is not None
        eye, _ = now.camera
        facing = facing_vector(now.rotation)
        quat = np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, np.array([0.0, 0, 1]), -np.radians(now.rotation))
        for below in (HAND_BELOW, 0.05, 0.3, 0.45):
            for out in np.arange(HAND_AHEAD, 0.01, -0.04):
                pose = np.concatenate([eye[:2] + facing * out, [eye[2] - below], quat])
                if not self._collides(goal, pose):
                    return replace(now, pose=pose, held=True)
        return None

    def carry(self, now: Situation, rotation: float, standing: bool) -> Situation | None:
        """Turns, stands up or crouches with what is in the hand; None if it would collide."""
        goal = self.load(now)
        assert goal is not None
        then = replace(now, rotation=rotation, standing=standing)
        (eye, _), (new_eye, _) = now.camera, then.camera
        turn = axis_rotation(np.array([0.0, 0, 1]), -np.radians(then.rotation - now.rotation))
        quat = np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, np.array([0.0, 0, 1]), -np.radians(then.rotation - now.rotation))
        mujoco.mju_mulQuat(turned := np.zeros(4), quat, now.pose[3:])
        pose = np.concatenate([new_eye + turn @ (now.pose[:3] - eye), turned])
        return None if self._collides(goal, pose) else replace(then, pose=pose)

    def move_hand(self, now: Situation, direction: np.ndarray) -> Situation | None:
        """Moves the held object 0.1 m along a unit vector: swept while the way is free, pushed where it is not."""
        goal = self.load(now)
        assert goal is not None
        pose = now.pose.copy()
        points = now.pose[:3] + np.arange(1, round(HAND_STEP / SWEPT_STEP) + 1)[:, None] * SWEPT_STEP * direction
        for point, within in zip(points, within_hands_reach(now, now.camera, points), strict=True):
            onward = np.concatenate([point, pose[3:]])
            if not within:
                break
            if self._collides(goal, onward):
                return self._moved(now, goal, self._push(now, goal, pose, direction))
            pose = onward
        return self._moved(now, goal, pose)

    def rotate_hand(self, now: Situation, axis: np.ndarray, degrees: float) -> Situation | None:
        """Turns the held object about an axis through its center; None if it would collide."""
        goal = self.load(now)
        assert goal is not None
        quat, turned = np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, axis, np.radians(degrees))
        mujoco.mju_mulQuat(turned, quat, now.pose[3:])
        mujoco.mju_normalize4(turned)
        pose = np.concatenate([now.pose[:3], turned])
        return None if self._collides(goal, pose) else replace(now, pose=pose)

    def drop(self, now: Situation) -> Situation:
        """Lets go, and waits until the object rests."""
        goal = self.load(now)
        assert goal is not None
        self._carry(goal, False)
        return replace(now, pose=self._settle(now, goal), held=False)

    def swing(self, now: Situation, number: int, to_open: bool) -> Situation | None:
        """Opens or closes one thing. A held object in the way blocks it, a loose one rides along or is pushed aside."""
        openable = self.compiled.openables[number]
        after = now.open.copy()
        after[number] = to_open
        then = replace(now, open=after)
        if not now.goal or not self._near(now, number):
            return then
        goal = self.load(now)
        assert goal is not None
        if now.held:
            for k in range(1, SWEEP + 1):
                share = k / SWEEP if to_open else 1 - k / SWEEP
                self.data.qpos[openable.qpos] = openable.travel * share
                if self._collides(goal, now.pose):
                    return None
            return then
        return self._swing_with(now, then, goal, number, to_open)

    def close(self, now: Situation, some: np.ndarray) -> Situation | None:
        """Closes those of some openables (n,) bool that can be; None if none can."""
        start = now
        for number in np.flatnonzero(some):
            now = self.swing(now, int(number), False) or now
        return now if now is not start else None

    def contains(self, now: Situation) -> int:
        """The id of the thing that contains the goal object's center; -1 if none does."""
        volumes = self.compiled.volumes
        if not now.goal or now.held or not len(volumes.thing):
            return -1
        self.load(now)
        mujoco.mj_kinematics(self.model, self.data)
        turn, at = self.data.xmat[volumes.body].reshape(-1, 3, 3), self.data.xpos[volumes.body]
        in_body = np.einsum("nji,nj->ni", turn, now.pose[:3] - at)
        local = np.einsum("nji,nj->ni", volumes.rotation, in_body - volumes.position)
        inside = np.flatnonzero((np.abs(local) <= volumes.half).all(1))
        smallest = inside[np.argsort(volumes.half[inside].prod(1), kind="stable")]
        return int(volumes.thing[smallest[0]]) if len(smallest) else -1

    def _carry(self, goal: Goal, held: bool) -> None:
        """A hand's upward force that cancels the weight, or none."""
        lift = -goal.mass * self.model.opt.gravity if held else np.zeros(3)
        self.data.xfrc_applied[goal.body, :3] = lift

    def _pose(self, goal: Goal) -> np.ndarray:
        return self.data.qpos[goal.qpos : goal.qpos + 7]

    def _velocity(self, goal: Goal) -> np.ndarray:
        """Linear and angular velocity, (6,); a view to be written to."""
        return self.data.qvel[goal.dof : goal.dof + 6]

    def _contacts(self, goal: Goal, pose: np.ndarray):
        """The contacts that the object would have in a pose."""
        self._pose(goal)[:] = pose
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        return self.data.contact

    def _collides(self, goal: Goal, pose: np.ndarray) -> bool:
        contacts = self._contacts(goal, pose)
        return bool(len(contacts.dist)) and contacts.dist.min() < -TOUCHING

    def _push(self, now: Situation, goal: Goal, pose: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Pushes the object on from where its sweep ended, until one of the paper's ends or a stall."""
        data, start, camera = self.data, now.pose[:3], now.camera
        self._pose(goal)[:] = pose
        velocity = self._velocity(goal)
        velocity[:] = 0
        last, best, since = pose.copy(), float(direction @ (pose[:3] - start)), 0
        for _ in range(int(MAX_SECONDS / TIMESTEP / CHUNK)):
            speed = direction @ velocity[:3]
            push = PUSH * goal.mass * direction if speed < MAX_SPEED else np.zeros(3)
            data.xfrc_applied[goal.body, :3] = push - goal.mass * self.model.opt.gravity
            mujoco.mj_step(self.model, data, CHUNK)
            velocity[3:] *= 0.7
            forward = direction * (direction @ velocity[:3])
            velocity[:3] = forward + 0.7 * (velocity[:3] - forward)
            here = self._pose(goal)
            way = here[:3] - start
            along = float(direction @ way)
            if (
                not within_hands_reach(now, camera, here[:3])
                or np.linalg.norm(way - along * direction) > DRIFT * HAND_STEP
            ):
                break
            last = here.copy()
            if along >= HAND_STEP:
                break
            since = 0 if along > best + MOVED else since + CHUNK
            best = max(best, along)
            if since >= STALL:
                break
        velocity[:] = 0
        return last

    def _moved(self, now: Situation, goal: Goal, pose: np.ndarray) -> Situation | None:
        """The situation after a hand movement, or None if nothing moved or the object is stuck in something."""
        free = self._pushed_out(goal, pose)
        if free is None:
            return None
        mujoco.mju_subQuat(turn := np.zeros(3), free[3:], now.pose[3:])
        if np.linalg.norm(free[:3] - now.pose[:3]) < MOVED and np.degrees(np.linalg.norm(turn)) < TURNED:
            return None
        return replace(now, pose=free)

    def _pushed_out(self, goal: Goal, pose: np.ndarray) -> np.ndarray | None:
        """Moves an overlapping object out along its contacts, by a few centimeters at most."""
        pose = pose.copy()
        start = pose[:3].copy()
        for _ in range(8):
            contacts = self._contacts(goal, pose)
            if not len(contacts.dist) or contacts.dist.min() >= -TOUCHING:
                return pose
            deepest = int(contacts.dist.argmin())
            away = contacts.frame[deepest][:3].copy()
            if contacts.geom[deepest][0] in goal.geoms:
                away = -away
            pose[:3] += away * (-contacts.dist[deepest] + TOUCHING / 2)
            if np.linalg.norm(pose[:3] - start) > PUSH_OUT:
                return None
        return None

    def _settle(self, now: Situation, goal: Goal) -> np.ndarray:
        """Lets the engine run until the object has not moved for 0.1 s, or the time is up."""
        before = self._pose(goal).copy()
        for _ in range(int(MAX_SECONDS / TIMESTEP / STALL)):
            mujoco.mj_step(self.model, self.data, STALL)
            after, speed = self._pose(goal).copy(), np.abs(self._velocity(goal))
            if not self._in_room(after) or speed[:3].max() > FASTEST:
                # A contact threw it faster than any fall: take the throw back, and let it fall from there.
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

    def _near(self, now: Situation, number: int) -> bool:
        """Could an opening or closing part touch the goal object, or carry it?"""
        thing = self.compiled.room.things[self.compiled.openables[number].thing]
        radius = np.linalg.norm(thing.size) / 2 + max(thing.size[:2]) + 0.3
        middle = np.asarray(thing.position) + [0, 0, thing.size[2] / 2]
        return bool(np.linalg.norm(now.pose[:3] - middle) < radius)

    def _swing_with(self, now: Situation, then: Situation, goal: Goal, number: int, to_open: bool) -> Situation | None:
        """Moves the part at constant speed with the loose object in play; None if it would be crushed."""
        openable = self.compiled.openables[number]
        joints = [self.model.jnt_dofadr[self.model.body_jntadr[body]] for body in openable.bodies]
        self.data.qvel[joints] = openable.travel * (1 if to_open else -1) / OPENING_SECONDS
        mujoco.mj_step(self.model, self.data, round(OPENING_SECONDS / TIMESTEP))
        self.data.qpos[openable.qpos] = openable.travel * to_open
        self.data.qvel[joints] = 0
        pose = self._settle(then, goal)
        mujoco.mju_subQuat(turn := np.zeros(3), pose[3:], now.pose[3:])
        if np.linalg.norm(pose[:3] - now.pose[:3]) < 0.002 and np.linalg.norm(turn) < 0.02:
            pose = now.pose
        self.load(then)
        contacts = self._contacts(goal, pose)
        crushed = len(contacts.dist) and contacts.dist.min() < -0.01
        return None if crushed or not self._in_room(pose) else replace(then, pose=pose)
