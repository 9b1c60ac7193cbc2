"""Makes the sequences of the experiments in foyers: objects carried into receptacles or behind them, and behind books.

A block of sequences depends on its foyer, table and receptacle, the seed and the renderer alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, product

import numpy as np

from scrubjay.errors import RendererError
from scrubjay.game.actions import Stage
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.generate.foyer import RECEPTACLES, TABLES
from scrubjay.rooms.generate.foyer_scene import (
    FOYERS,
    BookRow,
    FoyerRequest,
    Receptacle,
    free_range,
    make_foyer,
    with_table,
)
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom, compile_room
from scrubjay.sim.render.make import check_request, make_renderer
from scrubjay.sim.world import World
from scrubjay.study import foyer_scripts as scripts
from scrubjay.study import foyer_tracking as tracking
from scrubjay.study.blocks import write_blocks
from scrubjay.study.foyer_scripts import Trajectories
from scrubjay.study.sequences import SIZE, Clip, SequenceWriter
from scrubjay.study.trajectory_frames import BATCH, TRACKING_EXTRAS, FrameRenderer, clip_of
from scrubjay.workers.base import Workers

ASIDE, TOWARD = 0.25, 0.15
"""Meters of a receptacle from the table's middle, at most."""
BEHIND = 0.2
"""Meters of the table that stay free behind a receptacle, where they can."""
ROWS_PER_PATH = 3
"""Rows of books that are tried for each path wanted."""
CONTAINED_COLUMNS = {
    "scene": "U24", "table": "U16", "receptacle": "U16", "pair": "i4", "label": "i1", "forward_steps": "i4",
    "ahead": "f4", "aside": "f4", "yaw": "f4",
}  # fmt: skip
"""`label` is 1 for into, 0 for behind; the two of a `pair` follow each other. `ahead` and `aside` are meters from the
agent to the receptacle's middle, `yaw` is the receptacle's."""
TRACKING_COLUMNS = {
    "scene": "U24", "table": "U16", "path": "i4", "books": "i4", "front": "f4", "yaw": "f4", "to_right": "?",
}  # fmt: skip


@dataclass(frozen=True)
class ContainedScale:
    """How many pairs: every foyer, table, receptacle and object with `rooms` * `poses` offsets."""

    rooms: int
    """Places and orientations of the receptacle on its table, each a room of its own."""
    poses: int
    """Of the agent in each of these rooms."""
    foyers: tuple[str, ...] = FOYERS
    tables: tuple[str, ...] = tuple(TABLES)
    receptacles: tuple[str, ...] = tuple(RECEPTACLES)
    objects: tuple[str, ...] = GOALS

    def __post_init__(self) -> None:
        _check_names(self, foyers=FOYERS, tables=TABLES, receptacles=RECEPTACLES, objects=GOALS)
        if min(self.rooms, self.poses) < 1:
            raise ValueError(f"rooms and poses: 1 or more, not {self.rooms} and {self.poses}")

    @property
    def pairs(self) -> int:
        """Before invalid ones are dropped."""
        combinations = len(self.foyers) * len(self.tables) * len(self.receptacles) * len(self.objects)
        return combinations * self.rooms * self.poses


@dataclass(frozen=True)
class TrackingScale:
    """How many paths: so many for every foyer, table and object, as far as good ones are found."""

    paths: int
    foyers: tuple[str, ...] = FOYERS
    tables: tuple[str, ...] = tuple(TABLES)
    objects: tuple[str, ...] = tracking.TRACKED

    def __post_init__(self) -> None:
        _check_names(self, foyers=FOYERS, tables=TABLES, objects=tracking.TRACKED)
        if self.paths < 1:
            raise ValueError(f"paths: 1 or more, not {self.paths}")


def _check_names(scale: ContainedScale | TrackingScale, **known: Iterable[str]) -> None:
    """Raises ValueError for a factor without values, or with one that does not exist."""
    for factor, names in known.items():
        values = getattr(scale, factor)
        if wrong := [value for value in values if value not in names] or ([] if values else ["nothing"]):
            raise ValueError(f"{factor}: {wrong[0]} is none of {', '.join(names)}")


CONTAINED_SCALES = {
    "paper": ContainedScale(8, 5),
    "mini": ContainedScale(
        1, 6, FOYERS[:2], ("DiningTable", "Dresser"), ("Bowl", "LaundryHamper"), ("Cup", "Knife", "Tomato")
    ),
}
TRACKING_SCALES = {
    "paper": TrackingScale(10),
    "mini": TrackingScale(2, FOYERS[:2], ("DiningTable", "Dresser"), ("Cup", "Tomato")),
}


