"""Taking things, moving them in the hand and putting them down, in a room of known geometry and in generated ones."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import drawer_chest, drawn, hut

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Thing
from scrubjay.sim.physics import HAND_AHEAD, HAND_BELOW
from scrubjay.sim.pose import CAMERA_STANDING
from scrubjay.sim.quaternion import quat_from_axis_angle
from scrubjay.thor.scene import ActionFailed, Scene

NEEDS_OPENGL = pytest.mark.skipif(not drawn("opengl"), reason="OpenGL does not work here, which sight needs")
HAND = CAMERA_STANDING - HAND_BELOW
TABLE = Thing("DiningTable_0", "DiningTable", (-1.2, 1.2, 0.0), 0, (1.0, 1.0, 0.75))
"""Its north-west corner is 0.3 m from the walls."""
PLATE = Thing("Plate_0", "Plate", (-1.2, 1.2, 0.75), 0, (0.24, 0.24, 0.03), inside="DiningTable_0")
APPLE = Thing("Apple_0", "Apple", (-1.2, 1.2, 0.77), 0, (0.07, 0.07, 0.07), inside="Plate_0")
MUG = Thing("Mug_0", "Mug", (-1.0, 0.95, 0.75), 0, (0.1, 0.12, 0.1), inside="DiningTable_0")
FORK = Thing("Fork_0", "Fork", (0.0, 1.7, 0.64), 0, (0.03, 0.18, 0.02), inside="Drawer_0")


def kitchen(agents: int = 1) -> Scene:
    scene = Scene(hut(*drawer_chest(), TABLE, PLATE, APPLE, MUG, FORK), agents)
    for number in range(agents):
        scene.teleport(number, np.array([float(number), -1.0]), 0, 30, True, force=True)
    return scene


@pytest.fixture
def scene() -> Scene:
    return kitchen()


def number(scene: Scene, name: str) -> int:
    return scene.things.index(name)


def everything(scene: Scene) -> list:
    """All that an action can change."""
    agents = [(*one.position, one.rotation, one.horizon, one.standing, one.held) for one in scene.agents]
    things = [(*scene.pose(k), scene.openness(k), *scene.containers(k)) for k in range(len(scene.things))]
    return [agents, things, set(scene.absent), set(scene.hidden)]


def test_a_thing_is_taken_to_the_hands_default_position(scene):
    mug = number(scene, "Mug_0")
    scene.pick_up(0, mug, force=True)
    assert scene.agents[0].held == mug
    assert scene.pose(mug) == pytest.approx([0, -1 + HAND_AHEAD, HAND, 1, 0, 0, 0])
    assert scene.containers(mug) == []
    assert scene.corners(mug).mean(0) == pytest.approx(scene.pose(mug)[:3])


def test_the_hand_is_where_the_camera_looks(scene):
    """At a horizon of 0, 30 degrees above the world's: 0.38 m ahead and 0.16 m down, turned up by 30 degrees."""
    scene.turn(0, 0, 0, True)
    mug = number(scene, "Mug_0")
    scene.pick_up(0, mug, force=True)
    ahead, up = 0.38 * 0.866025 + 0.16 * 0.5, 0.38 * 0.5 - 0.16 * 0.866025
    assert scene.pose(mug)[:3] == pytest.approx([0, -1 + ahead, CAMERA_STANDING + up], abs=1e-5)
    scene.turn(0, 0, 30, True)
    assert scene.pose(mug)[:3] == pytest.approx([0, -1 + HAND_AHEAD, HAND])


@NEEDS_OPENGL
def test_only_what_is_seen_within_reach_is_taken_without_force(scene):
    mug = number(scene, "Mug_0")
    with pytest.raises(ActionFailed, match="not visible"):
        scene.pick_up(0, mug)
    scene.teleport(0, np.array([-1.0, 0.2]), 0, 30, True)
    scene.pick_up(0, mug)
    with pytest.raises(ActionFailed, match="already holds Mug_0"):
        scene.pick_up(0, number(scene, "Fork_0"), force=True)
    with pytest.raises(ActionFailed, match="cannot be picked up"):
        kitchen().pick_up(0, number(scene, "DiningTable_0"), force=True)


