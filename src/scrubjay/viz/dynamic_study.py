"""The page of the dynamic study: the paper's numbers beside ours, accuracy by size and by step, log-odds, clips."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scrubjay.files import write_atomically
from scrubjay.study.dynamic import SHUFFLED, Result, Row, headline
from scrubjay.study.dynamic_experiments import EXPERIMENTS, PRINTED_LOG_ODDS, Examples, Experiment
from scrubjay.study.dynamic_probe import Predictions
from scrubjay.study.rotation_odds import OddsRow
from scrubjay.study.sequences import SequenceData
from scrubjay.viz.clips import AnimatedClip, animation
from scrubjay.viz.page import load_template
from scrubjay.viz.palette import GREEN, INK, PAPER, QUIET, RED, RULE, SERIES

CLIPS = 6
"""Test examples shown of each experiment."""
CLIP_FRAMES = 24
"""The last frames of a sequence that a clip shows."""
ANSWERS = {
    "contained": ("behind", "contained"), "tracking": ("elsewhere", "in this cell"),
    "rotation": ("it was not there", "it was there"), "space": ("not more", "more"), "space_far": ("not more", "more"),
}  # fmt: skip


@dataclass(frozen=True)
class _Section:
    """An experiment on the page."""

    experiment: Experiment
    verdict: str
    charts: Sequence[tuple[str, str]]
    """Base64 PNGs and captions."""
    rows: Sequence[Row]
    chance: Row | None
    clips: Sequence[AnimatedClip]


def write_dynamic_page(path: Path, result: Result, data: Mapping[str, SequenceData], facts: str) -> None:
    """Writes the page, and beside it a PNG of each chart; `facts` is the line under the title. Data without images has
    no clips."""
    sections = []
    for one in EXPERIMENTS.values():
        rows = headline(result.rows, one)
        if not rows:
            continue
        charts = [(draw_sizes(result.rows, one), "Accuracy by the number of training examples, with 95 % intervals.")]
        if any(row["experiment"] == one.name and row["step"] != "" for row in result.rows):
            charts.append(
                (draw_steps(result.rows, one), "Accuracy by the steps since the object was seen, with 95 % intervals.")
            )
        if one.name == "rotation" and result.odds:
            words = "Log-odds of turning back, those that saw the object less those that did not, with 95 % intervals."
            charts.append((draw_odds(result.odds), words))
        for number, (chart, _) in enumerate(charts):
            name = ("sizes", "steps", "odds")[number]
            write_atomically(path.with_name(f"dynamic-{one.name}-{name}.png"), chart)
        encoded = [(base64.b64encode(chart).decode(), caption) for chart, caption in charts]
        chance = next((row for row in result.rows if (row["experiment"], row["source"]) == (one.name, SHUFFLED)), None)
        clips = draw_clips(one, *result.predictions[one.name], data[one.data]) if data[one.data].has_images else []
        sections.append(_Section(one, verdict(rows), encoded, rows, chance, clips))
    page = load_template("dynamic_page.html").render(
        title="What agents remember", facts=facts, sections=sections, percent=percent, points=points,
        odds=[row for row in result.odds if row.split == "all" and row.step == 1], printed_odds=PRINTED_LOG_ODDS,
        all_odds=result.odds,
        left_out=[(EXPERIMENTS[name].title, reason) for name, reason in result.left_out.items()],
    )  # fmt: skip
    write_atomically(path, page)


def verdict(rows: Sequence[Row]) -> str:
    """Whether the first agent is better than the best of the other sources, in a sentence."""
    first, *others = rows
    if not others:
        return ""
    best = max(others, key=lambda row: float(row["accuracy"]))
    low, high = -float(best["difference_high"]), -float(best["difference_low"])
    words = f"{first['source']} {percent(first['accuracy'])}, next {best['source']} {percent(best['accuracy'])}"
    if math.isnan(low):
        return f"{words}."
    interval = f"a difference of {points(-float(best['difference']))} (95 % interval {points(low)} to {points(high)})"
    if low > 0:
        return f"Better than all baselines: {words}, {interval}."
    if high < 0:
        return f"Not better than its baselines: {words}, {interval}."
    return f"Not distinguishable from the best baseline: {words}, {interval}."


def percent(value: str | float) -> str:
    return "–" if value == "" or math.isnan(float(value)) else f"{100 * float(value):.1f} %"


def points(value: str | float) -> str:
    """A difference of two percentages."""
    return "–" if value == "" or math.isnan(float(value)) else f"{round(100 * float(value), 1) + 0:+.1f}"


def draw_sizes(rows: Sequence[Row], experiment: Experiment) -> bytes:
    """A PNG of accuracy by training size, a line per source."""
    step = "" if experiment.headline_step is None else experiment.headline_step

    def draw(axes: Axes) -> None:
        mine = [row for row in rows if row["experiment"] == experiment.name and row["step"] == step]
        mine = [row for row in mine if row["source"] != SHUFFLED]
        _lines(axes, mine, "size")
        axes.set_xscale("log")
        sizes = sorted({int(row["size"]) for row in mine})
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("training examples")

    return _chart(draw, "balanced accuracy" if experiment.on_grid else "accuracy")


def draw_steps(rows: Sequence[Row], experiment: Experiment) -> bytes:
    """A PNG of accuracy by steps since the object was seen, at the largest size."""

    def draw(axes: Axes) -> None:
        mine = [row for row in rows if row["experiment"] == experiment.name and row["step"] != ""]
        largest = max(int(row["size"]) for row in mine)
        mine = sorted((row for row in mine if row["size"] == largest), key=lambda row: int(row["step"]))
        _lines(axes, mine, "step")
        axes.set_xticks(sorted({int(row["step"]) for row in mine}))
        axes.set_xlabel("steps since the object was seen")

    return _chart(draw, "accuracy")


def draw_odds(odds: Sequence[OddsRow]) -> bytes:
    """A PNG of the log-odds of turning back, by steps after the forced rotation."""

    def draw(axes: Axes) -> None:
        names = list(dict.fromkeys(row.source for row in odds))
        for number, name in enumerate(names):
            mine = [row for row in odds if row.source == name and row.split == "all"]
            x = np.array([row.step for row in mine]) + 0.06 * (number - (len(names) - 1) / 2)
            y = np.array([row.difference for row in mine])
            half = np.nan_to_num([row.high - row.difference for row in mine])
            axes.errorbar(x, y, half, color=_color(number), marker="o", capsize=3, label=name)
        axes.axhline(0, color=INK, linewidth=1, linestyle="--")
        axes.set_xlabel("representations after the forced rotation")
        axes.set_xticks(sorted({row.step for row in odds}))

    return _chart(draw, "difference of log-odds", chance=None)


def draw_clips(
    experiment: Experiment, examples: Examples, predictions: Mapping[str, Sequence[Predictions]], data: SequenceData
) -> list[AnimatedClip]:
    """Clips of test examples, evenly spaced, with what the first agent's probes said about each."""
    name, parts = next(iter(predictions.items()))
    correct = parts[0].score(parts[0].sizes[-1]).correct
    tested = np.flatnonzero(np.isfinite(correct))
    if experiment.headline_step is not None and examples.table.steps is not None:
        tested = tested[examples.table.steps[tested] == experiment.headline_step]
    clips = []
    for row in tested[np.linspace(0, len(tested) - 1, min(CLIPS, len(tested))).round().astype(int)]:
        frame = examples.frame[row]
        sequence = int(data.sequence_of(np.array([frame]))[0])
        frames = np.arange(max(data.index["first"][sequence], frame - CLIP_FRAMES + 1), frame + 1)
        images = data.images(frames)
        if examples.cell is not None:
            images = np.stack([_outlined(image, *examples.cell[row]) for image in images])
        place = data.index[sequence]
        answer = ANSWERS[experiment.name][int(examples.table.label[row])]
        words = f"{place['goal']}, {place['scene']}: {answer}. {name} was right in {correct[row]:.0%} of its probes."
        clips.append(AnimatedClip(animation(images), words, GREEN if correct[row] > 0.5 else RED))
    return clips


