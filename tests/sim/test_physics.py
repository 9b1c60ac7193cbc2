"""Hand movements, drops and openings under the paper's conditions, in a room of known geometry."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import hut

from scrubjay.rooms.room import GOALS, Thing
from scrubjay.sim.compile import GOAL_BOXES, compile_room
from scrubjay.sim.physics import HAND_AHEAD, HAND_BELOW, Physics, PhysicsState
from scrubjay.sim.pose import CAMERA_STANDING

NORTH, EAST, UP = np.eye(3)[1], np.eye(3)[0], np.eye(3)[2]
DRAWER, CABINET = 0, 1


def initial(compiled, x=0.0, y=0.0, rotation=0.0, goal="Tomato", standing=True) -> PhysicsState:
    far_above = np.array([0, 0, 50.0, 1, 0, 0, 0])
    closed = np.zeros(len(compiled.openables), bool)
    return PhysicsState(np.array([x, y]), rotation, standing, closed, goal, far_above, False)


def held(physics: Physics, **where) -> PhysicsState:
    then = physics.hold(initial(physics.compiled, **where))
    assert then is not None
    return then


@pytest.fixture
def physics(chest) -> Physics:
    return Physics(chest)


@pytest.fixture
def bare(empty) -> Physics:
    return Physics(empty)


def move_repeatedly(physics: Physics, now: PhysicsState, direction, times: int) -> PhysicsState:
    for _ in range(times):
        now = physics.move_hand(now, np.asarray(direction, float)) or now
    return now


@pytest.mark.parametrize("goal", GOALS)
def test_the_hand_holds_at_its_default_position(bare, goal):
    now = held(bare, goal=goal, rotation=90.0)
    assert now.held
    assert now.pose[:3] == pytest.approx([HAND_AHEAD, 0, CAMERA_STANDING - HAND_BELOW])


def test_near_a_wall_the_object_is_held_closer(bare):
    now = held(bare, y=1.75, goal="Bread")
    assert 1.75 < now.pose[1] < 1.75 + HAND_AHEAD
    assert now.pose[1] + GOAL_BOXES["Bread"][1] / 2 <= 2.001


def test_a_free_movement_is_exactly_a_tenth_of_a_meter(bare):
    now = held(bare)
    then = bare.move_hand(now, NORTH)
    assert then.pose[:3] - now.pose[:3] == pytest.approx([0, 0.1, 0], abs=1e-9)
    assert then.pose[3:] == pytest.approx(now.pose[3:])


def test_a_movement_stops_at_a_wall_and_then_fails(bare):
    now = held(bare, y=1.0, goal="Bread")
    last = move_repeatedly(bare, now, NORTH, 10)
    assert last.pose[1] == pytest.approx(2 - GOAL_BOXES["Bread"][1] / 2, abs=0.02)
    assert bare.move_hand(last, NORTH) is None


def test_a_movement_ends_at_arms_length(bare):
    """1.5 m from the agent's axis, never beyond."""
    last = move_repeatedly(bare, held(bare, y=-1.75), NORTH, 15)
    assert 1.49 <= last.pose[1] + 1.75 <= 1.5 + 1e-9
    assert bare.move_hand(last, NORTH) is None


def test_a_movement_ends_at_the_edge_of_the_view(bare):
    """The view's upper edge is 15 degrees above the horizontal."""
    now = held(bare)
    last = move_repeatedly(bare, now, UP, 8)
    slope = (last.pose[2] - CAMERA_STANDING) / last.pose[1]
    assert slope <= np.tan(np.radians(15)) + 1e-9
    assert bare.move_hand(last, UP) is None


def test_a_failed_movement_leaves_the_state_untouched(bare):
    last = move_repeatedly(bare, held(bare, y=1.0, goal="Bread"), NORTH, 10)
    before = last.pose.copy()
    assert bare.move_hand(last, NORTH) is None
    assert (last.pose == before).all()


def test_a_rotation_turns_by_thirty_degrees_about_the_center(bare):
    now = held(bare, goal="Knife")
    then = bare.rotate_hand(now, UP, 30.0)
    assert then.pose[:3] == pytest.approx(now.pose[:3])
    assert then.pose[3:] == pytest.approx([np.cos(np.radians(15)), 0, 0, np.sin(np.radians(15))])


def test_a_rotation_into_a_wall_fails(bare):
    """The plunger, half a meter long, close to a wall, does not fit lying towards it."""
    now = move_repeatedly(bare, held(bare, y=1.0, goal="Plunger"), NORTH, 10)
    turns = [bare.rotate_hand(now, EAST, 30.0)]
    while turns[-1] is not None and len(turns) < 4:
        turns.append(bare.rotate_hand(turns[-1], EAST, 30.0))
    assert turns[-1] is None


@pytest.mark.parametrize("goal", GOALS)
def test_what_is_dropped_falls_and_rests(bare, goal):
    now = bare.drop(held(bare, goal=goal))
    assert not now.held
    lowest = min(GOAL_BOXES[goal][:3]) / 2
    assert 0.5 * lowest < now.pose[2] < GOAL_BOXES[goal][2] / 2 + 0.02
    again = bare.drop(now)
    assert np.linalg.norm(again.pose[:3] - now.pose[:3]) < 0.003


def test_rest_is_watched_for_longer_than_settling(bare):
    """A cup that creeps by 1.3 mm/s seems still for 0.1 s; one that lies or stands on the floor is."""
    now = bare.drop(held(bare, goal="Cup"))
    assert bare.rests(now)
    up = now.pose + np.array([0, 0, 0.003, 0, 0, 0, 0])
    assert not bare.rests(replace(now, pose=up)), "it falls by 3 mm"
    friction = bare.model.geom_friction.copy()
    gravity = bare.model.opt.gravity.copy()
    try:
        bare.model.geom_friction[:], bare.model.opt.gravity[:] = 0, (0.0013, 0, -9.81)
        crept = bare.drop(now)
        assert np.linalg.norm(crept.pose[:3] - now.pose[:3]) < 0.0005 and not bare.rests(now)
    finally:
        bare.model.geom_friction[:], bare.model.opt.gravity[:] = friction, gravity


