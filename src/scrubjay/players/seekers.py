"""Scripted seekers: a frontier seeker that sees what an agent sees, and two with privileged information.

The frontier seeker is a floor for learned agents. The paper's breadth-first searcher, which sees through openables, and
the oracle, which knows where the object is, are ceilings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter

from scrubjay.game import metrics
from scrubjay.game.actions import NOTHING, Stage, action_index
from scrubjay.game.cache import CLAIM_PIXELS, CacheGame
from scrubjay.game.visibility import visible_from
from scrubjay.players.explorer import CLOSE, OPEN_ACTIONS, OPENING_GAIN, MappingPolicy
from scrubjay.players.perception import MAP_SIZE, Percept, Window, add_patch, poses_reaching
from scrubjay.players.planning import TURN_RIGHT, LatticePose, plan_path
from scrubjay.players.policy_player import PolicyPlayer
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.rooms.floor import BODY_RADIUS, Grid, distance
from scrubjay.rooms.room import GOALS
from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import HEIGHTS, REACH, AgentPose, reach

CLAIM = action_index("ClaimVisible")
SAFE_REACH = REACH - 0.1
"""Distance of an object's visible side within which its center is surely in reach."""
VIEW_CELLS = 5
"""Cells, ahead and across, that one view surely shows."""
UNKNOWN_CELL_GAIN = 0.25
"""Gain of each unknown cell in view, beside 1 for a new view."""
MAX_CONTAINERS = 6
"""Openables near the object that the oracle considers."""


