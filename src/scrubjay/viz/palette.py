"""Colors of all pictures, charts and pages, as hex strings."""

from __future__ import annotations

from PIL import ImageColor

INK, PAPER, QUIET = "#262a32", "#faf9f6", "#6a6f7a"
"""Text, background, secondary text."""
RULE = "#ddd8cc"
"""Grid lines of charts and borders of tables."""
GREEN, VIOLET, ORANGE, RED, BLUE = "#78aa8c", "#8a7fb5", "#dfa04f", "#c8463c", "#2f69a8"
SERIES = ("#b9b3a6", ORANGE, GREEN, BLUE, VIOLET, RED)
"""Bars and curves, in this order."""
FAILED = "#b23a30"

FURNITURE, OUTLINE, OPENABLE, UNREACHABLE = "#d6cfc2", "#968e80", "#f0c480", "#e48278"
"""Things on a floor plan: fixed ones, their edges, openables, and openables that cannot be opened from anywhere."""
OBJECT = BLUE
"""The hidden object."""
HIDING_POSE = VIOLET
"""The pose that the hider chose in PS."""


def rgb(color: str) -> tuple[int, int, int]:
    """The channels of a hex color, 0 to 255."""
    red, green, blue = ImageColor.getrgb(color)[:3]
    return red, green, blue
