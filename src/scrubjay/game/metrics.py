"""The paper's metrics of exploring, hiding, placing and seeking, one small function each, for one game.

Visited places are integer rows (i, j, quarter, standing), (n, 4): i and j are steps of 0.25 m on the game's grid from
its start, as in `Grid.cells`, and quarter is in turns of 90 degrees clockwise from the grid's angle. The reachable
places are the grid's positions, with everything closed, each in four rotations and two heights.
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
    """The unique places (m, 4) one step ahead of visited ones (n, 4), and one step left and right of those.

    Obstacles do not matter. A visited place is included only if another one leads there.
    """
    quarter = visited[:, 2]
    onward = COMPASS[quarter]
    steps = (onward, onward + COMPASS[(quarter - 1) % 4], onward + COMPASS[(quarter + 1) % 4])
    return np.unique(
        np.concatenate([np.column_stack([visited[:, :2] + step, visited[:, 2:]]) for step in steps]), axis=0
    )


def coverage(visited: np.ndarray, grid: Grid) -> float:
    """The share of reachable positions and heights that the places (n, 4) cover, ignoring rotation."""
    return len(_without_rotation(visited, grid)) / (HEIGHTS * len(grid))


def coverage_plus(visited: np.ndarray, grid: Grid) -> float:
    """The coverage of the places extrapolated from visited ones (n, 4)."""
    return coverage(extrapolated(visited), grid)


def opened_share(ever_opened: np.ndarray) -> float:
    """The share of openables (k,) bool that were opened; NaN in a room without any."""
    return _mean(ever_opened)


# Hiding.


def visible_from_share(visible: np.ndarray) -> float:
    """The share of reachable places from which the object is seen, for `visible_from`'s (positions, 2, 4)."""
    return float(visible.mean())


def bfs_order(grid: Grid, start: int) -> np.ndarray:
    """The positions (n,) by their distance in steps from `start`, ties by number."""
    return np.argsort(grid.distances(start), kind="stable")


def bfs_found(visible_through: np.ndarray) -> bool:
    """Does a breadth-first searcher that sees through openables, (positions, 2, 4) bool, ever see the object?"""
    return bool(visible_through.any())


def bfs_steps(grid: Grid, start: int, visible_through: np.ndarray) -> int:
    """Positions that the searcher visits until it sees the object; all of them if it never does."""
    seen = np.isin(bfs_order(grid, start), np.nonzero(visible_through)[0])
    return int(seen.argmax()) + 1 if seen.any() else len(grid)


def bfs_steps_share(grid: Grid, start: int, visible_through: np.ndarray) -> float:
    """`bfs_steps` as a share of all positions."""
    return bfs_steps(grid, start, visible_through) / len(grid)


# Manipulation.


def hit_target(hits: np.ndarray) -> float:
    """The share of a game's manipulations (k,) bool that hit their target; NaN without any."""
    return _mean(hits)


# Seeking: for each of the seeker's steps, was it a claim, and did it succeed, (steps,) bool.


def seeker_found(claimed: np.ndarray, succeeded: np.ndarray) -> bool:
    """Did a claim succeed within the seeker's budget?"""
    return bool((claimed & succeeded)[:SEEKER_STEPS].any())


def seeker_steps(claimed: np.ndarray, succeeded: np.ndarray) -> int:
    """Steps up to and including the successful claim; the whole budget if there is none."""
    success = (claimed & succeeded)[:SEEKER_STEPS]
    return int(success.argmax()) + 1 if success.any() else SEEKER_STEPS


def false_claims(claimed: np.ndarray, succeeded: np.ndarray) -> int:
    """The number of failed claims."""
    return int((claimed & ~succeeded)[:SEEKER_STEPS].sum())


# Many games.


class Summary(NamedTuple):
    """A mean over games, its 95 % confidence interval, and the number of games."""

    mean: float
    low: float
    high: float
    games: int


def summary(values: np.ndarray) -> Summary:
    """The mean of a metric over games (n,), with Wilson's interval for bool and Student's t for numbers.

    NaN, where a game has no such metric, is left out. A single number has no interval.
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
    # At a share of 0 or 1 one end is exactly there, up to rounding.
    return Summary(share, min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share), count)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _without_rotation(places: np.ndarray, grid: Grid) -> np.ndarray:
    """The unique reachable places among (n, 4), as rows (i, j, standing)."""
    rows = np.unique(places[:, [0, 1, 3]], axis=0)
    low, high = grid.cells.min(0), grid.cells.max(0)
    rows = rows[((rows[:, :2] >= low) & (rows[:, :2] <= high)).all(1)]
    there = np.zeros(high - low + 1, bool)
    there[tuple((grid.cells - low).T)] = True
    return rows[there[tuple((rows[:, :2] - low).T)]]
