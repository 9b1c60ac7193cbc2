"""The leaderboard as a page, as Markdown for the documentation, and as a short text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.study.leaderboard import TITLES, Cell, Column, Entry, Table, make_tables
from scrubjay.study.submissions import Submission
from scrubjay.viz.page import load_template

BEGIN = "<!-- begin: scrubjay leaderboard show --markdown -->"
END = "<!-- end -->"
"""The lines of a document between which the Markdown stands."""
EMPTY = "No submissions yet."
KEY = (
    "Values with 95 % intervals. Bold: the best of a column. ≈: its interval overlaps the best's, so the two may be "
    "equal; a study's own paired comparisons tell more sharply."
)
MIXED = "Letters: measured on different data, or by other probes. Only cells of the same letter are compared."
BESIDE = "The paper's figures are of its own rooms and games: the same questions, not the same measurement."
HASH = 16
"""Characters of a hash in tables; the page has all."""


def write_leaderboard(path: Path, submissions: Sequence[Submission]) -> None:
    """Writes the page, one file."""
    tables = make_tables(submissions)
    names = len({each.name for each in submissions})
    facts = f"{names} submission{'' if names == 1 else 's'}" if names else EMPTY
    page = load_template("leaderboard_page.html").render(
        title="Leaderboard", facts=facts, tables=tables, key=KEY, mixed=MIXED, beside=BESIDE, titles=TITLES
    )
    write_atomically(path, page)


def leaderboard_markdown(submissions: Sequence[Submission]) -> str:
    """All tables, and what made them, as Markdown."""
    tables = make_tables(submissions)
    if not tables:
        return f"{EMPTY}\n"
    lines = [KEY, ""]
    for table in tables:
        lines += [f"### {table.title}", "", *_markdown_table(table), ""]
    lines += ["### Weights", "", "| Representation | Submission | Licence | SHA-256 |", "| --- | --- | --- | --- |"]
    lines += dict.fromkeys(_weights_line(entry) for table in tables for entry in table.entries if entry.about)
    lines += ["", "### Studies", "", "| Submission | Date | Command | Machine | Commit |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for each in submissions:
        for session in each.record["sessions"]:
            words = f"{session['commit'][:10]}{session['commit'][40:]}" or f"{session['versions'].get('scrubjay', '')}"
            cells = each.name, session["date"][:10], _code(session["command"]), session["device"], words
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def update_document(path: Path, submissions: Sequence[Submission]) -> None:
    """Replaces the Markdown between a document's marks; DataError if it has none."""
    text = path.read_text()
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise DataError(f"{path}: has no lines {BEGIN!r} and {END!r} to write between")
    write_atomically(path, f"{text[: begin + len(BEGIN)]}\n\n{leaderboard_markdown(submissions)}\n{text[end:]}")


def leaderboard_text(submissions: Sequence[Submission]) -> str:
    """The tables without intervals, for a terminal; a star marks the best."""
    parts = [_text_table(table) for table in make_tables(submissions)]
    return "\n".join(parts) if parts else f"{EMPTY}\n"


def _markdown_table(table: Table) -> Iterator[str]:
    yield table.about
    yield ""
    titles = [column.title for column in table.columns]
    yield f"| Representation | Submission | {' | '.join(titles)} |"
    yield f"| --- | --- |{' ---: |' * len(titles)}"
    for entry in table.entries:
        cells = [_markdown_cell(table, column, entry.cells.get(column.name)) for column in table.columns]
        note = f" ({entry.note})" if entry.note else ""
        yield f"| {_code(entry.name)}{note} | {entry.submission} | {' | '.join(cells)} |"
    for name, printed in _printed_rows(table):
        yield f"| *{name}* | | {' | '.join(printed)} |"
    yield ""
    notes = [f"{line[0].upper()}{line[1:]}." if not table.is_mixed else f"{line}." for line in table.legend]
    notes += [MIXED] if table.is_mixed else []
    notes += [BESIDE] if any(column.printed for column in table.columns) else []
    yield " ".join([*notes, *([table.paper] if table.paper else [])])


def _printed_rows(table: Table) -> Iterator[tuple[str, list[str]]]:
    """What the paper prints, in cells of the columns."""
    if any(column.printed for column in table.columns):
        yield "the paper's agent", [column.printed for column in table.columns]
        yield "the paper's others", [column.printed_others for column in table.columns]


def _markdown_cell(table: Table, column: Column, cell: Cell | None) -> str:
    if cell is None:
        return ""
    number = column.number(cell.value)
    number = f"**{number}**" if cell.is_best else f"≈ {number}" if cell.is_close else number
    letter = table.letter(column, cell)
    return f"{number}{f' {letter}' if letter else ''}<br>{column.interval(cell)}"


def _weights_line(entry: Entry) -> str:
    assert entry.about is not None
    cells = _code(entry.name), entry.submission, entry.about["licence"], f"`{entry.about['sha256'][:HASH]}`"
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text.replace('|', '/').replace('`', '')}`"


def _text_table(table: Table) -> str:
    rows = [[table.title, *(column.title[:13] for column in table.columns)]]
    for entry in table.entries:
        cells = []
        for column in table.columns:
            cell = entry.cells.get(column.name)
            mark = "" if cell is None else ("*" if cell.is_best else " ") + (table.letter(column, cell) or "")
            cells.append("" if cell is None else column.number(cell.value) + mark)
        rows.append([f"  {entry.name} ({entry.submission})", *cells])
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    return "".join(
        f"{row[0]:<{widths[0]}}"
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        + "\n"
        for row in rows
    )
