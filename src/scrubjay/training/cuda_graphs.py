"""A learner's losses and their gradients as one CUDA graph: thousands of small kernels that are launched as a whole.

A sequence goes through the recurrent networks step by step, and back again. Launching all that takes the CPU longer
than it takes the GPU unless batches are huge, and small batches learn more from as many steps.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from scrubjay import tree
from scrubjay.agent.normalization import commit_norms, running_norms
from scrubjay.training.actor import TRIES
from scrubjay.training.actor_critic import Losses, Metrics, total_loss
from scrubjay.training.learner import Learner
from scrubjay.training.rollout import Rollout


class CudaGraphLearner:
    """Losses of rollouts that all have the shape and the stages of the first, and the gradients of their sum.

    What the agent watches becomes usual as a part of it.
    """

    def __init__(self, learner: Learner, half: Callable[[], torch.autocast], rollout: Rollout) -> None:
        """Keeps the rollout's tensors as its own inputs. Changes nothing of the agent but its gradients."""
        self.learner, self.half, self.inputs = learner, half, rollout
        parameters = list(learner.parameters())
        usual = [tensor for part in running_norms(learner) for tensor in (part.mean, part.variance, part.batches)]
        before = [tensor.clone() for tensor in usual]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(TRIES):
                learner.zero_grad(set_to_none=True)
                self._step()
            for tensor, was in zip(usual, before, strict=True):
                tensor.copy_(was)
            # Gradients that are there would be added to: only the first ones are written anew each time.
            learner.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=aside):
            self.outputs = self._step()
        self.gradients = [(parameter, parameter.grad) for parameter in parameters]

    def fits(self, rollout: Rollout) -> bool:
        """Can the recording be played with this?"""
        return rollout.stages == self.inputs.stages and rollout.action.shape == self.inputs.action.shape

    def __call__(self, rollout: Rollout) -> tuple[Losses, Metrics]:
        """Plain losses and diagnostics of a rollout; sets the parameters' gradients. The next call overwrites all."""
        tree.copy_(self.inputs, rollout)
        self.graph.replay()
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        return self.outputs

    def _step(self) -> tuple[Losses, Metrics]:
        with self.half():
            losses, metrics = self.learner(self.inputs)
        total_loss(losses, self.learner.objective.weights(self.inputs.stages)).backward()
        commit_norms(self.learner)
        return {name: loss.detach() for name, loss in losses.items()}, metrics
