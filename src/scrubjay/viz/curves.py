"""Learning curves from the logs of runs, one panel per metric."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scrubjay.errors import RunError, reason
from scrubjay.files import write_atomically
from scrubjay.training.run import LOG
from scrubjay.viz.palette import PAPER, RULE, SERIES

SMOOTHING = 20
"""Updates in the running mean, at most a tenth of the run."""
GROUPS = ("reward", "play", "charts", "losses", "loss")
"""Groups in the order of the panels; within a group, the log's order. `loss` is in logs of earlier versions, whose
losses are weighted."""
NOT_DRAWN = ("charts", "losses/dynamics", "loss/dynamics", "play/success", "play/claim")
"""Prefixes of metrics that are drawn only on request."""


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's log; RunError if it has none."""
    path = folder / LOG
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        if any(not isinstance(row[group], dict) for row in rows for group in GROUPS[:2]):
            raise ValueError("a line is not the row of an update")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder} has no log to draw: {reason(error)}") from error
    if not rows:
        raise RunError(f"{path} is empty: the run has no finished update yet")
    return rows


def smoothed_curve(rows: Sequence[dict[str, Any]], group: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and running means of a metric, from the rows that have it."""
    points = [(row["steps"], row[group][name]) for row in rows if row.get(group, {}).get(name) is not None]
    steps, values = np.array(points, float).reshape(-1, 2).T
    width = max(1, min(SMOOTHING, len(values) // 10))
    kernel = np.ones(width) / width
    if not points:
        return steps, values
    return np.convolve(steps, kernel, "valid"), np.convolve(values, kernel, "valid")


def logged_metrics(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """The group and name of each metric in a log."""
    metrics: dict[tuple[str, str], None] = {}
    for group in GROUPS:
        for row in rows:
            metrics |= {(group, name): None for name, value in row.get(group, {}).items() if value is not None}
    return list(metrics)


def write_curves(folders: Sequence[Path], path: Path, only: Sequence[str] = ()) -> None:
    """Writes a PNG of the runs' curves; `only` selects metrics such as play/coverage, by default most are drawn."""
    names = [folder.name for folder in folders]
    # Runs with the same folder name are labeled by their path.
    logs = {
        name if names.count(name) == 1 else str(folder): read_log(folder)
        for name, folder in zip(names, folders, strict=True)
    }
    known = list(dict.fromkeys(metric for rows in logs.values() for metric in logged_metrics(rows)))
    panels = [m for m in known if "/".join(m) in only] if only else [m for m in known if _is_drawn(m)]
    if not panels:
        raise ValueError(f"there is nothing to draw; choose from {', '.join('/'.join(m) for m in known)}")
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    chart = Figure(figsize=(4.4 * columns, 2.7 * lines + 0.4), dpi=110, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots(lines, columns, squeeze=False).flatten()
    for panel, (group, name) in zip(axes, panels, strict=False):
        panel.set_facecolor(PAPER)
        for number, (label, rows) in enumerate(logs.items()):
            steps, values = smoothed_curve(rows, group, name)
            if len(steps):
                panel.plot(steps / 1e3, values, color=SERIES[(number + 3) % len(SERIES)], label=label, lw=1.6)
        panel.set_title(f"{group}: {name.replace('_', ' ')}", fontsize=10, loc="left")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, color=RULE, lw=0.7)
        panel.set_xlabel("environment steps (thousands)", fontsize=8)
        panel.tick_params(labelsize=8)
    for panel in axes[len(panels) :]:
        panel.set_visible(False)
    if len(logs) > 1:
        handles = {
            label: line for panel in axes for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        chart.legend(handles.values(), handles.keys(), loc="outside upper right", frameon=False, ncols=len(handles))
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png", facecolor=PAPER)
    write_atomically(path, buffer.getvalue())


def _is_drawn(metric: tuple[str, str]) -> bool:
    return not "/".join(metric).startswith(NOT_DRAWN)
