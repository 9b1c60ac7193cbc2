"""What a player sees, and what it remembers of it: the floor, what stands in the way, and things that open.

Everything is in the player's own frame: meters to the right of its start, ahead of it and up. A script has a perfect
eye: it knows the distance of what it sees, which thing that is, and whether it opens and is open. It knows nothing of
what is behind other things or out of view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game.actions import NOTHING
from scrubjay.game.cache import LABELS, CacheGame
from scrubjay.players.planning import Spot
from scrubjay.rooms.directions import COMPASS, QUARTERS
from scrubjay.rooms.floor import BODY_HEIGHT, BODY_RADIUS, GRID, STEP_OVER
from scrubjay.sim import cells
from scrubjay.sim.pose import CAMERA_CROUCHING, CAMERA_STANDING, HEIGHTS, PITCH, REACH, cameras

SAMPLES = 56
"""Pixels along a side at which scripts look, about."""
HALF = 64
"""Lattice steps from the start to the map's edge: 16 m."""
SIDE = 2 * HALF + 1
SURE = BODY_RADIUS - 0.02
"""What is nearer than this to a position surely blocks it; the last two centimeters are left to bumping."""
AROUND = 6
"""Lattice steps around a thing within which it can be reached."""
CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
"""Of a square of the lattice: a body's radius is less than its side."""
WITHIN = REACH - 0.2
"""Metres from a thing at which a player stops to open or to claim it."""


@dataclass(frozen=True)
class Sight:
    """What one player sees now, at about 56 x 56 pixels."""

    place: Spot
    """Steps right and ahead of the start, quarter turns, standing."""
    eye: np.ndarray
    matrix: np.ndarray
    """The camera, as `place.cameras` gives it."""
    ids: np.ndarray
    """(n, n): things' numbers; -1 where nothing is."""
    points: np.ndarray
    """(n, n, 3): where what is seen is."""
    openable: np.ndarray
    """(n, n): the number of the openable that is seen, or -1."""
    is_open: np.ndarray
    """(n, n) bool: and it is open."""
    at_cells: np.ndarray
    """(7, 7): the closed openable in reach that OpenAt would open, or -1."""
    goal: int
    """The goal object's id."""
    goal_pixels: int
    goal_point: np.ndarray
    """(3,): the middle of what is seen of the goal object; nan if nothing is."""