def make_contained_data(
    folder: str | os.PathLike[str],
    scale: ContainedScale,
    seed: int = 0,
    renderer: str = "auto",
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers | None = None,
) -> None:
    """Makes what a folder lacks of pairs into and behind receptacles, reporting blocks done and in all.

    Without workers, see `make_blocks`.
    """
    names = {
        f"{foyer}-{table}-{kind}": (foyer, table, kind, scale, seed)
        for foyer, table, kind in product(scale.foyers, scale.tables, scale.receptacles)
    }
    renderer = resolved(renderer, device)
    writer = _writer(folder, "contained", seed, renderer, list(names), CONTAINED_COLUMNS, {}, scale)
    finish = partial(_contained_block, writer, renderer, device)
    write_blocks(writer, plan_contained, finish, names, progress, workers, device)


def make_tracking_data(
    folder: str | os.PathLike[str],
    scale: TrackingScale,
    seed: int = 0,
    renderer: str = "auto",
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers | None = None,
) -> None:
    """Makes what a folder lacks of paths behind books, reporting blocks done and in all.

    Without workers, see `make_blocks`.
    """
    names = {f"{foyer}-{table}": (foyer, table, scale, seed) for foyer, table in product(scale.foyers, scale.tables)}
    renderer, columns = resolved(renderer, device), TRACKING_COLUMNS
    writer = _writer(folder, "tracking", seed, renderer, list(names), columns, TRACKING_EXTRAS, scale)
    finish = partial(_tracking_block, writer, renderer, device)
    write_blocks(writer, plan_tracking, finish, names, progress, workers, device)


def plan_contained(
    foyer: str, table: str, kind: str, scale: ContainedScale, seed: int
) -> tuple[list[CompiledRoom], list[Receptacle], np.ndarray, Trajectories, np.ndarray]:
    """A block's rooms and receptacles, and by world: offsets, trajectories, and which pairs are valid.

    The worlds of a room follow each other: pose by pose, object by object, into and behind.
    """
    rng = np.random.default_rng(
        [seed, 1, FOYERS.index(foyer), list(TABLES).index(table), list(RECEPTACLES).index(kind)]
    )
    base, things = with_table(make_room(foyer), table), []
    for _ in range(scale.rooms):
        yaw = float(rng.uniform(0, 360))
        low, high = free_range(base, kind, yaw, BEHIND)
        low, high = np.maximum(low, [-ASIDE, -TOWARD]), np.minimum(high, [ASIDE, TOWARD])
        aside, toward = rng.uniform(low, np.maximum(low, high))
        things.append(Receptacle(kind, float(aside), float(toward), yaw))
    rooms = [compile_room(make_foyer(FoyerRequest(foyer, table, thing))) for thing in things]
    per_pose = 2 * len(scale.objects)
    offsets = np.repeat(scripts.draw_offsets(scale.rooms * scale.poses, rng), per_pose, 0)
    goal = np.tile(np.repeat([GOALS.index(name) for name in scale.objects], 2), scale.rooms * scale.poses)
    with World(rooms, scale.poses * per_pose, threads=1) as world:
        trajectories, valid = scripts.carry_pairs(world, [scripts.target_of(room) for room in rooms], offsets, goal)
    return rooms, things, offsets, trajectories, valid


def plan_tracking(
    foyer: str, table: str, scale: TrackingScale, seed: int
) -> tuple[list[CompiledRoom], list[BookRow], tracking.Paths, Trajectories]:
    """A block's rooms and rows of books, and paths behind them; the objects' worlds of a room follow each other."""
    rng = np.random.default_rng([seed, 2, FOYERS.index(foyer), list(TABLES).index(table)])
    base = with_table(make_room(foyer), table)
    rows = [tracking.draw_row(base, rng) for _ in range(ROWS_PER_PATH * scale.paths)]
    rooms = [compile_room(make_foyer(FoyerRequest(foyer, table, row))) for row in rows]
    paths = tracking.draw_paths(rooms, np.array([GOALS.index(name) for name in scale.objects]), rng)
    with World(rooms, len(scale.objects), threads=1) as world:
        return rooms, rows, paths, tracking.follow_paths(world, paths)


