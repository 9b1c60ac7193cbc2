"""The same game played by each milestone, side by side: the paper's qualitative figure, over training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes

from scrubjay.evaluation.hiding_places import DROPPED, kind_of, path_of_stage
from scrubjay.evaluation.scores import score
from scrubjay.game.actions import Stage
from scrubjay.game.record import Record
from scrubjay.rooms.floor import Grid
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.agent_charts import (
    MAX_ROLLOUT_STEPS,
    PIXEL_RATIO,
    ChartGrid,
    PlanBackground,
    draw_poses,
    draw_rollouts,
    hittable_chart,
)
from scrubjay.viz.agent_trace import AgentTrace, cells_to_room_frame
from scrubjay.viz.episode import Episode
from scrubjay.viz.floorplan import FloorPlan
from scrubjay.viz.hiding_maps import MAP_SIZE, poses_in_room
from scrubjay.viz.page import Figure
from scrubjay.viz.palette import HIDING_POSE, INK, OBJECT, QUIET, RED

EXPLORED = "#3f8a5f"
"""The hider's path, darker than the grid."""
LEGEND = (("explored", EXPLORED), ("chosen pose", HIDING_POSE), ("object", OBJECT), ("seeker", RED))
"""Colors on the plans."""
ROWS = ("explores, hides", "hiding poses", "mental seekers", "seeks its own object", "seeks the last hider's")
"""Rows of the figure to print."""


@dataclass(frozen=True)
class MilestoneGame:
    """A milestone's whole game against itself."""

    label: str
    trace: AgentTrace
    episode: Episode
    """Without its steps."""


def as_game(label: str, trace: AgentTrace, compiled: CompiledRoom) -> MilestoneGame:
    """A traced game, ready to draw; it is not replayed."""
    return MilestoneGame(label, trace, Episode(trace.record, compiled, [], -1, trace.record.renderer))


def hider_plan(label: str, record: Record, compiled: CompiledRoom, grid: Grid) -> Figure:
    """How the hider explored, which pose it chose, and where the object ended up."""
    plan = FloorPlan(compiled, grid, MAP_SIZE, numbered=False)
    path = [record.start, *poses_in_room(record.start, path_of_stage(record, Stage.EM))]
    plan.path(path, EXPLORED)
    chosen = poses_in_room(record.start, path_of_stage(record, Stage.PS))
    if chosen:
        plan.dotted(path[-1], chosen[0], HIDING_POSE)
        plan.ring(chosen[0], HIDING_POSE)
    plan.square(record.start)
    _mark_object(plan, record)
    return Figure(plan.picture_at(PIXEL_RATIO), f"{label}: {_describe_hiding(record, compiled)}")


def _mark_object(plan: FloorPlan, record: Record) -> None:
    if record.hidden:
        x, y = record.hidden["pose"][:2]
        plan.diamond(x, y, OBJECT)


def _describe_hiding(record: Record, compiled: CompiledRoom) -> str:
    values, kind = score(record, compiled), kind_of(record)
    how = kind if kind == DROPPED else f"placed {kind}"
    opened = f"opened {100 * values.opened:.0f} %, " if not np.isnan(values.opened) else ""
    return (
        f"coverage+ {100 * values.coverage_plus:.0f} %, {opened}object {how}, "
        f"visible from {100 * values.visible_from:.0f} %"
    )


def seeker_plan(label: str, record: Record, compiled: CompiledRoom, grid: Grid) -> Figure:
    """The seeker's path, and where the object was."""
    plan = FloorPlan(compiled, grid, MAP_SIZE, numbered=False)
    places = path_of_stage(record, Stage.S)
    plan.path([record.start, *poses_in_room(record.start, places)], RED)
    plan.square(record.start)
    _mark_object(plan, record)
    steps = f"{len(places)} step{'s' * (len(places) != 1)}"
    result = f"found after {steps}" if record.found else f"not found in {steps}"
    claims = [name == "ClaimVisible" for name in record.actions]
    false = sum(claim and not right for claim, right in zip(claims, record.success, strict=True))
    claims_words = f", {false} false claim{'s' * (false != 1)}" if false else ""
    return Figure(plan.picture_at(PIXEL_RATIO), f"{label}: {result}{claims_words}")


def missing_search(label: str, start: AgentPose, compiled: CompiledRoom, grid: Grid) -> Figure:
    """The plan of an object that nobody searched for, since it can be seen from nowhere."""
    plan = FloorPlan(compiled, grid, MAP_SIZE, numbered=False)
    plan.square(start)
    return Figure(plan.picture_at(PIXEL_RATIO), f"{label}: no search, since the object can be seen from nowhere")


