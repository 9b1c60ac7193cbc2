"""A study's data: participants, answers, trials, timed actions, records, and the paper's table of human searches."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from scrubjay.game.metrics import Summary, summary
from scrubjay.game.stages import SEEKER_STEPS
from scrubjay.rooms.generate import split_of
from scrubjay.web import platforms
from scrubjay.web.database import Database
from scrubjay.web.participants import bonus_of
from scrubjay.web.study_protocol import stored_study
from scrubjay.web.trial import GIVE_UP, HIDE, HIDE_HERE, NO_ACTION, SEEK, WALK

Row = dict[str, Any]
TRIALS = """
SELECT t.id AS trial, t.participant, t.role, t.scene, t.goal, l.source, l.number AS place, t.created, t.started,
  t.ended, t.found, t.given_up, t.steps FROM trials t JOIN locations l ON l.id = t.location
WHERE t.study = ? AND t.practice = 0 ORDER BY t.id"""
ACTIONS = """
SELECT t.id AS trial, t.participant, t.role, s.number, s.time, s.action, s.success, s.client_time
FROM steps s JOIN trials t ON t.id = s.trial WHERE t.study = ? AND t.practice = 0 ORDER BY t.id, s.number"""
FOCUS = """
SELECT t.id AS trial, t.participant, f.focused, f.time, f.client_time, t.ended
FROM focus f JOIN trials t ON t.id = f.trial WHERE t.study = ? AND t.practice = 0 ORDER BY t.id, f.id"""
ANSWERS = """
SELECT a.participant, a.part, a.question, a.answer, a.time, a.client_time
FROM answers a JOIN participants p ON p.id = a.participant WHERE p.study = ?"""
PARTICIPANTS = """
SELECT p.*, (
  SELECT count(*) FROM trials t WHERE t.participant = p.id AND t.practice = 0 AND t.ended IS NOT NULL) AS trials
FROM participants p WHERE p.study = ? ORDER BY p.id"""
RECORDS = "SELECT record FROM trials WHERE study = ? AND practice = 0 AND record IS NOT NULL ORDER BY id"
TRIAL_COLUMNS = (
    "trial", "participant", "role", "scene", "goal", "source", "place", "created", "started", "ended", "found",
    "given_up", "steps", "seconds", "split", "worker", "focus_losses", "unfocused_seconds",
)  # fmt: skip
ACTION_COLUMNS = ("trial", "participant", "role", "number", "time", "action", "success", "attempt", "client_time")
FOCUS_COLUMNS = ("trial", "participant", "focused", "time", "client_time")
ANSWER_COLUMNS = ("participant", "part", "question", "answer", "time", "client_time")
PARTICIPANT_COLUMNS = (
    "participant", "status", "code", "bonus", *platforms.PARAMETERS, "joined", "consented", "declined", "finished",
    "trials", "browser", "parameters",
)  # fmt: skip
TABLE_COLUMNS = (
    "source", "split", "trials", "found", "found_low", "found_high", "steps", "steps_low", "steps_high",
)  # fmt: skip
NO_ACTION_MEANS = {SEEK: GIVE_UP, HIDE: HIDE_HERE}
"""What ending a stage without an action means, by role."""


def trials(database: Database, study: str) -> Iterator[Row]:
    """One row per trial, with the platform's worker id and how often and long the window was without the focus."""
    parameters = {
        row["id"]: json.loads(row["parameters"])
        for row in database.all("SELECT id, parameters FROM participants WHERE study = ?", study)
    }
    losses = _focus_losses(database, study)
    for row in database.db.execute(TRIALS, [study]):
        worker = platforms.worker_id(parameters.get(row["participant"], {}))
        unfocused = losses.get(row["trial"], [])
        seconds = round(row["ended"] - row["started"], 3) if row["ended"] and row["started"] else None
        yield {**dict(row), "found": _optional_bool(row["found"]), "given_up": _optional_bool(row["given_up"]),
               "seconds": seconds, "split": split_of(row["scene"]), "worker": worker,
               "focus_losses": len(unfocused), "unfocused_seconds": round(sum(unfocused), 3)}  # fmt: skip


def _focus_losses(database: Database, study: str) -> dict[int, list[float]]:
    """The seconds of each loss of focus by trial. One without an end lasts as long as the trial."""
    losses: dict[int, list[float]] = {}
    lost: dict[int, float] = {}
    ended: dict[int, float | None] = {}
    for row in database.db.execute(FOCUS, [study]):
        ended[row["trial"]] = row["ended"]
        if not row["focused"]:
            lost.setdefault(row["trial"], row["time"])
        elif row["trial"] in lost:
            losses.setdefault(row["trial"], []).append(row["time"] - lost.pop(row["trial"]))
    for trial, since in lost.items():
        losses.setdefault(trial, []).append(max(0.0, (ended[trial] or since) - since))
    return losses


def participants(database: Database, study: str) -> Iterator[Row]:
    """One row per participant. Times are seconds since 1970, None where it has not come to that."""
    definition = stored_study(database, study)
    for row in database.db.execute(PARTICIPANTS, [study]):
        parameters, stored = json.loads(row["parameters"]), dict(row)
        bonus = f"{bonus_of(database, definition, row['id']):.2f}" if definition.bonus else None
        yield {"participant": row["id"], **{key: parameters.get(key) for key in platforms.PARAMETERS}, "bonus": bonus,
               **{key: stored[key] for key in PARTICIPANT_COLUMNS if key in stored}}  # fmt: skip


def bonuses(database: Database, study: str) -> Iterator[str]:
    """Lines "participant id,amount" of those who are done and have earned something, as Prolific's bulk bonuses."""
    for row in participants(database, study):
        worker = row["PROLIFIC_PID"] or row["workerId"] or ""
        if row["status"] == "done" and float(row["bonus"] or 0) and worker.isalnum():
            yield f"{worker},{row['bonus']}\n"