def _contained_block(
    writer: SequenceWriter, renderer: str, device: str, made: tuple, foyer: str, table: str, kind: str,
    scale: ContainedScale, seed: int,
) -> dict[str, np.ndarray | str]:  # fmt: skip
    per_block = scale.rooms * scale.poses * len(scale.objects)
    number = writer.plan["blocks"].index(f"{foyer}-{table}-{kind}")
    rooms = _contained_clips(number * per_block, (foyer, table, kind), made, renderer, device)
    return writer.pack(chain.from_iterable(_one_ahead(rooms)))


def _tracking_block(
    writer: SequenceWriter, renderer: str, device: str, made: tuple, foyer: str, table: str, scale: TrackingScale,
    seed: int,
) -> dict[str, np.ndarray | str]:  # fmt: skip
    rooms = _tracking_clips(scale.paths, (foyer, table), made, renderer, device)
    return writer.pack(chain.from_iterable(_one_ahead(rooms)))


def _contained_clips(
    first_pair: int, names: tuple[str, str, str], made: tuple, renderer: str, device: str
) -> Iterator[list[Clip]]:
    """The clips of each room."""
    rooms, things, offsets, trajectories, valid = made
    per_room, forward = len(valid) // len(rooms), trajectories.forward_steps()
    for number, room in enumerate(rooms):
        worlds = np.arange(number * per_room, (number + 1) * per_room)
        worlds = worlds[valid[worlds]]
        with FrameRenderer(room, trajectories, renderer, device) as frames:
            images = frames.images(worlds)
        clips = []
        for world, own in zip(worlds, images, strict=True):
            columns = dict(zip(("scene", "table", "receptacle"), names, strict=True)) | {
                "pair": first_pair + world // 2, "label": 1 - world % 2, "forward_steps": forward[world],
                "ahead": offsets[world, 0], "aside": offsets[world, 1], "yaw": things[number].yaw,
            }  # fmt: skip
            clips.append(clip_of(trajectories, world, own, columns, {}))
        yield clips


def _tracking_clips(
    wanted: int, names: tuple[str, str], made: tuple, renderer: str, device: str
) -> Iterator[list[Clip]]:
    """The clips of each room: the first good paths of each object, as many as are wanted."""
    rooms, rows, paths, trajectories = made
    per_room = len(paths.goal) // len(rooms)
    found = np.zeros(per_room, int)
    for number, room in enumerate(rooms):
        worlds = number * per_room + np.flatnonzero(found < wanted)
        worlds = worlds[paths.possible[worlds]]
        if not len(worlds):
            continue
        with FrameRenderer(room, trajectories, renderer, device) as frames:
            labels = dict(zip(worlds, frames.labels(worlds), strict=True))
            good = np.array([world for world in worlds if tracking.is_good_path(labels[world]["visible"])], int)
            images = frames.images(good)
        clips = []
        for world, own in zip(good, images, strict=True):
            columns = dict(zip(("scene", "table"), names, strict=True)) | {
                "path": found[world % per_room], "books": rows[number].count, "front": rows[number].front,
                "yaw": rows[number].yaw, "to_right": paths.to_right[world],
            }  # fmt: skip
            found[world % per_room] += 1
            clips.append(clip_of(trajectories, world, own, columns, labels[world]))
        yield clips


def resolved(renderer: str, device: str) -> str:
    """The renderer that "auto" means here, since data are of one renderer: OpenGL on a CPU, where it works."""
    check_request(renderer, device, 1, BATCH, SIZE)
    if renderer != "auto" or device != "cpu":
        return "warp" if renderer == "auto" else renderer
    try:
        make_renderer("opengl", [compile_room(make_room(FOYERS[0]))], 1, 28).close()
    except RendererError:
        return "warp"
    return "opengl"


def _writer(
    folder, experiment: str, seed: int, renderer: str, blocks: list[str], columns: dict, extras: dict,
    scale: ContainedScale | TrackingScale,
) -> SequenceWriter:  # fmt: skip
    if seed < 0:
        raise ValueError(f"seed: 0 or more, not {seed}")
    facts = {"scale": asdict(scale), "renderer": renderer}
    return SequenceWriter(folder, experiment, Stage.OM, seed, blocks, columns, extras, facts)


def _one_ahead(rooms: Iterator[list[Clip]]) -> Iterator[list[Clip]]:
    """Yields each room's clips while a thread renders the next room's."""
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(next, rooms, None)
        while (clips := made.result()) is not None:
            made = pool.submit(next, rooms, None)
            yield clips
