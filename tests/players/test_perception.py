"""What scripts see and remember, against the room as it is."""

import numpy as np
import pytest

from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec
from scrubjay.players.perception import HALF, Map, pixel_of, reaching, sights
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.floor import GRID
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import AgentPose, cameras, in_view
from scrubjay.sim.world import World

TOMATO = (0.2, 0.6, 0.045, 1.0, 0.0, 0.0, 0.0)


def looking(world: World, place: AgentPose, is_open: tuple[int, ...] = ()) -> CacheGame:
    """A search whose seeker stands at a place."""
    return CacheGame(world, lambda *_: EpisodeSpec("Tomato", place, Stage.S, Stage.S, pose=TOMATO, open=is_open))


@pytest.fixture(scope="module")
def world(chest):
    with World([chest], size=112) as world:
        yield world


@pytest.mark.parametrize("rotation", [0.0, 90.0, 37.0])
def test_what_is_seen_is_where_it_is_in_the_players_frame(world, rotation):
    game = looking(world, AgentPose(0.0, -0.75, rotation, True))
    (sight,) = sights(game, np.array([0]))
    away = np.array([TOMATO[0], TOMATO[1] + 0.75])
    turn = np.radians(rotation)
    facing, right = np.array([np.sin(turn), np.cos(turn)]), np.array([np.cos(turn), -np.sin(turn)])
    if sight.goal_pixels:
        assert np.abs(sight.goal_point - (away @ right, away @ facing, TOMATO[2])).max() < 0.06
    floor = sight.points[sight.ids == 0]
    assert len(floor) > 100 and np.abs(floor[:, 2]).max() < 0.02
    # Points fall back on the pixels that they come from, of which every other one is looked at.
    side = len(sight.ids)
    rows, columns = np.nonzero(sight.ids >= 0)
    at = pixel_of(sight, sight.points[rows, columns]) * side
    assert np.abs(at - np.stack([rows, columns], 1) - 0.75).max() < 0.05
    assert (rotation == 90.0) == (sight.goal_pixels == 0)


def test_the_cells_are_those_that_open_at_would_open(chest):
    with World([chest], copies=CELLS**2, size=112) as world:
        game = CacheGame(world, lambda *_: EpisodeSpec("Tomato", AgentPose(0.25, 0.5, 0.0, True), last=Stage.EM))
        sight = sights(game, np.array([0]))[0]
        opened = world.open_at(*np.divmod(np.arange(CELLS**2), CELLS))
        assert opened.any() and (opened == (sight.at_cells.ravel() != NOTHING)).all()
        assert (world.state.open.argmax(1) == sight.at_cells.ravel())[opened].all()


def test_the_map_agrees_with_the_floor(world):
    """After a look around from the middle, what is known to be free is, and nothing reachable counts as blocked."""
    game, seen = looking(world, AgentPose(0.0, 0.0, 0.0, True)), Map()
    for _ in range(4):
        (sight,) = sights(game, np.array([0]))
        seen.see(sight)
        world.rotate(np.array([1]))
        game._view = None
    floor = world.rooms[0].floor
    free, unknown = seen.free((slice(None), slice(None)))
    cells = np.argwhere(free) - HALF
    # The last centimeters are left to bumping.
    assert len(cells) > 100 and (floor.clearance(cells * GRID) > 0.17).all()
    x, y = (floor.grid((0.0, 0.0)).cells + HALF).T
    assert (free | unknown)[x, y].all()
    ticks = np.arange(-7, 8)
    passable = seen.passable((slice(None), slice(None)))
    for cell in np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2):
        for quarter in range(4):
            if passable[*(cell + HALF), quarter] and free[*(cell + HALF + COMPASS[quarter])]:
                assert floor.clearance((cell + COMPASS[quarter] / 2) * GRID) > 0.15


def test_bumps_block_both_ways_until_things_are_closed(world):
    (sight,) = sights(looking(world, AgentPose(0.0, 0.0, 0.0, True)), np.array([0]))
    seen, everywhere = Map(), (slice(None), slice(None))
    seen.see(sight)
    assert seen.passable(everywhere)[HALF, HALF, 1]
    seen.bump((0, 0, 0, 1), 1)
    assert not seen.passable(everywhere)[HALF, HALF, 1] and not seen.passable(everywhere)[HALF + 1, HALF, 3]
    seen.forget_open()
    assert seen.passable(everywhere)[HALF, HALF, 1]


def test_places_around_a_thing_have_it_in_view_and_in_reach():
    point = np.array([0.6, -0.4, 0.7])
    patch = reaching(point)
    middle = np.round(point[:2] / GRID)
    assert patch.any()
    for i, j, quarter, standing in np.argwhere(patch):
        position = (middle + (i - 6, j - 6)) * GRID
        assert np.linalg.norm(position - point[:2]) <= 1.3 + 1e-9
        assert in_view(*cameras(position, np.array(90.0 * quarter), np.array(bool(standing))), point)


def test_things_are_remembered_as_closed_until_they_are_seen_open(world):
    seen = Map()
    (sight,) = sights(looking(world, AgentPose(0.25, 0.25, 0.0, True)), np.array([0]))
    seen.see(sight)
    assert set(seen.closed) == {0, 1}
    # The drawer's front is in the middle of the chest's north wall, 0.6 to 0.85 m high; the player is 0.25 m from it.
    assert abs(seen.closed[0][0] + 0.25) < 0.1 and 0.6 < seen.closed[0][2] < 0.86
    (sight,) = sights(looking(world, AgentPose(0.25, 0.25, 0.0, True), (0,)), np.array([0]))
    seen.see(sight)
    assert set(seen.closed) == {1}
