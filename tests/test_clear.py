"""Clear space and the numbers behind it, against the engine and against slow, obvious code."""

import mujoco
import numpy as np
import pytest

from scrubjay.world.clear import Clearings
from scrubjay.world.generate import make_room
from scrubjay.world.mjcf import compile_room
from scrubjay.world.physics import Physics, Situation
from scrubjay.world.room import GOALS
from scrubjay.world.turns import about, matrices, multiplied


@pytest.mark.parametrize("scene", ["FloorPlan7", "FloorPlan207", "FloorPlan407"])
def test_what_is_clear_never_collides(scene):
    """Wherever the arithmetic says that there is nothing, the engine finds nothing, in any orientation."""
    compiled = compile_room(make_room(scene))
    physics, clearings = Physics(compiled), Clearings([compiled])
    rng = np.random.default_rng(0)
    west, south, east, north = compiled.room.bounds
    count, found = 400, 0
    points = rng.uniform([west, south, 0], [east, north, 2.4], (count, 3))
    ends = points + rng.normal(size=(count, 3)) * 0.06
    opened = rng.random((count, len(compiled.openables))) < 0.4
    goal = rng.integers(len(GOALS), size=count)
    clear = clearings.clear(np.zeros(count, int), opened, goal, points, ends)
    for b in np.flatnonzero(clear):
        quaternion = rng.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        for share in (0.0, 0.5, 1.0):
            pose = np.concatenate([points[b] + share * (ends[b] - points[b]), quaternion])
            now = Situation(np.zeros(2), 0.0, True, opened[b], GOALS[goal[b]], pose, True)
            assert not physics._collides(physics.load(now), pose)
        found += 1
    assert found > 20, "nothing was clear, so nothing was tested"


def test_quaternions_are_the_engines():
    rng = np.random.default_rng(1)
    axis = rng.normal(size=(20, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    degrees = rng.uniform(-180, 180, 20)
    made, other = about(axis, degrees), about(axis[::-1], degrees)
    products, turned = multiplied(made, other), matrices(made)
    for b in range(20):
        expected, product, matrix = np.zeros(4), np.zeros(4), np.zeros(9)
        mujoco.mju_axisAngle2Quat(expected, axis[b], np.radians(degrees[b]))
        mujoco.mju_mulQuat(product, made[b], other[b])
        mujoco.mju_quat2Mat(matrix, made[b])
        assert made[b] == pytest.approx(expected)
        assert products[b] == pytest.approx(product)
        assert turned[b].ravel() == pytest.approx(matrix)
