"""A scripted hand: where an object would come to rest, and how to carry it there along the line of sight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.players.explorer import OPEN_ACTIONS
from scrubjay.players.perception import Percept
from scrubjay.players.policy_player import PolicyPlayer
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.physics import HAND_AHEAD, HAND_BELOW, HAND_STEP
from scrubjay.sim.pose import REACH, project, reach
from scrubjay.sim.world import HAND_MOVES

MOVES = tuple(action_index(f"MoveHand{name.capitalize()}") for name in HAND_MOVES)
LAY_DOWN = action_index("RotateHand|+X")
DROP = action_index("DropObject")
LEVEL_TOLERANCE = 0.02
"""Largest height difference in meters between neighboring pixels of a level surface."""
MAX_REST_HEIGHT = 1.7
HOVER = 0.05
"""Meters above its resting position at which the object is dropped."""
MAX_OFF_CENTER = 0.35
"""Largest distance in cells from a cell's center at which an object counts as resting there."""
MIN_DISTANCE, MAX_DISTANCE = 0.45, REACH - 0.1
"""Meters from the agent within which objects are put down."""
MIN_PROGRESS = 0.01
"""Decrease of the cost, in meters, for which the hand still moves."""
STALLED = 0.03
"""A movement of 0.1 m that gets less far than this has failed."""
MIN_PIXELS = 20
"""Visible pixels of the object from which it is located."""
MAX_MOVES = 40
"""Actions after which the object is dropped wherever it is."""
ON_TOP, CONTAINED, BEHIND = range(3)
BEHIND_OFFSET = 0.25
"""Meters behind the visible surface at which an object counts as behind it."""


@dataclass(frozen=True)
class DropTargets:
    """Where an object can be put down, at most one target per image cell: (n,) each."""

    row: np.ndarray
    column: np.ndarray
    rest: np.ndarray
    """(n, 3): where the object's center would rest."""
    pixel: np.ndarray
    """(n, 2): row and column of the surface below it, in the percept."""


def is_laid_down(goal: int) -> bool:
    """Whether the object is laid down before it is dropped: long ones topple anyway and fit nowhere upright."""
    width, depth, height, _ = GOAL_BOXES[GOALS[goal]]
    return height > 2 * max(width, depth)


def rest_height(goal: int) -> float:
    """Height of a goal object's center above the surface it rests on."""
    width, _, height, _ = GOAL_BOXES[GOALS[goal]]
    return (width if is_laid_down(goal) else height) / 2


def find_drop_targets(percept: Percept, goal: int) -> DropTargets:
    """Where on level surfaces in view and in reach a goal object could be put down, near the cells' centers."""
    height = percept.points[..., 2]
    level = (percept.ids >= 0) & (percept.ids != percept.goal) & (height < MAX_REST_HEIGHT)
    level &= maximum_filter(height, 3) - minimum_filter(height, 3) < LEVEL_TOLERANCE
    rows, columns = np.nonzero(minimum_filter(level, 3))
    rest = percept.points[rows, columns] + (0, 0, rest_height(goal))
    at = CELLS * project(percept.eye, percept.matrix, rest)
    off_center = np.abs(at % 1 - 0.5).max(1)
    distance = reach(percept.eye[:2], rest)
    good = (off_center < MAX_OFF_CENTER) & (at >= 0).all(1) & (at < CELLS).all(1)
    good &= (distance <= MAX_DISTANCE) & (distance >= MIN_DISTANCE)
    chosen = np.flatnonzero(good)[np.argsort(off_center[good], kind="stable")]
    cell = at[chosen].astype(int)
    _, first = np.unique(cell[:, 0] * CELLS + cell[:, 1], return_index=True)
    chosen, cell = chosen[first], cell[first]
    return DropTargets(cell[:, 0], cell[:, 1], rest[chosen], np.stack([rows[chosen], columns[chosen]], 1))


