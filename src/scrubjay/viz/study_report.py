"""The page of all studies: ours beside what the paper prints, then the tables of each."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrubjay.files import write_atomically
from scrubjay.study.printed import encoder_note
from scrubjay.study.report import StudyResults, beside_the_paper, largest, percent
from scrubjay.viz.page import load_template
from scrubjay.viz.ratio_chart import TITLES, draw_ratios
from scrubjay.viz.static_study import DECODERS, TRIAL

SMALL = "A trial at the smallest scale: it shows that everything works, and its numbers say nothing."


@dataclass(frozen=True)
class Cell:
    """A number as it is printed, its interval, and whether it is marked."""

    text: str
    interval: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Table:
    """Representations in rows."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]]
    chart: str = ""
    """A PNG as base64."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StudySection:
    """One folder of results."""

    title: str
    folder: str
    page: str
    """A link to the study's own page, if there is one."""
    warning: str
    tables: list[Table]
    encoders: list[dict[str, Any]]
    record: dict[str, Any] | None


def write_report(path: Path, studies: Sequence[StudyResults]) -> None:
    """Writes the page of studies, with links to their own pages relative to it."""
    sections = [_section(study, path) for study in studies]
    page = load_template("report_page.html").render(
        title="What representations know", facts=", ".join(section.title for section in sections), sections=sections,
        beside=beside_the_paper(studies), note_of=encoder_note,
    )  # fmt: skip
    write_atomically(path, page)


def _section(study: StudyResults, path: Path) -> StudySection:
    tables = []
    names = [each["name"] for each in study.encoders]
    for name, rows in study.tables.items():
        tables += {"static": _static, "natural": _natural, "dynamic": _dynamic, "odds": _odds}[name](rows, names)
    record = study.record
    kind = record["study"] if record else next(iter(study.tables))
    kind = {"odds": "dynamic"}.get(kind, kind)
    trial = (TRIAL if kind == "static" else SMALL) if record and record["facts"].get("scale") == "mini" else ""
    own = next((page for name in ("index", kind) if (page := study.folder / f"{name}.html").exists()), None)
    link = Path(os.path.relpath(own, path.parent)).as_posix() if own else ""
    return StudySection(
        f"{kind.capitalize()} study", study.folder.as_posix(), link, trial, tables, study.encoders, record
    )


def _static(rows: list[dict[str, Any]], names: Sequence[str]) -> list[Table]:
    tables = []
    for decoder in dict.fromkeys(row["decoder"] for row in rows):
        its = [row for row in rows if row["decoder"] == decoder]
        tasks = list(dict.fromkeys(row["task"] for row in its))
        cells = {
            (row["encoder"], row["task"]): Cell(
                _number(row["loss"]) + (f" · {row['ratio']:.2f}" if row.get("control") else ""),
                _interval(row["low"], row["high"]), row["significant"],
            )
            for row in its
        }  # fmt: skip
        chart, notes = "", []
        if control := its[0].get("control"):
            order = [*names, *(row["encoder"] for row in its if row["encoder"] not in names)]
            chart = base64.b64encode(draw_ratios({decoder: its}, list(dict.fromkeys(order)))).decode()
            note = f" ({encoder_note(control)})" if encoder_note(control) else ""
            notes = [f"Loss, the ratio to {control}{note}, and the loss's 95 % interval; a star: p < 0.01."]
        notes += list(dict.fromkeys(f"{row['task']}: {row['note']}" for row in its if row.get("note")))
        title = f"Synthetic images: {DECODERS.get(decoder, decoder).lower()}"
        encoders = dict.fromkeys(row["encoder"] for row in its)
        shown = [(name, [cells.get((name, task), Cell("")) for task in tasks]) for name in encoders]
        titles = [TITLES.get(task, task).replace("\n", " ") for task in tasks]
        tables.append(Table(title, titles, shown, chart, notes))
    return tables


def _natural(rows: list[dict[str, Any]], names: Sequence[str]) -> list[Table]:
    tables = []
    for decoder in dict.fromkeys(row["decoder"] for row in rows):
        its = [row for row in rows if row["decoder"] == decoder]
        columns = list(dict.fromkeys((row["task"], row["metric"]) for row in its))
        cells = {
            (row["encoder"], (row["task"], row["metric"])): Cell(
                _number(row["value"]), _interval(row["low"], row["high"])
            )
            for row in its
        }
        encoders = dict.fromkeys(row["encoder"] for row in its)
        shown = [(name, [cells.get((name, column), Cell("")) for column in columns]) for name in encoders]
        title = f"Photographs: {DECODERS.get(decoder, decoder).lower()}"
        notes = list(dict.fromkeys(f"{row['task']}: {row['note']}" for row in its if row.get("note")))
        tables.append(Table(title, [f"{task}, {metric}" for task, metric in columns], shown, "", notes))
    return tables


def _dynamic(rows: list[dict[str, Any]], names: Sequence[str]) -> list[Table]:
    tables = []
    for experiment in dict.fromkeys(row["experiment"] for row in rows):
        its = largest([row for row in rows if row["experiment"] == experiment])
        steps = list(dict.fromkeys(row.get("step", "") for row in its))
        cells = {
            (row["source"], row.get("step", "")): Cell(
                percent(row["accuracy"]), f"{percent(row['low'])} to {percent(row['high'])}"
            )
            for row in its
        }
        shown = [
            (name, [cells.get((name, step), Cell("")) for step in steps])
            for name in dict.fromkeys(row["source"] for row in its)
        ]
        columns = [f"Accuracy, {step} steps after" if step else "Accuracy" for step in steps]
        title = f"{experiment.capitalize()}, {its[0]['size']:.0f} training examples"
        tables.append(Table(title, columns, shown))
    return tables


def _odds(rows: list[dict[str, Any]], names: Sequence[str]) -> list[Table]:
    cells = [
        (f"{row['source']}, step {row['step']}, {row['split']} rooms", [
            Cell(_number(row["difference"]), _interval(row["low"], row["high"]))
        ])
        for row in rows
    ]  # fmt: skip
    return [Table("Turning back: difference of log-odds", ["Seen less unseen"], cells)]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"{low:.3f} to {high:.3f}"
