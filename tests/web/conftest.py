"""Fixtures of the web tests: a world, a clock, a browser, and a site with a study."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_helpers import ON_FLOOR
from web_helpers import ROOM, SIZE, START, STUDY, Clock, hidden_record, make_settings, take

from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, save_records
from scrubjay.sim.world import World
from scrubjay.web.server import running
from scrubjay.web.trial import HIDE, Trial

IN_DRAWER = [0.0, 1.7, 0.69, 1.0, 0.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def world():
    with World([ROOM], size=SIZE) as world:
        yield world


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def server(tmp_path_factory, clock):
    """A server without a study, and its URL."""
    with running(make_settings(tmp_path_factory.mktemp("play"), clock=clock)) as (server, url):
        yield server, url


@pytest.fixture(scope="module")
def in_drawer() -> Record:
    """A game in which a loaf was hidden in the closed drawer."""
    return hidden_record(START, IN_DRAWER)


@pytest.fixture(scope="module")
def whole_game(world) -> Record:
    """A game of 12 steps: the hider turns left and right and drops a tomato; the seeker turns too and finds it."""
    spec = EpisodeSpec("Tomato", START, Stage.EM, Stage.S, anywhere=True)
    trial = Trial(world, spec, HIDE, {"hider": "me", "seeker": "you"})
    take(trial, "RotateLeft", "RotateRight", "HideHere", "MoveHandAhead", "MoveHandAhead", "DropObject",
         "ReadyForSeeker")  # fmt: skip
    for step in ("RotateLeft", "RotateRight", "ClaimVisible"):
        trial.step(step)
    assert trial.record is not None and trial.record.found
    return trial.record


@pytest.fixture(scope="module")
def study_file(tmp_path_factory, in_drawer) -> Path:
    """A study of two loaves in a closed drawer."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(STUDY)
    save_records([in_drawer, in_drawer], folder / "people.jsonl")
    return folder / "study.toml"


@pytest.fixture(scope="module")
def site(tmp_path_factory, clock, study_file, whole_game):
    """A server with a study of two loaves in a closed drawer and one recorded game, and its URL."""
    folder = tmp_path_factory.mktemp("play")
    save_records([whole_game], folder / "games.jsonl")
    settings = make_settings(folder, studies=[study_file], records=[folder / "games.jsonl"], clock=clock)
    with running(settings) as (server, url):
        yield server, url.rstrip("/")


@pytest.fixture
def folder(tmp_path):
    """A place for studies of two loaves in plain sight."""
    save_records([hidden_record(START, ON_FLOOR)] * 2, tmp_path / "people.jsonl")
    return tmp_path


@pytest.fixture(scope="module", params=["chromium", pytest.param("firefox", marks=pytest.mark.slow)])
def browser(request, tmp_path_factory):
    from browser_helpers import running_browser

    folder = tmp_path_factory.mktemp("browser")
    with running_browser(request.param, folder) as browser:
        browser.downloads = folder
        yield browser


@pytest.fixture
def page(browser):
    """A page of a new person. Console errors, such as violations of the security policy, fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(20_000)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.console_errors, page.downloads = errors, browser.downloads
    yield page
    context.close()
    assert not errors
