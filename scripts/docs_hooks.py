"""Hooks of `mkdocs build`: add the command reference, examples, results and top-level pages to the site."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
TOP_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
WIDTH = "80"
"""Columns of the commands' help: as many as the page is wide."""


def on_config(config: Any) -> Any:
    """Adds a section with all guides to the navigation."""
    if guides := sorted((ROOT / "docs" / "guides").glob("*.md")):
        after = next(number for number, entry in enumerate(config.nav) if "Examples" in entry) + 1
        config.nav.insert(after, {"Guides": [str(path.relative_to(ROOT / "docs")) for path in guides]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds generated pages, and those outside docs/."""
    files.append(File.generated(config, "commands.md", content=command_reference()))
    files.append(File.generated(config, "examples.md", content=examples_page()))
    results = (path for path in (ROOT / "results").iterdir() if path.is_file())
    for path in (*results, *(ROOT / name for name in TOP_PAGES)):
        files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrites links from the repository's tree to the site's, where results/ and top-level pages are inside docs/."""
    source = page.file.src_uri
    if source.startswith("results/"):
        return markdown.replace("](../docs/", "](../")
    if source in TOP_PAGES:
        return markdown.replace("](docs/", "](")
    outside = r"\]\(((?:\.\./)*)\.\./(?=results/|examples/|CHANGELOG|CONTRIBUTING)"
    return re.sub(outside, r"](\1", markdown).replace("examples/README.md)", "examples.md)")


def command_reference() -> str:
    """The `--help` output of every command."""
    names = [name for first in subcommands([]) for name in leaves([first])]
    parts = [f"## scrubjay {' '.join(name)}\n\n```text\n{help_of(name)}\n```\n" for name in names]
    return "# Commands\n\nEvery command's `--help`.\n\n" + "\n".join(parts)


def examples_page() -> str:
    """The table of examples and their code."""
    folder = ROOT / "examples"
    code = [f"## {path.name}\n\n```python\n{path.read_text()}```\n" for path in sorted(folder.glob("*.py"))]
    return "\n".join([(folder / "README.md").read_text(), *code])


GROUPS = (["bench"], ["study"], ["study", "data"], ["leaderboard"])
"""Commands that consist of others."""


def leaves(command: list[str]) -> list[list[str]]:
    """A command, or those of a group."""
    if command not in GROUPS:
        return [command]
    return [leaf for name in subcommands(command) for leaf in leaves([*command, name])]


def subcommands(arguments: list[str]) -> list[str]:
    """The names of a command's subcommands, from its usage line."""
    usage = re.search(r"\{([\w,-]+)\}", help_of(arguments))
    assert usage, f"scrubjay {' '.join(arguments)} lists no subcommands"
    return usage[1].split(",")


def help_of(arguments: list[str]) -> str:
    """The output of `scrubjay ARGUMENTS --help`."""
    from scrubjay.cli.main import main

    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["scrubjay", *arguments, "--help"]),
        mock.patch.dict(os.environ, COLUMNS=WIDTH, NO_COLOR="1"),
        contextlib.redirect_stdout(out),
    ):
        try:
            main()
        except SystemExit as stopped:
            assert not stopped.code, f"scrubjay {' '.join(arguments)} --help failed"
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).rstrip()
