"""Tables of a tournament of milestones: searches, hidings by kind and visibility, seekers by difficulty of spots."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.evaluation.hiding_places import KINDS, kind_of, meters_from_start
from scrubjay.evaluation.trials import Hiding
from scrubjay.files import write_atomically
from scrubjay.game.metrics import Summary, summary
from scrubjay.rooms.generate import split_of
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.study.result_table import table_text
from scrubjay.viz.tournament import HIDING_METRICS, format_summary, summarize_hidings

VISIBILITIES = ((0.0, 0.0), (0.0, 0.05), (0.05, 0.15), (0.15, 0.3), (0.3, 1.0))
"""Classes of the share of poses from which an object is visible: above the first number, up to the second.

The first class is exactly 0: visible from nowhere unless something is opened.
"""
ALL = "all"
"""The name of all splits together."""
METERS = "meters_from_start"

Row = dict[str, Any]
"""Names, and summaries where there are numbers."""


def group_by_split(hidings: Sequence[Hiding]) -> dict[str, list[Hiding]]:
    """Hidings by the split of their room; all of them first if there are several splits."""
    groups: dict[str, list[Hiding]] = {}
    for hiding in hidings:
        groups.setdefault(split_of(hiding.scene), []).append(hiding)
    return {ALL: list(hidings), **groups} if len(groups) > 1 else groups


def search_rows(hidings: Sequence[Hiding]) -> list[Row]:
    """How each seeker did against each hider."""
    return [
        {"hider": hider, "seeker": seeker, **row}
        for hider, seekers in summarize_hidings(hidings)["searches"].items()
        for seeker, row in seekers.items()
    ]


def hiding_rows(hidings: Sequence[Hiding]) -> list[Row]:
    """What each hider achieved: the paper's metrics, kinds of places as shares, and meters from the start."""
    rows = []
    for hider, metrics in summarize_hidings(hidings)["hidings"].items():
        hidden = [hiding for hiding in hidings if hiding.hider == hider]
        records = [hiding.record for hiding in hidden if hiding.record]
        kinds = np.array([kind_of(record) for record in records])
        rows.append(
            {
                "hider": hider,
                "hidings": len(hidden),
                **metrics,
                **{kind: summary(kinds == kind if len(records) else np.zeros(0, bool)) for kind in KINDS},
                METERS: summary(np.array([meters_from_start(record) for record in records])),
            }
        )
    return rows


def visibility_rows(hidings: Sequence[Hiding]) -> list[Row]:
    """The share of each hider's objects in each class of visibility."""
    shares: dict[str, list[float]] = {}
    for hiding in hidings:
        shares.setdefault(hiding.hider, []).append(hiding.score.visible_from)
    return [
        {"hider": hider, "above": low, "up_to": high, "share": summary(_in_class(np.array(values), low, high))}
        for hider, values in shares.items()
        for low, high in VISIBILITIES
    ]


def found_by_visibility_rows(hidings: Sequence[Hiding]) -> list[Row]:
    """How often each seeker found objects of each class of visibility, whoever hid them."""
    shares, rows = np.array([hiding.score.visible_from for hiding in hidings]), []
    for seeker, (low, high) in itertools.product(hidings[0].results, VISIBILITIES):
        found = np.array([hiding.results[seeker].found for hiding in hidings], bool)[_in_class(shares, low, high)]
        rows.append({"seeker": seeker, "above": low, "up_to": high, "found": summary(found)})
    return rows


def difficulty_rows(searches: Sequence[Row]) -> list[Row]:
    """How each seeker did on spots of each difficulty."""
    rows = [
        {"seeker": row["seeker"], "difficulty": row["hider"], "found": row["found"], "steps": row["steps"]}
        for row in searches
        if row["hider"] in DIFFICULTIES
    ]
    seekers = list(dict.fromkeys(row["seeker"] for row in rows))
    return sorted(rows, key=lambda row: (seekers.index(row["seeker"]), DIFFICULTIES.index(row["difficulty"])))


