"""Where a body can stand and walk, from the room's solids at body height; needs no physics engine.

A floor is a clearance map: the distance from each point to the nearest obstacle. A point is free if the body's radius
fits, so reachability on a grid at any angle is a lookup. Moving parts of openables are kept separately as rectangles on
the floor: each part's rectangle when open, and those that it sweeps on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.ndimage import label, map_coordinates
from scipy.sparse import csgraph

from scrubjay.rooms.catalog import mesh
from scrubjay.rooms.catalog.shape import Drawn, Moving, Shape, Solid
from scrubjay.rooms.directions import COMPASS
from scrubjay.rooms.room import Room, Thing

BODY_RADIUS = 0.2
BODY_HEIGHT = 1.8
STEP_OVER = 0.05
"""Bodies walk over lower solids."""
GRID = 0.25
"""Meters per step."""
MAP_PITCH = 0.025
"""Meters between the clearance map's points, where it is exact; it is interpolated between them."""
MAX_CLEARANCE = 1.0
"""Larger clearances are clipped to this."""
SWEEP_SAMPLES = 8
"""Samples of an opening part's motion for collision tests."""

CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
"""Corners of the box from -1 to 1."""

NEIGHBORS = ((np.s_[:-1, :], np.s_[1:, :]), (np.s_[:, :-1], np.s_[:, 1:]))
"""Slices of an array's elements and of their successors, along its first and second axis."""

Rectangle = tuple[float, float, float, float, float, float]
"""An oriented rectangle on the floor: (x, y, ux, uy, half size along u, half size across)."""


def frame(thing: Thing) -> tuple[np.ndarray, np.ndarray]:
    """A thing's position and rotation matrix in the room."""
    return np.asarray(thing.position, float), mesh.rotation("z", -thing.yaw)


def footprint(solid: Solid, position: np.ndarray, turn: np.ndarray) -> tuple[Rectangle, bool]:
    """A solid's rectangle on the floor, and whether it is at body height.

    A solid rotated about the vertical keeps its rectangle. Any other gets its bounding rectangle in its thing's axes,
    or in the room's axes if the thing's part is tilted too.
    """
    rotation = turn @ solid.rotation
    middle = turn @ solid.position + position
    if solid.kind == "capsule":
        radius, half = solid.size
        corners = CORNERS * (radius, radius, radius + half)
    else:
        corners = CORNERS * solid.size
    heights = middle[2] + corners @ rotation[2]
    at_body_height = heights.max() >= STEP_OVER and heights.min() <= BODY_HEIGHT
    if abs(rotation[2, 2]) > 0.999:
        axes = rotation[:2, :2]
    else:
        axes = turn[:2, :2] if abs(turn[2, 2]) > 0.999 else np.eye(2)
    local = (corners @ rotation.T)[:, :2] @ axes
    half_u, half_v = np.abs(local).max(axis=0)
    return (middle[0], middle[1], axes[0, 0], axes[1, 0], half_u, half_v), bool(at_body_height)


def rectangles(part: Drawn, position: np.ndarray, turn: np.ndarray, any_height: bool = False) -> list[Rectangle]:
    """Floor rectangles of a part's solids: of those at body height, or of all."""
    footprints = (footprint(solid, position, turn) for solid in part.solids)
    return [rectangle for rectangle, at_body_height in footprints if at_body_height or any_height]


