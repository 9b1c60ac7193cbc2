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
    cache: str
    """Of its agent's representation."""
    others: str
    """Of the representations that it is compared with."""
    experiment: str = ""
    """The experiment in our dynamic.csv; empty for static ones."""
    value: float | None = None
    """The agent's number, in the units of our tables, where there is one."""
    margin: float | None = None
    """Half of its 95 % interval."""


STATIC = (
    Printed(
        "Synthetic images, seven tasks (5.1, Fig. 5)",
        "consistently outperforms auto-encoder, navigation and classification",
        'against ImageNet: indistinguishable on 4 tasks, significantly better on "the remaining 2" (p < 0.01); which '
        "tasks, and what of the seventh, is not said",
    ),
)
NATURAL = (
    Printed(
        "Photographs: scene classes, depth, walkable surfaces (5.1, Fig. 6)",
        "outperforms the baselines",
        '"begins to approach" ImageNet; numbers only in the figure',
    ),
)
DYNAMIC = (
    Printed("Contained in or behind a receptacle", "71.5 %", "next best 63.4 %", "contained", 0.715),
    Printed("Tracking behind an occluder", "64 %", "next best 59.6 %", "tracking", 0.64),
    Printed("Turning back to a vanished object, log-odds", "0.08 +- 0.02", "0 by construction", "rotation", 0.08, 0.02),
    Printed("Free space", "84.92 +- 2.27 %", "lower; several stacks of 4 frames come close", "space", 0.8492, 0.0227),
)
STUDIES = {"static": STATIC, "natural": NATURAL, "dynamic": DYNAMIC}
"""By the name of a study's table."""


def encoder_note(name: str) -> str:
    """What a table must say of an encoder; usually nothing."""
    return SUBSTITUTES.get(name, "")
