"""Games in a real browser: hiding, seeking, giving up, reconnecting, two tabs, touch."""

import json
import re
from contextlib import closing

import pytest
from browser_helpers import (
    PHONE,
    click_image,
    expect,
    image,
    image_position,
    keep_sent,
    press,
    sent,
    start_trial,
    wait_for_steps,
)  # fmt: skip
from web_helpers import ROOM, START, drawer_at, study_trial

from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.sim.world import World
from scrubjay.web import pointing
from scrubjay.web.database import Database
from scrubjay.web.trial import HIDE, SEEK, Trial


def seed_at_drawer(world: World) -> tuple[int, EpisodeSpec]:
    """A seed whose game starts two steps in front of the drawer, facing it."""
    for seed in range(10_000):
        spec = RandomEpisodes(seed, ("Tomato",))(world, 0)
        x, y, rotation, standing = spec.start
        if abs(x) < 0.15 and 0.15 < y < 0.35 and rotation == 0 and standing:
            return seed, spec
    raise AssertionError("no such seed")


def stored_record(server, name: str) -> dict:
    with closing(Database(server.settings.data)) as database:
        return json.loads(database.one("SELECT record FROM records WHERE id = ?", name)["record"])


def find_in_drawer(page, trial: Trial) -> None:
    """Walks up to the drawer, opens it with a click, and claims the object in it."""
    for _ in range(3):
        page.keyboard.press("w")
        trial.step("MoveAhead")
        wait_for_steps(page, trial.steps)
    click_image(page, drawer_at(trial))
    wait_for_steps(page, trial.steps + 1)
    page.keyboard.press(" ")


def test_a_person_hides_an_object_in_a_drawer_and_closes_it(page, site, world):
    """The record behind the "Watch the game" link shows the same."""
    server, url = site
    seed, spec = seed_at_drawer(world)
    body = dict(role="hide", scene="hut", goal="Tomato", opponent="random")
    page.route("**/api/play", lambda route: route.continue_(post_data={**body, "seed": seed}))
    keep_sent(page)
    page.goto(f"{url}/play#hide")
    page.get_by_label("Object").select_option("Tomato")
    page.get_by_label("Room").select_option("hut")
    page.get_by_label("Seeker").select_option("random")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".goal")).to_have_text("Hide the tomato")
    assert sent(page) == [body]
    wait_for_steps(page, 0)
    mine = Trial(world, EpisodeSpec("Tomato", spec.start, Stage.EM, Stage.OH, anywhere=True), HIDE, {})
    press(page, "ArrowUp", "w")
    assert mine.step("MoveAhead") and mine.step("MoveAhead")
    at = drawer_at(mine)
    click_image(page, at)
    wait_for_steps(page, 3)
    assert mine.step(pointing.open_action_at(mine, *at))
    page.keyboard.press("h")
    expect(page.locator("[data-phase=hold]")).to_be_visible()
    page.locator("label", has_text="Open it").click()
    expect(page.get_by_label("Open it")).to_be_checked()
    page.keyboard.press("t")
    expect(page.get_by_label("Put it there")).to_be_checked()
    click_image(page, drawer_at(mine, inside=True))
    expect(page.locator("[data-phase=hand]")).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    expect(page.locator("[data-phase=placed]")).to_be_visible()
    press(page, "x")
    page.get_by_role("button", name="Done hiding").click()
    page.get_by_role("button", name="Skip to the end").click()
    expect(page.locator(".dialog h2")).to_contain_text("The seeker", timeout=40_000)
    told = page.get_by_role("dialog")
    expect(told.locator(".score")).to_have_text(re.compile(r"^\d+ of 100 points$"))
    expect(told).to_contain_text("On average this seeker finds what the heuristic hides after 440")
    page.set_viewport_size(PHONE)
    expect(page.get_by_role("link", name="Watch the game")).to_be_in_viewport(ratio=1)
    page.get_by_role("link", name="Watch the game").click()
    page.wait_for_url(re.compile("watch#"))
    record = stored_record(server, page.url.partition("#")[2])
    assert record["hidden"]["open"] == []
    Trial(world, EpisodeSpec("Tomato", START, Stage.S, Stage.S, pose=tuple(record["hidden"]["pose"])), SEEK, {})
    assert ROOM.things[world.contained()[0]] == "Drawer_0"


