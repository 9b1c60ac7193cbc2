"""The browser's files: HTML pages rendered from their templates, and static JavaScript, CSS and images."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".webp": "image/webp", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
}  # fmt: skip
"""Of the files that are served; others are ignored."""
BASE, ERROR = "base.html", "error.html"
"""Templates that are no pages of their own."""


def load_files(only_studies: bool = False) -> dict[str, tuple[bytes, str]]:
    """Content and media type by file name. Everything is read at start-up: no path from a client reaches the disk."""
    templates = _templates()
    pages = {
        name: (
            templates.get_template(name).render(page=Path(name).stem, only_studies=only_studies).encode(),
            MEDIA_TYPES[".html"],
        )
        for name in templates.list_templates()
        if name not in (BASE, ERROR)
    }
    static = [entry for entry in resources.files("scrubjay.web").joinpath("static").iterdir() if entry.is_file()]
    files = {
        entry.name: (entry.read_bytes(), MEDIA_TYPES[Path(entry.name).suffix])
        for entry in static
        if Path(entry.name).suffix in MEDIA_TYPES
    }
    return pages | files


def error_page(message: str) -> str:
    """The page that a browser shows for a link that leads nowhere."""
    return _templates().get_template(ERROR).render(message=message)


@functools.cache
def _templates() -> Environment:
    return Environment(loader=PackageLoader("scrubjay.web"), autoescape=True, undefined=StrictUndefined)