def answers(database: Database, study: str) -> Iterator[Row]:
    """One row per question that a participant was asked; in the questionnaires' order."""
    definition = stored_study(database, study)
    asked = [(part, question.name) for part in ("before", "after") for question in definition.questions(part)]
    rows = database.all(ANSWERS, study)
    for row in sorted(rows, key=lambda row: (row["participant"], asked.index((row["part"], row["question"])))):
        yield {**dict(row), "answer": json.loads(row["answer"])}


def focus(database: Database, study: str) -> Iterator[Row]:
    """One row per loss or return of a participant's focus in a trial."""
    for row in database.db.execute(FOCUS, [study]):
        yield {**{key: row[key] for key in FOCUS_COLUMNS}, "focused": bool(row["focused"])}


def actions(database: Database, study: str) -> Iterator[Row]:
    """One row per step in order. A hider's "Walk" discards the attempt and starts the next."""
    trial, attempt = None, 1
    for row in database.db.execute(ACTIONS, [study]):
        if row["trial"] != trial:
            trial, attempt = row["trial"], 1
        attempt += row["action"] == WALK
        action = row["action"] if row["action"] != NO_ACTION else NO_ACTION_MEANS[row["role"]]
        yield {**dict(row), "action": action, "success": bool(row["success"]), "attempt": attempt}


def records(database: Database, study: str) -> Iterator[Row]:
    """The record of every finished trial."""
    for row in database.db.execute(RECORDS, [study]):
        yield json.loads(row["record"])


def table(database: Database, study: str) -> list[Row]:
    """The paper's table: find rate and steps per source, with 95 % confidence intervals.

    One row per source and split, and per source over all splits. Each location that cannot be seen counts as `repeats`
    failed searches; failed searches, and successful ones longer than 500 steps, count as 500 steps.
    """
    repeats = stored_study(database, study).repeats
    found: dict[tuple[str, str], list[bool]] = {}
    steps: dict[tuple[str, str], list[float]] = {}

    def count(source: str, scene: str, success: bool, taken: float) -> None:
        for key in ((source, split_of(scene)), (source, "all")):
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
    """Participants and trials of each study, in total and per source."""
    return [_progress(database, row["name"]) for row in database.all("SELECT name FROM studies ORDER BY name")]


def _progress(database: Database, name: str) -> Row:
    study = stored_study(database, name)
    participants = database.all("SELECT status FROM participants WHERE study = ?", name)
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
        wanted = (row["places"] - row["unseeable"]) * study.trials_per_location
        sources.append({**dict(row), **dict(done), "wanted": wanted})
    statuses = [participant["status"] for participant in participants]
    finished, declined = statuses.count("done"), statuses.count("declined")
    return {
        "name": name, "title": study.title, "kind": study.kind, "pilot": study.pilot,
        "participants": len(participants), "finished": finished, "declined": declined,
        "under_way": len(statuses) - finished - declined,
        "trials_done": sum(source["done"] for source in sources), "sources": sources,
        "trials_wanted": sum(source["wanted"] for source in sources),
    }  # fmt: skip


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Lines of CSV with a header. Values that a spreadsheet would run as formulas are quoted."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _escape_formula(value) for key, value in row.items()})
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def as_lines(rows: Iterable[Row]) -> Iterator[str]:
    """One line of JSON per row."""
    for row in rows:
        yield json.dumps(row) + "\n"


FILES: dict[str, Callable[[Database, str], Iterator[str]]] = {
    "participants.csv": lambda database, study: as_csv(PARTICIPANT_COLUMNS, participants(database, study)),
    "participants.jsonl": lambda database, study: as_lines(participants(database, study)),
    "bonuses.txt": bonuses,
    "answers.csv": lambda database, study: as_csv(ANSWER_COLUMNS, answers(database, study)),
    "answers.jsonl": lambda database, study: as_lines(answers(database, study)),
    "trials.csv": lambda database, study: as_csv(TRIAL_COLUMNS, trials(database, study)),
    "trials.jsonl": lambda database, study: as_lines(trials(database, study)),
    "actions.csv": lambda database, study: as_csv(ACTION_COLUMNS, actions(database, study)),
    "actions.jsonl": lambda database, study: as_lines(actions(database, study)),
    "focus.csv": lambda database, study: as_csv(FOCUS_COLUMNS, focus(database, study)),
    "focus.jsonl": lambda database, study: as_lines(focus(database, study)),
    "records.jsonl": lambda database, study: as_lines(records(database, study)),
    "table.csv": lambda database, study: as_csv(TABLE_COLUMNS, table(database, study)),
    "table.json": lambda database, study: iter([json.dumps(table(database, study))]),
}
"""The export files of a study, by name."""


def export_file(data: str | os.PathLike[str], study: str, name: str) -> Iterator[str]:
    """One of FILES in chunks, read from a database file."""
    with closing(Database(data)) as database:
        stored_study(database, study)
        yield from FILES[name](database, study)


def human_table(data: str | os.PathLike[str], study: str) -> list[Row]:
    """A study's table, read from a database file."""
    with closing(Database(data)) as database:
        return table(database, study)


def read_progress(data: str | os.PathLike[str]) -> list[Row]:
    """`progress`, read from a database file."""
    with closing(Database(data)) as database:
        return progress(database)


def _columns(name: str, values: Summary) -> Row:
    numbers = {name: values.mean, f"{name}_low": values.low, f"{name}_high": values.high}
    return {key: None if np.isnan(value) else round(value, 4) for key, value in numbers.items()}


def _optional_bool(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _escape_formula(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
