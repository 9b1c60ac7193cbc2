"""Charts of a watched game: heat maps over the room's plan, mental rollouts, grids over images, values over time."""

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
from scrubjay.viz.agent_trace import AgentTrace, Moment, Reasons, cells_in_room
from scrubjay.viz.episode import STAGES, Episode
from scrubjay.viz.floorplan import MARGIN, draw_floorplan
from scrubjay.viz.page import Figure
from scrubjay.viz.palette import BLUE, HIDING_POSE, INK, PAPER, QUIET, RED

SHARP = 1.5
"""Pixels of a chart for each of the page's."""
HEAT = "inferno"
STOPPED = 30
"""Steps of mental trajectories that are drawn, as in the paper's figure."""
HIGHLIGHTED = (RED, BLUE, "#3f8a5f")
"""Colors of the three trajectories that stand out."""
MIN_EXTENT, BORDER = 1.0, 0.6
"""Metres: plans show at least so far to each side, and so much around what was visited."""


class Sheet:
    """A row of charts that becomes a picture."""

    def __init__(self, columns: int, width: float, height: float, rows: int = 1, share_x: bool = False) -> None:
        """`width` and `height` are in the page's pixels."""
        self.chart = Chart(
            figsize=(width / 100, height / 100), dpi=100 * SHARP, facecolor=PAPER, layout="constrained"
        )
        self.canvas = FigureCanvasAgg(self.chart)
        self.axes: np.ndarray = self.chart.subplots(rows, columns, squeeze=False, sharex=share_x)
        for axes in self.axes.flat:
            axes.tick_params(labelsize=8, colors=QUIET)

    def picture(self, caption: str) -> Figure:
        self.canvas.draw()
        return Figure(np.asarray(self.canvas.buffer_rgba())[..., :3].copy(), caption)

    def scale(self, shown: object, axes: Axes | Sequence[Axes], label: str) -> None:
        """A bar that says what the colors mean."""
        bar = self.chart.colorbar(shown, ax=axes, shrink=0.7, aspect=30, pad=0.02)  # type: ignore[arg-type]
        bar.set_label(label, fontsize=8, color=QUIET)
        bar.ax.tick_params(labelsize=8, colors=QUIET)
        bar.outline.set_visible(False)  # type: ignore[operator]


class Ground:
    """The room's plan in meters, pale, and only the part of it that a player got to know."""

    def __init__(self, episode: Episode, known: np.ndarray) -> None:
        """`known` (n, 2) are the positions that must be seen."""
        west, south, east, north = episode.compiled.room.bounds
        self.extent = west - MARGIN, east + MARGIN, south - MARGIN, north + MARGIN
        self.picture = draw_floorplan(episode.compiled, episode.grid, size=900)
        middle = (known.min(0) + known.max(0)) / 2
        reach = max(MIN_EXTENT, (known.max(0) - known.min(0)).max() / 2 + BORDER)
        # A square, so that all are of one size; it stays within the plan where that is large enough.
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


def visited_ground(episode: Episode, reasons: Reasons) -> Ground:
    """The plan about all that the hider visited."""
    cells = reasons.explored.floor[0].nonzero().numpy()
    return Ground(episode, cells_in_room(episode.start, reasons.explored, cells))


def attention_chart(episode: Episode, moments: Sequence[Moment]) -> Figure:
    """At some moments, what was seen and how much of the four heads' attention went where in the map."""
    sheet = Sheet(len(moments), 250 * len(moments), 510, rows=2)
    places = np.array([moment.place[:2] for moment in moments])
    ground = Ground(episode, np.concatenate([places, *(moment.remembered for moment in moments)]))
    for column, moment in enumerate(moments):
        above, below = sheet.axes[:, column]
        above.imshow(moment.picture)
        above.set_axis_off()
        above.set_title(STAGES[moment.stage][0], fontsize=9, color=INK)
        ground.draw(below)
        positions, weights = by_position(moment)
        if len(positions):
            size = 12 + 240 * weights / max(weights.max(), 1e-9)
            below.scatter(*positions.T, s=size, c=weights, cmap=HEAT, alpha=0.75, linewidths=0)
        _player(below, moment)
        nothing = 1 - weights.sum()
        below.set_title(f"{len(positions)} positions, {100 * nothing:.0f} % to none", fontsize=9, color=QUIET)
    return sheet.picture(
        "Above what the agent sees, below its map: the larger and brighter, the more of the attention (the mean of "
        "four heads) goes to what it remembers of a position. The cross is where it is."
    )


