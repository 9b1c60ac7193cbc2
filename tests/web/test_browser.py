"""Games in a real browser: hiding, seeking, giving up, coming back, two windows, by touch."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import drawer_chest, hut

from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.record import Record, save_records
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.web import pointing
from scrubjay.web.database import Database
from scrubjay.web.seen_map import points
from scrubjay.web.server import Settings, running
from scrubjay.web.trial import HIDE, SEEK, Trial

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if not CHROMIUM.exists():
    pytest.skip("Chromium is not installed", allow_module_level=True)
expect = playwright.expect

SIZE = 112
SCENE = "foyer-7"
"""A name that rooms of studies can have; the hut is built for it."""
START = AgentPose(0.0, 0.0, 0.0, True)
STUDY = """
name = "find"
title = "Find the loaf"
kind = "seek"
consent = "You may stop at any time.\\n\\nNothing else is asked of you."
instructions = "Look for the object."
trials = 2
repeats = 100
code = "JAY7"
practice = {scene = "foyer-7", goal = "Bread"}
[[places]]
source = "people"
records = "people.jsonl"
"""
PHONE = {"width": 375, "height": 667}


class Clock:
    """Stands still unless it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def room():
    return compile_room(hut(*drawer_chest()))


@pytest.fixture(scope="module")
def world(room):
    with World([room], size=SIZE) as world:
        yield world


@pytest.fixture(scope="module")
def clock():
    return Clock()


@pytest.fixture(scope="module")
def site(tmp_path_factory, room, world, clock):
    """A server with a study of two loaves in a closed drawer, and its address."""
    folder = tmp_path_factory.mktemp("play")
    (folder / "study.toml").write_text(STUDY)
    record = hidden_in_drawer(world)
    save_records([record, record], folder / "people.jsonl")
    save_records([whole_game(world)], folder / "games.jsonl")
    settings = Settings(
        folder / "play.db", [folder / "study.toml"], [folder / "games.jsonl"], size=SIZE, clock=clock,
        build=lambda scene: room, scenes=("hut",),
    )  # fmt: skip
    with running(settings) as (server, url):
        yield server, url.rstrip("/")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page of a new person; whatever the browser complains of, such as a broken security policy, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(20_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.complaints = wrong
    yield page
    context.close()
    assert not wrong


def share(trial: Trial, mask: np.ndarray) -> tuple[float, float]:
    """A point of the picture, in shares of its sides, in the middle of a mask."""
    rows, columns = np.nonzero(mask)
    middle = np.hypot(rows - np.median(rows), columns - np.median(columns)).argmin()
    return (columns[middle] + 0.5) / SIZE, (rows[middle] + 0.5) / SIZE


def drawer(trial: Trial, inside: bool = False) -> tuple[float, float]:
    """Where in the picture the drawer is, or the floor of the open drawer."""
    view, world = trial.game.look(), trial.game.world
    mask = view.ids[0].numpy() == world.rooms[0].things.index("Drawer_0")
    if inside:
        height = points(trial.state, view.depth[0].numpy())[..., 2]
        mask &= (height > 0.6) & (height < 0.68)
    return share(trial, mask)


def hidden_in_drawer(world: World) -> Record:
    """A game in which a loaf was hidden in the drawer, which is closed."""
    pose = (0.0, 1.7, 0.69, 1.0, 0.0, 0.0, 0.0)
    spec = EpisodeSpec("Bread", START, Stage.EM, Stage.OH)
    return Record(SCENE, spec, SIZE, "OpenGL", [1] * 5, {"hider": "p"}, hidden={"pose": list(pose), "open": []})


def seed_at_drawer(world: World) -> tuple[int, EpisodeSpec]:
    """A seed whose game begins two steps in front of the drawer, looking at it."""
    for seed in range(10_000):
        deal = RandomEpisodes(seed, ("Tomato",))(world, 0)
        x, y, rotation, standing = deal.start
        if abs(x) < 0.15 and 0.15 < y < 0.35 and rotation == 0 and standing:
            return seed, deal
    raise AssertionError("no such seed")


def shown(page, steps: int) -> None:
    """Waits until the picture after so many steps is on the screen."""
    expect(page.locator(f".picture[data-steps='{steps}']")).to_be_visible()


def press(page, *keys: str) -> None:
    """Presses keys, each when the answer to the one before is there."""
    for key in keys:
        before = int(page.locator("#steps").inner_text())
        page.keyboard.press(key)
        shown(page, before + 1)


def click_picture(page, at: tuple[float, float]) -> None:
    box = page.locator(".view .picture").bounding_box()
    page.mouse.click(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])


