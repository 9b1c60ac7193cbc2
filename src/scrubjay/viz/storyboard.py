"""One picture of a whole game: frames of the hider, frames of the seeker, and the floor plan with both paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from scrubjay.game.actions import Stage
from scrubjay.viz.captions import with_article
from scrubjay.viz.episode import Episode, EpisodeStep, most_detailed
from scrubjay.viz.floorplan import MARGIN, FloorPlan
from scrubjay.viz.palette import BLUE, HIDING_POSE, INK, ORANGE, PAPER, QUIET, RED, rgb
from scrubjay.viz.paths import mark_hiding_pose, path_of
from scrubjay.viz.picture import render_dollhouse, shrink_picture

WIDTH = 1200
FRAME = 212
"""Edge of a frame."""
GAP, CAPTION, HEADING = 10, 30, 34
COLUMNS = 4
LEGEND, LEGEND_ROW = 66, 24
HIDER, SEEKER = RED, BLUE
"""Colors of the two paths."""

Panel = tuple[EpisodeStep, str]
Box = tuple[int, int, int, int]
"""Left, top, right, bottom."""


def draw_storyboard(episode: Episode, renderer: str = "auto") -> np.ndarray:
    """The picture (H, 1200, 3) uint8 of a whole game. Frames of 448 pixels look best."""
    block = HEADING + FRAME + CAPTION
    canvas = Image.new("RGB", (WIDTH, 2 * block + 3 * GAP), PAPER)
    goal = episode.record.goal.lower()
    hidden_in = f"in {with_article(episode.contained_in)}" if episode.container >= 0 else "in the open"
    ending = "The seeker does not find it"
    if episode.record.found:
        ending = f"The seeker finds it after {len(episode.steps_in(Stage.S))} steps"
    _draw_row(canvas, GAP, HIDER, f"The hider explores and hides a {goal} {hidden_in}", hider_panels(episode))
    _draw_row(canvas, 2 * GAP + block, SEEKER, ending, seeker_panels(episode))
    left, right = COLUMNS * (FRAME + GAP) + 3 * GAP, WIDTH - GAP
    plan_top = _paste_in(canvas, _dollhouse(episode, right - left, renderer), (left, GAP, right, canvas.height)) + GAP
    _draw_plan(canvas, episode, (left, plan_top, right, canvas.height - GAP))
    return np.asarray(canvas)


def hider_panels(episode: Episode) -> list[Panel]:
    """Exploring, the object in the hand, dropped, and how the hider leaves it."""
    exploring, manipulating, hiding = (episode.steps_in(stage) for stage in (Stage.EM, Stage.OM, Stage.OH))
    goal = episode.record.goal.lower()
    elsewhere = [step for step in exploring if step.agent_pose[:2] != hiding[0].agent_pose[:2]]
    panels = [(most_detailed(elsewhere or exploring), "explores")]
    if manipulating:
        panels.append((manipulating[len(manipulating) // 2], f"moves the {goal} by hand"))
        panels.append((manipulating[-1], f"drops the {goal}"))
    closing = [step for step in hiding if step.action == "CloseObjects" and step.success]
    return [*panels, (closing[-1], "closes everything") if closing else (hiding[-1], "is done")]


def seeker_panels(episode: Episode) -> list[Panel]:
    """The first view, one from the first third of the search, one with something opened, and the claim."""
    steps = episode.steps_in(Stage.S)
    third = max(1, len(steps) // 3)
    opening = [step for step in steps[third:-1] if step.opened and step.agent_pose[:2] != steps[-1].agent_pose[:2]]
    panels = [(steps[0], "starts where the hider did")]
    if early := steps[1:third]:
        panels.append((most_detailed(early), "looks around"))
    if later := opening or steps[third:-1]:
        panels.append((most_detailed(later), "opens and searches"))
    return [*panels, (steps[-1], f"claims the {episode.record.goal.lower()}" if episode.record.found else "gives up")]


def _draw_row(canvas: Image.Image, top: int, color: str, heading: str, panels: Sequence[Panel]) -> None:
    draw, small = ImageDraw.Draw(canvas), ImageFont.load_default(size=15)
    draw.rectangle([GAP, top + 6, GAP + 13, top + 19], fill=color)
    draw.text((GAP + 22, top + 12), heading, fill=INK, font=ImageFont.load_default(size=20), anchor="lm")
    for column, (step, caption) in enumerate(panels):
        left, y = GAP + column * (FRAME + GAP), top + HEADING
        canvas.paste(Image.fromarray(shrink_picture(step.picture, FRAME)), (left, y))
        draw.text((left, y + FRAME + 13), caption, fill=INK, font=small, anchor="lm")
        draw.text((left + FRAME, y + FRAME + 13), str(step.number + 1), fill=QUIET, font=small, anchor="rm")


def _dollhouse(episode: Episode, width: int, renderer: str) -> np.ndarray:
    """The room from above, cut to what is not background and scaled to a width."""
    picture = render_dollhouse(episode.compiled, 2 * width, renderer)
    rows, columns = np.nonzero((picture != rgb(PAPER)).any(-1))
    picture = picture[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    height = width * len(picture) // picture.shape[1]
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def _draw_plan(canvas: Image.Image, episode: Episode, box: Box) -> None:
    """The plan with both paths, and a legend under it."""
    left, top, right, bottom = box
    west, south, east, north = episode.compiled.room.bounds
    across, up = east - west + 2 * MARGIN, north - south + 2 * MARGIN
    size = int(max(across, up) * min((right - left) / across, (bottom - top - LEGEND) / up))
    plan = FloorPlan(episode.compiled, episode.grid, size, numbered=False)
    explored, sought = (path_of(episode, seeker) for seeker in (False, True))
    plan.path(explored, HIDER)
    plan.path(sought, SEEKER)
    mark_hiding_pose(plan, episode, explored[-1])
    plan.square(episode.start)
    x, y = (episode.record.hidden or {"pose": episode.record.pose})["pose"][:2]
    plan.diamond(x, y, ORANGE)
    below = _paste_in(canvas, plan.picture, box) + 6
    entries = [(HIDER, "hider"), (SEEKER, "seeker"), (HIDING_POSE, "hides from"), (ORANGE, "object"), (INK, "start")]
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=15)
    for number, (color, text) in enumerate(entries):
        x, y = left + number % 3 * (right - left) // 3 + 4, below + LEGEND_ROW * (number // 3) + 10
        draw.rectangle([x, y - 5, x + 10, y + 5], fill=color)
        draw.text((x + 17, y), text, fill=INK, font=font, anchor="lm")


def _paste_in(canvas: Image.Image, picture: np.ndarray, box: Box) -> int:
    """Puts a picture at the top of a box, centered; returns its bottom edge."""
    left, top, right, _ = box
    canvas.paste(Image.fromarray(picture), (left + (right - left - picture.shape[1]) // 2, top))
    return top + len(picture)
