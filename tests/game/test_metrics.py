"""Metrics worked out by hand in a small empty room, and against slow reference code."""

import math
from collections import deque

import numpy as np
import pytest
from helpers import hut
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.game import metrics
from scrubjay.sim.compile import CompiledRoom, compile_room
from scrubjay.sim.world import World

ROWS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 3), st.integers(0, 1)), min_size=1)


@pytest.fixture(scope="module")
def closet() -> CompiledRoom:
    """A room of 1.2 m by 0.95 m: with a body of 0.2 m its grid about the middle is 3 x 3 positions at most."""
    return compile_room(hut(width=1.2, depth=0.95))


@pytest.fixture(scope="module")
def grid(closet):
    return closet.floor.grid((0.0, 0.0))


def test_the_closet_has_nine_positions(grid):
    assert sorted(map(tuple, grid.cells)) == [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]


def test_lattice_rows_of_a_walk(closet):
    """One step ahead (north), a turn to the right, one ahead (east), a crouch: as rows from the start."""
    with World([closet]) as world:
        world.state.position[0] = (0.0, 0.0)
        grid = world.grid(0)
        seen = []

        def note():
            s = world.state
            seen.append(metrics.lattice(grid, s.position, s.rotation, s.standing)[0].tolist())

        note()
        for act, number in ((world.move, 0), (world.rotate, 1), (world.move, 0), (world.stand, 0)):
            assert act(np.array([number]))[0]
            note()
    assert seen == [[0, 0, 0, 1], [0, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]]


def test_lattice_rows_on_a_turned_grid(empty):
    """Rows do not depend on the grid's rotation."""
    rng = np.random.default_rng(0)
    for angle in (0.0, 17.0, 89.0, 345.0):
        grid = empty.floor.grid((0.1, -0.2), angle)
        rows = np.column_stack([grid.cells, rng.integers(4, size=len(grid)), rng.integers(2, size=len(grid))])
        rotation = (angle + 90 * rows[:, 2]) % 360
        assert (metrics.lattice(grid, grid.positions, rotation, rows[:, 3] == 1) == rows).all()


def test_extrapolation_by_hand():
    """Facing east from the origin: one east, and its northern (left) and southern (right) neighbors."""
    rows = metrics.extrapolated(np.array([[0, 0, 1, 1]]))
    assert rows.tolist() == [[1, -1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]]
    west = metrics.extrapolated(np.array([[0, 0, 3, 0]]))
    assert west.tolist() == [[-1, -1, 3, 0], [-1, 0, 3, 0], [-1, 1, 3, 0]]


def test_coverage_by_hand(grid):
    """18 pairs of position and height; turning adds none, crouching does."""
    walk = np.array([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 0]])
    assert metrics.coverage(walk, grid) == 3 / 18
    # North of (0, 0): (0, 1), (-1, 1), (1, 1). East of it: (1, 0), (1, -1), (1, 1). East of (0, 1): (1, 1), (1, 0)
    # and (1, 2), which is in the wall; and the same two crouching. Five standing and two crouching.
    assert metrics.coverage_plus(walk, grid) == 7 / 18


def test_positions_outside_the_grid_do_not_count(grid):
    """A walk along the northern wall, facing it, adds nothing."""
    walk = np.array([[i, 1, 0, 1] for i in (-1, 0, 1)])
    assert metrics.coverage(walk, grid) == 3 / 18
    assert metrics.coverage_plus(walk, grid) == 0


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_coverage_against_sets(grid, rows):
    visited = np.array(rows)
    steps = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}
    lead = set()
    for i, j, r, s in rows:
        ahead = (i + steps[r][0], j + steps[r][1])
        for side in ((0, 0), steps[(r + 3) % 4], steps[(r + 1) % 4]):
            lead.add((ahead[0] + side[0], ahead[1] + side[1], r, s))
    assert set(map(tuple, metrics.extrapolated(visited).tolist())) == lead
    reachable = {(i, j, r, s) for i, j in grid.cells.tolist() for r in range(4) for s in (0, 1)}

    def without_rotation(places):
        return {(i, j, s) for i, j, _, s in places}

    everywhere = without_rotation(reachable)
    for coverage, places in (
        (metrics.coverage(visited, grid), set(rows)),
        (metrics.coverage_plus(visited, grid), lead),
    ):
        assert coverage == len(without_rotation(places) & everywhere) / len(everywhere)


def test_opened_and_hits():
    assert metrics.opened_share(np.array([True, False, False, True])) == 0.5
    assert math.isnan(metrics.opened_share(np.zeros(0, bool)))
    assert metrics.hit_target(np.array([False, False, True])) == pytest.approx(1 / 3)
    assert math.isnan(metrics.hit_target(np.zeros(0, bool)))


