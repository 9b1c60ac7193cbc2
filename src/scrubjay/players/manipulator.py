"""A scripted hand: where an object would come to rest, and how to carry it there along the line of sight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.players.explorer import OPENINGS, Minds
from scrubjay.players.perception import Sight, pixel_of, sights
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.physics import HAND_AHEAD, HAND_BELOW, HAND_STEP
from scrubjay.sim.pose import REACH, reach
from scrubjay.sim.world import HAND_MOVES

MOVES = tuple(action_index(f"MoveHand{name.capitalize()}") for name in HAND_MOVES)
LAY_DOWN = action_index("RotateHand|+X")
DROP = action_index("DropObject")
LEVEL = 0.02
"""Metres of height that a level surface has between neighboring pixels, at most."""
HIGHEST = 1.7
HOVER = 0.05
"""Metres above its rest at which an object is let go."""
CENTERD = 0.35
"""How far from a cell's middle, in cells, an object may rest to be counted there."""
FARTHEST = REACH - 0.1
NEAREST = 0.45
PROGRESS = 0.01
STALLED = 0.03
"""Metres that a movement must make of its 0.1 to be tried again."""
ENOUGH = 20
"""Pixels of the object from which the hand tells where it is."""
PATIENCE = 40
"""Movements after which the object is dropped wherever it is."""
ON_TOP, CONTAINED, BEHIND = range(3)
BEYOND = 0.25
"""Metres behind what is seen at which an object is to be behind it."""


@dataclass(frozen=True)
class Drops:
    """Places to put an object down, at most one a cell: (n,) each."""

    row: np.ndarray
    column: np.ndarray
    rest: np.ndarray
    """(n, 3): where the object's middle would be."""
    pixel: np.ndarray
    """(n, 2): the row and column of the surface below, in the sight."""


def lies(goal: int) -> bool:
    """Is the object laid down before it is dropped? Long ones fall over anyhow, and fit nowhere upright."""
    width, depth, height, _ = GOAL_BOXES[GOALS[goal]]
    return height > 2 * max(width, depth)


def rest_height(goal: int) -> float:
    """How far the middle of a goal object is above what it rests on."""
    width, _, height, _ = GOAL_BOXES[GOALS[goal]]
    return (width if lies(goal) else height) / 2


def drops(sight: Sight, goal: int) -> Drops:
    """Where on level surfaces in view and in reach a goal object could be put down, next to the cells' middles."""
    height = sight.points[..., 2]
    level = (sight.ids >= 0) & (sight.ids != sight.goal) & (height < HIGHEST)
    level &= maximum_filter(height, 3) - minimum_filter(height, 3) < LEVEL
    rows, columns = np.nonzero(minimum_filter(level, 3))
    rest = sight.points[rows, columns] + (0, 0, rest_height(goal))
    at = CELLS * pixel_of(sight, rest)
    off = np.abs(at % 1 - 0.5).max(1)
    away = reach(sight.eye[:2], rest)
    good = (off < CENTERD) & (at >= 0).all(1) & (at < CELLS).all(1) & (away <= FARTHEST) & (away >= NEAREST)
    chosen = np.flatnonzero(good)[np.argsort(off[good], kind="stable")]
    cell = at[chosen].astype(int)
    _, first = np.unique(cell[:, 0] * CELLS + cell[:, 1], return_index=True)
    chosen, cell = chosen[first], cell[first]
    return Drops(cell[:, 0], cell[:, 1], rest[chosen], np.stack([rows[chosen], columns[chosen]], 1))


