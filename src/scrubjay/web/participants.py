"""A participant's way through a study: consent, questionnaires, instructions, practice, trials, completion code."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from scrubjay.web import platforms
from scrubjay.web.database import Database, new_token, spec_from_json
from scrubjay.web.opponents import SOMEWHERE
from scrubjay.web.questions import check_answers
from scrubjay.web.schemas import Answer
from scrubjay.web.study_file import Study
from scrubjay.web.trial import NotAllowedError

ABANDONED_SECONDS = 3600.0
"""After this an unfinished trial no longer counts for its location."""
MAX_BROWSER_LENGTH = 300


class JoinError(Exception):
    """Somebody who cannot take part; the message is shown to them."""

    code = "refused"


class PreviewError(JoinError):
    """The worker has not accepted the task yet."""

    code = "preview"


class Participants:
    """The participants of all studies. Methods run in the worker's thread."""

    def __init__(self, database: Database, studies: Mapping[str, Study], clock: Callable[[], float]) -> None:
        self.database, self.studies, self.clock = database, studies, clock

    def join(self, name: str, parameters: Mapping[str, str], browser: str = "") -> dict[str, Any]:
        """Returns token and status of the participant with these platform parameters, or of a new one.

        One person takes one place: a second session continues the first, and is refused once that is complete.
        """
        study = self.studies[name]
        if parameters.get("assignmentId") == platforms.PREVIEW:
            raise PreviewError("This is a preview. Accept the task to take part.")
        if study.platform and (missing := platforms.PLATFORMS[study.platform].missing(parameters)):
            title = platforms.PLATFORMS[study.platform].title
            raise JoinError(f"Please open this study from {title}. The link lacks {', '.join(missing)}.")
        identity = platforms.identity(name, parameters, study.platform)
        known = self.database.one("SELECT * FROM participants WHERE identity = ?", identity)
        token = known["token"] if known else new_token()
        if known and not platforms.same_session(json.loads(known["parameters"]), parameters):
            if known["status"] == "done":
                raise JoinError("You have already taken part in this study. Thank you.")
            # The platform pays for the latest session.
            self.database.update("participants", known["id"], parameters=json.dumps(dict(parameters)))
        if not known:
            self.database.insert("participants", token=token, study=name, identity=identity, status="consent",
                                 parameters=json.dumps(dict(parameters)), joined=self.clock(),
                                 browser=browser[:MAX_BROWSER_LENGTH])  # fmt: skip
        return {"participant": token, "status": self.status(token)["status"]}

    def status(self, token: str) -> dict[str, Any]:
        """The participant's progress as the page shows it; KeyError if there is no such participant."""
        participant = self._participant(token)
        study, status = self.studies[participant["study"]], participant["status"]
        done = self._count_trials(participant, "practice = 0 AND ended IS NOT NULL")
        trial = self._current_trial(participant, practice=False)
        practice = self._current_trial(participant, practice=True)
        return {
            "study": study.name, "title": study.title, "kind": study.kind, "status": status, "pilot": study.pilot,
            "consent": study.consent, "instructions": study.instructions, "done": done, "of": study.trials,
            "questions": [question.model_dump() for question in study.questions(status)],
            "trial": trial and trial["token"], "practice": practice and practice["token"],
            "code": participant["code"], "platform": study.platform, **self._ending(participant, study),
        }  # fmt: skip

    def _ending(self, participant: sqlite3.Row, study: Study) -> dict[str, Any]:
        """What only a participant who is done gets."""
        if participant["status"] != "done":
            return {"return": None, "submit": None, "bonus": None}
        parameters = json.loads(participant["parameters"])
        submit = platforms.mturk_submission(parameters, participant["code"]) if study.platform == "mturk" else None
        bonus = study.bonus and f"{bonus_of(self.database, study, participant['id']):.2f} {study.bonus.currency}"
        return {"return": study.completion_link(participant["code"]) or None, "submit": submit, "bonus": bonus}

    def act(
        self, token: str, action: str, answers: Mapping[str, Answer] | None = None, client_time: float | None = None
    ) -> dict[str, Any]:
        """Takes the participant a step further and returns the status; NotAllowedError if it is not the next step."""
        participant = self._participant(token)
        study, status, update = self.studies[participant["study"]], participant["status"], self.database.update
        if action == "agree" and status == "consent":
            following = "before" if study.before else "instructions"
            update("participants", participant["id"], status=following, consented=self.clock())
        elif action == "decline" and status == "consent":
            update("participants", participant["id"], status="declined", declined=self.clock())
        elif action == "answer" and status in ("before", "after"):
            self._store_answers(participant, check_answers(study.questions(status), answers or {}), client_time)
            if status == "after":
                self._complete(participant, study)
            else:
                update("participants", participant["id"], status="instructions")
        elif action == "begin" and status == "instructions":
            update("participants", participant["id"], status="trials")
            self._end_practice(participant)
        elif (
            action == "practise"
            and status in ("instructions", "trials")
            and not self._current_trial(participant, practice=False)
        ):
            self._start_practice(participant)
        elif action == "next" and status == "trials" and not self._current_trial(participant, practice=False):
            self._end_practice(participant)
            self._start_trial(participant)
        else:
            raise NotAllowedError("This is not possible now. Reload the page to continue where you are.")
        return self.status(token)

    def _store_answers(
        self, participant: sqlite3.Row, answers: Mapping[str, Answer], client_time: float | None
    ) -> None:
        for question, answer in answers.items():
            self.database.insert("answers", participant=participant["id"], part=participant["status"],
                                 question=question, answer=json.dumps(answer), time=self.clock(),
                                 client_time=client_time)  # fmt: skip

    def _complete(self, participant: sqlite3.Row, study: Study) -> None:
        code = study.code or secrets.token_hex(4).upper()
        self.database.update("participants", participant["id"], status="done", code=code, finished=self.clock())

    def _participant(self, token: str) -> sqlite3.Row:
        participant = self.database.one("SELECT * FROM participants WHERE token = ?", token)
        if participant is None or participant["study"] not in self.studies:
            raise KeyError("no such participant")
        return participant

    def _count_trials(self, participant: sqlite3.Row, where: str) -> int:
        row = self.database.one(
            f"SELECT count(*) AS n FROM trials WHERE participant = ? AND {where}", participant["id"]
        )
        return row["n"] if row else 0

    def _current_trial(self, participant: sqlite3.Row, practice: bool) -> sqlite3.Row | None:
        return self.database.one(
            "SELECT * FROM trials WHERE participant = ? AND practice = ? AND ended IS NULL ORDER BY id DESC",
            participant["id"], practice,
        )  # fmt: skip

    def _start_practice(self, participant: sqlite3.Row) -> None:
        self._end_practice(participant)
        study = self.studies[participant["study"]]
        self.database.new_trial(
            study.kind, study.practice.scene, study.practice.goal, SOMEWHERE if study.kind == "seek" else "",
            secrets.randbelow(2**31), self.clock(), practice=True, study=study.name, participant=participant["id"],
        )  # fmt: skip

    def _end_practice(self, participant: sqlite3.Row) -> None:
        query = "UPDATE trials SET ended = ? WHERE participant = ? AND practice = 1 AND ended IS NULL"
        self.database.db.execute(query, [self.clock(), participant["id"]])

    def _start_trial(self, participant: sqlite3.Row) -> None:
        """Starts the next trial; after the last one come the questionnaire and the end."""
        study, now = self.studies[participant["study"]], self.clock()
        location = self._choose_location(participant, study)
        if self._count_trials(participant, "practice = 0") >= study.trials or location is None:
            if study.after:
                self.database.update("participants", participant["id"], status="after")
            else:
                self._complete(participant, study)
            return
        goal = spec_from_json(location["deal"]).goal
        self.database.new_trial(
            study.kind, location["scene"], goal, location["source"] if study.kind == "seek" else "", 0, now,
            study=study.name, participant=participant["id"], location=location["id"], deal=location["deal"],
            patience=study.give_up_seconds,
        )  # fmt: skip

    def _choose_location(self, participant: sqlite3.Row, study: Study) -> sqlite3.Row | None:
        """A location that needs trials and is new to the participant: of the source with the fewest trials of this
        participant, then of all participants per location; random among its locations with the fewest trials."""
        rows = self.database.all(
            "SELECT l.id, l.source, l.scene, l.deal, count(t.id) AS trials, "
            "coalesce(sum(t.participant = ?), 0) AS mine FROM locations l LEFT JOIN trials t ON t.study = l.study "
            "AND t.location = l.id AND (t.ended IS NOT NULL OR t.created > ?) "
            "WHERE l.study = ? AND l.seeable GROUP BY l.id",
            participant["id"], self.clock() - ABANDONED_SECONDS, study.name,
        )  # fmt: skip
        open_rows = [row for row in rows if row["trials"] < study.trials_per_location and not row["mine"]]
        if not open_rows:
            return None
        sources = {row["source"] for row in open_rows}
        mine = {source: sum(row["mine"] for row in rows if row["source"] == source) for source in sources}
        everyone = {
            source: sum(row["trials"] for row in rows if row["source"] == source)
            / sum(row["source"] == source for row in rows)
            for source in sources
        }
        fewest = min((mine[source], everyone[source]) for source in sources)
        source = secrets.choice([source for source in sorted(sources) if (mine[source], everyone[source]) == fewest])
        candidates = [row for row in open_rows if row["source"] == source]
        least = min(row["trials"] for row in candidates)
        return secrets.choice([row for row in candidates if row["trials"] == least])


def bonus_of(database: Database, study: Study, participant: int) -> float:
    """What a participant has earned so far; 0 if the study has no bonus."""
    rows = database.all("SELECT steps FROM trials WHERE participant = ? AND practice = 0 AND found", participant)
    return study.bonus.earned([row["steps"] for row in rows]) if study.bonus else 0.0
