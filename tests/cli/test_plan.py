"""`scrubjay plan` as a user types it, with real agents."""

import csv
import json

import numpy as np
import pytest
from helpers import run_command

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.api import train
from scrubjay.evaluation.matches import Match, play_matches
from scrubjay.evaluation.trials import hiding_specs
from scrubjay.game.actions import action_index
from scrubjay.game.record import load_records, replay, save_records
from scrubjay.players.base import RandomPlayer
from scrubjay.sim.world import World
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Progress, Run
from scrubjay.web.study_protocol import load_study

PLAN = """
version = 1
title = "A person and an agent"
size = 112
seekers = ["oracle"]
[agents]
first = { milestone = 0 }
[[hidings]]
hiders = ["people", "first"]
starts = "people"
"""

STUDY = """
name = "seek"
title = "Find it"
kind = "seek"
consent = ""
instructions = ""
trials = 2
[[places]]
source = "people"
records = "people.jsonl"
[[places]]
source = "first-matched"
records = "trials/mine/records/first-matched.jsonl"
matched = "people"
"""


def command(monkeypatch, capsys, *args: str) -> tuple[int, str, str]:
    return run_command(monkeypatch, capsys, "plan", *args)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a run of an untrained agent that drops objects at once, a plan, and a person's hiding."""
    folder = tmp_path_factory.mktemp("plan")
    run = Run.begin(folder / "run", TrainConfig.preset("demo", agent=SMALL, milestones=(0, 8)))
    agent = Agent(SMALL)
    manipulating = agent.heads.stages["OM"]
    manipulating.actor.bias.data[manipulating.actions == action_index("DropObject")] = 20  # A short game.
    run.save_milestones(agent, Progress(), -1)
    run.close()
    (folder / "mine.toml").write_text(PLAN)
    with World(["FloorPlan501"], size=56) as world:
        match = Match("FloorPlan501", "person", "", next(hiding_specs(world.rooms[0], 1)))
        ((_, record),) = play_matches(world, [match], RandomPlayer(0), np.array([9, 1, 3, 3, 500]))
    save_records([record], folder / "people.jsonl")
    return folder


def test_the_ready_plans_are_listed(monkeypatch, capsys):
    code, printed, _ = command(monkeypatch, capsys)
    assert code == 0
    for words in ("paper-hiding  Hiding places (E.1)", "paper-seeking  Seeking trials (E.2)", "small.toml"):
        assert words in printed


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "there is no plan 'nothing': choose paper-hiding, paper-seeking, small, or a file"),
        (["paper-hiding"], "agent-0 is an agent of a run: name its folder with --run"),
        (["paper-hiding", "--run", "nowhere"], "nowhere is not a run"),
        (["paper-seeking", "--run", "run"], "run has no milestone after 1,000,000 games; its milestones: 0"),
        (["small", "--run", "run"], "run has no checkpoint yet"),
        (["mine.toml", "--run", "run"], "nothing of the plan is left to play"),
        (["mine.toml", "--run", "run", "--people", "mine.toml"], "mine.toml, line 1: not JSON"),
        (["mine.toml", "--run", "run", "--people", "people.jsonl", "--at-once", "0"], "--at-once: 1 or more, not 0"),
    ],
)
def test_mistakes_are_one_sentence_and_write_nothing(files, args, message, monkeypatch, capsys):
    monkeypatch.chdir(files)
    code, _, errors = command(monkeypatch, capsys, *args, "--out", "new")
    assert code == 2 and message in errors and not (files / "new").exists()


def test_an_agent_hides_from_a_persons_start(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    args = ("mine.toml", "--run", "run", "--people", "people.jsonl", "--out", "trials")
    code, printed, errors = command(monkeypatch, capsys, *args)
    assert code == 0, errors
    results = files / "trials" / "mine"
    assert printed.splitlines()[-1] == "trials/mine/index.html" and (results / "table.md").read_text() in printed
    with (results / "searches.csv").open() as file:
        assert [(row["hider"], row["seeker"], row["trials"]) for row in csv.DictReader(file)] == [
            ("people", "oracle", "1"), ("first-matched", "oracle", "1"),
        ]  # fmt: skip
    assert "first is run/milestones/000000000000 (weights-" in (results / "index.html").read_text()
    (person,), (hiding,) = (load_records(path) for path in ("people.jsonl", results / "records/first-matched.jsonl"))
    assert (hiding.scene, hiding.goal, hiding.start) == (person.scene, person.goal, person.start)
    assert len(hiding.actions) > 200 and hiding.players == {"hider": "first-matched"}
    (files / "study.toml").write_text(STUDY)
    _, (first, second) = load_study(files / "study.toml")
    assert (first.source, second.source) == ("people", "first-matched") and first.spec.start == second.spec.start
    with World([hiding.scene], size=hiding.size) as world:
        assert len(list(replay(hiding, world))) == len(hiding.actions)
    before = (files / "trials" / "games.jsonl").read_text()
    assert command(monkeypatch, capsys, *args)[0] == 0 and (files / "trials" / "games.jsonl").read_text() == before
    agents = files / "trials" / "agents.json"
    agents.write_text(json.dumps({"first": "weights-0.safetensors"}))
    code, _, errors = command(monkeypatch, capsys, *args)
    assert code == 2 and "trials has games of another agent named first: choose another folder" in errors


@pytest.mark.slow
def test_milestones_of_a_trained_run_hide_and_seek(files, monkeypatch, capsys):
    """Each of two milestones hides from the person's start, and searches for all three objects."""
    monkeypatch.chdir(files)
    small = dict(scenes=("FloorPlan401",), copies=2, minibatch_games=2)
    train("demo", files / "trained", **small, milestones=(0, 2), max_games=2)
    text = PLAN.replace("[agents]", "[agents]\nlater = { milestone = 2 }").replace('"oracle"', '"first", "later"')
    (files / "both.toml").write_text(text.replace('"people", "first"', '"people", "first", "later"'))
    code, _, errors = command(monkeypatch, capsys, "both.toml", "--run", "trained", "--people", "people.jsonl")
    assert code == 0, errors
    with (files / "out" / "trials" / "both" / "searches.csv").open() as file:
        rows = [(row["hider"], row["seeker"]) for row in csv.DictReader(file)]
    assert rows == [(hider, seeker) for hider in ("people", "first-matched", "later-matched")
                    for seeker in ("first", "later")]  # fmt: skip
    assert len(set(json.loads((files / "out" / "trials" / "agents.json").read_text()).values())) == 2
