"""What the paper prints of its experiments on representations, to stand beside our figures.

Most of its numbers are only in figures that the text does not contain; these are all that it prints.
"""

from __future__ import annotations

from dataclasses import dataclass

SUBSTITUTES = {"efficientnet-lite0": "substitute for the paper's ImageNet encoder"}
"""Encoders that stand in for one of the paper's, and for which; every table says so."""


@dataclass(frozen=True)
class Printed:
    """One result as the paper words it."""

    result: str
    table: str
    """Which of our tables has the same: `static`, `natural`, `dynamic` or `odds`."""
    cache: str
    """Of its agent's representation."""
    others: str
    """Of the representations that it is compared with."""
    experiment: str = ""
    """The experiment in our table; empty where the table has but one."""


RESULTS = (
    Printed(
        "Synthetic images, seven tasks",
        "static",
        'better than auto-encoder, navigation and classification ("consistently outperforms")',
        'against ImageNet: no significant difference on 4 tasks, significantly better on "the remaining 2" (p < 0.01); '
        "which tasks, and what of the seventh, is not said",
    ),
    Printed(
        "Photographs: scenes, depth, walkable surfaces",
        "natural",
        "better than the baselines",
        '"begin to approach" ImageNet; numbers only in the figure',
    ),
    Printed("Contained in or behind a receptacle", "dynamic", "71.5 %", "next best 63.4 %", "contained"),
    Printed("Tracking behind an occluder", "dynamic", "64 %", "next best 59.6 %", "tracking"),
    Printed("Turning back to what vanished, log-odds", "odds", "0.08 ± 0.02", "0 by construction"),
    Printed("Was it seen before turning away", "dynamic", "only in the figure", "only in the figure", "rotation"),
    Printed("Free space", "dynamic", "84.92 ± 2.27 %", "lower; several stacks of four images come close", "space"),
)


def encoder_note(name: str) -> str:
    """What a table must say of an encoder; usually nothing."""
    return SUBSTITUTES.get(name, "")
