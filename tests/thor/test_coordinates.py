"""Unity's left-handed coordinates and Euler angles against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.sim.quaternion import matrix_from_quat, quat_from_axis_angle, quat_mul
from scrubjay.thor import coordinates as c

angles = st.floats(-720, 720, allow_nan=False)


def test_north_is_z_and_up_is_y():
    assert c.to_unity(np.array([1.0, 2.0, 3.0])).tolist() == [1, 3, 2]
    assert c.to_unity(np.array([1.0, 2.0, 3.0]), floor=0.5).tolist() == [1, 3.5, 2]
    assert c.to_room(np.array([1.0, 3.5, 2.0]), floor=0.5).tolist() == [1, 2, 3]


def test_yaw_turns_clockwise_in_both():
    """A quarter turn to the right takes what faced north to the east."""
    matrix = matrix_from_quat(c.quat_from_euler([0, 90, 0]))
    assert matrix @ [0, 1, 0] == pytest.approx([1, 0, 0])
    assert matrix @ [1, 0, 0] == pytest.approx([0, -1, 0])


def test_pitch_looks_down():
    matrix = matrix_from_quat(c.quat_from_euler([90, 0, 0]))
    assert matrix @ [0, 1, 0] == pytest.approx([0, 0, -1])
    assert matrix @ [0, 0, 1] == pytest.approx([0, 1, 0])


def test_roll_is_counter_clockwise_seen_from_behind():
    """Unity turns x towards y about z: the right side goes up."""
    matrix = matrix_from_quat(c.quat_from_euler([0, 0, 90]))
    assert matrix @ [1, 0, 0] == pytest.approx([0, 0, 1])


def test_roll_comes_first_then_pitch_then_yaw():
    turns = [c.quat_from_euler(one) for one in ([0, 40, 0], [30, 0, 0], [0, 0, 50])]
    assert c.quat_from_euler([30, 40, 50]) == pytest.approx(quat_mul(quat_mul(turns[0], turns[1]), turns[2]))


def test_straight_down_keeps_only_yaw():
    """Unity normalizes (90, 270, 270) to (90, 0, 0): yaw minus roll is what counts."""
    assert c.euler_from_quat(c.quat_from_euler([90, 270, 270])) == pytest.approx([90, 0, 0], abs=1e-4)
    assert c.euler_from_quat(c.quat_from_euler([90, 30, 0])) == pytest.approx([90, 30, 0], abs=1e-4)
    assert c.euler_from_quat(c.quat_from_euler([-90, 30, 0])) == pytest.approx([270, 30, 0], abs=1e-4)


def test_a_turn_to_the_right_of_a_room_is_unitys_y():
    """Degrees about our z run counter-clockwise."""
    assert c.euler_from_quat(quat_from_axis_angle(np.array([0.0, 0, 1]), -30.0)) == pytest.approx([0, 30, 0])


@given(angles, angles, angles)
def test_euler_angles_survive_the_way_there_and_back(x, y, z):
    there = c.quat_from_euler([x, y, z])
    back = c.quat_from_euler(c.euler_from_quat(there))
    assert matrix_from_quat(back) == pytest.approx(matrix_from_quat(there), abs=1e-3)


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=3), st.floats(-2, 2))
def test_points_survive_the_way_there_and_back(point, floor):
    assert c.to_room(c.to_unity(np.array(point), floor), floor) == pytest.approx(point, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (-0.395, "-00.40"), (0.98167, "+00.98"), (0.0, "+00.00"), (-0.002, "00.00"), (-1.525, "-01.53"),
        (12.345, "+12.35"), (-0.074, "-00.07"), (0.906, "+00.91"),
    ],
)  # fmt: skip
def test_numbers_of_ids_round_halves_away_from_zero(value, word):
    assert c.object_number(value) == word


def test_ids_are_type_and_position():
    assert c.object_id("Apple", {"x": -0.39513, "y": 0.98167, "z": -1.58218}) == "Apple|-00.40|+00.98|-01.58"


def test_no_negative_zeros():
    assert str(c.vector([-0.0, 0.0, -0.0])) == "{'x': 0.0, 'y': 0.0, 'z': 0.0}"
    assert str(c.wrap(-1e-9)) == "0.0"
