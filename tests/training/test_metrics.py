"""What training logs: the names in metrics.jsonl and TensorBoard, and that the docs explain each of them."""

import re
from pathlib import Path

import pytest
import torch

from scrubjay.game.actions import Stage
from scrubjay.training.config import TrainConfig
from scrubjay.training.dynamics_losses import WEIGHTS
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.learner import Objective
from scrubjay.training.metrics import GROUPS, MeanMetrics, scalars, to_floats
from scrubjay.training.run import Run
from scrubjay.training.train import train

DOCS = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
EXPLAINED = set(re.findall(r"`([\w/<>]+)`", "".join(re.findall(r"^\|([^|]*)\|", DOCS, re.M))))


def explained(name: str) -> bool:
    """Is a metric in the docs, by its name or that of any stage?"""
    stages = "|".join(stage.name.lower() for stage in Stage)
    return bool({name, re.sub(rf"^(losses|charts|reward|play)/({stages})\b", r"\1/<stage>", name)} & EXPLAINED)


@pytest.mark.parametrize("task", ["explore", "manipulate", "cache"])
def test_the_docs_explain_every_metric_that_a_run_logs(task, tmp_path):
    run = Run.begin(tmp_path / "run", TrainConfig.preset(
        "demo", task=task, scenes=("FloorPlan401",), copies=3, unroll_length=16, minibatch_games=3, updates=4,
        checkpoint_interval=4,
        replay_size=64, stage_limits=(6, 1, 2, 3, 4), hiding_minibatch=2, manipulation_minibatch=2,
        shadow_classifier=task == "explore",
    ))  # fmt: skip
    rows: list[dict] = []
    train(run, report=rows.append)
    run.close()
    names = {name for row in rows for name in scalars(row)}
    first = {"explore": "em", "manipulate": "om", "cache": "oh"}[task]
    cleanrl = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac", "explained_variance")
    # Whole games learn without a clip range here.
    assert names >= {f"losses/{first}/{name}" for name in cleanrl if task != "cache" or name != "clipfrac"}
    assert names >= {f"losses/{first}/advantage_std", f"losses/{first}/open_at_prob", f"play/{first}/success"}
    assert names >= {"charts/SPS", "charts/learning_rate", "losses/play/grad_norm"}
    assert "charts/em/episodic_return" in names or task == "manipulate"
    top = {key for row in rows for key in row} - set(GROUPS)
    assert [name for name in sorted(names | top) if not explained(name)] == []
    assert all(row["losses"]["play/grad_norm"] > 0 for row in rows)
    assert all(value >= 0 for row in rows for name, value in row["losses"].items() if name.endswith("/entropy"))


def test_the_docs_explain_every_weighted_loss():
    hiding = HidingObjective()
    tables = (Objective().weights(set(Stage)), hiding.hiding_weights(early=True), hiding.perspective_weights())
    names = [f"losses/{name}" for table in tables for name in table] + [f"losses/dynamics/{name}" for name in WEIGHTS]
    assert [name for name in names if not explained(name)] == [] and not explained("losses/em/beauty")


def test_scalars_have_their_groups_names_and_no_empty_values():
    row = {"update": 3, "reward": {"em": 0.5, "s": None}, "losses": {"em/entropy": 4.0}, "charts": {"SPS": 10.0}}
    assert scalars(row) == {"reward/em": 0.5, "losses/em/entropy": 4.0, "charts/SPS": 10.0}


def test_means_are_over_the_batches_that_have_a_metric():
    mean = MeanMetrics()
    static = torch.tensor(1.0)
    mean.add({"a": static, "b": torch.tensor(5.0, requires_grad=True)})
    static.fill_(4.0)  # As a CUDA graph does with its outputs.
    mean.add({"a": static})
    assert to_floats(mean.means()) == {"a": 2.5, "b": 5.0} and to_floats({}) == {}


def test_batches_without_a_stages_steps_are_left_out_of_its_means():
    mean, yes, no = MeanMetrics(), torch.tensor(True), torch.tensor(False)
    for seek, occurred in ((3.0, yes), (0.0, no), (5.0, yes)):
        mean.add({"s/entropy": torch.tensor(seek), "change": torch.tensor(1.5)}, {"s": occurred})
    mean.add({"change": torch.tensor(5.5)})
    assert to_floats(mean.means()) == {"s/entropy": 4.0, "change": 2.5}