def test_a_thing_on_the_table_is_not_in_it(physics):
    """Dropped from the hand in front of the chest it lies on the floor, contained in nothing."""
    assert physics.contains(physics.drop(held(physics, y=0.5))) == -1


def in_drawer(physics: Physics) -> PhysicsState:
    """The tomato lying in the open drawer."""
    now = initial(physics.compiled, y=0.6)
    now = physics.move_openable(now, DRAWER, True)
    over = np.array([0.0, 1.25, 0.95, 1, 0, 0, 0])
    return physics.drop(PhysicsState(**{**vars(now), "pose": over, "held": True}))


def test_an_object_dropped_into_an_open_drawer_is_contained(physics, chest):
    now = in_drawer(physics)
    assert 0.6 < now.pose[2] < 0.85
    assert chest.things[physics.contains(now)] == "Drawer_0"


def test_it_rides_along_when_the_drawer_closes_and_opens(physics, chest):
    opened = in_drawer(physics)
    closed = physics.move_openable(opened, DRAWER, False)
    assert closed is not None and not closed.open[DRAWER]
    assert closed.pose[1] > opened.pose[1] + 0.25
    assert chest.things[physics.contains(closed)] == "Drawer_0"
    again = physics.move_openable(closed, DRAWER, True)
    assert again is not None and again.pose[1] < closed.pose[1] - 0.25
    assert chest.things[physics.contains(again)] == "Drawer_0"


def test_a_held_object_in_the_way_blocks_a_drawer(physics):
    now = held(physics, y=0.9)
    low = move_repeatedly(physics, now, -UP, 7)
    assert 0.6 < low.pose[2] < 0.85
    assert physics.move_openable(low, DRAWER, True) is None
    assert physics.move_openable(now, CABINET, True) is not None


def test_a_door_without_an_object_near_just_opens(physics):
    now = initial(physics.compiled, y=-1.0, goal="")
    then = physics.move_openable(now, CABINET, True)
    assert then.open.tolist() == [False, True]
    assert now.open.tolist() == [False, False]


def test_turning_with_an_object_keeps_it_in_the_hand(bare):
    now = held(bare)
    then = bare.carry(now, 90.0, True)
    assert then.pose[:3] == pytest.approx([HAND_AHEAD, 0, CAMERA_STANDING - HAND_BELOW])


@pytest.mark.parametrize(("before", "after"), [(0.0, 90.0), (90.0, 180.0), (270.0, 0.0), (180.0, 90.0)])
def test_turning_with_an_object_equals_taking_it_after_the_turn(bare, before, after):
    then = bare.carry(held(bare, rotation=before, goal="Knife"), after, False)
    fresh = held(bare, rotation=after, standing=False, goal="Knife")
    assert (then.rotation, then.standing, then.held) == (after, False, True)
    assert then.pose[:3] == pytest.approx(fresh.pose[:3])
    assert abs(then.pose[3:] @ fresh.pose[3:]) == pytest.approx(1), "the same turn, of either sign"


def test_turning_into_a_wall_with_an_object_fails(bare):
    now = move_repeatedly(bare, held(bare, x=1.5, rotation=0.0, goal="Bread"), NORTH, 3)
    assert bare.carry(now, 90.0, True) is None


def test_pushing_into_a_slanted_pile_does_not_go_through():
    """An object pushed against the chest from random sides never penetrates it."""
    room = hut(Thing("Dresser", "Dresser", (0, 1.2, 0), 180, (1.0, 0.5, 0.8)))
    physics = Physics(compile_room(room))
    rng = np.random.default_rng(0)
    directions = np.concatenate([np.eye(3), -np.eye(3)])
    now = held(physics, y=0.2)
    for _ in range(150):
        then = physics.move_hand(now, directions[rng.integers(6)])
        if then is None:
            continue
        now = then
        contacts = physics._contacts(physics.load(now), now.pose)
        assert not len(contacts.dist) or contacts.dist.min() >= -0.0011


def test_a_push_slides_past_a_corner():
    """A cup that meets a corner with 2 cm of its side is pushed on and aside, a centimeter at most, at its height."""
    room = hut(Thing("Dresser", "Dresser", (0.53, 1.35, 0), 180, (1.0, 0.5, 1.7)))
    physics = Physics(compile_room(room))
    now, aside = held(physics, y=0.3, goal="Cup"), []
    for _ in range(7):
        then = physics.move_hand(now, NORTH)
        east, north, up = then.pose[:3] - now.pose[:3]
        assert -0.011 < east < 1e-9 and 0.01 < north < 0.105 and abs(up) < 0.001
        aside.append(east < -0.001)
        now = then
    assert aside == [False] * 4 + [True] * 2 + [False]
    assert now.pose[0] < -0.01 and now.pose[1] > 1.3
    assert now.pose[6] < -0.1  # The corner turns it clockwise, seen from above.


def test_the_same_actions_give_the_same_bits(chest):
    def play() -> bytes:
        physics = Physics(chest)
        now, states = held(physics, y=0.6), b""
        for direction in (NORTH, NORTH, -UP, -UP, EAST, NORTH, -UP, NORTH, -UP):
            now = physics.move_hand(now, direction) or now
            states += now.pose.tobytes()
        return states + physics.drop(now).pose.tobytes()

    assert play() == play()
