"""A study of two loaves in plain sight: its file, its server, and a participant and a researcher of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from web_helpers import Clock, download, make_settings, playing, request

from scrubjay.web.server import running

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
QUESTIONS = """
[[before]]
name = "age"
ask = "How old are you?"
kind = "text"
[[before]]
name = "games"
ask = "How often do you play?"
kind = "choice"
choices = ["Never", "Daily"]
required = false
[[after]]
name = "hard"
ask = "How hard was it?"
kind = "scale"
points = 5
"""
ON_FLOOR = [0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0]
PROLIFIC = {"PROLIFIC_PID": "5f00", "STUDY_ID": "s1", "SESSION_ID": "t1"}
TURK = {"workerId": "W1", "hitId": "h1", "assignmentId": "a1"}


def write(folder: Path, settings: str = "", tables: str = "") -> Path:
    """The study file, with settings and tables of its own."""
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
def site(folder: Path) -> Iterator[Site]:
    clock = Clock()
    with running(make_settings(folder, studies=[folder / "study.toml"], clock=clock)) as (server, url):
        yield Site(server, url, clock)
