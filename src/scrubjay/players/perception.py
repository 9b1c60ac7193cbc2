"""Percepts of scripted players, and the occupancy map they build from them.

Coordinates are meters right of, ahead of and above the player's start. Scripts get ground truth of what is in view:
depth, ids, and which openables are open. They know nothing of what is occluded or out of view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game.actions import NOTHING
from scrubjay.game.cache import LABELS, CacheGame
from scrubjay.players.planning import LatticePose
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.rooms.floor import BODY_HEIGHT, BODY_RADIUS, GRID, STEP_OVER
from scrubjay.sim import cells
from scrubjay.sim.pose import CAMERA_CROUCHING, CAMERA_STANDING, HEIGHTS, PITCH, REACH, cameras

SAMPLES = 56
"""Approximate edge of a percept in pixels."""
MAP_RADIUS = 64
"""Lattice steps from the start to the map's edge: 16 m."""
MAP_SIZE = 2 * MAP_RADIUS + 1
BLOCKING_RADIUS = BODY_RADIUS - 0.02
"""Points within this distance block a position; the last two centimeters are left to bumping."""
PATCH_RADIUS = 6
"""Lattice steps around a thing within which it can be reached."""
CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
"""Of a lattice square, which is larger than a body's radius."""
STOP_DISTANCE = REACH - 0.2
"""Meters from a thing at which a player stops to open or claim it."""

Window = tuple[slice, slice]
"""Of the map's cells."""


@dataclass(frozen=True)
class Percept:
    """What one player sees now, at about 56 x 56 pixels."""

    pose: LatticePose
    """Steps right and ahead of the start, quarter turns, standing."""
    eye: np.ndarray
    matrix: np.ndarray
    """The camera, as `sim.pose.cameras` has it."""
    ids: np.ndarray
    """(n, n): ids of things; -1 where there is none."""
    points: np.ndarray
    """(n, n, 3): the point that each pixel shows."""
    openable: np.ndarray
    """(n, n): the openable that each pixel shows, or -1."""
    is_open: np.ndarray
    """(n, n) bool: that openable is open."""
    at_cells: np.ndarray
    """(7, 7): the closed openable in reach that OpenAt would open, or -1."""
    goal: int
    """The goal object's id."""
    goal_pixels: int
    """Pixels of the goal object, as in images of 224."""
    goal_point: np.ndarray
    """(3,): mean of the goal object's visible points; NaN without any."""


