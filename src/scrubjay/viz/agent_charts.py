"""Charts of an agent's trace: heat maps on the floor plan, mental rollouts, target grids over images, value curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure as Chart
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from scrubjay.game.actions import MODALITIES, PLACE_ACTIONS, Stage
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import GRID
from scrubjay.viz.agent_trace import AgentTrace, HidingDecision, TraceStep, cells_to_room_frame
from scrubjay.viz.episode import STAGES, Episode
from scrubjay.viz.floorplan import MARGIN, draw_floorplan
from scrubjay.viz.page import Figure
from scrubjay.viz.palette import BLUE, HIDING_POSE, INK, PAPER, QUIET, RED

PIXEL_RATIO = 1.5
"""Image pixels per CSS pixel: charts stay sharp on dense displays."""
HEAT = "inferno"
MAX_ROLLOUT_STEPS = 30
"""Drawn steps of a mental rollout, as in the paper's figure."""
HIGHLIGHTED = (RED, BLUE, "#3f8a5f")
"""Colors of the rollouts that stand out, one per imagined outcome."""
MIN_EXTENT, BORDER = 1.0, 0.6
"""Meters: plans show at least this much to each side, with this border around what was visited."""


class ChartGrid:
    """A matplotlib figure with a grid of axes, in the pages' style."""

    def __init__(self, columns: int, width: float, height: float, rows: int = 1, share_x: bool = False) -> None:
        """`width` and `height` are in CSS pixels."""
        self.chart = Chart(
            figsize=(width / 100, height / 100), dpi=100 * PIXEL_RATIO, facecolor=PAPER, layout="constrained"
        )
        self.canvas = FigureCanvasAgg(self.chart)
        self.axes: np.ndarray = self.chart.subplots(rows, columns, squeeze=False, sharex=share_x)
        for axes in self.axes.flat:
            axes.tick_params(labelsize=8, colors=QUIET)

    def to_figure(self, caption: str) -> Figure:
        self.canvas.draw()
        return Figure(np.asarray(self.canvas.buffer_rgba())[..., :3].copy(), caption)

    def color_bar(self, mappable: object, axes: Axes | Sequence[Axes], label: str) -> None:
        """Adds a color bar."""
        bar = self.chart.colorbar(mappable, ax=axes, shrink=0.7, aspect=30, pad=0.02)  # type: ignore[arg-type]
        bar.set_label(label, fontsize=8, color=QUIET)
        bar.ax.tick_params(labelsize=8, colors=QUIET)
        bar.outline.set_visible(False)  # type: ignore[operator]


class PlanBackground:
    """The floor plan in meters, pale, cropped to the part that a player got to know."""

    def __init__(self, episode: Episode, known: np.ndarray) -> None:
        """`known` (n, 2) are the positions that must be in view."""
        west, south, east, north = episode.compiled.room.bounds
        self.extent = west - MARGIN, east + MARGIN, south - MARGIN, north + MARGIN
        self.picture = draw_floorplan(episode.compiled, episode.grid, size=900)
        middle = (known.min(0) + known.max(0)) / 2
        reach = max(MIN_EXTENT, (known.max(0) - known.min(0)).max() / 2 + BORDER)
        # A square crop, within the plan where that is large enough.
        span = max(self.extent[1] - self.extent[0], self.extent[3] - self.extent[2])
        self.reach = min(reach, span / 2)
        corners = np.array([[self.extent[0], self.extent[2]], [self.extent[1], self.extent[3]]])
        low, high = corners[0] + self.reach, corners[1] - self.reach
        self.middle = np.where(low < high, np.clip(middle, low, high), corners.mean(0))

    def draw(self, axes: Axes) -> None:
        axes.imshow(self.picture, extent=self.extent, alpha=0.5)
        (x, y), reach = self.middle, self.reach
        axes.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach))
        axes.set_axis_off()


def visited_background(episode: Episode, hiding: HidingDecision) -> PlanBackground:
    """The plan around all that the hider visited."""
    cells = hiding.explored.floor[0].nonzero().numpy()
    return PlanBackground(episode, cells_to_room_frame(episode.start, hiding.explored, cells))


