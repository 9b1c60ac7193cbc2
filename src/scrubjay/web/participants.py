"""A participant's course through a study: consent, instructions and practice, balanced random trials, and a code."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from scrubjay.web.database import Database, new_token, spec_from_json
from scrubjay.web.opponents import SOMEWHERE
from scrubjay.web.study_protocol import Study
from scrubjay.web.trial import NotAllowedError

PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""What Mechanical Turk gives to those who only look."""
PLATFORMS = (("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"), ("workerId", "hitId", "assignmentId"))
"""The parameters with which platforms send people. All together they are known to the participant alone."""
ABANDONED = 3600.0
"""Seconds after which an unfinished trial no longer keeps others from its place."""


class PreviewError(Exception):
    """Somebody has not accepted the task yet."""


class Participants:
    """The participants of all studies. Runs in the engine's thread."""

    def __init__(self, database: Database, studies: Mapping[str, Study], clock: Callable[[], float]) -> None:
        self.database, self.studies, self.clock = database, studies, clock

    def join(self, name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """A new participant, or the one with these platform parameters; their token and status."""
        if parameters.get("assignmentId") == PREVIEW:
            raise PreviewError("Accept the task first: this is a preview.")
        identity = None
        for names in PLATFORMS:
            if all(parameters.get(key) for key in names):
                values = [name, *(parameters[key] for key in names)]
                identity = hashlib.sha256(json.dumps(values).encode()).hexdigest()
        known = self.database.one("SELECT token FROM participants WHERE identity = ?", identity)
        token = known["token"] if known else new_token()
        if not known:
            self.database.add("participants", token=token, study=name, identity=identity, status="consent",
                           parameters=json.dumps(dict(parameters)), joined=self.clock())  # fmt: skip
        return {"participant": token, "status": self.status(token)["status"]}

    def status(self, token: str) -> dict[str, Any]:
        """Where a participant is; KeyError if there is none."""
        person = self._person(token)
        study = self.studies[person["study"]]
        done = self._count(person, "practice = 0 AND ended IS NOT NULL")
        under_way = self._under_way(person, practice=False)
        practice = self._under_way(person, practice=True)
        return {
            "study": study.name, "title": study.title, "kind": study.kind, "status": person["status"],
            "consent": study.consent, "instructions": study.instructions, "done": done, "of": study.trials,
            "trial": under_way and under_way["token"], "practice": practice and practice["token"],
            "code": person["code"], "return": (study.return_to or None) if person["status"] == "done" else None,
        }  # fmt: skip

    def do(self, token: str, what: str) -> dict[str, Any]:
        """A participant goes on; NotAllowedError where that is out of turn."""
        person = self._person(token)
        status, change = person["status"], self.database.change
        if what == "agree" and status == "consent":
            change("participants", person["id"], status="instructions")
        elif what == "decline" and status == "consent":
            change("participants", person["id"], status="declined")
        elif what == "begin" and status == "instructions":
            change("participants", person["id"], status="trials")
            self._end_practice(person)
        elif what == "practise" and status in ("instructions", "trials") and not self._under_way(person, False):
            self._practise(person)
        elif what == "next" and status == "trials" and not self._under_way(person, False):
            self._end_practice(person)
            self._next(person)
        else:
            raise NotAllowedError("This cannot be done now: reload the page to go on where you are.")
        return self.status(token)

    def _person(self, token: str) -> sqlite3.Row:
        person = self.database.one("SELECT * FROM participants WHERE token = ?", token)
        if person is None or person["study"] not in self.studies:
            raise KeyError("no such participant")
        return person

    def _count(self, person: sqlite3.Row, where: str) -> int:
        row = self.database.one(f"SELECT count(*) AS n FROM trials WHERE participant = ? AND {where}", person["id"])
        return row["n"] if row else 0

    def _end_practice(self, person: sqlite3.Row) -> None:
        query = "UPDATE trials SET ended = ? WHERE participant = ? AND practice = 1 AND ended IS NULL"
        self.database.db.execute(query, [self.clock(), person["id"]])

    def _under_way(self, person: sqlite3.Row, practice: bool) -> sqlite3.Row | None:
        return self.database.one(
            "SELECT * FROM trials WHERE participant = ? AND practice = ? AND ended IS NULL ORDER BY id DESC",
            person["id"], practice,
        )  # fmt: skip

    def _practise(self, person: sqlite3.Row) -> None:
        self._end_practice(person)
        study = self.studies[person["study"]]
        self.database.new_trial(
            study.kind, study.practice.scene, study.practice.goal, SOMEWHERE if study.kind == "seek" else "",
            secrets.randbelow(2**31), self.clock(), practice=True, study=study.name, participant=person["id"],
        )  # fmt: skip

    def _next(self, person: sqlite3.Row) -> None:
        """The next trial; the participant is done where there is none."""
        study, now = self.studies[person["study"]], self.clock()
        chosen = self._chosen(person, study)
        if self._count(person, "practice = 0") >= study.trials or chosen is None:
            code = study.code or secrets.token_hex(4).upper()
            self.database.change("participants", person["id"], status="done", code=code, finished=now)
            return
        goal = spec_from_json(chosen["deal"]).goal
        self.database.new_trial(
            study.kind, chosen["scene"], goal, chosen["source"] if study.kind == "seek" else "", 0, now,
            study=study.name, participant=person["id"], location=chosen["id"], deal=chosen["deal"],
            patience=study.give_up_seconds,
        )  # fmt: skip

    def _chosen(self, person: sqlite3.Row, study: Study) -> sqlite3.Row | None:
        """A place that still needs trials: of the source that this participant had least, then that all had least, and
        at random among the places with the fewest trials."""
        rows = self.database.all(
            "SELECT l.id, l.source, l.scene, l.deal, count(t.id) AS trials, "
            "coalesce(sum(t.participant = ?), 0) AS mine FROM locations l LEFT JOIN trials t ON t.study = l.study "
            "AND t.location = l.id AND (t.ended IS NOT NULL OR t.created > ?) "
            "WHERE l.study = ? AND l.seeable GROUP BY l.id",
            person["id"], self.clock() - ABANDONED, study.name,
        )  # fmt: skip
        wanted = study.repeats if study.kind == "seek" else 1
        open_rows = [row for row in rows if row["trials"] < wanted and not row["mine"]]
        if not open_rows:
            return None
        sources = {row["source"] for row in open_rows}
        mine = {source: sum(row["mine"] for row in rows if row["source"] == source) for source in sources}
        everyone = {
            source: sum(row["trials"] for row in rows if row["source"] == source)
            / sum(row["source"] == source for row in rows)
            for source in sources
        }
        best = min((mine[source], everyone[source]) for source in sources)
        source = secrets.choice([source for source in sorted(sources) if (mine[source], everyone[source]) == best])
        among = [row for row in open_rows if row["source"] == source]
        fewest = min(row["trials"] for row in among)
        return secrets.choice([row for row in among if row["trials"] == fewest])