def by_position(moment: Moment) -> tuple[np.ndarray, np.ndarray]:
    """The positions (n, 2) in a moment's map and the attention (n,) to each, the mean over heads."""
    positions, which = np.unique(moment.remembered.round(4), axis=0, return_inverse=True)
    return positions, np.bincount(which.ravel(), moment.attention.mean(0), len(positions))


def glance_chart(episode: Episode, reasons: Reasons) -> Figure:
    """The scores of all places at a glance, and how they are if the seeker begins elsewhere."""
    row, column = reasons.explored.start[0, :2].tolist()
    maps = [((row, column), reasons.scores), *reasons.elsewhere]
    sheet, ground = Sheet(len(maps), 320 * len(maps) + 60, 345), visited_ground(episode, reasons)
    quarter, rows, columns = np.nonzero(np.isfinite(reasons.scores))
    places = np.stack([rows, columns, quarter], -1)
    values = np.array([scores[quarter, rows, columns] for _, scores in maps])
    for axes, (start, _), of_places in zip(sheet.axes[0], maps, values, strict=True):
        ground.draw(axes)
        shown = _wedges(axes, episode, reasons, places, of_places, (values.min(), values.max()))
        x, y = cells_in_room(episode.start, reasons.explored, np.array(start))
        for color, width in (("white", 4), (INK, 2)):
            axes.plot(x, y, "s", mfc="none", mec=color, mew=width, ms=10)
        axes.set_title("as it is" if start == (row, column) else "seeker elsewhere", fontsize=9, color=QUIET)
    sheet.scale(shown, list(sheet.axes[0]), "score")
    return sheet.picture(
        "How good it seems to hide there. Every visited position is four triangles, one for each heading. Square: "
        "where the seeker begins; the agent knows the first one, the others show what difference it would make."
    )


def _wedges(
    axes: Axes, episode: Episode, reasons: Reasons, places: np.ndarray, values: np.ndarray, limits: tuple[float, float]
) -> PolyCollection:
    """A triangle for each of places (n, 3), row, column and quarter, that points where it faces, colored by values."""
    middle = cells_in_room(episode.start, reasons.explored, places[:, :2])
    turn = episode.start.rotation + 90 * places[:, 2]
    sides = [middle + GRID / np.sqrt(2) * facing_vector(turn + angle) for angle in (-45, 45)]
    corners = list(np.stack([middle, *sides], 1))
    triangles = PolyCollection(corners, array=values, cmap=HEAT, edgecolors="none", zorder=2)
    triangles.set_clim(*limits)
    axes.add_collection(triangles)
    return triangles


