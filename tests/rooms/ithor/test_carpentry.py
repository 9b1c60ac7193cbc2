"""Boards fill what is left of a box, and nothing else; counters run along walls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.rooms.catalog.boards import as_options, of_options
from scrubjay.rooms.catalog.joinery import REACH
from scrubjay.rooms.ithor.boxes import Box, box_of
from scrubjay.rooms.ithor.carpentry import GAP, THIN, fill, furniture_boards
from scrubjay.rooms.ithor.counters import base, cut_counter, slabs

CENTIMETERS = st.integers(0, 20).map(lambda n: n / 20)


@st.composite
def holes(draw):
    a, b = (np.array(draw(st.tuples(CENTIMETERS, CENTIMETERS, CENTIMETERS))) for _ in range(2))
    return np.minimum(a, b), np.maximum(a, b)


@given(st.lists(holes(), max_size=5), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_point_is_in_one_board_or_in_a_hole(cut, seed):
    boards = fill(np.zeros(3), np.ones(3), cut)
    points = np.random.default_rng(seed).uniform(0, 1, (300, 3))

    def inside(box, margin):
        return ((points > box[0] - margin) & (points < box[1] + margin)).all(1)

    count = sum((inside(board, 0.0).astype(int) for board in boards), np.zeros(300, int))
    hole = np.any([np.zeros(300, bool), *(inside(box, GAP) for box in cut)], axis=0)
    planes = np.array([end for box in cut for end in box]).reshape(-1, 3)
    sliver = (np.abs(points[:, None] - planes) < GAP + THIN).any((1, 2))
    assert (count <= 1).all() and not (count[hole] > 0).any()
    assert (count[~hole & ~sliver] == 1).all(), "only slivers are left out"


def test_a_dresser_by_hand():
    """One drawer in the middle of a block: a top, and boards on all sides of the drawer but its front."""
    drawer = (np.array([-0.3, -0.2, 0.1]), np.array([0.3, 0.25, 0.4]))
    boards = furniture_boards(np.array([0.8, 0.5, 0.5]), [drawer], 0.5)
    assert max(high[2] for _, high in boards) == 0.5 and min(low[2] for low, _ in boards) == 0.0
    assert max(high[1] for _, high in boards if high[2] < 0.47) < 0.25, "the drawer's front is before the boards"
    middle = np.array([0, 0, 0.25])
    assert not any((low < middle).all() and (high > middle).all() for low, high in boards)


def test_a_desk_has_legs_where_it_has_no_drawers():
    drawer = (np.array([0.3, -0.25, 0.1]), np.array([0.7, 0.25, 0.6]))
    boards = furniture_boards(np.array([1.5, 0.6, 0.75]), [drawer], 0.75)
    legs = [(low, high) for low, high in boards if low[2] == 0 and (high - low)[:2].max() < 0.1]
    assert [np.sign(low[0]) for low, _ in legs] == [-1, -1]


L_SHAPE = [np.array([0, 0, 0.6, 2.0]), np.array([0.6, 0, 3.0, 0.6])]


ROOM = np.array([0, 0, 5, 5.0])


def test_a_counter_around_a_corner():
    """Cabinets along two walls, and a table in the corner's inside."""
    cabinets = [np.array([0, 0.7, 0.58, 1.9]), np.array([0.7, 0, 2.9, 0.58])]
    counter = cut_counter(np.array([0, 0, 3, 2.0]), 0.9, cabinets, [np.array([1.5, 1.0, 2.5, 1.8])], ROOM)
    assert np.allclose(sorted(map(tuple, counter.strips)), sorted(map(tuple, L_SHAPE)), atol=0.051)
    assert counter.fronts(np.array([0.3, 1.5, 0])) == [90.0] and counter.fronts(np.array([2.0, 0.3, 0])) == [0.0]
    assert sorted(counter.fronts(np.array([0.3, 0.3, 0]))) == [0.0, 90.0], "in the corner it may be either"


def test_what_strips_do_not_cover_is_an_island():
    walls = [np.array([0, 0.1, 0.5, 2.9]), np.array([0.7, 0, 2.9, 0.5])]
    counter = cut_counter(np.array([0, 0, 3, 3.0]), 0.9, [*walls, np.array([1.6, 1.6, 2.4, 2.2])], [], ROOM)
    assert len(counter.strips) == 3
    west, south, east, north = counter.strips[-1]
    assert 1.5 < west < 1.7 < 2.3 < east < 2.6 and 1.5 < south < 1.7 < 2.1 < north < 2.4
    assert counter.fronts(np.array([2.0, 1.9, 0])) == []


