"""The released agent in a real browser: a person hides and it seeks, a person seeks what it hid, and sees its map."""

import pytest
from browser_helpers import expect, press, wait_for_steps
from released_helpers import release_small
from web_helpers import make_settings

from scrubjay.agent import released
from scrubjay.agent.released import DEFAULT
from scrubjay.cli import web
from scrubjay.web.server import running


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server as `scrubjay serve` sets it up where the released agent, an untrained small one, is installed."""
    folder = tmp_path_factory.mktemp("served")
    release_small(folder / "released")
    settings = []

    def keep(made, *_args, **_options) -> None:
        settings.append(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(released.VARIABLE, str(folder / "released"))
        patch.setattr("scrubjay.web.server.serve", keep)
        web.serve(data=folder / "unused.db")
        web.serve(data=folder / "unused.db", released=False)
    assert DEFAULT not in settings[1].opponents.hiders and DEFAULT not in settings[1].opponents.seekers
    with running(make_settings(folder, opponents=settings[0].opponents)) as (_, url):
        yield url.rstrip("/")


COUNT_PURPLE = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4)
        if (data[i] > data[i + 1] + 25 && data[i + 2] > data[i]) count += 1;
    return count;
}"""
"""The purple pixels of a canvas: the attention's discs, over white."""


def choose(page, url: str, role: str) -> None:
    page.goto(f"{url}/play#{role}")
    page.get_by_label("Object").select_option("Bread")
    page.get_by_label("Room").select_option("hut")
    page.get_by_label("Seeker" if role == "hide" else "Hider").select_option(label="Scrubjay: the trained agent")
    page.get_by_role("button", name="Start").click()


def check_thoughts(page, who: str, name: str) -> None:
    """The watch page names the agent, charts its value, and draws on the plan what it attends to."""
    page.get_by_role("link", name="Watch the game").click()
    expect(page.locator(f"[data-role={who}] figcaption")).to_contain_text(DEFAULT, timeout=90_000)
    expect(page.locator(".key-map")).to_have_text("attention to its map")
    last = int(page.locator("#scrubber").get_attribute("max"))
    page.locator("#scrubber").fill(str(last if who == "seeker" else 50))
    expect(page.locator(".charts figure").first).to_contain_text(name)
    expect(page.locator(".charts output").first).not_to_have_text("–")
    for _ in range(100):
        if page.locator("canvas.plan").evaluate(COUNT_PURPLE) > 20:
            return
        page.wait_for_timeout(50)  # The plan's image is loading.
    raise AssertionError("the plan shows no attention")


def test_a_person_hides_and_the_released_agent_seeks(page, served):
    choose(page, served, "hide")
    wait_for_steps(page, 0)
    press(page, "w")
    page.keyboard.press("h")
    expect(page.locator("[data-phase=hold]")).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    expect(page.locator("[data-phase=placed]")).to_be_visible()
    page.get_by_role("button", name="Done hiding").click()
    expect(page.locator("[data-phase=watch]")).to_be_visible()
    page.get_by_role("button", name="Skip to the end").click()
    expect(page.locator(".dialog h2")).to_contain_text("The seeker", timeout=60_000)
    check_thoughts(page, "seeker", "value")


def test_a_person_seeks_what_the_released_agent_hid(page, served):
    choose(page, served, "seek")
    expect(page.locator(".goal")).to_have_text("Find the bread")
    expect(page.locator(".picture[data-steps='0']")).to_be_visible(timeout=90_000)
    press(page, "q", "w")
    page.get_by_role("button", name="Give up").click()
    page.get_by_role("link", name="Watch the game").wait_for()
    check_thoughts(page, "hider", "value")
    # In PS: the steps it expected a seeker to need.
    page.locator(".charts .single", has_text="expected steps").first.get_by_role("button").click()
    expect(page.locator(".stageName")).to_have_text("Choosing a place")
