"""A game as an MP4: the player's view at every step, with the action under it."""

from __future__ import annotations

import io
import os
from fractions import Fraction

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from scrubjay.files import write_atomically
from scrubjay.game.actions import Stage
from scrubjay.viz.captions import caption
from scrubjay.viz.episode import STAGES, Episode, EpisodeStep
from scrubjay.viz.palette import FAILED, INK, PAPER

FRAME_SIZE, CAPTION_HEIGHT = 448, 44
"""In pixels; H.264 needs even sizes."""
FRAME_RATE, HOLD_SECONDS = 12, 2
"""Steps per second, and how long the last one is shown."""


def write_video(episode: Episode, path: str | os.PathLike[str]) -> None:
    """Writes a game as an MP4 that browsers play."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=Fraction(FRAME_RATE), options={"crf": "26", "preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = FRAME_SIZE, FRAME_SIZE + CAPTION_HEIGHT, "yuv420p"
        # A single thread makes the file reproducible.
        stream.codec_context.thread_count = 1
        for step in [*episode.steps, *[episode.steps[-1]] * (FRAME_RATE * HOLD_SECONDS - 1)]:
            file.mux(
                stream.encode(av.VideoFrame.from_ndarray(_draw_frame(step, caption(episode, step)), format="rgb24"))
            )
        file.mux(stream.encode())
    write_atomically(path, buffer.getvalue())


def _draw_frame(step: EpisodeStep, words: str) -> np.ndarray:
    """The view over a caption, with a stripe in the stage's color."""
    canvas = Image.new("RGB", (FRAME_SIZE, FRAME_SIZE + CAPTION_HEIGHT), PAPER)
    canvas.paste(Image.fromarray(step.picture).resize((FRAME_SIZE, FRAME_SIZE), Image.Resampling.BICUBIC))
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=20)
    draw.rectangle([0, FRAME_SIZE, FRAME_SIZE, FRAME_SIZE + 3], fill=STAGES[step.stage].color)
    who = "seeker" if step.stage == Stage.S else "hider"
    text = f"{step.number + 1}  {who}: {words[0].lower()}{words[1:]}"
    draw.text((10, FRAME_SIZE + CAPTION_HEIGHT / 2 + 2), text, fill=INK, font=font, anchor="lm")
    if not step.success:
        draw.text((FRAME_SIZE - 10, FRAME_SIZE + CAPTION_HEIGHT / 2 + 2), "failed", fill=FAILED, font=font, anchor="rm")
    return np.asarray(canvas)
