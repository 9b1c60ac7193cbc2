"""A game as a video: what the player saw at every step, and what it did."""

from __future__ import annotations

import io
import os
from fractions import Fraction

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from scrubjay.files import write_atomically
from scrubjay.game.actions import Stage
from scrubjay.viz.episode import STAGES, Episode, EpisodeStep
from scrubjay.viz.palette import FAILED, INK, PAPER

SIZE, LINE = 448, 44
"""Of the picture and of the line of text under it, in pixels; even, as H.264 has it."""
RATE, HOLD = 12, 2
"""Steps a second, and how many seconds the last one is shown."""


def write_video(episode: Episode, path: str | os.PathLike[str]) -> None:
    """Writes a game as an MP4 that browsers play, the hider's part and then the seeker's."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=Fraction(RATE), options={"crf": "26", "preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = SIZE, SIZE + LINE, "yuv420p"
        # One thread, so that the same game gives the same file.
        stream.codec_context.thread_count = 1
        for step in [*episode.steps, *[episode.steps[-1]] * (RATE * HOLD - 1)]:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(_picture(step), format="rgb24")))
        file.mux(stream.encode())
    write_atomically(path, buffer.getvalue())


def _picture(step: EpisodeStep) -> np.ndarray:
    """A step's picture over a line that says who did what, with the color of its stage."""
    canvas = Image.new("RGB", (SIZE, SIZE + LINE), PAPER)
    canvas.paste(Image.fromarray(step.picture).resize((SIZE, SIZE), Image.Resampling.BICUBIC))
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=20)
    draw.rectangle([0, SIZE, SIZE, SIZE + 3], fill=STAGES[step.stage].color)
    who = "seeker" if step.stage == Stage.S else "hider"
    draw.text((10, SIZE + LINE / 2 + 2), f"{step.number + 1}  {who}: {step.action}", fill=INK, font=font, anchor="lm")
    if not step.success:
        draw.text((SIZE - 10, SIZE + LINE / 2 + 2), "failed", fill=FAILED, font=font, anchor="rm")
    return np.asarray(canvas)
