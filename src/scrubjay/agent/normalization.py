"""Normalization that keeps representations from collapsing while the agent learns to act.

The first gradients of actors and critics are the same in all games: larger values, fewer of the actions that mostly
fail. Adam moves every weight by its learning rate, so it meets them with all weights at once, and within dozens of
optimizer steps the component that all games share swamps the differences between them; units saturate and stay so.
Two things prevent that: inputs normalized by running statistics, and convolution filters with zero mean, which do not
respond to the mean of inputs that are all positive. `results/learning.md` has the ablations.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.fuse import fuse

MIN_RATE = 0.02
"""Least weight of a batch in the running statistics. Before, the k-th batch weighs 1 / k: a plain average."""
MIN_STD = 1e-3
CLIP = 5.0
"""Normalized values are clipped to +-CLIP."""


class RunningNorm(nn.Module):
    """Standardizes n features by their running mean and standard deviation, over games and time.

    `update` computes a batch's statistics, `commit` merges them into the running ones. The learner commits between two
    optimizer steps, so that acting and evaluating normalize alike until then. Starts as the identity, but for clipping.
    """

    mean: torch.Tensor
    """(n,)."""
    variance: torch.Tensor
    """(n,)."""
    batches: torch.Tensor
    """(): batches committed so far."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("variance", torch.ones(features))
        self.register_buffer("batches", torch.zeros(()))
        self._pending: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    @property
    def std(self) -> torch.Tensor:
        """(n,), at least MIN_STD."""
        return self.variance.sqrt().clamp(min=MIN_STD)

    def forward(self, x: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Standardizes x, whose features lie along `dim`, and clips it."""
        shape = [1] * x.ndim
        shape[dim] = -1
        return standardize(x, self.mean.view(shape), self.std.view(shape))

    def denormalize(self, x: torch.Tensor) -> torch.Tensor:
        """The inverse for x (..., n), without clipping."""
        return x * self.std + self.mean

    @torch.no_grad()
    def update(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> None:
        """Computes the statistics of a batch x (..., n) for the next `commit`, where `mask` (...,) is true."""
        x = x.to(self.mean.dtype).flatten(0, -2)
        weight = torch.ones_like(x[:, :1]) if mask is None else mask.flatten()[:, None].to(x.dtype)
        # Masked values may be anything, NaN too.
        x, count = torch.where(weight > 0, x, 0.0), weight.sum()
        mean = x.sum(0) / count.clamp(min=1)
        # Around the mean, not around 0: the square of a large mean would cancel a small variance.
        variance = ((x - mean) ** 2 * weight).sum(0) / count.clamp(min=1)
        self._pending = (mean, variance, count)

    @torch.no_grad()
    def commit(self) -> None:
        """Merges the last batch into the running statistics; no effect if it was empty or already committed."""
        if self._pending is None:
            return
        mean, variance, count = self._pending
        self._pending = None
        nonempty = (count > 0).to(mean.dtype)
        self.batches += nonempty
        rate = nonempty / self.batches.clamp(1, 1 / MIN_RATE)
        delta = mean - self.mean
        self.variance.lerp_(variance, rate).add_(rate * (1 - rate) * delta**2)
        self.mean.add_(rate * delta)


class IdentityNorm(nn.Module):
    """Stands in for a RunningNorm where there is none: changes nothing and keeps no statistics."""

    std = 1.0

    def forward(self, x: torch.Tensor, dim: int = -1) -> torch.Tensor:
        return x

    def denormalize(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def update(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> None:
        pass


Norm = RunningNorm | IdentityNorm


def make_norm(features: int, running: bool) -> Norm:
    """A RunningNorm of n features, or one that does nothing."""
    return RunningNorm(features) if running else IdentityNorm()


@fuse
def standardize(x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """(x - mean) / std, clipped to +-CLIP, in x's dtype."""
    return ((x - mean) / std).clamp(-CLIP, CLIP).to(x.dtype)


class CenteredConv2d(nn.Conv2d):
    """A convolution whose filters are centered to mean 0 before use."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        centered = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return F.conv2d(input, centered, self.bias, self.stride, self.padding)


def running_norms(module: nn.Module) -> list[RunningNorm]:
    """All RunningNorms in a module."""
    return [part for part in module.modules() if isinstance(part, RunningNorm)]


def commit_norms(module: nn.Module) -> None:
    """Commits the last batches of all RunningNorms in a module."""
    for norm in running_norms(module):
        norm.commit()
