"""Pages of clips of the experiments in foyers: pairs beside each other, and objects behind books with their cells."""

from __future__ import annotations

import base64
import io
import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from scrubjay.files import write_atomically
from scrubjay.game.actions import NAMES
from scrubjay.sim.cells import CELLS
from scrubjay.study.foyer_tracking import OCCLUDED
from scrubjay.study.sequences import SequenceData
from scrubjay.viz.page import load_template
from scrubjay.viz.palette import BLUE, GREEN, ORANGE, QUIET, RED, rgb
from scrubjay.viz.picture import shrink_picture

EXAMPLES = 12
FRAME_MS, LAST_MS = 220, 1400
"""Milliseconds that a clip shows each frame and its last one."""
STRIP, STRIP_SIZE = 5, 160
"""Frames of a film strip, and their edge in pixels."""


@dataclass(frozen=True)
class AnimatedClip:
    """A looping clip with a caption."""

    url: str
    caption: str
    color: str


@dataclass(frozen=True)
class Example:
    """A row of the page: clips side by side, and a film strip."""

    title: str
    clips: Sequence[AnimatedClip]
    strip: str
    strip_caption: str


def write_contained_clips(data: SequenceData, path: str | os.PathLike[str]) -> None:
    """Writes a page of pairs, evenly spaced over the data, and how many there are of each receptacle and object."""
    index, examples = data.index, []
    pairs = np.flatnonzero(index["label"] == 1)
    for into in _spread(pairs):
        row, images = index[into], [data.images(data.frames_of(number)) for number in (into, into + 1)]
        longest = max(map(len, images))
        clips = []
        for number, frames, name, color in zip(
            (into, into + 1), images, ("Into", "Behind"), (GREEN, ORANGE), strict=True
        ):
            words = describe_actions(data.read("last_action", data.frames_of(number))[1:])
            clips.append(AnimatedClip(animation(frames, longest), f"{name} the {row['receptacle']}: {words}", color))
        strip = np.concatenate([film_strip(frames) for frames in images])
        title = f"{row['goal']}, {row['receptacle']}, {row['table']}, {row['scene']}"
        examples.append(Example(title, clips, webp([strip]), "Above into, below behind; the last frames are probed."))
    counts = (
        "Before a pair counts, the object is dropped in a copy of both worlds: one must end inside the receptacle, "
    )
    counts += "the other on the table behind it."
    facts = f"{len(pairs):,} pairs, {data.frames:,} frames"
    tally = _tally(index[pairs], "receptacle", "Pairs")
    _write(path, "Contained or behind", facts, [counts], tally, examples)


def write_tracking_clips(data: SequenceData, path: str | os.PathLike[str]) -> None:
    """Writes a page of paths behind books, each with the cells in which the object is."""
    index, examples, hidden_frames = data.index, [], 0
    for number in range(len(data)):
        hidden_frames += int((data.read("visible", data.frames_of(number)) < OCCLUDED).sum())
    for number in _spread(np.arange(len(data))):
        row, frames = index[number], data.frames_of(number)
        images, cells, visible = data.images(frames), data.read("cells", frames), data.read("visible", frames)
        marked = np.stack([mark_cells(*one) for one in zip(images, cells > OCCLUDED, visible < OCCLUDED, strict=True)])
        clips = [
            AnimatedClip(animation(images), "What the agent sees", QUIET),
            AnimatedClip(animation(marked), "Cells with the object: red while it is occluded, else blue", RED),
        ]
        turned = f"{row['books']} books turned by {row['yaw']:.0f} degrees"
        title = f"{row['goal']}, {row['table']}, {row['scene']}: {turned}"
        caption = "Visible pixels: " + ", ".join(map(str, visible.tolist()))
        examples.append(
            Example(title, clips, webp([np.concatenate([film_strip(images), film_strip(marked)])]), caption)
        )
    about = (
        "The agent crouches. Every cell that the object passes while it is occluded is a question at each such frame: "
        "is it there? Its own pixels are counted with everything else invisible."
    )
    facts = f"{len(data):,} paths, {data.frames:,} frames, {hidden_frames:,} of them with an occluded object"
    _write(path, "Behind books", facts, [about], _tally(index, "table", "Paths"), examples)


def describe_actions(actions: np.ndarray) -> str:
    """Hand movements in words: "2 left, 4 ahead, 6 down"."""
    names = [NAMES[action] for action in actions]
    words = ["turned" if "Rotate" in name else re.sub("^MoveHand", "", name).lower() for name in names]
    return ", ".join(f"{len(list(run))} {word}" for word, run in itertools.groupby(words))


def animation(frames: np.ndarray, length: int | None = None) -> str:
    """A looping WebP as a URL, frames (T, H, W, 3); the last one stays until `length` frames, so that pairs agree."""
    wait = (length or len(frames)) - len(frames)
    return webp(list(frames), [FRAME_MS] * (len(frames) - 1) + [LAST_MS + wait * FRAME_MS])


def film_strip(frames: np.ndarray) -> np.ndarray:
    """A few frames in a row, the first and the last among them, (160, 5 * 160, 3)."""
    chosen = np.linspace(0, len(frames) - 1, STRIP).round().astype(int)
    return np.concatenate([shrink_picture(frames[number], STRIP_SIZE) for number in chosen], 1)


def mark_cells(image: np.ndarray, cells: np.ndarray, occluded: bool) -> np.ndarray:
    """An image with frames around some of its 7 x 7 cells."""
    marked, edge = image.copy(), image.shape[0] // CELLS
    for row, column in np.argwhere(cells):
        cell = marked[row * edge : (row + 1) * edge, column * edge : (column + 1) * edge]
        inner = cell[2:-2, 2:-2].copy()
        cell[:] = rgb(RED if occluded else BLUE)
        cell[2:-2, 2:-2] = inner
    return marked


def webp(frames: Sequence[np.ndarray], durations: Sequence[int] | None = None) -> str:
    """Frames as one WebP, animated if there are several, in a URL."""
    first, *rest = [Image.fromarray(frame) for frame in frames]
    buffer = io.BytesIO()
    more = {"save_all": True, "append_images": rest, "duration": list(durations or []), "loop": 0} if rest else {}
    first.save(buffer, "WEBP", quality=80, method=2, **more)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def _spread(rows: np.ndarray) -> list[int]:
    """Some rows, evenly spaced; an odd stride, so that all factors vary."""
    if len(rows) <= EXAMPLES:
        return rows.tolist()
    return rows[(np.arange(EXAMPLES) * (len(rows) - 1) / (EXAMPLES - 1)).astype(int)].tolist()


def _tally(index: np.ndarray, rows: str, title: str) -> list[list[str]]:
    """Counts of sequences by a factor and the object, as a table."""
    goals = np.unique(index["goal"]).tolist()
    table = [[title, *goals, "all"]]
    for value in dict.fromkeys(index[rows].tolist()):
        mine = index[index[rows] == value]
        table.append([value, *(f"{(mine['goal'] == goal).sum():,}" for goal in goals), f"{len(mine):,}"])
    return table


def _write(path, title: str, facts: str, about: list[str], tally: list[list[str]], examples: list[Example]) -> None:
    page = load_template("clips_page.html")
    write_atomically(path, page.render(title=title, facts=facts, about=about, tally=tally, examples=examples))
