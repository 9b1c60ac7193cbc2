"""A game told from its record: one page with storyboard, plans, the hand's way and a scrubber; and a video."""

from __future__ import annotations

import base64
import io
import itertools
import os
from dataclasses import dataclass
from importlib import resources

import numpy as np
from jinja2 import Environment
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Chart
from PIL import Image, ImageDraw

from scrubjay.game.actions import Stage
from scrubjay.game.record import Record, replay
from scrubjay.show.page import Figure
from scrubjay.show.picture import INK, PAPER, encoded, labelled, shrunk, tiled
from scrubjay.show.plan import THING, WAY, plan
from scrubjay.world.files import write_atomically
from scrubjay.world.floor import Grid, frame
from scrubjay.world.mjcf import Compiled
from scrubjay.world.place import CAMERA_CROUCHING, CAMERA_STANDING, REACH, Place, ahead
from scrubjay.world.world import World

FRAMES, FRAME_SIZE = 400, 160
"""Of the scrubber: at most so many, so many pixels wide."""
VIDEO_FRAMES, VIDEO_SIZE, VIDEO_MS, LAST_MS = 300, 224, 90, 2000
KEY_FRAMES, PLAN_SIZE = 6, 500
OBJECT = (47, 105, 168)
STAGES = {
    Stage.EM: ("Exploration and mapping", "#78aa8c", "The hider gets to know the room."),
    Stage.PS: (
        "Perspective simulation",
        "#8a7fb5",
        "The hider chooses where to hide from: steps right and ahead, quarter turns, standing.",
    ),
    Stage.OH: ("Object hiding", "#dfa04f", "The hider opens, closes, and says where the object should go."),
    Stage.OM: ("Object manipulation", "#c8463c", "The object is in the hand; each attempt begins with a PlaceAt."),
    Stage.S: ("Seeking", "#2f69a8", "The seeker begins where the hider began."),
}
_PLAIN = ("Move", "Rotate", "Stand", "Crouch")


@dataclass(frozen=True)
class Step:
    """What an action did, and what was seen then."""

    number: int
    stage: Stage
    action: str
    success: bool
    hit: bool
    place: Place
    pose: np.ndarray
    opened: tuple[int, ...]
    """Numbers of the openables that it opened."""
    picture: np.ndarray

    @property
    def result(self) -> str:
        return ("succeeded" if self.success else "failed") + (", target hit" if self.hit else "")

    @property
    def eventful(self) -> bool:
        """More than walking, turning and moving the hand, and it worked."""
        return self.success and not self.action.startswith(_PLAIN)


@dataclass(frozen=True)
class Story:
    """A game as it was replayed."""

    record: Record
    compiled: Compiled
    steps: list[Step]
    container: int
    """The id of the thing that held the object when the seeker began, or -1."""
    drawn_with: str

    def of(self, *stages: Stage) -> list[Step]:
        return [step for step in self.steps if step.stage in stages]

    @property
    def start(self) -> Place:
        return Place(*self.record.start)


def tell(record: Record, renderer: str = "auto") -> Story:
    """Replays a record and keeps what is shown of it; RecordError if it does not replay."""
    steps: list[Step] = []
    container = -1
    with World([record.scene], renderer=renderer, size=record.size) as world:
        is_open, place = world.state.open[0].copy(), Place(*record.start)
        for number, (cache, outcome) in enumerate(replay(record, world)):
            stage = Stage(outcome.stage[0])
            opened: tuple[int, ...] = ()
            if outcome.finished[0]:
                # The next game has begun; a claim changes nothing, so the last picture is still right.
                picture = steps[-1].picture
            else:
                picture = cache.look().rgb[0].cpu().numpy()
                picture = shrunk(picture, VIDEO_SIZE) if record.size > VIDEO_SIZE else picture.copy()
                place = world.place(0)
                opened = tuple(np.flatnonzero(world.state.open[0] & ~is_open).tolist())
                is_open = world.state.open[0].copy()
            if stage != Stage.S and cache.stage[0] == Stage.S:
                container = int(world.contained()[0])
            done = bool(outcome.success[0])
            steps.append(Step(number, stage, record.actions[number], done, bool(outcome.hit[0]), place,
                              outcome.pose[0].copy(), opened, picture))  # fmt: skip
        return Story(record, world.rooms[0], steps, container, world.renderer.name)