def attention_chart(episode: Episode, steps: Sequence[TraceStep]) -> Figure:
    """The view, and below it the attention over the map, at each of these steps."""
    charts = ChartGrid(len(steps), 250 * len(steps), 510, rows=2)
    places = np.array([step.agent_pose[:2] for step in steps])
    background = PlanBackground(episode, np.concatenate([places, *(step.remembered for step in steps)]))
    for column, step in enumerate(steps):
        above, below = charts.axes[:, column]
        above.imshow(step.picture)
        above.set_axis_off()
        above.set_title(STAGES[step.stage].title, fontsize=9, color=INK)
        background.draw(below)
        positions, weights = attention_by_position(step)
        if len(positions):
            size = 12 + 240 * weights / max(weights.max(), 1e-9)
            below.scatter(*positions.T, s=size, c=weights, cmap=HEAT, alpha=0.75, linewidths=0)
        _draw_agent(below, step)
        nothing = 1 - weights.sum()
        below.set_title(f"{len(positions)} positions, {100 * nothing:.0f} % on null", fontsize=9, color=QUIET)
    return charts.to_figure(
        "Above: the agent's view. Below: attention over the map entries, mean of four heads; larger and brighter is "
        "more. The cross is the agent."
    )


def attention_by_position(step: TraceStep) -> tuple[np.ndarray, np.ndarray]:
    """The positions (n, 2) in a step's map, and the attention (n,) to each, averaged over heads."""
    positions, which = np.unique(step.remembered.round(4), axis=0, return_inverse=True)
    return positions, np.bincount(which.ravel(), step.attention.mean(0), len(positions))


def score_chart(episode: Episode, hiding: HidingDecision) -> Figure:
    """The quick scores of all poses, for the real start of the seeker and for others."""
    row, column = hiding.explored.start[0, :2].tolist()
    maps = [((row, column), hiding.scores), *hiding.other_starts]
    charts, background = ChartGrid(len(maps), 320 * len(maps) + 60, 345), visited_background(episode, hiding)
    quarter, rows, columns = np.nonzero(np.isfinite(hiding.scores))
    places = np.stack([rows, columns, quarter], -1)
    values = np.array([table[quarter, rows, columns] for _, table in maps])
    for axes, (start, _), scores in zip(charts.axes[0], maps, values, strict=True):
        background.draw(axes)
        mappable = draw_poses(axes, episode, hiding, places, scores, (values.min(), values.max()))
        x, y = cells_to_room_frame(episode.start, hiding.explored, np.array(start))
        for color, width in (("white", 4), (INK, 2)):
            axes.plot(x, y, "s", mfc="none", mec=color, mew=width, ms=10)
        axes.set_title("real start" if start == (row, column) else "other start", fontsize=9, color=QUIET)
    charts.color_bar(mappable, list(charts.axes[0]), "score")
    return charts.to_figure(
        "Score of hiding from each visited pose: a position is four triangles, one per heading. Square: the seeker's "
        "start. The agent uses the first plan; the others show how much the start matters."
    )


def draw_poses(
    axes: Axes,
    episode: Episode,
    hiding: HidingDecision,
    places: np.ndarray,
    values: np.ndarray,
    limits: tuple[float, float],
) -> PolyCollection:
    """Draws poses (n, 3), row, column and quarter turn, as triangles that point where they face, colored by values."""
    middle = cells_to_room_frame(episode.start, hiding.explored, places[:, :2])
    turn = episode.start.rotation + 90 * places[:, 2]
    sides = [middle + GRID / np.sqrt(2) * facing_vector(turn + angle) for angle in (-45, 45)]
    corners = list(np.stack([middle, *sides], 1))
    triangles = PolyCollection(corners, array=values, cmap=HEAT, edgecolors="none", zorder=2)
    triangles.set_clim(*limits)
    axes.add_collection(triangles)
    return triangles


