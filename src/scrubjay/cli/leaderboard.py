"""Commands about the leaderboard: add a study to its tables, show them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from scrubjay.cli.terminal import parse_labels


def add(
    study: Annotated[Path, tyro.conf.Positional],
    name: Annotated[str, tyro.conf.arg(name="as")] = "",
    tables: Path = Path("results/leaderboard"),
    licence: str = "",
    labels: list[str] = [],  # noqa: B006 (tyro takes lists)
    replace: bool = False,
    allow_mini: bool = False,
) -> None:
    """Adds a study to the leaderboard's tables: copies its results, with command, hardware, commit and hashes.

    A submission may have a static and a dynamic study: add both under the same name.

    Args:
        study: Folder of `scrubjay study static` or `scrubjay study dynamic`.
        name: The submission's name; by default the folder's.
        tables: Folder of the tables, by default the repository's.
        licence: Of your own weights, such as Apache-2.0.
        labels: What to call your agents and encoders: ours@out/run="Scrubjay, 85,000 episodes".
        replace: Replace the submission's study of the same kind.
        allow_mini: Accept a trial; its numbers mean nothing.
    """
    from scrubjay.study.submissions import add_submission

    named = parse_labels(labels)
    print(add_submission(study, tables, name, licence=licence, labels=named, allow_mini=allow_mini, replace=replace))


def show(
    out: Path = Path("out/leaderboard"),
    tables: Path = Path("results/leaderboard"),
    markdown: bool = False,
    update: Path | None = None,
) -> None:
    """Writes the leaderboard as a page and prints it without intervals.

    Args:
        out: Folder of the page, index.html.
        tables: Folder of the tables, by default the repository's.
        markdown: Print all tables as Markdown instead.
        update: Write the Markdown into this document instead, between its marks.
    """
    from scrubjay.study.submissions import read_submissions
    from scrubjay.viz.leaderboard import leaderboard_markdown, leaderboard_text, update_document, write_leaderboard

    submissions = read_submissions(tables)
    if markdown:
        print(leaderboard_markdown(submissions), end="")
    if update is not None:
        update_document(update, submissions)
        print(update)
    elif not markdown:
        write_leaderboard(out / "index.html", submissions)
        print(leaderboard_text(submissions))
        print(out / "index.html")
