"""Where agents' bodies fit in a scene: its floor, what is open or was moved, and the other agents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse import csgraph

from scrubjay.rooms.floor import (
    BODY_RADIUS,
    GRID,
    SWEEP_SAMPLES,
    Rectangle,
    distance,
    frame,
    part_frame,
    rectangles,
)
from scrubjay.rooms.room import GOALS
from scrubjay.sim.walking import Floors
from scrubjay.thor.scene_state import ActionFailed, SceneAgent
from scrubjay.thor.things import Things

HALF_STEP = GRID / 2
"""Meters between the tests along a walk."""
PATH_PITCH = 0.05
"""Meters between the points that paths go through."""
SNAP = 0.3
"""Meters from a path's end to the nearest point where a body fits, at most."""
DIAGONALS = ((1, 0), (0, 1), (1, 1), (1, -1))


class Ground:
    """The floor under a scene's agents."""

    def __init__(self, things: Things) -> None:
        self.things = things
        self._home = things.compiled.floor
        self._floor, self._floors, self._gone = self._home, Floors([self._home]), frozenset[int]()
        self._layout: object = None
        self._obstacles = np.zeros((0, 6))

    def start(self, count: int) -> np.ndarray:
        """Where the first agents stand, (count, 2): as in a new world, and then two steps apart or more."""
        positions = self._home.reachable().positions
        chosen = [positions[0]]
        for position in positions:
            if len(chosen) == count:
                break
            if min(np.linalg.norm(position - other) for other in chosen) >= 2 * GRID:
                chosen.append(position)
        if len(chosen) < count:
            raise ActionFailed(f"{count} agents do not fit into this room")
        return np.array(chosen[:count])

    def free(self, points: np.ndarray, others: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Whether a body fits at points (n, 2), with other bodies at positions (2,)."""
        self._update()
        return (self._floors.clearance(np.zeros(len(points), int), points) >= BODY_RADIUS) & self._clear(points, others)

    def walk(self, agent: SceneAgent, offset: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
        """The position after a walk along (2,); raises ActionFailed if something is in the way."""
        count = max(int(np.ceil(np.linalg.norm(offset) / HALF_STEP - 1e-9)), 1)
        points = agent.position + np.arange(1, count + 1)[:, None] / count * offset
        if not self.free(points, others).all():
            raise ActionFailed("something is in the way of the agent")
        return agent.position + offset

    def swept(self, thing: int, start: float, end: float, bodies: Sequence[np.ndarray]) -> bool:
        """Whether an openable would hit one of the bodies on its way between two fractions."""
        number = self.things.openables[thing]
        if {start, end} == {0.0, 1.0}:
            passed = self._home.swept[number]
        else:
            low, high = sorted((start, end))
            between = [k / SWEEP_SAMPLES for k in range(1, SWEEP_SAMPLES + 1) if low < k / SWEEP_SAMPLES < high]
            moments = [fraction for fraction in (low, *between, high) if fraction > 0]
            passed = np.array([r for fraction in moments for r in self._parts(thing, fraction)]).reshape(-1, 6)
        return any(bool((distance(body, passed) < BODY_RADIUS).any()) for body in bodies)

    def reach(self, thing: int, position: np.ndarray) -> float:
        """The distance from an agent's axis to an openable's parts."""
        return float(distance(position, self._home.reach_rectangles[self.things.openables[thing]]).min())

    def reachable(
        self, agent: SceneAgent, others: Sequence[np.ndarray], step: float, limit: int, turned: bool
    ) -> np.ndarray:
        """Positions (n, 2) on a grid through the agent's own that it can walk to."""
        self._update()
        angle = agent.rotation % 90 if turned else 0.0
        plain = not len(self._obstacles) and not len(others)

        def free(points: np.ndarray) -> np.ndarray:
            flat = points.reshape(-1, 2)
            fits = (self._floor.clearance(flat) >= BODY_RADIUS) & self._clear(flat, others)
            return fits.reshape(points.shape[:-1])

        try:
            positions = self._floor.positions(agent.position, angle, step, None if plain else free)
        except ValueError as error:
            raise ActionFailed(str(error)) from error
        if len(positions) > limit:
            raise ActionFailed(f"{len(positions)} positions can be reached, more than the limit of {limit}")
        return positions

    def path(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Corners (n, 2) of a shortest walk from one point to another."""
        self._update()
        west, south, east, north = self.things.room.bounds
        origin = np.array([west, south])
        counts = np.ceil((np.array([east, north]) - origin) / PATH_PITCH).astype(int) + 1
        cells = np.stack(np.meshgrid(*(np.arange(count) for count in counts), indexing="ij"), -1)
        points = origin + cells * PATH_PITCH
        free = self.free(points.reshape(-1, 2)).reshape(points.shape[:2])
        first, last = (self._nearest(points, free, np.asarray(point, float)) for point in (start, end))
        numbers = np.arange(free.size).reshape(free.shape)
        way = _shortest(free, numbers[first], numbers[last])
        if way is None:
            raise ActionFailed("there is no path between these points")
        corners = [np.asarray(start, float), *points.reshape(-1, 2)[way], np.asarray(end, float)]
        return self._straighten(np.array(corners))

    def _straighten(self, way: np.ndarray) -> np.ndarray:
        """Leaves out the points of a walk (n, 2) that straight lines make unnecessary."""
        corners, at = [way[0]], 0
        while at < len(way) - 1:
            farthest = at + 1
            for number in range(len(way) - 1, at + 1, -1):
                length = np.linalg.norm(way[number] - way[at])
                shares = np.linspace(0, 1, int(length / (PATH_PITCH / 2)) + 2)[1:-1, None]
                if self.free(way[at] + shares * (way[number] - way[at])).all():
                    farthest = number
                    break
            corners.append(way[farthest])
            at = farthest
        return np.array(corners)

    def _nearest(self, points: np.ndarray, free: np.ndarray, point: np.ndarray) -> tuple[int, ...]:
        away = np.where(free, np.linalg.norm(points - point, axis=-1), np.inf)
        nearest = np.unravel_index(int(away.argmin()), away.shape)
        if away[nearest] > SNAP:
            raise ActionFailed(f"no body can stand near ({point[0]:.2f}, {point[1]:.2f})")
        return tuple(int(index) for index in nearest)

    def _clear(self, points: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
        """Whether points (n, 2) are clear of what moved and of other bodies."""
        clear = np.ones(len(points), bool)
        if len(self._obstacles):
            clear &= distance(points[:, None], self._obstacles).min(1) >= BODY_RADIUS
        for other in others:
            clear &= np.linalg.norm(points - other, axis=1) >= 2 * BODY_RADIUS
        return clear

    def _parts(self, thing: int, fraction: float) -> list[Rectangle]:
        """The rectangles of an openable's moving parts, open by a fraction."""
        position, turn = frame(self.things.room.things[thing])
        parts = self.things.compiled.shapes[thing].moving
        return [r for part in parts for r in rectangles(part, *part_frame(part, fraction, position, turn))]

    def _update(self) -> None:
        """Collects the rectangles of what is open or was moved, and the floor without what is gone."""
        things = self.things
        if self._layout == things.layout:
            return
        self._layout = things.layout
        gone = frozenset(thing for thing in (*things.moved, *things.absent) if thing < len(things.room.things))
        if gone != self._gone:
            more = gone > self._gone
            self._floor = self._floor.without(gone - self._gone) if more else self._home.without(gone)
            self._floors, self._gone = Floors([self._floor]), gone
        obstacles: list[Rectangle] = []
        for thing, number in things.openables.items():
            openness = float(things.open[number])
            if openness == 1 and thing not in things.moved:
                obstacles += map(tuple, self._home.open_parts[number])
            elif openness > 0 and thing not in things.moved:
                obstacles += self._parts(thing, openness)
        for thing in things.moved.keys() - things.absent - things.held:
            if things.types[thing] in GOALS:
                continue  # Bodies step over them, as in a world.
            bottom, turn = things.bottom(thing)
            shape = things.compiled.shapes[thing]
            for part in (shape, *shape.moving):
                obstacles += rectangles(part, bottom, turn)
        self._obstacles = np.array(obstacles).reshape(-1, 6)


def _shortest(free: np.ndarray, start: int, end: int) -> np.ndarray | None:
    """Cells (n,) by number of a shortest way over free cells (columns, rows), diagonals included."""
    labels, _ = ndimage.label(free, np.ones((3, 3)))
    if labels.flat[start] != labels.flat[end]:
        return None
    numbers = np.arange(free.size).reshape(free.shape)
    rows, columns, lengths = [], [], []
    for dx, dy in DIAGONALS:
        a = np.s_[: free.shape[0] - dx, max(-dy, 0) : free.shape[1] - max(dy, 0)]
        b = np.s_[dx:, max(dy, 0) : free.shape[1] + min(dy, 0)]
        both = free[a] & free[b]
        rows.append(numbers[a][both])
        columns.append(numbers[b][both])
        lengths.append(np.full(int(both.sum()), np.hypot(dx, dy)))
    edges = (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns)))
    graph = sparse.coo_array(edges, shape=(free.size, free.size)).tocsr()
    _, before = csgraph.dijkstra(graph, directed=False, indices=start, return_predecessors=True)
    way = [end]
    while way[-1] != start:
        if before[way[-1]] < 0:
            return None
        way.append(int(before[way[-1]]))
    return np.array(way[::-1])
