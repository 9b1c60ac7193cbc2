"""The bar chart of the paper's Fig. 5: losses relative to the control's, with intervals and marks of significance."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scrubjay.study.printed import SUBSTITUTES
from scrubjay.study.static import Row
from scrubjay.viz.palette import INK, PAPER, QUIET, RULE, SERIES

TITLES = {
    "depth": "Depth", "normals": "Normals", "class": "Classes", "openability": "Openability",
    "traversable": "Traversable", "object_depth": "Depth without\nan object",
    "object_normals": "Normals without\nan object",
}  # fmt: skip
HIGHEST = 2.5
"""The axis ends here, or sooner; longer bars are cut, and their number is written on them."""
WIDTH = 9.6
"""Inches."""
LEGEND_WIDTH = 105
"""Characters in a line of the legend."""
LABEL_LENGTH = 30
HATCHES = ("", "////", "....", "xxxx")
"""For encoders beyond the palette's colors."""


def draw_ratios(panels: Mapping[str, Sequence[Row]], names: Sequence[str] = (), format: str = "png") -> bytes:
    """A chart as PNG or SVG: a panel of each title's rows, whose `ratio` is drawn for all encoders but their `control`.

    Bars are means over scenes with 95 % intervals; a star marks p < 0.01. `names` orders encoders, which have the same
    colors in all charts that are drawn with the same names; by default they are those of the rows.
    """
    names = list(names) or list(dict.fromkeys(str(row["encoder"]) for rows in panels.values() for row in rows))
    labels = short_names(names)
    size = (WIDTH, 2.75 * len(panels) + 0.5)
    settings: Any = {"svg.hashsalt": "scrubjay", "font.size": 9, "axes.edgecolor": INK, "text.color": INK}
    with matplotlib.rc_context(settings):
        chart = Figure(figsize=size, dpi=200, facecolor=PAPER, layout="constrained")
        FigureCanvasAgg(chart)
        axes = chart.subplots(len(panels), squeeze=False)[:, 0]
        for panel, (title, rows) in zip(axes, panels.items(), strict=True):
            control = str(rows[0]["control"])
            _draw_panel(panel, rows, names, control)
            panel.set_ylabel(f"loss relative to\n{labels[control]}", fontsize=8.5, color=QUIET)
            if len(panels) > 1:
                panel.set_title(title, loc="left", fontsize=10, fontweight="bold")
        handles = {
            label: handle for panel in axes for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        shown = [name for name in names if name in handles]
        longest = max((len(labels[name]) for name in shown), default=1)
        chart.legend(
            [handles[name] for name in shown], [labels[name] for name in shown],
            loc="outside upper left", frameon=False, ncols=max(1, LEGEND_WIDTH // (longest + 6)), handlelength=1.1,
            handleheight=1.1, columnspacing=1.4,
        )  # fmt: skip
        buffer = io.BytesIO()
        chart.savefig(buffer, format=format, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()


def _draw_panel(axes: Axes, rows: Sequence[Row], names: Sequence[str], control: str) -> None:
    tasks = _tasks(rows)
    by_name = {name: {str(row["task"]): row for row in rows if row["encoder"] == name} for name in names}
    drawn = [name for name in names if by_name[name] and name != control]
    width = 0.84 / max(len(drawn), 1)
    values = [float(row["ratio_high"]) for its in by_name.values() for row in its.values()]
    top = min(HIGHEST, 1.12 * max([1.0, *values]))
    for place, name in enumerate(drawn):
        its, number = by_name[name], names.index(name)
        at = np.array([tasks.index(task) for task in its]) + (place - (len(drawn) - 1) / 2) * width
        ratio, low, high = (
            np.array([float(row[field]) for row in its.values()]) for field in ("ratio", "ratio_low", "ratio_high")
        )
        axes.bar(
            at, ratio, 0.88 * width, label=name, color=SERIES[number % len(SERIES)], edgecolor=PAPER, linewidth=0,
            hatch=HATCHES[number // len(SERIES) % len(HATCHES)],
        )  # fmt: skip
        axes.errorbar(at, ratio, [ratio - low, high - ratio], fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.6)
        for x, mean, end, row in zip(at, ratio, high, its.values(), strict=True):
            if mean > top:
                axes.annotate(
                    f"{mean:.1f}", (x, top), (0, -3), textcoords="offset points", ha="center", va="top", fontsize=7,
                    rotation=90, color=INK, bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
                )  # fmt: skip
            if row["significant"]:
                axes.annotate(
                    "*", (x, min(end, top)), (0, -1.5), textcoords="offset points", ha="center", va="bottom",
                    fontsize=11, color=INK, annotation_clip=False,
                )  # fmt: skip
    axes.axhline(1, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    axes.set_ylim(0, top)
    axes.set_xlim(-0.55, len(tasks) - 0.45)
    axes.set_xticks(np.arange(len(tasks)), [TITLES.get(task, task) for task in tasks])
    axes.tick_params(length=0, labelsize=8.5, colors=INK)
    axes.set_facecolor(PAPER)
    axes.grid(axis="y", color=RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _tasks(rows: Sequence[Row]) -> list[str]:
    """In the order of TITLES, then of the rows."""
    found = dict.fromkeys(str(row["task"]) for row in rows)
    return [*(task for task in TITLES if task in found), *(task for task in found if task not in TITLES)]


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Encoders' names for charts: paths are cut to their ends, as long as names stay different.

    >>> short_names(["random", "ours@out/cache/run", "ours@out/nav/run", "timm:vit_tiny@/home/me/weights.safetensors"])
    {'random': 'random', 'ours@out/cache/run': 'ours@cache/run', 'ours@out/nav/run': 'ours@nav/run',
     'timm:vit_tiny@/home/me/weights.safetensors': 'timm:vit_tiny'}
    """
    for parts in range(1, max((name.count("/") for name in names), default=0) + 2):
        short = [_shortened(name, parts) for name in names]
        if len(set(short)) == len(set(names)):
            break
    else:
        short = list(names)
    return {
        name: f"{each} (substitute)" if name in SUBSTITUTES else each for name, each in zip(names, short, strict=True)
    }


def _shortened(name: str, parts: int) -> str:
    """A name with the last parts of its path; the names of files of weights say less than the network's."""
    if network := re.match(r"timm:[^@]+(?=@)", name):
        name = network[0] if parts == 1 else name
    head, at, path = name.partition("@") if "@" in name else name.partition(":")
    path = "/".join(path.rstrip("/").split("/")[-parts:])
    whole = head + at + path
    return whole if len(whole) <= LABEL_LENGTH or parts > 1 else f"{whole[:16]}…{whole[-13:]}"
