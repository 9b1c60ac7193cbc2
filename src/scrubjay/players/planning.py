"""Shortest ways on a lattice: from a place, by steps, quarter turns and standing up or crouching, to others.

Places are (x, y, quarter, height): cells of a window of the lattice, turns clockwise from the lattice's own north, and
0 for crouching, 1 for standing. `passable` (X, Y, 4) says where a step in each compass direction leads on.
"""

from __future__ import annotations

import numpy as np

from scrubjay.game.actions import action_index
from scrubjay.rooms.directions import COMPASS, QUARTERS

Spot = tuple[int, int, int, int]
AHEAD, LEFT, RIGHT = (action_index(f"Move{side}") for side in ("Ahead", "Left", "Right"))
TURN_LEFT, TURN_RIGHT = action_index("RotateLeft"), action_index("RotateRight")
CROUCH, STAND = action_index("Crouch"), action_index("Stand")
STEPS = {AHEAD: 0, RIGHT: 1, LEFT: 3}
"""By how many quarters the direction of a step differs from where the player faces; nobody steps back."""


def direction(action: int, quarter: int) -> int:
    """The compass direction (0 to 3) of a step."""
    return (quarter + STEPS[action]) % QUARTERS


def plan(passable: np.ndarray, start: Spot, gain: np.ndarray) -> list[int]:
    """The actions to the place with the most gain (X, Y, 4, 2) for each step of the way; none if no gain is reached.

    With equal gains that is a nearest one. The start itself does not count.
    """
    away = np.full(gain.shape, -1, np.int16)
    wave = np.zeros(gain.shape, bool)
    wave[start] = True
    away[start] = 0
    best, found, most = 0.0, start, float(gain.max(initial=0))
    step = 0
    # Nothing further away can be worth more than the most gain for one more step.
    while best < most / (step + 1):
        step += 1
        wave = _spread(wave, passable) & (away < 0)
        if not wave.any():
            break
        away[wave] = step
        here = np.where(wave, gain, 0)
        top = int(here.argmax())
        if here.flat[top] / step > best:
            x, y, quarter, height = map(int, np.unravel_index(top, gain.shape))
            best, found = float(here.flat[top]) / step, (x, y, quarter, height)
    return _back(away, passable, found)


def _spread(wave: np.ndarray, passable: np.ndarray) -> np.ndarray:
    """The places (X, Y, 4, 2) that one action leads to from those of a wave."""
    onward = wave[:, :, :, ::-1] | np.roll(wave, 1, 2) | np.roll(wave, -1, 2)
    for compass, (dx, dy) in enumerate(COMPASS.tolist()):
        leaving = wave & passable[:, :, compass, None, None]
        leaving[:, :, (compass + 2) % QUARTERS] = False
        source, target = _shifted(dx, dy)
        onward[target] |= leaving[source]
    return onward


def _shifted(dx: int, dy: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Windows of an array such that the second lies (dx, dy) further than the first."""
    ends = {-1: (slice(1, None), slice(None, -1)), 0: (slice(None), slice(None)), 1: (slice(None, -1), slice(1, None))}
    (from_x, to_x), (from_y, to_y) = ends[dx], ends[dy]
    return (from_x, from_y), (to_x, to_y)


def _back(away: np.ndarray, passable: np.ndarray, target: Spot) -> list[int]:
    """The actions of a way that the distances `away` tell of, found from its end."""
    way: list[int] = []
    x, y, quarter, height = target
    while away[x, y, quarter, height] > 0:
        before = away[x, y, quarter, height] - 1
        for action, (px, py, q, h) in _sources(x, y, quarter, height):
            if not (0 <= px < away.shape[0] and 0 <= py < away.shape[1]) or away[px, py, q, h] != before:
                continue
            if action in STEPS and not passable[px, py, direction(action, q)]:
                continue
            way.append(action)
            x, y, quarter, height = px, py, q, h
            break
    return way[::-1]


def _sources(x: int, y: int, quarter: int, height: int) -> list[tuple[int, Spot]]:
    """From where, and with which actions, one may have come to a place."""
    found: list[tuple[int, Spot]] = []
    for action in STEPS:
        dx, dy = COMPASS[direction(action, quarter)].tolist()
        found.append((action, (x - dx, y - dy, quarter, height)))
    found.append((TURN_RIGHT, (x, y, (quarter - 1) % QUARTERS, height)))
    found.append((TURN_LEFT, (x, y, (quarter + 1) % QUARTERS, height)))
    found.append((STAND if height else CROUCH, (x, y, quarter, 1 - height)))
    return found
