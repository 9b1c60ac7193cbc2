"""Agents in a scene: walking, turning, reachable positions and paths, in rooms worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import drawer_chest, hut

from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Thing
from scrubjay.sim.world import World
from scrubjay.thor.scene import ActionFailed, Scene

NORTH, EAST = np.array([0.0, 1.0]), np.array([1.0, 0.0])


@pytest.fixture
def bare() -> Scene:
    scene = Scene(hut(), agents=2)
    scene.teleport(0, np.array([0.0, 0.0]), 0, 0, True)
    scene.teleport(1, np.array([1.5, 1.5]), 0, 0, True)
    return scene


def test_a_walk_has_any_length_and_direction(bare):
    bare.move(0, np.array([0.3, -0.4]))
    assert bare.agents[0].position == pytest.approx([0.3, -0.4])


def test_a_walk_ends_before_a_wall(bare):
    """The wall is at 2, the body's radius 0.2."""
    with pytest.raises(ActionFailed):
        bare.move(0, 1.85 * NORTH)
    assert (bare.agents[0].position == 0).all()
    bare.move(0, 1.75 * NORTH)


def test_agents_block_each_other(bare):
    bare.teleport(0, np.array([0.0, 1.5]), 0, 0, True)
    bare.move(0, 1.0 * EAST)
    with pytest.raises(ActionFailed):
        bare.move(0, 0.25 * EAST)
    bare.move(0, 0.25 * EAST, force=True)


def test_agents_do_not_teleport_into_walls_or_each_other(bare):
    for position in ([1.9, 0], [1.5, 1.2], [5, 0]):
        with pytest.raises(ActionFailed, match="no body can stand"):
            bare.teleport(0, np.array(position, float), 0, 0, True)
    assert (bare.agents[0].position == 0).all()


def test_turning_sets_rotation_horizon_and_posture(bare):
    bare.turn(0, 370.0, -30.0, False)
    agent = bare.agents[0]
    assert (agent.rotation, agent.horizon, agent.standing) == (10.0, -30.0, False)


def test_reachable_positions_are_a_grid_through_the_agent():
    """Of a free floor of 3.6 m a side: 7 x 7 positions half a meter apart, 9 x 9 at 0.4 m."""
    scene = Scene(hut())
    scene.teleport(0, np.array([0.1, 0.0]), 0, 0, True)
    assert len(scene.reachable(0, 0.5)) == 7 * 7
    scene.teleport(0, np.array([0.0, 0.0]), 0, 0, True)
    positions = scene.reachable(0, 0.4)
    assert len(positions) == 9 * 9
    assert positions / 0.4 == pytest.approx(np.round(positions / 0.4), abs=1e-9)
    with pytest.raises(ActionFailed, match="limit of 10"):
        scene.reachable(0, 0.4, limit=10)


def test_reachable_positions_are_a_worlds_grid():
    scene, world = Scene(make_room("FloorPlan1")), World(["FloorPlan1"])
    for angle in (0.0, 30.0):
        scene.agents[0].rotation = world.state.rotation[0] = angle
        assert (scene.reachable(0, 0.25, turned=True) == world.grid(0).positions).all()


def test_other_agents_and_open_drawers_take_positions_away():
    scene = Scene(hut(*drawer_chest()), agents=2)
    scene.teleport(1, np.array([1.5, -1.5]), 0, 0, True)
    scene.teleport(0, np.array([-1.5, -1.5]), 0, 0, True)
    near_drawer, drawer = np.array([0.0, 1.0]), scene.things.index("Drawer_0")
    positions = scene.reachable(0, 0.25)
    assert np.linalg.norm(positions - [1.5, -1.5], axis=1).min() >= 0.4
    assert np.linalg.norm(positions - near_drawer, axis=1).min() < 0.01
    scene.set_openness(0, drawer, 1.0, force=True)
    assert np.linalg.norm(scene.reachable(0, 0.25) - near_drawer, axis=1).min() > 0.2


def test_a_path_goes_around_a_table_and_is_nearly_shortest():
    """A table from -1 to 1 at the room's middle: around the corner of its margin of 0.2 m."""
    scene = Scene(hut(Thing("DiningTable_0", "DiningTable", (0, 0, 0), 0, (2.0, 1.0, 0.8)), width=6, depth=6))
    straight = scene.path(np.array([-2.0, -2]), np.array([2.0, -2]))
    assert straight == pytest.approx(np.array([[-2.0, -2], [2.0, -2]]))
    way = scene.path(np.array([0.0, -1.5]), np.array([0.0, 1.5]))
    length = np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
    shortest = 2 * np.hypot(1.2, 1.0) + 1.0
    assert way[0] == pytest.approx([0, -1.5]) and way[-1] == pytest.approx([0, 1.5])
    assert shortest - 0.2 < length < shortest * 1.08
    with pytest.raises(ActionFailed):
        scene.path(np.array([0.0, 0.0]), np.array([0.0, 1.5]))


def test_a_part_that_opens_halfway_blocks_half_as_far():
    """The drawer's front is at 1.45 and slides south by its travel."""
    scene = Scene(hut(*drawer_chest()))
    drawer = scene.things.index("Drawer_0")
    travel = float(scene._things.openable(drawer).travel[0])
    scene.set_openness(0, drawer, 0.5, force=True)
    assert scene.openness(drawer) == 0.5
    assert scene.pose(drawer)[:3] == pytest.approx([0, 1.7 - travel / 2, 0.6 + 0.125])
    front = 1.45 - travel / 2
    scene.teleport(0, np.array([0.0, front - 0.3]), 0, 0, True)
    with pytest.raises(ActionFailed):
        scene.move(0, 0.15 * NORTH)
    with pytest.raises(ActionFailed, match="hit an agent"):
        scene.set_openness(0, drawer, 1.0, force=True)
    assert scene.openness(drawer) == 0.5
    scene.set_openness(0, drawer, 0.0, force=True)
    assert scene.pose(drawer)[:3] == pytest.approx([0, 1.7, 0.6 + 0.125])
    with pytest.raises(ActionFailed, match="already closed"):
        scene.set_openness(0, drawer, 0.0, force=True)
