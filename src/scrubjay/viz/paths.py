"""Ways that were gone in a game: of hider and seeker from above, and of the object in the hand."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Chart
from PIL import Image, ImageDraw

from scrubjay.game.actions import Stage
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import Grid, frame
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import CAMERA_CROUCHING, CAMERA_STANDING, REACH
from scrubjay.viz.episode import Episode, Step
from scrubjay.viz.floorplan import THING, WAY, plan
from scrubjay.viz.page import Figure
from scrubjay.viz.picture import INK, PAPER

PLAN_SIZE = 500
OBJECT, CHOICE = (47, 105, 168), (138, 127, 181)


def grid_of(story: Episode) -> Grid:
    return story.compiled.floor.grid(np.array(story.start[:2]), story.start.rotation % 90)


def spot_on_plan(compiled: CompiledRoom, x: float, y: float) -> tuple[float, float]:
    """Where on a room's plan a point is, as shares of its width and height; the plan has a margin of 0.2 m."""
    west, south, east, north = compiled.room.bounds
    return (x - west + 0.2) / (east - west + 0.4), (north + 0.2 - y) / (north - south + 0.4)


def way_plan(story: Episode, seeker: bool) -> Figure:
    """The way of one player, the start, and where the object ended."""
    way = [story.start, *(step.place for step in story.of(Stage.S if seeker else Stage.EM))]
    picture = plan(story.compiled, grid_of(story), way, size=PLAN_SIZE)
    height, width = picture.shape[:2]
    smooth = 3
    layer = Image.new("RGBA", (width * smooth, height * smooth))
    draw, size = ImageDraw.Draw(layer), 6 * smooth

    def at(x: float, y: float) -> np.ndarray:
        return np.array(spot_on_plan(story.compiled, x, y)) * layer.size

    spot = next((step.place for step in story.of(Stage.PS, Stage.OH, Stage.OM)), None)
    if spot and not seeker:
        ends = at(way[-1].x, way[-1].y), at(spot.x, spot.y)
        shares = np.linspace(0, 1, max(2, int(np.linalg.norm(ends[1] - ends[0]) / (9 * smooth))))
        for x, y in (ends[0] + share * (ends[1] - ends[0]) for share in shares):
            draw.ellipse([x - smooth, y - smooth, x + smooth, y + smooth], fill=CHOICE)
        x, y = ends[1]
        draw.ellipse([x - size, y - size, x + size, y + size], outline=CHOICE, width=2 * smooth)
        tip = ends[1] + 3 * size * facing_vector(spot.rotation) * [1, -1]
        draw.line([(x, y), tuple(tip)], fill=CHOICE, width=2 * smooth)
    x, y = at(story.start.x, story.start.y)
    draw.rectangle([x - size, y - size, x + size, y + size], outline=INK, width=2 * smooth)
    if story.of(Stage.OH, Stage.OM, Stage.S):
        x, y = at(*story.record.pose[:2])
        size = 8 * smooth
        corners = [(x, y - size), (x + size, y), (x, y + size), (x - size, y)]
        draw.polygon(corners, fill=OBJECT, outline="white", width=smooth)
    layer = layer.resize((width, height), Image.Resampling.LANCZOS)
    marked = Image.alpha_composite(Image.fromarray(picture).convert("RGBA"), layer).convert("RGB")
    caption = (
        "The seeker's way, from the square; its end is the red dot. Blue: where the object ended."
        if seeker
        else "The hider's way, from the square. Violet: the place it chose to hide from. Blue: where the object ended."
    )
    return Figure(np.asarray(marked), caption)