def test_visible_from_share(grid):
    visible = np.zeros((9, 2, 4), bool)
    visible[3, 0, 1] = visible[4, 1, :2] = True
    assert metrics.visible_from_share(visible) == 3 / 72


def test_breadth_first_by_hand(grid):
    """From the middle: itself, its four neighbors by number, then the corners."""
    middle = grid.index((0.0, 0.0))
    number = {tuple(cell): k for k, cell in enumerate(grid.cells.tolist())}
    assert grid.cells.tolist() == sorted(grid.cells.tolist())
    assert metrics.bfs_order(grid, middle).tolist() == [4, 1, 3, 5, 7, 0, 2, 6, 8]
    visible = np.zeros((9, 2, 4), bool)
    assert not metrics.bfs_found(visible)
    assert metrics.bfs_steps(grid, middle, visible) == 9 and metrics.bfs_steps_share(grid, middle, visible) == 1
    visible[number[1, 1], 1, 2] = True
    assert metrics.bfs_found(visible)
    assert metrics.bfs_steps(grid, number[1, 1], visible) == 1
    assert metrics.bfs_steps(grid, middle, visible) == 9  # The last of the corners.
    assert metrics.bfs_steps(grid, number[1, 0], visible) == 4  # The last of its three neighbors.
    visible[middle] = True
    assert metrics.bfs_steps(grid, middle, visible) == 1


@pytest.mark.parametrize("seed", range(5))
def test_breadth_first_against_a_queue(chest, seed):
    rng = np.random.default_rng(seed)
    grid = chest.floor.reachable()
    start = int(rng.integers(len(grid)))
    visible = rng.random((len(grid), 2, 4)) < 0.002
    near = grid.neighbors()
    steps, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for other in near[here]:
            if other >= 0 and other not in steps:
                steps[int(other)] = steps[here] + 1
                queue.append(int(other))
    looked = 0
    for position in sorted(steps, key=lambda k: (steps[k], k)):
        looked += 1
        if visible[position].any():
            break
    assert metrics.bfs_steps(grid, start, visible) == looked
    assert metrics.bfs_found(visible) == bool(visible.any())


def test_seeking_by_hand():
    claimed = np.array([False, True, False, True, True])
    succeeded = np.array([True, False, True, False, True])
    assert metrics.seeker_found(claimed, succeeded)
    assert metrics.seeker_steps(claimed, succeeded) == 5
    assert metrics.false_claims(claimed, succeeded) == 2
    assert not metrics.seeker_found(claimed[:4], succeeded[:4])
    assert metrics.seeker_steps(claimed[:4], succeeded[:4]) == 500
    nothing = np.zeros(0, bool)
    assert metrics.seeker_steps(nothing, nothing) == 500 and metrics.false_claims(nothing, nothing) == 0


def test_students_interval_by_hand():
    """1 to 5: mean 3, standard deviation 1.5811, t(4) at 97.5 % is 2.7764, so 3 +- 1.9632."""
    summary = metrics.summary(np.array([1, 2, 3, 4, 5]))
    assert summary.mean == 3 and summary.games == 5
    assert (summary.low, summary.high) == pytest.approx((1.0368, 4.9632), abs=1e-4)
    assert metrics.summary(np.array([1.0, 2, np.nan, 3, 4, 5])) == summary
    assert metrics.summary(np.array([0.5, 0.5, 0.5])) == (0.5, 0.5, 0.5, 3)
    alone = metrics.summary(np.array([2.0]))
    assert alone.mean == 2 and math.isnan(alone.low) and math.isnan(alone.high)
    assert math.isnan(metrics.summary(np.array([np.nan])).mean)


def test_wilsons_interval_by_hand():
    """8 of 10: (0.8 + 0.19207) / 1.38415 +- 1.95996 / 1.38415 sqrt(0.016 + 0.0096036) is 0.71674 +- 0.22658."""
    summary = metrics.summary(np.array([True] * 8 + [False] * 2))
    assert summary.mean == 0.8
    assert (summary.low, summary.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert metrics.summary(np.zeros(10, bool)).low == 0 and metrics.summary(np.ones(10, bool)).high == 1
    assert metrics.summary(np.zeros(10, bool)).high == pytest.approx(0.2775, abs=1e-4)
    assert math.isnan(metrics.summary(np.zeros(0, bool)).mean)


def test_intervals_have_their_nominal_coverage():
    """Of 2,000 samples of 30, about 95 % of the intervals contain the true mean."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(3.0, 2.0, (2000, 30))
    held = [low <= 3.0 <= high for _, low, high, _ in map(metrics.summary, drawn)]
    assert 0.93 < np.mean(held) < 0.97
    chosen = rng.random((2000, 30)) < 0.1
    held = [low <= 0.1 <= high for _, low, high, _ in map(metrics.summary, chosen)]
    assert 0.92 < np.mean(held) < 0.99
