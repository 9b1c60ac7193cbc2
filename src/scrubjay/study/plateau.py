"""How the paper trains backbones and probes: Adam, whose rate falls when the validation loss stops falling (P 661)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat
from pydantic.dataclasses import dataclass
from torch.optim.lr_scheduler import ReduceLROnPlateau

from scrubjay.agent.config import CHECKED, explain_errors

Rate = Annotated[float, Field(gt=0, lt=1)]


@explain_errors
@dataclass(frozen=True, config=CHECKED)
class PlateauConfig:
    """The optimizer and its schedule, by default as in the paper, and ours where it is silent."""

    learning_rate: PositiveFloat = 1e-2
    """Adam's learning rate at the start."""
    beta1: Rate = 0.99
    """Adam's decay of the mean gradient."""
    beta2: Rate = 0.999
    """Adam's decay of the mean square."""
    weight_decay: NonNegativeFloat = 2e-6
    """Adam's weight decay."""
    factor: Rate = 0.1
    """The learning rate is multiplied by this when the validation loss stops falling."""
    patience: NonNegativeInt = 5
    """Epochs without a better validation loss before that."""
    threshold: NonNegativeFloat = 1e-4
    """Least absolute fall of the validation loss that counts as better; the paper names none."""
    min_learning_rate: PositiveFloat = 1e-4
    """Training ends when the learning rate falls below this: from the paper's at the third reduction."""

    def make_optimizer(self, parameters: Iterable[torch.nn.Parameter], capturable: bool = False) -> torch.optim.Adam:
        """Adam; fused on a GPU. `capturable`: its steps are captured in a CUDA graph."""
        parameters = list(parameters)
        return torch.optim.Adam(
            parameters, self.learning_rate, (self.beta1, self.beta2), weight_decay=self.weight_decay,
            fused=parameters[0].is_cuda, capturable=capturable,
        )  # fmt: skip

    def make_schedule(self, optimizer: torch.optim.Optimizer) -> ReduceLROnPlateau:
        return ReduceLROnPlateau(
            optimizer, factor=self.factor, patience=self.patience, threshold=self.threshold, threshold_mode="abs"
        )

    def is_over(self, optimizer: torch.optim.Optimizer) -> bool:
        """Is the learning rate too small to go on?"""
        # Less a little: products of the factor are not exact.
        return optimizer.param_groups[0]["lr"] < self.min_learning_rate * (1 - 1e-6)