def test_a_held_thing_walks_and_turns_along(scene):
    mug = number(scene, "Mug_0")
    scene.pick_up(0, mug, force=True)
    scene.move(0, np.array([0.0, 0.25]))
    assert scene.pose(mug)[:3] == pytest.approx([0, -0.75 + HAND_AHEAD, HAND])
    scene.turn(0, 45, 30, True)
    way = np.append(HAND_AHEAD * facing_vector(45.0), 0)
    assert scene.pose(mug)[:3] == pytest.approx(np.array([0, -0.75, HAND]) + way)
    scene.teleport(0, np.array([1.0, -1.0]), 0, 30, False)
    assert scene.pose(mug)[:3] == pytest.approx([1.0, -1 + HAND_AHEAD, 0.9015 - HAND_BELOW])


def test_a_held_thing_does_not_go_into_a_wall(scene):
    """A fork of 0.18 m, 0.38 m ahead, ends at the south wall, at -2, before the body's radius of 0.2 does."""
    fork = number(scene, "Fork_0")
    scene.turn(0, 180, 30, True)
    scene.pick_up(0, fork, force=True)
    before = everything(scene)
    scene.move(0, np.array([0.0, -0.5]))
    with pytest.raises(ActionFailed, match="in the hand is in the way"):
        scene.move(0, np.array([0.0, -0.2]))
    scene.move(0, np.array([0.0, 0.5]))
    assert everything(scene)[0] == before[0]


def test_the_hand_moves_by_any_length(scene):
    mug = number(scene, "Mug_0")
    scene.pick_up(0, mug, force=True)
    start = scene.pose(mug)
    scene.move_held(0, np.array([0.123, -0.05, 0.02]))
    assert scene.pose(mug)[:3] - start[:3] == pytest.approx([-0.05, 0.123, 0.02])
    scene.turn_held(0, quat_from_axis_angle(np.array([1.0, 0, 0]), np.array(20.0)))
    assert scene.pose(mug)[3:] == pytest.approx(quat_from_axis_angle(np.array([1.0, 0, 0]), np.array(20.0)))
    with pytest.raises(ActionFailed):
        scene.move_held(0, np.zeros(3))


def test_the_hand_stays_within_reach_unless_forced(scene):
    mug = number(scene, "Mug_0")
    scene.pick_up(0, mug, force=True)
    scene.move_held(0, np.array([3.0, 0, 0]))
    assert scene.pose(mug)[1] == pytest.approx(-1 + 1.5, abs=0.011)
    scene.move_held(0, np.array([0.5, 0, 0]), force=True)
    assert scene.pose(mug)[1] == pytest.approx(0.5 + 0.5, abs=0.02)


def test_what_is_dropped_falls_on_what_is_below(scene):
    mug, table = number(scene, "Mug_0"), number(scene, "DiningTable_0")
    scene.pick_up(0, mug, force=True)
    scene.drop(0)
    assert scene.agents[0].held is None
    assert scene.containers(mug) == [number(scene, "Floor")]
    scene.pick_up(0, mug, force=True)
    scene.teleport(0, np.array([-1.2, 0.4]), 0, 30, True)
    scene.move_held(0, np.array([0.2, 0.0, 0]))
    scene.drop(0)
    assert table in scene.containers(mug) and 0.75 < scene.pose(mug)[2] < 0.9
    with pytest.raises(ActionFailed, match="holds nothing"):
        scene.drop(0)


def test_a_throw_goes_farther_than_a_drop_and_stays_in_the_room(scene):
    """40 N for a fiftieth of a second give a mug of a kilogram 0.8 m/s."""
    places = []
    for newtons in (0.0, 40.0, 1e6):
        scene = kitchen()
        mug = number(scene, "Mug_0")
        scene.turn(0, 90, 0, True)
        scene.pick_up(0, mug, force=True)
        scene.throw(0, newtons)
        places.append(scene.pose(mug)[0])
        assert places[-1] < 2
    assert places[0] + 0.15 < places[1] < places[2]