def picture(page) -> str:
    return page.locator(".view .picture").evaluate("canvas => canvas.toDataURL()")


def stored_record(server, name: str) -> dict:
    """A record that the server keeps."""
    database = Database(server.settings.data)
    try:
        return json.loads(database.one("SELECT record FROM records WHERE id = ?", name)["record"])
    finally:
        database.close()


def whole_game(world: World) -> Record:
    """A game in which somebody looks left and right, drops a tomato, and somebody else turns about and finds it."""
    trial = Trial(
        world, EpisodeSpec("Tomato", START, Stage.EM, Stage.S, anywhere=True), HIDE, {"hider": "me", "seeker": "you"}
    )
    for name in (
        "RotateLeft",
        "RotateRight",
        "HideHere",
        "MoveHandAhead",
        "MoveHandAhead",
        "DropObject",
        "ReadyForSeeker",
    ):
        for step in trial.steps_for(name):
            trial.step(step)
    for step in ("RotateLeft", "RotateRight", "ClaimVisible"):
        trial.step(step)
    assert trial.record is not None and trial.record.found
    return trial.record


def begin_trial(page, url: str) -> None:
    """Through consent and instructions to the first trial."""
    page.goto(f"{url}/study/find")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin the trials").click()
    page.get_by_role("button", name="Start the first trial").click()
    shown(page, 0)


def find_in_drawer(page, trial: Trial) -> None:
    """Walks up to the drawer, opens it by a click, and claims what is in it."""
    for _ in range(3):
        page.keyboard.press("w")
        trial.step("MoveAhead")
        shown(page, trial.steps)
    click_picture(page, drawer(trial))
    shown(page, trial.steps + 1)
    page.keyboard.press(" ")


def in_study(world: World) -> Trial:
    """The study's trial, to look at where things are in its pictures."""
    hidden = hidden_in_drawer(world).hidden
    return Trial(world, EpisodeSpec("Bread", START, Stage.S, Stage.S, pose=tuple(hidden["pose"])), SEEK, {})


def test_a_person_hides_an_object_in_a_drawer_and_closes_it(page, site, world, room):
    """And the record that the page leads to holds just that."""
    server, url = site
    seed, deal = seed_at_drawer(world)
    page.route("**/api/play", lambda route: route.continue_(post_data={**route.request.post_data_json, "seed": seed}))
    page.goto(f"{url}/play#hide")
    page.get_by_label("Object").select_option("Tomato")
    page.get_by_label("Room").select_option("hut")
    page.get_by_label("Sought by").select_option("random")
    page.get_by_role("button", name="Begin").click()
    expect(page.locator(".goal")).to_have_text("Hide the tomato")
    shown(page, 0)
    mine = Trial(world, EpisodeSpec("Tomato", deal.start, Stage.EM, Stage.OH, anywhere=True), HIDE, {})
    press(page, "ArrowUp", "w")
    assert mine.step("MoveAhead") and mine.step("MoveAhead")
    at = drawer(mine)
    click_picture(page, at)
    shown(page, 3)
    assert mine.step(pointing.open_action_at(mine, *at))
    page.keyboard.press("h")
    expect(page.locator("[data-phase=hold]")).to_be_visible()
    page.locator("label", has_text="Open it").click()
    expect(page.get_by_label("Open it")).to_be_checked()
    page.keyboard.press("t")
    expect(page.get_by_label("Put it there")).to_be_checked()
    click_picture(page, drawer(mine, inside=True))
    expect(page.locator("[data-phase=hand]")).to_be_visible()
    page.get_by_role("button", name="Let go").click()
    expect(page.locator("[data-phase=placed]")).to_be_visible()
    press(page, "x")
    page.get_by_role("button", name="Done: it is hidden").click()
    page.get_by_role("button", name="Skip to the end").click()
    expect(page.locator(".message h2")).to_contain_text("The seeker", timeout=40_000)
    page.get_by_role("link", name="Watch the game").click()
    page.wait_for_url(re.compile("watch#"))
    record = stored_record(server, page.url.partition("#")[2])
    assert record["hidden"]["open"] == []
    Trial(world, EpisodeSpec("Tomato", START, Stage.S, Stage.S, pose=tuple(record["hidden"]["pose"])), SEEK, {})
    assert room.things[world.contained()[0]] == "Drawer_0"


