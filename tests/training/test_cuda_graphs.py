"""Learning with a CUDA graph: the same losses and gradients as without."""

import copy

import pytest
import torch

from scrubjay.agent.config import SMALL
from scrubjay.agent.normalization import commit_norms, running_norms
from scrubjay.training.actor_critic import total_loss
from scrubjay.training.config import TrainConfig
from scrubjay.training.cuda_graphs import CudaGraphLearner
from scrubjay.training.trainer import Trainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
TINY = {
    "agent": SMALL, "scenes": ("FloorPlan401",), "copies": 8, "unroll_length": 8, "minibatch_games": 4,
    "validation_games": 0,
}  # fmt: skip


@pytest.mark.parametrize("task", ["explore", "manipulate", "seek"])
def test_a_captured_step_equals_a_plain_one(task, tmp_path):
    trainer = Trainer(TrainConfig.preset(task, spot_candidates=4, **TINY), "cuda", folder=tmp_path)
    collector, _ = trainer.start_segment()
    plain = copy.deepcopy(trainer.learner)
    captured = None
    for turn in range(4):
        part = collector.collect(8).games(torch.arange(4, device="cuda") + turn)
        plain.zero_grad(set_to_none=True)
        expected, expected_metrics = plain(part)
        total_loss(expected, plain.objective.weights(part.stages)).backward()
        expected |= expected_metrics
        commit_norms(plain)
        autocast = lambda: torch.autocast("cuda", torch.bfloat16, enabled=False)  # noqa: E731
        captured = captured or CudaGraphLearner(trainer.learner, autocast, part.games(torch.arange(4, device="cuda")))
        losses, metrics = captured(part)
        actual = losses | metrics
        assert set(actual) == set(expected)
        for name, loss in actual.items():
            torch.testing.assert_close(loss, expected[name], rtol=1e-3, atol=1e-4, msg=name)
        for (name, mine), its in zip(trainer.learner.named_parameters(), plain.parameters(), strict=True):
            assert (mine.grad is None) == (its.grad is None), name
            if mine.grad is not None:
                torch.testing.assert_close(mine.grad, its.grad, rtol=1e-2, atol=1e-4, msg=name)
        assert trainer.agent.memory.sir_norm.batches == turn + 1
        for mine, its in zip(running_norms(trainer.learner), running_norms(plain), strict=True):
            assert mine.batches == its.batches
            torch.testing.assert_close(mine.mean, its.mean, rtol=1e-3, atol=1e-4)
        with torch.no_grad():
            for mine, its in zip(trainer.learner.parameters(), plain.parameters(), strict=True):
                mine.mul_(1.01), its.mul_(1.01)
    trainer.close()
