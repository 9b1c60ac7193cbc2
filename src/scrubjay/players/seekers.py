"""Seekers without networks: one that sees what an agent sees, and two that know more, as measures of what can be done.

The frontier seeker is a floor for learned agents. The paper's breadth-first searcher sees through openables, and the
oracle knows where the object is: they give the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import uniform_filter

from scrubjay.game import metrics
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CLAIM_PIXELS, CacheGame
from scrubjay.game.visibility import visible_from
from scrubjay.players.explorer import CLOSE, OPENING, OPENINGS, Mind, Minds, Window
from scrubjay.players.perception import SIDE, Sight, add_patch, reaching, sights
from scrubjay.players.planning import TURN_RIGHT, Spot, plan
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.rooms.floor import BODY_RADIUS, Grid, distance
from scrubjay.rooms.room import GOALS
from scrubjay.sim.access import ways_to_open
from scrubjay.sim.pose import HEIGHTS, REACH, AgentPose, reach

CLAIM = action_index("ClaimVisible")
SURELY = REACH - 0.1
"""How near the seen side of an object is whose middle is surely in reach."""
LOOK = 5
"""Cells, ahead and across, that a look takes in for certain."""
WORTH = 0.25
"""What an unknown cell ahead adds to the worth of a look."""
CANDIDATES = 6
"""Openables near the object that an oracle thinks of opening."""


class SeekingMind(Mind):
    """Looks around until it has looked from everywhere, opens what it can, and goes to the object once it saw it."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = np.zeros((SIDE, SIDE, QUARTERS, HEIGHTS), bool)
        """Places at which, or next to which, it has looked since anything there was opened."""
        self.goal: np.ndarray | None = None
        self.missed: set[Spot] = set()
        """From where claims failed."""
        self.thorough = False
        """After everything has been looked at from nearby, it is looked at from every single place."""

    def see(self, sight: Sight, success: bool) -> None:
        action, place, openable = self._aim
        if action == CLAIM:
            self.missed.add(place)
        if openable != NOTHING and success and openable in self.map.closed:
            self._look_into(self.map.closed[openable])
        super().see(sight, success)
        x, y, quarter, standing = self.at(sight)
        near = 0 if self.thorough else 1
        self.looked[x - near : x + near + 1, y - near : y + near + 1, quarter, standing] = True
        if sight.goal_pixels:
            if self.goal is None:
                self.been[:] = False
                self.been[x, y, quarter, standing] = True
            self.goal = sight.goal_point

    def _look_into(self, point: np.ndarray) -> None:
        shown = np.zeros(self.looked.shape, np.int16)
        add_patch(shown, point, reaching(point))
        self.looked &= shown == 0

    def next(self, sight: Sight, success: bool) -> int:
        """The action of one step, given what is seen and how the last one went."""
        self.see(sight, success)
        action = self._claim(sight, SURELY)
        if action is None and self.goal is not None:
            action = self.go(sight, self._towards_goal)
            if action is None:
                action = self._claim(sight, REACH)
        if action is None:
            action = self.open(sight)
        if action is None:
            action = self.go(sight, self.gain)
        if action is None:
            self.thorough = True
            self.looked[:] = False
            action = self.stuck(sight)
        return action

    def _claim(self, sight: Sight, within: float) -> int | None:
        if sight.goal_pixels < CLAIM_PIXELS or sight.place in self.missed:
            return None
        return self.act(sight, CLAIM) if reach(sight.eye[:2], sight.goal_point) <= within else None

    def _towards_goal(self, window: Window) -> np.ndarray:
        """The places (X, Y, 4, 2) from which the object should be seen and claimed, less those that it was not."""
        assert self.goal is not None
        near = np.zeros(self.been.shape, np.int16)
        add_patch(near, self.goal, reaching(self.goal))
        return ((near > 0) & ~self.been)[window].astype(float)

    def gain(self, window: Window) -> np.ndarray:
        """What places (X, Y, 4, 2) are worth: a new look, more where it falls on unknown cells, and openings."""
        free, unknown = self.map.free(window)
        around = uniform_filter(unknown.astype(float), LOOK, mode="constant") * LOOK**2
        worth = np.ones((*free.shape, QUARTERS))
        for quarter, step in enumerate(COMPASS):
            # The middle of the cells that are looked at is a few steps ahead.
            worth[:, :, quarter] += WORTH * np.roll(around, tuple(-(LOOK // 2 + 1) * step), (0, 1))
        worth *= free[..., None]
        return worth[..., None] * ~self.looked[window] + OPENING * self.openings(window)


class Truth:
    """One game's room as it is, for players who know it: its grid, what is open, where the object lies."""

    def __init__(self, game: CacheGame, b: int) -> None:
        self.game, self.b = game, b
        self.compiled = game.world.rooms[game.world.room_of[b]]
        start = game.start[b]
        self.grid = self.compiled.floor.grid(start[:2], start[2] % 90)
        self.low = self.grid.cells.min(0)
        self.shape = (*(self.grid.cells.max(0) - self.low + 1).tolist(), QUARTERS, HEIGHTS)
        self._neighbors = self.grid.neighbors()
        self._shown: dict[bytes, np.ndarray] = {}
        self._ways: list[list[AgentPose]] | None = None

    @property
    def is_open(self) -> np.ndarray:
        return self.game.world.state.open[self.b, : len(self.compiled.openables)]

    @property
    def pose(self) -> np.ndarray:
        return self.game.world.state.pose[self.b]

    def here(self) -> Spot:
        """Where the player is in arrays of places (X, Y, 4, 2)."""
        state, b = self.game.world.state, self.b
        row = metrics.lattice(self.grid, state.position[[b]], state.rotation[[b]], state.standing[[b]])[0]
        x, y, quarter, standing = (row - (*self.low, 0, 0)).tolist()
        return x, y, quarter, standing

    def spread(self, table: np.ndarray) -> np.ndarray:
        """A table of positions (n, ...) as an array of cells (X, Y, ...), zero where there is no position."""
        spread = np.zeros((*self.shape[:2], *table.shape[1:]), table.dtype)
        spread[tuple((self.grid.cells - self.low).T)] = table
        return spread

    def passable(self) -> np.ndarray:
        """Where steps lead on, (X, Y, 4), with what is open in the way."""
        onward = self._neighbors >= 0
        parts = self.compiled.floor.open_parts[self.is_open]
        if parts.size:
            flat, at = parts.reshape(-1, 6), self.grid.positions
            free = distance(at[:, None], flat).min(1) >= BODY_RADIUS
            middle = (at[:, None] + at[self._neighbors]) / 2
            onward &= distance(middle[:, :, None], flat).min(2) >= BODY_RADIUS
            onward &= free[:, None] & np.take(free, self._neighbors)
        return self.spread(onward)

    def claimable(self, is_open: np.ndarray) -> np.ndarray:
        """Places (X, Y, 4, 2) in reach from which the object is seen when these things are open."""
        key = is_open.tobytes() + self.pose.tobytes()
        if key not in self._shown:
            near = reach(self.grid.positions, self.pose[:3]) <= REACH
            self._shown[key] = self._visible(is_open, near)
        return self._shown[key]

    def seen_through(self) -> np.ndarray:
        """Places (X, Y, 4, 2) from which the object is seen through openables."""
        return self._visible(self.is_open, np.ones(len(self.grid), bool), through=True)

    def _visible(self, is_open: np.ndarray, chosen: np.ndarray, through: bool = False) -> np.ndarray:
        seen = np.zeros((len(self.grid), QUARTERS, HEIGHTS), bool)
        goal = GOALS[self.game.goal[self.b]]
        shown = visible_from(
            self.compiled, is_open, goal, self.pose, part_of(self.grid, chosen), through, self.game.world.size
        )
        # Its heights are standing and crouching.
        seen[chosen] = shown[:, ::-1].swapaxes(1, 2)
        return self.spread(seen)

    def hiding(self) -> list[int]:
        """Closed openables that hide the object: opening one of them shows it, or at least is a beginning."""
        things = [self.compiled.room.things[openable.thing] for openable in self.compiled.openables]
        middles = np.array([np.add(thing.position, (0, 0, thing.size[2] / 2)) for thing in things]).reshape(-1, 3)
        away = np.linalg.norm(middles - self.pose[:3], axis=1) - [np.linalg.norm(thing.size) / 2 for thing in things]
        nearest = [int(n) for n in np.argsort(away) if not self.is_open[n]][:CANDIDATES]
        shows = [n for n in nearest if self.claimable(self.is_open | (np.arange(len(things)) == n)).any()]
        return shows or nearest[:2]

    def opening(self, numbers: list[int]) -> np.ndarray:
        """Places (X, Y, 4, 2) from which one of some openables can be opened."""
        if self._ways is None:
            # Whatever hides the object is near it, and stays so.
            near = reach(self.grid.positions, self.pose[:3]) <= 2 * REACH
            self._ways = ways_to_open(self.compiled, part_of(self.grid, near))
        table = np.zeros((len(self.grid), QUARTERS, HEIGHTS), bool)
        for place in (place for number in numbers for place in self._ways[number]):
            quarter = round((place.rotation - self.grid.angle) / 90) % QUARTERS
            table[self.grid.index(place[:2]), quarter, int(place.standing)] = True
        return self.spread(table)


def part_of(grid: Grid, chosen: np.ndarray) -> Grid:
    """Some positions (n,) bool of a grid."""
    return Grid(grid.start, grid.angle, grid.cells[chosen], grid.graph[chosen][:, chosen])


class OracleMind:
    """Knows where the object is, goes the shortest way to see it in reach, opening what hides it, and claims."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.tried = np.zeros(truth.shape, bool)
        """Places that did not keep what they promised."""
        self._plan: tuple[bytes, list[int], np.ndarray] = (b"", [], self.tried)

    def next(self, sight: Sight, success: bool) -> int:
        """The action of one step."""
        truth, here = self.truth, self.truth.here()
        position = truth.game.world.state.position[truth.b]
        if sight.goal_pixels >= CLAIM_PIXELS and reach(position, truth.pose[:3]) <= REACH:
            return CLAIM
        claimable = truth.claimable(truth.is_open)
        self.tried[here] |= claimable[here]
        way = plan(truth.passable(), here, (claimable & ~self.tried).astype(float))
        return way[0] if way else self._open(sight, here)

    def _open(self, sight: Sight, here: Spot) -> int:
        truth = self.truth
        key = truth.is_open.tobytes() + truth.pose.tobytes()
        if self._plan[0] != key:
            numbers = truth.hiding()
            self._plan, self.tried = (key, numbers, truth.opening(numbers)), np.zeros(truth.shape, bool)
        _, numbers, places = self._plan
        cells = np.argwhere(np.isin(sight.at_cells, numbers))
        if len(cells) and not self.tried[here]:
            self.tried[here] = True
            return int(OPENINGS[tuple(cells[0])])
        self.tried[here] = True
        way = plan(truth.passable(), here, (places & ~self.tried).astype(float))
        if way:
            return way[0]
        # Open things may be in the way; and what was tried may work from another side.
        self.tried[:] = False
        return CLOSE if truth.is_open.any() else TURN_RIGHT


class BreadthFirstMind(OracleMind):
    """The paper's searcher, on foot: looks from all positions in the order of their distance until it sees the object,
    through openables; then it knows what to do."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self.seen_through = truth.seen_through()
        start = truth.grid.index(truth.game.start[truth.b, :2])
        self.order = truth.grid.cells[metrics.bfs_order(truth.grid, start)] - truth.low
        self.looked = np.zeros(truth.shape, bool)
        self.found = False
        self.shut_out = np.zeros(truth.shape, bool)
        """Places that could not be reached when it was their turn."""
        self._open_before = b""

    def next(self, sight: Sight, success: bool) -> int:
        here = self.truth.here()
        self.looked[here] = True
        self.found |= bool(self.seen_through[here])
        if self.found:
            return super().next(sight, success)
        for x, y in self.order.tolist():
            if not self.looked[x, y].all():
                wanted = np.zeros(self.truth.shape)
                wanted[x, y] = ~self.looked[x, y]
                if way := plan(self.truth.passable(), here, wanted):
                    return way[0]
                self.shut_out[x, y] |= ~self.looked[x, y]
                self.looked[x, y] = True
        return self._make_way()

    def _make_way(self) -> int:
        """Where open things are in the way to all that is left: closes them, and tries again once that has worked."""
        key = self.truth.is_open.tobytes()
        if self._open_before != key:
            self._open_before = key
            self.looked &= ~self.shut_out
            self.shut_out[:] = False
            return CLOSE
        return TURN_RIGHT


class Seeker:
    """Plays seeking with a mind for each game; in other stages it leaves the choice to another player."""

    def __init__(self, make: Callable[[CacheGame, int], SeekingMind | OracleMind]) -> None:
        self._minds: Minds[SeekingMind | OracleMind] = Minds(make)

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action = np.full(len(game), NOTHING)
        seeking = np.flatnonzero(games & (game.stage == Stage.S))
        for b, sight in zip(seeking.tolist(), sights(game, seeking), strict=True):
            action[b] = self._minds.of(game, b).next(sight, bool(game.last_success[b]))
        return action, np.zeros((len(game), 4), int)


def frontier_seeker(seed: int = 0) -> Seeker:
    """Sees what an agent sees."""
    return Seeker(lambda *_: SeekingMind())


def breadth_first_seeker(seed: int = 0) -> Seeker:
    """The paper's: sees through openables and knows the floor."""
    return Seeker(lambda game, b: BreadthFirstMind(Truth(game, b)))


def oracle_seeker(seed: int = 0) -> Seeker:
    """Knows everything."""
    return Seeker(lambda game, b: OracleMind(Truth(game, b)))
