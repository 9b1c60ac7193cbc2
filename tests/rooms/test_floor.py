"""Clearance and reachability, against distances by hand and a plain flood fill."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from helpers import hut
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.rooms import catalog
from scrubjay.rooms.floor import BODY_RADIUS, GRID, MAP_PITCH, Floor, axis_rotation, distance
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Room, Thing
from scrubjay.sim.walking import Floors


def floor_of(room: Room) -> Floor:
    return Floor(room, tuple(catalog.shape_of(thing, room) for thing in room.things))


@pytest.fixture(scope="module")
def bare() -> Floor:
    return floor_of(hut())


@pytest.fixture(scope="module")
def bedroom() -> Floor:
    return floor_of(make_room("FloorPlan301"))


@pytest.fixture(scope="module")
def uncached() -> Floor:
    """The bedroom's floor, without its cached grid."""
    return floor_of(make_room("FloorPlan301"))


def test_clearance_in_an_empty_room_is_the_distance_to_the_nearest_wall(bare):
    points = np.array([[0, 0], [1.5, 0], [-1.9, 1.2], [1.2, 1.7], [3, 0]])
    assert bare.clearance(points) == pytest.approx([1.0, 0.5, 0.1, 0.3, 0.0], abs=1e-6)


def test_an_empty_room_of_four_meters_has_fifteen_by_fifteen_positions(bare):
    """Walls are at 2 m and the body's radius is 0.2 m, so positions run from -1.75 to 1.75."""
    assert len(bare.reachable()) == 15 * 15


def test_distance_to_a_turned_rectangle_by_hand():
    """A 2 x 1 rectangle at the origin rotated by 90 degrees is 1 wide and 2 deep."""
    rectangle = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.5])
    assert distance(np.array([[1.5, 0], [0, 1.5], [0.2, 0.4], [0.8, 1.4]]), rectangle) == pytest.approx(
        [1.0, 0.5, 0, 0.5]
    )


def test_clearance_agrees_with_all_rectangles_one_by_one(bedroom):
    rng = np.random.default_rng(0)
    points = bedroom.origin + rng.random((500, 2)) * (np.array(bedroom.map.shape) - 1) * 0.025
    exact = np.min([distance(points, rectangle) for rectangle in bedroom.obstacles], axis=0)
    assert np.abs(bedroom.clearance(points) - np.minimum(exact, 1.0)).max() < 0.013


def flood_fill(floor: Floor, start: np.ndarray, angle: float) -> set[tuple[int, int]]:
    """Breadth-first search that tests the clearance at the midpoint and the end of each step."""
    turn = np.radians(angle)
    east, north = np.array([np.cos(turn), -np.sin(turn)]), np.array([np.sin(turn), np.cos(turn)])

    def fits(cell) -> bool:
        return bool(floor.clearance(start + GRID * (cell[0] * east + cell[1] * north)) >= BODY_RADIUS)

    visited, queue = {(0, 0)}, deque([(0, 0)])
    while queue:
        x, y = queue.popleft()
        for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            there, middle = (x + dx, y + dy), (x + dx / 2, y + dy / 2)
            if there not in visited and fits(there) and fits(middle):
                visited.add(there)
                queue.append(there)
    return visited


