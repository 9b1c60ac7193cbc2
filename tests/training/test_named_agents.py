"""Agents by name: readable, unique names of folders; milestones and checkpoints of a run."""

from pathlib import Path

import numpy as np
import pytest

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.errors import RunError, WeightsError
from scrubjay.training.config import TrainConfig
from scrubjay.training.named_agents import checkpoint, load_agents, milestone_folder, name_folders
from scrubjay.training.run import Progress, Run


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["out/cache"], ["cache"]),
        (["out/cache/milestones/000000000000", "out/cache/milestones/000001000000"], ["cache-0", "cache-1000000"]),
        (["out/cache", "out/cache/checkpoints/00000120"], ["cache", "cache-update-120"]),
        (["first/cache", "second/cache", "third"], ["first/cache", "second/cache", "third"]),
        (
            ["a/cache/milestones/000000000007", "b/cache/milestones/000000000007", "b/cache"],
            ["a/cache-7", "b/cache-7", "cache"],
        ),
        (["out/random"], ["out/random"]),
        ([], []),
    ],
)
def test_names_are_readable_and_unique(folders, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = name_folders(folders, taken=("random", "easy"))
    assert list(named) == names and list(named.values()) == [Path(folder) for folder in folders]


def test_a_folder_is_given_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"agents: \./run is given twice|agents: run is given twice"):
        name_folders(["run", "./run"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a small agent with milestones 0 and 4 and one checkpoint; its weights differ by a constant."""
    run = Run.begin(
        tmp_path_factory.mktemp("runs") / "run", TrainConfig.preset("demo", agent=SMALL, milestones=(0, 4, 100))
    )
    agent = Agent(SMALL)
    run.save_milestones(agent, Progress(), -1)
    next(agent.parameters()).data.add_(1)
    run.save_milestones(agent, Progress(1, 64, 5), 0)
    next(agent.parameters()).data.add_(1)
    run.save(agent, {}, Progress(2, 128, 9))
    run.close()
    return run.folder


def test_milestones_and_checkpoints_are_found_and_loaded(run):
    folders = {"first": milestone_folder(run, 0), "later": milestone_folder(run, 4), "last": checkpoint(run, "newest")}
    assert folders["last"].name == "00000002" and folders["later"].name == "000000000004"
    agents = load_agents({**folders, "run": run})
    values = [next(agent.agent.parameters()).detach().numpy() for agent in agents.values()]
    np.testing.assert_allclose(values[1], values[0] + 1, atol=1e-6)
    np.testing.assert_allclose(values[2], values[0] + 2, atol=1e-6)
    assert agents["run"].digest == agents["last"].digest and len({agent.digest for agent in agents.values()}) == 3
    assert agents["first"](3).agent is agents["first"](4).agent, "players share it"


def test_what_does_not_exist_is_one_sentence(run, tmp_path):
    with pytest.raises(RunError, match=r"no milestone after 1,000,000 games; its milestones: 0, 4$"):
        milestone_folder(run, 1_000_000)
    with pytest.raises(RunError, match="no best checkpoint, since it had no validation"):
        checkpoint(run, "best")
    with pytest.raises(RunError, match=r"is not a run: it has no run\.json"):
        milestone_folder(tmp_path / "nowhere", 0)
    with pytest.raises(WeightsError, match="there is no such folder of a run or of weights"):
        load_agents({"nobody": tmp_path / "nowhere"})
