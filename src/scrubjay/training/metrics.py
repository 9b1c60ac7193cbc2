"""The rows of metrics.jsonl and their names in TensorBoard. `docs/metrics.md` explains every metric.

A row has groups of scalars: `losses` (of the optimizer steps), `charts` (speed, learning rates, episodic returns),
`reward` (mean per step) and `play` (of finished episodes). A scalar's full name is `group/name`, and names of a stage
begin with it: `losses/em/approx_kl`.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        self._sums: dict[str, torch.Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, torch.Tensor]) -> None:
        for name, value in values.items():
            value = value.detach().float()
            self._sums[name] = self._sums[name] + value if name in self._sums else value.clone()
            self._counts[name] = self._counts.get(name, 0) + 1

    def means(self) -> dict[str, torch.Tensor]:
        return {name: total / self._counts[name] for name, total in self._sums.items()}


def to_floats(values: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Scalar tensors as numbers: the host waits for the device once."""
    return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True)) if values else {}
