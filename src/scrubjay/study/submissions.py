"""Submissions to the leaderboard: a study's tables with what made them, checked and copied into a folder to commit.

A submission has a name and one or both studies: `NAME/static` and `NAME/dynamic`. Each has the study's tables,
study.json, encoders.json and agents.json as they were, and submission.json with digests of these files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrubjay.errors import DataError
from scrubjay.study.data_files import write_folder
from scrubjay.study.dynamic_experiments import EXPERIMENTS, SHUFFLED
from scrubjay.study.record import FILE as RECORD
from scrubjay.study.report import Row, StudyResults, read_study
from scrubjay.study.static import PLAIN, WITH_SKIPS
from scrubjay.study.static_data import TASKS

FOLDER = Path("results/leaderboard")
FILE = "submission.json"
VERSION = 1
KINDS = {
    "static": ("static.csv", "encoders.json", RECORD),
    "dynamic": ("dynamic.csv", "odds.csv", "agents.json", "encoders.json", RECORD),
}
"""Files by study; a dynamic one without rotation has no odds.csv."""
VALUES = {"static": "loss", "dynamic": "accuracy", "odds": "difference"}
"""The column of a table that is compared; `low` and `high` are its interval."""
FULL_SCALE = "paper"
OWN_LICENCE = "yours"
"""What a study writes where it cannot know."""


@dataclass(frozen=True)
class Submission:
    """One study of a submission."""

    name: str
    results: StudyResults
    labels: dict[str, str] = field(default_factory=dict)
    """What to call agents and encoders; others keep the names that the study has."""
    licence: str = ""
    """Of the submitter's own weights."""

    @property
    def record(self) -> dict[str, Any]:
        assert self.results.record is not None, "checked"
        return self.results.record

    @property
    def kind(self) -> str:
        return self.record["study"]

    @property
    def scale(self) -> str:
        return self.record["facts"]["scale"]

    @property
    def date(self) -> str:
        return self.record["sessions"][-1]["date"]

    def data(self, name: str = "") -> str:
        """The digest of the static study's data, or of an experiment's."""
        data = self.record["facts"]["data"]
        return data[name] if name else data

    def label(self, name: str) -> str:
        return self.labels.get(name, name)

    def about(self, name: str, of_agent: bool = False) -> dict[str, Any]:
        """The description of an agent or encoder, with the submission's licence."""
        listed = self.results.agents if of_agent else self.results.encoders
        found = next(each for each in listed if each["name"] == name)
        own = self.licence or "unstated"
        return {**found, "licence": own if found["licence"] == OWN_LICENCE else found["licence"]}


def add_submission(
    study: str | Path,
    tables: str | Path = FOLDER,
    name: str = "",
    *,
    licence: str = "",
    labels: Mapping[str, str] | None = None,
    allow_mini: bool = False,
    replace: bool = False,
) -> Path:
    """Copies a study's tables to `tables`/NAME/KIND and returns that folder; NAME is by default the study folder's.

    DataError, and nothing is changed, if the folder has no finished study, one at the trial's scale (without
    `allow_mini`), tables that were edited into something else, or a study that is there already (without `replace`).
    """
    study, tables = Path(study), Path(tables)
    labels = {one: _one_line(label) for one, label in (labels or {}).items()}
    name = name or study.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise DataError(
            f"{name!r}: a submission's name has letters, digits, dots, dashes and underscores; use --as NAME"
        )
    if not study.is_dir():
        raise DataError(f"{study}: no such folder")
    results = read_study(study)
    check_study(results, allow_mini)
    kind = results.record["study"] if results.record else ""
    names = {each["name"] for each in (*results.encoders, *results.agents)}
    if unknown := [one for one in labels if one not in names]:
        raise DataError(f"{study}: has no agent or encoder {unknown[0]!r} to label; it has {', '.join(sorted(names))}")
    texts = {file: (study / file).read_text() for file in KINDS[kind] if (study / file).is_file()}
    digests = {file: _digest(text) for file, text in texts.items()}
    target = tables / name / kind
    if target.exists() and not replace:
        raise DataError(f"{target}: is there already; use --replace, or another name with --as")
    for other in _folders(tables):
        if other != target and _read_about(other)["files"] == digests:
            raise DataError(f"{study}: is on the leaderboard already, as {other.parent.name}")
    about = {"version": VERSION, "licence": _one_line(licence), "labels": labels, "files": digests}
    _replace_folder(target, {**texts, FILE: json.dumps(about, indent=1) + "\n"})
    return target