@dataclass
class Hand:
    """Carries the held object to a resting position and drops it. Remembers its actions, so they can be repeated."""

    rest: np.ndarray
    """(3,): where the object's center is to rest, in the player's frame."""
    goal: int
    actions: list[int] = field(default_factory=list)
    """Taken so far."""
    failed: set[int] = field(default_factory=set)
    """Movements that failed at the hand's present position."""
    position: np.ndarray | None = None
    """(3,): estimate of the object's center."""

    def act(self, percept: Percept, success: bool) -> int:
        """The next action, given what is seen and whether the last action succeeded."""
        action = self._choose(percept, success)
        self.actions.append(action)
        return action

    def _choose(self, percept: Percept, success: bool) -> int:
        moves = _hand_moves(percept.pose[2])
        last = self.actions[-1] if self.actions else NOTHING
        before, moved = self.position, moves[MOVES.index(last)] if last in MOVES and success else np.zeros(3)
        self.position = position = self._locate(percept, moved)
        if last in MOVES and before is not None:
            # A push against something may succeed and get nowhere.
            progressed = success and np.linalg.norm(position - before) > STALLED
            self.failed = set() if progressed else self.failed | {last}
        if is_laid_down(self.goal) and len(self.actions) < 3:
            return LAY_DOWN
        target = self.rest + (0, 0, HOVER)
        cost, costs = _cost(percept.eye, target, position[None])[0], _cost(percept.eye, target, position + moves)
        costs[[action in self.failed for action in MOVES]] = np.inf
        best = int(costs.argmin())
        return MOVES[best] if costs[best] < cost - MIN_PROGRESS and len(self.actions) < MAX_MOVES else DROP

    def _locate(self, percept: Percept, moved: np.ndarray) -> np.ndarray:
        """The object's center (3,): as seen, or by dead reckoning where it is occluded."""
        if percept.goal_pixels >= MIN_PIXELS:
            ray = percept.goal_point - percept.eye
            # The near side is visible.
            return percept.goal_point + ray / np.linalg.norm(ray) * min(GOAL_BOXES[GOALS[self.goal]][:3]) / 2
        if self.position is not None:
            return self.position + moved
        facing = np.array([*COMPASS[percept.pose[2]], 0.0])
        return percept.eye + HAND_AHEAD * facing - (0, 0, HAND_BELOW)


def _hand_moves(quarter: int) -> np.ndarray:
    """The displacements (6, 3) of the hand's movements, for a player at a heading."""
    facing, right = np.array([*COMPASS[quarter], 0]), np.array([*COMPASS[(quarter + 1) % 4], 0])
    up = np.array([0, 0, 1])
    return HAND_STEP * np.stack([facing, -right, right, -facing, up, -up])


def _cost(eye: np.ndarray, target: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance (n,) of points (n, 3) from the target, plus that from the line of sight to it, which is free."""
    ray = (target - eye) / np.linalg.norm(target - eye)
    offset = points - eye
    lateral = np.linalg.norm(offset - (offset @ ray)[:, None] * ray, axis=1)
    return np.linalg.norm(points - target, axis=1) + 0.7 * lateral


def resting_position(percept: Percept, goal: int, target: np.ndarray) -> np.ndarray:
    """Where an object's center must rest, (3,), to be at a target (3,): modality, row and column."""
    modality, row, column = target.tolist()
    side = len(percept.ids)
    pixel = [(2 * index + 1) * side // (2 * CELLS) for index in (row, column)]
    surface = percept.points[*pixel] + (0, 0, rest_height(goal))
    if modality == BEHIND:
        ray = (surface - percept.eye)[:2]
        return surface + np.array([*(BEHIND_OFFSET * ray / max(np.linalg.norm(ray), 1e-6)), 0])
    targets = find_drop_targets(percept, goal)
    here = np.flatnonzero((targets.row == row) & (targets.column == column))
    return targets.rest[here[0]] if len(here) else surface


class ManipulatePolicy:
    """One manipulation with a given target (3,): modality, row and column."""

    def __init__(self, goal: int, target: np.ndarray) -> None:
        self.goal, self.target = goal, target
        self.hand: Hand | None = None

    def act(self, percept: Percept, success: bool) -> int:
        if self.hand is None:
            modality, row, column = self.target.tolist()
            if modality == CONTAINED and percept.at_cells[row, column] != NOTHING:
                # Open the container first, then look where to put the object.
                return int(OPEN_ACTIONS[row, column])
            self.hand = Hand(resting_position(percept, self.goal, self.target), self.goal)
        return self.hand.act(percept, success)


class Manipulator(PolicyPlayer[ManipulatePolicy]):
    """Plays OM, for targets chosen by another player."""

    def __init__(self, seed: int = 0) -> None:
        """The seed is unused: manipulating is deterministic."""
        super().__init__(lambda game, b: ManipulatePolicy(int(game.goal[b]), game.target[b].copy()), [Stage.OM])

    def decide(self, game: CacheGame, b: int, percept: Percept) -> tuple[int, np.ndarray]:
        if game.last_action[b] == NOTHING:
            self.reset(b)
        return super().decide(game, b, percept)