def rollouts_chart(episode: Episode, reasons: Reasons, seed: int = 0) -> Figure:
    """The places thought through, and mental seekers where the object is found soonest, latest, and as was chosen."""
    choice = reasons.choice
    real = choice.real[0].nonzero()[:, 0].numpy()
    places, expected = choice.places[0].numpy(), choice.expected_steps[0].numpy()
    order, chosen = real[np.argsort(expected[real])].tolist(), int(choice.chosen[0])
    names: dict[int, list[str]] = {chosen: ["chosen"]}
    names.setdefault(order[0], []).append("soonest found")
    names.setdefault(order[-1], []).append("latest found")
    sheet, ground = Sheet(1 + len(names), 260 * (1 + len(names)) + 60, 300), visited_ground(episode, reasons)
    first, *others = sheet.axes[0]
    ground.draw(first)
    shown = _wedges(first, episode, reasons, places[real], expected[real], (expected[real].min(), expected[real].max()))
    facing = facing_vector(episode.start.rotation + 90 * places[real][:, 2])
    labels = cells_in_room(episode.start, reasons.explored, places[real][:, :2]) + 0.9 * GRID * facing
    for number, (x, y) in zip(real, labels, strict=True):
        text = first.text(x, y, str(number + 1), fontsize=8, ha="center", va="center", color=INK, clip_on=True)
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    first.set_title("the places, by number", fontsize=9, color=INK)
    for axes, (number, name) in zip(others, names.items(), strict=True):
        ground.draw(axes)
        _draw_paths(axes, episode, reasons, number, seed)
        found = choice.rollouts.found.view(*choice.outcomes.shape, -1)[0, number].float().mean()
        title = f"{number + 1}: {', '.join(name)}\n{expected[number]:.1f} steps expected, {100 * found:.0f} % find it"
        axes.set_title(title, fontsize=9, color=INK)
    sheet.scale(shown, first, "expected steps")
    return sheet.picture(
        f"Imagined seekers, stopped after {STOPPED} steps. The star is the place that the object would be hidden from; "
        "each color is a trajectory after another imagined outcome, grey are the others."
    )


