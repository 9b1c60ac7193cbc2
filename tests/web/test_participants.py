"""Participants: who they are on a platform, their one place, questionnaires, bonuses, pilots, and their export."""

import csv
import io
import json
import sqlite3
from contextlib import contextmanager

import pytest
from web_helpers import START, Clock, download, hidden_record, make_settings, playing, request

from scrubjay.errors import DatabaseError, StudyError
from scrubjay.game.record import save_records
from scrubjay.web import export
from scrubjay.web.database import Database
from scrubjay.web.server import running
from scrubjay.web.study_protocol import load_study

STUDY = """
name = "find"
title = "Find it"
kind = "seek"
consent = "You may stop at any time."
instructions = "Look for the object."
trials = 2
repeats = 9
give_up_seconds = 10
practice = {scene = "foyer-7", goal = "Bread"}
"""
PLACES = """
[[places]]
source = "people"
records = "people.jsonl"
"""
ON_FLOOR = [0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0]
PROLIFIC = {"PROLIFIC_PID": "5f00", "STUDY_ID": "s1", "SESSION_ID": "t1"}
TURK = {"workerId": "W1", "hitId": "h1", "assignmentId": "a1"}


@pytest.fixture
def folder(tmp_path):
    """A place for studies of two loaves in plain sight."""
    save_records([hidden_record(START, ON_FLOOR)] * 2, tmp_path / "people.jsonl")
    return tmp_path


def write(folder, settings: str = "", tables: str = ""):
    (folder / "study.toml").write_text(STUDY + settings + "\n" + PLACES + tables)
    return folder / "study.toml"


class Site:
    """A server with a study, as a participant and as its researcher see it."""

    def __init__(self, server, url: str, clock: Clock) -> None:
        self.server, self.url, self.clock = server, url, clock

    def join(self, **parameters) -> tuple[int, dict]:
        """Status and answer of joining, with a browser's name."""
        headers = {"User-Agent": "Mozilla/5.0 (X11) Chromium/140"}
        return request(self.url, "/api/studies/find/join", {"parameters": parameters}, headers=headers)

    def enter(self, **parameters) -> str:
        """Joins and returns the token."""
        code, answer = self.join(**parameters)
        assert code == 200, answer
        return answer["participant"]

    def advance(self, token: str, do: str, **body) -> dict:
        code, status = request(self.url, "/api/participant", {"do": do, **body}, token)
        assert code == 200, status
        return status

    def play(self, token: str, claims: int) -> dict:
        """Plays both trials: claims the loaf in the first ones, and gives up in the others."""
        self.advance(token, "begin")
        for number in range(2):
            with playing(self.url, self.advance(token, "next")["trial"]) as one:
                self.clock.now += 11
                assert one.act("ClaimVisible" if number < claims else "GiveUp")["phase"] == "done"
        return self.advance(token, "next")

    def rows(self, file: str, study: str = "find") -> list[dict]:
        text = download(self.url, self.server.admin_token, study, file)
        return list(csv.DictReader(io.StringIO(text)))


@contextmanager
def site(folder):
    clock = Clock()
    with running(make_settings(folder, studies=[folder / "study.toml"], clock=clock)) as (server, url):
        yield Site(server, url, clock)


# Completion codes and consent.


def test_codes_platform_ids_and_times_of_consent_are_exported(folder):
    write(folder)
    with site(folder) as here:
        first = here.enter(**PROLIFIC, source="mail")
        here.clock.now += 5
        here.advance(first, "agree")
        here.clock.now += 5
        done = here.play(first, claims=2)
        second = here.enter(**TURK)
        here.advance(second, "decline")
        here.enter()
        one, two, three = here.rows("participants.csv")
    assert done["status"] == "done" and one["code"] == done["code"] and len(done["code"]) == 8
    assert [one[key] for key in PROLIFIC] == list(PROLIFIC.values()) and one["workerId"] == ""
    times = [float(one[key]) for key in ("joined", "consented", "finished")]
    assert times == [1000, 1005, 1032] and one["declined"] == ""
    assert one["trials"] == "2" and one["browser"] == "Mozilla/5.0 (X11) Chromium/140"
    assert json.loads(one["parameters"])["source"] == "mail"
    assert two["status"] == "declined" and float(two["declined"]) == 1032 and two["consented"] == two["code"] == ""
    assert [two[key] for key in TURK] == list(TURK.values())
    assert three["status"] == "consent" and three["consented"] == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('code = "ABC"\nreturn_to = "https://app.prolific.com/submissions/complete?cc=ABD"', "carries the code ABD"),
        ('return_to = "https://app.prolific.com/submissions/complete?cc=ABD"', "each participant's own: set code"),
        ('code = "A B"\nreturn_to = "https://example.org/?code=A%20C&x=1"', "carries the code A C"),
    ],
)
def test_a_completion_link_with_another_code_than_the_pages_is_refused(folder, settings, message):
    with pytest.raises(StudyError, match=message):
        load_study(write(folder, settings))


@pytest.mark.parametrize(
    "settings",
    [
        'code = "ABC"\nreturn_to = "https://app.prolific.com/submissions/complete?cc=ABC"',
        'return_to = "https://example.org/?cc={code}"',
        'code = "A B"\nreturn_to = "https://example.org/?code=A%20B"',
        'code = "ABC"\nreturn_to = "https://example.org/thanks"',
    ],
)
def test_links_with_the_same_code_or_none_are_accepted(folder, settings):
    load_study(write(folder, settings))


def test_a_link_can_carry_each_participants_own_code(folder):
    write(folder, 'return_to = "https://example.org/?cc={code}"')
    with site(folder) as here:
        token = here.enter()
        assert here.advance(token, "agree")["return"] is None
        done = here.play(token, claims=2)
    assert done["return"] == f"https://example.org/?cc={done['code']}"


# One person, one place.


def test_a_person_who_returns_in_another_session_continues_and_takes_no_second_place(folder):
    write(folder)
    with site(folder) as here:
        token = here.enter(**PROLIFIC)
        here.advance(token, "agree")
        assert here.enter(**PROLIFIC) == token
        assert here.enter(**PROLIFIC | {"SESSION_ID": "t2"}) == token
        done = here.play(token, claims=2)
        assert here.enter(**PROLIFIC | {"SESSION_ID": "t2"}) == token  # Still sees the code.
        code, refused = here.join(**PROLIFIC | {"SESSION_ID": "t3"})
        assert code == 409 and refused["error"] == "refused" and "already taken part" in refused["message"]
        assert here.enter(**PROLIFIC | {"PROLIFIC_PID": "5f01"}) != token
        rows = here.rows("participants.csv")
    assert [row["PROLIFIC_PID"] for row in rows] == ["5f00", "5f01"]
    assert rows[0]["SESSION_ID"] == "t2" and rows[0]["code"] == done["code"]  # The session that is paid.


def test_a_study_can_ask_for_a_platforms_parameters(folder):
    write(folder, 'platform = "prolific"')
    with site(folder) as here:
        for parameters in ({}, TURK, PROLIFIC | {"SESSION_ID": ""}, PROLIFIC | {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}):
            code, answer = here.join(**parameters)
            assert code == 409 and "open this study from Prolific" in answer["message"], parameters
        assert "lacks PROLIFIC_PID." in answer["message"]
        here.enter(**PROLIFIC)
        assert len(here.rows("participants.csv")) == 1
    write(folder, 'platform = "sona"')
    with pytest.raises(StudyError, match="platform"):
        load_study(folder / "study.toml")


# Older databases.

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
