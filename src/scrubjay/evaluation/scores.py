"""The paper's metrics of a finished game, from its record and its room alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np

from scrubjay.game import metrics
from scrubjay.game.actions import Stage
from scrubjay.game.record import Record
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.floor import Grid
from scrubjay.sim.compile import CompiledRoom


@dataclass(frozen=True)
class Score:
    """One game's metrics; NaN where the game lacks the stage."""

    coverage: float
    """Fraction of the reachable positions, at both heights, that the hider visited in E&M."""
    coverage_plus: float
    """The same for positions visited, or one step ahead of a visited pose or beside that."""
    opened: float
    """Fraction of the openables that the hider opened in E&M."""
    hit_target: float
    """Fraction of the manipulations that put the object exactly at their target."""
    placed: float
    """1 if the hider placed the object, 0 if it was only dropped."""
    visible_from: float
    """Fraction of the reachable poses from which the hidden object is visible."""
    bfs_found: float
    """1 if the breadth-first searcher, which sees through openables, finds the object."""
    bfs_steps: float
    """Fraction of the positions that it searches until then."""
    found: float
    """1 if the seeker found the object."""
    steps: float
    """Steps of the seeker, 500 if it did not find the object."""
    false_claims: float
    """Failed claims."""

    def to_dict(self) -> dict[str, float]:
        """The metrics that the game has, by name."""
        return {name: value for name, value in asdict(self).items() if not np.isnan(value)}


BINARY_METRICS = ("placed", "bfs_found", "found")
"""Metrics that are 0 or 1 in each game: their intervals are of proportions."""


def score(record: Record, compiled: CompiledRoom, visibility: bool = True) -> Score:
    """Scores a game. Without `visibility`, skips the metrics that cast rays (0.1 s per game)."""
    grid = reachable_grid(record, compiled)
    stages = np.array(record.stages(), int)
    return Score(
        **_exploring(record, compiled, grid, stages),
        **_hiding(record, compiled, grid, stages, visibility),
        **_seeking(record, stages),
    )


def reachable_grid(record: Record, compiled: CompiledRoom) -> Grid:
    """The reachable positions of a record's game with everything closed."""
    return compiled.floor.grid(record.start[:2], record.start.rotation % 90)


def summarize_scores(scores: Sequence[Score]) -> dict[str, metrics.Summary]:
    """The mean of each metric over games, with its 95 % confidence interval."""
    summaries = {}
    for name in (field.name for field in fields(Score)):
        values = np.array([getattr(score, name) for score in scores], float)
        values = values[~np.isnan(values)]
        summaries[name] = metrics.summary(values == 1 if name in BINARY_METRICS else values)
    return summaries


def _exploring(record: Record, compiled: CompiledRoom, grid: Grid, stages: np.ndarray) -> dict[str, float]:
    steps = np.flatnonzero(stages == Stage.EM)
    if not len(steps):
        return dict.fromkeys(("coverage", "coverage_plus", "opened"), np.nan)
    # The start counts as visited.
    first = record.spec.place or record.start
    start = metrics.lattice(grid, np.array([first[:2]]), np.array([first.rotation]), np.array([first.standing]))
    visited = np.concatenate([start, to_grid_frame(record, grid, np.array(record.places)[steps])])
    opened = np.isin(np.arange(len(compiled.openables)), np.array(record.opened)[steps])
    return {
        "coverage": metrics.coverage(visited, grid),
        "coverage_plus": metrics.coverage_plus(visited, grid),
        "opened": metrics.opened_share(opened),
    }


def to_grid_frame(record: Record, grid: Grid, places: np.ndarray) -> np.ndarray:
    """Turns poses (n, 4) in the frame of the start's heading into the frame of the grid's own north."""
    quarters = round((record.start.rotation - grid.angle) / 90) % 4
    right_and_ahead = COMPASS[[(quarters + 1) % 4, quarters]]
    return np.column_stack([places[:, :2] @ right_and_ahead, (places[:, 2] + quarters) % 4, places[:, 3]])


def _hiding(
    record: Record, compiled: CompiledRoom, grid: Grid, stages: np.ndarray, visibility: bool
) -> dict[str, float]:
    values = dict.fromkeys(("hit_target", "placed", "visible_from", "bfs_found", "bfs_steps"), np.nan)
    if record.hits:
        values["hit_target"] = float(np.mean([hit for hit, _ in record.hits]))
    if (stages == Stage.OH).any():
        values["placed"] = float(any(placed for _, placed in record.hits))
    if record.hidden is None or not visibility:
        return values
    is_open = np.isin(np.arange(len(compiled.openables)), record.hidden["open"])
    pose = np.array(record.hidden["pose"])
    seen, through = (
        visible_from(compiled, is_open, record.goal, pose, grid, through_openables=through) for through in (False, True)
    )
    start = grid.index(record.start[:2])
    return values | {
        "visible_from": metrics.visible_from_share(seen),
        "bfs_found": float(metrics.bfs_found(through)),
        "bfs_steps": metrics.bfs_steps_share(grid, start, through),
    }


def _seeking(record: Record, stages: np.ndarray) -> dict[str, float]:
    seeking = stages == Stage.S
    if not seeking.any():
        return dict.fromkeys(("found", "steps", "false_claims"), np.nan)
    claimed = np.array(record.actions)[seeking] == "ClaimVisible"
    succeeded = np.array(record.success)[seeking]
    return {
        "found": float(metrics.seeker_found(claimed, succeeded)),
        "steps": float(metrics.seeker_steps(claimed, succeeded)),
        "false_claims": float(metrics.false_claims(claimed, succeeded)),
    }
