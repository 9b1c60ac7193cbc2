"""The state of B worlds."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


@dataclass
class State:
    """All that changes in B worlds. Images and results are functions of it."""

    position: np.ndarray
    """The agents' x and y, (B, 2)."""
    rotation: np.ndarray
    """Degrees in [0, 360), (B,)."""
    standing: np.ndarray
    """(B,) bool."""
    open: np.ndarray
    """Per openable, (B, max openables of any room) bool."""
    goal: np.ndarray
    """The goal object's index in GOALS, (B,); -1 for none."""
    pose: np.ndarray
    """The goal object's center and quaternion, (B, 7)."""
    held: np.ndarray
    """Whether the goal object is in the hand, (B,) bool."""

    def copy(self) -> State:
        return State(*(getattr(self, f.name).copy() for f in fields(self)))


def initial_state(positions: np.ndarray, openables: int) -> State:
    """Agents standing at positions (B, 2), facing north; all openables closed, no goal objects."""
    count = len(positions)
    pose = np.tile([0.0, 0, 0, 1, 0, 0, 0], (count, 1))
    closed = np.zeros((count, openables), bool)
    standing, no_goal = np.ones(count, bool), np.full(count, -1)
    return State(positions.copy(), np.zeros(count), standing, closed, no_goal, pose, np.zeros(count, bool))
