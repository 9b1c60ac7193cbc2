"""Broad phase, containment and quaternions against the engine."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from scrubjay.errors import PhysicsError
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.broadphase import Broadphase
from scrubjay.sim.compile import TIMESTEP, compile_room
from scrubjay.sim.containment import Containment
from scrubjay.sim.physics import OPENING_SECONDS, Physics, PhysicsState
from scrubjay.sim.physics_pool import PhysicsProcesses
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.quaternion import matrix_from_quat, quat_from_axis_angle, quat_mul
from scrubjay.sim.world import World


@pytest.mark.parametrize("scene", ["FloorPlan7", "FloorPlan207", "FloorPlan407"])
def test_what_is_clear_never_collides(scene):
    """Where the broad phase finds nothing, the engine finds no collision in any orientation."""
    compiled = compile_room(make_room(scene))
    physics, broadphase = Physics(compiled), Broadphase([compiled])
    rng = np.random.default_rng(0)
    west, south, east, north = compiled.room.bounds
    count, tested = 400, 0
    points = rng.uniform([west, south, 0], [east, north, 2.4], (count, 3))
    ends = points + rng.normal(size=(count, 3)) * 0.06
    opened = rng.random((count, len(compiled.openables))) < 0.4
    goal = rng.integers(len(GOALS), size=count)
    clear = broadphase.clear(np.zeros(count, int), opened, goal, points, ends)
    for b in np.flatnonzero(clear):
        quaternion = rng.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        for fraction in (0.0, 0.5, 1.0):
            pose = np.concatenate([points[b] + fraction * (ends[b] - points[b]), quaternion])
            now = PhysicsState(np.zeros(2), 0.0, True, opened[b], GOALS[goal[b]], pose, True)
            assert not physics.collides(physics.load(now), pose)
        tested += 1
    assert tested > 20, "nothing was clear, so nothing was tested"


def state_near(physics: Physics, number: int, rng: np.random.Generator) -> PhysicsState | None:
    """An object held or lying near an openable, with random openables open; None if it does not fit there."""
    compiled = physics.compiled
    thing = compiled.room.things[compiled.openables[number].thing]
    middle = np.array(thing.position) + [0, 0, thing.size[2] / 2]
    west, south, east, north = compiled.room.bounds
    point = middle + rng.uniform(-1, 1, 3) * (max(thing.size) / 2 + 0.4)
    point = np.clip(point, [west + 0.1, south + 0.1, 0.05], [east - 0.1, north - 0.1, compiled.room.height - 0.1])
    quaternion = rng.normal(size=4)
    pose = np.concatenate([point, quaternion / np.linalg.norm(quaternion)])
    opened = rng.random(len(compiled.openables)) < 0.3
    now = PhysicsState(np.zeros(2), 0.0, True, opened, GOALS[rng.integers(len(GOALS))], pose, True)
    if physics.collides(physics.load(now), pose):
        return None
    return now if rng.random() < 0.5 else physics.drop(now)


def pose_without_opening(physics: Physics, now: PhysicsState) -> np.ndarray:
    """The pose of a loose object after the duration of an opening, without one: some still roll a little."""
    goal = physics.load(now)
    mujoco.mj_step(physics.model, physics.data, round(OPENING_SECONDS / TIMESTEP))
    pose = physics._settle(now, goal)
    mujoco.mju_subQuat(turn := np.zeros(3), pose[3:], now.pose[3:])
    return now.pose if np.linalg.norm(pose[:3] - now.pose[:3]) < 0.002 and np.linalg.norm(turn) < 0.02 else pose


@pytest.mark.parametrize("scene", ["FloorPlan7", "FloorPlan207", "FloorPlan307", "FloorPlan407"])
def test_what_an_opening_leaves_alone_the_engine_leaves_alone(scene):
    """Held or loose, opening or closing. An object that touches the moving part is never reported as untouched."""
    compiled = compile_room(make_room(scene))
    physics, broadphase = Physics(compiled), Broadphase([compiled])
    rng = np.random.default_rng(1)
    untouched, rests, touching = 0, 0, 0
    for _ in range(150):
        number = int(rng.integers(len(compiled.openables)))
        now = state_near(physics, number, rng)
        if now is None:
            continue
        is_untouched = broadphase.untouched(
            np.zeros(1, int), np.array([number]), np.array([GOALS.index(now.goal)]), now.pose[None, :3]
        )[0]
        contacts = physics._contacts(physics.load(now), now.pose)
        touches = np.isin(physics.model.geom_bodyid[contacts.geom], compiled.openables[number].bodies).any()
        touching += touches
        assert not (touches and is_untouched)
        if is_untouched:
            then = physics.move_openable(now, number, not now.open[number])
            opened = now.open.copy()
            opened[number] ^= True
            assert then is not None and (then.open == opened).all() and then.held == now.held
            assert (
                then.pose
                == (now.pose if now.held or not physics._can_touch(now, number) else pose_without_opening(physics, now))
            ).all()
            untouched, rests = untouched + 1, rests + (then.pose == now.pose).all()
    assert untouched > 40 and rests > 0.9 * untouched
    assert touching > 0 or scene != "FloorPlan7"


def test_a_world_asks_the_engine_only_where_something_is_touched(chest):
    """A tomato lies on the floor, far from the drawer, and then in it."""
    physics = PhysicsProcesses(1)
    with World([chest], physics=physics) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.25, 0.0, True))
        world.state.goal[:], world.state.pose[0, :3] = GOALS.index("Tomato"), (-1.5, -1.5, 0.045)
        physics.close()
        before = world.state.copy()
        assert world.open(np.array([0]))[0] and world.state.open[0].tolist() == [True, False]
        assert world.close_near(np.ones(1, bool))[0] and not world.state.open.any()
        assert all((getattr(before, name) == getattr(world.state, name)).all() for name in vars(before))
        world.state.held[:] = True
        assert world.open(np.array([0]))[0] and world.close_near(np.ones(1, bool))[0]
        world.set_agent_pose(0, AgentPose(-1.3, 1.2, 0.0, True))
        world.state.open[0] = True
        assert world.close_near(np.ones(1, bool))[0]
        assert world.state.open[0].tolist() == [False, True], "the cabinet is out of reach"
        world.state.held[:], world.state.pose[0, :3] = False, (0.0, 1.7, 0.68)
        with pytest.raises(PhysicsError):
            world.open(np.array([0]))
        world.state.open[0] = True
        with pytest.raises(PhysicsError):
            world.close_near(np.ones(1, bool))


def test_several_things_close_at_once_as_one_after_another(chest):
    """The cabinet's door does not touch the tomato in the drawer; the drawer carries it along."""
    physics = Physics(chest)
    with World([chest]) as world:
        world.set_agent_pose(0, AgentPose(0.3, 0.25, 0.0, True))
        for number in (0, 1):
            assert world.open(np.array([number]))[0]
        over = np.array([0.0, 1.25, 0.95, 1, 0, 0, 0])
        now = PhysicsState(world.state.position[0], 0.0, True, np.ones(2, bool), "Tomato", over, True)
        now = physics.drop(now)
        world.state.goal[:], world.state.pose[:] = GOALS.index("Tomato"), now.pose
        then = physics.move_openable(physics.move_openable(now, 0, False), 1, False)
        assert world.close_near(np.ones(1, bool))[0]
        assert not world.state.open.any() and (world.state.pose[0] == then.pose).all()
        assert then.pose[1] > now.pose[1] + 0.25


