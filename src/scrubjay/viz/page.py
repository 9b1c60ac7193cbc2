"""Pages of pictures: one HTML file with everything in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from jinja2 import Environment, PackageLoader, Template

from scrubjay.files import write_atomically
from scrubjay.viz.picture import inline


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


def template(name: str) -> Template:
    """One of this package's page templates."""
    return Environment(autoescape=True, loader=PackageLoader("scrubjay.viz", "")).get_template(name)


def write_page(path: str | os.PathLike[str], title: str, facts: str, sections: list[Section]) -> None:
    """Writes a page that needs no other file."""
    write_atomically(path, template("page.html").render(title=title, facts=facts, sections=sections))
