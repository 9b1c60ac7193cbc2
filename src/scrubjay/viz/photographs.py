"""The page of photographs: each with the depth that every encoder's decoder sees in it, on one color scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scrubjay.files import write_atomically
from scrubjay.study.photographs import Photograph, rank_correlation
from scrubjay.study.pictures import resize_labels
from scrubjay.study.static import PLAIN
from scrubjay.viz.page import Figure, load_template
from scrubjay.viz.picture import depth_colors

FAR = 6.0
"""Meters that are drawn darkest."""
NEAR = 1e-3
"""Meters that predictions are raised to: black means unknown."""


@dataclass(frozen=True)
class _Strip:
    """What is shown of one photograph."""

    photograph: Photograph
    first: list[Figure]
    """The photograph, and its measured depth if there is one."""
    rows: list[tuple[str, list[Figure]]]
    """By decoder kind."""


def write_photographs_page(
    path: Path,
    photographs: Sequence[Photograph],
    depths: Mapping[str, Mapping[str, np.ndarray]],
    facts: str,
) -> None:
    """Writes the page of predictions (n, H, W) by decoder kind and encoder; `facts` is the line under the title."""
    strips, table = [], []
    for place, photograph in enumerate(photographs):
        first = [Figure(photograph.image, "photograph")]
        if photograph.depth is not None:
            first.append(Figure(depth_colors(photograph.depth, FAR), f"true depth, {photograph.note}"))
        rows = []
        for kind, by_encoder in depths.items():
            figures = []
            for name, predicted in by_encoder.items():
                depth, words = predicted[place], name
                if photograph.depth is not None:
                    correlation = rank_correlation(depth, photograph.depth)
                    words += f": {_number(correlation)}"
                    table.append((photograph.name, kind, name, _number(correlation)))
                figures.append(Figure(_drawn(depth), words))
            if figures:
                rows.append((_title(kind), figures))
        strips.append(_Strip(photograph, first, rows))
    scale = Figure(depth_colors(np.tile(np.linspace(0.01, FAR, 300), (14, 1)), FAR), "")
    page = load_template("photographs_page.html").render(
        title="Depth in photographs", facts=facts, strips=strips, scale=scale, far=FAR,
        table=[(name, _title(kind), encoder, value) for name, kind, encoder, value in table],
    )  # fmt: skip
    write_atomically(path, page)


def _drawn(depth: np.ndarray) -> np.ndarray:
    return depth_colors(resize_labels(np.maximum(depth, NEAR), 224), FAR)


def _title(kind: str) -> str:
    return "from 7 x 7 features alone" if kind == PLAIN else "with skip connections"


def _number(value: float) -> str:
    return "constant" if math.isnan(value) else f"{value:+.2f}"