def sights(game: CacheGame, games: np.ndarray) -> list[Sight]:
    """What the players of some games (n,), by number, see now."""
    if not len(games):
        return []
    world, view, place = game.world, game.look(LABELS), game.relative_place()[games]
    stride = max(1, world.size // SAMPLES)
    some = slice(stride // 2, None, stride)
    chosen = torch.as_tensor(games, device=view.ids.device)
    all_ids, all_depth = view.ids[chosen], view.depth[chosen]
    ids, depth = all_ids[:, some, some].cpu().numpy().astype(int), all_depth[:, some, some].cpu().numpy()
    eye, matrix = cameras(place[:, :2] * GRID, 90.0 * place[:, 2], place[:, 3].astype(bool))
    pixels = np.arange(stride // 2, world.size, stride)
    rows, columns = np.meshgrid(pixels, pixels, indexing="ij")
    points = _points(eye, matrix, rows, columns, depth, world.size)

    table = world.openable_of_thing[games].numpy()
    openable = table[np.arange(len(games))[:, None, None], ids]
    is_open = _are_open(world.state.open[games], openable)
    found, pixel = cells.openables_at_cells(all_ids, world.openable_of_thing[games].to(all_ids.device))
    at_depth = torch.gather(all_depth.flatten(1), 1, pixel.flatten(1)).reshape(pixel.shape).cpu().numpy()
    at_cells, at = found.cpu().numpy(), pixel.cpu().numpy()
    at_points = _points(eye, matrix, at // world.size, at % world.size, at_depth, world.size)
    near = np.linalg.norm(at_points[..., :2] - eye[:, None, None, :2], axis=-1) <= REACH
    at_cells = np.where(near & ~_are_open(world.state.open[games], at_cells), at_cells, NOTHING)

    things = [len(world.rooms[world.room_of[b]].room.things) for b in games.tolist()]
    goals = (np.array(things) + game.goal[games]).tolist()
    mask = world.goal_mask(view)[chosen]
    counts = mask.sum((1, 2)).cpu().numpy()
    found_sights = []
    for n in range(len(games)):
        point = np.full(3, np.nan)
        if counts[n]:
            row, column = (index.cpu().numpy() for index in torch.nonzero(mask[n], as_tuple=True))
            its_depth = all_depth[n][mask[n]].cpu().numpy()
            point = _points(eye[[n]], matrix[[n]], row, column, its_depth[None], world.size)[0].mean(0)
        x, y, quarter, standing = place[n].tolist()
        found_sights.append(Sight(
            (x, y, quarter, standing), eye[n], matrix[n], ids[n], points[n], openable[n], is_open[n], at_cells[n],
            goals[n], int(counts[n]), point,
        ))  # fmt: skip
    return found_sights


def _points(
    eye: np.ndarray, matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray, depth: np.ndarray, size: int
) -> np.ndarray:
    """Where pixels of a depth (B, ...) are, (B, ..., 3), for cameras (B, 3) and (B, 3, 3)."""
    x, y = (columns + 0.5) / size * 2 - 1, 1 - (rows + 0.5) / size * 2
    local = np.stack(np.broadcast_arrays(x, y, -np.ones_like(x)), -1) * depth[..., None]
    flat = local.reshape(len(eye), -1, 3)
    return (flat @ matrix.transpose(0, 2, 1) + eye[:, None]).reshape(local.shape)


def _are_open(state: np.ndarray, openable: np.ndarray) -> np.ndarray:
    """Which of openables (B, ...) are open in states (B, openables); False for -1."""
    flat = openable.reshape(len(state), -1)
    return (np.take_along_axis(state, np.maximum(flat, 0), 1) & (flat >= 0)).reshape(openable.shape)


def pixel_of(sight: Sight, points: np.ndarray) -> np.ndarray:
    """Where points (..., 3) are in the image, (..., 2): row and column from 0 to 1; nan behind the camera."""
    local = (points - sight.eye) @ sight.matrix
    depth = np.where(local[..., 2] < 0, -local[..., 2], np.nan)
    return np.stack([(1 - local[..., 1] / depth) / 2, (1 + local[..., 0] / depth) / 2], -1)


class Map:
    """What a player knows of the lattice around its start. Cells are (x, y), from 0, with the start in the middle."""

    def __init__(self) -> None:
        self.floor = np.zeros((SIDE, SIDE), bool)
        """Cells in which floor was seen."""
        self.visited = np.zeros((SIDE, SIDE), bool)
        self.beside = np.zeros((SIDE, SIDE), bool)
        """Cells next to visited ones: nobody sees the floor at their feet, it is free unless something is there."""
        self.blocked = np.zeros((2, 3, SIDE, SIDE), bool)
        """By fixed and by open things: positions, and the middles of the ways from them to the right and ahead."""
        self.bumped = np.zeros((SIDE, SIDE, QUARTERS), bool)
        """Steps that failed, by direction."""
        self.closed: dict[int, np.ndarray] = {}
        """Where the openables are that were seen closed and not opened since, (3,)."""
        self._patches: dict[int, tuple[float, np.ndarray]] = {}
        """From where those can be reached, and how far away they were when that was found out."""

    def see(self, sight: Sight) -> None:
        """Takes in what is seen, but for the goal object, which nobody bumps into."""
        x, y = sight.place[0] + HALF, sight.place[1] + HALF
        self.visited[x, y] = True
        self.beside[x - 1 : x + 2, y - 1 : y + 2] = True
        real = (sight.ids >= 0) & (sight.ids != sight.goal)
        height = sight.points[..., 2]
        floor = np.round(sight.points[real & (height < STEP_OVER), :2] / GRID).astype(int)
        self.floor[_inside(floor)] = True
        bumped = real & (height >= STEP_OVER) & (height <= BODY_HEIGHT)
        for layer, part in enumerate((bumped & ~sight.is_open, bumped & sight.is_open)):
            points = _thinned(sight.points[part, :2] / GRID)
            for kind, shift in enumerate(((0, 0), (0.5, 0), (0, 0.5))):
                self.blocked[layer, kind][_near(points - shift)] = True
        self._note_openables(sight)

    def _note_openables(self, sight: Sight) -> None:
        shut = (sight.openable >= 0) & ~sight.is_open
        numbers, points = sight.openable[shut], sight.points[shut]
        pixels = np.bincount(numbers)
        sums = np.stack([np.bincount(numbers, points[:, k]) for k in range(3)], 1)
        for number in np.flatnonzero(pixels).tolist():
            point = sums[number] / pixels[number]
            away = float(np.linalg.norm(point[:2] - sight.eye[:2]))
            known = self._patches.get(number)
            # Nearer looks show more of a thing, and tell better where it is.
            if known is None or away < 0.7 * known[0]:
                self._patches[number] = (away, reaching(point))
                self.closed[number] = point
            else:
                self.closed.setdefault(number, point)
        for number in np.flatnonzero(np.bincount(sight.openable[sight.is_open])).tolist():
            self.closed.pop(number, None)

    def bump(self, place: Spot, compass: int) -> None:
        """A step from a place failed."""
        x, y = place[0] + HALF, place[1] + HALF
        dx, dy = COMPASS[compass]
        self.bumped[x, y, compass] = True
        self.bumped[x + dx, y + dy, (compass + 2) % QUARTERS] = True

    def forget_open(self) -> None:
        """Things were closed: what they blocked is to be seen anew."""
        self.blocked[1] = False
        self.bumped[:] = False

    def window(self) -> tuple[slice, slice]:
        """The part of the map that is known, and two cells around it."""
        known = self.floor | self.beside
        spans = []
        for axis in (1, 0):
            some = np.flatnonzero(known.any(axis))
            spans.append(slice(max(int(some[0]) - 2, 0), int(some[-1]) + 3))
        return spans[0], spans[1]

    def free(self, window: tuple[slice, slice]) -> tuple[np.ndarray, np.ndarray]:
        """Which cells of a window (X, Y) are known to be free, and of which nothing is known."""
        fixed, moved = self.blocked[0, 0][window], self.blocked[1, 0][window]
        visited, known = self.visited[window], self.floor[window] | self.beside[window]
        return ~moved & (visited | known & ~fixed), ~known & ~fixed & ~moved

    def passable(self, window: tuple[slice, slice]) -> np.ndarray:
        """Where steps lead on, (X, Y, 4): from free cells to free ones, and to unknown ones at the edge of the map."""
        free, unknown = self.free(window)
        onto = free | unknown
        between = self.blocked[0, 1:, *window] | self.blocked[1, 1:, *window]
        found = ~self.bumped[window]
        found &= free[:, :, None]
        found[:-1, :, 1] &= onto[1:] & ~between[0, :-1]
        found[1:, :, 3] &= onto[:-1] & ~between[0, :-1]
        found[:, :-1, 0] &= onto[:, 1:] & ~between[1, :, :-1]
        found[:, 1:, 2] &= onto[:, :-1] & ~between[1, :, :-1]
        found[-1, :, 1] = found[0, :, 3] = False
        found[:, -1, 0] = found[:, 0, 2] = False
        return found

    def openings(self, window: tuple[slice, slice], left_out: set[int]) -> np.ndarray:
        """How many closed things can be reached from each place of a window, (X, Y, 4, 2)."""
        count = np.zeros((SIDE, SIDE, QUARTERS, HEIGHTS), np.int16)
        for number, point in self.closed.items():
            if number not in left_out:
                add_patch(count, point, self._patches[number][1])
        return count[window]


def _thinned(points: np.ndarray) -> np.ndarray:
    """Points (n, 2) in lattice steps, rounded to a tenth of one, each once."""
    if not len(points):
        return points
    fine = np.round(points * 10).astype(int)
    low = fine.min(0)
    fine -= low
    there = np.zeros(fine.max(0) + 1, bool)
    there[fine[:, 0], fine[:, 1]] = True
    return (np.argwhere(there) + low) / 10


def _near(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The map's cells that a body cannot stand at because of points (n, 2), in lattice steps."""
    corners = np.floor(points).astype(int)[:, None] + CORNERS
    near = ((points[:, None] - corners) ** 2).sum(2) < (SURE / GRID) ** 2
    return _inside(corners[near])


def _inside(cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of lattice cells (n, 2) that are on the map, as an index of its arrays."""
    cell = cell + HALF
    x, y = cell[((cell >= 0) & (cell < SIDE)).all(1)].T
    return x, y


def reaching(point: np.ndarray) -> np.ndarray:
    """From which places around it a point is in reach and in view, (13, 13, 4, 2) bool."""
    at = point[:2] / GRID
    cell = np.round(at)
    ticks = np.arange(-AROUND, AROUND + 1)
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
    return seen & (distance <= WITHIN)[..., None, None] & (distance >= BODY_RADIUS)[..., None, None]


def add_patch(places: np.ndarray, point: np.ndarray, patch: np.ndarray) -> None:
    """Adds a patch of places around a point to those of the whole map."""
    x, y = (np.round(point[:2] / GRID).astype(int) + HALF).tolist()
    if min(x, y) >= AROUND and max(x, y) < SIDE - AROUND:
        places[x - AROUND : x + AROUND + 1, y - AROUND : y + AROUND + 1] += patch
