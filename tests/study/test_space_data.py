"""Free space: counted by hand in a small room, and sequences that turn round twice."""

from __future__ import annotations

import numpy as np

from scrubjay.sim.compile import CompiledRoom
from scrubjay.study.dynamic_experiments import space_examples
from scrubjay.study.sequences import SequenceData
from scrubjay.study.space_data import SCALES, SpaceScale, free_space, make_space_data


def test_free_space_is_counted_as_by_hand(empty: CompiledRoom):
    """The camera is 1.58 m high and sees floor from 0.42 m ahead on: 75 degrees down. On the grid of 0.25 m, within
    1.5 m, that is 9 positions 0.5 m ahead (the view ends 1.22 m aside), then 11 (the circle ends 1.30 m aside), 9, 7
    and 1."""
    grid = empty.floor.reachable().positions
    middle = grid[np.abs(grid).sum(1).argmin()]
    assert np.abs(middle).max() <= 0.125 and np.abs(grid).max() > 1.6, "the middle of a room of 4 m"
    for rotation in (0.0, 90.0, 180.0, 270.0):
        one = middle[None], np.array([rotation]), np.array([True])
        assert free_space(empty, *one, 1.5)[0] == 9 + 11 + 9 + 7 + 1
        assert free_space(empty, *one, 0.5)[0] == 1 and free_space(empty, *one, 0.4)[0] == 0
    # In the north, facing the wall 0.25 m ahead: nothing of the floor is far enough away to be seen.
    north = grid[grid[:, 1].argmax()]
    assert free_space(empty, north[None], np.array([0.0]), np.array([True]), 1.5)[0] == 0


def test_every_view_is_seen_twice_and_compared_with_the_one_before(tmp_path):
    scale = SpaceScale((1, 1), 3, ("bathroom",))
    make_space_data(tmp_path, scale)
    data = SequenceData(tmp_path, "space")
    assert len(data) == 6 and data.index["split"].tolist() == ["train"] * 3 + ["test"] * 3
    for number in range(len(data)):
        frames = data.frames_of(number)
        images, place, free = data.images(frames), data.read("place", frames), data.read("free", frames)
        assert len(frames) == 8 and np.array_equal(images[:4], images[4:]) and np.array_equal(free[:4], free[4:])
        step = 1 if data.index["turn"][number] == "right" else 3
        assert place[:, 2].tolist() == [step * turn % 4 for turn in range(8)] and (place[:, 3] == 1).all()
        assert (free[:, 0] <= free[:, 1]).all()
    examples = space_examples(data)
    free = data.read("free", np.arange(data.frames))[:, 0].reshape(6, 8).astype(int)
    assert np.array_equal(examples.table.label.reshape(6, 4), free[:, 4:] > free[:, 3:7])
    assert examples.table.train.sum() == examples.table.test.sum() == 12
    before = data.digest
    make_space_data(tmp_path, scale)
    assert SequenceData(tmp_path, "space").digest == before


def test_the_papers_scale_has_all_kitchens_and_living_rooms():
    names = SCALES["paper"].names()
    assert len(names) == 50 and names[0] == "FloorPlan1" and "FloorPlan230" in names and "FloorPlan21" not in names
