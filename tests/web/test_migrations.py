"""Databases of older versions keep their data; those of newer versions and other programs are refused."""

import json
import sqlite3

import pytest
from study_helpers import PROLIFIC, site, write
from web_helpers import make_settings, request

from scrubjay.errors import DatabaseError
from scrubjay.web import export
from scrubjay.web.database import Database
from scrubjay.web.server import running

VERSION_1 = """
CREATE TABLE studies (name TEXT PRIMARY KEY, definition TEXT NOT NULL);
CREATE TABLE locations (
  id INTEGER PRIMARY KEY, study TEXT NOT NULL, number INTEGER NOT NULL, source TEXT NOT NULL, scene TEXT NOT NULL,
  deal TEXT NOT NULL, seeable INTEGER NOT NULL, UNIQUE (study, number));
CREATE TABLE participants (
  id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE, study TEXT NOT NULL, identity TEXT UNIQUE,
  parameters TEXT NOT NULL, status TEXT NOT NULL, code TEXT, joined REAL NOT NULL, finished REAL);
CREATE TABLE trials (
  id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE, study TEXT, participant INTEGER REFERENCES participants,
  location INTEGER REFERENCES locations, role TEXT NOT NULL, practice INTEGER NOT NULL, scene TEXT NOT NULL,
  goal TEXT NOT NULL, opponent TEXT NOT NULL, seed INTEGER NOT NULL, patience REAL NOT NULL, deal TEXT,
  created REAL NOT NULL, started REAL, ended REAL, found INTEGER, given_up INTEGER, steps INTEGER,
  record TEXT, record_id TEXT);
CREATE INDEX trials_of_participants ON trials (participant);
CREATE INDEX trials_of_locations ON trials (study, location);
CREATE TABLE steps (
  trial INTEGER NOT NULL REFERENCES trials, number INTEGER NOT NULL, action TEXT NOT NULL, success INTEGER NOT NULL,
  script INTEGER NOT NULL, time REAL NOT NULL, PRIMARY KEY (trial, number)) WITHOUT ROWID;
CREATE TABLE records (id TEXT PRIMARY KEY, record TEXT NOT NULL);
PRAGMA user_version = 1;
"""


def older_database(folder, settings: str = "") -> None:
    """A database of version 1 in which one person has had two sessions of the study and finished the second."""
    with running(make_settings(folder / "now", studies=[write(folder, settings)])):
        pass
    with sqlite3.connect(folder / "now" / "play.db") as now, sqlite3.connect(folder / "play.db") as old:
        old.executescript(VERSION_1)
        for table, marks in (("studies", "?, ?"), ("locations", "?, ?, ?, ?, ?, ?, ?")):
            old.executemany(f"INSERT INTO {table} VALUES ({marks})", now.execute(f"SELECT * FROM {table}"))
        for number, (session, status) in enumerate([("t1", "trials"), ("t2", "done")], 1):
            parameters = json.dumps(PROLIFIC | {"SESSION_ID": session})
            values = [number, f"token{number}", "find", f"hash{number}", parameters, status, "C0DE", 1.0, 2.0]
            old.execute("INSERT INTO participants VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        old.execute("INSERT INTO trials (id, token, study, participant, location, role, practice, scene, goal, "
                    "opponent, seed, patience, created, started, ended, found, given_up, steps) VALUES (1, 't', "
                    "'find', 2, 1, 'seek', 0, 'foyer-7', 'Bread', 'people', 0, 10, 1, 2, 3, 1, 0, 1)")  # fmt: skip
        old.execute("INSERT INTO steps VALUES (1, 0, 'ClaimVisible', 1, 0, 2.5)")
    (folder / "play.db").chmod(0o600)


def test_a_database_of_the_version_before_is_brought_up_to_date_and_loses_nothing(folder):
    older_database(folder)
    with pytest.raises(DatabaseError, match=r"older Scrubjay: start `scrubjay serve --data .*play.db` once"):
        export.human_table(folder / "play.db", "find")
    with site(folder) as here:
        one, two = here.rows("participants.csv")
        assert [one["status"], two["status"], two["code"], two["finished"]] == ["trials", "done", "C0DE", "2.0"]
        assert two["consented"] == two["browser"] == ""
        (trial,), (action,) = here.rows("trials.csv"), here.rows("actions.csv")
        assert trial["found"] == "True" and trial["focus_losses"] == "0" and action["client_time"] == ""
        assert here.enter(**PROLIFIC | {"SESSION_ID": "t2"}) == "token2"  # The session that came furthest.
        assert here.join(**PROLIFIC | {"SESSION_ID": "t1"})[0] == 409
        assert request(here.url, "/api/participant", token="token1")[1]["status"] == "trials"


def test_databases_of_newer_versions_and_other_programs_are_refused(tmp_path):
    Database(tmp_path / "a.db", writable=True).close()
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("PRAGMA user_version = 99")
    with sqlite3.connect(tmp_path / "b.db") as db:
        db.executescript("CREATE TABLE participants (id INTEGER); PRAGMA user_version = 1;")
    for name, message in (("a.db", "newer Scrubjay"), ("b.db", "not a Scrubjay database")):
        with pytest.raises(DatabaseError, match=message):
            Database(tmp_path / name, writable=True)
    with sqlite3.connect(tmp_path / "b.db") as db:  # Nothing was changed.
        assert len(db.execute("PRAGMA table_info(participants)").fetchall()) == 1


def test_studies_of_older_databases_whose_code_and_link_differ_can_still_be_exported(folder):
    older_database(folder)
    with sqlite3.connect(folder / "play.db") as db:
        text = db.execute("SELECT definition FROM studies").fetchone()[0]
        link = "https://app.prolific.com/submissions/complete?cc=ABD"
        db.execute("UPDATE studies SET definition = ?", [text.replace('"return_to": ""', f'"return_to": "{link}"')])
    Database(folder / "play.db", writable=True).close()
    assert export.human_table(folder / "play.db", "find")[0]["trials"] == 1
