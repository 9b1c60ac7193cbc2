"""The paper's numbers: one switch sets every field, and training with them works in every task and for workers."""

import json
from dataclasses import asdict, fields, replace

import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.normalization import running_norms
from scrubjay.errors import RunError
from scrubjay.game.actions import Stage
from scrubjay.training.config import NUMBERS, PRESETS, TrainConfig, from_json, to_json
from scrubjay.training.hiding_learner import HidingObjective
from scrubjay.training.hogwild import Worker
from scrubjay.training.learner import Objective
from scrubjay.training.optimizers import make_optimizers
from scrubjay.training.run import Run
from scrubjay.training.trainer import Trainer

PRINTED = {
    "epochs": 1, "learning_rate": 1e-4, "learning_rate_schedule": "constant", "cooldown": 0.0, "betas": (0.99, 0.999),
    "head_lr_scale": 1.0, "max_grad_norm": 0.0, "dynamics_learning_rate": 1e-3, "perspective_learning_rate": 5e-4,
    "replay_size": 20_000, "replay_batch_size": 64, "stage_limits": (200, 1, 15, 50, 500), "augment": True,
    "rotate_grid": True, "explore_reward_rotations": True, "seek_like_explore": False, "hiding_splits": 1,
    "mental_replays": 0, "mental_games": 0,
    "milestones": (0, 1_000_000, 4_500_000),
}  # fmt: skip
ACTOR_CRITIC = {
    "gae_lambda": 1.0, "entropy": 0.01, "clip_coef": 0.0, "normalize_advantages": False, "bootstrap_time_limits": False,
}  # fmt: skip
PLAIN_AGENT = {
    "heads_read_cells": False, "running_norms": False, "gate_norm": False, "centered_filters": False,
    "separate_openable_head": False, "openable_hidden": 0, "open_at_prior": False, "critic_sees_time": False,
    "hand_head": False, "hiding_priors": False, "mental_offsets": False,
}  # fmt: skip
TINY = {
    "scenes": ("FloorPlan401",), "copies": 2, "unroll_length": 24, "minibatch_games": 2, "updates": 2,
    "checkpoint_interval": 2, "replay_size": 64, "replay_batch_size": 4, "stage_limits": (6, 1, 2, 3, 4),
    "hiding_minibatch": 2, "agent": SMALL, "validation_games": 0, "spot_candidates": 4,
}  # fmt: skip


@pytest.mark.parametrize("sizes", [None, SMALL, PAPER])
@pytest.mark.parametrize("name", PRESETS)
def test_the_papers_numbers_set_every_field(name, sizes):
    preset = PRESETS[name]
    config = TrainConfig.preset(name, numbers="paper", **{"agent": sizes} if sizes else {})
    # What is printed, from the appendix; what is not printed and not needed is off.
    assert {field: getattr(config, field) for field in PRINTED} == PRINTED
    assert {**ACTOR_CRITIC, "gamma": 0.99, "openable": 0.0}.items() <= asdict(config.objective).items()
    assert {**ACTOR_CRITIC, "gamma": 0.8, "early": 5000, "center_percentile": False}.items() <= asdict(
        config.hiding
    ).items()
    assert config.agent == replace(sizes or preset.agent, **PLAIN_AGENT)
    # Losses that the paper has stay on, with the weights that they have by default.
    assert config.objective == replace(Objective(), openable=0.0) and config.hiding == HidingObjective()
    # What it prints no number for, and what is to be learned, is the preset's.
    others = {field.name for field in fields(config)} - {*PRINTED, "agent", "objective", "hiding"}
    assert {"task", "scenes", "copies", "unroll_length", "minibatch_games", "replay_batches", "seed"} <= others
    assert all(getattr(config, field) == getattr(preset, field) for field in others)
    assert from_json(to_json(config)) == config


@pytest.mark.parametrize("name", PRESETS)
def test_our_numbers_are_the_presets(name):
    assert TrainConfig.preset(name, numbers="ours") == TrainConfig.preset(name) == PRESETS[name]


def test_changes_win_over_the_papers_numbers():
    config = TrainConfig.preset("explore", numbers="paper", learning_rate=3e-4, max_grad_norm=1.0, augment=False)
    assert (config.learning_rate, config.max_grad_norm, config.augment) == (3e-4, 1.0, False)
    assert config.betas == (0.99, 0.999) and not config.agent.running_norms


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numbers": "theirs"}, f"unknown numbers 'theirs'; choose from {', '.join(NUMBERS)}"),
        ({"numbers": "paper", "epochs": 2}, "epochs: 2 passes need PPO's clipping"),
        ({"numbers": "paper", "objective": Objective()}, "objective.openable: heads that do not read cells"),
        ({"agent": replace(SMALL, heads_read_cells=False)}, "objective.openable: heads that do not read cells"),
        ({"numbers": "paper", "agent": "huge"}, "agent"),
        ({"max_grad_norm": -1.0}, "max_grad_norm: input should be greater than or equal to 0"),
        ({"max_grad_norm": float("inf")}, "max_grad_norm"),
    ],
)
def test_contradictions_are_refused(change, message):
    with pytest.raises(ValueError) as caught:
        TrainConfig.preset("demo", **change)
    assert str(caught.value).startswith(message)


