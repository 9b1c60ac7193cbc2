"""Shortest paths on the lattice by steps, quarter turns, standing up and crouching.

`passable` (X, Y, 4) bool says from which cells a step in each compass direction succeeds.
"""

from __future__ import annotations

import numpy as np

from scrubjay.game.actions import action_index
from scrubjay.rooms.directions import COMPASS, QUARTERS

LatticePose = tuple[int, int, int, int]
"""x, y, quarter turns clockwise from the lattice's north, and height: 0 crouching, 1 standing."""
AHEAD, LEFT, RIGHT = (action_index(f"Move{side}") for side in ("Ahead", "Left", "Right"))
TURN_LEFT, TURN_RIGHT = action_index("RotateLeft"), action_index("RotateRight")
CROUCH, STAND = action_index("Crouch"), action_index("Stand")
STEPS = {AHEAD: 0, RIGHT: 1, LEFT: 3}
"""Quarter turns from the heading to the direction of each step action; there is no step back."""


def step_direction(action: int, quarter: int) -> int:
    """The compass direction (0 to 3) of a step action at a heading."""
    return (quarter + STEPS[action]) % QUARTERS


def plan_path(passable: np.ndarray, start: LatticePose, gain: np.ndarray) -> list[int]:
    """The actions to the pose with the most gain (X, Y, 4, 2) per step; empty if no gain is reachable.

    Of equal gains the nearest wins. The start itself does not count.
    """
    distance = np.full(gain.shape, -1, np.int16)
    frontier = np.zeros(gain.shape, bool)
    frontier[start] = True
    distance[start] = 0
    best, target, max_gain = 0.0, start, float(gain.max(initial=0))
    step = 0
    # The largest gain divided by the next distance bounds what is still to be reached.
    while best < max_gain / (step + 1):
        step += 1
        frontier = _expand(frontier, passable) & (distance < 0)
        if not frontier.any():
            break
        distance[frontier] = step
        gained = np.where(frontier, gain, 0)
        top = int(gained.argmax())
        if gained.flat[top] / step > best:
            x, y, quarter, height = map(int, np.unravel_index(top, gain.shape))
            best, target = float(gained.flat[top]) / step, (x, y, quarter, height)
    return _backtrack(distance, passable, target)


def _expand(frontier: np.ndarray, passable: np.ndarray) -> np.ndarray:
    """The poses (X, Y, 4, 2) one action away from a frontier."""
    reached = frontier[:, :, :, ::-1] | np.roll(frontier, 1, 2) | np.roll(frontier, -1, 2)
    for compass, (dx, dy) in enumerate(COMPASS.tolist()):
        leaving = frontier & passable[:, :, compass, None, None]
        leaving[:, :, (compass + 2) % QUARTERS] = False
        source, target = _shift_windows(dx, dy)
        reached[target] |= leaving[source]
    return reached


def _shift_windows(dx: int, dy: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Two windows of an array, the second shifted by (dx, dy)."""
    ends = {-1: (slice(1, None), slice(None, -1)), 0: (slice(None), slice(None)), 1: (slice(None, -1), slice(1, None))}
    (from_x, to_x), (from_y, to_y) = ends[dx], ends[dy]
    return (from_x, from_y), (to_x, to_y)


def _backtrack(distance: np.ndarray, passable: np.ndarray, target: LatticePose) -> list[int]:
    """The actions of a shortest path to a target, from the distances of a search."""
    path: list[int] = []
    x, y, quarter, height = target
    while distance[x, y, quarter, height] > 0:
        before = distance[x, y, quarter, height] - 1
        for action, (px, py, q, h) in _predecessors(x, y, quarter, height):
            if not (0 <= px < distance.shape[0] and 0 <= py < distance.shape[1]) or distance[px, py, q, h] != before:
                continue
            if action in STEPS and not passable[px, py, step_direction(action, q)]:
                continue
            path.append(action)
            x, y, quarter, height = px, py, q, h
            break
    return path[::-1]


def _predecessors(x: int, y: int, quarter: int, height: int) -> list[tuple[int, LatticePose]]:
    """The actions that may have led to a pose, each with the pose before it."""
    poses: list[tuple[int, LatticePose]] = []
    for action in STEPS:
        dx, dy = COMPASS[step_direction(action, quarter)].tolist()
        poses.append((action, (x - dx, y - dy, quarter, height)))
    poses.append((TURN_RIGHT, (x, y, (quarter - 1) % QUARTERS, height)))
    poses.append((TURN_LEFT, (x, y, (quarter + 1) % QUARTERS, height)))
    poses.append((STAND if height else CROUCH, (x, y, quarter, 1 - height)))
    return poses
