"""The commands of released agents, where there is one and where there is none."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import run_command
from released_helpers import release_small
from rich.console import Console

from scrubjay.agent import released
from scrubjay.agent.agent import Agent, load_agent, save_agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.released import DEFAULT
from scrubjay.bench.step import PARTS
from scrubjay.game.record import load_records
from scrubjay.training.config import PRESETS
from scrubjay.viz import agent_trace, demo

SHORT = np.array([6, 1, 2, 3, 6])
CARD = """
title = "Mine"
about = "A test."
trained_on = "Nothing."
licence = "MIT"
training = [{command = "scrubjay train demo", steps = 1, gpu_minutes = 0.5, commit = "0123456"}]
results = [{title = "Found", columns = ["found"], rows = [[0.5]]}]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder of released agents with the default one."""
    folder = tmp_path_factory.mktemp("installed") / "released"
    release_small(folder)
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch, capsys, installed):
    """Runs a command where released agents are in a folder, in an empty working folder; exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, folder: Path = installed) -> tuple[int, str, str]:
        monkeypatch.setenv(released.VARIABLE, str(folder))
        return run_command(monkeypatch, capsys, *words)

    return run


def test_one_command_puts_an_agent_into_place(command, tmp_path):
    save_agent(Agent(SMALL), tmp_path / "weights")
    (tmp_path / "card.toml").write_text(CARD)
    home = tmp_path / "home"
    code, printed, _ = command("release", "weights", "--card", "card.toml", "--name", "mine", folder=home)
    assert code == 0 and Path(printed.strip()) == home / "mine"
    assert command("released", folder=home)[1].split() == ["mine", "Mine"]
    assert "## Licence\n\nMIT\n" in command("released", "mine", folder=home)[1]
    assert command("released", "--check", folder=home)[1] == "mine: 4 files are as its card says\n"
    code, _, error = command("release", "weights", "--card", "card.toml", "--name", "mine", folder=home)
    assert code == 2 and "exists: choose another name, or replace it with --overwrite" in error
    assert command("release", "weights", "--card", "card.toml", "--name", "mine", "--overwrite", folder=home)[0] == 0
    (weights,) = (home / "mine" / "encoder").glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1])
    code, _, error = command("released", "--check", folder=home)
    assert code == 2 and "mine: " in error and "is cut off" in error


@pytest.mark.parametrize(
    "words",
    [
        ("play", "--hider", "agent", "--seeker", "agent"),
        ("watch", DEFAULT),
        ("evaluate", DEFAULT, "--task", "explore"),
        ("tournament", "--agents", DEFAULT),
        ("serve", "--agents", DEFAULT),
        ("study", "static", "--encoders", DEFAULT, "random"),
        ("study", "dynamic", "--agents", DEFAULT),
        ("train", "demo", "--start", DEFAULT),
        ("export", DEFAULT),
        ("released", DEFAULT),
        ("bench", "step"),
    ],
    ids=lambda words: " ".join(words),
)
def test_where_there_is_none_every_command_says_where_released_agents_come_from(command, tmp_path, words):
    code, printed, error = command(*words, folder=tmp_path / "nothing")
    assert code == 2 and not printed
    assert error.startswith(f"scrubjay: {DEFAULT} is not here: released agents come with the package")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_released_agent_plays_is_watched_and_measured(command, tmp_path, monkeypatch):
    monkeypatch.setattr("scrubjay.api.LIMITS", SHORT)
    small = ("--scene", "FloorPlan401", "--goal", "Plunger")
    assert command("play", "--hider", "agent", "--seeker", "agent", "--no-video", *small)[0] == 0
    (record,) = load_records(tmp_path / "out" / "play" / "record.json")
    assert record.players == {"hider": DEFAULT, "seeker": DEFAULT}
    trace = agent_trace.trace_agent
    monkeypatch.setattr(agent_trace, "trace_agent", lambda *args: trace(*args[:5], limits=SHORT))
    assert command("watch", DEFAULT, *small)[0] == 0
    page = (tmp_path / "out" / "watch" / "index.html").read_text()
    assert f"{DEFAULT}: A small agent. 0 steps in 0 GPU minutes." in page
    code, _, error = command("evaluate", DEFAULT)
    assert code == 2 and "name one with --task" in error
    code, printed, _ = command("bench", "step", "--steps", "12", *small)
    rows = json.loads(printed)["milliseconds"]
    assert code == 0 and {*rows} >= {"step", "networks", "image", "rules", *PARTS}
    assert rows["networks"]["median"] < rows["step"]["median"] and rows["step"]["calls"] == 12


def test_it_is_evaluated_on_the_task_that_is_named(command, monkeypatch):
    monkeypatch.setitem(PRESETS, "explore", replace(PRESETS["explore"], validation_scenes=("FloorPlan421",)))
    code, printed, error = command("evaluate", DEFAULT, "--task", "explore", "--games", "1")
    assert code == 0, error
    agent, random = (json.loads(line) for line in printed.splitlines())
    assert agent["player"] == "agent" and random["player"] == "random" and 0 < agent["coverage"][0] < 1


def test_weights_without_a_run_are_watched_too(command, tmp_path, monkeypatch):
    trace = agent_trace.trace_agent
    monkeypatch.setattr(agent_trace, "trace_agent", lambda *args: trace(*args[:5], limits=SHORT))
    save_agent(Agent(SMALL), tmp_path / "weights")
    assert command("watch", "weights", "--scene", "FloorPlan401", "--goal", "Plunger")[0] == 0
    assert "without the run that trained them" in (tmp_path / "out" / "watch" / "index.html").read_text()


def test_the_demo_lets_it_play_first_and_links_to_its_page(tmp_path, monkeypatch, installed):
    monkeypatch.setenv(released.VARIABLE, str(tmp_path / "nothing"))
    assert demo.write_released(tmp_path, "auto", Console(quiet=True)) is None and not [*tmp_path.iterdir()]
    monkeypatch.setenv(released.VARIABLE, str(installed))
    monkeypatch.setattr(demo, "trace_agent", lambda *args: agent_trace.trace_agent(*args, limits=SHORT))
    page = demo.write_released(tmp_path, "auto", Console(quiet=True))
    assert page == tmp_path / demo.LINKS["The released agent"] and "A small agent" in page.read_text()


def test_an_agent_of_a_release_that_moved_is_loaded_by_its_path(tmp_path, installed):
    shutil.copytree(installed / DEFAULT, tmp_path / DEFAULT)
    assert load_agent(tmp_path / DEFAULT / "agent").config == SMALL
