"""The page of the natural study: bars, tables, predictions beside the truth, and what the encoders are."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Chart

from scrubjay.files import write_atomically
from scrubjay.study.natural import SHOWN, NaturalStudy, Row, read_scores
from scrubjay.study.natural_tasks import TASKS
from scrubjay.study.pictures import resize_labels
from scrubjay.study.printed import SUBSTITUTES
from scrubjay.study.static import PLAIN, WITH_SKIPS
from scrubjay.viz.page import Figure, load_template
from scrubjay.viz.palette import GREEN, INK, PAPER, RULE, SERIES, rgb
from scrubjay.viz.picture import depth_colors

TITLES = {
    "scenes": "Scenes (SUN397)", "depth": "Depth (NYUv2)", "walkable": "Walkable surfaces (NYUv2)",
}  # fmt: skip
DECODERS = {PLAIN: "from 7 x 7 features alone", WITH_SKIPS: "with skip connections"}
FAR = 10.0
"""Meters that are drawn darkest: NYUv2's depths end there."""
LEAST = 1e-3
"""Meters that predictions are raised to."""


def write_natural_page(path: Path, study: NaturalStudy, rows: Sequence[Row], facts: str) -> None:
    """Writes the page; `facts` is the line under the title."""
    sections = []
    for task in TASKS:
        for decoder, words in DECODERS.items():
            its = [row for row in rows if (row["task"], row["decoder"]) == (task, decoder)]
            if its:
                chart = base64.b64encode(draw_bars(its, study.control)).decode()
                notes = _notes(its)
                strips = _predictions(study, task, decoder) if TASKS[task].dense else []
                sections.append((f"{TITLES[task]}, {words}", TASKS[task], chart, its, notes, strips))
    encoders: list[Mapping[str, Any]] = [encoder.description.as_dict() for encoder in study.encoders]
    page = load_template("natural_page.html").render(
        title="What encoders see in natural images", facts=facts, sections=sections, encoders=encoders,
        control=study.control, substitutes=SUBSTITUTES,
    )  # fmt: skip
    write_atomically(path, page)


def draw_bars(rows: Sequence[Row], control: str | None) -> bytes:
    """A PNG of each encoder's metric with its 95 % interval; the control is gray."""
    chart = Chart(figsize=(6.4, 0.9 + 0.42 * len(rows)), dpi=120, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots()
    axes.set_facecolor(PAPER)
    at = np.arange(len(rows))[::-1]
    value, low, high = (np.array([float(row[field]) for row in rows]) for field in ("value", "low", "high"))
    colors = [SERIES[0] if row["encoder"] == control else SERIES[3] for row in rows]
    axes.barh(at, value, 0.7, color=colors)
    errors = np.nan_to_num(np.maximum([value - low, high - value], 0))
    axes.errorbar(value, at, xerr=errors, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
    axes.set_yticks(at, [str(row["encoder"]) for row in rows], fontsize=9)
    axes.set_xlabel(str(rows[0]["metric"]), fontsize=9)
    axes.set_xlim(left=0)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png")
    return buffer.getvalue()


def _notes(rows: Sequence[Row]) -> list[str]:
    """What rows note, once if it is the same for all encoders."""
    notes = [str(row["note"]) for row in rows]
    if len(set(notes)) == 1:
        return [note for note in notes[:1] if note]
    return [f"{row['encoder']}: {row['note']}" for row in rows if row["note"]]


def _predictions(study: NaturalStudy, task: str, decoder: str) -> list[list[Figure]]:
    """For the first test pictures: the picture, the truth, and each encoder's prediction."""
    test = study.data[task]["test"]
    strips = []
    for place in range(min(SHOWN, len(test))):
        image = np.array(test.images[place])
        figures = [Figure(image, "test picture"), Figure(_drawn(task, test.target[place], image), "truth")]
        for encoder in study.encoders:
            file = study.scores_path(task, decoder, encoder)
            if file.exists():
                scored = read_scores(file, len(test))
                score = scored.scores[place]
                words = f"{encoder.description.name}: {'no surface' if np.isnan(score) else f'{score:.2f}'}"
                # Black is for depth that is not known.
                figures.append(Figure(_drawn(task, np.maximum(scored.shown[place], LEAST), image), words))
        strips.append(figures)
    return strips


def _drawn(task: str, values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Depth in false colors, or walkable pixels green on the picture."""
    values = resize_labels(np.asarray(values), len(image))
    if task == "depth":
        return depth_colors(values, FAR)
    shade = 0.35 * image + 0.65 * np.array(rgb(GREEN))
    return np.where(values[..., None] > 0.5, shade, image * 0.6 + 80).astype(np.uint8)
