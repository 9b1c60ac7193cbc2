"""Losses and gradients as one CUDA graph: thousands of small kernels, launched as a whole.

Recurrent networks run over a sequence step by step, and back. Unless batches are huge, launching all that takes the CPU
longer than it takes the GPU, and small batches learn more from as many steps.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from scrubjay import tree
from scrubjay.agent.normalization import commit_norms, running_norms
from scrubjay.training.actor import WARMUP_STEPS
from scrubjay.training.actor_critic import Losses, Metrics, total_loss
from scrubjay.training.learner import Learner
from scrubjay.training.rollout import Rollout


class CudaGraphLearner:
    """Losses and gradients of rollouts that all have the shape and stages of the first.

    Running statistics are committed as part of the graph.
    """

    def __init__(self, learner: Learner, autocast: Callable[[], torch.autocast], rollout: Rollout) -> None:
        """Keeps the rollout's tensors as static inputs. Changes nothing of the agent but its gradients."""
        self.learner, self.autocast, self.inputs = learner, autocast, rollout
        parameters = list(learner.parameters())
        statistics = [tensor for norm in running_norms(learner) for tensor in (norm.mean, norm.variance, norm.batches)]
        before = [tensor.clone() for tensor in statistics]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_STEPS):
                learner.zero_grad(set_to_none=True)
                self._step()
            for tensor, saved in zip(statistics, before, strict=True):
                tensor.copy_(saved)
            # Captured with gradients set, backward would add to them at every replay; without, it writes them.
            learner.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.outputs = self._step()
        self.gradients = [(parameter, parameter.grad) for parameter in parameters]

    def fits(self, rollout: Rollout) -> bool:
        """Does a rollout have the graph's shape and stages?"""
        return rollout.stages == self.inputs.stages and rollout.action.shape == self.inputs.action.shape

    def __call__(self, rollout: Rollout) -> tuple[Losses, Metrics]:
        """Plain losses and diagnostics of a rollout; sets the parameters' gradients. The next call overwrites all."""
        tree.copy_(self.inputs, rollout)
        self.graph.replay()
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        return self.outputs

    def _step(self) -> tuple[Losses, Metrics]:
        with self.autocast():
            losses, metrics = self.learner(self.inputs)
        total_loss(losses, self.learner.objective.weights(self.inputs.stages)).backward()
        commit_norms(self.learner)
        return {name: loss.detach() for name, loss in losses.items()}, metrics