def test_a_person_seeks_opens_the_drawer_and_claims_what_is_in_it(page, site, world):
    _, url = site
    begin_trial(page, url)
    expect(page.locator(".top .where")).to_have_text("Trial 1 of 2")
    page.keyboard.press(" ")
    expect(page.locator(".notice")).to_contain_text("within 1.5 meters")
    mine = in_study(world)
    mine.step("ClaimVisible")
    find_in_drawer(page, mine)
    expect(page.locator(".message h2")).to_have_text("Found!")
    expect(page.locator("#steps")).to_have_text("6")
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".top .where")).to_have_text("Trial 2 of 2")
    shown(page, 0)
    find_in_drawer(page, in_study(world))
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#code")).to_have_text("JAY7")
    page.reload()
    expect(page.locator("#code")).to_have_text("JAY7")


def test_giving_up_appears_after_100_seconds(page, site, clock):
    _, url = site
    begin_trial(page, url)
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
    expect(page.locator(".message h2")).to_have_text("Given up")
    expect(page.locator("#steps")).to_have_text("2")


def test_a_reload_in_mid_trial_goes_on_at_the_same_step(page, site):
    _, url = site
    begin_trial(page, url)
    press(page, "w", "e", "c")
    before = picture(page)
    page.reload()
    shown(page, 3)
    expect(page.locator("#steps")).to_have_text("3")
    assert picture(page) == before
    expect(page.get_by_role("button", name="Stand up")).to_be_visible()
    press(page, "c")
    assert picture(page) != before


def test_a_lost_connection_comes_back_by_itself_at_the_same_step(page, site):
    _, url = site
    lines = []

    def pass_on(line):
        lines.append(line)
        line.connect_to_server()

    page.route_web_socket("**/socket", pass_on)
    begin_trial(page, url)
    press(page, "w", "e")
    lines[0].close(code=1012)
    expect(page.locator(".message h2")).to_have_text("Connection lost")
    expect(page.locator(".cover")).to_be_hidden()
    assert len(lines) == 2
    expect(page.locator("#steps")).to_have_text("2")
    press(page, "w")


def test_the_older_of_two_tabs_says_so_and_can_take_the_game_back(page, site):
    _, url = site
    begin_trial(page, url)
    press(page, "e")
    other = page.context.new_page()
    other.goto(f"{url}/study/find")
    shown(other, 1)
    expect(page.locator(".message h2")).to_have_text("Open in another window")
    press(other, "e")
    page.get_by_role("button", name="Play on here").click()
    shown(page, 2)
    expect(page.locator(".cover")).to_be_hidden()
    expect(other.locator(".message h2")).to_have_text("Open in another window")


def test_practice_ends_when_the_participant_wants(page, site):
    _, url = site
    page.goto(f"{url}/study/find?PROLIFIC_PID=a&STUDY_ID=b&SESSION_ID=c")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Practise").click()
    expect(page.locator(".top .where")).to_have_text("Practice")
    shown(page, 0)
    press(page, "e")
    page.get_by_role("button", name="Give up").click()
    page.get_by_role("button", name="Practise again").click()
    shown(page, 0)
    page.get_by_role("button", name="End practice").click()
    page.get_by_role("button", name="Begin the trials").click()
    expect(page.get_by_role("button", name="Start the first trial")).to_be_visible()


def test_a_game_fits_a_phone_and_is_played_by_touch(browser, site, world):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    begin_trial(page, site[1])
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    mine = in_study(world)
    for number in (1, 2, 3):
        page.get_by_role("button", name="Forward").tap()
        shown(page, number)
        mine.step("MoveAhead")
    box, at = page.locator(".view .picture").bounding_box(), drawer(mine)
    page.touchscreen.tap(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])
    shown(page, 4)
    page.get_by_role("button", name="I see it!").tap()
    expect(page.locator(".message h2")).to_have_text("Found!")
    context.close()
