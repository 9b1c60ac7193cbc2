"""Pointing at the image: the action that opens the thing at a pixel, and the hand moves that reach a point.

People point at pixels, agents at the 7 x 7 cells of the image. A click is mapped to a cell whose OpenAt opens the thing
clicked, so people have the agents' action space and nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.sim import cells
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.physics import HAND_STEP
from scrubjay.sim.pose import REACH, cameras, hand_directions, reach
from scrubjay.sim.world import HAND_MOVES
from scrubjay.web.seen_map import backproject
from scrubjay.web.trial import DEFAULT_TARGET, NotAllowedError, Trial

CLICK_TOLERANCE = 5
"""Pixels, at an image size of 224, by which a click may miss a thing."""
CLEARANCE = 0.03
"""Meters between the surface pointed at and the object's lower end."""
MAX_HAND_MOVES = 24
MIN_GAIN = 0.02
"""Meters by which a hand move must reduce the cost."""
LABELS_SIZE, MAX_LABEL = 112, 255
"""The most pixels along a side of the labels that are sent to the page, and the largest label."""


@dataclass(frozen=True)
class Openable:
    """A visible thing that has something to open."""

    name: str
    x: float
    y: float
    """Image fraction of one of its pixels, near its middle."""
    opens: bool
    """Whether it is closed, within reach, and enough in view: a click would try to open it."""


