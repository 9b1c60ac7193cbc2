"""The milestones of runs: which agents are compared, in which order, under which names."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.errors import RunError
from scrubjay.training.config import TrainConfig
from scrubjay.training.milestones import (
    Milestone,
    common_image_size,
    find_milestones,
    label_milestones,
    short_number,
    with_own_seeds,
)
from scrubjay.training.named_agents import NamedAgent
from scrubjay.training.run import CONFIG, MILESTONES, PROGRESS, Progress, Run


def fake_run(folder: Path, milestones: dict[int, int], checkpoints: dict[int, int]) -> Path:
    """A run's folder without weights: milestones and checkpoints by their number, with their games."""
    folder.mkdir(parents=True)
    (folder / CONFIG).write_text("{}")
    for kind, digits, each in ((MILESTONES, 12, milestones), ("checkpoints", 8, checkpoints)):
        for number, games in each.items():
            path = folder / kind / f"{number:0{digits}d}"
            path.mkdir(parents=True)
            (path / PROGRESS).write_text(json.dumps({"games": games}))
    return folder


def test_milestones_come_in_the_order_of_games_and_then_a_later_checkpoint(tmp_path):
    run = fake_run(tmp_path / "cache", {1000: 1003, 0: 0}, {20: 1003, 30: 2500})
    found = find_milestones([run])
    assert [(m.name, m.games, m.run) for m in found] == [
        ("cache-0", 0, run), ("cache-1000", 1000, run), ("cache-update-30", 2500, run),
    ]  # fmt: skip
    assert label_milestones(found) == {"cache-0": "0", "cache-1000": "1k", "cache-update-30": "2.5k"}


def test_a_checkpoint_with_no_more_games_is_left_out(tmp_path):
    run = fake_run(tmp_path / "cache", {0: 0, 1000: 1003}, {20: 1003})
    assert [m.name for m in find_milestones([run])] == ["cache-0", "cache-1000"]


def test_folders_of_weights_stand_beside_runs(tmp_path):
    run = fake_run(tmp_path / "cache", {0: 0}, {})
    (tmp_path / "random").mkdir()
    found = find_milestones([run, tmp_path / "random"], taken=("random",))
    assert [(m.name, m.games) for m in found] == [("cache-0", 0), (f"{tmp_path.name}/random", None)]
    assert list(label_milestones(found).values()) == ["cache 0", f"{tmp_path.name}/random"]


def test_a_run_without_milestones_is_refused(tmp_path):
    run = fake_run(tmp_path / "cache", {}, {20: 7})
    with pytest.raises(RunError, match="cache has no milestones: name one of its checkpoints"):
        find_milestones([run])


def test_a_real_runs_milestones_are_found(tmp_path):
    run = Run.begin(tmp_path / "run", TrainConfig.preset("demo", agent=SMALL, milestones=(0, 4)))
    (folder,) = run.save_milestones(Agent(SMALL), Progress(), -1)
    run.close()
    assert find_milestones([tmp_path / "run"]) == [Milestone("run-0", folder, tmp_path / "run", 0)]
    assert find_milestones([folder]) == [Milestone("run-0", folder, folder, 0)]


def test_agents_of_different_image_sizes_are_refused(tmp_path):
    large = replace(SMALL, image_size=2 * SMALL.image_size)
    agents = {name: NamedAgent(tmp_path, name, Agent(config)) for name, config in (("one", SMALL), ("two", large))}
    assert common_image_size({"one": agents["one"]}) == SMALL.image_size
    with pytest.raises(ValueError, match=r"different sizes \(one 112, two 224 pixels\)"):
        common_image_size(agents)


def test_each_agent_has_random_numbers_of_its_own(tmp_path):
    agent = Agent(SMALL)
    one, two = with_own_seeds({name: NamedAgent(tmp_path, name, agent) for name in ("one", "two")}).values()
    assert one(3).seed == one(3).seed != two(3).seed != two(4).seed


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0"), (950, "950"), (12_000, "12k"), (999_999, "1M"), (1_500_000, "1.5M")]
)
def test_numbers_are_short(number, words):
    assert short_number(number) == words