def hand_chart(story: Episode) -> Figure | None:
    """The object's way in each manipulation, from above and from the side, as the hider stands; None without any."""
    attempts: list[list[Step]] = []
    for number, step in enumerate(story.steps):
        if step.stage == Stage.OM:
            # The step before, a PlaceAt, took the object into the hand.
            before = story.steps[max(number - 1, 0) : number]
            if not before or before[0].stage != Stage.OM:
                attempts.append(before)
            attempts[-1].append(step)
    if not attempts:
        return None
    place = attempts[0][0].place
    # Rows: to the right, ahead, up; the origin is on the floor under the hider.
    axes = np.array([[*right_vector(place.rotation), 0], [*facing_vector(place.rotation), 0], [0, 0, 1]])
    origin = np.array([place.x, place.y, 0.0])
    chart = Chart(figsize=(9.6, 4.3), dpi=100, facecolor=_hex(PAPER), layout="constrained")
    canvas = FigureCanvasAgg(chart)
    above, side = chart.subplots(1, 2)
    _things(story.compiled, above, side, axes, origin)
    behind, aside = 0.3, 1.6
    for number, attempt in enumerate(attempts):
        shade = 0.35 + 0.65 * (number + 1) / len(attempts)
        points = (np.array([step.pose[:3] for step in attempt]) - origin) @ axes.T
        behind, aside = max(behind, 0.1 - points[:, 1].min()), max(aside, 0.1 + abs(points[:, 0]).max())
        for view, (across, up) in ((above, (0, 1)), (side, (1, 2))):
            view.plot(points[:, across], points[:, up], "-o", color=_hex(WAY), alpha=shade, ms=3, lw=1.6)
            view.plot(*points[0, [across, up]], "o", color="white", mec=_hex(INK), ms=7)
            view.plot(*points[-1, [across, up]], "D", color=_hex(OBJECT), mec="white", alpha=shade, ms=9)
    turn = np.radians(np.linspace(-90, 90, 60))
    above.plot(REACH * np.sin(turn), REACH * np.cos(turn), ":", color="#6a6f7a", lw=1)
    above.plot(0, 0, "^", color=_hex(INK), ms=9)
    eye = CAMERA_STANDING if place.standing else CAMERA_CROUCHING
    side.plot([0, 0], [0, eye], "-o", color=_hex(INK), lw=2, ms=7, markevery=[1])
    side.axvline(REACH, color="#6a6f7a", lw=1, ls=":")
    above.set(
        title="from above", xlabel="right, m", ylabel="ahead, m", xlim=(-aside, aside), ylim=(-behind, 1.9), aspect=1
    )
    side.set(
        title="from the right side", xlabel="ahead, m", ylabel="height, m", xlim=(-behind, 1.9), ylim=(0, 2), aspect=1
    )
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    count = "One manipulation" if len(attempts) == 1 else f"{len(attempts)} manipulations"
    caption = f"{count}. White: taken into the hand; blue: where it was left; dotted: reach. Things are drawn closed."
    return Figure(picture, caption)


def _hex(color: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def _things(compiled: CompiledRoom, above: Axes, side: Axes, axes: np.ndarray, origin: np.ndarray) -> None:
    """Draws the things near the hand as boxes, those at the hand's side only in the view from above."""
    fill, edge = _hex(THING), "#968e80"
    for thing in sorted(compiled.room.things, key=lambda thing: thing.position[2]):
        if thing.type in ("Floor", "Wall", "Ceiling", "Rug", "CeilingLamp") or thing.position[2] > 1.6:
            continue
        position, turn = frame(thing)
        corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * np.array(thing.size) / 2
        local = (corners @ turn.T + position - origin) @ axes.T
        above.fill(local[:, 0], local[:, 1], fc=fill, ec=edge, lw=0.8, alpha=0.6)
        if local[:, 0].min() < 0.4 and local[:, 0].max() > -0.4 and local[:, 1].max() > 0:
            near, far, low = local[:, 1].min(), local[:, 1].max(), thing.position[2]
            high = low + thing.size[2]
            side.fill([near, far, far, near], [low, low, high, high], fc=fill, ec=edge, lw=0.8, alpha=0.45)
