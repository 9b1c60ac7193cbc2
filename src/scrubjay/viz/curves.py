"""How runs went: curves of what their logs hold, one panel for each measure, as a picture."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scrubjay.errors import RunError
from scrubjay.files import write_atomically
from scrubjay.training.run import LOG
from scrubjay.viz.palette import PAPER, RULE, SERIES

SMOOTHED = 20
"""Updates that a point of a curve is the mean of, at most a tenth of a run."""
FIRST = ("reward", "play", "charts", "losses", "loss")
"""The order of the panels; within a group they are in the log's own order. `loss` is in logs of earlier versions, whose
losses are weighted."""
LEFT_OUT = ("charts", "losses/dynamics", "loss/dynamics", "play/success", "play/claim")
"""Measures that have no panel of their own unless they are asked for."""


def read_log(folder: Path) -> list[dict[str, Any]]:
    """A run's rows; RunError if it has none."""
    path = folder / LOG
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        if any(not isinstance(row[group], dict) for row in rows for group in FIRST[:2]):
            raise ValueError("a line is not an update's")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder} has no log to draw: {error}") from error
    if not rows:
        raise RunError(f"{path} is empty: nothing was learned yet")
    return rows


def curve(rows: Sequence[dict[str, Any]], group: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and running means of a measure, where the log has it."""
    found = [(row["steps"], row[group][name]) for row in rows if row.get(group, {}).get(name) is not None]
    steps, values = np.array(found, float).reshape(-1, 2).T
    width = max(1, min(SMOOTHED, len(values) // 10))
    kernel = np.ones(width) / width
    if not found:
        return steps, values
    return np.convolve(steps, kernel, "valid"), np.convolve(values, kernel, "valid")


def measures(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Groups and names of what a log holds."""
    found: dict[tuple[str, str], None] = {}
    for group in FIRST:
        for row in rows:
            found |= {(group, name): None for name, value in row.get(group, {}).items() if value is not None}
    return list(found)


def draw(folders: Sequence[Path], path: Path, only: Sequence[str] = ()) -> None:
    """Draws the runs' curves into a PNG; `only` names measures such as play/coverage, else most of them are drawn."""
    names = [folder.name for folder in folders]
    # Runs of the same name are told apart by where they are.
    logs = {
        name if names.count(name) == 1 else str(folder): read_log(folder)
        for name, folder in zip(names, folders, strict=True)
    }
    known = list(dict.fromkeys(measure for rows in logs.values() for measure in measures(rows)))
    panels = [m for m in known if "/".join(m) in only] if only else [m for m in known if not _left_out(m)]
    if not panels:
        raise ValueError(f"nothing to draw; there are {', '.join('/'.join(m) for m in known)}")
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    chart = Figure(figsize=(4.4 * columns, 2.7 * lines + 0.4), dpi=110, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots(lines, columns, squeeze=False).flatten()
    for at, (group, name) in zip(axes, panels, strict=False):
        at.set_facecolor(PAPER)
        for number, (label, rows) in enumerate(logs.items()):
            steps, values = curve(rows, group, name)
            if len(steps):
                at.plot(steps / 1e3, values, color=SERIES[(number + 3) % len(SERIES)], label=label, lw=1.6)
        at.set_title(f"{group}: {name.replace('_', ' ')}", fontsize=10, loc="left")
        at.spines[["top", "right"]].set_visible(False)
        at.grid(True, color=RULE, lw=0.7)
        at.set_xlabel("thousand steps of play", fontsize=8)
        at.tick_params(labelsize=8)
    for at in axes[len(panels) :]:
        at.set_visible(False)
    if len(logs) > 1:
        handles = {label: line for at in axes for line, label in zip(*at.get_legend_handles_labels(), strict=True)}
        chart.legend(handles.values(), handles.keys(), loc="outside upper right", frameon=False, ncols=len(handles))
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png", facecolor=PAPER)
    write_atomically(path, buffer.getvalue())


def _left_out(measure: tuple[str, str]) -> bool:
    return any("/".join(measure).startswith(name) for name in LEFT_OUT)
