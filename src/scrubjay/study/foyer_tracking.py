"""Paths of an object behind a row of books: where they begin, how the hand follows them, and the cells it passes.

The agent crouches, since standing it would look over the books. An object starts beside the row, in view, and the hand
moves it to one side behind the books until it is as far on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.generate.foyer import BOOK, support_of, table_of
from scrubjay.rooms.generate.foyer_scene import BOOK_GAP, EDGE, BookRow
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.physics import HAND_STEP
from scrubjay.sim.pose import CAMERA_CROUCHING, PITCH, REACH
from scrubjay.sim.quaternion import quat_from_axis_angle
from scrubjay.sim.world import NOTHING, World
from scrubjay.study.foyer_scripts import LEFT, RIGHT, SIZES, Trajectories, extent_along, follow

TRACKED = ("Cup", "Knife", "Tomato")
"""Objects small enough for books to hide."""
OCCLUDED = 10
"""An object with fewer visible pixels is occluded."""
MIN_VISIBLE, MIN_OCCLUDED = 3, 3
"""Frames of a path before the first occluded one, and occluded ones."""
BOOKS, FRONT, YAW, HEIGHT = (3, 6), (0.05, 0.25), 15.0, (0.1, 0.25)
"""Ranges: books of a row, meters from the table's front, degrees, meters of an object's middle over the table."""
CROSSWISE = "Knife"
"""Held across, or only its tip would be seen."""
GAP = 0.02
"""Meters between books and object, and between the object and what else is near."""
BESIDE = 0.29
"""Meters from the row's end to the object's middle at the start, at least."""
BODY = 0.32
"""Meters from the agent's middle to the table's front, at least."""


@dataclass(frozen=True)
class Paths:
    """Starts of B paths; those that are not `possible` (B,) bool are not to be followed."""

    position: np.ndarray
    """The agents', (B, 2)."""
    rotation: np.ndarray
    goal: np.ndarray
    pose: np.ndarray
    """The object's, (B, 7)."""
    to_right: np.ndarray
    """(B,) bool."""
    moves: np.ndarray
    """(B,): numbers of movements."""
    possible: np.ndarray


def draw_row(room: Room, rng: np.random.Generator) -> BookRow:
    """A row of books that fits on a foyer's table."""
    width = support_of(table_of(room)).size[0]
    pitch = BOOK[1] + BOOK_GAP
    most = int((width - 2 * EDGE) / pitch)
    count = int(rng.integers(BOOKS[0], min(BOOKS[1], most) + 1))
    spare = (width - count * pitch) / 2 - 2 * EDGE
    return BookRow(
        count, float(rng.uniform(*FRONT)), float(rng.uniform(-1, 1) * min(0.1, spare)),
        float(rng.uniform(-YAW, YAW)), int(rng.integers(1000)),
    )  # fmt: skip


def draw_paths(rooms: list[CompiledRoom], goals: np.ndarray, rng: np.random.Generator) -> Paths:
    """A path for each object (n,) behind the books of each room; world r * n + k is object k's in room r."""
    count = len(rooms) * len(goals)
    made = [np.zeros((count, width)) for width in (2, 1, 7)]
    position, rotation, pose = made
    to_right, possible, moves = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, int)
    for number, room in enumerate(rooms):
        table = table_of(room.room)
        facing = (table.yaw + 180) % 360
        ahead, right = np.append(facing_vector(facing), 0.0), np.append(right_vector(facing), 0.0)
        books = [i for i, thing in enumerate(room.room.things) if thing.name.startswith("Book_occluder")]
        (near, far), (left_end, right_end) = (extent_along(room, books, way) for way in (ahead, right))
        at = np.asarray(table.position[:2]) @ ahead[:2]
        front, back = at - table.size[1] / 2, at + table.size[1] / 2
        top = table.position[2] + float(support_of(table).position[2])
        for k, goal in enumerate(goals):
            world = number * len(goals) + k
            width, depth, height = SIZES[goal][[1, 0, 2]] if GOALS[goal] == CROSSWISE else SIZES[goal]
            path = far + GAP + depth / 2
            reach = (right_end - left_end) / 2 + BESIDE + rng.uniform(0, HAND_STEP)
            shares = rng.random(3)
            # As near as the whole path is in view, or as the body allows.
            lowest, level = top + height / 2 + 0.015, np.cos(np.radians(PITCH))
            needed = (reach + width / 2 + GAP - (CAMERA_CROUCHING - lowest) * np.sin(np.radians(PITCH))) / level
            distance = max(needed + 0.12 * shares[0], path - front + BODY)
            # The books' upper edge hides what is below the line from the eye over it.
            slope = (BOOK[2] + top - CAMERA_CROUCHING) / ((near + far) / 2 - path + distance)
            line = CAMERA_CROUCHING + slope * (distance - depth / 2 if slope > 0 else distance + depth / 2)
            highest = min(top + HEIGHT[1], line - height / 2 - 0.01)
            z = max(min(top + HEIGHT[0], highest), lowest)
            z += shares[1] * max(highest - z, 0)
            sign = 1 if shares[2] < 0.5 else -1
            middle = (left_end + right_end) / 2
            spot = ahead[:2] * path + right[:2] * (middle - sign * reach)
            position[world] = ahead[:2] * (path - distance) + right[:2] * middle
            turn = -facing + (90 if GOALS[goal] == CROSSWISE else 0)
            pose[world] = [*spot, z, *quat_from_axis_angle(np.array([[0.0, 0, 1]]), np.array([turn]))[0]]
            rotation[world], to_right[world] = facing, sign > 0
            moves[world] = int(2 * reach / HAND_STEP)
            possible[world] = highest >= lowest and path + depth / 2 + GAP < back and np.hypot(distance, reach) < REACH
    return Paths(position, rotation[:, 0], np.tile(goals, len(rooms)), pose, to_right, moves, possible)


def follow_paths(world: World, paths: Paths) -> Trajectories:
    """Puts objects at the starts of their paths and moves them; a movement that fails ends its path."""
    state = world.state
    state.position[:], state.rotation[:], state.standing[:] = paths.position, paths.rotation, False
    state.goal[:], state.pose[:], state.held[:] = paths.goal, paths.pose, True
    schedule = np.where(paths.to_right, RIGHT, LEFT)[:, None].repeat(paths.moves.max(), 1)
    schedule[np.arange(schedule.shape[1]) >= paths.moves[:, None]] = NOTHING
    trajectories, _ = follow(world, schedule, paths.possible, lower=False)
    return trajectories


def cell_counts(mask: torch.Tensor) -> np.ndarray:
    """Numbers of pixels of masks (n, size, size) in each of the 7 x 7 cells, (n, 7, 7)."""
    edge = mask.shape[1] // CELLS
    counts = mask.reshape(-1, CELLS, edge, CELLS, edge).sum((2, 4))
    return counts.cpu().numpy()


def is_good_path(visible: np.ndarray) -> bool:
    """Whether visible pixels (T,) show an object that is seen first and then occluded for long enough."""
    hidden = np.flatnonzero(visible < OCCLUDED)
    return len(hidden) >= MIN_OCCLUDED and hidden[0] >= MIN_VISIBLE
