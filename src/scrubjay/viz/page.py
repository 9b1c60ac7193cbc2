"""Self-contained HTML pages: one file with all pictures in it."""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from jinja2 import Environment, PackageLoader, Template

from scrubjay.files import write_atomically
from scrubjay.viz import palette
from scrubjay.viz.picture import data_url, encode_picture


@dataclass(frozen=True)
class Figure:
    """A picture with a caption."""

    picture: np.ndarray
    caption: str

    @property
    def url(self) -> str:
        return data_url(self.picture)

    @property
    def width(self) -> int:
        return self.picture.shape[1]


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and figures."""

    title: str
    text: str = ""
    figures: list[Figure] = field(default_factory=list)


def load_template(name: str) -> Template:
    """A page template of this package; all of them extend `base.html` and use the palette as `colors`."""
    environment = Environment(autoescape=True, loader=PackageLoader("scrubjay.viz", ""))
    environment.globals["colors"] = palette
    return environment.get_template(name)


def write_page(path: str | os.PathLike[str], title: str, facts: str, sections: list[Section]) -> None:
    """Writes a page of figures; `facts` is the line under the title."""
    write_atomically(path, load_template("page.html").render(title=title, facts=facts, sections=sections))


def encode_frame(picture: np.ndarray) -> str:
    """A scrubber's frame as base64 WebP: half the size of a JPEG that looks the same."""
    return base64.b64encode(encode_picture(picture, "WEBP", quality=80)).decode()


def color_bands(colors: Iterable[str]) -> list[tuple[str, int]]:
    """Runs of equal colors and their lengths: the stages above a scrubber."""
    return [(color, len(list(run))) for color, run in itertools.groupby(colors)]
