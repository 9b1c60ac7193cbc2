"""The other pages in a real browser: watching, administration, and all of them on a phone."""

import pytest
from browser_helpers import PHONE, downloaded, expect, start_trial

from scrubjay.game.record import save_records


def test_the_watch_page_scrubs(page, site):
    """Frames, steps and stages follow the scrubber, keys and playback; the game has 9 hiding and 3 seeking steps."""
    page.goto(f"{site[1]}/watch")
    page.get_by_role("link", name="Tomato in hut").click()
    expect(page.locator("#counter")).to_have_text("1 / 12")
    expect(page.locator("#replay h1")).to_contain_text("found in 3 steps")
    hider, seeker = page.locator("[data-role=hider] .picture"), page.locator("[data-role=seeker] .picture")
    expect(hider).to_have_attribute("data-frame", "0")
    expect(seeker).to_have_attribute("data-frame", "-1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#counter")).to_have_text("2 / 12")
    expect(hider).to_have_attribute("data-frame", "1")
    page.locator("#scrubber").fill("10")
    expect(hider).to_have_attribute("data-frame", "8")
    expect(seeker).to_have_attribute("data-frame", "10")
    expect(page.locator(".stageName")).to_have_text("Seeking")
    page.locator("#playing").click()
    expect(page.locator("#counter")).to_have_text("12 / 12")
    expect(page.locator("#playing")).to_have_text("Play")


def test_the_watch_page_shows_an_agents_internals(page, site):
    """The server sends them with records that have internals."""

    def add_internals(route):
        answer = route.fetch().json()
        internals = {"value": [k / 10 for k in range(12)], "expected steps": [None] * 5 + [63.9] + [None] * 6}
        route.fulfill(json={**answer, "internals": internals} if answer["ready"] else answer)

    page.route("**/api/records/1", add_internals)
    page.goto(f"{site[1]}/watch#1")
    expect(page.locator(".charts figure output")).to_have_text("0.000")
    page.locator("#scrubber").fill("3")
    expect(page.locator(".charts figure output")).to_have_text("0.3000")
    # A value of one step alone is no chart, and leads to its step.
    expect(page.locator(".charts .single")).to_contain_text("expected steps 63.90")
    page.get_by_role("button", name="step 6").click()
    expect(page.locator("#counter")).to_have_text("6 / 12")


def test_a_record_file_can_be_watched(page, site, tmp_path, whole_game):
    save_records([whole_game], tmp_path / "record.json")
    page.goto(f"{site[1]}/watch")
    page.locator("#file").set_input_files(tmp_path / "record.json")
    expect(page.locator("#counter")).to_have_text("1 / 12")


def test_invalid_and_unknown_records_get_an_error_message(page, site, tmp_path):
    page.goto(f"{site[1]}/watch")
    file = tmp_path / "record.json"
    file.write_text("nonsense")
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("no record in this file")
    page.goto(f"{site[1]}/watch#nosuchrecord")
    expect(page.get_by_role("alert")).to_contain_text("no such record")
    page.console_errors.clear()


def test_the_admin_sees_progress_and_downloads_the_data(page, site):
    server, url = site
    start_trial(page, url)
    page.goto(f"{url}/admin")
    page.get_by_label("Admin token").fill("not the token at all")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("token is needed")
    page.console_errors.clear()
    page.get_by_label("Admin token").fill(server.admin_token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".study h2")).to_have_text("Find the loaf")
    expect(page.locator(".study td").first).to_have_text("people")
    name, text = downloaded(page, page.get_by_role("button", name="Download trials.csv").click)
    assert name == "find-trials.csv"
    header, *lines = text.splitlines()
    assert header.startswith("trial,") and lines and all(",people," in line for line in lines)


@pytest.mark.parametrize("path", ["/", "/play", "/watch", "/study/find", "/admin"])
def test_pages_fit_a_phone(page, site, path):
    page.set_viewport_size(PHONE)
    page.goto(site[1] + path)
    expect(page.locator("h1").locator("visible=true").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
