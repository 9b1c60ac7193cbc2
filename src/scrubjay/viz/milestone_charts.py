"""Charts of a tournament of milestones: hider against seeker over training, kinds of hiding places, visibility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from scrubjay.evaluation.hiding_places import KINDS
from scrubjay.game.metrics import Summary
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.training.milestones import Milestone, label_milestones
from scrubjay.viz.agent_charts import ChartGrid
from scrubjay.viz.milestone_tables import VISIBILITIES, VISIBILITY_NAMES, Row
from scrubjay.viz.page import Figure
from scrubjay.viz.palette import BLUE, GREEN, INK, ORANGE, QUIET, RED, RULE, SERIES, VIOLET

SCRIPTED = (SERIES[0], VIOLET, "#7b6a58", INK)
"""Colors of scripted players."""
RUN_SHADES = ("Blues", "Purples", "BuGn", "Greys")
"""Color maps of the runs' milestones."""
SPOT_COLORS = dict(zip(DIFFICULTIES, (GREEN, ORANGE, RED), strict=True))
KIND_COLORS = dict(zip(KINDS, (ORANGE, BLUE, VIOLET, RULE), strict=True))


def player_colors(milestones: Sequence[Milestone], others: Sequence[str]) -> dict[str, str]:
    """A color for each player: each run's milestones from pale to dark, spots and scripts in the palette's colors."""
    runs = list(dict.fromkeys(milestone.run for milestone in milestones))
    colors: dict[str, str] = {}
    for number, run in enumerate(runs):
        names = [milestone.name for milestone in milestones if milestone.run == run]
        shades = colormaps[RUN_SHADES[number % len(RUN_SHADES)]](np.linspace(0.95, 0.35, max(len(names), 2)))
        colors |= {name: to_hex(shade) for name, shade in zip(reversed(names), shades, strict=False)}
    scripted = [name for name in others if name not in DIFFICULTIES and name not in colors]
    return {**colors, **SPOT_COLORS, **{name: SCRIPTED[n % len(SCRIPTED)] for n, name in enumerate(scripted)}}


def over_training_chart(
    rows: Sequence[Row], milestones: Sequence[Milestone], labels: Mapping[str, str], colors: Mapping[str, str]
) -> Figure:
    """How often objects are found: over the hider's training for each seeker, and over the seeker's for each hider."""
    hiders = list(dict.fromkeys(row["hider"] for row in rows))
    seekers = list(dict.fromkeys(row["seeker"] for row in rows))
    found = {(row["hider"], row["seeker"]): row["found"] for row in rows}
    hiding = [milestone for milestone in milestones if milestone.name in hiders]
    by_seeker = {seeker: {m.name: found[m.name, seeker] for m in hiding} for seeker in seekers}
    by_hider = {hider: {m.name: found[hider, m.name] for m in milestones} for hider in hiders}
    panels = [("hider", "seeker", "lower", hiding, by_seeker)] if hiding else []
    panels.append(("seeker", "hider or spots", "higher", list(milestones), by_hider))
    charts = ChartGrid(len(panels), 540 * len(panels), 400)
    for axes, (role, other, better, over, series) in zip(charts.axes[0], panels, strict=True):
        _draw_lines(axes, over, series, labels, colors)
        axes.set_title(f"{role}s over training: {better} is better for them", fontsize=10, color=INK, loc="left")
        axes.set_xlabel(f"games of training of the {role}", fontsize=9, color=QUIET)
        axes.legend(
            title=other, frameon=False, fontsize=8, title_fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5)
        )
    charts.axes[0, 0].set_ylabel("found (%)", fontsize=9, color=QUIET)
    return charts.to_figure(
        "How often hidden objects are found, with 95 % intervals. Left: what hiders of each milestone hid, a line for "
        "each seeker. Right: what seekers of each milestone found, a line for each hider and each difficulty of spots."
    )


def _draw_lines(
    axes: Axes,
    milestones: Sequence[Milestone],
    series: Mapping[str, Mapping[str, Summary]],
    labels: Mapping[str, str],
    colors: Mapping[str, str],
) -> None:
    """A line for each series over the milestones, broken between runs; milestones of training are solid."""
    trained = {milestone.name for milestone in milestones}
    runs = [milestone.run for milestone in milestones]
    for number, (name, values) in enumerate(series.items()):
        # Side by side, so that intervals do not cover each other.
        at = np.arange(len(milestones)) + 0.25 * (number / max(len(series) - 1, 1) - 0.5)
        mean, low, high = 100 * np.array([[v.mean, v.low, v.high] for v in values.values()]).T
        for run in dict.fromkeys(runs):
            part = [n for n, other in enumerate(runs) if other == run]
            axes.plot(at[part], mean[part], color=colors[name], lw=2, ls="-" if name in trained else "--")
        axes.errorbar(
            at, mean, [mean - low, high - mean], fmt="o", ms=5, color=colors[name], elinewidth=1.2, capsize=2.5,
            label=labels.get(name, name),
        )  # fmt: skip
    ticks = label_milestones(milestones)
    axes.set_xticks(range(len(milestones)), [ticks[m.name] for m in milestones])
    axes.set(ylim=(-3, 103), xlim=(-0.4, len(milestones) - 0.6))
    _plain(axes)