def read_submissions(tables: str | Path = FOLDER) -> list[Submission]:
    """All submissions, the earliest study first; DataError names what was edited or is missing."""
    tables = Path(tables)
    if not tables.is_dir():
        raise DataError(f"{tables}: no such folder; run this in the repository's root, or choose another with --tables")
    found = []
    for folder in _folders(tables):
        about = _read_about(folder)
        for file, digest in about["files"].items():
            if not (folder / file).is_file():
                raise DataError(f"{folder}: lacks {file}; add the study again with --replace")
            if _digest((folder / file).read_text()) != digest:
                raise DataError(f"{folder / file}: was edited; add the study again with --replace")
        results = read_study(folder)
        check_study(results, allow_mini=True)
        found.append(Submission(folder.parent.name, results, about["labels"], about["licence"]))
    return sorted(found, key=lambda each: (each.date, each.name, each.kind))


def check_study(results: StudyResults, allow_mini: bool = False) -> None:
    """DataError if results are not those of a finished study that says what it measured."""
    folder, record = results.folder, results.record
    if record is None:
        raise DataError(f"{folder}: not a study: it lacks {RECORD}")
    kind, facts = record["study"], record["facts"] if isinstance(record["facts"], dict) else {}
    if kind not in KINDS:
        raise DataError(f"{folder}: the {kind} study has no leaderboard; there are {' and '.join(KINDS)}")
    if kind not in results.tables:
        raise DataError(f"{folder}: an unfinished study: it lacks {kind}.csv")
    if facts.get("scale") != FULL_SCALE and not (allow_mini and facts.get("scale")):
        raise DataError(f"{folder}: a trial at scale {facts.get('scale')}, not a full study; run it with --scale paper")
    if not record["sessions"] or not all(isinstance(each.get("versions"), dict) for each in record["sessions"]):
        raise DataError(f"{folder / RECORD}: does not say which command and versions made the results")
    for name in ("static",) if kind == "static" else ("dynamic", "odds"):
        check_rows(folder / f"{name}.csv", name, results.tables.get(name, []))
    names = list(representations(results))
    listed = {True: results.agents, False: results.encoders}
    for name, of_agent in names:
        file = folder / ("agents.json" if of_agent else "encoders.json")
        mine = [each for each in listed[of_agent] if each["name"] == name]
        if len(mine) != 1 or not re.fullmatch(r"[0-9a-f]{64}", str(mine[0]["sha256"])):
            raise DataError(f"{file}: has no hash of {name}; run the study's command again, which adds it")
        if not isinstance(mine[0]["parameters"], int) or not isinstance(mine[0]["licence"], str):
            raise DataError(f"{file}: the parameters of {name} must be a number, and its licence a text")
    data = facts.get("data")
    digests = [data] if kind == "static" else [_of(data, name) for name in experiment_data(results)]
    if not all(isinstance(digest, str) and digest for digest in digests) or not isinstance(facts.get("images", 0), int):
        raise DataError(f"{folder / RECORD}: has no digest of the data; run the study's command again, which adds it")