def test_an_island_is_one_rectangle_and_a_run_at_a_wall_faces_away_from_it():
    hull = np.array([1.0, 1.0, 2.2, 3.0])
    assert np.allclose(cut_counter(hull, 0.9, [], [], ROOM).strips, [hull])
    run = cut_counter(np.array([1.0, 4.4, 3.0, 5.0]), 0.9, [], [], ROOM)
    assert run.fronts(np.array([2.0, 4.7, 0])) == [180.0]


def test_a_sink_is_cut_out_of_the_slab_and_a_drawer_out_of_the_base():
    sink = (np.array([1.0, 0.1, 0.7]), np.array([1.6, 0.5, 0.9]))
    drawer = (np.array([2.0, 0.2, 0.6]), np.array([2.5, 0.6, 0.8]))
    tops, under = slabs(L_SHAPE, 0.9, [sink]), base(L_SHAPE, 0.9, [sink, drawer], [], ROOM)
    area = sum(np.prod((high - low)[:2]) for low, high in tops)
    assert area == pytest.approx(1.2 + 1.44 - 0.604 * 0.404, abs=0.01)
    assert max(high[1] for _, high in under if high[0] > 1) == pytest.approx(0.57), "set back from the room"
    for low, high in under:
        assert not ((low + 0.001 < drawer[1]) & (high - 0.001 > drawer[0])).all()


def test_a_base_is_flush_with_the_fronts_in_it():
    cabinet = Box(np.array([1.5, 0.3, 0.1]), 0.0, np.array([0.5, 0.4, 0.6]))
    boards = base(L_SHAPE, 0.9, [], [cabinet], ROOM)
    assert max(high[1] for _, high in boards if high[0] > 1) == pytest.approx(0.5 - REACH)


def test_boards_survive_as_options():
    boards = [(np.array([-0.1, 0, 0.2]), np.array([0.1, 0.5, 0.3])), (np.zeros(3), np.ones(3))]
    assert np.allclose(of_options(as_options(boards)), boards)
    assert of_options({"hinge": 1.0}) == []


def test_a_box_turns_about_its_middle():
    box = Box(np.array([1, 2, 0.5]), 30.0, np.array([0.4, 0.2, 0.1]))
    assert np.allclose(box.turned(120.0).size, [0.2, 0.4, 0.1]) and box.turned(120.0).yaw == 120.0
    assert np.allclose(box.turned(120.0).low, box.low) and np.allclose(box.turned(210.0).high, box.high)


def record(corners=None, size=(1.0, 1.0, 1.0), yaw=0.0):
    center = {"x": 0.0, "y": 0.5, "z": 0.0}
    box = {"center": center, "size": dict(zip("xyz", size, strict=True))}
    oriented = None if corners is None else {"cornerPoints": corners}
    rotation = {"x": 0.0, "y": yaw, "z": 0.0}
    return {"rotation": rotation, "axisAlignedBoundingBox": box, "objectOrientedBoundingBox": oriented}


def test_an_oriented_box_keeps_its_yaw_and_its_sides():
    """A book of 0.3 by 0.2 by 0.05, rotated by 30 degrees clockwise in Unity: x and z are ours x and y."""
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    right, ahead, up = np.array([c, 0, -s]) * 0.3, np.array([s, 0, c]) * 0.2, np.array([0, 0.05, 0])
    corners = [i * right + j * ahead + k * up for k in (0, 1) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    extent = (0.3 * c + 0.2 * s, 0.05, 0.3 * s + 0.2 * c)
    box = box_of(record([list(corner) for corner in corners], extent, yaw=30.0))
    assert box.yaw == pytest.approx(30.0, abs=0.01) and np.allclose(box.size, [0.3, 0.2, 0.05], atol=1e-4)
    can = box_of(record([list(corner) for corner in corners], tuple(0.8 * side for side in extent), yaw=30.0))
    assert np.allclose(can.size, [0.24, 0.16, 0.04], atol=1e-4), "it fits into the box that is smaller"


def test_a_straight_box_turned_by_a_quarter_swaps_its_sides():
    box = box_of(record(size=(2.0, 0.5, 1.0), yaw=270.0))
    assert np.allclose(box.size, [1.0, 2.0, 0.5]) and box.yaw == 270.0


def test_an_oblique_box_has_the_extent_of_the_table():
    box = box_of(record(size=(2.0, 0.5, 1.5), yaw=20.0))
    assert np.allclose((box.high - box.low)[:2], [2.0, 1.5], atol=1e-6)
