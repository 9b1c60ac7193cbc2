"""Paths of a game: hider and seeker from above, and the object in the hand."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Chart

from scrubjay.game.actions import Stage
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import CAMERA_CROUCHING, CAMERA_STANDING, REACH, AgentPose
from scrubjay.viz.episode import Episode, EpisodeStep
from scrubjay.viz.floorplan import NOT_DRAWN, FloorPlan, footprint
from scrubjay.viz.page import Figure
from scrubjay.viz.palette import FURNITURE, HIDING_POSE, INK, OBJECT, OUTLINE, PAPER, QUIET, RED

PLAN_SIZE = 500


def path_of(episode: Episode, seeker: bool) -> list[AgentPose]:
    """The poses of the seeker, or of the exploring hider, from the start on."""
    return [episode.start, *(step.agent_pose for step in episode.steps_in(Stage.S if seeker else Stage.EM))]


def path_plan(episode: Episode, seeker: bool, hidden: bool = True) -> Figure:
    """One player's path, its start, and where the object ended up, if one was to be hidden."""
    plan, path = FloorPlan(episode.compiled, episode.grid, PLAN_SIZE, numbered=False), path_of(episode, seeker)
    plan.path(path)
    if hidden and not seeker:
        mark_hiding_pose(plan, episode, path[-1])
    plan.square(episode.start)
    if not hidden:
        return Figure(plan.picture, "The path, from the square to the red dot.")
    mark_object(plan, episode)
    caption = (
        "The seeker's path, from the square to the red dot. Blue: where the object ended up."
        if seeker
        else "The hider's path, from the square. Violet: the pose chosen to hide from. Blue: where the object ended up."
    )
    return Figure(plan.picture, caption)


def mark_hiding_pose(plan: FloorPlan, episode: Episode, explored_last: AgentPose) -> None:
    """Marks the pose that the hider chose in PS, with a dotted line from where it had explored last."""
    pose = next((step.agent_pose for step in episode.steps_in(Stage.PS, Stage.OH, Stage.OM)), None)
    if pose:
        plan.dotted(explored_last, pose, HIDING_POSE)
        plan.ring(pose, HIDING_POSE)


def mark_object(plan: FloorPlan, episode: Episode) -> None:
    """Marks where the object ended up, if the game had one in the room."""
    if episode.steps_in(Stage.OH, Stage.OM, Stage.S):
        x, y = episode.record.pose[:2]
        plan.diamond(x, y, OBJECT)


def manipulations(steps: list[EpisodeStep]) -> list[list[EpisodeStep]]:
    """The steps of each attempt to place the object, from the PlaceAt that took it into the hand on."""
    attempts: list[list[EpisodeStep]] = []
    for number, step in enumerate(steps):
        if step.stage == Stage.OM:
            before = steps[max(number - 1, 0) : number]
            if not before or before[0].stage != Stage.OM:
                attempts.append(before)
            attempts[-1].append(step)
    return attempts


def hand_chart(episode: Episode) -> Figure | None:
    """The object's path in each manipulation, from above and from the side in the hider's frame; None without any."""
    attempts = manipulations(episode.steps)
    if not attempts:
        return None
    pose = attempts[0][0].agent_pose
    # Rows: right, ahead, up. The origin is on the floor under the hider.
    axes = np.array([[*right_vector(pose.rotation), 0], [*facing_vector(pose.rotation), 0], [0, 0, 1]])
    origin = np.array([*pose[:2], 0.0])
    chart = Chart(figsize=(9.6, 4.3), dpi=100, facecolor=PAPER, layout="constrained")
    canvas = FigureCanvasAgg(chart)
    above, side = chart.subplots(1, 2)
    _draw_furniture(episode.compiled, above, side, axes, origin)
    behind, aside = 0.3, 1.6
    for number, attempt in enumerate(attempts):
        shade = 0.35 + 0.65 * (number + 1) / len(attempts)
        points = (np.array([step.object_pose[:3] for step in attempt]) - origin) @ axes.T
        behind, aside = max(behind, 0.1 - points[:, 1].min()), max(aside, 0.1 + abs(points[:, 0]).max())
        for view, (across, up) in ((above, (0, 1)), (side, (1, 2))):
            view.plot(points[:, across], points[:, up], "-o", color=RED, alpha=shade, ms=3, lw=1.6)
            view.plot(*points[0, [across, up]], "o", color="white", mec=INK, ms=7)
            view.plot(*points[-1, [across, up]], "D", color=OBJECT, mec="white", alpha=shade, ms=9)
    angle = np.radians(np.linspace(-90, 90, 60))
    above.plot(REACH * np.sin(angle), REACH * np.cos(angle), ":", color=QUIET, lw=1)
    above.plot(0, 0, "^", color=INK, ms=9)
    eye = CAMERA_STANDING if pose.standing else CAMERA_CROUCHING
    side.plot([0, 0], [0, eye], "-o", color=INK, lw=2, ms=7, markevery=[1])
    side.axvline(REACH, color=QUIET, lw=1, ls=":")
    above.set(
        title="from above", xlabel="right (m)", ylabel="ahead (m)", xlim=(-aside, aside), ylim=(-behind, 1.9), aspect=1
    )
    side.set(
        title="from the right", xlabel="ahead (m)", ylabel="height (m)", xlim=(-behind, 1.9), ylim=(0, 2), aspect=1
    )
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    count = "One manipulation" if len(attempts) == 1 else f"{len(attempts)} manipulations"
    caption = f"{count}. White: taken into the hand; blue: released; dotted: reach. Furniture is drawn closed."
    return Figure(picture, caption)


def _draw_furniture(compiled: CompiledRoom, above: Axes, side: Axes, axes: np.ndarray, origin: np.ndarray) -> None:
    """Draws things near the hand as boxes; the side view has only those in front of the hider."""
    for thing in sorted(compiled.room.things, key=lambda thing: thing.position[2]):
        if thing.type in NOT_DRAWN or thing.position[2] > 1.6:
            continue
        local = (footprint(thing) - origin) @ axes.T
        above.fill(local[:, 0], local[:, 1], fc=FURNITURE, ec=OUTLINE, lw=0.8, alpha=0.6)
        if local[:, 0].min() < 0.4 and local[:, 0].max() > -0.4 and local[:, 1].max() > 0:
            near, far, low = local[:, 1].min(), local[:, 1].max(), thing.position[2]
            high = low + thing.size[2]
            side.fill([near, far, far, near], [low, low, high, high], fc=FURNITURE, ec=OUTLINE, lw=0.8, alpha=0.45)