def rollouts_chart(episode: Episode, hiding: HidingDecision, seed: int = 0) -> Figure:
    """The candidate poses, and mental rollouts for the one chosen, the easiest and the hardest to find."""
    choice = hiding.choice
    real = choice.valid[0].nonzero()[:, 0].numpy()
    places, expected = choice.places[0].numpy(), choice.expected_steps[0].numpy()
    order, chosen = real[np.argsort(expected[real])].tolist(), int(choice.chosen[0])
    names: dict[int, list[str]] = {chosen: ["chosen"]}
    names.setdefault(order[0], []).append("found soonest")
    names.setdefault(order[-1], []).append("found latest")
    charts, background = (
        ChartGrid(1 + len(names), 260 * (1 + len(names)) + 60, 300),
        visited_background(episode, hiding),
    )
    first, *others = charts.axes[0]
    background.draw(first)
    mappable = draw_poses(
        first, episode, hiding, places[real], expected[real], (expected[real].min(), expected[real].max())
    )
    facing = facing_vector(episode.start.rotation + 90 * places[real][:, 2])
    poses = cells_to_room_frame(episode.start, hiding.explored, places[real][:, :2])
    # About the width of a label.
    labels = separate(poses + 0.9 * GRID * facing, 0.16 * background.reach)
    for number, tip, (x, y) in zip(real, poses + 0.35 * GRID * facing, labels, strict=True):
        first.plot([tip[0], x], [tip[1], y], color=QUIET, lw=0.5, zorder=3)
        text = first.text(x, y, str(number + 1), fontsize=8, ha="center", va="center", color=INK, clip_on=True)
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    first.set_title("candidates", fontsize=9, color=INK)
    for axes, (number, name) in zip(others, names.items(), strict=True):
        background.draw(axes)
        draw_rollouts(axes, episode, hiding, number, seed)
        found = choice.rollouts.found.view(*choice.outcomes.shape, -1)[0, number].float().mean()
        title = f"{number + 1}: {', '.join(name)}\n{expected[number]:.1f} steps expected, {100 * found:.0f} % find it"
        axes.set_title(title, fontsize=9, color=INK)
    charts.color_bar(mappable, first, "expected steps")
    return charts.to_figure(
        f"Mental seekers, cut after {MAX_ROLLOUT_STEPS} steps. Star: the pose that the object is hidden from. One "
        "rollout per imagined outcome is in color, the others are gray."
    )


def separate(points: np.ndarray, gap: float, iterations: int = 100) -> np.ndarray:
    """Points (n, 2) pushed apart until no two are closer than `gap`."""
    # Coincident points have no direction to go: spread them on a tiny circle first.
    angle = 2.4 * np.arange(len(points))
    points = points + 1e-3 * gap * np.stack([np.cos(angle), np.sin(angle)], -1)
    for _ in range(iterations):
        offset = points[:, None] - points[None]
        distance = np.linalg.norm(offset, axis=-1)
        np.fill_diagonal(distance, np.inf)
        push = np.maximum(1.02 * gap - distance, 0) / 2 / distance
        points = points + (push[..., None] * offset).sum(1)
        if not push.any():
            break
    return points


