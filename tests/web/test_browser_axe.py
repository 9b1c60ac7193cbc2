"""Accessibility of every page by axe-core: nothing found, in light and dark, on a phone and on a desktop."""

import pytest
from browser_helpers import PHONE, expect, is_firefox, press, start_trial, wait_for_steps
from study_helpers import QUESTIONS, write
from study_helpers import site as site_of

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
BROWSERS = pytest.mark.parametrize(
    "browser", ["chromium", pytest.param("firefox", marks=pytest.mark.slow)], indirect=True
)
DESKTOP = {"width": 1280, "height": 800}


def home(page, server, url):
    page.goto(url)
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()


def setup(page, server, url):
    page.goto(f"{url}/play#hide")
    expect(page.get_by_label("Seeker")).to_be_visible()


def seeking(page, server, url):
    start_game(page, url, "seek")
    page.keyboard.press("s")


def hiding(page, server, url):
    start_game(page, url, "hide")
    page.keyboard.press("h")
    expect(page.locator("[data-phase=hold]")).to_be_visible()


def result(page, server, url):
    start_game(page, url, "seek")
    page.get_by_role("button", name="Give up").click()
    expect(page.get_by_role("dialog", name="Given up")).to_be_visible()


def watch(page, server, url):
    page.goto(f"{url}/watch")
    expect(page.get_by_role("link", name="Tomato in hut")).to_be_visible()


def replay(page, server, url):
    page.goto(f"{url}/watch#1")
    expect(page.locator("#counter")).to_have_text("1 / 12")


def consent(page, server, url):
    page.goto(f"{url}/study/find")
    expect(page.get_by_role("button", name="I agree")).to_be_visible()


def instructions(page, server, url):
    consent(page, server, url)
    page.get_by_role("button", name="I agree").click()
    expect(page.get_by_role("button", name="Start the trials")).to_be_visible()


def trial(page, server, url):
    start_trial(page, url)


def finished(page, server, url):
    start_trial(page, url)
    for number in (1, 2):
        press(page, "w", "w", "w")
        page.keyboard.press("n")
        page.keyboard.press("m")
        wait_for_steps(page, 4)
        page.keyboard.press(" ")
        page.get_by_role("button", name="Continue").click()
        if number == 1:
            wait_for_steps(page, 0)
    expect(page.locator("#code")).to_be_visible()


def sign_in(page, server, url):
    page.goto(f"{url}/admin")
    expect(page.get_by_label("Admin token")).to_be_visible()


def admin(page, server, url):
    sign_in(page, server, url)
    page.get_by_label("Admin token").fill(server.admin_token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".study h2")).to_be_visible()


def wrong_link(page, server, url):
    page.goto(f"{url}/study/nothing")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.console_errors.clear()


def start_game(page, url: str, role: str) -> None:
    page.goto(f"{url}/play#{role}")
    page.get_by_role("button", name="Start").click()
    wait_for_steps(page, 0)


STATES = [home, setup, seeking, hiding, result, watch, replay, consent, instructions, trial, finished, sign_in, admin,
          wrong_link]  # fmt: skip


@BROWSERS
@pytest.mark.parametrize("show", STATES, ids=lambda show: show.__name__)
def test_axe_finds_nothing(page, site, show):
    show(page, *site)
    assert not violations(page)


@BROWSERS
def test_axe_finds_nothing_in_questionnaires_endings_and_refusals(page, folder):
    optional = QUESTIONS.replace("points = 5", 'points = 11\nlow = "Easy"\nhigh = "Hard"\nrequired = false')
    write(folder, 'platform = "mturk"', optional + '[bonus]\nfound = 0.1\ncurrency = "GBP"')
    with site_of(folder) as here:
        link = f"{here.url}study/find?workerId=W&hitId=h&assignmentId=a&turkSubmitTo=https://www.mturk.com"
        page.goto(link)
        page.get_by_role("button", name="I agree").click()
        page.get_by_label("How old are you?").fill("33")
        found = violations(page)
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("button", name="Start the trials")).to_be_visible()
        here.play(here.enter(workerId="W", hitId="h", assignmentId="a"), claims=2)
        page.goto(link)
        expect(page.get_by_role("radio", name="11: Hard")).to_be_visible()
        found += violations(page)
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("button", name="Submit to Mechanical Turk")).to_be_visible()
        found += violations(page)
        page.goto(f"{here.url}study/find")
        expect(page.get_by_text("Please open this study from Mechanical Turk")).to_be_visible()
        found += violations(page)
        page.console_errors.clear()
    assert not found


def violations(page) -> list[tuple]:
    """What axe finds on the page, in light and dark, on a phone and on a desktop."""
    found = []
    for scheme in ("light",) if is_firefox(page) else ("light", "dark"):  # Firefox keeps the system's.
        for viewport in (PHONE, DESKTOP):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(viewport)
            for violation in axe.Axe().run(page).response["violations"]:
                nodes = [node["html"][:200] for node in violation["nodes"]]
                found.append((violation["impact"], violation["id"], scheme, viewport["width"], nodes[:3]))
    return found