def _draw_paths(axes: Axes, episode: Episode, reasons: Reasons, number: int, seed: int) -> None:
    """The mental trajectories after all outcomes imagined at a place, one of each in color."""
    choice, rng = reasons.choice, np.random.default_rng(seed)
    width, draws = reasons.explored.visited.shape[-1], choice.outcomes.shape[-1]
    lines = []
    for path in choice.rollouts.paths[:STOPPED, 0, draws * number : draws * (number + 1)].flatten(1).T.numpy():
        path = path[path >= 0]
        cells = np.stack([path // width, path % width], -1)
        # All walk on the same grid: moved a little, they can be told apart.
        lines.append(cells_in_room(episode.start, reasons.explored, cells) + rng.uniform(-0.3, 0.3, 2) * GRID)
    axes.add_collection(LineCollection(lines, colors=QUIET, linewidths=0.6, alpha=0.35))
    for color, line in zip(HIGHLIGHTED, lines[:: len(lines) // draws], strict=True):
        axes.plot(*line.T, color=color, lw=1.8)
        axes.plot(*line[-1], "o", color=color, ms=5)
    x, y = cells_in_room(episode.start, reasons.explored, choice.places[0, number, :2].numpy())
    axes.plot(x, y, "*", color=HIDING_POSE, mec="white", ms=15)


def hittable_chart(watched: AgentTrace) -> Figure:
    """Where in the image the agent thinks it can put the object, and where it tends to try, as the paper shows it."""
    moments = watched.of(Stage.OH)
    first = moments[0]
    tries = np.mean([moment.probabilities[PLACE_ACTIONS].reshape(3, 7, 7) for moment in moments], 0)
    sheet = Sheet(3, 780, 520, rows=2)
    for row, (grids, label) in enumerate(((first.hittable, "can be placed"), (tries, "is tried"))):
        for axes, grid, name in zip(sheet.axes[row], grids, MODALITIES, strict=True):
            shown = _over(axes, first.picture, grid, (grids.min(), grids.max()))
            axes.set_title(f"{name}: {grid.min():.3g} to {grid.max():.3g}", fontsize=9, color=QUIET)
        sheet.scale(shown, list(sheet.axes[row]), f"probability: {label}")
    return sheet.picture(
        "Above the predicted probability that a manipulation ends in the cell, at the first step of hiding. Below the "
        f"probability of trying it, a mean over the {len(moments)} steps of hiding."
    )


def manipulation_chart(watched: AgentTrace) -> Figure | None:
    """The hittable tensor for the modality that was wanted, along the last manipulation; None if there was none."""
    tries = [list(steps) for stage, steps in groupby(enumerate(watched.moments), lambda pair: pair[1].stage)]
    last = [steps for steps in tries if steps[0][1].stage == Stage.OM][-1:]
    if not last:
        return None
    number = last[0][0][0]
    modality, row, column = (int(part) for part in watched.moments[number - 1].action.split("|")[1].split(","))
    moments = [moment for _, moment in last[0]]
    few = [moments[i] for i in np.unique(np.linspace(0, len(moments) - 1, 4).round().astype(int))]
    sheet = Sheet(len(few), 235 * len(few) + 60, 275)
    limits = min(m.hittable[modality].min() for m in few), max(m.hittable[modality].max() for m in few)
    for axes, moment in zip(sheet.axes[0], few, strict=True):
        shown = _over(axes, moment.picture, moment.hittable[modality], limits)
        side = len(moment.picture) / 7
        corner = ((column - 1) * side - 0.5, (row - 1) * side - 0.5)
        axes.add_patch(Rectangle(corner, side, side, fill=False, ec="white", lw=2))
        axes.set_title(moment.action, fontsize=9, color=INK)
    sheet.scale(shown, list(sheet.axes[0]), "can be placed")
    target = f"{MODALITIES[modality]}, row {row}, column {column}"
    return sheet.picture(f"The last manipulation, {len(moments)} steps. Its target, framed: {target}.")


def course_chart(watched: AgentTrace) -> Figure:
    """The critic's value and the policy's entropy at every step, over the stages."""
    sheet = Sheet(1, 1000, 420, rows=2, share_x=True)
    value, entropy = sheet.axes[:, 0]
    time = 0
    for stage, run in groupby(watched.moments, lambda moment: moment.stage):
        moments = list(run)
        when = np.arange(time, time + len(moments)) + 1
        for axes in (value, entropy):
            axes.axvspan(time + 0.5, time + len(moments) + 0.5, color=STAGES[stage][1], alpha=0.22, lw=0)
        if stage != Stage.PS:
            style = dict(color=STAGES[stage][1], lw=1.3, marker="." if len(moments) == 1 else "", ms=4)
            value.plot(when, [moment.value for moment in moments], **style)
            entropy.plot(when, [moment.entropy for moment in moments], **style)
        time += len(moments)
    value.set_ylabel("value", fontsize=9, color=QUIET)
    entropy.set_ylabel("entropy / largest", fontsize=9, color=QUIET)
    entropy.set_xlabel("step", fontsize=9, color=QUIET)
    entropy.set_xlim(0.5, time + 0.5)
    lowest = np.nanmin([moment.entropy for moment in watched.moments])
    entropy.set_ylim(max(0, 1 - 1.15 * (1 - lowest)), 1 + 0.1 * (1 - lowest) + 1e-3)
    value.axhline(0, color=QUIET, lw=0.6)
    for axes in (value, entropy):
        axes.set_facecolor("white")
        for side in axes.spines.values():
            side.set_visible(False)
    return sheet.picture("What the critic expects, and how undecided the policy is: 1 is blind chance.")


def _over(axes: Axes, picture: np.ndarray, grid: np.ndarray, limits: tuple[float, float]) -> object:
    """A 7 x 7 grid over a picture in grey, so that colors are the grid's alone."""
    axes.imshow(picture.mean(-1), cmap="gray", vmin=0, vmax=255)
    edge = len(picture) - 0.5
    shown = axes.imshow(
        grid, cmap=HEAT, alpha=0.55, extent=(-0.5, edge, edge, -0.5), vmin=limits[0], vmax=limits[1] + 1e-9
    )
    axes.set_axis_off()
    return shown


def _player(axes: Axes, moment: Moment) -> None:
    x, y = moment.place[:2]
    facing = 0.35 * facing_vector(moment.place.rotation)
    axes.plot([x, x + facing[0]], [y, y + facing[1]], color=RED, lw=2.5, solid_capstyle="round")
    axes.plot(x, y, "P", color=RED, mec="white", ms=10)
