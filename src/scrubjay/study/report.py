"""Results of all studies, read from their folders and put beside the paper's printed figures.

Tables are read as they are: columns that a later version adds change nothing, and a study that is missing is left out.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrubjay.errors import DataError
from scrubjay.study.dynamic_experiments import SHUFFLED
from scrubjay.study.printed import RESULTS, Printed
from scrubjay.study.record import FILE, read_record

TABLES = {
    "static": ("encoder", "decoder", "task", "loss", "low", "high"),
    "natural": ("encoder", "decoder", "task", "metric", "value", "low", "high"),
    "dynamic": ("experiment", "source", "size", "accuracy", "low", "high"),
    "odds": ("source", "step", "split", "difference", "low", "high"),
}
"""Files of results (NAME.csv), and the columns that a report needs."""
NUMBERS = {
    "loss", "low", "high", "ratio", "ratio_low", "ratio_high", "p", "p_holm", "value", "size", "accuracy", "difference",
    "difference_low", "difference_high",
}  # fmt: skip
"""Columns that hold numbers; empty cells are NaN."""
AGENT_FIELDS = ("name", "network", "parameters", "licence", "sha256")
ENCODER_FIELDS = ("name", "network", "parameters", "channels", "image_size", "licence", "sha256")
SHOWN = 3
"""Sources of a dynamic experiment that stand beside the paper's figure; all are in its table."""
Row = dict[str, Any]


@dataclass(frozen=True)
class StudyResults:
    """What a folder holds."""

    folder: Path
    tables: dict[str, list[Row]]
    """Rows by the table's name; see TABLES."""
    encoders: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] | None = None
    """See `study.record`; None if the study kept none."""
    agents: list[dict[str, Any]] = field(default_factory=list)
    """Of the dynamic study: what has the DIR of each name."""

    def __post_init__(self) -> None:
        for row in self.tables.get("static", []):
            row["significant"] = row.get("significant") == "True"


@dataclass(frozen=True)
class Beside:
    """A printed result and ours: a line for each representation."""

    printed: Printed
    ours: list[str]


def read_studies(folders: Sequence[Path]) -> list[StudyResults]:
    """The results in folders, and in the folders that they contain; DataError if one has none, or broken ones."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder")
        inside = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        mine = [path for path in inside if any((path / f"{name}.csv").is_file() for name in TABLES)]
        if not mine:
            raise DataError(f"{folder}: no results of a study: none of {', '.join(f'{name}.csv' for name in TABLES)}")
        found += [read_study(path) for path in mine]
    return found


def read_study(folder: Path) -> StudyResults:
    """The results in one folder, which may lack any of the files; DataError if one is broken."""
    tables = {name: _read_table(folder / f"{name}.csv", name) for name in TABLES if (folder / f"{name}.csv").is_file()}
    record = read_record(folder) if (folder / FILE).exists() else None
    encoders = _read_descriptions(folder / "encoders.json", "encoder", ENCODER_FIELDS)
    agents = _read_descriptions(folder / "agents.json", "agent", AGENT_FIELDS)
    return StudyResults(folder, tables, encoders, record, agents)


def beside_the_paper(studies: Sequence[StudyResults]) -> list[Beside]:
    """Every printed result with what the studies found."""
    return [
        Beside(printed, [line for study in studies for line in _lines(printed, study.tables.get(printed.table, []))])
        for printed in RESULTS
    ]


def largest(rows: Sequence[Row]) -> list[Row]:
    """The rows of the largest training size of each experiment, which the paper's text reports, and shuffled labels."""
    sizes: dict[str, float] = {}
    for row in rows:
        if row["source"] != SHUFFLED:
            sizes[row["experiment"]] = max(sizes.get(row["experiment"], 0), row["size"])
    return [row for row in rows if row["source"] == SHUFFLED or row["size"] == sizes[row["experiment"]]]


def _lines(printed: Printed, rows: list[Row]) -> Iterator[str]:
    if printed.table == "static":
        yield from _static_lines(rows)
    elif printed.table == "natural":
        for row in rows:
            yield f"{row['encoder']}, {row['task']}, {row['decoder']}: {row['metric']} {_interval(row, 'value')}"
    elif printed.table == "odds":
        for row in rows:
            if row["step"] == "1" and row["split"] == "all":
                yield f"{row['source']}: {_interval(row, 'difference')}"
    else:
        its = [row for row in largest(rows) if row["experiment"] == printed.experiment and row["source"] != SHUFFLED]
        # All steps together; where each step stands alone, the last is the hardest.
        last = max((int(row.get("step") or 0) for row in its), default=0)
        whole = [row for row in its if not row.get("step")] or [row for row in its if row.get("step") == str(last)]
        best = sorted(whole, key=lambda row: -row["accuracy"])[:SHOWN]
        for row in best:
            yield f"{row['source']}: {percent(row['accuracy'])} ({percent(row['low'])} to {percent(row['high'])})"


def _static_lines(rows: list[Row]) -> Iterator[str]:
    """Of each encoder, at how many tasks it is better or worse than the control."""
    for decoder in dict.fromkeys(row["decoder"] for row in rows):
        its = [row for row in rows if row["decoder"] == decoder and row.get("control")]
        for name in dict.fromkeys(row["encoder"] for row in its if row["encoder"] != row["control"]):
            mine = [row for row in its if row["encoder"] == name]
            better = sum(row["significant"] and row["ratio"] < 1 for row in mine)
            worse = sum(row["significant"] and row["ratio"] > 1 for row in mine)
            yield (
                f"{name} against {mine[0]['control']}, {decoder}: significantly better on {better} of {len(mine)} "
                f"tasks, worse on {worse}"
            )


def _interval(row: Row, name: str) -> str:
    return f"{row[name]:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _read_table(path: Path, name: str) -> list[Row]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            rows: list[Row] = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not a table: {error}") from error
    if missing := [column for column in TABLES[name] if column not in (reader.fieldnames or ())]:
        raise DataError(f"{path}: not the results of the {name} study: it lacks the columns {', '.join(missing)}")
    if not rows:
        raise DataError(f"{path}: has no rows")
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise DataError(f"{path}, line {number}: another number of cells than columns")
        for column in NUMBERS & set(row):
            try:
                row[column] = float(row[column]) if row[column] else math.nan
            except ValueError as error:
                raise DataError(f"{path}, line {number}: {column} must be a number, not {row[column]!r}") from error
    return rows


def _read_descriptions(path: Path, kind: str, fields: Sequence[str]) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    try:
        listed = json.loads(path.read_text())
        for each in listed:
            if missing := [name for name in fields if name not in each]:
                raise ValueError(f"an {kind} lacks {', '.join(missing)}")
        return listed
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not descriptions of {kind}s: {error}") from error