def openables_in_view(trial: Trial) -> tuple[np.ndarray, list[Openable]]:
    """Labels (h, w) uint8, 1 + the number of the openable at each pixel or 0, and the openables, from left to right."""
    world, view = trial.game.world, trial.game.look()
    stride = max(1, world.size // LABELS_SIZE)
    table = world.openable_of_thing[0].cpu().numpy()
    at_pixel = table[view.ids[0, ::stride, ::stride].cpu().numpy().astype(int)]
    rows, columns = np.nonzero(at_pixel >= 0)
    owner = at_pixel[rows, columns]
    counts = np.bincount(owner)
    center = [np.bincount(owner, index) / np.maximum(counts, 1) for index in (rows, columns)]
    away = np.hypot(rows - center[0][owner], columns - center[1][owner])
    opens, compiled = set(_cells_that_open(trial)[2].tolist()), world.rooms[0]
    seen = []
    for openable in np.flatnonzero(counts).tolist():
        own = np.flatnonzero(owner == openable)
        middle = own[away[own].argmin()]
        x, y = (round((float(index[middle]) * stride + 0.5) / world.size, 4) for index in (columns, rows))
        name = _in_words(compiled.room.things[compiled.openables[openable].thing].type)
        seen.append((openable, Openable(name, x, y, openable in opens)))
    seen = sorted(seen, key=lambda entry: (entry[1].x, entry[1].y))[:MAX_LABEL]
    label = np.zeros(len(compiled.openables) + 1, np.uint8)  # The last is that of -1, of pixels without an openable.
    label[[openable for openable, _ in seen]] = np.arange(1, len(seen) + 1)
    return label[at_pixel], [entry for _, entry in seen]


@cache
def _in_words(type: str) -> str:
    """A type's name in words: GarbageCan becomes garbage can."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type).lower()


def _cells_that_open(trial: Trial) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and openables (n,) of the cells whose OpenAt finds something closed and within reach."""
    world, view = trial.game.world, trial.game.look()
    openables, _ = cells.openables_at_cells(view.ids, world.openable_of_thing.to(view.ids.device))
    rows, columns = np.nonzero(world.openable_cells(view)[0].cpu().numpy())
    return rows, columns, openables[0].cpu().numpy()[rows, columns]


def open_action_at(trial: Trial, x: float, y: float) -> str:
    """The OpenAt action for the thing at image fraction (x, y); NotAllowedError says why there is none."""
    world, view = trial.game.world, trial.game.look()
    row, column = pixel(world.size, x, y)
    openable = _openable_near(trial, row, column)
    if openable is None:
        raise NotAllowedError("Nothing opens there.")
    if trial.state.open[0, openable]:
        raise NotAllowedError("That is already open. “Close nearby” shuts everything within reach.")
    rows, columns, found = _cells_that_open(trial)
    if openable in found:
        rows, columns = rows[found == openable], columns[found == openable]
    else:
        # Too far away, or too little of it in view: the first is tried and fails, the second has no action.
        openables, _ = cells.openables_at_cells(view.ids, world.openable_of_thing.to(view.ids.device))
        rows, columns = np.nonzero(openables[0].cpu().numpy() == openable)
    if not len(rows):
        raise NotAllowedError("Step or turn a little so that more of it is in view.")
    cell = world.size / cells.CELLS
    nearest = np.hypot((rows + 0.5) * cell - row, (columns + 0.5) * cell - column).argmin()
    return f"OpenAt|{rows[nearest] + 1},{columns[nearest] + 1}"


def pixel(size: int, x: float, y: float) -> tuple[int, int]:
    """Row and column of image fraction (x, y)."""
    return min(int(y * size), size - 1), min(int(x * size), size - 1)


def _openable_near(trial: Trial, row: int, column: int) -> int | None:
    """Index of the openable at a pixel, or of the nearest one within the tolerance."""
    world, ids = trial.game.world, trial.game.look().ids[0].cpu().numpy()
    radius = max(1, round(CLICK_TOLERANCE * world.size / 224))
    top, left = max(row - radius, 0), max(column - radius, 0)
    window = ids[top : row + radius + 1, left : column + radius + 1].astype(int)
    openable = world.openable_of_thing[0].cpu().numpy()[window]
    rows, columns = np.nonzero(openable >= 0)
    if not len(rows):
        return None
    nearest = np.hypot(rows + top - row, columns + left - column).argmin()
    return int(openable[rows[nearest], columns[nearest]])


def hand_target(trial: Trial, x: float, y: float) -> np.ndarray:
    """Object center (3,) just above the surface at image fraction (x, y); NotAllowedError if out of reach."""
    world, view = trial.game.world, trial.game.look()
    row, column = pixel(world.size, x, y)
    if bool(world.goal_mask(view)[0, row, column]):
        raise NotAllowedError("Point at where it should go, not at the object itself.")
    depth = view.depth[0].cpu().numpy()
    point = backproject(trial.state, depth)[row, column]
    if depth[row, column] <= 0 or reach(trial.state.position[0], point) > REACH:
        raise NotAllowedError("That is too far away: you can reach 1.5 meters.")
    return point + [0, 0, GOAL_BOXES[trial.spec.goal][2] / 2 + CLEARANCE]


def move_hand_to(trial: Trial, x: float, y: float, take: Callable[[str], bool]) -> None:
    """Takes greedy MoveHand steps towards image fraction (x, y) until none gets closer."""
    target = hand_target(trial, x, y)
    if trial.game.stage[0] == Stage.OH:
        row, column = pixel(cells.CELLS, x, y)
        take(f"PlaceAt|0,{row + 1},{column + 1}" if not trial.game.placed[0] else DEFAULT_TARGET)
    directions = hand_directions(trial.state.rotation[0])
    eye, _ = cameras(trial.state.position[0], trial.state.rotation[0], trial.state.standing[0])
    sight = (target - eye) / np.linalg.norm(target - eye)

    def cost(points: np.ndarray) -> np.ndarray:
        """Distance of points (n, 3) to the target plus distance to the line of sight, which is free of obstacles."""
        offset = points - eye - ((points - eye) @ sight)[:, None] * sight
        return np.linalg.norm(points - target, axis=1) + np.linalg.norm(offset, axis=1)

    blocked: set[int] = set()
    for _ in range(MAX_HAND_MOVES):
        position = trial.state.pose[0, :3].copy()
        gain = cost(position[None])[0] - cost(position + HAND_STEP * directions)
        gain[list(blocked)] = -1
        best = int(gain.argmax())
        if gain[best] < MIN_GAIN:
            return
        if take(f"MoveHand{HAND_MOVES[best].capitalize()}"):
            blocked.clear()
        else:
            blocked.add(best)
