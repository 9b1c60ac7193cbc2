"""Results of a tournament: JSON, Markdown tables, and a bar chart of seekers against hiders."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from scrubjay.evaluation.scores import summarize_scores
from scrubjay.evaluation.trials import Hiding
from scrubjay.files import write_atomically
from scrubjay.game.metrics import Summary, summary
from scrubjay.viz.palette import INK, PAPER, RULE, SERIES

HIDING_METRICS = {
    "placed": "placed",
    "hit_target": "target hit",
    "coverage_plus": "coverage+",
    "opened": "opened",
    "visible_from": "visible from",
    "bfs_found": "can be seen",
    "bfs_steps": "search length",
}
"""Metrics of hidings, all of them fractions, with their column titles."""


def write_results(hidings: Sequence[Hiding], folder: Path) -> tuple[str, dict[str, Any]]:
    """Writes table.md, results.json and plot.png; returns the tables and the JSON data."""
    results = summarize_hidings(hidings)
    text, data = format_tables(results), to_json(results)
    write_atomically(folder / "table.md", text)
    write_atomically(folder / "results.json", json.dumps(data, indent=2) + "\n")
    write_plot(results, folder / "plot.png")
    return text, data


def summarize_hidings(hidings: Sequence[Hiding]) -> dict[str, Any]:
    """Means with 95 % intervals: `hidings` by hider, and `searches` by hider and seeker."""
    by_hider: dict[str, list[Hiding]] = {}
    for hiding in hidings:
        by_hider.setdefault(hiding.hider, []).append(hiding)
    return {
        "hidings": {
            hider: {
                name: value
                for name, value in summarize_scores([hiding.score for hiding in hidden]).items()
                if name in HIDING_METRICS
            }
            for hider, hidden in by_hider.items()
        },
        "searches": {
            hider: {seeker: _summarize_searches(hidden, seeker) for seeker in hidden[0].results}
            for hider, hidden in by_hider.items()
        },
    }


def _summarize_searches(hidings: list[Hiding], seeker: str) -> dict[str, Summary]:
    """Objects that cannot be seen count as not found in 500 steps; false claims only count in games played."""
    results = [hiding.results[seeker] for hiding in hidings]
    played = [hiding.results[seeker] for hiding in hidings if hiding.can_be_seen]
    return {
        "found": summary(np.array([result.found for result in results], bool)),
        "steps": summary(np.array([result.steps for result in results], float)),
        "false_claims": summary(np.array([result.false_claims for result in played], float)),
    }


def to_json(results: Any) -> Any:
    """Results as JSON data: summaries as objects, NaN as null."""
    if isinstance(results, Summary):
        return to_json(results._asdict())
    if isinstance(results, dict):
        return {name: to_json(value) for name, value in results.items()}
    return None if isinstance(results, float) and math.isnan(results) else results


def format_tables(results: dict[str, Any]) -> str:
    """Two Markdown tables: searches and hidings."""
    searches = Table("hider", "seeker", box=MARKDOWN)
    for column in ("games", "found, %", "steps", "false claims"):
        searches.add_column(column, justify="right")
    for hider, seekers in results["searches"].items():
        for seeker, row in seekers.items():
            searches.add_row(
                hider, seeker, str(row["found"].games), format_summary(row["found"], 100),
                format_summary(row["steps"], 1), format_summary(row["false_claims"], 1),
            )  # fmt: skip
    hidings = Table("hider", box=MARKDOWN)
    for title in HIDING_METRICS.values():
        hidings.add_column(f"{title}, %", justify="right")
    for hider, row in results["hidings"].items():
        hidings.add_row(hider, *(format_summary(row[name], 100) for name in HIDING_METRICS))
    buffer = io.StringIO()
    console = Console(file=buffer, width=200, color_system=None)
    console.print("Searches: mean [95 % interval]", searches, "Hidings: mean [95 % interval]", hidings, sep="\n")
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def format_summary(value: Summary, scale: float = 1) -> str:
    """The mean and its 95 % interval, if it has one."""
    if not value.games:
        return "-"
    interval = "" if math.isnan(value.low) else f" [{scale * value.low:.1f}, {scale * value.high:.1f}]"
    return f"{scale * value.mean:.1f}{interval}"


def write_plot(results: dict[str, Any], path: Path, title: str = "") -> None:
    """Writes a PNG of how often each seeker finds what each hider hid, with 95 % intervals."""
    found = {
        hider: {seeker: row["found"] for seeker, row in rows.items()} for hider, rows in results["searches"].items()
    }
    write_atomically(path, draw_bars(found, "found (%)", "seeker", title))


def draw_bars(
    rows: dict[str, dict[str, Summary]], ylabel: str, legend: str, title: str = "", colors: Sequence[str] = SERIES
) -> bytes:
    """A PNG of bars with 95 % intervals, in percent: a group for each hider, in it a bar for each series."""
    series = list(dict.fromkeys(name for row in rows.values() for name in row))
    width = 0.82 / len(series)
    chart = Figure(figsize=(2.2 + 1.5 * len(rows), 4.4), dpi=120, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots()
    axes.set_facecolor(PAPER)
    for number, name in enumerate(series):
        values = [row[name] for row in rows.values()]
        at = np.arange(len(values)) + (number - (len(series) - 1) / 2) * width
        mean = 100 * np.array([value.mean for value in values])
        ends = [100 * np.array([value.low for value in values]), 100 * np.array([value.high for value in values])]
        color = colors[number % len(colors)]
        axes.bar(at, mean, 0.9 * width, color=color, label=name)
        axes.errorbar(at, mean, [mean - ends[0], ends[1] - mean], fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5)
    axes.set(ylim=(0, 100), ylabel=ylabel, xlabel="hider, or difficulty of the spots", title=title)
    axes.set_xticks(range(len(rows)), list(rows))
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.grid(True, color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.legend(title=legend, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), alignment="left")
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png", facecolor=PAPER)
    return buffer.getvalue()
