"""The page of the static study: bars relative to the control, tables, and what the encoders are."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scrubjay.files import write_atomically
from scrubjay.study.comparison import SIGNIFICANCE
from scrubjay.study.static import PLAIN, WITH_SKIPS, Row
from scrubjay.viz.page import load_template
from scrubjay.viz.palette import INK, PAPER, RULE, SERIES

TITLES = {
    "depth": "Depth", "normals": "Normals", "class": "Classes", "openability": "Openability",
    "traversable": "Traversable", "object_depth": "Depth without\nan object",
    "object_normals": "Normals without\nan object",
}  # fmt: skip
DECODERS = {
    PLAIN: "From 7 x 7 features alone",
    WITH_SKIPS: "With skip connections",
}


def write_static_page(
    path: Path, rows: Sequence[Row], encoders: Sequence[Mapping[str, Any]], control: str | None, facts: str
) -> None:
    """Writes the page, and beside it a PNG of each chart; `facts` is the line under the title."""
    sections = []
    for decoder, title in DECODERS.items():
        its = [row for row in rows if row["decoder"] == decoder]
        if not its:
            continue
        chart = draw_ratios(its, control) if control and any("ratio" in row for row in its) else b""
        if chart:
            write_atomically(path.with_name(f"static-{'skips' if decoder == WITH_SKIPS else 'plain'}.png"), chart)
        tasks = list(dict.fromkeys(str(row["task"]) for row in its))
        by_encoder = {
            name: {str(row["task"]): row for row in its if row["encoder"] == name}
            for name in dict.fromkeys(str(row["encoder"]) for row in its)
        }
        notes = list(dict.fromkeys(f"{row['task']}: {row['note']}" for row in its if row.get("note")))
        sections.append((title, base64.b64encode(chart).decode(), tasks, by_encoder, notes))
    page = load_template("static_page.html").render(
        title="What encoders see", facts=facts, sections=sections, encoders=encoders, control=control,
        titles={task: title.replace("\n", " ") for task, title in TITLES.items()}, significance=SIGNIFICANCE,
    )  # fmt: skip
    write_atomically(path, page)


def draw_ratios(rows: Sequence[Row], control: str) -> bytes:
    """A PNG of losses relative to the control's, with 95 % intervals; a star marks differences with p < 0.01."""
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    names = [name for name in dict.fromkeys(str(row["encoder"]) for row in rows) if name != control]
    width = 0.82 / max(len(names), 1)
    chart = Figure(figsize=(2.0 + 1.5 * len(tasks), 4.2), dpi=120, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots()
    axes.set_facecolor(PAPER)
    for number, name in enumerate(names):
        its = {str(row["task"]): row for row in rows if row["encoder"] == name}
        at = np.arange(len(tasks)) + (number - (len(names) - 1) / 2) * width
        ratio, low, high = (
            np.array([float(its[task][field]) for task in tasks]) for field in ("ratio", "ratio_low", "ratio_high")
        )
        axes.bar(at, ratio, 0.9 * width, color=SERIES[(number + 1) % len(SERIES)], label=name)
        axes.errorbar(at, ratio, [ratio - low, high - ratio], fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        for x, top, task in zip(at, high, tasks, strict=True):
            if its[task]["significant"]:
                axes.annotate("*", (x, top), ha="center", va="bottom", color=INK, fontsize=13)
    axes.axhline(1, color=INK, linewidth=1, linestyle="--")
    axes.set_xticks(np.arange(len(tasks)), [TITLES[task] for task in tasks], fontsize=9)
    axes.set_ylabel(f"loss relative to {control}")
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="upper left", bbox_to_anchor=(0, -0.14))
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png")
    return buffer.getvalue()
