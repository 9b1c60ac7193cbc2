"""Pages of pictures: one HTML file with everything in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
from jinja2 import Environment

from scrubjay.show.picture import inline
from scrubjay.world.files import write_atomically


@dataclass(frozen=True)
class Figure:
    """A picture with a caption."""

    picture: np.ndarray
    caption: str

    @property
    def address(self) -> str:
        return inline(self.picture)

    @property
    def width(self) -> int:
        return self.picture.shape[1]


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and figures."""

    title: str
    text: str = ""
    figures: list[Figure] = field(default_factory=list)


def write_page(path: str | os.PathLike[str], title: str, facts: str, sections: list[Section]) -> None:
    """Writes a page that needs no other file."""
    template = resources.files("scrubjay.show").joinpath("page.html").read_text()
    page = Environment(autoescape=True).from_string(template)
    write_atomically(path, page.render(title=title, facts=facts, sections=sections))