def chosen(steps: list[Step], most: int) -> list[Step]:
    """Some of the steps in their order, the last always: eventful ones for up to half, the others evenly spread."""
    if len(steps) <= most:
        return steps
    events = [i for i, step in enumerate(steps[:-1]) if step.eventful]
    kept = {len(steps) - 1, *(events[i] for i in _spread(len(events), (most - 1) // 2))}
    others = [i for i in range(len(steps)) if i not in kept]
    kept |= {others[i] for i in _spread(len(others), most - len(kept))}
    return [steps[i] for i in sorted(kept)]


def _spread(count: int, most: int) -> list[int]:
    return list(range(count)) if count <= most else np.linspace(0, count - 1, most).round().astype(int).tolist()


def write_story(record: Record, path: str | os.PathLike[str], renderer: str = "auto") -> None:
    """Replays a record and writes its page, which needs no other file."""
    story = tell(record, renderer)
    template = resources.files("scrubjay.show").joinpath("story.html").read_text()
    page = Environment(autoescape=True).from_string(template)
    shown = chosen(story.steps, FRAMES)
    found = "found it" if record.found else "did not find it"
    write_atomically(path, page.render(
        title=f"{record.goal} in {record.scene}",
        facts=f"A game of Cache: the hider had a {record.goal.lower()} to hide, the seeker {found}. "
        f"{len(story.steps)} steps, drawn with {story.drawn_with}.",
        numbers=_numbers(story),
        stages=[_stage(story, stage) for stage in Stage],
        bands=[(STAGES[stage][1], len(list(run))) for stage, run in itertools.groupby(shown, lambda step: step.stage)],
        frames=[_frame(story, step) for step in shown],
        total=len(story.steps),
        object=record.goal,
        map=Figure(plan(story.compiled, _grid(story), size=PLAN_SIZE), "Where the player is."),
        plans=[_plan(story, seeker=False), _plan(story, seeker=True)],
        hand=_hand(story),
    ))  # fmt: skip


def write_video(record: Record, path: str | os.PathLike[str], renderer: str = "auto") -> None:
    """Replays a record and writes it as an animated GIF, the hider's part and then the seeker's."""
    story, pictures = tell(record, renderer), []
    for step in chosen(story.steps, VIDEO_FRAMES):
        who = "seeker" if step.stage == Stage.S else "hider"
        mark = "" if step.success else " (failed)"
        text = f"{step.number + 1} {who}, {step.action}{mark}"
        pictures.append(labelled(shrunk(step.picture, VIDEO_SIZE), text))
    # One palette for all frames: quicker than one each, and colours do not flicker.
    palette = Image.fromarray(tiled([pictures[i] for i in _spread(len(pictures), 24)], 6)).quantize(256)
    images = [Image.fromarray(picture).quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    buffer = io.BytesIO()
    durations = [VIDEO_MS] * (len(images) - 1) + [LAST_MS]
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=False)
    write_atomically(path, buffer.getvalue())


def _numbers(story: Story) -> list[tuple[str, str]]:
    """Labels and what stands behind them."""
    record, seeking = story.record, story.of(Stage.S)
    hiding = [step for step in story.steps if step.stage != Stage.S]
    attempts = [step for step in story.of(Stage.OH) if step.action.startswith("PlaceAt") and step.success]
    wrong = sum(step.action == "ClaimVisible" and not step.success for step in seeking)
    away = float(np.hypot(record.pose[0] - story.start.x, record.pose[1] - story.start.z))
    inside = story.compiled.things[story.container] if story.container >= 0 else "nothing"
    return [
        ("Result", f"found after {len(seeking)} steps" if record.found else f"not found in {len(seeking)} steps"),
        ("Object contained in", inside),
        ("Attempts to place it", f"{len(attempts)}, {sum(step.hit for step in story.steps)} on target"),
        ("Wrong claims", str(wrong)),
        ("Walked by the hider", f"{_walked(story.start, story.of(Stage.EM)):.2f} m"),
        ("Walked by the seeker", f"{_walked(story.start, seeking):.2f} m"),
        ("Start to object", f"{away:.2f} m"),
        ("Opened by the hider", _opened(story, hiding)),
        ("Opened by the seeker", _opened(story, seeking)),
    ]


def _opened(story: Story, steps: list[Step]) -> str:
    numbers = dict.fromkeys(number for step in steps for number in step.opened)
    names = [f"{story.compiled.things[story.compiled.openables[number].thing]} ({number})" for number in numbers]
    return ", ".join(names) or "nothing"


def _walked(start: Place, steps: list[Step]) -> float:
    points = np.array([place[:2] for place in (start, *(step.place for step in steps))])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _stage(story: Story, stage: Stage) -> dict:
    """A row of the storyboard."""
    title, colour, text = STAGES[stage]
    steps = story.of(stage)
    keys = chosen(steps, KEY_FRAMES)
    figures = [(_jpeg(step.picture), step.number + 1, step.action, step.result) for step in keys]
    worked = sum(step.success for step in steps)
    return dict(
        name=stage.name, title=title, colour=colour, text=text, steps=len(steps), worked=worked, figures=figures
    )


def _frame(story: Story, step: Step) -> dict:
    """A frame of the scrubber: the picture, words, and where on the plan player and object are."""
    title, colour, _ = STAGES[step.stage]
    x, z = _spot(story.compiled, step.place.x, step.place.z)
    there = step.stage >= Stage.OH and step.pose[2] < story.compiled.room.height
    return dict(
        image=_jpeg(shrunk(step.picture, FRAME_SIZE)), step=step.number + 1, stage=title, colour=colour,
        action=step.action, result=step.result, failed=not step.success, turn=round(step.place.rotation, 1),
        player=[round(100 * x, 2), round(100 * z, 2)],
        object=[round(100 * part, 2) for part in _spot(story.compiled, *step.pose[:2])] if there else None,
    )  # fmt: skip


def _jpeg(picture: np.ndarray) -> str:
    return base64.b64encode(encoded(picture, "JPEG")).decode()


def _grid(story: Story) -> Grid:
    return story.compiled.floor.grid(np.array(story.start[:2]), story.start.rotation % 90)


def _spot(compiled: Compiled, x: float, z: float) -> tuple[float, float]:
    """Where on a room's plan a point is, as shares of its width and height; the plan has a margin of 0.2 m."""
    west, south, east, north = compiled.room.bounds
    return (x - west + 0.2) / (east - west + 0.4), (north + 0.2 - z) / (north - south + 0.4)


def _plan(story: Story, seeker: bool) -> Figure:
    """The way of one player, the start, and where the object ended."""
    way = [story.start, *(step.place for step in story.of(Stage.S if seeker else Stage.EM))]
    picture = plan(story.compiled, _grid(story), way, size=PLAN_SIZE)
    height, width = picture.shape[:2]
    smooth = 3
    layer = Image.new("RGBA", (width * smooth, height * smooth))
    draw, size = ImageDraw.Draw(layer), 6 * smooth

    def at(x: float, z: float) -> np.ndarray:
        return np.array(_spot(story.compiled, x, z)) * layer.size

    if not seeker:
        spot = next(step.place for step in story.steps if step.stage == Stage.PS)
        ends = at(way[-1].x, way[-1].z), at(spot.x, spot.z)
        shares = np.linspace(0, 1, max(2, int(np.linalg.norm(ends[1] - ends[0]) / (9 * smooth))))
        for x, y in (ends[0] + share * (ends[1] - ends[0]) for share in shares):
            draw.ellipse([x - smooth, y - smooth, x + smooth, y + smooth], fill=(138, 127, 181))
        x, y = ends[1]
        draw.ellipse([x - size, y - size, x + size, y + size], outline=(138, 127, 181), width=2 * smooth)
        tip = ends[1] + 3 * size * ahead(np.array(spot.rotation)) * [1, -1]
        draw.line([(x, y), tuple(tip)], fill=(138, 127, 181), width=2 * smooth)
    x, y = at(story.start.x, story.start.z)
    draw.rectangle([x - size, y - size, x + size, y + size], outline=INK, width=2 * smooth)
    x, y = at(*story.record.pose[:2])
    size = 8 * smooth
    draw.polygon(
        [(x, y - size), (x + size, y), (x, y + size), (x - size, y)], fill=OBJECT, outline="white", width=smooth
    )
    layer = layer.resize((width, height), Image.Resampling.LANCZOS)
    marked = Image.alpha_composite(Image.fromarray(picture).convert("RGBA"), layer).convert("RGB")
    caption = (
        "The seeker's way, from the square; its end is the red dot. Blue: where the object ended."
        if seeker
        else "The hider's way, from the square. Violet: the place it chose to hide from. Blue: where the object ended."
    )
    return Figure(np.asarray(marked), caption)


def _hand(story: Story) -> Figure | None:
    """The object's way in each manipulation, from above and from the side, as the hider stands; None without any."""
    attempts: list[list[Step]] = []
    for before, step in itertools.pairwise(story.steps):
        if step.stage == Stage.OM:
            if before.stage != Stage.OM:
                attempts.append([before])
            attempts[-1].append(step)
    if not attempts:
        return None
    place = attempts[0][0].place
    facing = ahead(np.array(place.rotation))
    # Rows: to the right, ahead, up; the origin is on the floor under the hider.
    axes = np.array([[facing[1], -facing[0], 0], [*facing, 0], [0, 0, 1]])
    origin = np.array([place.x, place.z, 0.0])
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


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _things(compiled: Compiled, above: Axes, side: Axes, axes: np.ndarray, origin: np.ndarray) -> None:
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
