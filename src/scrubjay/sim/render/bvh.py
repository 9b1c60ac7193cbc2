"""Binned-SAH bounding volume hierarchies over triangles, built in NumPy for many trees at once.

Building goes level by level: all nodes of one depth are split at once, each at the bin boundary with the lowest
surface area heuristic (SAH) cost along any axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MAX_LEAF_SIZE = 2
"""Triangles per leaf."""
BINS = 12
"""SAH bins per axis."""
LEAF_BITS = 3
"""Low bits of a leaf's reference that hold its triangle count; the others hold its first triangle."""


@dataclass(frozen=True)
class BVH:
    """One or more trees over one array of triangles."""

    nodes: np.ndarray
    """(n, 4, 4) float32: rows are the low and high corner of the left child's box, then of the right's. The last column
    of the first two rows holds the children's references as int32 bits: a node's index, or for a leaf the complement
    of (first triangle << LEAF_BITS | count)."""
    order: np.ndarray
    """(m,): triangle indices in leaf order."""
    roots: np.ndarray
    """(trees,) indices of nodes."""

    def nodes_at(self, first_node: int, first_triangle: int) -> np.ndarray:
        """The nodes for larger arrays, in which they and their triangles start at these indices."""
        nodes = self.nodes.copy()
        references = nodes[:, :2, 3].view(np.int32)
        offset = np.where(references >= 0, references + first_node, references - (first_triangle << LEAF_BITS))
        nodes[:, :2, 3] = offset.astype(np.int32).view(np.float32)
        return nodes


def build_bvh(corners: np.ndarray, counts: list[int]) -> BVH:
    """One tree per entry of `counts`, over that many consecutive triangles of corners (m, 3, 3)."""
    low, high = corners.min(1), corners.max(1)
    centroid = (low + high) / 2
    order = np.arange(len(corners))
    size = np.array(counts)
    start = np.cumsum(size) - size
    nodes: list[np.ndarray] = []
    num_nodes = len(size)
    while len(start):
        order, left = _split(order, start, size, low, high, centroid)
        level = np.zeros((len(start), 4, 4), np.float32)
        references = np.zeros((len(start), 2), np.int64)
        begins = np.stack([start, start + left], 1)
        sizes = np.stack([left, size - left], 1)
        inner = sizes > MAX_LEAF_SIZE
        references[inner] = num_nodes + np.arange(inner.sum())
        references[~inner] = ~((begins[~inner] << LEAF_BITS) | sizes[~inner])
        num_nodes += int(inner.sum())
        for side in (0, 1):
            lower, upper = _bounds(order, begins[:, side], sizes[:, side], low, high)
            level[:, 2 * side, :3], level[:, 2 * side + 1, :3] = lower, upper
        level[:, :2, 3] = references.astype(np.int32).view(np.float32)
        nodes.append(level)
        start, size = begins[inner], sizes[inner]
    return BVH(np.concatenate(nodes), order, np.arange(len(counts)))


def _bounds(order, start, size, low, high) -> tuple[np.ndarray, np.ndarray]:
    """Bounding boxes (k, 3) of runs of triangles; an empty run's box is inverted, so that no ray hits it."""
    lower = np.full((len(start), 3), np.inf)
    upper = -lower
    filled = size > 0
    if filled.any():
        index, runs = _run_indices(start[filled], size[filled])
        lower[filled] = np.minimum.reduceat(low[order[index]], runs)
        upper[filled] = np.maximum.reduceat(high[order[index]], runs)
    return lower, upper


def _run_indices(start: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of all runs concatenated, and the offset at which each run begins."""
    runs = np.cumsum(size) - size
    return np.arange(size.sum()) - np.repeat(runs - start, size), runs


def _split(order, start, size, low, high, centroid) -> tuple[np.ndarray, np.ndarray]:
    """Partitions each run into left and right child; returns the new order and the left children's sizes.

    Runs of leaf size, which only roots can be, are not split: the left child gets all of them.
    """
    index, runs = _run_indices(start, size)
    triangles = order[index]
    run = np.repeat(np.arange(len(start)), size)
    best = np.full(len(start), np.inf)
    goes_right = np.zeros(len(index), bool)
    lowest, highest = (f.reduceat(centroid[triangles], runs) for f in (np.minimum, np.maximum))
    for axis in range(3):
        extent = highest[:, axis] - lowest[:, axis]
        scale = np.where(extent > 1e-9, BINS * (1 - 1e-6) / np.maximum(extent, 1e-9), 0)
        bins = ((centroid[triangles, axis] - lowest[run, axis]) * scale[run]).astype(int)
        cost, cut = _best_split(run * BINS + bins, len(start), low[triangles], high[triangles])
        better = cost < best
        best = np.where(better, cost, best)
        goes_right = np.where(better[run], bins > cut[run], goes_right)
    # Coincident centroids cannot be separated by a plane: split them in half.
    degenerate = ~np.isfinite(best)
    rank = np.arange(len(index)) - runs[run]
    goes_right = np.where(degenerate[run], rank >= (size[run] + 1) // 2, goes_right) & (size[run] > MAX_LEAF_SIZE)
    new_order = order.copy()
    new_order[index] = triangles[np.argsort(run * 2 + goes_right, kind="stable")]
    return new_order, np.bincount(run[~goes_right], minlength=len(start))


def _best_split(key: np.ndarray, runs: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per run, the lowest SAH cost of a split after one of its bins, and that bin; infinite if it cannot be split."""
    sequence = np.argsort(key, kind="stable")
    occupied, first, count = np.unique(key[sequence], return_index=True, return_counts=True)
    counts, lower = np.zeros((runs, BINS)), np.full((runs, BINS, 3), np.inf)
    upper = -lower
    counts.reshape(-1)[occupied] = count
    lower.reshape(-1, 3)[occupied] = np.minimum.reduceat(low[sequence], first)
    upper.reshape(-1, 3)[occupied] = np.maximum.reduceat(high[sequence], first)

    def costs(reverse: bool) -> np.ndarray:
        step = slice(None, None, -1 if reverse else 1)
        extent = np.maximum.accumulate(upper[:, step], 1) - np.minimum.accumulate(lower[:, step], 1)
        x, y, z = np.maximum(extent, 0).transpose(2, 0, 1)
        number = np.cumsum(counts[:, step], 1)
        total = np.where(number > 0, (x * y + y * z + z * x) * number, np.inf)
        return total[:, step]

    cost = costs(False)[:, :-1] + costs(True)[:, 1:]
    cut = cost.argmin(1)
    return cost[np.arange(runs), cut], cut
