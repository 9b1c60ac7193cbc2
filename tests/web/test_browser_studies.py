"""A study in a real browser, from the platform's link to its completion link: questionnaires, trials, code, bonus."""

import csv
import io
from contextlib import contextmanager, suppress
from urllib.request import urlopen

import pytest
from browser_helpers import PHONE, expect, is_firefox, keep_sent, playwright, press, sent, wait_for_steps
from web_helpers import START, Clock, download, hidden_record, make_settings

from scrubjay.game.record import save_records
from scrubjay.web.server import running

STUDY = """
name = "find"
title = "Find the loaf"
kind = "seek"
consent = "You may stop at any time."
instructions = "Look for the object."
trials = 2
repeats = 99
code = "JAY7"
practice = {scene = "foyer-7", goal = "Bread"}
"""
TABLES = """
[bonus]
found = 0.25
currency = "GBP"
[[before]]
name = "age"
ask = "How old are you?"
kind = "text"
[[before]]
name = "games"
ask = "How often do you play video games?"
kind = "choice"
choices = ["Never", "Now and then", "Every day"]
[[after]]
name = "hard"
ask = "How hard was it to find things?"
kind = "scale"
points = 5
low = "Very easy"
high = "Very hard"
[[after]]
name = "remarks"
ask = "Anything else?"
kind = "text"
long = true
required = false
[[places]]
source = "people"
records = "people.jsonl"
"""
ON_FLOOR = [0.0, 1.0, 0.065, 1.0, 0.0, 0.0, 0.0]
PROLIFIC = "PROLIFIC_PID=5f00&STUDY_ID=s1&SESSION_ID=t1"
COMPLETE = "https://app.prolific.com/submissions/complete?cc=JAY7"


@contextmanager
def served(folder, settings: str = ""):
    (folder / "study.toml").write_text(STUDY + settings + TABLES)
    save_records([hidden_record(START, ON_FLOOR)] * 2, folder / "people.jsonl")
    with running(make_settings(folder, studies=[folder / "study.toml"], clock=Clock())) as (server, url):
        yield server, url.rstrip("/")


def rows(server, url: str, file: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(download(url + "/", server.admin_token, "find", file))))


def answer_first_questions(page) -> None:
    page.get_by_label("How old are you?").fill("33")
    page.get_by_role("radio", name="Now and then").check()
    page.get_by_role("button", name="Continue").click()


def find(page, button: str) -> None:
    """Starts a trial, turns away and back, and claims the loaf."""
    page.get_by_role("button", name=button).click()
    wait_for_steps(page, 0)
    press(page, "q", "e")
    page.keyboard.press("Space")
    expect(page.get_by_text("Found!")).to_be_visible()


def find_both(page) -> None:
    page.get_by_role("button", name="Start the trials").click()
    find(page, "Start the first trial")
    find(page, "Continue")
    page.get_by_role("button", name="Continue").click()


def test_a_participant_of_prolific_goes_from_its_link_to_its_completion_link(page, tmp_path):
    with served(tmp_path, f'platform = "prolific"\nreturn_to = "{COMPLETE}"') as (server, url):
        page.goto(f"{url}/study/find?{PROLIFIC}")
        page.get_by_role("button", name="I agree").click()
        expect(page.get_by_role("heading", name="Find the loaf")).to_be_focused()
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_label("How old are you?")).to_be_focused()  # It needs an answer.
        answer_first_questions(page)
        find_both(page)

        scale = page.get_by_role("group", name="How hard was it to find things?")
        scale.get_by_role("radio", name="5: Very hard").focus()
        page.keyboard.press("ArrowLeft")
        expect(scale.get_by_role("radio", name="4 of 5")).to_be_checked()
        page.get_by_label("Anything else? (optional)").fill("=No,\nthank you")
        page.reload()  # What was filled in is kept.
        expect(scale.get_by_role("radio", name="4 of 5")).to_be_checked()
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#code")).to_have_text("JAY7")
        assert not page.evaluate("Object.keys(localStorage).filter((key) => key.includes('draft')).length")
        expect(page.locator("#bonus")).to_have_text("Your bonus: 0.50 GBP")
        page.route("https://app.prolific.com/**", lambda route: route.fulfill(body="Thank you!"))
        page.get_by_role("link", name="Finish").click()
        page.wait_for_url(COMPLETE)

        page.goto(f"{url}/study/find?{PROLIFIC}")
        expect(page.locator("#code")).to_have_text("JAY7")
        page.goto(f"{url}/study/find?{PROLIFIC.replace('t1', 't2')}")
        expect(page.get_by_text("You have already taken part")).to_be_visible()
        page.goto(f"{url}/study/find")
        expect(page.get_by_text("Please open this study from Prolific.")).to_be_visible()
        page.console_errors.clear()

        (person,) = rows(server, url, "participants.csv")
        assert [person[key] for key in ("PROLIFIC_PID", "SESSION_ID", "code", "bonus")] == [
            "5f00",
            "t1",
            "JAY7",
            "0.50",
        ]
        assert ("Firefox" if is_firefox(page) else "Chrome") in person["browser"]
        assert person["consented"] and person["finished"]
        assert download(url + "/", server.admin_token, "find", "bonuses.txt") == "5f00,0.50\n"
        answers = rows(server, url, "answers.csv")
        assert [(row["part"], row["question"], row["answer"]) for row in answers] == [
            ("before", "age", "33"), ("before", "games", "Now and then"), ("after", "hard", "4"),
            ("after", "remarks", "'=No,\nthank you"),
        ]  # fmt: skip
        actions = rows(server, url, "actions.csv")
        assert [row["action"] for row in actions] == ["RotateLeft", "RotateRight", "ClaimVisible"] * 2
        times = [float(row["client_time"]) for row in [*answers[:2], *actions, *answers[2:]]]
        assert times == sorted(times) and abs(times[0] - page.evaluate("Date.now() / 1000")) < 120