def test_a_thing_put_into_a_drawer_rides_with_it(scene):
    mug, drawer = number(scene, "Mug_0"), number(scene, "Drawer_0")
    fork = number(scene, "Fork_0")
    scene.pick_up(0, mug, force=True)
    with pytest.raises(ActionFailed, match="is closed"):
        scene.put(0, drawer, force=True)
    scene.set_openness(0, drawer, 1.0, force=True)
    scene.put(0, drawer, force=True)
    assert scene.containers(mug)[0] == drawer
    # Another thing moves in between, so that the mug is not the free one.
    scene.pick_up(0, number(scene, "Apple_0"), force=True)
    scene.drop(0)
    travel = float(scene._things.openable(drawer).travel[0])
    opened = {k: scene.pose(k) for k in (mug, fork)}
    scene.set_openness(0, drawer, 0.25, force=True)
    for thing, pose in opened.items():
        assert scene.pose(thing) == pytest.approx(pose + np.array([0, 0.75 * travel, 0, 0, 0, 0, 0]))
    scene.set_openness(0, drawer, 1.0, force=True)
    for thing, pose in opened.items():
        assert scene.pose(thing) == pytest.approx(pose)


def test_a_thing_is_put_where_it_fits_or_nothing_changes(scene):
    mug, table, plate = (number(scene, name) for name in ("Mug_0", "DiningTable_0", "Plate_0"))
    scene.pick_up(0, mug, force=True)
    scene.put(0, table, force=True)
    assert scene.containers(mug) == [table]
    assert abs(scene.pose(mug)[:2] - [-1.2, 1.2]).max() < 0.5
    scene.pick_up(0, plate, force=True)
    before = everything(scene)
    with pytest.raises(ActionFailed, match="does not fit"):
        scene.put(0, mug, force=True)
    assert str(everything(scene)) == str(before)


def test_a_plate_is_taken_with_what_is_on_it(scene):
    plate, apple, table = (number(scene, name) for name in ("Plate_0", "Apple_0", "DiningTable_0"))
    offset = scene.pose(apple)[:3] - scene.pose(plate)[:3]
    scene.pick_up(0, plate, force=True)
    assert scene.pose(apple)[:3] - scene.pose(plate)[:3] == pytest.approx(offset)
    scene.put(0, table, force=True)
    assert scene.containers(apple)[0] == plate and scene.containers(plate) == [table]
    scene.pick_up(0, apple, force=True)
    assert scene.containers(plate) == [table]


def test_a_plate_that_tips_over_loses_what_is_on_it(scene):
    plate, apple = number(scene, "Plate_0"), number(scene, "Apple_0")
    scene.pick_up(0, plate, force=True)
    scene.turn_held(0, quat_from_axis_angle(np.array([1.0, 0, 0]), np.array(180.0)))
    scene.drop(0)
    assert scene.pose(plate)[2] < 0.12 and scene.pose(apple)[2] < 0.12
    assert plate not in scene.containers(apple)


def test_things_are_placed_anywhere_but_not_into_others(scene):
    mug, table = number(scene, "Mug_0"), number(scene, "DiningTable_0")
    inside, above = (np.array([-1.2, 1.2, z, 1, 0, 0, 0]) for z in (0.4, 1.2))
    inside[2] = 0.73
    before = everything(scene)
    with pytest.raises(ActionFailed, match="would collide"):
        scene.place(mug, inside)
    assert str(everything(scene)) == str(before)
    scene.place(mug, above)
    assert scene.pose(mug) == pytest.approx(above)
    scene.place(mug, np.array([-1.5, 1.4, 1.2, 1, 0, 0, 0]), settle=True)
    assert scene.containers(mug) == [table]
    scene.place(mug, inside, force=True)
    assert scene.pose(mug) == pytest.approx(inside)


