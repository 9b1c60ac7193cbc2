"""Learning with a CUDA graph: the same losses and gradients as without."""

import copy
from dataclasses import replace
from functools import partial

import pytest
import torch

from scrubjay import tree
from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.normalization import commit_norms, running_norms
from scrubjay.game.actions import Stage
from scrubjay.training.actor_critic import total_loss
from scrubjay.training.config import TrainConfig
from scrubjay.training.cuda_graphs import CudaGraphLearner
from scrubjay.training.dynamics_losses import WEIGHTS, replay_losses
from scrubjay.training.hiding_learner import HidingLearner, HidingObjective
from scrubjay.training.replay import Triplets
from scrubjay.training.trainer import Trainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
TINY = {
    "agent": SMALL, "scenes": ("FloorPlan401",), "copies": 8, "unroll_length": 8, "minibatch_games": 4,
    "validation_games": 0, "practice": (0.5, 0.0, 0.0),
}  # fmt: skip
SHORT = (6, 1, 3, 4, 8)
"""Stage limits of whole games, so that rollouts of 8 steps differ in their stages."""
autocast = lambda: torch.autocast("cuda", torch.bfloat16, enabled=False)  # noqa: E731


@pytest.mark.parametrize("task", ["explore", "manipulate", "seek", "cache"])
def test_a_captured_step_equals_a_plain_one(task, tmp_path):
    limits = {"stage_limits": SHORT} if task == "cache" else {}
    trainer = Trainer(TrainConfig.preset(task, spot_candidates=4, **TINY, **limits), "cuda", folder=tmp_path)
    collector, _ = trainer.start_segment()
    plain, captured = copy.deepcopy(trainer.learner), None
    for turn in range(4):
        part = collector.collect(8).games(torch.arange(4, device="cuda") + turn)
        if trainer.stages is not None:
            part = replace(part, stages=trainer.stages)
        weights = plain.weights(part)
        plain.zero_grad(set_to_none=True)
        expected, expected_metrics = plain(part)
        total_loss(expected, weights).backward()
        commit_norms(plain)
        inputs = part.games(torch.arange(4, device="cuda"))
        captured = captured or CudaGraphLearner(trainer.agent, trainer.learner, weights, autocast, inputs)
        assert captured.fits(part, weights)
        assert_same_step(trainer.agent, plain.agent, captured(part), (expected, expected_metrics))
        assert trainer.agent.memory.sir_norm.batches == turn + 1
    trainer.close()


def test_a_captured_step_on_whole_manipulations_equals_a_plain_one():
    config = TrainConfig.preset("cache", **TINY, stage_limits=(4, 1, 4, 6, 8))
    trainer = Trainer(config, "cuda")
    collector, _ = trainer.start_segment()
    plain, captured, turns = copy.deepcopy(trainer.manipulation), None, 0
    for _ in range(12):
        trainer.manipulations.add(collector.collect(8))
        for batch in trainer.manipulations.minibatches(trainer.manipulations.ready(3), 3, 1):
            weights = plain.weights(batch.rollout)
            plain.zero_grad(set_to_none=True)
            expected = plain(batch.rollout)
            total_loss(expected[0], weights).backward()
            commit_norms(plain.agent.heads)
            captured = captured or CudaGraphLearner(
                trainer.agent, lambda each: trainer.manipulation(each.rollout), weights, autocast,
                tree.map(torch.clone, batch), trainer.agent.heads,
            )  # fmt: skip
            assert captured.fits(batch, weights)
            assert_same_step(trainer.agent, plain.agent, captured(batch), expected)
            turns += 1
            assert trainer.agent.memory.sir_norm.batches == 0
            assert trainer.agent.heads[Stage.OM].return_norm.batches == turns
    assert turns > 2
    trainer.close()