def _outlined(image: np.ndarray, row: int, column: int) -> np.ndarray:
    """An image with a cell outlined."""
    image, size = image.copy(), image.shape[0] // 7
    top, left = row * size, column * size
    cell = image[top : top + size, left : left + size]
    for edge in (cell[:2], cell[-2:], cell[:, :2], cell[:, -2:]):
        edge[:] = (255, 200, 0)
    return image


def _color(number: int) -> str:
    """Colors by source; the first agent's stands out."""
    colors = (INK, *SERIES[1:], QUIET, *SERIES[1:])
    return colors[number % len(colors)]


def _lines(axes: Axes, rows: Sequence[Row], field: str) -> None:
    names = list(dict.fromkeys(str(row["source"]) for row in rows))
    for number, name in enumerate(names):
        mine = [row for row in rows if row["source"] == name]
        # Beside each other, so that no interval covers another.
        shift = number - (len(names) - 1) / 2
        x = np.array([float(row[field]) for row in mine])
        x = x * 1.02**shift if field == "size" else x + 0.03 * shift
        y, low, high = (np.array([float(row[key]) for row in mine]) for key in ("accuracy", "low", "high"))
        style = "--" if "4CNN" in name else {"DIR": "-", "SIR": ":"}.get(name[:3], "-.")
        error = np.nan_to_num([y - low, high - y])
        axes.errorbar(
            x, y, error, color=_color(number), linestyle=style, marker="o", markersize=4, elinewidth=0.8, capsize=2,
            linewidth=2.2 if number == 0 else 1.3, label=name,
        )  # fmt: skip


def _chart(draw: Callable[[Axes], None], label: str, chance: float | None = 0.5) -> bytes:
    chart = Figure(figsize=(9.0, 4.0), dpi=110, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(chart)
    axes = chart.subplots()
    axes.set_facecolor(PAPER)
    draw(axes)
    if chance is not None:
        axes.axhline(chance, color=INK, linewidth=0.8, linestyle=(0, (1, 3)))
        low, high = axes.get_ylim()
        axes.set_ylim(max(min(low, chance - 0.05), 0), min(max(high, chance + 0.05), 1.02))
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_ylabel(label)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.01, 0.5))
    buffer = io.BytesIO()
    chart.savefig(buffer, format="png")
    return buffer.getvalue()