def test_furniture_with_drawers_stays_where_it_is():
    chest = Thing("Dresser_0", "Dresser", (1.0, 1.5, 0.0), 180, (0.6, 0.5, 0.9))
    drawer = Thing("Drawer_1", "Drawer", (1.0, 1.5, 0.3), 180, (0.5, 0.45, 0.25), inside="Dresser_0")
    stool = Thing("Stool_0", "Stool", (-1.0, -1.0, 0.0), 0, (0.35, 0.35, 0.45))
    scene, away = Scene(hut(chest, drawer, stool)), np.array([0.0, 0.0, 0.45, 1, 0, 0, 0])
    with pytest.raises(ActionFailed, match="Dresser_0 cannot be moved with Drawer_1"):
        scene.place(number(scene, "Dresser_0"), away, force=True)
    scene.place(number(scene, "Dresser_0"), scene.pose(number(scene, "Dresser_0")), force=True)
    scene.place(number(scene, "Stool_0"), away)
    assert scene.pose(number(scene, "Stool_0")) == pytest.approx(away)


def test_what_is_removed_leaves_the_hand_and_comes_back(scene):
    mug = number(scene, "Mug_0")
    scene.pick_up(0, mug, force=True)
    where = scene.pose(mug)
    scene.remove(mug)
    assert scene.agents[0].held is None and mug in scene.absent
    scene.restore(mug)
    assert scene.pose(mug) == pytest.approx(where)


def test_a_removed_thing_is_in_nobodys_way(scene):
    """An apple can be where the mug was."""
    mug, apple = number(scene, "Mug_0"), number(scene, "Apple_0")
    where = scene.pose(mug)
    with pytest.raises(ActionFailed):
        scene.place(apple, where)
    scene.remove(mug)
    scene.place(apple, where)


def test_what_stands_on_a_book_falls_when_the_book_is_taken():
    """The upper book lies on the lower one, 0.05 m high, on a table of 0.75 m."""
    lower = Thing("Book_0", "Book", (-1.2, 1.2, 0.75), 0, (0.2, 0.25, 0.05), inside="DiningTable_0")
    upper = Thing("Book_1", "Book", (-1.2, 1.2, 0.8), 0, (0.15, 0.2, 0.04), inside="DiningTable_0")
    scene = Scene(hut(TABLE, lower, upper))
    scene.teleport(0, np.zeros(2), 0, 30, True)
    scene.pick_up(0, number(scene, "Book_0"), force=True)
    assert scene.pose(number(scene, "Book_1"))[:3] == pytest.approx([-1.2, 1.2, 0.77], abs=0.01)
    assert scene.containers(number(scene, "Book_1")) == [number(scene, "DiningTable_0")]


def test_two_agents_hold_two_things():
    scene = kitchen(agents=2)
    mug, fork = number(scene, "Mug_0"), number(scene, "Fork_0")
    scene.pick_up(0, mug, force=True)
    with pytest.raises(ActionFailed, match="another hand"):
        scene.pick_up(1, mug, force=True)
    scene.pick_up(1, fork, force=True)
    scene.move(0, np.array([0.0, 0.25]))
    scene.move(1, np.array([0.0, 0.5]))
    assert scene.pose(mug)[:2] == pytest.approx([0.0, -0.75 + HAND_AHEAD])
    assert scene.pose(fork)[:2] == pytest.approx([1.0, -0.5 + HAND_AHEAD])
    scene.drop(0)
    scene.drop(1)
    assert scene.containers(mug) == scene.containers(fork) == [number(scene, "Floor")]


def test_a_thing_in_front_of_a_door_keeps_it_closed(scene):
    mug, cabinet = number(scene, "Mug_0"), number(scene, "Cabinet_0")
    scene.place(mug, np.array([0.8, 1.25, 0.05, 1, 0, 0, 0]), force=True)
    scene.place(number(scene, "Fork_0"), np.array([-1, -1, 0.02, 1, 0, 0, 0]), settle=True)
    before = everything(scene)
    with pytest.raises(ActionFailed, match="Mug_0 is in the way"):
        scene.set_openness(0, cabinet, 1.0, force=True)
    assert str(everything(scene)) == str(before)
    scene.place(mug, np.array([-0.8, -1.25, 0.05, 1, 0, 0, 0]), force=True)
    scene.set_openness(0, cabinet, 1.0, force=True)