def draw_rollouts(axes: Axes, episode: Episode, hiding: HidingDecision, number: int, seed: int) -> None:
    """Draws the rollouts for all outcomes imagined at a pose, one of each in color."""
    choice, rng = hiding.choice, np.random.default_rng(seed)
    width, draws = hiding.explored.visited.shape[-1], choice.outcomes.shape[-1]
    lines = []
    for path in (
        choice.rollouts.paths[:MAX_ROLLOUT_STEPS, 0, draws * number : draws * (number + 1)].flatten(1).T.numpy()
    ):
        path = path[path >= 0]
        cells = np.stack([path // width, path % width], -1)
        # All rollouts walk on the same grid: jitter keeps them apart.
        lines.append(cells_to_room_frame(episode.start, hiding.explored, cells) + rng.uniform(-0.3, 0.3, 2) * GRID)
    axes.add_collection(LineCollection(lines, colors=QUIET, linewidths=0.6, alpha=0.35))
    for color, line in zip(HIGHLIGHTED, lines[:: len(lines) // draws], strict=True):
        axes.plot(*line.T, color=color, lw=1.8)
        axes.plot(*line[-1], "o", color=color, ms=5)
    x, y = cells_to_room_frame(episode.start, hiding.explored, choice.places[0, number, :2].numpy())
    axes.plot(x, y, "*", color=HIDING_POSE, mec="white", ms=15)


def hittable_chart(trace: AgentTrace) -> Figure:
    """Predicted success of each manipulation target, and the policy's probability of trying it, over the image."""
    steps = trace.steps_in(Stage.OH)
    first = steps[0]
    tries = np.mean([step.probabilities[PLACE_ACTIONS].reshape(3, 7, 7) for step in steps], 0)
    charts = ChartGrid(3, 780, 520, rows=2)
    for row, (grids, label) in enumerate(((first.hittable, "success"), (tries, "attempt"))):
        for axes, grid, name in zip(charts.axes[row], grids, MODALITIES, strict=True):
            mappable = _draw_grid_over(axes, first.picture, grid, (grids.min(), grids.max()))
            axes.set_title(f"{name}: {grid.min():.3g} to {grid.max():.3g}", fontsize=9, color=QUIET)
        charts.color_bar(mappable, list(charts.axes[row]), f"probability of {label}")
    return charts.to_figure(
        "Above: predicted probability that a manipulation ends in the cell, at the first step of hiding. Below: "
        f"probability of attempting it, averaged over the {len(steps)} steps of hiding."
    )


def manipulation_chart(trace: AgentTrace) -> Figure | None:
    """Predicted success for the target's modality along the last manipulation; None without one."""
    tries = [list(steps) for stage, steps in groupby(enumerate(trace.steps), lambda pair: pair[1].stage)]
    last = [steps for steps in tries if steps[0][1].stage == Stage.OM][-1:]
    if not last:
        return None
    number = last[0][0][0]
    modality, row, column = (int(part) for part in trace.steps[number - 1].action.split("|")[1].split(","))
    steps = [step for _, step in last[0]]
    few = [steps[i] for i in np.unique(np.linspace(0, len(steps) - 1, 4).round().astype(int))]
    charts = ChartGrid(len(few), 235 * len(few) + 60, 275)
    limits = min(m.hittable[modality].min() for m in few), max(m.hittable[modality].max() for m in few)
    for axes, step in zip(charts.axes[0], few, strict=True):
        mappable = _draw_grid_over(axes, step.picture, step.hittable[modality], limits)
        side = len(step.picture) / 7
        corner = ((column - 1) * side - 0.5, (row - 1) * side - 0.5)
        axes.add_patch(Rectangle(corner, side, side, fill=False, ec="white", lw=2))
        axes.set_title(step.action, fontsize=9, color=INK)
    charts.color_bar(mappable, list(charts.axes[0]), "probability of success")
    target = f"{MODALITIES[modality]}, row {row}, column {column}"
    return charts.to_figure(f"The last manipulation, {len(steps)} steps. Framed: its target, {target}.")


def value_chart(trace: AgentTrace) -> Figure:
    """The critic's value and the policy's entropy at every step, with the stages as background."""
    charts = ChartGrid(1, 1000, 420, rows=2, share_x=True)
    value, entropy = charts.axes[:, 0]
    time = 0
    for stage, run in groupby(trace.steps, lambda step: step.stage):
        steps = list(run)
        when = np.arange(time, time + len(steps)) + 1
        for axes in (value, entropy):
            axes.axvspan(time + 0.5, time + len(steps) + 0.5, color=STAGES[stage].color, alpha=0.22, lw=0)
        if stage != Stage.PS:
            style = dict(color=STAGES[stage].color, lw=1.3, marker="." if len(steps) == 1 else "", ms=4)
            value.plot(when, [step.value for step in steps], **style)
            entropy.plot(when, [step.entropy for step in steps], **style)
        time += len(steps)
    value.set_ylabel("value", fontsize=9, color=QUIET)
    entropy.set_ylabel("relative entropy", fontsize=9, color=QUIET)
    entropy.set_xlabel("step", fontsize=9, color=QUIET)
    entropy.set_xlim(0.5, time + 0.5)
    lowest = min(0.9, np.nanmin([step.entropy for step in trace.steps]))
    entropy.set_ylim(max(0, 1 - 1.15 * (1 - lowest)), 1 + 0.1 * (1 - lowest) + 1e-3)
    value.axhline(0, color=QUIET, lw=0.6)
    for axes in (value, entropy):
        axes.set_facecolor("white")
        for side in axes.spines.values():
            side.set_visible(False)
    return charts.to_figure("The critic's value, and the policy's entropy relative to a uniform policy.")


def _draw_grid_over(axes: Axes, picture: np.ndarray, grid: np.ndarray, limits: tuple[float, float]) -> object:
    """Draws a 7 x 7 grid over a grayscale picture."""
    axes.imshow(picture.mean(-1), cmap="gray", vmin=0, vmax=255)
    edge = len(picture) - 0.5
    mappable = axes.imshow(
        grid, cmap=HEAT, alpha=0.55, extent=(-0.5, edge, edge, -0.5), vmin=limits[0], vmax=limits[1] + 1e-9
    )
    axes.set_axis_off()
    return mappable


def _draw_agent(axes: Axes, step: TraceStep) -> None:
    x, y = step.agent_pose[:2]
    facing = 0.35 * facing_vector(step.agent_pose.rotation)
    axes.plot([x, x + facing[0]], [y, y + facing[1]], color=RED, lw=2.5, solid_capstyle="round")
    axes.plot(x, y, "P", color=RED, mec="white", ms=10)