@dataclass
class Hand:
    """Carries the held object to where it is to rest, and drops it. Its actions are kept, to be repeated."""

    rest: np.ndarray
    """(3,): the player's frame."""
    goal: int
    done: list[int] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    """Movements that failed where the hand is now."""
    at: np.ndarray | None = None
    """Where the object's middle is, as far as can be seen or reckoned."""

    def next(self, sight: Sight, success: bool) -> int:
        """The next action, given what is seen and how the last one went."""
        action = self._choose(sight, success)
        self.done.append(action)
        return action

    def _choose(self, sight: Sight, success: bool) -> int:
        ways = _ways(sight.place[2])
        last = self.done[-1] if self.done else NOTHING
        before, moved = self.at, ways[MOVES.index(last)] if last in MOVES and success else np.zeros(3)
        self.at = at = self._found(sight, moved)
        if last in MOVES and before is not None:
            # A push against something may succeed and get nowhere.
            got_on = success and np.linalg.norm(at - before) > STALLED
            self.failed = set() if got_on else self.failed | {last}
        if lies(self.goal) and len(self.done) < 3:
            return LAY_DOWN
        wanted = self.rest + (0, 0, HOVER)
        now, then = _cost(sight.eye, wanted, at[None])[0], _cost(sight.eye, wanted, at + ways)
        then[[action in self.failed for action in MOVES]] = np.inf
        best = int(then.argmin())
        return MOVES[best] if then[best] < now - PROGRESS and len(self.done) < PATIENCE else DROP

    def _found(self, sight: Sight, moved: np.ndarray) -> np.ndarray:
        """Where the object is, (3,): by sight, or where it cannot be seen, reckoned from where it was."""
        if sight.goal_pixels >= ENOUGH:
            ray = sight.goal_point - sight.eye
            # What is seen is the near side.
            return sight.goal_point + ray / np.linalg.norm(ray) * min(GOAL_BOXES[GOALS[self.goal]][:3]) / 2
        if self.at is not None:
            return self.at + moved
        facing = np.array([*COMPASS[sight.place[2]], 0.0])
        return sight.eye + HAND_AHEAD * facing - (0, 0, HAND_BELOW)


def _ways(quarter: int) -> np.ndarray:
    """The six movements of a hand, (6, 3), for a player that faces a quarter."""
    facing, right = np.array([*COMPASS[quarter], 0]), np.array([*COMPASS[(quarter + 1) % 4], 0])
    up = np.array([0, 0, 1])
    return HAND_STEP * np.stack([facing, -right, right, -facing, up, -up])


def _cost(eye: np.ndarray, wanted: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far points (n, 3) are from the end and from the line of sight to it, which is free of things, (n,)."""
    ray = (wanted - eye) / np.linalg.norm(wanted - eye)
    away = points - eye
    aside = np.linalg.norm(away - (away @ ray)[:, None] * ray, axis=1)
    return np.linalg.norm(points - wanted, axis=1) + 0.7 * aside


def aim(sight: Sight, goal: int, target: np.ndarray) -> np.ndarray:
    """Where an object should rest to be at a target (3,) of modality, row and column, (3,)."""
    modality, row, column = target.tolist()
    side = len(sight.ids)
    pixel = [(2 * index + 1) * side // (2 * CELLS) for index in (row, column)]
    seen = sight.points[*pixel] + (0, 0, rest_height(goal))
    if modality == BEHIND:
        ray = (seen - sight.eye)[:2]
        return seen + np.array([*(BEYOND * ray / max(np.linalg.norm(ray), 1e-6)), 0])
    found = drops(sight, goal)
    here = np.flatnonzero((found.row == row) & (found.column == column))
    return found.rest[here[0]] if len(here) else seen


class _Manipulation:
    """One manipulation with a target that someone else chose."""

    def __init__(self) -> None:
        self.hand: Hand | None = None

    def next(self, sight: Sight, goal: int, target: np.ndarray, success: bool) -> int:
        if self.hand is None:
            modality, row, column = target.tolist()
            self.hand = Hand(aim(sight, goal, target), goal)
            if modality == CONTAINED and sight.at_cells[row, column] != NOTHING:
                # What is shut contains nothing yet. The hand looks again where to go once it is open.
                self.hand = None
                return int(OPENINGS[row, column])
        return self.hand.next(sight, success)


class Manipulator:
    """Plays manipulating for targets that others chose; in other stages it leaves the choice to another player."""

    def __init__(self, seed: int = 0) -> None:
        self._minds = Minds(lambda *_: _Manipulation())

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action = np.full(len(game), NOTHING)
        busy = np.flatnonzero(games & (game.stage == Stage.OM))
        for b, sight in zip(busy.tolist(), sights(game, busy), strict=True):
            if game.last_action[b] == NOTHING:
                self._minds.forget(b)
            mind = self._minds.of(game, b)
            action[b] = mind.next(sight, int(game.goal[b]), game.target[b], bool(game.last_success[b]))
        return action, np.zeros((len(game), 4), int)
