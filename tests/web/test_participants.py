"""Participants: who they are on a platform, their one place, questionnaires, bonuses, pilots, and their export."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from study_helpers import PROLIFIC, QUESTIONS, TURK, site, write
from web_helpers import download, playing, request

from scrubjay.errors import StudyError
from scrubjay.web.study_file import Bonus, Study, check_completion_code
from scrubjay.web.study_protocol import load_study

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
        ('code = "ABC"\nreturn_to = "https://app.prolific.com/submissions/complete?cc=ABD"', "carries the code 'ABD'"),
        ('return_to = "https://app.prolific.com/submissions/complete?cc=ABD"', "each participant's own: set code"),
        ('code = "A B"\nreturn_to = "https://example.org/?code=A%20C&x=1"', "carries the code 'A C'"),
        ('code = "ABC"\nreturn_to = "https://app.prolific.com/submissions/complete?cc="', "carries the code ''"),
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


# Attention.


def test_losses_of_focus_are_counted_and_timed(folder):
    write(folder)
    with site(folder) as here:
        token = here.enter()
        here.advance(token, "agree")
        with playing(here.url, here.advance(token, "practise")["practice"]) as one:
            assert one.ask(type="focus", focused=False, at=1)["type"] == "pong"  # Practice does not count.
        here.advance(token, "begin")
        with playing(here.url, here.advance(token, "next")["trial"]) as one:
            for focused, seconds in ((False, 5), (True, 20), (False, 1), (False, 2)):
                assert one.ask(type="focus", focused=focused, at=1500)["type"] == "pong"
                here.clock.now += seconds
            one.ask(type="act", do="ClaimVisible", at=2500)
        (trial,), changes, (action,) = (here.rows(f"{name}.csv") for name in ("trials", "focus", "actions"))
    assert trial["focus_losses"] == "2" and float(trial["unfocused_seconds"]) == 5 + 3
    assert [row["focused"] for row in changes] == ["False", "True", "False", "False"]
    assert {row["client_time"] for row in changes} == {"1.5"} and action["client_time"] == "2.5"


# Questionnaires.


def test_answers_are_checked_stored_once_and_exported(folder):
    write(folder, tables=QUESTIONS)
    with site(folder) as here:
        token = here.enter()
        status = here.advance(token, "agree")
        assert status["status"] == "before" and [q["name"] for q in status["questions"]] == ["age", "games"]
        refused = [
            ({}, "age: this question needs an answer"), ({"age": "  "}, "needs an answer"),
            ({"age": 3}, "must be text"), ({"age": "30", "games": "Sometimes"}, "one of the choices"),
            ({"age": "30", "shoe": "9"}, "no such question"),
        ]  # fmt: skip
        for answers, message in refused:
            code, answer = request(here.url, "/api/participant", {"do": "answer", "answers": answers}, token)
            assert code == 400 and message in answer["message"]
        assert request(here.url, "/api/participant", {"do": "begin"}, token)[0] == 409  # Not past the questions.
        here.advance(token, "answer", answers={"age": "30"}, at=5000)
        assert request(here.url, "/api/participant", {"do": "answer", "answers": {"age": "31"}}, token)[0] == 409
        status = here.play(token, claims=2)
        assert status["status"] == "after" and status["code"] is None and status["return"] is None
        for value in (0, 6, "3", True, 2.5):
            body = {"do": "answer", "answers": {"hard": value}}
            assert request(here.url, "/api/participant", body, token)[0] == 400
        status = here.advance(token, "answer", answers={"hard": 5})
        assert status["status"] == "done" and status["code"]
        rows = [[row[key] for key in ("part", "question", "answer", "client_time")] for row in here.rows("answers.csv")]
    assert rows == [["before", "age", "30", "5.0"], ["before", "games", "", "5.0"], ["after", "hard", "5", ""]]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (QUESTIONS.replace('choices = ["Never", "Daily"]\n', ""), "question games: a choice needs choices"),
        (QUESTIONS.replace('"games"', '"age"'), "before: two questions have the same name"),
        (QUESTIONS.replace("points = 5", "points = 1"), "after.0.points"),
        (QUESTIONS.replace('"text"', '"number"'), "before.0.kind"),
        ('[bonus]\nfound = 0\ncurrency = "GBP"', "bonus.found"),
        ("[bonus]\nfound = 1", "bonus.currency: field required"),
    ],
)
def test_invalid_questions_and_bonuses_are_refused(folder, tables, message):
    with pytest.raises(StudyError, match=message):
        load_study(write(folder, tables=tables))


# Bonus by result.


@pytest.mark.parametrize(
    ("settings", "found", "amount"),
    [
        ({}, [1, 90, 400], 0.3), ({"within_steps": 90}, [1, 90, 91], 0.2), ({"at_most": 0.25}, [1, 2, 3], 0.25),
        ({}, [], 0.0),
    ],
)  # fmt: skip
def test_the_bonus_counts_objects_found_in_time_up_to_a_limit(settings, found, amount):
    assert Bonus(found=0.1, currency="GBP", **settings).earned(found) == amount


def test_bonuses_are_shown_at_the_end_and_exported_for_payment(folder):
    write(folder, tables='[bonus]\nfound = 0.1\ncurrency = "USD"\n')
    with site(folder) as here:
        for number, claims in enumerate((1, 0, 2)):
            token = here.enter(**PROLIFIC | {"PROLIFIC_PID": f"5f0{number}"})
            assert here.advance(token, "agree")["bonus"] is None
            status = here.play(token, claims)
            assert status["bonus"] == f"{claims / 10:.2f} USD"
        here.advance(here.enter(), "agree")
        assert [row["bonus"] for row in here.rows("participants.csv")] == ["0.10", "0.00", "0.20", "0.00"]
        assert download(here.url, here.server.admin_token, "find", "bonuses.txt") == "5f00,0.10\n5f02,0.20\n"


# Pilots.


def test_a_pilot_may_change_and_its_data_are_set_aside(folder):
    write(folder, "pilot = true")
    with site(folder) as here:
        token = here.enter(**PROLIFIC)
        assert here.advance(token, "agree")["pilot"]
        here.play(token, claims=2)
        assert len(here.rows("trials.csv")) == 2
    write(folder)
    with site(folder) as here:
        assert not here.rows("participants.csv") and not here.rows("trials.csv")
        trials, (person,) = here.rows("trials.csv", "find.pilot-1"), here.rows("participants.csv", "find.pilot-1")
        assert [row["source"] for row in trials] == ["people"] * 2 and person["code"]
        assert request(here.url, "/api/participant", token=token)[0] == 401
        studies = request(here.url, "/api/admin/progress", token=here.server.admin_token)[1]["studies"]
        assert [(study["name"], study["pilot"], study["served"]) for study in studies] == [
            ("find", False, True), ("find.pilot-1", True, False),
        ]  # fmt: skip
        again = here.enter(**PROLIFIC)  # Who was in the pilot may take part.
        assert again != token and len(here.rows("participants.csv")) == 1
        places = here.server.sessions.database.one("SELECT count(*) AS n FROM locations WHERE study = 'find'")
        assert places["n"] == 2
    write(folder, "pilot = true")
    with pytest.raises(StudyError, match="give it another name"), site(folder):
        pass


def test_the_study_files_of_the_guide_are_valid():
    guide = Path(__file__).parents[2] / "docs" / "studies.md"
    studies = [Study(**tomllib.loads(text)) for text in re.findall(r"```toml\n(.*?)```", guide.read_text(), re.S)]
    assert [study.kind for study in studies] == ["hide", "seek"]
    for study in studies:
        check_completion_code(study)
