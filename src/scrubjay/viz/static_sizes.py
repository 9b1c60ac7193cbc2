"""Losses of probes by their number of training examples, a small chart for each task."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scrubjay.study.static import Row
from scrubjay.viz.palette import INK, PAPER, QUIET, RULE, SERIES
from scrubjay.viz.ratio_chart import TITLES, short_names

COLUMNS = 4
STYLES = ("-", "--", ":", "-.")
"""For encoders beyond the palette's colors."""


def draw_sizes(rows: Sequence[Row], names: Sequence[str]) -> bytes:
    """A PNG of rows of static_sizes.csv, of one decoder. `names` orders the encoders, and so gives them colors."""
    tasks = [task for task in TITLES if any(row["task"] == task for row in rows)]
    lines, columns = -(-len(tasks) // COLUMNS), min(COLUMNS, len(tasks))
    chart = Figure(figsize=(9.6, 2.2 * lines + 0.6), dpi=200, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    panels = chart.subplots(lines, max(columns, 2), squeeze=False).flat
    labels = short_names(names)
    for panel in panels[len(tasks) :]:
        panel.set_visible(False)
    for place, (panel, task) in enumerate(zip(panels, tasks, strict=False)):
        _draw_panel(panel, [row for row in rows if row["task"] == task], names)
        panel.set_title(TITLES[task].replace("\n", " "), loc="left", fontsize=9, fontweight="bold", color=INK)
        if place % columns == 0:
            panel.set_ylabel("test loss", fontsize=8, color=QUIET)
        if place + columns >= len(tasks):
            panel.set_xlabel("training examples", fontsize=8, color=QUIET)
    handles, shown = panels[0].get_legend_handles_labels()
    chart.legend(
        handles, [labels[name] for name in shown], loc="outside upper left", frameon=False, ncols=4, fontsize=8.5
    )
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw_panel(axes: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    sizes = sorted({int(row["size"]) for row in rows})
    for number, name in enumerate(names):
        its = sorted((row for row in rows if row["encoder"] == name), key=lambda row: int(row["size"]))
        if not its:
            continue
        size, loss, low, high = (
            np.array([float(row[field]) for row in its]) for field in ("size", "loss", "low", "high")
        )
        color, style = SERIES[number % len(SERIES)], STYLES[number // len(SERIES) % len(STYLES)]
        axes.fill_between(size, low, high, color=color, alpha=0.18, linewidth=0)
        axes.plot(size, loss, style, color=color, marker="o", markersize=3, linewidth=1.4, label=name)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.tick_params(length=0, labelsize=7.5, colors=INK)
    axes.set_facecolor(PAPER)
    axes.grid(color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
