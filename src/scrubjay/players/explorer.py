"""A scripted explorer: walks where it has not been, by a map of what it saw, and opens what it passes.

`Mind` is what every walking script has: a map, what it tried, and how to go where the most is to be gained.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.game.novelty import EXTRAPOLATED_STEPS
from scrubjay.players.perception import HALF, SIDE, Map, Sight, sights
from scrubjay.players.planning import STEPS, TURN_RIGHT, Spot, direction, plan
from scrubjay.rooms.directions import QUARTERS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import HEIGHTS

CLOSE = action_index("CloseObjects")
OPENINGS = np.flatnonzero(actions.OPEN_CELL[:-1] != NOTHING).reshape(CELLS, CELLS)
"""The numbers of OpenAt, by row and column."""
UNKNOWN = 0.5
"""What a cell is worth of which nothing is known, where one that is known to be free is worth 1."""
OPENING = 4.0
"""What a place is worth from which something can be opened."""
REFUSALS = 3
"""After so many failures to open a thing a script leaves it alone."""

Window = tuple[slice, slice]
M = TypeVar("M")


class Mind:
    """What one player of one game knows, from the first step of exploring or seeking on."""

    def __init__(self) -> None:
        self.map = Map()
        self.been = np.zeros((SIDE, SIDE, QUARTERS, HEIGHTS), bool)
        """Places that were looked from."""
        self.refused: dict[int, set[Spot]] = {}
        """From where openables could not be opened."""
        self.opened: set[int] = set()
        self._aim: tuple[int, Spot, int] = (NOTHING, (0, 0, 0, 0), NOTHING)
        """The last action, where it was taken, and what it was to open."""

    def see(self, sight: Sight, success: bool) -> None:
        """Takes in what is seen now, and how the last action went."""
        action, place, openable = self._aim
        if action == CLOSE and success:
            self.map.forget_open()
        elif openable != NOTHING and success:
            self.opened.add(openable)
            self.map.closed.pop(openable, None)
        elif openable != NOTHING:
            self.refused.setdefault(openable, set()).add(place)
        elif action in STEPS and not success:
            self.map.bump(place, direction(action, place[2]))
        self._aim = (NOTHING, place, NOTHING)
        self.map.see(sight)
        self.been[self.at(sight)] = True

    @staticmethod
    def at(sight: Sight) -> Spot:
        """Where the player is in the map's arrays."""
        x, y, quarter, standing = sight.place
        return x + HALF, y + HALF, quarter, standing

    def act(self, sight: Sight, action: int, openable: int = NOTHING) -> int:
        """Remembers what is done."""
        self._aim = (action, sight.place, openable)
        return action

    def open(self, sight: Sight) -> int | None:
        """Opens something in reach that was not opened before, if there is anything and it has not refused."""
        for row, column in np.argwhere(sight.at_cells != NOTHING).tolist():
            openable = int(sight.at_cells[row, column])
            refused = self.refused.get(openable, set())
            if openable not in self.opened and sight.place not in refused and len(refused) < REFUSALS:
                return self.act(sight, int(OPENINGS[row, column]), openable)
        return None

    def go(self, sight: Sight, gain: Callable[[Window], np.ndarray]) -> int | None:
        """The first step towards the place from which the most is to be gained for its distance; None without any."""
        window = self.map.window()
        x, y, quarter, standing = self.at(sight)
        start = (x - window[0].start, y - window[1].start, quarter, standing)
        way = plan(self.map.passable(window), start, gain(window))
        return self.act(sight, way[0]) if way else None

    def stuck(self, sight: Sight) -> int:
        """What is left to do where nothing is to be gained: close what may be in the way, or look around."""
        if self.map.blocked[1].any() or self.map.bumped.any():
            self.map.forget_open()
            return self.act(sight, CLOSE)
        return self.act(sight, TURN_RIGHT)

    def openings(self, window: Window) -> np.ndarray:
        """Places (X, Y, 4, 2) from which something can be opened, and that were not looked from yet."""
        given_up = {number for number, places in self.refused.items() if len(places) >= REFUSALS}
        return (self.map.openings(window, given_up | self.opened) > 0) & ~self.been[window]


class Minds(Generic[M]):
    """The minds of the games that a player plays, each as long as its game."""

    def __init__(self, make: Callable[[CacheGame, int], M]) -> None:
        self.make = make
        self._minds: dict[int, tuple[weakref.ref[CacheGame], int, M]] = {}

    def of(self, game: CacheGame, b: int) -> M:
        """The mind of game b; a new one if that has only begun."""
        number = int(game.episode[b])
        known = self._minds.get(b)
        if known is None or known[0]() is not game or known[1] != number:
            known = self._minds[b] = (weakref.ref(game), number, self.make(game, b))
        return known[2]

    def forget(self, b: int) -> None:
        """Something new begins in game b."""
        self._minds.pop(b, None)


class ExploringMind(Mind):
    """Goes for places that it can say nothing of yet: the paper's coverage+, both heights."""

    def __init__(self) -> None:
        super().__init__()
        self.covered = np.zeros((SIDE, SIDE, HEIGHTS), bool)
        """Cells that visited places lead to, by height."""

    def next(self, sight: Sight, success: bool) -> int:
        """The action of one step, given what is seen and how the last one went."""
        self.see(sight, success)
        x, y, quarter, standing = self.at(sight)
        for dx, dy in EXTRAPOLATED_STEPS[quarter].tolist():
            self.covered[x + dx, y + dy, standing] = True
        action = self.open(sight)
        if action is None:
            action = self.go(sight, self.gain)
        return self.stuck(sight) if action is None else action

    def gain(self, window: Window) -> np.ndarray:
        """What places (X, Y, 4, 2) are worth: the cells that they newly lead to, and what can be opened there."""
        free, unknown = self.map.free(window)
        value = (free + UNKNOWN * unknown)[..., None] * ~self.covered[window]
        padded = np.pad(value, ((1, 1), (1, 1), (0, 0)))
        width, depth = free.shape
        gain = np.zeros((width, depth, QUARTERS, HEIGHTS))
        for quarter in range(QUARTERS):
            for dx, dy in EXTRAPOLATED_STEPS[quarter].tolist():
                gain[:, :, quarter] += padded[1 + dx : 1 + dx + width, 1 + dy : 1 + dy + depth]
        return gain + OPENING * self.openings(window)


class Explorer:
    """Plays exploring; in other stages it leaves the choice to another player."""

    def __init__(self, seed: int = 0) -> None:
        self._minds = Minds(lambda *_: ExploringMind())

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action = np.full(len(game), NOTHING)
        walking = np.flatnonzero(games & (game.stage == Stage.EM))
        for b, sight in zip(walking.tolist(), sights(game, walking), strict=True):
            action[b] = self._minds.of(game, b).next(sight, bool(game.last_success[b]))
        return action, np.zeros((len(game), 4), int)