def share_bars(
    rows: Mapping[str, Mapping[str, float]], labels: Mapping[str, str], colors: Mapping[str, str], caption: str
) -> Figure:
    """A horizontal bar for each hider, divided into shares that sum to 1."""
    charts = ChartGrid(1, 700, 70 + 34 * len(rows) + 30)
    axes = charts.axes[0, 0]
    for at, shares in enumerate(rows.values()):
        left = 0.0
        for name, share in shares.items():
            axes.barh(at, 100 * share, 0.7, left=left, color=colors[name], label=name if at == 0 else "")
            if share >= 0.06:
                dark = sum(int(colors[name][i : i + 2], 16) for i in (1, 3, 5)) < 3 * 130
                color = "white" if dark else INK
                axes.text(
                    left + 50 * share, at, f"{100 * share:.0f}", ha="center", va="center", fontsize=8, color=color
                )
            left += 100 * share
    axes.set_yticks(range(len(rows)), [labels.get(name, name) for name in rows])
    axes.set(xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xlabel("share of hidings (%)", fontsize=9, color=QUIET)
    _plain(axes, "x")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(colors))
    return charts.to_figure(caption)


def kinds_chart(rows: Sequence[Row], labels: Mapping[str, str]) -> Figure:
    """How each hider's objects were placed."""
    shares = {row["hider"]: {kind: row[kind].mean for kind in KINDS} for row in rows if row[KINDS[0]].games}
    return share_bars(
        shares, labels, KIND_COLORS,
        "How hiders left the object: placed on top of, contained in or behind something, as they meant to, or dropped.",
    )  # fmt: skip


def visibility_chart(rows: Sequence[Row], labels: Mapping[str, str]) -> Figure:
    """How visible each hider's objects are."""
    shades = [to_hex(color) for color in colormaps["YlGnBu_r"](np.linspace(0.12, 0.85, len(VISIBILITIES)))]
    colors = dict(zip(VISIBILITY_NAMES, shades, strict=True))
    shares: dict[str, dict[str, float]] = {}
    for row, name in zip(rows, VISIBILITY_NAMES * (len(rows) // len(VISIBILITIES)), strict=True):
        shares.setdefault(row["hider"], {})[name] = row["share"].mean
    return share_bars(
        shares, labels, colors,
        "Hidings by the share of poses from which the object is visible as the hider left the room; from nowhere means "
        "that something must be opened first, or that it cannot be seen at all.",
    )  # fmt: skip


def found_by_visibility_chart(rows: Sequence[Row], labels: Mapping[str, str], colors: Mapping[str, str]) -> Figure:
    """How often each seeker finds objects of each class of visibility."""
    charts = ChartGrid(1, 700, 330)
    axes = charts.axes[0, 0]
    seekers = list(dict.fromkeys(row["seeker"] for row in rows))
    for number, seeker in enumerate(seekers):
        values: list[Summary] = [row["found"] for row in rows if row["seeker"] == seeker]
        at = np.arange(len(values)) + 0.3 * (number / max(len(seekers) - 1, 1) - 0.5)
        mean, low, high = 100 * np.array([[v.mean, v.low, v.high] for v in values]).T
        style = dict(color=colors[seeker], lw=1.8, ms=5, elinewidth=1.2, capsize=2.5)
        axes.errorbar(at, mean, [mean - low, high - mean], fmt="o-", label=labels.get(seeker, seeker), **style)
    counts = [row["found"].games for row in rows if row["seeker"] == seekers[0]]
    ticks = [f"{name}\n({count:,} objects)" for name, count in zip(VISIBILITY_NAMES, counts, strict=True)]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set(ylim=(-3, 103))
    axes.set_ylabel("found (%)", fontsize=9, color=QUIET)
    axes.legend(title="seeker", frameon=False, fontsize=8, title_fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    _plain(axes)
    return charts.to_figure("How often seekers find objects that are visible from so many poses, whoever hid them.")


def _plain(axes: Axes, grid: str = "y") -> None:
    """The pages' style of axes."""
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis=grid, color=RULE, lw=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