def test_an_openable_filter_needs_cells():
    with pytest.raises(ValueError, match="separate_openable_head: its filter reads cells"):
        replace(SMALL, heads_read_cells=False, separate_openable_head=True)


@pytest.mark.parametrize("name", ["explore", "manipulate", "seek", "cache"])
def test_every_task_trains_with_the_papers_numbers(name, tmp_path):
    config = TrainConfig.preset(name, numbers="paper", **TINY)
    trainer = Trainer(config, folder=tmp_path)
    before = {key: tensor.clone() for key, tensor in trainer.agent.state_dict().items()}
    row = trainer.update(*trainer.start_segment())
    trainer.close()
    stage = {"explore": "EM", "manipulate": "OM", "seek": "S", "cache": "EM"}[name]
    losses = row["losses"]
    assert {f"{stage.lower()}/policy_loss", "self_prediction", "change"} <= losses.keys()
    assert "dynamics/grad_norm" in losses or name == "manipulate", "few of its short episodes have images after actions"
    assert not any("openable" in loss for loss in losses), "weight 0: not computed"
    assert losses[f"{stage.lower()}/approx_kl"] == pytest.approx(0, abs=1e-5), "acting and evaluating agree"
    after = trainer.agent.state_dict()
    assert all(torch.isfinite(tensor).all() for tensor in after.values())
    assert not any("norm" in key for key in after) and not running_norms(trainer.agent)
    for part in ("encoder.stem.weight", "memory.lstm_gates.bias", f"heads.stages.{stage}.actor.weight"):
        assert not torch.equal(after[part], before[part]), part
    buffers = dict(trainer.agent.named_buffers())
    assert all(torch.equal(buffers[key], before[key]) for key in buffers.keys() & before.keys())


def test_a_hogwild_worker_trains_with_the_papers_numbers():
    config = TrainConfig.preset("explore", numbers="paper", **TINY)
    torch.manual_seed(3)
    shared = Agent(config.agent)
    before = {key: tensor.clone() for key, tensor in shared.state_dict().items()}
    worker = Worker(config, 0, 2, shared, make_optimizers(shared, config))
    worker.update(*worker.start_segment())
    worker.close()
    after, own = shared.state_dict(), worker.agent.state_dict()
    assert not torch.equal(after["heads.stages.EM.actor.weight"], before["heads.stages.EM.actor.weight"])
    assert all(torch.equal(after[key], own[key]) for key in after)


def test_without_a_limit_gradients_are_not_clipped():
    """Losses 1,000 times as large have a gradient 1,000 times as large, and only a limit changes that."""
    parameter = torch.nn.Parameter(torch.tensor([3.0, -4.0]))
    for limit, expected in ((10.0, 10.0), (0.0, 5000.0)):
        trainer = Trainer(TrainConfig.preset("demo", **TINY | {"max_grad_norm": limit}))
        trainer.optimizers["play"] = torch.optim.Adam([parameter])
        loss = {"loss": 500 * (parameter**2).sum()}
        norm = trainer.backward("play", loss, {"loss": 1.0}, batch=None)
        trainer.close()
        assert norm.item() == pytest.approx(5000) and parameter.grad.norm().item() == pytest.approx(expected)


def test_an_openable_loss_of_weight_0_is_not_computed():
    stages = {Stage.EM, Stage.OM, Stage.S}
    assert not any("openable" in name for name in Objective(openable=0.0).weights(stages))
    assert {"em/openable", "om/openable", "s/openable"} <= Objective().weights(stages).keys()


def test_a_run_from_before_the_switch_is_refused_with_what_to_do(tmp_path):
    Run.begin(tmp_path / "run", TrainConfig.preset("demo")).close()
    path = tmp_path / "run" / "run.json"
    about = json.loads(path.read_text())
    del about["config"]["agent"]["heads_read_cells"]
    path.write_text(json.dumps({**about, "version": about["version"] - 1}))
    with pytest.raises(RunError, match="Begin a new run with its agent: scrubjay train PRESET --start"):
        Run.open(tmp_path / "run")
