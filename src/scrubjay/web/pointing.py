"""Pointing at a picture: which action opens what is there, and which moves bring the hand there.

People point at pixels, agents at the 49 cells of the image. What a person points at is opened by the cell whose action
opens that very thing, so that people have the agents' actions and no others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.sim import cells
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.physics import HAND_STEP
from scrubjay.sim.pose import REACH, cameras, hand_directions, reach
from scrubjay.sim.world import HAND_MOVES
from scrubjay.web.seen_map import points
from scrubjay.web.trial import FIRST_TARGET, NotAllowedError, Trial

NEAR = 5
"""Pixels, in images of 224, within which a finger may miss."""
CLEARANCE = 0.03
"""Metres above what is pointed at that the object's lower end is brought to."""
MOST_MOVES = 24
WORTH = 0.02
"""Metres: a move must bring the hand nearer by this much."""


def open_action_at(trial: Trial, x: float, y: float) -> str:
    """The OpenAt action for the thing at image fraction (x, y); NotAllowedError says why there is none."""
    world, view = trial.game.world, trial.game.look()
    row, column = pixel(world.size, x, y)
    number = _openable_near(trial, row, column)
    if number is None:
        raise NotAllowedError("Nothing opens there.")
    if trial.state.open[0, number]:
        raise NotAllowedError("It is open already. Close shuts everything within reach.")
    found, _ = cells.openables_at_cells(view.ids, world.openable_of_thing.to(view.ids.device))
    rows, columns = np.nonzero(found[0].cpu().numpy() == number)
    if not len(rows):
        raise NotAllowedError("Step or turn a little, so that more of it is in the picture.")
    cell = world.size / cells.CELLS
    nearest = np.hypot((rows + 0.5) * cell - row, (columns + 0.5) * cell - column).argmin()
    return f"OpenAt|{rows[nearest] + 1},{columns[nearest] + 1}"


def pixel(size: int, x: float, y: float) -> tuple[int, int]:
    """Row and column of a point of the picture."""
    return min(int(y * size), size - 1), min(int(x * size), size - 1)


def _openable_near(trial: Trial, row: int, column: int) -> int | None:
    """The number of the openable at a pixel or nearest to it."""
    world, ids = trial.game.world, trial.game.look().ids[0].cpu().numpy()
    reach_ = max(1, round(NEAR * world.size / 224))
    top, left = max(row - reach_, 0), max(column - reach_, 0)
    part = ids[top : row + reach_ + 1, left : column + reach_ + 1].astype(int)
    openable = world.openable_of_thing[0].cpu().numpy()[part]
    rows, columns = np.nonzero(openable >= 0)
    if not len(rows):
        return None
    nearest = np.hypot(rows + top - row, columns + left - column).argmin()
    return int(openable[rows[nearest], columns[nearest]])


def hand_target(trial: Trial, x: float, y: float) -> np.ndarray:
    """Object center (3,) that rests on the surface at image fraction (x, y); NotAllowedError if out of reach."""
    world, view = trial.game.world, trial.game.look()
    row, column = pixel(world.size, x, y)
    if bool(world.goal_mask(view)[0, row, column]):
        raise NotAllowedError("Point at where it should go, not at the object itself.")
    depth = view.depth[0].cpu().numpy()
    point = points(trial.state, depth)[row, column]
    if depth[row, column] <= 0 or reach(trial.state.position[0], point) > REACH:
        raise NotAllowedError("That is too far away: an arm reaches 1.5 meters.")
    return point + [0, 0, GOAL_BOXES[trial.deal.goal][2] / 2 + CLEARANCE]


def move_hand_to(trial: Trial, x: float, y: float, take: Callable[[str], bool]) -> None:
    """Takes the steps that bring the hand to a point of the picture, as near as they can."""
    target = hand_target(trial, x, y)
    if trial.game.stage[0] == Stage.OH:
        row, column = pixel(cells.CELLS, x, y)
        take(f"PlaceAt|0,{row + 1},{column + 1}" if not trial.game.placed[0] else FIRST_TARGET)
    ways = hand_directions(trial.state.rotation[0])
    eye, _ = cameras(trial.state.position[0], trial.state.rotation[0], trial.state.standing[0])
    line = (target - eye) / np.linalg.norm(target - eye)

    def cost(at: np.ndarray) -> np.ndarray:
        """How far (n, 3) are from the target, and off the line of sight, which is free all the way."""
        off = at - eye - ((at - eye) @ line)[:, None] * line
        return np.linalg.norm(at - target, axis=1) + np.linalg.norm(off, axis=1)

    blocked: set[int] = set()
    for _ in range(MOST_MOVES):
        here = trial.state.pose[0, :3].copy()
        gain = cost(here[None])[0] - cost(here + HAND_STEP * ways)
        gain[list(blocked)] = -1
        best = int(gain.argmax())
        if gain[best] < WORTH:
            return
        if take(f"MoveHand{HAND_MOVES[best].capitalize()}"):
            blocked.clear()
        else:
            blocked.add(best)
