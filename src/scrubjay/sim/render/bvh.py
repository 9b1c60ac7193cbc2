"""Bounding volume hierarchies over triangles, built in NumPy level by level for many trees at once.

Each step splits all nodes of one depth: triangles are binned along each axis, and a node is split where the
surface-area heuristic is least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAF = 2
"""Nodes with at most this many triangles are leaves."""
BINS = 12
LEAF_BITS = 3
"""Of a leaf's reference, which hold its count; the rest is its first triangle."""


@dataclass(frozen=True)
class Trees:
    """Trees over one list of triangles."""

    nodes: np.ndarray
    """(n, 4, 4) float32: low and high corner of the left child, then of the right; references in the first two rows'
    last column, as bits of int32: a node's number, or for a leaf the complement of (first triangle << LEAF_BITS |
    count)."""
    order: np.ndarray
    """(m,): which triangle is where, leaf by leaf."""
    roots: np.ndarray
    """(trees,) numbers of nodes."""

    def moved(self, first_node: int, first_triangle: int) -> np.ndarray:
        """The nodes, with references into larger arrays."""
        nodes = self.nodes.copy()
        references = nodes[:, :2, 3].view(np.int32)
        shifted = np.where(references >= 0, references + first_node, references - (first_triangle << LEAF_BITS))
        nodes[:, :2, 3] = shifted.astype(np.int32).view(np.float32)
        return nodes


def build(corners: np.ndarray, counts: list[int]) -> Trees:
    """Trees over the triangles (m, 3, 3), of which each tree has the next `counts` ones."""
    low, high = corners.min(1), corners.max(1)
    middle = (low + high) / 2
    order = np.arange(len(corners))
    size = np.array(counts)
    start = np.cumsum(size) - size
    nodes: list[np.ndarray] = []
    made = len(size)
    while len(start):
        order, left = _split(order, start, size, low, high, middle)
        level = np.zeros((len(start), 4, 4), np.float32)
        references = np.zeros((len(start), 2), np.int64)
        begins = np.stack([start, start + left], 1)
        sizes = np.stack([left, size - left], 1)
        inner = sizes > LEAF
        references[inner] = made + np.arange(inner.sum())
        references[~inner] = ~((begins[~inner] << LEAF_BITS) | sizes[~inner])
        made += int(inner.sum())
        for side in (0, 1):
            lower, upper = _bounds(order, begins[:, side], sizes[:, side], low, high)
            level[:, 2 * side, :3], level[:, 2 * side + 1, :3] = lower, upper
        level[:, :2, 3] = references.astype(np.int32).view(np.float32)
        nodes.append(level)
        start, size = begins[inner], sizes[inner]
    return Trees(np.concatenate(nodes), order, np.arange(len(counts)))


def _bounds(order, start, size, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The boxes (k, 3) around runs of triangles; an empty run's is inverted, so that no ray hits it."""
    lower = np.full((len(start), 3), np.inf)
    upper = -lower
    there = size > 0
    if there.any():
        index, runs = _gathered(start[there], size[there])
        lower[there] = np.minimum.reduceat(low[order[index]], runs)
        upper[there] = np.maximum.reduceat(high[order[index]], runs)
    return lower, upper


def _gathered(start: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places in runs, one run after another, and where each run begins among them."""
    runs = np.cumsum(size) - size
    return np.arange(size.sum()) - np.repeat(runs - start, size), runs


def _split(order, start, size, low, high, middle) -> tuple[np.ndarray, np.ndarray]:
    """Reorders each run so that its left part comes first; returns the order and the left parts' sizes.

    Runs of no more than a leaf's triangles, which only roots can be, stay whole: all of them are the left part.
    """
    index, runs = _gathered(start, size)
    triangles = order[index]
    run = np.repeat(np.arange(len(start)), size)
    best = np.full(len(start), np.inf)
    goes_right = np.zeros(len(index), bool)
    least, most = (f.reduceat(middle[triangles], runs) for f in (np.minimum, np.maximum))
    for axis in range(3):
        extent = most[:, axis] - least[:, axis]
        scale = np.where(extent > 1e-9, BINS * (1 - 1e-6) / np.maximum(extent, 1e-9), 0)
        bins = ((middle[triangles, axis] - least[run, axis]) * scale[run]).astype(int)
        cost, cut = _cheapest(run * BINS + bins, len(start), low[triangles], high[triangles])
        better = cost < best
        best = np.where(better, cost, best)
        goes_right = np.where(better[run], bins > cut[run], goes_right)
    # Where all centers coincide no plane divides them: half go left.
    stuck = ~np.isfinite(best)
    rank = np.arange(len(index)) - runs[run]
    goes_right = np.where(stuck[run], rank >= (size[run] + 1) // 2, goes_right) & (size[run] > LEAF)
    moved = order.copy()
    moved[index] = triangles[np.argsort(run * 2 + goes_right, kind="stable")]
    return moved, np.bincount(run[~goes_right], minlength=len(start))


def _cheapest(key: np.ndarray, runs: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each run the least cost of a cut after one of its bins, and that bin; infinite where none divides it."""
    sequence = np.argsort(key, kind="stable")
    held, first, count = np.unique(key[sequence], return_index=True, return_counts=True)
    counts, lower = np.zeros((runs, BINS)), np.full((runs, BINS, 3), np.inf)
    upper = -lower
    counts.reshape(-1)[held] = count
    lower.reshape(-1, 3)[held] = np.minimum.reduceat(low[sequence], first)
    upper.reshape(-1, 3)[held] = np.maximum.reduceat(high[sequence], first)

    def costs(back: bool) -> np.ndarray:
        step = slice(None, None, -1 if back else 1)
        span = np.maximum.accumulate(upper[:, step], 1) - np.minimum.accumulate(lower[:, step], 1)
        x, y, z = np.maximum(span, 0).transpose(2, 0, 1)
        number = np.cumsum(counts[:, step], 1)
        total = np.where(number > 0, (x * y + y * z + z * x) * number, np.inf)
        return total[:, step]

    cost = costs(False)[:, :-1] + costs(True)[:, 1:]
    cut = cost.argmin(1)
    return cost[np.arange(runs), cut], cut
