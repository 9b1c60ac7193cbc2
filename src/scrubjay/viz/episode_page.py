"""The page of a game: storyboard, plans, the hand's way, measures and a scrubber, in one file."""

from __future__ import annotations

import base64
import io
import itertools
import os

import numpy as np
from PIL import Image

from scrubjay.evaluation.scores import named, score
from scrubjay.files import write_atomically
from scrubjay.game.actions import Stage
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.episode import STAGES, Episode, Step, chosen
from scrubjay.viz.floorplan import plan
from scrubjay.viz.page import Figure, template
from scrubjay.viz.paths import PLAN_SIZE, grid_of, hand_chart, spot_on_plan, way_plan

FRAMES, KEY_FRAMES = 400, 6
"""At most, of the scrubber and of each stage on the storyboard."""
NAMED = 4
"""Things that were opened, at most."""
MEASURES = {
    "coverage": "of the reachable positions and heights were visited while exploring",
    "coverage_plus": "of them are a step ahead of visited places, or beside that",
    "opened": "of what opens was opened while exploring",
    "hit_target": "of the manipulations put the object exactly where it was to go",
    "placed": "the object was placed, and did not just fall from the hand",
    "visible_from": "of the reachable places show the hidden object",
    "bfs_found": "a breadth-first search that sees through what opens finds it",
    "bfs_steps": "of the positions are looked from until it does",
    "found": "the seeker found it",
    "steps": "of the seeker, 500 if it did not find it",
    "false_claims": "claims of the seeker that failed",
}
"""What the page says of the paper's measures."""
YES_OR_NO, COUNTS = ("placed", "bfs_found", "found"), ("steps", "false_claims")


def write_episode_page(story: Episode, path: str | os.PathLike[str], video: str = "") -> None:
    """Writes a game's page, which needs no other file; it links to a video if there is one beside it."""
    record, dealt = story.record, story.record.dealt()
    shown = chosen(story.steps, FRAMES)
    walks = [seeker for seeker in (False, True) if story.of(*([Stage.S] if seeker else set(Stage) - {Stage.S}))]
    write_atomically(path, template("episode_page.html").render(
        title=f"{record.goal} in {record.scene}",
        facts=facts(story),
        numbers=_numbers(story),
        measures=measures(story),
        stages=[_stage(story, stage) for stage in Stage if dealt.first <= stage <= dealt.last or story.of(stage)],
        bands=[(STAGES[stage][1], len(list(run))) for stage, run in itertools.groupby(shown, lambda step: step.stage)],
        frames=[_frame(story, step) for step in shown],
        total=len(story.steps),
        object=record.goal,
        map=Figure(plan(story.compiled, grid_of(story), size=PLAN_SIZE), "Where the player is."),
        plans=[way_plan(story, seeker) for seeker in walks],
        hider=bool(story.of(Stage.OH, Stage.OM)),
        hand=hand_chart(story),
        video=video,
    ))  # fmt: skip


def facts(story: Episode) -> str:
    record, players = story.record, story.record.players
    who = {role: f"the {role} ({players[role]})" if role in players else f"the {role}" for role in ("hider", "seeker")}
    said = [f"A game of Cache: {who['hider']} had a {record.goal.lower()} to hide"]
    if record.dealt().first == Stage.S:
        said = [f"A search: a {record.goal.lower()} was hidden ({players.get('hider', 'by nobody known')})"]
    if story.of(Stage.S):
        said.append(f"{who['seeker']} {'found it' if record.found else 'did not find it'}")
    return f"{', '.join(said)}. {len(story.steps)} steps, drawn with {story.drawn_with}."


def measures(story: Episode) -> list[tuple[str, str, str]]:
    """The paper's measures that the game has: names, values, meanings."""
    values = named(score(story.record, story.compiled))
    return [
        (name.replace("_plus", "+").replace("_", " "), _value(name, values[name]), meaning)
        for name, meaning in MEASURES.items()
        if name in values
    ]


def _value(name: str, value: float) -> str:
    if name in YES_OR_NO:
        return "yes" if value else "no"
    return f"{value:.0f}" if name in COUNTS else f"{100 * value:.1f} %"


def _numbers(story: Episode) -> list[tuple[str, str]]:
    """Labels and what stands behind them."""
    record, seeking = story.record, story.of(Stage.S)
    hiding = [step for step in story.steps if step.stage != Stage.S]
    numbers = []
    if seeking:
        done = f"found after {len(seeking)} steps" if record.found else f"not found in {len(seeking)} steps"
        numbers.append(("Result", done))
    if story.of(Stage.OH, Stage.OM, Stage.S):
        away = float(np.hypot(record.pose[0] - story.start.x, record.pose[1] - story.start.y))
        numbers += [("Object contained in", story.contained_in), ("Start to object", f"{away:.2f} m")]
    if hiding:
        attempts = f"{len(record.hits)}, {sum(hit for hit, _ in record.hits)} on target"
        numbers.append(("Attempts to place it", attempts))
        numbers.append(("Walked by the hider", f"{_walked(story.start, story.of(Stage.EM)):.2f} m"))
        numbers.append(("Opened by the hider", _opened(story, hiding)))
    if seeking:
        numbers.append(("Walked by the seeker", f"{_walked(story.start, seeking):.2f} m"))
        numbers.append(("Opened by the seeker", _opened(story, seeking)))
    return numbers


def _opened(story: Episode, steps: list[Step]) -> str:
    numbers = list(dict.fromkeys(number for step in steps for number in step.opened))
    names = [f"{story.compiled.things[story.compiled.openables[n].thing]} ({n})" for n in numbers[:NAMED]]
    more = [f"{len(numbers) - NAMED} more"] if len(numbers) > NAMED else []
    return ", ".join(names + more) or "nothing"


def _walked(start: AgentPose, steps: list[Step]) -> float:
    points = np.array([place[:2] for place in (start, *(step.place for step in steps))])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _stage(story: Episode, stage: Stage) -> dict:
    """A row of the storyboard."""
    title, color, text = STAGES[stage]
    steps = story.of(stage)
    keys = chosen(steps, KEY_FRAMES)
    figures = [(_webp(step.picture), step.number + 1, step.action, step.result) for step in keys]
    worked = sum(step.success for step in steps)
    return dict(name=stage.name, title=title, color=color, text=text, steps=len(steps), worked=worked, figures=figures)


def _frame(story: Episode, step: Step) -> dict:
    """A frame of the scrubber: the picture, words, and where on the plan player and object are."""
    title, color, _ = STAGES[step.stage]
    x, y = spot_on_plan(story.compiled, step.place.x, step.place.y)
    there = step.stage >= Stage.OH and step.pose[2] < story.compiled.room.height
    return dict(
        image=_webp(step.picture), step=step.number + 1, stage=title, color=color,
        action=step.action, result=step.result, failed=not step.success, turn=round(step.place.rotation, 1),
        player=[round(100 * x, 2), round(100 * y, 2)],
        object=[round(100 * part, 2) for part in spot_on_plan(story.compiled, *step.pose[:2])] if there else None,
    )  # fmt: skip


def _webp(picture: np.ndarray) -> str:
    """A picture as it stands in the page: half as large as a JPEG that looks the same."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "WEBP", quality=80, method=2)
    return base64.b64encode(buffer.getvalue()).decode()
