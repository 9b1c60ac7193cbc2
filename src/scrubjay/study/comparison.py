"""Encoders compared on several tasks: the rows of a study's table and the marks of its figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from scrubjay.errors import StatisticsError
from scrubjay.study.bootstrap import DRAWS, Interval, loss_ratios, mean_losses
from scrubjay.study.contrasts import Contrast, against_control, all_pairs, holm
from scrubjay.study.loss_table import LossTable
from scrubjay.study.mixed_model import MixedModel, fit_mixed_model

SIGNIFICANCE = 0.01
"""The paper's level."""


@dataclass(frozen=True)
class Comparison:
    """One encoder on one task, beside the control. `contrast` is None for the control, and where no model fits."""

    task: str
    encoder: str
    loss: Interval
    """Mean over scenes of the scene's mean loss; 95 % bootstrap interval over scenes within type."""
    ratio: Interval
    """Relative to the control's, likewise: below 1 is better."""
    contrast: Contrast | None
    """Encoder minus control in the mixed model, Dunnett's adjustment over encoders, 99 % interval."""
    p_holm: float
    """The contrast's p-value, adjusted by Holm over this encoder's tasks too; NaN without a contrast."""
    note: str
    """What a reader must know of the model: the log link, or why there is none. Usually empty."""

    @property
    def significant(self) -> bool:
        """Whether the figure marks it: p < 0.01 over encoders, uncorrected over tasks, as in the paper."""
        return self.contrast is not None and self.contrast.p < SIGNIFICANCE

    def row(self) -> dict[str, str | float | bool]:
        """Flat, for a CSV file; NaN where there is no contrast."""
        nan = float("nan")
        c = self.contrast
        return {
            "task": self.task,
            "encoder": self.encoder,
            "loss": self.loss.estimate,
            "low": self.loss.low,
            "high": self.loss.high,
            "ratio": self.ratio.estimate,
            "ratio_low": self.ratio.low,
            "ratio_high": self.ratio.high,
            "difference": c.estimate if c else nan,
            "standard_error": c.standard_error if c else nan,
            "difference_low": c.low if c else nan,
            "difference_high": c.high if c else nan,
            "df": c.df if c else nan,
            "t": c.t if c else nan,
            "p": c.p if c else nan,
            "p_holm": self.p_holm,
            "significant": self.significant,
            "note": self.note,
        }


@dataclass(frozen=True)
class Statistics:
    """All statistics of a study."""

    comparisons: list[Comparison]
    """By task in the order given, then by encoder in alphabetical order."""
    pairs: dict[str, list[Contrast]]
    """By task: all pairs of encoders with Tukey's adjustment; none where no model fits."""
    models: dict[str, MixedModel]
    """By task; missing where no model fits."""


def compare_encoders(losses: Mapping[str, LossTable], control: str, draws: int = DRAWS, seed: int = 0) -> Statistics:
    """Compares the encoders of every task's table with the control.

    A task whose mixed model cannot be fitted (one scene, too few examples) keeps its bootstrap intervals, and its note
    says why. Bad tables raise before anything is computed.

    Args:
        losses: Test losses by task; each has the control and another encoder, in the same scenes.
        control: The encoder that others are compared with, the paper's ImageNet.
        draws: Of the bootstrap.
        seed: Of the bootstrap, and of the choice of examples where a scene has more than 50.
    """
    if not losses:
        raise StatisticsError("there is no task to compare encoders on")
    for task, table in losses.items():
        try:
            table.require(control)
        except StatisticsError as error:
            raise StatisticsError(f"{task}: {error}") from error
    comparisons: list[Comparison] = []
    pairs: dict[str, list[Contrast]] = {}
    models: dict[str, MixedModel] = {}
    for task, table in losses.items():
        means, ratios = mean_losses(table, draws, seed=seed), loss_ratios(table, control, draws, seed=seed)
        try:
            model = models[task] = fit_mixed_model(table, seed=seed)
        except StatisticsError as error:
            contrasts, note, pairs[task] = {}, f"no mixed model: {error}", []
        else:
            contrasts = {contrast.left: contrast for contrast in against_control(model, control)}
            note = f"log link, differences are log ratios: {model.reason}" if model.link == "log" else ""
            pairs[task] = all_pairs(model)
        for name in table.encoders:
            comparisons.append(
                Comparison(task, name, means[name], ratios[name], contrasts.get(name), float("nan"), note)
            )
    return Statistics(_over_tasks(comparisons), pairs, models)


def _over_tasks(comparisons: list[Comparison]) -> list[Comparison]:
    """The comparisons with Holm's p-values over each encoder's tasks."""
    adjusted = np.full(len(comparisons), np.nan)
    for name in {comparison.encoder for comparison in comparisons}:
        mine = [i for i, c in enumerate(comparisons) if c.encoder == name and c.contrast is not None]
        adjusted[mine] = holm([c.contrast.p for c in (comparisons[i] for i in mine) if c.contrast])
    return [replace(c, p_holm=float(p)) for c, p in zip(comparisons, adjusted, strict=True)]