def test_a_thing_on_the_floor_is_in_the_way_of_bodies(scene):
    """The mug is 0.1 m wide; a body of 0.2 m stops 0.25 m before its center."""
    mug = number(scene, "Mug_0")
    scene.place(mug, np.array([0.0, -0.5, 0.05, 1, 0, 0, 0]), force=True)
    with pytest.raises(ActionFailed):
        scene.move(0, np.array([0.0, 0.5]))
    scene.remove(mug)
    scene.move(0, np.array([0.0, 0.5]))


def act_at_random(scene: Scene, rng: np.random.Generator) -> str:
    """A random action with random arguments; its name, and whether it succeeded."""
    body = scene.agents[0]
    thing = int(rng.choice(sorted(scene.pickupable - scene.absent)))
    receptacle = int(rng.choice([k for k in range(len(scene.things)) if k not in scene.pickupable]))
    openable = int(rng.choice(sorted(scene._things.openables)))
    west, south, east, north = scene.room.bounds
    point = np.array([rng.uniform(west, east), rng.uniform(south, north), rng.uniform(0.1, 2.0)])
    offset, angle, force = rng.uniform(-0.4, 0.4, 3), float(rng.uniform(0, 360)), bool(rng.integers(2))
    pose = np.append(point, quat_from_axis_angle(np.array([0.0, 0, 1]), np.array(angle)))
    actions = {
        "move": lambda: scene.move(0, offset[:2]),
        "turn": lambda: scene.turn(0, angle, float(rng.uniform(-30, 60)), bool(rng.integers(2))),
        "teleport": lambda: scene.teleport(0, point[:2], angle, body.horizon, body.standing),
        "open": lambda: scene.set_openness(0, openable, float(rng.integers(5)) / 4, force=True),
        "pick_up": lambda: scene.pick_up(0, thing, force),
        "put": lambda: scene.put(0, receptacle, force=True),
        "drop": lambda: scene.drop(0),
        "throw": lambda: scene.throw(0, float(rng.uniform(0, 100))),
        "move_held": lambda: scene.move_held(0, offset, force),
        "turn_held": lambda: scene.turn_held(0, pose[3:]),
        "place": lambda: scene.place(thing, pose, settle=True),
        "remove": lambda: scene.remove(thing),
        "restore": lambda: scene.restore(int(rng.choice(sorted(scene.absent)))),
    }
    weights = np.array([4, 4, 2, 4, 4, 3, 1, 1, 3, 2, 1, 0.3, 0.3])
    name = str(rng.choice(list(actions), p=weights / weights.sum()))
    before = everything(scene)
    try:
        actions[name]()
    except ActionFailed:
        assert str(everything(scene)) == str(before), name
        return f"{name} failed"
    return name


def check_random_actions(name: str, seed: int, steps: int) -> None:
    """What failed has changed nothing, things stay in the room, and the same seed gives the same."""
    scene, again = Scene(make_room(name)), Scene(make_room(name))
    west, south, east, north = scene.room.bounds
    rngs = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(steps):
        assert act_at_random(scene, rngs[0]) == act_at_random(again, rngs[1])
        for thing in scene._things.moved.keys() - scene.absent:
            x, y, z = scene.pose(thing)[:3]
            assert west < x < east and south < y < north and 0 < z < scene.room.height
    assert str(everything(scene)) == str(everything(again))


@NEEDS_OPENGL
def test_random_actions_keep_the_rules():
    check_random_actions("FloorPlan1", 0, 60)


@NEEDS_OPENGL
@pytest.mark.slow
@pytest.mark.parametrize("name", ["FloorPlan3", "FloorPlan204", "FloorPlan306", "FloorPlan408"])
def test_random_actions_keep_the_rules_for_a_long_time(name):
    check_random_actions(name, 1, 800)