def perceive(game: CacheGame, games: np.ndarray) -> list[Percept]:
    """The percepts of games (n,) by index."""
    if not len(games):
        return []
    world, view, place = game.world, game.look(LABELS), game.relative_place()[games]
    stride = max(1, world.size // SAMPLES)
    sampled = slice(stride // 2, None, stride)
    indices = torch.as_tensor(games, device=view.ids.device)
    all_ids, all_depth = view.ids[indices], view.depth[indices]
    ids, depth = all_ids[:, sampled, sampled].cpu().numpy().astype(int), all_depth[:, sampled, sampled].cpu().numpy()
    eye, matrix = cameras(place[:, :2] * GRID, 90.0 * place[:, 2], place[:, 3].astype(bool))
    pixels = np.arange(stride // 2, world.size, stride)
    rows, columns = np.meshgrid(pixels, pixels, indexing="ij")
    points = _unproject(eye, matrix, rows, columns, depth, world.size)

    table = world.openable_of_thing[games].numpy()
    openable = table[np.arange(len(games))[:, None, None], ids]
    is_open = _are_open(world.state.open[games], openable)
    at_cell, pixel = cells.openables_at_cells(all_ids, world.openable_of_thing[games].to(all_ids.device))
    at_depth = torch.gather(all_depth.flatten(1), 1, pixel.flatten(1)).reshape(pixel.shape).cpu().numpy()
    at_cells, at = at_cell.cpu().numpy(), pixel.cpu().numpy()
    at_points = _unproject(eye, matrix, at // world.size, at % world.size, at_depth, world.size)
    near = np.linalg.norm(at_points[..., :2] - eye[:, None, None, :2], axis=-1) <= REACH
    at_cells = np.where(near & ~_are_open(world.state.open[games], at_cells), at_cells, NOTHING)

    things = [len(world.rooms[world.room_of[b]].room.things) for b in games.tolist()]
    goals = (np.array(things) + game.goal[games]).tolist()
    mask = world.goal_mask(view)[indices]
    counts = cells.reference_pixels(mask.sum((1, 2)).cpu().numpy(), world.size)
    percepts = []
    for n in range(len(games)):
        point = np.full(3, np.nan)
        if counts[n]:
            row, column = (index.cpu().numpy() for index in torch.nonzero(mask[n], as_tuple=True))
            its_depth = all_depth[n][mask[n]].cpu().numpy()
            point = _unproject(eye[[n]], matrix[[n]], row, column, its_depth[None], world.size)[0].mean(0)
        x, y, quarter, standing = place[n].tolist()
        percepts.append(Percept(
            (x, y, quarter, standing), eye[n], matrix[n], ids[n], points[n], openable[n], is_open[n], at_cells[n],
            goals[n], int(counts[n]), point,
        ))  # fmt: skip
    return percepts


def _unproject(
    eye: np.ndarray, matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray, depth: np.ndarray, size: int
) -> np.ndarray:
    """The points (B, ..., 3) of pixels with a depth (B, ...), for cameras (B, 3) and (B, 3, 3)."""
    x, y = (columns + 0.5) / size * 2 - 1, 1 - (rows + 0.5) / size * 2
    local = np.stack(np.broadcast_arrays(x, y, -np.ones_like(x)), -1) * depth[..., None]
    flat = local.reshape(len(eye), -1, 3)
    return (flat @ matrix.transpose(0, 2, 1) + eye[:, None]).reshape(local.shape)


def _are_open(state: np.ndarray, openable: np.ndarray) -> np.ndarray:
    """Which of openables (B, ...) are open in states (B, openables); False for -1."""
    flat = openable.reshape(len(state), -1)
    return (np.take_along_axis(state, np.maximum(flat, 0), 1) & (flat >= 0)).reshape(openable.shape)


class OccupancyMap:
    """What a player knows of the lattice. Arrays are indexed by cell (x, y), with the start in the middle."""

    def __init__(self) -> None:
        self.floor = np.zeros((MAP_SIZE, MAP_SIZE), bool)
        """Cells with visible floor."""
        self.visited = np.zeros((MAP_SIZE, MAP_SIZE), bool)
        self.beside = np.zeros((MAP_SIZE, MAP_SIZE), bool)
        """Cells next to visited ones: the floor at one's feet is out of view, and assumed free."""
        self.blocked = np.zeros((2, 3, MAP_SIZE, MAP_SIZE), bool)
        """By fixed and by open things: cells, and the midpoints of steps from them to the right and ahead."""
        self.bumped = np.zeros((MAP_SIZE, MAP_SIZE, QUARTERS), bool)
        """Steps that failed, by direction."""
        self.closed: dict[int, np.ndarray] = {}
        """Points (3,) of the openables that were seen closed and not opened since."""
        self._patches: dict[int, tuple[float, np.ndarray]] = {}
        """By openable: the distance at which it was seen best, and the poses that reach it."""

    def update(self, percept: Percept) -> None:
        """Integrates a percept. The goal object is no obstacle."""
        x, y = percept.pose[0] + MAP_RADIUS, percept.pose[1] + MAP_RADIUS
        self.visited[x, y] = True
        self.beside[x - 1 : x + 2, y - 1 : y + 2] = True
        real = (percept.ids >= 0) & (percept.ids != percept.goal)
        height = percept.points[..., 2]
        floor = np.round(percept.points[real & (height < STEP_OVER), :2] / GRID).astype(int)
        self.floor[_on_map(floor)] = True
        bumped = real & (height >= STEP_OVER) & (height <= BODY_HEIGHT)
        for layer, part in enumerate((bumped & ~percept.is_open, bumped & percept.is_open)):
            points = _round_unique(percept.points[part, :2] / GRID)
            for kind, shift in enumerate(((0, 0), (0.5, 0), (0, 0.5))):
                self.blocked[layer, kind][_blocked_cells(points - shift)] = True
        self._note_openables(percept)

    def _note_openables(self, percept: Percept) -> None:
        shut = (percept.openable >= 0) & ~percept.is_open
        numbers, points = percept.openable[shut], percept.points[shut]
        pixels = np.bincount(numbers)
        sums = np.stack([np.bincount(numbers, points[:, k]) for k in range(3)], 1)
        for number in np.flatnonzero(pixels).tolist():
            point = sums[number] / pixels[number]
            away = float(np.linalg.norm(point[:2] - percept.eye[:2]))
            known = self._patches.get(number)
            # A closer view shows more of a thing and locates it better.
            if known is None or away < 0.7 * known[0]:
                self._patches[number] = (away, poses_reaching(point))
                self.closed[number] = point
            else:
                self.closed.setdefault(number, point)
        for number in np.flatnonzero(np.bincount(percept.openable[percept.is_open])).tolist():
            self.closed.pop(number, None)

    def mark_bump(self, pose: LatticePose, compass: int) -> None:
        """Records that a step from a pose failed."""
        x, y = pose[0] + MAP_RADIUS, pose[1] + MAP_RADIUS
        dx, dy = COMPASS[compass]
        self.bumped[x, y, compass] = True
        self.bumped[x + dx, y + dy, (compass + 2) % QUARTERS] = True

    def forget_open(self) -> None:
        """Forgets what open things blocked, after they were closed."""
        self.blocked[1] = False
        self.bumped[:] = False

    def known_window(self) -> Window:
        """The known part of the map with a border of two cells."""
        known = self.floor | self.beside
        spans = []
        for axis in (1, 0):
            indices = np.flatnonzero(known.any(axis))
            spans.append(slice(max(int(indices[0]) - 2, 0), int(indices[-1]) + 3))
        return spans[0], spans[1]

    def free_and_unknown(self, window: Window) -> tuple[np.ndarray, np.ndarray]:
        """Which cells of a window are free, and which are unknown, (X, Y) bool each."""
        fixed, moved = self.blocked[0, 0][window], self.blocked[1, 0][window]
        visited, known = self.visited[window], self.floor[window] | self.beside[window]
        return ~moved & (visited | known & ~fixed), ~known & ~fixed & ~moved

    def passable(self, window: Window) -> np.ndarray:
        """Which steps lead from free cells to free or unknown ones, (X, Y, 4) bool by compass direction."""
        free, unknown = self.free_and_unknown(window)
        onto = free | unknown
        between = self.blocked[0, 1:, *window] | self.blocked[1, 1:, *window]
        passable = ~self.bumped[window]
        passable &= free[:, :, None]
        passable[:-1, :, 1] &= onto[1:] & ~between[0, :-1]
        passable[1:, :, 3] &= onto[:-1] & ~between[0, :-1]
        passable[:, :-1, 0] &= onto[:, 1:] & ~between[1, :, :-1]
        passable[:, 1:, 2] &= onto[:, :-1] & ~between[1, :, :-1]
        passable[-1, :, 1] = passable[0, :, 3] = False
        passable[:, -1, 0] = passable[:, 0, 2] = False
        return passable

    def openings(self, window: Window, ignored: set[int]) -> np.ndarray:
        """How many closed openables can be reached from each pose of a window, (X, Y, 4, 2)."""
        count = np.zeros((MAP_SIZE, MAP_SIZE, QUARTERS, HEIGHTS), np.int16)
        for number, point in self.closed.items():
            if number not in ignored:
                add_patch(count, point, self._patches[number][1])
        return count[window]


def _round_unique(points: np.ndarray) -> np.ndarray:
    """Points (n, 2) in lattice steps, rounded to a tenth of one, without duplicates."""
    if not len(points):
        return points
    fine = np.round(points * 10).astype(int)
    low = fine.min(0)
    fine -= low
    there = np.zeros(fine.max(0) + 1, bool)
    there[fine[:, 0], fine[:, 1]] = True
    return (np.argwhere(there) + low) / 10


def _blocked_cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the cells at which a body would collide with points (n, 2), in lattice steps."""
    corners = np.floor(points).astype(int)[:, None] + CORNERS
    near = ((points[:, None] - corners) ** 2).sum(2) < (BLOCKING_RADIUS / GRID) ** 2
    return _on_map(corners[near])


def _on_map(cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of those of lattice cells (n, 2) that are on the map."""
    cell = cell + MAP_RADIUS
    x, y = cell[((cell >= 0) & (cell < MAP_SIZE)).all(1)].T
    return x, y


def poses_reaching(point: np.ndarray) -> np.ndarray:
    """The patch (13, 13, 4, 2) bool of poses around a point (3,) that have it in view and in reach."""
    at = point[:2] / GRID
    cell = np.round(at)
    ticks = np.arange(-PATCH_RADIUS, PATCH_RADIUS + 1)
    away = (at - cell) - np.stack(np.meshgrid(ticks, ticks, indexing="ij"), -1)
    along = away @ COMPASS.T
    across = np.abs(away @ np.roll(COMPASS, -1, 0).T)
    distance = np.linalg.norm(away, axis=-1) * GRID
    eyes = np.array([CAMERA_CROUCHING, CAMERA_STANDING])
    # The image's edges are 45 degrees from its middle, upright and sideways.
    angle = np.degrees(np.arctan2(point[2] - eyes, np.maximum(along[..., None], 1e-6) * GRID)) + PITCH
    seen = (along > 0)[..., None] & (np.abs(angle) < 43)
    depth = along[..., None] * GRID * np.cos(np.radians(PITCH)) - (point[2] - eyes) * np.sin(np.radians(PITCH))
    seen &= across[..., None] * GRID < 0.95 * depth
    return seen & (distance <= STOP_DISTANCE)[..., None, None] & (distance >= BODY_RADIUS)[..., None, None]


def add_patch(poses: np.ndarray, point: np.ndarray, patch: np.ndarray) -> None:
    """Adds a patch around a point to an array over all poses of the map."""
    x, y = (np.round(point[:2] / GRID).astype(int) + MAP_RADIUS).tolist()
    if min(x, y) >= PATCH_RADIUS and max(x, y) < MAP_SIZE - PATCH_RADIUS:
        poses[x - PATCH_RADIUS : x + PATCH_RADIUS + 1, y - PATCH_RADIUS : y + PATCH_RADIUS + 1] += patch
