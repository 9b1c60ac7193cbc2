"""The page of a game: scrubber, metrics, storyboard, paths and the hand's path, in one file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from scrubjay.evaluation.scores import score
from scrubjay.files import write_atomically
from scrubjay.game.actions import Stage
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.captions import caption, count_things, with_article
from scrubjay.viz.episode import STAGES, Episode, EpisodeStep, key_steps, most_detailed, select_steps
from scrubjay.viz.floorplan import FloorPlan, plan_fraction
from scrubjay.viz.page import Figure, color_bands, encode_frame, load_template
from scrubjay.viz.paths import PLAN_SIZE, hand_chart, path_plan

MAX_FRAMES, MAX_KEY_FRAMES = 400, 6
"""Of the scrubber, and of each stage on the storyboard."""
METRICS = {
    "coverage": "of the reachable positions, standing and crouching, were visited while exploring",
    "coverage_plus": "of them were visited, or lie one step ahead of a visited pose or beside that",
    "opened": "of the openables were opened while exploring",
    "hit_target": "of the manipulations put the object exactly at their target",
    "placed": "the object was placed, not just dropped",
    "visible_from": "of the reachable poses see the hidden object",
    "bfs_found": "a breadth-first searcher that sees through openables finds it",
    "bfs_steps": "of the positions are searched until it does",
    "found": "the seeker found the object",
    "steps": "taken by the seeker, 500 if it did not find the object",
    "false_claims": "failed claims of the seeker",
}
"""What the paper's metrics mean, for the page."""
STAGE_METRICS = {
    Stage.EM: ("coverage", "coverage_plus", "opened"),
    Stage.PS: (),
    Stage.OH: ("placed", "visible_from", "bfs_found", "bfs_steps"),
    Stage.OM: ("hit_target",),
    Stage.S: ("found", "steps", "false_claims"),
}
"""The metrics that a stage decides."""
BINARY, COUNTS = ("placed", "bfs_found", "found"), ("steps", "false_claims")


def write_episode_page(
    episode: Episode, path: str | os.PathLike[str], video: str = "", links: Mapping[str, str] | None = None
) -> None:
    """Writes a game's page as one file, with links to a video beside it, if there is one, and to other pages."""
    record, spec = episode.record, episode.record.spec
    shown = select_steps(episode.steps, MAX_FRAMES)
    players = [seeker for seeker in (False, True) if any((step.stage == Stage.S) == seeker for step in episode.steps)]
    write_atomically(path, load_template("episode_page.html").render(
        title=f"{record.goal} in {record.scene}",
        facts=summarize(episode),
        summary=_summary_rows(episode),
        metrics=describe_metrics(episode),
        stages=[_stage(episode, stage) for stage in Stage
                if spec.first <= stage <= spec.last or episode.steps_in(stage)],
        bands=color_bands(STAGES[step.stage].color for step in shown),
        frames=[_frame(episode, step) for step in shown],
        first=shown.index(most_detailed([step for step in shown if step.opened] or shown)),
        total=len(episode.steps),
        object=record.goal,
        map=Figure(FloorPlan(episode.compiled, episode.grid, PLAN_SIZE, numbered=False).picture, "the floor plan"),
        plans=[path_plan(episode, seeker) for seeker in players],
        hider=bool(episode.steps_in(Stage.OH, Stage.OM)),
        hand=hand_chart(episode),
        video=video,
        links=links or {},
    ))  # fmt: skip


def summarize(episode: Episode) -> str:
    """A sentence or two: who played, and how it ended."""
    record, players = episode.record, episode.record.players
    who = {role: f"the {role} ({players[role]})" if role in players else f"the {role}" for role in ("hider", "seeker")}
    clauses = [f"A game of Cache: {who['hider']} had a {record.goal.lower()} to hide"]
    if record.spec.first == Stage.S:
        clauses = [f"A search: a {record.goal.lower()} was hidden ({players.get('hider', 'hider unknown')})"]
    if episode.steps_in(Stage.S):
        clauses.append(f"{who['seeker']} {'found it' if record.found else 'did not find it'}")
    return f"{', '.join(clauses)}. {len(episode.steps)} steps, rendered with {episode.renderer}."


