"""The same game played by each milestone, side by side: the paper's qualitative figure, over training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.evaluation.hiding_places import DROPPED, kind_of, path_of_stage
from scrubjay.evaluation.scores import score
from scrubjay.game.actions import Stage
from scrubjay.game.record import Record
from scrubjay.rooms.floor import Grid
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.agent_charts import (
    MAX_ROLLOUT_STEPS,
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
from scrubjay.viz.palette import HIDING_POSE, INK, OBJECT, RED

EXPLORED = "#3f8a5f"
"""The hider's path, darker than the grid."""
LEGEND = (("explored", EXPLORED), ("chosen pose", HIDING_POSE), ("object", OBJECT), ("seeker", RED))
"""Colors on the plans."""


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
    return Figure(plan.picture, f"{label}: {_describe_hiding(record, compiled)}")


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
    result = f"found after {len(places)} steps" if record.found else f"not found in {len(places)} steps"
    claims = [name == "ClaimVisible" for name in record.actions]
    false = sum(claim and not right for claim, right in zip(claims, record.success, strict=True))
    return Figure(plan.picture, f"{label}: {result}" + (f", {false} false claims" if false else ""))


def missing_search(label: str, start: AgentPose, compiled: CompiledRoom, grid: Grid) -> Figure:
    """The plan of an object that nobody searched for, since it can be seen from nowhere."""
    plan = FloorPlan(compiled, grid, MAP_SIZE, numbered=False)
    plan.square(start)
    return Figure(plan.picture, f"{label}: no search, since the object can be seen from nowhere")


def beliefs_chart(games: Sequence[MilestoneGame]) -> Figure:
    """A column for each milestone. Above: quick scores of all poses; below: mental rollouts for the pose it chose."""
    charts = ChartGrid(len(games), max(330 * len(games), 360), 600, rows=2)
    known = [
        cells_to_room_frame(
            game.episode.start, game.trace.hiding.explored, game.trace.hiding.explored.floor[0].nonzero().numpy()
        )
        for game in games
    ]
    background = PlanBackground(games[0].episode, np.concatenate(known))
    for column, game in enumerate(games):
        above, below = charts.axes[:, column]
        hiding, start = game.trace.hiding, game.episode.start
        quarter, rows, columns = np.nonzero(np.isfinite(hiding.scores))
        places, values = np.stack([rows, columns, quarter], -1), hiding.scores[quarter, rows, columns]
        background.draw(above)
        mappable = draw_poses(above, game.episode, hiding, places, values, (values.min(), values.max() + 1e-9))
        for color, width in (("white", 4), (INK, 2)):
            above.plot(*start[:2], "s", mfc="none", mec=color, mew=width, ms=9)
        above.set_title(f"{game.label}: {len(places)} poses visited", fontsize=9, color=INK)
        charts.color_bar(mappable, above, "score")
        background.draw(below)
        choice = hiding.choice
        chosen = int(choice.chosen[0])
        draw_rollouts(below, game.episode, hiding, chosen, 0)
        below.plot(*start[:2], "s", mfc="none", mec=INK, mew=2, ms=9)
        found = choice.rollouts.found.view(*choice.outcomes.shape, -1)[0, chosen].float().mean()
        steps = float(choice.expected_steps[0, chosen])
        below.set_title(f"{steps:.0f} steps expected, {100 * found:.0f} % find it", fontsize=9, color=INK)
    return charts.to_figure(
        "Above: the score of hiding from each visited pose, four triangles per position, one for each heading; each "
        f"milestone has its own scale. Below: mental seekers for the pose chosen, cut after {MAX_ROLLOUT_STEPS} steps; "
        "one rollout per imagined outcome is in color. Square: the start; star: the pose to hide from."
    )


def placing_charts(games: Sequence[MilestoneGame]) -> list[Figure]:
    """Where each milestone believed that it can place the object, and where it tried to."""
    return [
        Figure(figure.picture, f"{game.label}: {figure.caption}")
        for game in games
        if game.trace.steps_in(Stage.OH)
        for figure in [hittable_chart(game.trace)]
    ]