def beliefs_chart(games: Sequence[MilestoneGame]) -> Figure:
    """A column for each milestone. Above: quick scores of all poses; below: mental rollouts for the pose it chose."""
    charts = ChartGrid(len(games), max(330 * len(games), 360), 600, rows=2)
    background = _known_to_all(games)
    for column, game in enumerate(games):
        above, below = charts.axes[:, column]
        _draw_scores(charts, above, game, background, f"{game.label}: ")
        _draw_mental_seekers(below, game, background)
    return charts.to_figure(
        "Above: the score of hiding from each visited pose, four triangles per position, one for each heading; each "
        f"milestone has its own scale. Below: mental seekers for the pose chosen, cut after {MAX_ROLLOUT_STEPS} steps; "
        "one rollout per imagined outcome is in color. Square: the start; star: the pose to hide from."
    )


def _known_to_all(games: Sequence[MilestoneGame]) -> PlanBackground:
    """The plan around all that any of the hiders got to know."""
    known = [
        cells_to_room_frame(
            game.episode.start, game.trace.hiding.explored, game.trace.hiding.explored.floor[0].nonzero().numpy()
        )
        for game in games
    ]
    return PlanBackground(games[0].episode, np.concatenate(known))


def _draw_scores(
    charts: ChartGrid, axes: Axes, game: MilestoneGame, background: PlanBackground, prefix: str = ""
) -> None:
    """The quick score of hiding from each visited pose."""
    hiding, start = game.trace.hiding, game.episode.start
    quarter, rows, columns = np.nonzero(np.isfinite(hiding.scores))
    places, values = np.stack([rows, columns, quarter], -1), hiding.scores[quarter, rows, columns]
    background.draw(axes)
    mappable = draw_poses(axes, game.episode, hiding, places, values, (values.min(), values.max() + 1e-9))
    for color, width in (("white", 4), (INK, 2)):
        axes.plot(*start[:2], "s", mfc="none", mec=color, mew=width, ms=9)
    axes.set_title(f"{prefix}{len(places)} poses visited", fontsize=9, color=INK)
    charts.color_bar(mappable, axes, "score")


def _draw_mental_seekers(axes: Axes, game: MilestoneGame, background: PlanBackground) -> None:
    """Mental rollouts for the pose that the hider chose."""
    hiding, choice = game.trace.hiding, game.trace.hiding.choice
    chosen = int(choice.chosen[0])
    background.draw(axes)
    draw_rollouts(axes, game.episode, hiding, chosen, 0)
    axes.plot(*game.episode.start[:2], "s", mfc="none", mec=INK, mew=2, ms=9)
    found = choice.rollouts.found.view(*choice.outcomes.shape, -1)[0, chosen].float().mean()
    steps = float(choice.expected_steps[0, chosen])
    axes.set_title(f"{steps:.0f} steps expected, {100 * found:.0f} % find it", fontsize=9, color=INK)


def games_figure(
    games: Sequence[MilestoneGame], hiders: Sequence[Figure], seekers: Sequence[Figure], same: Sequence[Figure]
) -> Figure:
    """All of it in one figure, to print: a column for each milestone, with the plans drawn for it."""
    tall = max(1.0, hiders[0].picture.shape[0] / hiders[0].picture.shape[1])
    charts = ChartGrid(len(games), max(330 * len(games), 400), len(ROWS) * (45 + 225 * tall), rows=len(ROWS))
    background = _known_to_all(games)
    for column, game in enumerate(games):
        at = charts.axes[:, column]
        for axes, plans in zip((at[0], at[3], at[4]), (hiders, seekers, same), strict=True):
            axes.imshow(plans[column].picture)
            axes.set_axis_off()
            words = plans[column].caption.removeprefix(f"{game.label}: ")
            axes.set_title("\n".join(wrap(words, 32)), fontsize=8, color=QUIET)
        at[0].set_title(f"{game.label}\n{at[0].get_title()}", fontsize=8.5, color=INK)
        _draw_scores(charts, at[1], game, background)
        _draw_mental_seekers(at[2], game, background)
    for axes, title in zip(charts.axes[:, 0], ROWS, strict=True):
        axes.text(-0.06, 0.5, title, rotation=90, va="center", ha="right", transform=axes.transAxes, fontsize=10)
    return charts.to_figure(
        "One game of each milestone from the same start. From above: how it explores, which pose it hides from and "
        "where the object ends up; scores of hiding poses; mental seekers for the pose chosen; its search for that "
        "object; and its search for the object that the last hider hid."
    )


def placing_charts(games: Sequence[MilestoneGame]) -> list[Figure]:
    """Where each milestone believed that it can place the object, and where it tried to."""
    return [
        Figure(figure.picture, f"{game.label}: {figure.caption}")
        for game in games
        if game.trace.steps_in(Stage.OH)
        for figure in [hittable_chart(game.trace)]
    ]
