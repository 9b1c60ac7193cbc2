"""The paper's measures of a finished game, from its record and its room alone."""

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
    """One game's measures; nan where a game has not the stage that they are about."""

    coverage: float
    """Share of the reachable positions and heights that the hider visited while exploring."""
    coverage_plus: float
    """The same of the places that visited ones lead to."""
    opened: float
    """Share of the openables that the hider opened while exploring."""
    hit_target: float
    """Share of the manipulations that put the object exactly where it was to go."""
    placed: float
    """1 if the hider placed the object, 0 if it fell from the hand."""
    visible_from: float
    """Share of the reachable places from which the hidden object is seen."""
    bfs_found: float
    """1 if the breadth-first searcher, which sees through openables, finds it."""
    bfs_steps: float
    """Share of the positions that it looks from until it does."""
    found: float
    """1 if the seeker found the object."""
    steps: float
    """Of the seeker, 500 if it did not find it."""
    false_claims: float
    """Claims that failed."""


def score(record: Record, compiled: CompiledRoom, sight: bool = True) -> Score:
    """All measures of a game; without `sight` those that cast rays are left out, which takes a tenth of a second."""
    grid = grid_of(record, compiled)
    stages = np.array(record.stages(), int)
    return Score(
        **_exploring(record, compiled, grid, stages),
        **_hiding(record, compiled, grid, stages, sight),
        **_seeking(record, stages),
    )


def grid_of(record: Record, compiled: CompiledRoom) -> Grid:
    """The reachable positions of a record's game, everything closed."""
    return compiled.floor.grid(record.start[:2], record.start.rotation % 90)


def named(score: Score) -> dict[str, float]:
    """The measures that the game has, by name."""
    return {name: value for name, value in asdict(score).items() if not np.isnan(value)}


def summaries(scores: Sequence[Score]) -> dict[str, metrics.Summary]:
    """The mean of each measure over games, with its 95 % confidence interval; yes or no for those that are 0 or 1."""
    found = {}
    for f in fields(Score):
        values = np.array([getattr(each, f.name) for each in scores], float)
        values = values[~np.isnan(values)]
        found[f.name] = metrics.summary(values == 1 if f.name in ("placed", "bfs_found", "found") else values)
    return found


def _exploring(record: Record, compiled: CompiledRoom, grid: Grid, stages: np.ndarray) -> dict[str, float]:
    steps = np.flatnonzero(stages == Stage.EM)
    if not len(steps):
        return dict.fromkeys(("coverage", "coverage_plus", "opened"), np.nan)
    # The place where the game began was visited as well.
    first = record.dealt().place or record.start
    began = metrics.lattice(grid, np.array([first[:2]]), np.array([first.rotation]), np.array([first.standing]))
    visited = np.concatenate([began, on_grid(record, grid, np.array(record.places)[steps])])
    ever = np.isin(np.arange(len(compiled.openables)), np.array(record.opened)[steps])
    return {
        "coverage": metrics.coverage(visited, grid),
        "coverage_plus": metrics.coverage_plus(visited, grid),
        "opened": metrics.opened_share(ever),
    }


def on_grid(record: Record, grid: Grid, places: np.ndarray) -> np.ndarray:
    """Places (n, 4) that are relative to the start's heading, with the grid's own north ahead."""
    quarters = round((record.start.rotation - grid.angle) / 90) % 4
    right_and_ahead = COMPASS[[(quarters + 1) % 4, quarters]]
    return np.column_stack([places[:, :2] @ right_and_ahead, (places[:, 2] + quarters) % 4, places[:, 3]])


def _hiding(record: Record, compiled: CompiledRoom, grid: Grid, stages: np.ndarray, sight: bool) -> dict[str, float]:
    found = dict.fromkeys(("hit_target", "placed", "visible_from", "bfs_found", "bfs_steps"), np.nan)
    if record.hits:
        found["hit_target"] = float(np.mean([hit for hit, _ in record.hits]))
    if (stages == Stage.OH).any():
        found["placed"] = float(any(placed for _, placed in record.hits))
    if record.hidden is None or not sight:
        return found
    is_open = np.isin(np.arange(len(compiled.openables)), record.hidden["open"])
    pose = np.array(record.hidden["pose"])
    seen, through = (
        visible_from(compiled, is_open, record.goal, pose, grid, through_openables=through) for through in (False, True)
    )
    start = grid.index(record.start[:2])
    return found | {
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
