"""Placements, on pixel counts written by hand, and on those of objects in a drawer and before it."""

import numpy as np
import pytest

from scrubjay.game.placement import dropped_counts, fullest_target, hits, modality_counts, placed
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World


def counts(seen: dict, alone: dict, contained: bool) -> np.ndarray:
    grids = np.zeros((2, 1, 7, 7), int)
    for grid, pixels in zip(grids, (seen, alone), strict=True):
        for cell, number in pixels.items():
            grid[0][cell] = number
    return modality_counts(grids[0], grids[1], np.array([contained]))


def target(*numbers: int) -> np.ndarray:
    return np.array([numbers])


def test_modalities_by_hand():
    cells = counts({(3, 3): 20}, {(3, 3): 50, (4, 3): 5}, True)[0]
    assert cells[0, 3, 3] == 20 and cells[1, 3, 3] == 50 and cells[2, 3, 3] == 30
    assert cells[1, 4, 3] == cells[2, 4, 3] == 5
    assert counts({(3, 3): 20}, {(3, 3): 50}, False)[0][1].sum() == 0


def test_the_cell_with_most_pixels_is_hit_and_those_within_five_percent():
    cells = counts({(2, 2): 100, (2, 3): 95, (2, 4): 94}, {(2, 2): 100, (2, 3): 95, (2, 4): 94}, False)
    assert hits(cells, target(0, 2, 2)) and hits(cells, target(0, 2, 3))
    assert not hits(cells, target(0, 2, 4)) and not hits(cells, target(2, 2, 2))


@pytest.mark.parametrize(("pixels", "enough"), [(10, False), (11, True)])
def test_more_than_ten_pixels(pixels, enough):
    assert hits(counts({(0, 0): pixels}, {(0, 0): pixels}, False), target(0, 0, 0))[0] == enough


def test_contained_and_behind_may_be_a_row_off_and_on_top_may_not():
    hidden = counts({}, {(4, 1): 40}, True)
    assert hits(hidden, target(1, 4, 1)) and hits(hidden, target(2, 4, 1))
    for row in (3, 5):
        assert not hits(hidden, target(1, row, 1)) and placed(hidden, target(1, row, 1))
        assert placed(hidden, target(2, row, 1))
    assert not placed(hidden, target(1, 2, 1)) and not placed(hidden, target(1, 4, 2))
    seen = counts({(4, 1): 40}, {(4, 1): 40}, False)
    assert placed(seen, target(0, 4, 1)) and not placed(seen, target(0, 3, 1))


def test_a_tie_between_modalities_is_decided_for_contained():
    """In full view inside a container an object has as many pixels on top; a cell in front of it hides none or some."""
    at = {(2, 3): 40, (2, 4): 40}
    inside = counts(at, at, True)
    assert hits(inside, target(0, 2, 3)) and hits(inside, target(1, 2, 3)), "both are hit, as printed"
    assert fullest_target(inside).tolist() == [49 + 2 * 7 + 3]
    assert fullest_target(counts(at, at, False)).tolist() == [2 * 7 + 3]
    assert fullest_target(counts({}, at, True)).tolist() == [49 + 2 * 7 + 3], "in something shut: behind it as well"
    assert fullest_target(counts({}, at, False)).tolist() == [2 * 49 + 2 * 7 + 3]
    half = counts({(2, 3): 20}, {(2, 3): 40}, False)
    assert fullest_target(half).tolist() == [2 * 7 + 3], "as many are seen as are hidden"
    both = np.concatenate([inside, half])
    assert fullest_target(both).tolist() == [49 + 17, 17]


def test_rows_outside_the_image_are_no_neighbors():
    edge = counts({}, {(0, 0): 40}, True)
    assert placed(edge, target(1, 0, 0)) and placed(edge, target(1, 1, 0)) and not placed(edge, target(1, 6, 0))
    bottom = counts({}, {(6, 0): 40}, True)
    assert placed(bottom, target(1, 6, 0)) and placed(bottom, target(1, 5, 0)) and not placed(bottom, target(1, 0, 0))


@pytest.mark.parametrize("size", [112, 224])
def test_the_pixels_of_dropped_objects_in_an_open_and_a_closed_drawer_and_before_it(chest, size):
    """Four worlds; the object of the last one, on the floor, is not asked for."""
    in_drawer, on_floor = [0.0, 1.25, 0.72, 1, 0, 0, 0], [0.0, 0.7, 0.05, 1, 0, 0, 0]
    with World([chest], 4, size=size) as world:
        for b in range(4):
            world.set_agent_pose(b, AgentPose(0.0, 0.25, 0.0, True))
        world.state.goal[:] = GOALS.index("Tomato")
        world.state.pose[:] = in_drawer, [*in_drawer[:1], 1.7, *in_drawer[2:]], on_floor, on_floor
        world.state.open[0, 0] = True
        found = dropped_counts(world, np.array([True, True, True, False]))
        assert found.shape == (3, 3, 7, 7)
        on_top, contained, behind = found.sum((2, 3)).T
        seen, alone = ((224 / size) ** 2 * mask.sum((1, 2)).numpy() for mask in world.goal_pixels())
    assert (alone >= seen).all() and 0 < seen[0] <= alone[0] and seen[1] == 0 < alone[1] and seen[2] > 0
    assert on_top == pytest.approx(seen[:3]) and (on_top + behind) == pytest.approx(alone[:3])
    assert contained == pytest.approx([alone[0], alone[1], 0]), "the one on the floor is in nothing"
