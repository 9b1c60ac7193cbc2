"""The image's cells: counts, and what is openable at their centres, against loops over pixels."""

import numpy as np
import torch

from scrubjay.world.cells import CELLS, openables_at_cells, pixels_per_cell


def test_counts_by_hand():
    mask = torch.zeros(1, 14, 14, dtype=torch.bool)
    mask[0, 0, 0] = mask[0, 1, 1] = mask[0, 13, 2] = True
    counts = pixels_per_cell(mask)
    assert counts.shape == (1, CELLS, CELLS)
    assert counts[0, 0, 0] == 2 and counts[0, 6, 1] == 1 and counts.sum() == 3


def slow(ids, table, row, column) -> tuple[int, int]:
    """Every pixel within 8 of the cell's centre, one by one; the nearest openable one wins, upper left first."""
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
    found, pixel = openables_at_cells(torch.from_numpy(ids).to(torch.int16), torch.from_numpy(table))
    for b in range(2):
        for row in range(CELLS):
            for column in range(CELLS):
                openable, at = slow(ids[b], table[b], row, column)
                assert found[b, row, column] == openable
                assert openable == -1 or pixel[b, row, column] == at


def test_smaller_images_have_a_smaller_neighbourhood():
    ids = torch.full((1, 112, 112), -1, dtype=torch.int16)
    ids[0, 8 + 4, 8] = ids[0, 8 + 16, 8 + 21] = 0
    found, _ = openables_at_cells(ids, torch.tensor([[3, -1]]))
    assert found[0, 0, 0] == 3
    assert found[0, 1, 1] == -1
