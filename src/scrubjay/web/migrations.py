"""Brings databases of older versions to the present one. What labs have stored stays as it is."""

from __future__ import annotations

import json
import sqlite3

from scrubjay.web import platforms

FROM_VERSION_1 = (
    "ALTER TABLE participants ADD COLUMN consented REAL",
    "ALTER TABLE participants ADD COLUMN declined REAL",
    "ALTER TABLE participants ADD COLUMN browser TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE steps ADD COLUMN client_time REAL",
    "CREATE TABLE answers (participant INTEGER NOT NULL REFERENCES participants, part TEXT NOT NULL, "
    "question TEXT NOT NULL, answer TEXT NOT NULL, time REAL NOT NULL, client_time REAL, "
    "PRIMARY KEY (participant, part, question)) WITHOUT ROWID",
    "CREATE TABLE focus (id INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, focused INTEGER NOT NULL, "
    "time REAL NOT NULL, client_time REAL NOT NULL)",
    "CREATE INDEX focus_of_trials ON focus (trial)",
)


def migrate(db: sqlite3.Connection) -> None:
    """From version 1 to 2, in the caller's transaction."""
    for statement in FROM_VERSION_1:
        db.execute(statement)
    _identify_people(db)


def _identify_people(db: sqlite3.Connection) -> None:
    """Version 1 identified sessions. Of a person with several, the one that came furthest is the person's."""
    rows = db.execute(
        "SELECT id, study, parameters FROM participants WHERE identity IS NOT NULL "
        "ORDER BY status != 'done', status != 'trials', id"
    ).fetchall()
    db.execute("UPDATE participants SET identity = NULL")
    taken: set[str | None] = {None}
    for number, study, parameters in rows:
        identity = platforms.identity(study, json.loads(parameters))
        if identity not in taken:
            taken.add(identity)
            db.execute("UPDATE participants SET identity = ? WHERE id = ?", [identity, number])
