"""The benchmark of learning, on games whose episodes are at several stages at once."""

import json
from dataclasses import replace

from rich.console import Console

from scrubjay.agent.agent import Agent, save_agent
from scrubjay.agent.config import SMALL
from scrubjay.bench.learning import measure
from scrubjay.cli.bench import learning
from scrubjay.training.config import PRESETS, TrainConfig

PARTS = ("collect", "learn", "replay", "render", "act", "game")


def test_games_that_practice_are_measured():
    """Manipulations, and E&M beside them: the part without an agent must not give one stage's actions to the other."""
    config = TrainConfig.preset(
        "demo", task="manipulate", practice=(0.5, 0.0, 0.0), scenes=("FloorPlan401",), copies=4, unroll_length=6,
        minibatch_games=4, replay_size=64, replay_batch_size=4, agent=SMALL, stage_limits=(3, 1, 2, 2, 4),
    )  # fmt: skip
    row = measure(config, "cpu", 1, Console(quiet=True))
    assert row["task"] == "manipulate" and row["games"] == 4
    assert row["steps_per_s"] > 0 and all(row[f"{part}_ms"] > 0 for part in PARTS)


def test_several_sizes_are_measured_in_turn(tmp_path, capsys, monkeypatch):
    short = dict(unroll_length=4, replay_batches=0, minibatch_games=2)
    monkeypatch.setitem(PRESETS, "explore", replace(PRESETS["explore"], **short))
    save_agent(Agent(SMALL), tmp_path / "agent")
    start = str(tmp_path / "agent")
    learning("explore", numbers="preset", scenes=["FloorPlan401"], copies=[2, 4], start=start, updates=1)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["games"] for row in rows] == [2, 4] and all(row["steps_per_s"] > 0 for row in rows)
