"""Sequences for free space: an agent turns round twice on the spot, and how much free space each view shows.

In kitchens and living rooms, at min(20, 15 %) of the reachable positions; a random direction first, then seven turns to
one side, so that all four views are seen twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from scrubjay.game.actions import NUMBERS, Stage
from scrubjay.rooms.generate import SCENES, split, type_of
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import cameras, in_view, reach
from scrubjay.sim.world import World
from scrubjay.study.blocks import room_of, write_blocks
from scrubjay.study.dynamic_experiments import RADII
from scrubjay.study.foyer_data import resolved
from scrubjay.study.sequences import SIZE, Clip, ClipRecorder, SequenceWriter
from scrubjay.workers.base import Workers

VIEWS = 8
MOST, SHARE = 20, 0.15
"""Positions in a scene: at most so many, and this share of all."""
ROOM_TYPES = ("kitchen", "living_room")
COLUMNS = {"scene": "U24", "split": "U10", "x": "f8", "y": "f8", "turn": "U5"}
EXTRAS = {"free": ("uint16", (len(RADII),))}
"""Grid positions in the view, within each of RADII."""
TURNS = ("RotateLeft", "RotateRight")


@dataclass(frozen=True)
class SpaceScale:
    """How much data."""

    scenes: tuple[int, int]
    """Train and test scenes of each room type."""
    positions: int = MOST
    """Positions in a scene, at most."""
    types: tuple[str, ...] = ROOM_TYPES

    def names(self) -> list[str]:
        return [
            scene
            for name, count in zip(("train", "test"), self.scenes, strict=True)
            for room_type in self.types
            for scene in [one for one in SCENES if split(one) == name and type_of(one) == room_type][:count]
        ]


SCALES = {"paper": SpaceScale((20, 5)), "mini": SpaceScale((1, 2), 12, ("kitchen",))}


def make_space_data(
    folder: str | os.PathLike[str],
    scale: SpaceScale = SCALES["paper"],
    seed: int = 0,
    renderer: str = "auto",
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers | None = None,
) -> None:
    """Makes what a folder lacks, scene by scene; `progress` is told of scenes. Without workers, see `make_blocks`."""
    renderer, scenes = resolved(renderer, device), scale.names()
    facts = {"positions": scale.positions, "renderer": renderer, "radii": list(RADII)}
    writer = SequenceWriter(folder, "space", Stage.EM, seed, scenes, COLUMNS, EXTRAS, facts)
    finish = partial(_block, writer, scale.positions, seed, renderer, device)
    write_blocks(writer, room_of, finish, {name: (name,) for name in scenes}, progress, workers, device)


def _block(
    writer: SequenceWriter, positions: int, seed: int, renderer: str, device: str, room: CompiledRoom, scene: str
) -> dict[str, np.ndarray | str]:
    rng = np.random.default_rng([seed, SCENES.index(scene)])
    return writer.pack(space_clips(room, positions, rng, renderer, device))


def space_clips(
    room: CompiledRoom, most: int, rng: np.random.Generator, renderer: str = "warp", device: str = "cpu"
) -> Iterator[Clip]:
    """The sequences of one room, eight views each."""
    reachable = room.floor.reachable().positions
    count = max(1, min(most, round(SHARE * len(reachable))))
    with World([room], count, renderer, SIZE, device, threads=1) as world:
        state = world.state
        state.position = reachable[rng.choice(len(reachable), count, replace=False)]
        state.rotation = 90.0 * rng.integers(4, size=count)
        turn, goal = rng.integers(2, size=count), rng.integers(len(GOALS), size=count)
        recorder = ClipRecorder(world, free=_free(world))
        action = np.array([NUMBERS[name] for name in TURNS])[turn]
        for _ in range(VIEWS - 1):
            success = world.rotate(turn)
            recorder.add(action, success, free=_free(world))
        name = room.room.scene
        for one in range(count):
            x, y = state.position[one]
            columns = {"scene": name, "split": split(name) if name in SCENES else "other", "x": x, "y": y}
            columns["turn"] = ("left", "right")[turn[one]]
            yield recorder.clip(one, GOALS[goal[one]], columns)


def free_space(
    room: CompiledRoom, position: np.ndarray, rotation: np.ndarray, standing: np.ndarray, radius: float
) -> np.ndarray:
    """Reachable grid positions (B,) whose floor is in view of agents (B, 2), and at most `radius` meters away."""
    grid = room.floor.reachable().positions
    points = np.concatenate([grid, np.zeros((len(grid), 1))], 1)
    eye, matrix = cameras(position, rotation, standing)
    seen = in_view(eye[:, None], matrix[:, None], points[None])
    # A tolerance, since grid positions lie on the circle.
    return (seen & (reach(position[:, None], points[None]) <= radius + 1e-6)).sum(1)


def _free(world: World) -> np.ndarray:
    """(B, radii)"""
    state = world.state
    counts = [free_space(world.rooms[0], state.position, state.rotation, state.standing, radius) for radius in RADII]
    return np.stack(counts, 1)
