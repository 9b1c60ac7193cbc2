"""Refuses losses and gradients that are not finite."""

from __future__ import annotations

import math

import torch

from scrubjay.errors import NotFiniteError
from scrubjay.training.actor_critic import Losses

GRADIENT = "the gradient"


class FiniteCheck:
    """Raises NotFiniteError, which holds the batch, if an optimizer step's losses or gradient are not finite.

    On a GPU it does so one step late: while the GPU is at one step, the host prepares the next, and does not wait for
    losses. The parameters are lost by then; the last checkpoint is intact.
    """

    def __init__(self) -> None:
        self._pending: tuple[torch.cuda.Event | None, torch.Tensor, list[str], object] | None = None

    def add(self, losses: Losses, norm: torch.Tensor, batch: object) -> None:
        """Checks the step before, and notes a step's losses and its gradient's norm."""
        self.check()
        values = torch.stack([*(loss.detach().float() for loss in losses.values()), norm.detach().float()])
        names, event = [*losses, GRADIENT], None
        if values.is_cuda:
            # Copied, since a CUDA graph's losses are overwritten by its next.
            values, event = values.to("cpu", non_blocking=True), torch.cuda.Event()
            event.record()
        self._pending = event, values, names, batch
        if event is None:
            self.check()

    def check(self) -> None:
        """Checks the last step that was noted."""
        if self._pending is None:
            return
        (event, values, names, batch), self._pending = self._pending, None
        if event is not None:
            event.synchronize()
        if not torch.isfinite(values).all():
            wrong = [name for name, value in zip(names, values.tolist(), strict=True) if not math.isfinite(value)]
            # A loss that is not finite explains a gradient that is not.
            raise NotFiniteError([name for name in wrong if name != GRADIENT] or wrong, batch)