def check_rows(path: Path, table: str, rows: Sequence[Row]) -> None:
    """DataError if a table's rows are not what a study writes."""
    value = VALUES[table]
    keys: set[tuple[Any, ...]] = set()
    key: tuple[Any, ...]
    for number, row in enumerate(rows, 2):
        where = f"{path}, line {number}"
        if table == "static":
            known = row["decoder"] in (PLAIN, WITH_SKIPS) and row["task"] in TASKS
            key = row["encoder"], row["decoder"], row["task"]
        elif table == "dynamic":
            known = row["experiment"] in EXPERIMENTS
            key = row["experiment"], row["source"], row["size"], row.get("step", "")
        else:
            known, key = row["split"] in ("all", "train", "test"), (row["source"], row["step"], row["split"])
        if not known:
            raise DataError(f"{where}: not a result of the {table} study: {', '.join(map(str, key))}")
        if key in keys:
            raise DataError(f"{where}: a second result of {', '.join(map(str, key))}")
        keys.add(key)
        numbers = row["low"], row[value], row["high"]
        if not all(map(math.isfinite, numbers)):
            # Where few rooms were tested there is a value, but no interval; none of these is compared.
            if table != "odds" or (row["step"], row["split"]) == ("1", "all") or not math.isfinite(row[value]):
                raise DataError(f"{where}: {value}, low and high must be finite numbers")
        elif not row["low"] <= row[value] <= row["high"]:
            raise DataError(f"{where}: {value} {row[value]} is outside of its interval")
        if (table == "static" and row[value] < 0) or (table == "dynamic" and not 0 <= row[value] <= 1):
            raise DataError(f"{where}: {row[value]} is no {value}")


def representations(results: StudyResults) -> Iterator[tuple[str, bool]]:
    """Names of what is measured, and whether it is an agent, not an encoder."""
    for row in results.tables.get("static", []):
        yield row["encoder"], False
    for row in results.tables.get("dynamic", []):
        if named := source_of(row["source"]):
            yield named
    for row in results.tables.get("odds", []):
        yield row["source"], True


def source_of(source: str) -> tuple[str, bool] | None:
    """The agent or encoder that a source of the dynamic study reads, and whether it is an agent; None for others.

    >>> source_of("DIR (run)"), source_of("DIR (4CNN-run)"), source_of("Forward Steps")
    (('run', True), ('run', False), None)
    """
    if found := re.fullmatch(r"(?:SIR \(|DIR \(4CNN-)(.*)\)", source):
        return found[1], False
    if found := re.fullmatch(r"DIR \((.*)\)", source):
        return found[1], True
    return None


def experiment_data(results: StudyResults) -> list[str]:
    """Names of the data that the dynamic study's experiments were on."""
    rows = results.tables.get("dynamic", [])
    names = [EXPERIMENTS[row["experiment"]].data for row in rows]
    return list(dict.fromkeys([*names, *(["rotation"] if "odds" in results.tables else [])]))


def shuffled_accuracies(results: StudyResults) -> dict[str, float]:
    """What each experiment's control with permuted labels found: chance."""
    rows = results.tables.get("dynamic", [])
    return {row["experiment"]: row["accuracy"] for row in rows if row["source"] == SHUFFLED}


def _of(data: Any, name: str) -> Any:
    return data.get(name) if isinstance(data, dict) else None


def _folders(tables: Path) -> list[Path]:
    """The studies of all submissions."""
    return sorted(path.parent for path in tables.glob(f"*/*/{FILE}") if not path.parent.name.startswith("."))


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    try:
        about = json.loads(path.read_text())
        if about["version"] != VERSION:
            raise ValueError(f"version {about['version']}, not {VERSION}")
        texts = (about["licence"], *about["labels"].values(), *about["files"].values())
        if not all(isinstance(text, str) for text in texts) or not set(about["files"]) <= set(KINDS[folder.name]):
            raise ValueError("unknown files, or values that are no texts")
        return about
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a submission: {error!r}") from error


def _one_line(text: str) -> str:
    """Words that fit into a cell of a table."""
    return " ".join(text.replace("|", "/").split())


def _digest(text: str) -> str:
    """Of a file's text: the same whatever its line endings."""
    return hashlib.sha256(text.encode()).hexdigest()


def _replace_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes a folder whole, then puts it where another may be."""
    written, before = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.before")
    for left in (written, before):
        shutil.rmtree(left, ignore_errors=True)
    write_folder(written, texts)
    if folder.exists():
        os.replace(folder, before)
    os.replace(written, folder)
    shutil.rmtree(before, ignore_errors=True)