def test_a_person_seeks_opens_the_drawer_and_claims_what_is_in_it(page, site, world, in_drawer):
    _, url = site
    start_trial(page, url)
    expect(page.locator(".top .where")).to_have_text("Trial 1 of 2")
    page.keyboard.press(" ")
    expect(page.locator(".notice")).to_contain_text("within 1.5 meters")
    mine = study_trial(world, in_drawer)
    mine.step("ClaimVisible")
    find_in_drawer(page, mine)
    expect(page.locator(".dialog h2")).to_have_text("Found!")
    expect(page.locator("#steps")).to_have_text("6")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".top .where")).to_have_text("Trial 2 of 2")
    wait_for_steps(page, 0)
    find_in_drawer(page, study_trial(world, in_drawer))
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#code")).to_have_text("JAY7")
    page.reload()
    expect(page.locator("#code")).to_have_text("JAY7")


def test_giving_up_appears_after_100_seconds(page, site, clock):
    _, url = site
    start_trial(page, url)
    give_up = page.get_by_role("button", name="Give up")
    expect(page.locator(".patience")).to_contain_text("1:40")
    press(page, "e")
    clock.now += 99
    press(page, "q")
    expect(page.locator(".patience")).to_contain_text("0:01")
    expect(give_up).to_be_hidden()
    clock.now += 1
    expect(give_up).to_be_visible()
    expect(page.locator(".patience")).to_be_hidden()
    give_up.click()
    expect(page.locator(".dialog h2")).to_have_text("Given up")
    expect(page.locator("#steps")).to_have_text("2")


def test_a_reload_continues_at_the_same_step(page, site):
    _, url = site
    start_trial(page, url)
    press(page, "w", "e", "c")
    before = image(page)
    page.reload()
    wait_for_steps(page, 3)
    expect(page.locator("#steps")).to_have_text("3")
    assert image(page) == before
    expect(page.get_by_role("button", name="Stand up")).to_be_visible()
    press(page, "c")
    assert image(page) != before


def test_a_lost_connection_is_restored_at_the_same_step(page, site):
    _, url = site
    sockets = []

    def connect(socket):
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket("**/socket", connect)
    start_trial(page, url)
    press(page, "w", "e")
    sockets[0].close(code=1012)
    expect(page.locator(".dialog h2")).to_have_text("Connection lost")
    expect(page.locator(".cover")).to_be_hidden()
    assert len(sockets) == 2
    expect(page.locator("#steps")).to_have_text("2")
    press(page, "w")


def test_the_older_of_two_tabs_says_so_and_can_take_the_game_back(page, site):
    _, url = site
    start_trial(page, url)
    press(page, "e")
    other = page.context.new_page()
    other.goto(f"{url}/study/find")
    wait_for_steps(other, 1)
    expect(page.locator(".dialog h2")).to_have_text("Open in another window")
    press(other, "e")
    page.get_by_role("button", name="Continue here").click()
    wait_for_steps(page, 2)
    expect(page.locator(".cover")).to_be_hidden()
    expect(other.locator(".dialog h2")).to_have_text("Open in another window")


def test_practice_ends_when_the_participant_wants(page, site):
    _, url = site
    person = page.context.browser.browser_type.name  # Another one in each browser.
    page.goto(f"{url}/study/find?PROLIFIC_PID={person}&STUDY_ID=b&SESSION_ID=c")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Practice", exact=True).click()
    expect(page.locator(".top .where")).to_have_text("Practice")
    wait_for_steps(page, 0)
    press(page, "e")
    page.get_by_role("button", name="Give up").click()
    page.get_by_role("button", name="Practice again").click()
    wait_for_steps(page, 0)
    page.get_by_role("button", name="End practice").click()
    page.get_by_role("button", name="Start the trials").click()
    expect(page.get_by_role("button", name="Start the first trial")).to_be_visible()


def test_a_game_fits_a_phone_and_is_played_by_touch(browser, site, world, in_drawer):
    if browser.browser_type.name == "firefox":
        pytest.skip("Playwright emulates no touch screen in Firefox")
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    start_trial(page, site[1])
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    mine = study_trial(world, in_drawer)
    for number in (1, 2, 3):
        page.get_by_role("button", name="Forward").tap()
        wait_for_steps(page, number)
        mine.step("MoveAhead")
    page.touchscreen.tap(*image_position(page, drawer_at(mine)))
    wait_for_steps(page, 4)
    page.get_by_role("button", name="I see it!").tap()
    expect(page.locator(".dialog h2")).to_have_text("Found!")
    context.close()