@pytest.mark.parametrize("early", [True, False])
def test_a_captured_step_on_hidings_equals_a_plain_one(early):
    trainer = Trainer(TrainConfig.preset("cache", **TINY, stage_limits=(4, 1, 4, 6, 8)), "cuda")
    collector, _ = trainer.start_segment()
    objective = HidingObjective(clip_coef=0.2, normalize_advantages=True, bootstrap_time_limits=True)
    mine = HidingLearner(trainer.agent, objective)
    its, captured, turns = HidingLearner(copy.deepcopy(trainer.agent), objective), None, 0
    weights = objective.hiding_weights(early)
    for _ in range(100):
        collector.collect(8)
        if len(collector.finished_games) < 2:
            continue
        batch = mine.hiding_batch(collector.finished_games.take(2), torch.linspace(-1, 1, 2, device="cuda"))
        its.agent.zero_grad(set_to_none=True)
        expected = its.oh_losses(batch, early)
        total_loss(expected[0], weights).backward()
        commit_norms(its.agent.heads)
        captured = captured or CudaGraphLearner(
            trainer.agent, partial(mine.oh_losses, early=early), weights, autocast, tree.map(torch.clone, batch),
            trainer.agent.heads,
        )  # fmt: skip
        assert captured.fits(batch, weights) and not captured.fits(batch, objective.hiding_weights(not early))
        assert_same_step(trainer.agent, its.agent, captured(batch), expected)
        turns += 1
        if turns == 3:
            break
    assert turns == 3
    trainer.close()


def test_a_captured_step_of_replay_equals_a_plain_one():
    agent, size = Agent(SMALL).cuda(), SMALL.image_size
    plain, captured, losses = copy.deepcopy(agent), None, partial(replay_losses, agent)
    for seed in range(3):
        draws = torch.Generator("cuda").manual_seed(seed)
        images = torch.randint(256, (2, 4, size, size, 3), generator=draws, device="cuda", dtype=torch.uint8)
        action = torch.randint(219, (4,), generator=draws, device="cuda")
        batch = Triplets(images[0], action, images[1], action % 2 == 0)
        plain.zero_grad(set_to_none=True)
        expected = replay_losses(plain, batch)
        total_loss(expected[0], WEIGHTS).backward()
        first = tree.map(torch.clone, batch)
        captured = captured or CudaGraphLearner(agent, losses, WEIGHTS, autocast, first, agent.dynamics)
        assert captured.fits(batch, WEIGHTS)
        assert_same_step(agent, plain, captured(batch), expected)


def test_whole_games_learn_with_graphs():
    config = TrainConfig.preset(
        "cache", **TINY, stage_limits=(4, 1, 4, 6, 8), manipulation_minibatch=2, hiding_minibatch=2, replay_batches=0
    )
    trainer = Trainer(config, "cuda")
    collector, replay = trainer.start_segment()
    rows = [trainer.update(collector, replay) for _ in range(16)]
    assert set(trainer.graphs) == {"rollouts", "manipulations of 6 steps", "hidings"}
    logged = set().union(*(row["losses"] for row in rows))
    assert logged >= {"em/policy_loss", "s/policy_loss", "om/hindsight", "oh/policy_loss", "ps/outcome"}
    trainer.close()


def assert_same_step(agent, plain, actual, expected):
    """Losses, diagnostics, gradients and running statistics are those of the plain agent; changes both agents alike."""
    actual, expected = actual[0] | actual[1], expected[0] | expected[1]
    assert set(actual) == set(expected)
    for name, loss in actual.items():
        torch.testing.assert_close(loss, expected[name], rtol=1e-3, atol=1e-4, msg=name)
    for (name, mine), its in zip(agent.named_parameters(), plain.parameters(), strict=True):
        assert (mine.grad is None) == (its.grad is None), name
        if mine.grad is not None:
            torch.testing.assert_close(mine.grad, its.grad, rtol=1e-2, atol=1e-4, msg=name)
    for mine, its in zip(running_norms(agent), running_norms(plain), strict=True):
        assert mine.batches == its.batches
        torch.testing.assert_close(mine.mean, its.mean, rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        for mine, its in zip(agent.parameters(), plain.parameters(), strict=True):
            mine.mul_(1.01), its.mul_(1.01)