def test_losses_of_focus_are_noted(page, tmp_path):
    with served(tmp_path) as (server, url):
        page.goto(f"{url}/study/find")
        page.get_by_role("button", name="I agree").click()
        answer_first_questions(page)
        page.get_by_role("button", name="Start the trials").click()
        page.get_by_role("button", name="Start the first trial").click()
        wait_for_steps(page, 0)
        for focused in ("false", "true", "false"):
            page.evaluate(f"document.hasFocus = () => {focused}; dispatchEvent(new Event('blur'))")
        press(page, "q")
        page.keyboard.press("e")
        wait_for_steps(page, 2)
        changes = rows(server, url, "focus.csv")
        assert [row["focused"] for row in changes] == ["False", "True", "False"]
        assert float(changes[0]["client_time"]) <= float(changes[2]["client_time"])
        (trial,) = rows(server, url, "trials.csv")
        assert trial["focus_losses"] == "2"


def test_a_worker_of_mechanical_turk_previews_accepts_and_submits_in_its_frame(page, tmp_path):
    if is_firefox(page):
        pytest.skip("Playwright's clicks do not reach another site's frame in Firefox")
    submitted = []

    def turk(route):
        """The worker's page with the external question in a frame, and what takes the work."""
        if route.request.method == "POST":
            submitted.append((route.request.url, route.request.post_data))
            route.fulfill(body="Submitted", content_type="text/html")
        else:
            query = route.request.url.partition("?")[2]
            frame = f"<iframe src='{url}/study/find?{query}' width=1200 height=700></iframe>"
            route.fulfill(body=frame, content_type="text/html")

    with served(tmp_path, 'platform = "mturk"') as (server, url):
        page.route("https://workersandbox.mturk.com/**", turk)
        with suppress(playwright.Error):  # Newer browsers ask before a public site may frame one of this machine.
            page.context.grant_permissions(["local-network-access"])
        site = "https://workersandbox.mturk.com"
        page.goto(f"{site}/task?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=h1")
        frame = page.frame_locator("iframe")
        expect(frame.get_by_text("Accept the task to take part")).to_be_visible()
        assert not rows(server, url, "participants.csv")
        page.console_errors.clear()
        page.goto(f"{site}/task?assignmentId=a1&hitId=h1&workerId=W1&turkSubmitTo={site}")
        frame.get_by_role("button", name="I agree").click()
        answer_first_questions(frame)
        frame.get_by_role("button", name="Start the trials").click()
        for button in ("Start the first trial", "Continue"):
            frame.get_by_role("button", name=button).click()
            frame.get_by_role("button", name="I see it!").click()
            expect(frame.get_by_text("Found!")).to_be_visible()
        frame.get_by_role("button", name="Continue").click()
        frame.get_by_role("radio", name="1: Very easy").check()
        frame.get_by_role("button", name="Continue").click()
        frame.get_by_role("button", name="Submit to Mechanical Turk").click()
        expect(frame.get_by_text("Submitted")).to_be_visible()
        (person,) = rows(server, url, "participants.csv")
    assert submitted == [(f"{site}/mturk/externalSubmit", "assignmentId=a1&code=JAY7")]
    assert [person[key] for key in ("workerId", "hitId", "assignmentId", "code")] == ["W1", "h1", "a1", "JAY7"]


def test_only_mechanical_turk_may_frame_a_study_and_only_one_of_its_own(tmp_path):
    with served(tmp_path, 'platform = "mturk"') as (_, url):
        with urlopen(f"{url}/study/find") as answer:
            policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors https://*.mturk.com" in policy and "form-action 'self' https://*.mturk.com" in policy
        with urlopen(f"{url}/play") as answer:
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("part", ["before", "after"])
def test_questionnaires_fit_a_phone_and_can_be_answered_by_keyboard(page, tmp_path, part):
    with served(tmp_path) as (_, url):
        page.set_viewport_size(PHONE)
        status = {
            "status": part,
            "title": "Find it",
            "practice": None,
            "trial": None,
            "pilot": False,
            "done": 2,
            "of": 2,
        }
        scale = {"name": "s", "ask": "Scale?", "kind": "scale", "choices": [], "points": 11, "low": "Not at all",
                 "high": "More than anything else", "long": False, "required": True}  # fmt: skip
        questions = [scale, {**scale, "name": "t", "required": False}]
        page.route("**/api/participant", lambda route: route.fulfill(json={**status, "questions": questions}))
        keep_sent(page)
        page.goto(f"{url}/study/find")
        expect(page.get_by_role("radio", name="11: More than anything else").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        for key in ("Tab", "Space", "ArrowRight", "Tab", "Space", "Tab", "Enter"):
            page.keyboard.press(key)
        expect(page.get_by_role("button", name="Continue")).to_be_enabled()
        answer = sent(page)[-1]
        assert answer["do"] == "answer" and answer["answers"] == {"s": 2, "t": 1}