def part_frame(part: Moving, fraction: float, position: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The position and rotation of a moving part, open by a fraction of its travel."""
    amount = part.travel * fraction
    if part.joint == "slide":
        return position + turn @ (part.axis * amount), turn
    rotation = axis_rotation(part.axis, amount)
    return position + turn @ (part.anchor - rotation @ part.anchor), turn @ rotation


def axis_rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """The right-handed rotation matrix about a unit axis."""
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def distance(points: np.ndarray, rectangle: np.ndarray) -> np.ndarray:
    """Distances from points (..., 2) to rectangles (..., 6), 0 inside. Shapes broadcast."""
    dx, dy = points[..., 0] - rectangle[..., 0], points[..., 1] - rectangle[..., 1]
    u = np.abs(dx * rectangle[..., 2] + dy * rectangle[..., 3]) - rectangle[..., 4]
    v = np.abs(dy * rectangle[..., 2] - dx * rectangle[..., 3]) - rectangle[..., 5]
    return np.hypot(np.maximum(u, 0), np.maximum(v, 0))


def _pad(groups: list[list[Rectangle]]) -> np.ndarray:
    """Stacks lists of rectangles as (n, max length, 6), padded with rectangles far away."""
    length = max([len(group) for group in groups], default=0)
    stack = np.zeros((len(groups), max(length, 1), 6))
    stack[..., :2], stack[..., 2] = 1e6, 1.0
    for row, group in zip(stack, groups, strict=True):
        if group:
            row[: len(group)] = group
    return stack


class Floor:
    """A room's clearance map, and its openables' rectangles."""

    def __init__(self, room: Room, shapes: tuple[Shape, ...]) -> None:
        west, south, east, north = room.bounds
        self.origin = np.array([west, south])
        obstacles: list[Rectangle] = []
        open_parts, swept, reach_rectangles = [], [], []
        owners: list[int] = []
        for index, (thing, shape) in enumerate(zip(room.things, shapes, strict=True)):
            position, turn = frame(thing)
            obstacles += rectangles(shape, position, turn)
            for part in shape.moving:
                obstacles += rectangles(part, position, turn)
            if shape.moving:
                moments = [
                    [
                        r
                        for part in shape.moving
                        for r in rectangles(part, *part_frame(part, k / SWEEP_SAMPLES, position, turn))
                    ]
                    for k in range(1, SWEEP_SAMPLES + 1)
                ]
                open_parts.append(moments[-1])
                swept.append([rectangle for moment in moments for rectangle in moment])
                ends = [(part, *part_frame(part, k, position, turn)) for part in shape.moving for k in (0.0, 1.0)]
                reach_rectangles.append([r for end in ends for r in rectangles(*end, any_height=True)])
            owners += [index] * (len(obstacles) - len(owners))
        self.obstacles = np.array(obstacles).reshape(-1, 6)
        self._owners = np.array(owners, int)
        """The thing of each obstacle, by number."""
        self.open_parts = _pad(open_parts)
        """Each openable's parts when open, (openables, k, 6)."""
        self.swept = _pad(swept)
        """What each openable's parts sweep while opening, (openables, k, 6)."""
        self.reach_rectangles = _pad(reach_rectangles)
        """Each openable's parts, open and closed, at any height, (openables, k, 6): what a hand must reach."""
        columns, rows = int(np.ceil((east - west) / MAP_PITCH)) + 1, int(np.ceil((north - south) / MAP_PITCH)) + 1
        self._reachable: Grid | None = None
        self.map = self._clearance_map((columns, rows))

    def _clearance_map(self, shape: tuple[int, int]) -> np.ndarray:
        """Clearance at the map's points; each obstacle updates only the points within MAX_CLEARANCE of it."""
        clearance = np.full(shape, MAX_CLEARANCE)
        xs, ys = (self.origin[k] + MAP_PITCH * np.arange(shape[k]) for k in (0, 1))
        for rectangle in self.obstacles:
            reach = np.abs(rectangle[2:4]) * rectangle[4] + np.abs(rectangle[3:1:-1]) * rectangle[5] + MAX_CLEARANCE
            spans = zip((xs, ys), rectangle[:2], reach, strict=True)
            (x0, x1), (y0, y1) = (np.searchsorted(ticks, [middle - r, middle + r]) for ticks, middle, r in spans)
            if x0 < x1 and y0 < y1:
                points = np.stack(np.meshgrid(xs[x0:x1], ys[y0:y1], indexing="ij"), -1)
                window = clearance[x0:x1, y0:y1]
                np.minimum(window, distance(points, rectangle), out=window)
        return clearance

    def without(self, things: Collection[int]) -> Floor:
        """The floor after things, by number, were taken away; its clearances are exact up to the body's radius."""
        floor, gone = copy(self), np.isin(self._owners, list(things))
        floor.obstacles, floor._owners = self.obstacles[~gone], self._owners[~gone]
        floor.map, floor._reachable = self.map.copy(), None
        margin = BODY_RADIUS + 2 * MAP_PITCH
        for rectangle in self.obstacles[gone]:
            half = np.abs(rectangle[2:4]) * rectangle[4] + np.abs(rectangle[3:1:-1]) * rectangle[5] + margin
            low, high = rectangle[:2] - half, rectangle[:2] + half
            (x0, y0), (x1, y1) = (np.round((end - self.origin) / MAP_PITCH).astype(int) for end in (low, high))
            spans = ((x0, x1, self.map.shape[0]), (y0, y1, self.map.shape[1]))
            ticks = [np.arange(max(first, 0), min(last + 1, count)) for first, last, count in spans]
            points = self.origin + MAP_PITCH * np.stack(np.meshgrid(*ticks, indexing="ij"), -1)
            near = floor.obstacles[distance(rectangle[:2], floor.obstacles) < np.linalg.norm(half) + margin]
            values = np.full(points.shape[:2], MAX_CLEARANCE)
            for other in near:
                np.minimum(values, distance(points, other), out=values)
            floor.map[np.ix_(*ticks)] = values
        return floor

    def clearance(self, points: np.ndarray) -> np.ndarray:
        """Distances from points (..., 2) to the nearest obstacle with everything closed; 0 outside the room."""
        at = (np.asarray(points, float) - self.origin) / MAP_PITCH
        values = map_coordinates(self.map, at.reshape(-1, 2).T, order=1, mode="constant", cval=0.0)
        return values.reshape(at.shape[:-1])

    def grid(self, start, angle: float = 0.0) -> Grid:
        """The positions reachable from `start` on the lattice through it, rotated clockwise by `angle` degrees."""
        start = np.asarray(start, float)
        if self._reachable is not None and angle == 0:
            # Usually it is the room's own lattice, with another start: its positions are known.
            own, cell = self._reachable, (start - self._reachable.start) / GRID
            if (own.cells == cell).all(1).any():
                return Grid(start, angle, own.cells - cell.astype(int), own.graph)
        region, low = self._reachable_region(start, angle)
        here = region[::2, ::2]
        numbers = here.cumsum().reshape(here.shape) - 1
        steps = zip(NEIGHBORS, (region[1::2, ::2], region[::2, 1::2]), strict=True)
        edges = np.concatenate([[numbers[a][passable], numbers[b][passable]] for (a, b), passable in steps], axis=1)
        count = int(here.sum())
        graph = sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(count, count)).tocsr()
        return Grid(start, angle, np.argwhere(here) + low, graph)

    def positions(
        self, start, angle: float = 0.0, step: float = GRID, free: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> np.ndarray:
        """The positions of `grid` in the room, (n, 2), without building its graph; for any step.

        `free` says for points (..., 2) whether a body fits there, if more than the clearance map must be asked.
        """
        if angle == 0 and step == GRID and free is None:
            return self.grid(start).positions
        start = np.asarray(start, float)
        region, low = self._reachable_region(start, angle, step, free)
        return _cells_to_room(start, angle, np.argwhere(region[::2, ::2]) + low, step)

    def _fits(self, points: np.ndarray) -> np.ndarray:
        return self.clearance(points) >= BODY_RADIUS

    def _reachable_region(
        self,
        start: np.ndarray,
        angle: float,
        step: float = GRID,
        fits: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is connected to `start`, on a lattice of half steps, and the lattice coordinates of its first position.

        Even indices are positions, odd ones the midpoints of steps; where both indices are odd it is False.
        """
        fits = fits or self._fits
        east = mesh.rotation("z", -angle)[:2, :2]
        corners = self.origin + np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) * (np.array(self.map.shape) - 1) * MAP_PITCH
        inside = ((corners - start) @ east) / step
        low, high = np.floor(inside.min(axis=0)).astype(int), np.ceil(inside.max(axis=0)).astype(int)
        lattice = np.stack(np.meshgrid(*(np.arange(low[k], high[k] + 1) for k in (0, 1)), indexing="ij"), -1)
        free = fits(start + lattice * step @ east.T)
        if not (low <= 0).all() or not (high >= 0).all() or not free[tuple(-low)]:
            raise ValueError(f"no body can stand at ({start[0]:.2f}, {start[1]:.2f})")
        free_half_steps = np.zeros(2 * np.array(free.shape) - 1, bool)
        free_half_steps[::2, ::2] = free
        midpoints = (free_half_steps[1::2, ::2], free_half_steps[::2, 1::2])
        for (a, b), half, steps in zip(NEIGHBORS, np.eye(2) / 2, midpoints, strict=True):
            both = free[a] & free[b]
            middles = lattice[a][both] + half
            steps[both] = fits(start + middles * step @ east.T)
        regions, _ = label(free_half_steps)
        return regions == regions[tuple(-2 * low)], low

    def reachable(self) -> Grid:
        """The largest connected region of the paper's grid, the multiples of 0.25 m; cached."""
        if self._reachable is None:
            self._reachable = self._largest_region()
        return self._reachable

    def _largest_region(self) -> Grid:
        size = np.array(self.map.shape) * MAP_PITCH
        first = np.ceil(self.origin / GRID).astype(int)
        counts = (size / GRID).astype(int) + 1
        points = np.stack(np.meshgrid(*(GRID * (first[k] + np.arange(counts[k])) for k in (0, 1)), indexing="ij"), -1)
        unvisited = self.clearance(points) >= BODY_RADIUS
        best = None
        while unvisited.any() and (best is None or len(best) < unvisited.sum()):
            grid = self.grid(points[tuple(np.argwhere(unvisited)[0])])
            cells = np.round(grid.positions / GRID).astype(int) - first
            unvisited[tuple(cells.T)] = False
            best = grid if best is None or len(grid) > len(best) else best
        if best is None:
            raise ValueError("the room has no free floor")
        return best


@dataclass(frozen=True)
class Grid:
    """The positions that a body can reach in steps of 0.25 m."""

    start: np.ndarray
    angle: float
    """Clockwise rotation of the lattice in degrees."""
    cells: np.ndarray
    """Lattice coordinates (n, 2) relative to the start, in the rotated frame."""
    graph: sparse.csr_array
    """Edges between positions one step apart, each stored once."""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def positions(self) -> np.ndarray:
        """Room coordinates of the positions, (n, 2)."""
        return _cells_to_room(self.start, self.angle, self.cells)

    def index(self, point) -> int:
        """The index of the position at a point; ValueError if there is none."""
        away = np.linalg.norm(self.positions - np.asarray(point, float), axis=1)
        nearest = int(away.argmin())
        if away[nearest] > 1e-3:
            raise ValueError(f"({point[0]:.2f}, {point[1]:.2f}) is not one of the {len(self)} reachable positions")
        return nearest

    def neighbors(self) -> np.ndarray:
        """Indices (n, 4) of the positions one step to the grid's north, east, south and west; -1 if blocked."""
        table = np.full((len(self), 4), -1)
        edges = self.graph.tocoo()
        for a, b in ((edges.row, edges.col), (edges.col, edges.row)):
            step = self.cells[b] - self.cells[a]
            direction = (step[:, None] == COMPASS).all(-1).argmax(1)
            table[a, direction] = b
        return table

    def distances(self, source: int) -> np.ndarray:
        """Shortest-path lengths in steps from one position to all, (n,)."""
        return csgraph.dijkstra(self.graph, directed=False, indices=source, unweighted=True).astype(int)

    def path(self, source: int, target: int) -> list[int]:
        """The positions on a shortest path, both ends included."""
        _, predecessors = csgraph.dijkstra(
            self.graph, directed=False, indices=source, unweighted=True, return_predecessors=True
        )
        path = [target]
        while path[-1] != source:
            path.append(int(predecessors[path[-1]]))
        return path[::-1]


def _cells_to_room(start: np.ndarray, angle: float, cells: np.ndarray, step: float = GRID) -> np.ndarray:
    """Converts lattice coordinates (n, 2) relative to a start to room coordinates (n, 2)."""
    return start + cells * step @ mesh.rotation("z", -angle)[:2, :2].T
