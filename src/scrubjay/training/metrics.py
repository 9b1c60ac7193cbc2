"""The rows of metrics.jsonl and their names in TensorBoard. `docs/metrics.md` explains every metric.

A row has groups of scalars: `losses` (of the optimizer steps), `charts` (speed, learning rates, episodic returns),
`reward` (mean per step) and `play` (of finished episodes). A scalar's full name is `group/name`, and names of a stage
begin with it: `losses/em/approx_kl`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

GROUPS = ("reward", "play", "charts", "losses", "validation")


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """A row's scalars by full name, as TensorBoard's writer takes them; those without a value are left out."""
    return {
        f"{group}/{name}": value for group in GROUPS for name, value in row.get(group, {}).items() if value is not None
    }


class MeanMetrics:
    """Running means of scalar tensors by name, on their device."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, ...], torch.Tensor] = {}
        """(2, n) for n names that come together: sums of their values and of the values' weights."""

    def add(self, values: Mapping[str, torch.Tensor], occurred: Mapping[str, torch.Tensor] | None = None) -> None:
        """Adds a batch's scalars; `occurred`: stage -> whether the batch has its steps.

        Batches without a stage's steps are left out of the means of its values, which begin with its name.
        """
        names = tuple(values)
        if not names:
            return
        one = torch.ones((), device=values[names[0]].device)
        weights = torch.stack([(occurred or {}).get(name.split("/")[0], one).float() for name in names])
        # One kernel for all names, not one for each.
        sums = torch.stack([torch.stack([value.detach().float() for value in values.values()]) * weights, weights])
        self._sums[names] = self._sums[names] + sums if names in self._sums else sums

    def means(self) -> dict[str, torch.Tensor]:
        """The means by name; undefined for a stage that did not occur in any batch."""
        totals: dict[str, torch.Tensor] = {}
        for names, sums in self._sums.items():
            for name, pair in zip(names, sums.unbind(1), strict=True):
                totals[name] = totals[name] + pair if name in totals else pair
        return {name: total / weight for name, (total, weight) in totals.items()}


def merge_means(sums: Sequence[Mapping[str, tuple[float, int]]], digits: int | None = None) -> dict[str, float]:
    """The means by name of sums with their numbers of values, such as those of several processes."""
    names = dict.fromkeys(name for each in sums for name in each)
    totals = {
        name: [sum(part) for part in zip(*(each[name] for each in sums if name in each), strict=True)] for name in names
    }
    means = {name: total / count for name, (total, count) in totals.items() if count}
    return means if digits is None else {name: round(mean, digits) for name, mean in means.items()}


def to_floats(values: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Scalar tensors as numbers: the host waits for the device once."""
    return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True)) if values else {}