class SeekPolicy(MappingPolicy):
    """Looks from everywhere, opens what it can, and approaches and claims the object once it has seen it."""

    def __init__(self) -> None:
        super().__init__()
        self.searched = np.zeros((MAP_SIZE, MAP_SIZE, QUARTERS, HEIGHTS), bool)
        """Poses at or next to which it has looked since anything in view of them was opened."""
        self.goal: np.ndarray | None = None
        """(3,): where the object was seen."""
        self.missed: set[LatticePose] = set()
        """Poses at which claims failed."""
        self.thorough = False
        """After a first pass with views from nearby, the second looks from every single pose."""

    def update(self, percept: Percept, success: bool) -> None:
        action, pose, openable = self._last
        if action == CLAIM:
            self.missed.add(pose)
        if openable != NOTHING and success and openable in self.map.closed:
            self._search_again_around(self.map.closed[openable])
        super().update(percept, success)
        x, y, quarter, standing = self.map_index(percept)
        near = 0 if self.thorough else 1
        self.searched[x - near : x + near + 1, y - near : y + near + 1, quarter, standing] = True
        if percept.goal_pixels:
            if self.goal is None:
                self.looked_from[:] = False
                self.looked_from[x, y, quarter, standing] = True
            self.goal = percept.goal_point

    def _search_again_around(self, point: np.ndarray) -> None:
        in_view = np.zeros(self.searched.shape, np.int16)
        add_patch(in_view, point, poses_reaching(point))
        self.searched &= in_view == 0

    def act(self, percept: Percept, success: bool) -> int:
        self.update(percept, success)
        action = self._claim(percept, SAFE_REACH)
        if action is None and self.goal is not None:
            action = self.go(percept, self._approach_gain)
            if action is None:
                action = self._claim(percept, REACH)
        if action is None:
            action = self.open_in_reach(percept)
        if action is None:
            action = self.go(percept, self._search_gain)
        if action is None:
            self.thorough = True
            self.searched[:] = False
            action = self.unstick(percept)
        return action

    def _claim(self, percept: Percept, within: float) -> int | None:
        if percept.goal_pixels < CLAIM_PIXELS or percept.pose in self.missed:
            return None
        return self.commit(percept, CLAIM) if reach(percept.eye[:2], percept.goal_point) <= within else None

    def _approach_gain(self, window: Window) -> np.ndarray:
        """1 at poses (X, Y, 4, 2) that should see the object in reach and were not tried yet."""
        assert self.goal is not None
        near = np.zeros(self.looked_from.shape, np.int16)
        add_patch(near, self.goal, poses_reaching(self.goal))
        return ((near > 0) & ~self.looked_from)[window].astype(float)

    def _search_gain(self, window: Window) -> np.ndarray:
        """Gain of each pose (X, Y, 4, 2): a new view, more with unknown cells in it, and what can be opened."""
        free, unknown = self.map.free_and_unknown(window)
        around = uniform_filter(unknown.astype(float), VIEW_CELLS, mode="constant") * VIEW_CELLS**2
        gain = np.ones((*free.shape, QUARTERS))
        for quarter, step in enumerate(COMPASS):
            # The center of the cells in view is a few steps ahead.
            gain[:, :, quarter] += UNKNOWN_CELL_GAIN * np.roll(around, tuple(-(VIEW_CELLS // 2 + 1) * step), (0, 1))
        gain *= free[..., None]
        return gain[..., None] * ~self.searched[window] + OPENING_GAIN * self.opening_poses(window)


class GroundTruth:
    """One game's state for players with privileged information: the grid, what is open, where the object lies."""

    def __init__(self, game: CacheGame, b: int) -> None:
        self.game, self.b = game, b
        room = game.world.rooms[game.world.room_of[b]]
        if not isinstance(room, CompiledRoom):
            raise ValueError("bfs and oracle look into a room's model, which only worlds of Scrubjay's own have")
        self.compiled = room
        start = game.start[b]
        self.grid = self.compiled.floor.grid(start[:2], start[2] % 90)
        self.origin = self.grid.cells.min(0)
        self.shape = (*(self.grid.cells.max(0) - self.origin + 1).tolist(), QUARTERS, HEIGHTS)
        self._neighbors = self.grid.neighbors()
        self._claimable: dict[bytes, np.ndarray] = {}
        self._opening_poses: list[list[AgentPose]] | None = None

    @property
    def is_open(self) -> np.ndarray:
        return self.game.world.state.open[self.b, : len(self.compiled.openables)]

    @property
    def pose(self) -> np.ndarray:
        return self.game.world.state.pose[self.b]

    def player_index(self) -> LatticePose:
        """The index of the player's pose in arrays (X, Y, 4, 2)."""
        state, b = self.game.world.state, self.b
        row = metrics.lattice(self.grid, state.position[[b]], state.rotation[[b]], state.standing[[b]])[0]
        x, y, quarter, standing = (row - (*self.origin, 0, 0)).tolist()
        return x, y, quarter, standing

    def to_cells(self, table: np.ndarray) -> np.ndarray:
        """Scatters a table over positions (n, ...) to cells (X, Y, ...), zero where there is no position."""
        cells = np.zeros((*self.shape[:2], *table.shape[1:]), table.dtype)
        cells[tuple((self.grid.cells - self.origin).T)] = table
        return cells

    def passable(self) -> np.ndarray:
        """Which steps succeed, (X, Y, 4) bool, given what is open."""
        passable = self._neighbors >= 0
        parts = self.compiled.floor.open_parts[self.is_open]
        if parts.size:
            boxes, positions = parts.reshape(-1, 6), self.grid.positions
            free = distance(positions[:, None], boxes).min(1) >= BODY_RADIUS
            midpoints = (positions[:, None] + positions[self._neighbors]) / 2
            passable &= distance(midpoints[:, :, None], boxes).min(2) >= BODY_RADIUS
            passable &= free[:, None] & np.take(free, self._neighbors)
        return self.to_cells(passable)

    def claimable(self, is_open: np.ndarray) -> np.ndarray:
        """Poses (X, Y, 4, 2) in reach that see the object if these openables (n,) bool are open."""
        key = is_open.tobytes() + self.pose.tobytes()
        if key not in self._claimable:
            near = reach(self.grid.positions, self.pose[:3]) <= REACH
            self._claimable[key] = self._visible(is_open, near)
        return self._claimable[key]

    def seen_through(self) -> np.ndarray:
        """Poses (X, Y, 4, 2) that see the object through openables."""
        return self._visible(self.is_open, np.ones(len(self.grid), bool), through=True)

    def _visible(self, is_open: np.ndarray, positions: np.ndarray, through: bool = False) -> np.ndarray:
        table = np.zeros((len(self.grid), QUARTERS, HEIGHTS), bool)
        goal = GOALS[self.game.goal[self.b]]
        shown = visible_from(
            self.compiled, is_open, goal, self.pose, subgrid(self.grid, positions), through, self.game.world.size
        )
        # `visible_from` has standing first.
        table[positions] = shown[:, ::-1].swapaxes(1, 2)
        return self.to_cells(table)

    def occluding_openables(self) -> list[int]:
        """Closed openables near the object: those that show it when opened, or else the nearest two."""
        things = [self.compiled.room.things[openable.thing] for openable in self.compiled.openables]
        centers = np.array([np.add(thing.position, (0, 0, thing.size[2] / 2)) for thing in things]).reshape(-1, 3)
        distances = np.linalg.norm(centers - self.pose[:3], axis=1)
        distances -= [np.linalg.norm(thing.size) / 2 for thing in things]
        nearest = [int(n) for n in np.argsort(distances) if not self.is_open[n]][:MAX_CONTAINERS]
        shows = [n for n in nearest if self.claimable(self.is_open | (np.arange(len(things)) == n)).any()]
        return shows or nearest[:2]

    def opening_poses(self, numbers: list[int]) -> np.ndarray:
        """Poses (X, Y, 4, 2) from which one of these openables can be opened."""
        if self._opening_poses is None:
            # What occludes the object is near it, and openables do not move away.
            near = reach(self.grid.positions, self.pose[:3]) <= 2 * REACH
            self._opening_poses = find_opening_poses(self.compiled, subgrid(self.grid, near))
        table = np.zeros((len(self.grid), QUARTERS, HEIGHTS), bool)
        for pose in (pose for number in numbers for pose in self._opening_poses[number]):
            quarter = round((pose.rotation - self.grid.angle) / 90) % QUARTERS
            table[self.grid.index(pose[:2]), quarter, int(pose.standing)] = True
        return self.to_cells(table)


def subgrid(grid: Grid, positions: np.ndarray) -> Grid:
    """The grid restricted to positions (n,) bool."""
    return Grid(grid.start, grid.angle, grid.cells[positions], grid.graph[positions][:, positions])


class OpeningPlan(NamedTuple):
    """Which openables the oracle tries to open, and from where, while the state stays the same."""

    state: bytes
    openables: list[int]
    poses: np.ndarray


class OraclePolicy:
    """Takes the shortest path to a pose that sees the object in reach, opening what occludes it, and claims."""

    def __init__(self, truth: GroundTruth) -> None:
        self.truth = truth
        self.tried = np.zeros(truth.shape, bool)
        """Poses that turned out not to work."""
        self._opening = OpeningPlan(b"", [], self.tried)

    def act(self, percept: Percept, success: bool) -> int:
        truth, here = self.truth, self.truth.player_index()
        position = truth.game.world.state.position[truth.b]
        if percept.goal_pixels >= CLAIM_PIXELS and reach(position, truth.pose[:3]) <= REACH:
            return CLAIM
        claimable = truth.claimable(truth.is_open)
        self.tried[here] |= claimable[here]
        path = plan_path(truth.passable(), here, (claimable & ~self.tried).astype(float))
        return path[0] if path else self._open(percept, here)

    def _open(self, percept: Percept, here: LatticePose) -> int:
        truth = self.truth
        state = truth.is_open.tobytes() + truth.pose.tobytes()
        if self._opening.state != state:
            numbers = truth.occluding_openables()
            self._opening = OpeningPlan(state, numbers, truth.opening_poses(numbers))
            self.tried = np.zeros(truth.shape, bool)
        cells = np.argwhere(np.isin(percept.at_cells, self._opening.openables))
        if len(cells) and not self.tried[here]:
            self.tried[here] = True
            return int(OPEN_ACTIONS[tuple(cells[0])])
        self.tried[here] = True
        path = plan_path(truth.passable(), here, (self._opening.poses & ~self.tried).astype(float))
        if path:
            return path[0]
        # Open things may be in the way, and what was tried may work from another side.
        self.tried[:] = False
        return CLOSE if truth.is_open.any() else TURN_RIGHT


class BreadthFirstPolicy(OraclePolicy):
    """The paper's searcher on foot: looks from all positions in breadth-first order until it sees the object, through
    openables. Then it acts like the oracle."""

    def __init__(self, truth: GroundTruth) -> None:
        super().__init__(truth)
        self.seen_through = truth.seen_through()
        start = truth.grid.index(truth.game.start[truth.b, :2])
        self.order = truth.grid.cells[metrics.bfs_order(truth.grid, start)] - truth.origin
        self.searched = np.zeros(truth.shape, bool)
        self.found = False
        self.unreached = np.zeros(truth.shape, bool)
        """Poses without a path when it was their turn."""
        self._open_before = b""

    def act(self, percept: Percept, success: bool) -> int:
        here = self.truth.player_index()
        self.searched[here] = True
        self.found |= bool(self.seen_through[here])
        if self.found:
            return super().act(percept, success)
        for x, y in self.order.tolist():
            if not self.searched[x, y].all():
                gain = np.zeros(self.truth.shape)
                gain[x, y] = ~self.searched[x, y]
                if path := plan_path(self.truth.passable(), here, gain):
                    return path[0]
                self.unreached[x, y] |= ~self.searched[x, y]
                self.searched[x, y] = True
        return self._clear_way()

    def _clear_way(self) -> int:
        """Closes what is open once nothing else is reachable, and then tries the unreached poses again."""
        is_open = self.truth.is_open.tobytes()
        if self._open_before != is_open:
            self._open_before = is_open
            self.searched &= ~self.unreached
            self.unreached[:] = False
            return CLOSE
        return TURN_RIGHT


def frontier_seeker(seed: int = 0) -> PolicyPlayer[SeekPolicy]:
    """Sees what an agent sees. The seed is unused."""
    return PolicyPlayer(lambda *_: SeekPolicy(), [Stage.S])


def breadth_first_seeker(seed: int = 0) -> PolicyPlayer[BreadthFirstPolicy]:
    """The paper's searcher: knows the floor and sees through openables. The seed is unused."""
    return PolicyPlayer(lambda game, b: BreadthFirstPolicy(GroundTruth(game, b)), [Stage.S])


def oracle_seeker(seed: int = 0) -> PolicyPlayer[OraclePolicy]:
    """Knows the whole state. The seed is unused."""
    return PolicyPlayer(lambda game, b: OraclePolicy(GroundTruth(game, b)), [Stage.S])
