"""What keeps networks from forgetting to look while they learn to act.

The first demands of actors and critics are the same in all games: larger values, fewer of the actions that mostly fail.
An optimizer like Adam, which moves every weight by its rate, meets them with all weights at once, and within some dozen
steps what all games have in common drowns what differs between them; units that are always on, or always off, stay so.
Two things stand against that: numbers that are measured by how they usually are, and filters without a mean, which
cannot answer to the mean of inputs that are all positive. `results/learning.md` shows what each of them does.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

SLOWEST = 0.02
"""The least weight of a batch in what is usual; the first ones weigh more: the k-th 1 / k, like each before it."""
LEAST = 1e-3
"""Deviations count as no smaller than this."""
FAR = 5.0
"""Deviations from the mean beyond which nothing is further away."""


class RunningNorm(nn.Module):
    """The mean and the deviation of n numbers, over games and time, and numbers in these terms.

    A pass `watch`es its numbers. They become part of what is usual with `adapt`, which whoever learns calls between two
    steps of the optimizer: until then the same numbers give the same. Before the first time nothing is changed.
    """

    mean: torch.Tensor
    variance: torch.Tensor
    batches: torch.Tensor

    def __init__(self, count: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(count))
        self.register_buffer("variance", torch.ones(count))
        self.register_buffer("batches", torch.zeros(()))
        self._seen: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    @property
    def deviation(self) -> torch.Tensor:
        """(n,)."""
        return self.variance.sqrt().clamp(min=LEAST)

    def forward(self, numbers: torch.Tensor, axis: int = -1) -> torch.Tensor:
        """Numbers with n along an axis, in deviations from their mean."""
        shape = [1] * numbers.ndim
        shape[axis] = -1
        far = (numbers - self.mean.view(shape)) / self.deviation.view(shape)
        return far.clamp(-FAR, FAR).to(numbers.dtype)

    def back(self, numbers: torch.Tensor) -> torch.Tensor:
        """The other way: what numbers (..., n) in deviations from the mean stand for."""
        return numbers * self.deviation + self.mean

    @torch.no_grad()
    def watch(self, numbers: torch.Tensor, chosen: torch.Tensor | None = None) -> None:
        """Looks at numbers (..., n), or at those that are `chosen` (...,), for the next `adapt`."""
        numbers = numbers.to(self.mean.dtype).flatten(0, -2)
        weight = torch.ones_like(numbers[:, :1]) if chosen is None else chosen.flatten()[:, None].to(numbers.dtype)
        # What is not chosen may be anything, NaN too.
        numbers, count = torch.where(weight > 0, numbers, 0.0), weight.sum()
        mean = numbers.sum(0) / count.clamp(min=1)
        # Around the mean, not around 0: the square of a large mean would leave nothing of a small deviation.
        variance = ((numbers - mean) ** 2 * weight).sum(0) / count.clamp(min=1)
        self._seen = (mean, variance, count)

    @torch.no_grad()
    def adapt(self) -> None:
        """Makes what was watched last a part of what is usual."""
        if self._seen is None:
            return
        mean, variance, count = self._seen
        self._seen = None
        some = (count > 0).to(mean.dtype)
        self.batches += some
        rate = some / self.batches.clamp(1, 1 / SLOWEST)
        apart = mean - self.mean
        self.variance.lerp_(variance, rate).add_(rate * (1 - rate) * apart**2)
        self.mean.add_(rate * apart)


class CenterdConv2d(nn.Conv2d):
    """A convolution whose filters have mean 0, whatever their weights are."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        centerd = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return F.conv2d(input, centerd, self.bias, self.stride, self.padding)


def usual_parts(module: nn.Module) -> list[RunningNorm]:
    """All parts of a module that know what is usual."""
    return [part for part in module.modules() if isinstance(part, RunningNorm)]


def adapt(module: nn.Module) -> None:
    """Makes what all of a module's parts have watched a part of what is usual."""
    for part in usual_parts(module):
        part.adapt()
