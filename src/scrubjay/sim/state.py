"""All that changes in B worlds: a few numbers each."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np


@dataclass
class State:
    """The state of B worlds. Pictures and outcomes are functions of it."""

    position: np.ndarray
    """Of the agents, (B, 2): x and y."""
    rotation: np.ndarray
    """Degrees, (B,), from 0 up to 360."""
    standing: np.ndarray
    """(B,) bool."""
    open: np.ndarray
    """Which openables are, (B, openables of the room with most) bool."""
    goal: np.ndarray
    """The goal object's number in GOALS, (B,); -1 where there is none."""
    pose: np.ndarray
    """The goal object's center and quaternion, (B, 7)."""
    held: np.ndarray
    """Is the goal object in the hand, (B,) bool."""

    def copy(self) -> State:
        return State(*(getattr(self, f.name).copy() for f in fields(self)))


def initial_state(positions: np.ndarray, openables: int) -> State:
    """Agents stand at their positions (B, 2) and look north, everything is closed, no goal object is there."""
    count = len(positions)
    pose = np.tile([0.0, 0, 0, 1, 0, 0, 0], (count, 1))
    closed = np.zeros((count, openables), bool)
    upright, nothing = np.ones(count, bool), np.full(count, -1)
    return State(positions.copy(), np.zeros(count), upright, closed, nothing, pose, np.zeros(count, bool))