@given(angle=st.floats(0, 359), pick=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_grid_turned_by_any_angle_is_what_a_flood_fill_finds(bedroom, angle, pick):
    positions = bedroom.reachable().positions
    start = positions[pick % len(positions)]
    grid = bedroom.grid(start, angle)
    assert {tuple(cell) for cell in grid.cells.tolist()} == flood_fill(bedroom, start, angle)


@given(angle=st.one_of(st.just(0.0), st.floats(0, 359)), pick=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_a_grid_is_the_same_with_and_without_the_cached_one(bedroom, uncached, angle, pick):
    """Down to the order of its positions and steps: games and records depend on it."""
    positions = bedroom.reachable().positions
    start = positions[pick % len(positions)]
    cached, computed = bedroom.grid(start, angle), uncached.grid(start, angle)
    assert (cached.start == computed.start).all() and cached.angle == computed.angle
    assert cached.cells.tolist() == computed.cells.tolist()
    assert (cached.graph.toarray() == computed.graph.toarray()).all()
    assert cached.graph.indices.tolist() == computed.graph.indices.tolist()
    assert bedroom.positions(start, angle).tolist() == computed.positions.tolist()
    assert angle or positions.tolist() == computed.positions.tolist()


def test_steps_are_where_the_middle_is_free(bedroom):
    """Each edge is stored once, between neighbors with clearance between them."""
    grid = bedroom.grid(bedroom.reachable().positions[7], 20.0)
    at = grid.positions
    near = np.argwhere(np.triu(np.abs(np.linalg.norm(at[:, None] - at[None], axis=-1) - GRID) < 1e-6))
    free = bedroom.clearance((at[near[:, 0]] + at[near[:, 1]]) / 2) >= BODY_RADIUS
    assert 0 < free.sum() < len(free)
    assert sorted(zip(*grid.graph.nonzero(), strict=True)) == sorted(map(tuple, near[free].tolist()))


def test_neighbors_and_paths(bedroom):
    grid = bedroom.reachable()
    table = grid.neighbors()
    for direction, back in ((0, 2), (1, 3)):
        here = np.flatnonzero(table[:, direction] >= 0)
        assert (table[table[here, direction], back] == here).all()
    steps = grid.distances(0)
    assert steps[0] == 0 and (steps >= 0).all() and np.isfinite(steps).all()
    target = int(steps.argmax())
    path = grid.path(0, target)
    assert len(path) == steps[target] + 1 and path[0] == 0 and path[-1] == target
    assert np.linalg.norm(np.diff(grid.positions[path], axis=0), axis=1) == pytest.approx(GRID)


def test_a_thing_in_the_way_is_walked_around():
    """A chest in a corridor 1 m wide leaves 0.25 m beside it: no body passes."""
    chest = Thing("Dresser", "Dresser", (0, 0.125, 0), 0, (0.4, 0.75, 0.8))
    corridor = floor_of(hut(chest, width=6, depth=1.0))
    assert (corridor.reachable().positions[:, 0] < 0).all() or (corridor.reachable().positions[:, 0] > 0).all()


def test_what_lies_flat_is_walked_over():
    rug = Thing("Rug", "Rug", (0, 0, 0), 0, (2.0, 2.0, 0.01))
    assert len(floor_of(hut(rug)).reachable()) == 15 * 15


def test_a_place_in_a_wall_is_refused(bare):
    with pytest.raises(ValueError, match=r"no body can stand at \(1\.95, 0\.00\)"):
        bare.grid((1.95, 0.0))
    with pytest.raises(ValueError, match="no body can stand"):
        bare.grid((9.0, 0.0))
    with pytest.raises(ValueError, match=r"no body can stand at \(1\.95, 0\.00\)"):
        bare.positions((1.95, 0.0), 30.0)
    with pytest.raises(ValueError, match="not one of the 225 reachable positions"):
        bare.reachable().index((0.1, 0.0))


def test_stacked_floors_agree_with_each_floor(bare, bedroom):
    floors = Floors([bare, bedroom])
    rng = np.random.default_rng(1)
    room = rng.integers(2, size=400)
    points = rng.uniform(-4, 4, (400, 2))
    each = np.where(room == 0, bare.clearance(points), bedroom.clearance(points))
    assert np.abs(floors.clearance(room, points) - each).max() < 1e-5


def test_open_drawers_are_in_the_way_and_closed_ones_are_not(chest):
    floors = Floors([chest.floor])
    point, room = np.array([[0.0, 1.1]]), np.array([0])
    closed, drawer_open = np.array([[False, False]]), np.array([[True, False]])
    assert floors.free(room, point, closed)[0]
    assert not floors.free(room, point, drawer_open)[0]
    assert floors.swept_by(room, point, np.array([0]))[0]
    assert not floors.swept_by(room, np.array([[0.0, 0.2]]), np.array([0]))[0]


def test_axis_rotation_is_right_handed():
    assert np.allclose(axis_rotation(np.array([0, 0, 1.0]), np.pi / 2) @ [1, 0, 0], [0, 1, 0])


def test_a_floor_without_a_thing_is_that_of_a_room_without_it():
    """Exact up to the body's radius, which is all that walking asks."""
    room = make_room("FloorPlan203")
    shapes = tuple(catalog.shape_of(thing, room) for thing in room.things)
    floor = Floor(room, shapes)
    gone = [k for k, thing in enumerate(room.things) if thing.type in ("Sofa", "Box", "CoffeeTable", "ArmChair")]
    kept = [k for k in range(len(room.things)) if k not in gone]
    others = tuple(replace(room.things[k], inside="") for k in kept)
    expected = Floor(replace(room, things=others), tuple(shapes[k] for k in kept))
    patched = floor.without(gone[:1]).without(gone[1:])
    limit = BODY_RADIUS + MAP_PITCH
    assert np.minimum(patched.map, limit) == pytest.approx(np.minimum(expected.map, limit), abs=1e-9)
    assert (patched.map != floor.map).any()
