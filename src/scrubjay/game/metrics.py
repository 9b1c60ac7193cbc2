"""The paper's measures of exploring, hiding, placing and seeking, one small function each, for one game.

Visited places are integer rows (i, j, quarter, standing), (n, 4): i and j count steps of 0.25 m on the game's grid from
its start, as `Grid.cells` does, and quarter counts turns of 90 degrees clockwise from the grid's own angle. The
reachable places are the grid's positions, found with everything closed, each in four rotations and two heights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.rooms.catalog import mesh
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.floor import GRID, Grid
from scrubjay.sim.pose import HEIGHTS

CONFIDENCE = 0.95


def lattice(grid: Grid, position: np.ndarray, rotation: np.ndarray, standing: np.ndarray) -> np.ndarray:
    """Places as integer rows (n, 4), from positions (n, 2), rotations in degrees (n,) and standing (n,)."""
    cells = np.round((np.asarray(position, float) - grid.start) @ mesh.rotation("z", -grid.angle)[:2, :2] / GRID)
    quarter = np.round((np.asarray(rotation, float) - grid.angle) / 90) % 4
    return np.column_stack([cells, quarter, standing]).astype(int)


# Exploration and mapping.


def extrapolated(visited: np.ndarray) -> np.ndarray:
    """The places (m, 4) a step ahead of visited ones (n, 4), and from there none, one left or one right; each once.

    What is in the way does not matter, and a visited place is among them only if another one leads there.
    """
    quarter = visited[:, 2]
    onward = COMPASS[quarter]
    steps = (onward, onward + COMPASS[(quarter - 1) % 4], onward + COMPASS[(quarter + 1) % 4])
    return np.unique(
        np.concatenate([np.column_stack([visited[:, :2] + step, visited[:, 2:]]) for step in steps]), axis=0
    )


def coverage(visited: np.ndarray, grid: Grid) -> float:
    """Which share of the reachable positions and heights the places (n, 4) hold, rotation ignored."""
    return len(_without_rotation(visited, grid)) / (HEIGHTS * len(grid))


def coverage_plus(visited: np.ndarray, grid: Grid) -> float:
    """The same of the places that the visited ones (n, 4) lead to."""
    return coverage(extrapolated(visited), grid)


def opened_share(ever_opened: np.ndarray) -> float:
    """Which share of the openables (k,) bool was opened; nan in a room without any."""
    return _mean(ever_opened)


# Hiding.


def visible_from_share(visible: np.ndarray) -> float:
    """The share of reachable places from which the object is seen, for `visible_from`'s (positions, 2, 4)."""
    return float(visible.mean())


def bfs_order(grid: Grid, start: int) -> np.ndarray:
    """The positions (n,) in the order of the steps to them from one, ties by number."""
    return np.argsort(grid.distances(start), kind="stable")


def bfs_found(visible_through: np.ndarray) -> bool:
    """Does a searcher that sees through openables (positions, 2, 4) find the object from any position?"""
    return bool(visible_through.any())


def bfs_steps(grid: Grid, start: int, visible_through: np.ndarray) -> int:
    """How many positions the searcher looks from until it sees the object; all of them if it never does."""
    seen = np.isin(bfs_order(grid, start), np.nonzero(visible_through)[0])
    return int(seen.argmax()) + 1 if seen.any() else len(grid)


def bfs_steps_share(grid: Grid, start: int, visible_through: np.ndarray) -> float:
    """The same as a share of all positions."""
    return bfs_steps(grid, start, visible_through) / len(grid)


# Manipulation.


def hit_target(hits: np.ndarray) -> float:
    """Which share of a game's manipulation episodes (k,) bool put the object where it was to go; nan without any."""
    return _mean(hits)


# Seeking, from what the seeker did at each step: (steps,) bool was it a claim, and did it succeed.


def seeker_found(claimed: np.ndarray, succeeded: np.ndarray) -> bool:
    """Did a claim succeed within the budget?"""
    return bool((claimed & succeeded)[:SEEKER_STEPS].any())


def seeker_steps(claimed: np.ndarray, succeeded: np.ndarray) -> int:
    """Steps up to the successful claim, it included; the whole budget if there is none."""
    found = (claimed & succeeded)[:SEEKER_STEPS]
    return int(found.argmax()) + 1 if found.any() else SEEKER_STEPS


def false_claims(claimed: np.ndarray, succeeded: np.ndarray) -> int:
    """How many claims failed."""
    return int((claimed & ~succeeded)[:SEEKER_STEPS].sum())


# Many games.


class Summary(NamedTuple):
    """A mean over games, the ends of its 95 % confidence interval, and of how many games."""

    mean: float
    low: float
    high: float
    games: int


def summary(values: np.ndarray) -> Summary:
    """The mean of a measure over games (n,): Wilson's interval for bool, which are yes or no, else Student's t.

    Games in which a measure does not exist (nan) are left out. One number has a mean and no interval.
    """
    values = np.asarray(values)
    if values.dtype == bool:
        return _wilson(values)
    values = values.astype(float)
    values = values[~np.isnan(values)]
    count = len(values)
    if count < 2:
        return Summary(_mean(values), np.nan, np.nan, count)
    middle = float(values.mean())
    half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / np.sqrt(count))
    return Summary(middle, middle - half, middle + half, count)


def _wilson(outcomes: np.ndarray) -> Summary:
    count = len(outcomes)
    if not count:
        return Summary(np.nan, np.nan, np.nan, 0)
    share, z = float(outcomes.mean()), float(ndtri((1 + CONFIDENCE) / 2))
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * float(np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)))
    # At 0 and at 1 one end is exactly there, but for rounding.
    return Summary(share, min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share), count)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _without_rotation(places: np.ndarray, grid: Grid) -> np.ndarray:
    """The reachable ones among places (n, 4) as rows (i, j, standing), each once."""
    rows = np.unique(places[:, [0, 1, 3]], axis=0)
    low, high = grid.cells.min(0), grid.cells.max(0)
    rows = rows[((rows[:, :2] >= low) & (rows[:, :2] <= high)).all(1)]
    there = np.zeros(high - low + 1, bool)
    there[tuple((grid.cells - low).T)] = True
    return rows[there[tuple((rows[:, :2] - low).T)]]
