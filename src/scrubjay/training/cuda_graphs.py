"""Losses and gradients as one CUDA graph: thousands of small kernels, launched as a whole.

Recurrent networks run over a sequence step by step, and back. Unless batches are huge, launching all that takes the CPU
longer than it takes the GPU, and small batches learn more from as many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from scrubjay import tree
from scrubjay.agent.mental_graphs import CAPTURE_MODE
from scrubjay.agent.normalization import commit_norms, running_norms
from scrubjay.training.actor import WARMUP_STEPS
from scrubjay.training.actor_critic import Losses, Metrics, Weights, total_loss

Batch = TypeVar("Batch")


class CudaGraphLearner(Generic[Batch]):
    """Losses and gradients of batches that all have the structure and the shapes of the first.

    Running statistics are committed as part of the graph.
    """

    def __init__(
        self,
        agent: nn.Module,
        losses: Callable[[Batch], tuple[Losses, Metrics]],
        weights: Weights,
        autocast: Callable[[], torch.autocast],
        batch: Batch,
        committed: nn.Module | None = None,
    ) -> None:
        """`losses` gives a batch's plain losses and diagnostics, and never synchronizes with the device.

        Keeps the batch's tensors as static inputs. Changes nothing of the agent but its gradients. `committed` is the
        part of the agent whose running statistics are committed, by default all of it.
        """
        self.losses, self.weights, self.autocast, self.inputs = losses, weights, autocast, batch
        self.committed = committed or agent
        statistics = [tensor for norm in running_norms(agent) for tensor in (norm.mean, norm.variance, norm.batches)]
        before = [tensor.clone() for tensor in statistics]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_STEPS):
                agent.zero_grad(set_to_none=True)
                self._step()
            for tensor, saved in zip(statistics, before, strict=True):
                tensor.copy_(saved)
            # Captured with gradients set, backward would add to them at every replay; without, it writes them.
            agent.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode=CAPTURE_MODE):
            self.outputs = self._step()
        self.gradients = [(parameter, parameter.grad) for parameter in agent.parameters()]

    def fits(self, batch: Batch, weights: Weights) -> bool:
        """Does a batch have the graph's structure and shapes, and do its losses have the same weights?"""
        return weights == self.weights and signature(batch) == signature(self.inputs)

    def __call__(self, batch: Batch) -> tuple[Losses, Metrics]:
        """Plain losses and diagnostics of a batch; sets the parameters' gradients. The next call overwrites all."""
        tree.copy_(self.inputs, batch)
        self.graph.replay()
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        return self.outputs

    def _step(self) -> tuple[Losses, Metrics]:
        with self.autocast():
            losses, metrics = self.losses(self.inputs)
        total_loss(losses, self.weights).backward()
        commit_norms(self.committed)
        return {name: loss.detach() for name, loss in losses.items()}, metrics


def signature(batch: Any) -> tuple[Any, ...]:
    """What two batches of one graph have in common: shapes, and the stages that a rollout may have."""
    return getattr(batch, "stages", None), [leaf.shape for leaf in tree.leaves(batch)]
