"""A study's data: trials, every action with its time, records, and the paper's table of people's searches."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from scrubjay.game.metrics import Summary, summary
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.rooms.generate import SCENES, split
from scrubjay.web.database import Database
from scrubjay.web.study_protocol import stored_study
from scrubjay.web.trial import GIVE_UP, HIDE, HIDE_HERE, NO_ACTION, SEEK, WALK

Row = dict[str, Any]
TRIALS = """
SELECT t.id AS trial, t.participant, t.role, t.scene, t.goal, l.source, l.number AS place, t.created, t.started,
  t.ended, t.found, t.given_up, t.steps FROM trials t JOIN locations l ON l.id = t.location
WHERE t.study = ? AND t.practice = 0 ORDER BY t.id"""
ACTIONS = """
SELECT t.id AS trial, t.participant, t.role, s.number, s.time, s.action, s.success
FROM steps s JOIN trials t ON t.id = s.trial WHERE t.study = ? AND t.practice = 0 ORDER BY t.id, s.number"""
RECORDS = "SELECT record FROM trials WHERE study = ? AND practice = 0 AND record IS NOT NULL ORDER BY id"
TRIAL_COLUMNS = (
    "trial", "participant", "role", "scene", "goal", "source", "place", "created", "started", "ended", "found",
    "given_up", "steps", "seconds", "split", "worker",
)  # fmt: skip
ACTION_COLUMNS = ("trial", "participant", "role", "number", "time", "action", "success", "attempt")
TABLE_COLUMNS = (
    "source", "split", "trials", "found", "found_low", "found_high", "steps", "steps_low", "steps_high",
)  # fmt: skip
NO_ACTION_MEANS = {SEEK: GIVE_UP, HIDE: HIDE_HERE}
"""A stage that a person ends."""


def trials(database: Database, study: str) -> Iterator[Row]:
    """A row a trial, with who took part through which platform."""
    people = {
        row["id"]: json.loads(row["parameters"])
        for row in database.all("SELECT id, parameters FROM participants WHERE study = ?", study)
    }
    for row in database.db.execute(TRIALS, [study]):
        given = people.get(row["participant"], {})
        who = given.get("PROLIFIC_PID") or given.get("workerId") or ""
        seconds = round(row["ended"] - row["started"], 3) if row["ended"] and row["started"] else None
        yield {**dict(row), "found": _flag(row["found"]), "given_up": _flag(row["given_up"]), "seconds": seconds,
               "split": _split(row["scene"]), "worker": who}  # fmt: skip


def actions(database: Database, study: str) -> Iterator[Row]:
    """A row a step, as it was taken. Each "Walk" of a hider throws an attempt away and begins the next."""
    trial, attempt = None, 1
    for row in database.db.execute(ACTIONS, [study]):
        if row["trial"] != trial:
            trial, attempt = row["trial"], 1
        attempt += row["action"] == WALK
        action = row["action"] if row["action"] != NO_ACTION else NO_ACTION_MEANS[row["role"]]
        yield {**dict(row), "action": action, "success": bool(row["success"]), "attempt": attempt}


def records(database: Database, study: str) -> Iterator[Row]:
    """Every finished trial as a game of record."""
    for row in database.db.execute(RECORDS, [study]):
        yield json.loads(row["record"])


def table(database: Database, study: str) -> list[Row]:
    """The paper's table: how often people find what each source hid, and in how many steps, with 95 % intervals.

    For each source and split, and each source over all. Places that nobody could see count as searches that failed, as
    many as the study wanted of each; a search that failed counts as 500 steps, and so does a longer one.
    """
    repeats = stored_study(database, study).repeats
    found: dict[tuple[str, str], list[bool]] = {}
    steps: dict[tuple[str, str], list[float]] = {}

    def count(source: str, scene: str, success: bool, taken: float) -> None:
        for key in ((source, _split(scene)), (source, "all")):
            found.setdefault(key, []).append(success)
            steps.setdefault(key, []).append(min(taken, SEEKER_STEPS) if success else SEEKER_STEPS)

    for row in trials(database, study):
        if row["role"] == SEEK and row["ended"] is not None:
            count(row["source"], row["scene"], row["found"], row["steps"])
    for place in database.all("SELECT source, scene FROM locations WHERE study = ? AND NOT seeable", study):
        for _ in range(repeats):
            count(place["source"], place["scene"], False, SEEKER_STEPS)
    return [
        {"source": source, "split": part, "trials": len(found[source, part]),
         **_columns("found", summary(np.array(found[source, part]))),
         **_columns("steps", summary(np.array(steps[source, part], float)))}
        for source, part in sorted(found)
    ]  # fmt: skip


def progress(database: Database) -> list[Row]:
    """How far each study is."""
    return [_progress(database, row["name"]) for row in database.all("SELECT name FROM studies ORDER BY name")]


def _progress(database: Database, name: str) -> Row:
    study = stored_study(database, name)
    people = database.all("SELECT status FROM participants WHERE study = ?", name)
    wanted = study.repeats if study.kind == "seek" else 1
    sources = []
    for row in database.all(
        "SELECT source, count(*) AS places, sum(NOT seeable) AS unseeable FROM locations "
        "WHERE study = ? GROUP BY source",
        name,
    ):
        done = database.one(
            "SELECT count(*) AS done, coalesce(sum(found), 0) AS found FROM trials t JOIN locations l "
            "ON l.id = t.location WHERE t.study = ? AND l.source = ? AND t.ended IS NOT NULL", name, row["source"],
        )  # fmt: skip
        assert done is not None
        sources.append({**dict(row), **dict(done), "wanted": (row["places"] - row["unseeable"]) * wanted})
    states = [person["status"] for person in people]
    return {
        "name": name, "title": study.title, "kind": study.kind, "participants": len(people),
        "finished": states.count("done"), "under_way": len(people) - states.count("done") - states.count("declined"),
        "trials_done": sum(source["done"] for source in sources), "sources": sources,
        "trials_wanted": sum(source["wanted"] for source in sources),
    }  # fmt: skip


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Lines of CSV, the columns' names first. What a spreadsheet would take for a formula is marked as text."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _harmless(value) for key, value in row.items()})
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def as_lines(rows: Iterable[Row]) -> Iterator[str]:
    """A line of JSON each."""
    for row in rows:
        yield json.dumps(row) + "\n"


FILES: dict[str, Callable[[Database, str], Iterator[str]]] = {
    "trials.csv": lambda database, study: as_csv(TRIAL_COLUMNS, trials(database, study)),
    "trials.jsonl": lambda database, study: as_lines(trials(database, study)),
    "actions.csv": lambda database, study: as_csv(ACTION_COLUMNS, actions(database, study)),
    "actions.jsonl": lambda database, study: as_lines(actions(database, study)),
    "records.jsonl": lambda database, study: as_lines(records(database, study)),
    "table.csv": lambda database, study: as_csv(TABLE_COLUMNS, table(database, study)),
    "table.json": lambda database, study: iter([json.dumps(table(database, study))]),
}
"""What can be taken out of a study."""


def exported(data: str | os.PathLike[str], study: str, name: str) -> Iterator[str]:
    """One of FILES, from a database's file, in pieces."""
    database = Database(data)
    try:
        stored_study(database, study)
        yield from FILES[name](database, study)
    finally:
        database.close()


def human_table(data: str | os.PathLike[str], study: str) -> list[Row]:
    """The table of a study, from a database's file."""
    database = Database(data)
    try:
        stored_study(database, study)
        return table(database, study)
    finally:
        database.close()


def _columns(name: str, values: Summary) -> Row:
    numbers = {name: values.mean, f"{name}_low": values.low, f"{name}_high": values.high}
    return {key: None if np.isnan(value) else round(value, 4) for key, value in numbers.items()}


def _split(scene: str) -> str:
    return split(scene) if scene in SCENES else "other"


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
