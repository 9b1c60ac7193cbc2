"""Percepts and occupancy maps, against the room itself."""

import numpy as np
import pytest

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.players.perception import MAP_RADIUS, OccupancyMap, perceive, poses_reaching
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.floor import GRID
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import AgentPose, cameras, in_view, project
from scrubjay.sim.world import World

TOMATO = (0.2, 0.6, 0.045, 1.0, 0.0, 0.0, 0.0)


def search_from(world: World, pose: AgentPose, is_open: tuple[int, ...] = ()) -> CacheGame:
    """A search whose seeker starts at a pose."""
    return CacheGame(world, lambda *_: EpisodeSpec("Tomato", pose, Stage.S, Stage.S, pose=TOMATO, open=is_open))


@pytest.fixture(scope="module")
def world(chest):
    with World([chest], size=112) as world:
        yield world


@pytest.mark.parametrize("rotation", [0.0, 90.0, 37.0])
def test_points_are_in_the_players_frame(world, rotation):
    game = search_from(world, AgentPose(0.0, -0.75, rotation, True))
    (percept,) = perceive(game, np.array([0]))
    away = np.array([TOMATO[0], TOMATO[1] + 0.75])
    turn = np.radians(rotation)
    facing, right = np.array([np.sin(turn), np.cos(turn)]), np.array([np.cos(turn), -np.sin(turn)])
    if percept.goal_pixels:
        assert np.abs(percept.goal_point - (away @ right, away @ facing, TOMATO[2])).max() < 0.06
    floor = percept.points[percept.ids == 0]
    assert len(floor) > 100 and np.abs(floor[:, 2]).max() < 0.02
    # Points project back to the pixels they come from, of which every other one is sampled.
    side = len(percept.ids)
    rows, columns = np.nonzero(percept.ids >= 0)
    at = project(percept.eye, percept.matrix, percept.points[rows, columns]) * side
    assert np.abs(at - np.stack([rows, columns], 1) - 0.75).max() < 0.05
    assert (rotation == 90.0) == (percept.goal_pixels == 0)


def test_the_percept_knows_what_open_at_would_open(chest):
    with World([chest], copies=CELLS**2, size=112) as world:
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", AgentPose(0.25, 0.5, 0.0, True), last=Stage.EM))
        percept = perceive(game, np.array([0]))[0]
        opened = world.open_at(*np.divmod(np.arange(CELLS**2), CELLS))
        assert opened.any() and (opened == (percept.at_cells.ravel() != NOTHING)).all()
        assert (world.state.open.argmax(1) == percept.at_cells.ravel())[opened].all()


def test_the_map_agrees_with_the_floor(world):
    """After a look around, cells marked free are free, and no reachable cell is marked blocked."""
    game, known = search_from(world, AgentPose(0.0, 0.0, 0.0, True)), OccupancyMap()
    for _ in range(4):
        (percept,) = perceive(game, np.array([0]))
        known.update(percept)
        world.rotate(np.array([1]))
        game._view = None
    floor = world.rooms[0].floor
    free, unknown = known.free_and_unknown((slice(None), slice(None)))
    cells = np.argwhere(free) - MAP_RADIUS
    # The last centimeters are left to bumping.
    assert len(cells) > 100 and (floor.clearance(cells * GRID) > 0.17).all()
    x, y = (floor.grid((0.0, 0.0)).cells + MAP_RADIUS).T
    assert (free | unknown)[x, y].all()
    ticks = np.arange(-7, 8)
    passable = known.passable((slice(None), slice(None)))
    for cell in np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2):
        for quarter in range(4):
            if passable[*(cell + MAP_RADIUS), quarter] and free[*(cell + MAP_RADIUS + COMPASS[quarter])]:
                assert floor.clearance((cell + COMPASS[quarter] / 2) * GRID) > 0.15


def test_bumps_block_both_directions_until_things_are_closed(world):
    (percept,) = perceive(search_from(world, AgentPose(0.0, 0.0, 0.0, True)), np.array([0]))
    known, everywhere = OccupancyMap(), (slice(None), slice(None))
    known.update(percept)
    assert known.passable(everywhere)[MAP_RADIUS, MAP_RADIUS, 1]
    known.mark_bump((0, 0, 0, 1), 1)
    assert (
        not known.passable(everywhere)[MAP_RADIUS, MAP_RADIUS, 1]
        and not known.passable(everywhere)[MAP_RADIUS + 1, MAP_RADIUS, 3]
    )
    known.forget_open()
    assert known.passable(everywhere)[MAP_RADIUS, MAP_RADIUS, 1]


def test_poses_around_a_thing_have_it_in_view_and_in_reach():
    point = np.array([0.6, -0.4, 0.7])
    patch = poses_reaching(point)
    middle = np.round(point[:2] / GRID)
    assert patch.any()
    for i, j, quarter, standing in np.argwhere(patch):
        position = (middle + (i - 6, j - 6)) * GRID
        assert np.linalg.norm(position - point[:2]) <= 1.3 + 1e-9
        assert in_view(*cameras(position, np.array(90.0 * quarter), np.array(bool(standing))), point)


def test_openables_stay_closed_on_the_map_until_seen_open(world):
    known = OccupancyMap()
    (percept,) = perceive(search_from(world, AgentPose(0.25, 0.25, 0.0, True)), np.array([0]))
    known.update(percept)
    assert set(known.closed) == {0, 1}
    # The drawer's front is in the middle of the chest's north wall, 0.6 to 0.85 m high; the player is 0.25 m from it.
    assert abs(known.closed[0][0] + 0.25) < 0.1 and 0.6 < known.closed[0][2] < 0.86
    (percept,) = perceive(search_from(world, AgentPose(0.25, 0.25, 0.0, True), (0,)), np.array([0]))
    known.update(percept)
    assert set(known.closed) == {1}