def describe_metrics(episode: Episode, names: Collection[str] = tuple(METRICS)) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each of the paper's metrics that the game has, of those named."""
    values = score(episode.record, episode.compiled).to_dict()
    return [
        (name.replace("_plus", "+").replace("_", " ").replace("bfs", "BFS"), _format(name, values[name]), meaning)
        for name, meaning in METRICS.items()
        if name in values and name in names
    ]


def _format(name: str, value: float) -> str:
    if name in BINARY:
        return "yes" if value else "no"
    return f"{value:.0f}" if name in COUNTS else f"{100 * value:.1f} %"


def _summary_rows(episode: Episode) -> list[tuple[str, str]]:
    """Labels and values under the title."""
    record, seeking = episode.record, episode.steps_in(Stage.S)
    hiding = [step for step in episode.steps if step.stage != Stage.S]
    rows = []
    if seeking:
        result = f"found after {len(seeking)} steps" if record.found else f"not found in {len(seeking)} steps"
        rows.append(("Result", result))
    if episode.steps_in(Stage.OH, Stage.OM, Stage.S):
        distance = float(np.linalg.norm(np.subtract(record.pose[:2], episode.start[:2])))
        inside = with_article(episode.contained_in) if episode.container >= 0 else "nothing"
        rows += [("Object contained in", inside), ("Distance from start to object", f"{distance:.2f} m")]
    if hiding:
        hits = sum(hit for hit, _ in record.hits)
        rows.append(("Manipulations", f"{len(record.hits)}, {hits} on target"))
        rows.append(("Walked by the hider", f"{_path_length(episode.start, episode.steps_in(Stage.EM)):.2f} m"))
        rows.append(("Opened by the hider", _opened_names(episode, hiding)))
    if seeking:
        rows.append(("Walked by the seeker", f"{_path_length(episode.start, seeking):.2f} m"))
        rows.append(("Opened by the seeker", _opened_names(episode, seeking)))
    return rows


def _opened_names(episode: Episode, steps: list[EpisodeStep]) -> str:
    numbers = list(dict.fromkeys(number for step in steps for number in step.opened))
    compiled = episode.compiled
    return count_things(compiled.room.things[compiled.openables[n].thing].type for n in numbers) or "nothing"


def _path_length(start: AgentPose, steps: list[EpisodeStep]) -> float:
    points = np.array([place[:2] for place in (start, *(step.agent_pose for step in steps))])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _stage(episode: Episode, stage: Stage) -> dict[str, Any]:
    """A row of the storyboard."""
    steps = episode.steps_in(stage)
    frames = [
        (encode_frame(step.picture), step.number + 1, caption(episode, step), step.result)
        for step in key_steps(steps, MAX_KEY_FRAMES)
    ]
    successes = sum(step.success for step in steps)
    return dict(name=stage.name, **STAGES[stage]._asdict(), steps=len(steps), successes=successes, frames=frames)


def _frame(episode: Episode, step: EpisodeStep) -> dict[str, Any]:
    """A frame of the scrubber; `player` and `object` are percentages of the plan's width and height."""
    style = STAGES[step.stage]
    in_room = step.stage >= Stage.OH and step.object_pose[2] < episode.compiled.room.height
    return dict(
        image=encode_frame(step.picture), step=step.number + 1, stage=style.title, color=style.color,
        action=step.action, words=caption(episode, step),
        result=step.result, failed=not step.success, turn=round(step.agent_pose.rotation, 1),
        player=plan_percent(episode, *step.agent_pose[:2]),
        object=plan_percent(episode, *step.object_pose[:2]) if in_room else None,
    )  # fmt: skip


def plan_percent(episode: Episode, x: float, y: float) -> list[float]:
    """Where on the plan a point is, in percent of its width and height."""
    return [round(100 * share, 2) for share in plan_fraction(episode.compiled, x, y)]