def test_what_contains_an_object_is_what_the_engine_says(chest, empty):
    """For points in and near volumes, with things open and closed, in rooms with many volumes, few and none."""
    rooms = [compile_room(make_room("FloorPlan7")), empty, chest, compile_room(make_room("FloorPlan307"))]
    containment, rng = Containment(rooms), np.random.default_rng(4)
    count, max_openables = 300, max(len(room.openables) for room in rooms)
    for number, room in enumerate(rooms):
        physics, opened = Physics(room), rng.random((count, max_openables)) < 0.5
        west, south, east, north = room.room.bounds
        points = rng.uniform([west, south, 0], [east, north, 2], (count, 3))
        if len(room.volumes.thing):
            # Half of the points lie in a closed volume, or just outside it.
            which = rng.integers(len(room.volumes.thing), size=count // 2)
            local = room.volumes.half[which] * rng.uniform(-1.3, 1.3, (count // 2, 3))
            rotated = np.einsum("nij,nj->ni", room.volumes.rotation[which], local)
            points[: count // 2] = room.volumes.position[which] + rotated
        things = containment.containing(np.full(count, number), opened, points)
        pose = np.concatenate([points, np.tile([1.0, 0, 0, 0], (count, 1))], 1)
        now = PhysicsState(np.zeros(2), 0.0, True, np.zeros(0, bool), "Cup", pose[0], False)
        expected = [
            physics.contains(replace(now, open=opened[b, : len(room.openables)], pose=pose[b])) for b in range(count)
        ]
        assert things.tolist() == expected
        assert room is empty or 20 < (things >= 0).sum() < count


def test_quaternions_are_the_engines():
    rng = np.random.default_rng(1)
    axis = rng.normal(size=(20, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    degrees = rng.uniform(-180, 180, 20)
    first, second = quat_from_axis_angle(axis, degrees), quat_from_axis_angle(axis[::-1], degrees)
    products, matrices = quat_mul(first, second), matrix_from_quat(first)
    for b in range(20):
        expected, product, matrix = np.zeros(4), np.zeros(4), np.zeros(9)
        mujoco.mju_axisAngle2Quat(expected, axis[b], np.radians(degrees[b]))
        mujoco.mju_mulQuat(product, first[b], second[b])
        mujoco.mju_quat2Mat(matrix, first[b])
        assert first[b] == pytest.approx(expected)
        assert products[b] == pytest.approx(product)
        assert matrices[b].ravel() == pytest.approx(matrix)
