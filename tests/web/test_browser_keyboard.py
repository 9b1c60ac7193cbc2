"""Playing without a mouse, what lights up under one, and what has the focus."""

import pytest
from browser_helpers import click_image, expect, image_position, press, start_trial, wait_for_steps
from web_helpers import drawer_at, study_trial


def notice(page):
    return page.get_by_role("status")


def test_a_seeker_opens_the_drawer_and_finds_the_object_by_keyboard_alone(page, site):
    start_trial(page, site[1])
    press(page, "e")
    page.keyboard.press("n")
    expect(notice(page)).to_have_text("Nothing in view can be opened from here.")
    press(page, "q", "w", "w", "w")
    page.keyboard.press("n")
    expect(notice(page)).to_have_text("Drawer, middle: 1 of 2")
    page.keyboard.press("n")
    expect(notice(page)).to_have_text("Cabinet, bottom right: 2 of 2")
    expect(page.locator(".lit")).to_have_attribute("data-thing", "cabinet")
    page.keyboard.press("Shift+N")
    expect(page.locator(".lit")).to_have_attribute("data-thing", "drawer")
    page.keyboard.press("m")
    wait_for_steps(page, 6)
    page.keyboard.press(" ")
    dialog = page.get_by_role("dialog", name="Found!")
    expect(dialog).to_be_focused()
    page.wait_for_timeout(3500)  # A pong has come, which updates the page.
    expect(dialog).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Continue")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".top .where")).to_have_text("Trial 2 of 2")


def test_what_can_be_opened_is_opened_with_its_buttons_too(page, site):
    start_trial(page, site[1])
    press(page, "w", "w", "w")
    page.get_by_role("button", name="Next to open").click()
    expect(page.locator(".lit")).to_be_visible()
    page.get_by_role("button", name="Open it").click()
    wait_for_steps(page, 4)
    expect(page.locator(".lit")).to_be_hidden()
    page.keyboard.press("n")
    expect(notice(page)).to_have_text("Cabinet, bottom right: 1 of 1")


@pytest.mark.parametrize("key", ["s", "ArrowDown"])
def test_the_keys_for_stepping_back_say_that_nobody_can(page, site, key):
    start_trial(page, site[1])
    page.keyboard.press(key)
    expect(notice(page)).to_have_text("Nobody can step back. Turn around instead.")
    expect(page.locator("#steps")).to_have_text("0")


def test_what_a_click_would_open_lights_up_under_the_pointer(page, site, world, in_drawer):
    """Not what is beside it, and no longer when it is open."""
    start_trial(page, site[1])
    lit = page.locator(".lit")
    mine = study_trial(world, in_drawer)
    for _ in range(3):
        press(page, "w")
        mine.step("MoveAhead")
    page.mouse.move(*image_position(page, drawer_at(mine)))
    expect(lit).to_be_visible()
    expect(lit).to_have_attribute("data-thing", "drawer")
    page.mouse.move(*image_position(page, (0.5, 0.02)))
    expect(lit).to_be_hidden()
    click_image(page, drawer_at(mine))
    wait_for_steps(page, 4)
    page.mouse.move(*image_position(page, drawer_at(mine)))
    expect(lit).to_be_hidden()


@pytest.mark.parametrize("card", ["Seek", "Hide"])
def test_after_a_finished_game_the_home_page_leads_to_a_new_one(page, site, card):
    _, url = site
    page.goto(f"{url}/play#seek")
    page.get_by_role("button", name="Start").click()
    wait_for_steps(page, 0)
    page.reload()
    wait_for_steps(page, 0)
    page.get_by_role("button", name="Give up").click()
    expect(page.get_by_role("dialog", name="Given up")).to_be_focused()
    page.get_by_role("link", name="Scrubjay").click()
    page.locator(".card", has=page.get_by_role("heading", name=card)).click()
    expect(page.get_by_role("heading", name="New game")).to_be_visible()
    expect(page.get_by_label(card, exact=True)).to_be_checked()
