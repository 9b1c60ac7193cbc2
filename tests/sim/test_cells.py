"""Cells of images: pixel counts and openables at their centers, against loops over pixels."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.sim.cells import CELLS, openables_at, openables_at_cells, pixels_of, pixels_per_cell, reference_pixels
from scrubjay.sim.render.base import View


def test_counts_by_hand():
    mask = torch.zeros(1, 14, 14, dtype=torch.bool)
    mask[0, 0, 0] = mask[0, 1, 1] = mask[0, 13, 2] = True
    counts = pixels_per_cell(mask)
    assert counts.shape == (1, CELLS, CELLS)
    assert counts[0, 0, 0] == 2 and counts[0, 6, 1] == 1 and counts.sum() == 3


def openable_by_loop(ids, table, row, column) -> tuple[int, int]:
    """Every pixel within 8 of the cell's center, one by one; the nearest openable one wins, upper left first."""
    middle = (row * 32 + 16, column * 32 + 16)
    best = None
    for y in range(middle[0] - 8, middle[0] + 9):
        for x in range(middle[1] - 8, middle[1] + 9):
            away = (y - middle[0]) ** 2 + (x - middle[1]) ** 2
            thing = ids[y, x]
            if away <= 64 and thing >= 0 and table[thing] >= 0 and (best is None or away < best[0]):
                best = (away, int(table[thing]), y * 224 + x)
    return (best[1], best[2]) if best else (-1, -1)


def test_openables_at_cells_are_what_a_loop_finds():
    rng = np.random.default_rng(0)
    blocks = rng.integers(-1, 12, (2, 28, 28))
    ids = np.kron(blocks, np.ones((8, 8), int))
    table = np.where(rng.random((2, 13)) < 0.15, rng.integers(0, 5, (2, 13)), -1)
    table[:, -1] = -1
    openables, pixel = openables_at_cells(torch.from_numpy(ids).to(torch.int16), torch.from_numpy(table))
    for b in range(2):
        for row in range(CELLS):
            for column in range(CELLS):
                openable, at = openable_by_loop(ids[b], table[b], row, column)
                assert openables[b, row, column] == openable
                assert openable == -1 or pixel[b, row, column] == at


def test_smaller_images_have_a_smaller_neighborhood():
    ids = torch.full((1, 112, 112), -1, dtype=torch.int16)
    ids[0, 8 + 4, 8] = ids[0, 8 + 16, 8 + 21] = 0
    for number in (3, 0):
        openables, _ = openables_at_cells(ids, torch.tensor([[number, -1]]))
        assert openables[0, 0, 0] == number
        assert openables[0, 1, 1] == -1


@given(seed=st.integers(0, 10**6), size=st.sampled_from([7, 56, 112, 224]))
@settings(max_examples=20, deadline=None)
def test_one_cell_of_each_image_is_the_same_among_all(seed, size):
    rng = np.random.default_rng(seed)
    ids = torch.from_numpy(rng.integers(-1, 40, (5, size, size))).to(torch.int16)
    depth, table = torch.from_numpy(rng.random((5, size, size), np.float32)), torch.full((5, 41), -1)
    table[:, :3] = torch.from_numpy(rng.integers(0, 9, (5, 3)))
    row, column = rng.integers(-1, CELLS, (2, 5))
    all_openables, pixel = openables_at_cells(ids, table)
    openable, at, distance = openables_at(View(ids=ids, depth=depth), table, row, column)
    for b in range(5):
        if row[b] < 0 or column[b] < 0:
            assert openable[b] == -1
            continue
        assert openable[b] == all_openables[b, row[b], column[b]] and at[b] == pixel[b, row[b], column[b]]
        assert distance[b] == depth[b].flatten()[int(at[b])]


def test_the_pixels_of_a_thing_by_hand():
    ids = torch.tensor([[[0, 1], [1, -1]], [[2, 1], [0, -1]]], dtype=torch.int16)
    assert pixels_of(ids, np.array([1, -2])).tolist() == [[[False, True], [True, False]], [[False] * 2] * 2]
    with pytest.raises(ValueError, match="expected one thing for each of 2 images, not 1"):
        pixels_of(ids, np.array([1]))


def test_pixels_are_counted_as_in_images_of_224():
    """A square of 3 x 3 pixels in a quarter of the image has 12 x 12 in the whole one."""
    counts = np.array([[0, 3], [9, 10]])
    assert reference_pixels(counts, 224) is counts
    assert reference_pixels(counts, 112).tolist() == [[0, 12], [36, 40]]
    assert reference_pixels(np.array(9), 56) == 12 * 12