def _in_class(shares: np.ndarray, low: float, high: float) -> np.ndarray:
    return (shares == 0) if high == 0 else (shares > low) & (shares <= high)


def write_tables(hidings: Sequence[Hiding], folder: Path) -> dict[str, list[Row]]:
    """Writes CSV files, all of them by split, and returns the rows by file name."""
    tables: dict[str, list[Row]] = {
        name: [] for name in ("matrix", "hidings", "visible_from", "found_by_visibility", "difficulty")
    }
    for split, hidden in group_by_split(hidings).items():
        searches = search_rows(hidden)
        for name, rows in (
            ("matrix", searches),
            ("hidings", hiding_rows(hidden)),
            ("visible_from", visibility_rows(hidden)),
            ("found_by_visibility", found_by_visibility_rows(hidden)),
            ("difficulty", difficulty_rows(searches)),
        ):
            tables[name] += [{"split": split, **row} for row in rows]
    for name, rows in tables.items():
        columns = [_columns(row) for row in rows]
        if columns:
            write_atomically(folder / f"{name}.csv", table_text(columns, list(columns[0])))
    return tables


def _columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Summaries as four columns each: mean, interval and number of games."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        name = name.replace(" ", "_")
        if isinstance(value, Summary):
            columns |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
            columns[f"{name}_games"] = value.games
        else:
            columns[name] = value
    return columns


SHOWN_METRICS = {
    **HIDING_METRICS, **{kind: kind for kind in KINDS}, METERS: "meters from the start",
}  # fmt: skip
"""Columns of the hidings' table, with their titles; shares but for the last."""
VISIBILITY_NAMES = tuple(
    "nowhere" if high == 0 else f"{100 * low:.0f} to {100 * high:.0f} %" if low else f"up to {100 * high:.0f} %"
    for low, high in VISIBILITIES
)


def format_markdown(rows: Mapping[str, Sequence[Row]], labels: Mapping[str, str]) -> str:
    """The tables of one split in Markdown; `rows` by table, as `write_tables` returns them."""

    def name(player: str) -> str:
        return labels.get(player, player)

    def pivot(table: str, over: str, by: Sequence[str], cell: Callable[[Row], str]) -> list[list[str]]:
        """A line for each player `over`, with the cells of its rows; columns are `by`, of which each line has all."""
        lines: dict[str, list[str]] = {}
        for row in rows[table]:
            lines.setdefault(row[over], [name(row[over])]).append(cell(row))
        return [[over, *by], *lines.values()]

    def found(row: Row) -> str:
        return f"{format_summary(row['found'], 100)}; {row['steps'].mean:.0f} steps"

    seekers = [name(seeker) for seeker in dict.fromkeys(row["seeker"] for row in rows["matrix"])]
    tables = {"Found, %, and steps": pivot("matrix", "hider", seekers, found)}
    if rows["difficulty"]:
        spots = list(dict.fromkeys(row["difficulty"] for row in rows["difficulty"]))
        tables["Seekers by the difficulty of spots: found, %, and steps"] = pivot("difficulty", "seeker", spots, found)
    tables["Hidings by the share of poses that see the object, %"] = pivot(
        "visible_from", "hider", VISIBILITY_NAMES, lambda row: format_summary(row["share"], 100)
    )
    tables["Found by the share of poses that see the object, %"] = pivot(
        "found_by_visibility", "seeker", VISIBILITY_NAMES, lambda row: format_summary(row["found"], 100)
    )
    titles = [title if key == METERS else f"{title}, %" for key, title in SHOWN_METRICS.items()]
    tables["Hidings"] = [["hider", "hidings", *titles]]
    tables["Hidings"] += [
        [name(row["hider"]), str(row["hidings"])]
        + [format_summary(row[key], 1 if key == METERS else 100) for key in SHOWN_METRICS]
        for row in rows["hidings"]
    ]
    text = []
    for title, lines in tables.items():
        rule = ["---", *["---:"] * (len(lines[0]) - 1)]
        text += [f"**{title}**", "", *(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:])), ""]
    return "\n".join(text)
