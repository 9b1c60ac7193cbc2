"""The benchmark of learning, on games whose episodes are at several stages at once."""

from rich.console import Console

from scrubjay.agent.config import SMALL
from scrubjay.bench.learning import measure
from scrubjay.training.config import TrainConfig

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
