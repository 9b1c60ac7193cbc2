"""The results of a tournament: as numbers, as a table, and as the plot of seekers against hiders."""

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
from scrubjay.evaluation.tournament import Hiding
from scrubjay.files import write_atomically
from scrubjay.game.metrics import Summary, summary
from scrubjay.viz.palette import INK, PAPER, RULE, SERIES

MEASURES = {
    "placed": "placed",
    "hit_target": "target hit",
    "coverage_plus": "coverage+",
    "opened": "opened",
    "visible_from": "visible from",
    "bfs_found": "can be seen",
    "bfs_steps": "search length",
}
"""Of hidings, all of them shares: what the table calls them."""


def write_results(hidings: Sequence[Hiding], folder: Path) -> tuple[str, dict[str, Any]]:
    """Writes table.md, results.json and plot.png; gives the table, and the results as JSON has them."""
    found = results(hidings)
    text, data = as_text(found), as_json(found)
    write_atomically(folder / "table.md", text)
    write_atomically(folder / "results.json", json.dumps(data, indent=2) + "\n")
    plot(found, folder / "plot.png")
    return text, data


def results(hidings: Sequence[Hiding]) -> dict[str, Any]:
    """Means with their 95 % intervals: of hidings by hider, and of searches by hider and seeker."""
    by_hider: dict[str, list[Hiding]] = {}
    for hiding in hidings:
        by_hider.setdefault(hiding.hider, []).append(hiding)
    return {
        "hidings": {
            hider: {
                name: value for name, value in summarize_scores([h.score for h in some]).items() if name in MEASURES
            }
            for hider, some in by_hider.items()
        },
        "searches": {
            hider: {seeker: _searches(some, seeker) for seeker in some[0].results} for hider, some in by_hider.items()
        },
    }


def _searches(hidings: list[Hiding], seeker: str) -> dict[str, Summary]:
    """False claims are counted in games that were played; what nobody could see is not found in 500 steps."""
    outcomes = [hiding.results[seeker] for hiding in hidings]
    played = [hiding.results[seeker] for hiding in hidings if hiding.seen]
    return {
        "found": summary(np.array([outcome.found for outcome in outcomes], bool)),
        "steps": summary(np.array([outcome.steps for outcome in outcomes], float)),
        "false_claims": summary(np.array([outcome.false_claims for outcome in played], float)),
    }


def as_json(found: Any) -> Any:
    """Results as JSON has them: summaries with their names, and null where there is no number."""
    if isinstance(found, Summary):
        return as_json(found._asdict())
    if isinstance(found, dict):
        return {name: as_json(value) for name, value in found.items()}
    return None if isinstance(found, float) and math.isnan(found) else found


def as_text(found: dict[str, Any]) -> str:
    """Two tables in plain text, which is Markdown: searches and hidings."""
    searches = Table("hider", "seeker", box=MARKDOWN)
    for column in ("games", "found, %", "steps", "false claims"):
        searches.add_column(column, justify="right")
    for hider, seekers in found["searches"].items():
        for seeker, row in seekers.items():
            searches.add_row(
                hider, seeker, str(row["found"].games), _cell(row["found"], 100),
                _cell(row["steps"], 1), _cell(row["false_claims"], 1),
            )  # fmt: skip
    hidings = Table("hider", box=MARKDOWN)
    for title in MEASURES.values():
        hidings.add_column(f"{title}, %", justify="right")
    for hider, row in found["hidings"].items():
        hidings.add_row(hider, *(_cell(row[name], 100) for name in MEASURES))
    buffer = io.StringIO()
    console = Console(file=buffer, width=200, color_system=None)
    console.print("Searches: mean [95 % interval]", searches, "Hidings: mean [95 % interval]", hidings, sep="\n")
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _cell(value: Summary, scale: float) -> str:
    if not value.games:
        return "-"
    interval = "" if math.isnan(value.low) else f" [{scale * value.low:.1f}, {scale * value.high:.1f}]"
    return f"{scale * value.mean:.1f}{interval}"


def plot(found: dict[str, Any], path: Path, title: str = "") -> None:
    """How often each seeker finds what each hider hid, with 95 % intervals, as a PNG."""
    searches = found["searches"]
    seekers = list(dict.fromkeys(seeker for row in searches.values() for seeker in row))
    width = 0.82 / len(seekers)
    chart = Figure(figsize=(2.2 + 1.5 * len(searches), 4.4), dpi=120, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots()
    axes.set_facecolor(PAPER)
    for number, seeker in enumerate(seekers):
        rows = [searches[hider][seeker]["found"] for hider in searches]
        at = np.arange(len(rows)) + (number - (len(seekers) - 1) / 2) * width
        mean = 100 * np.array([row.mean for row in rows])
        ends = [100 * np.array([row.low for row in rows]), 100 * np.array([row.high for row in rows])]
        color = SERIES[number % len(SERIES)]
        axes.bar(at, mean, 0.9 * width, color=color, label=seeker)
        axes.errorbar(at, mean, [mean - ends[0], ends[1] - mean], fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5)
    axes.set(ylim=(0, 100), ylabel="found, %", xlabel="hider, or difficulty of the spots", title=title)
    axes.set_xticks(range(len(searches)), list(searches))
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.grid(True, color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.legend(title="seeker", frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), alignment="left")
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png", facecolor=PAPER)
    write_atomically(path, buffer.getvalue())
