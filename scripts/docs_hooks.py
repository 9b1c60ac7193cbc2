"""What `mkdocs build` needs beyond docs/: the command reference, the results, and the pages at the repository's top."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
TOP_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
WIDTH = "100"
"""Columns of the commands' help."""


def on_files(files: Files, config: Any) -> Files:
    """Adds pages that are generated, or kept outside docs/."""
    files.append(File.generated(config, "commands.md", content=command_reference()))
    for path in (*(ROOT / "results").iterdir(), *(ROOT / name for name in TOP_PAGES)):
        files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links are written for the repository's tree; the site has results/ and the top's pages inside docs/."""
    source = page.file.src_uri
    if source.startswith("results/"):
        return markdown.replace("](../docs/", "](../")
    if source in TOP_PAGES:
        return markdown.replace("](docs/", "](")
    return re.sub(r"\]\(((?:\.\./)+)(results/|CHANGELOG\.md|CONTRIBUTING\.md)", r"](\1\2", markdown).replace("](../results/", "](results/")


def command_reference() -> str:
    """Every command's help, as the command line prints it."""
    from scrubjay.cli.main import COMMANDS, MEASURES

    names = [[function.__name__] for function in COMMANDS] + [["bench", function.__name__] for function in MEASURES]
    parts = [f"## scrubjay {' '.join(name)}\n\n```text\n{help_of(name)}\n```\n" for name in names]
    return "# Commands\n\nEvery command's `--help`.\n\n" + "\n".join(parts)


def help_of(arguments: list[str]) -> str:
    """What `scrubjay ARGUMENTS --help` prints."""
    from scrubjay.cli import main

    import sys

    kept = sys.argv, {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR")}
    sys.argv = ["scrubjay", *arguments, "--help"]
    os.environ.update(COLUMNS=WIDTH, NO_COLOR="1")
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main.main()
    finally:
        sys.argv = kept[0]
        for name, value in kept[1].items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).rstrip()
