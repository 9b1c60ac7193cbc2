"""Makes the images and labels of the static experiments, scene by scene.

A scene depends on its name, its number of images, the seed and the renderer alone. It is written to a folder of its own
that appears when it is complete, so a run that was killed continues and ends as an unbroken one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.rooms.generate import SCENES, split, type_of
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import cameras
from scrubjay.sim.render.base import View
from scrubjay.sim.render.make import check_request
from scrubjay.sim.walking import Floors
from scrubjay.sim.world import World
from scrubjay.study import static_labels as labels
from scrubjay.study.blocks import make_blocks, room_of
from scrubjay.study.data_files import index_text, read_index, write_folder
from scrubjay.study.static_data import (
    COLUMNS,
    MASK,
    MIN_PIXELS,
    SIZE,
    SPLITS,
    TRAVERSABLE,
    VERSION,
    open_scene,
    read_facts,
)
from scrubjay.workers.base import Workers

ROTATIONS = (0, 90, 180, 270)
OPEN_SHARE = 0.5
"""The probability that an openable is open, in images that open any."""
NEAR, NEAR_SHARE = 0.3, 0.6
"""A view is redrawn if more than this share of its pixels is nearer than this, in meters: a wall in the face."""
BATCH, GPU_BATCH = 64, 256
"""Images rendered at once on a CPU or a GPU; their number changes no image."""
IMAGE_BYTES = 540_000
"""What an image and its labels take on a disk, at most on average."""


@dataclass(frozen=True)
class Scale:
    """How much data: scenes of each of the four room types, and images in all, by split."""

    scenes: tuple[int, int, int]
    images: tuple[int, int, int]

    def counts(self) -> dict[str, int]:
        """Numbers of images by scene. They differ by at most one within a split."""
        counts = {}
        for name, per_type, images in zip(SPLITS, self.scenes, self.images, strict=True):
            types = dict.fromkeys(type_of(scene) for scene in SCENES if split(scene) == name)
            fixed = [[scene for scene in SCENES if split(scene) == name and type_of(scene) == one] for one in types]
            chosen = [scene for scenes in fixed for scene in scenes[:per_type]]
            for number, scene in enumerate(chosen):
                counts[scene] = images // len(chosen) + (number < images % len(chosen))
        return counts


SCALES = {
    "paper": Scale((20, 5, 5), (35855, 1200, 1000)),
    "mini": Scale((1, 1, 2), (48, 24, 48)),
}


def make_static_data(
    folder: str | os.PathLike[str],
    counts: dict[str, int],
    seed: int = 0,
    renderer: str = "warp",
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers | None = None,
) -> None:
    """Makes what a folder lacks of so many images by scene, reporting images done and in all.

    A folder that was made with other counts, another seed or another renderer is refused. Without workers, see
    `make_blocks`.
    """
    folder = Path(folder)
    if seed < 0:
        raise ValueError(f"seed: 0 or more, not {seed}")
    for scene, count in counts.items():
        if split(scene) not in SPLITS or count < 1:
            raise ValueError(f"{scene}: {count} images; foyers are for other experiments, and a scene has 1 or more")
    batch = GPU_BATCH if device.startswith("cuda") else BATCH
    check_request(renderer, device, 1, batch, SIZE)
    facts = {"version": VERSION, "seed": seed, "renderer": renderer, "size": SIZE, "scenes": counts}
    if (folder / "data.json").exists():
        if read_facts(folder) != facts:
            raise DataError(f"{folder}: made with other scenes, another seed or renderer; choose another folder")
    elif folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder}: neither empty nor a folder of data; choose another folder")
    else:
        write_atomically(folder / "data.json", json.dumps(facts, indent=1) + "\n")
    missing = [scene for scene, count in counts.items() if not _complete(folder / scene, count)]
    done = sum(counts.values()) - sum(counts[scene] for scene in missing)
    _check_space(folder, sum(counts[scene] for scene in missing))
    progress(done, sum(counts.values()))
    finish = partial(_images, seed, batch, renderer, device)
    items = [(scene, counts[scene]) for scene in missing]
    for number, arrays in make_blocks(room_of, finish, items, workers, device):
        scene, count = items[number]
        write_folder(folder / scene, arrays)
        progress(done := done + count, sum(counts.values()))
    index = np.concatenate([read_index(folder / scene / "index.csv", COLUMNS) for scene in counts])
    write_atomically(folder / "index.csv", index_text(index))


def _images(
    seed: int, batch: int, renderer: str, device: str, room: CompiledRoom, scene: str, count: int
) -> dict[str, np.ndarray]:
    """A scene's images and labels."""
    with World([room], min(batch, count), renderer, SIZE, device, threads=1) as world:
        return StaticScene(world, seed).make(count)


def _check_space(folder: Path, images: int) -> None:
    free = shutil.disk_usage(folder).free
    if images * IMAGE_BYTES > free:
        needed = images * IMAGE_BYTES / 1e9
        raise DataError(
            f"{folder}: {images:,} images need about {needed:.1f} GB, but only {free / 1e9:.1f} GB are free"
        )


def _complete(folder: Path, count: int) -> bool:
    """Whether a scene is there; DataError if it is broken."""
    if not folder.exists():
        return False
    open_scene(folder, count)
    if len(read_index(folder / "index.csv", COLUMNS)) != count:
        raise DataError(f"{folder}: index.csv does not have {count} images; remove the folder and run again")
    return True


@dataclass(frozen=True)
class _Places:
    """Where images may be taken, in the order in which they are tried."""

    position: np.ndarray
    """(n, 2)"""
    rotation: np.ndarray
    standing: np.ndarray
    open: np.ndarray
    """(n, openables) bool."""
    choice: np.ndarray
    """(n,): from 0 to 1, which of the objects that are allowed is taken out."""

    def take(self, rows: np.ndarray) -> _Places:
        return _Places(*(values[rows] for values in vars(self).values()))


class StaticScene:
    """One room's images; the world holds copies of it, as many as are rendered at once.

    Every second place that is tried has openables open, so that half of the images have.
    """

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.room = world, world.rooms[0]
        scene = self.room.room.scene
        if len(self.room.things) > labels.NOTHING:
            raise DataError(f"{scene}: {len(self.room.things)} things are too many for ids of one byte")
        number = SCENES.index(scene) if scene in SCENES else len(SCENES)
        self.places = all_places(self.room, np.random.default_rng([seed, number]))

    def make(self, count: int) -> dict[str, np.ndarray]:
        """All arrays of `count` images, and their index."""
        made: list[dict[str, np.ndarray]] = []
        # Places with even numbers keep everything closed; of either kind as many as are needed are accepted.
        for opened, wanted in ((0, count - count // 2), (1, count // 2)):
            made += self._accepted(np.arange(opened, len(self.places.rotation), 2), wanted)
        arrays = {name: np.concatenate([part[name] for part in made]) for name in made[0]}
        return arrays | {"object_end": np.cumsum(arrays["object_end"])}

    def _accepted(self, candidates: np.ndarray, wanted: int) -> Iterator[dict[str, np.ndarray]]:
        """Batches of the first candidates that show enough, `wanted` in all."""
        got = first = 0
        while got < wanted and first < len(candidates):
            # A tenth more than is wanted, since some are rejected.
            rows = candidates[first : first + min(len(self.world), wanted - got + (wanted - got) // 10 + 1)]
            first += len(rows)
            places = self.places.take(rows)
            self._stand(places)
            view = self.world.view(("rgb", "depth", "ids", "normals"), worlds=np.arange(len(self.world)) < len(rows))
            near = (view.depth < NEAR).flatten(1).float().mean(1).cpu().numpy()
            chosen = np.flatnonzero(near <= NEAR_SHARE)[: wanted - got]
            if len(chosen):
                got += len(chosen)
                part = View(**{kind: image[chosen] for kind, image in view.images.items()})
                yield self._label(places.take(chosen), rows[chosen] % 2 == 1, part, chosen)
        if got < wanted:
            raise DataError(f"{self.room.room.scene}: only {got} views of {wanted}, in {len(candidates)} places")

    def _stand(self, places: _Places) -> None:
        state, here = self.world.state, slice(0, len(places.rotation))
        state.position[here], state.rotation[here] = places.position, places.rotation
        state.standing[here], state.open[here] = places.standing, places.open

    def _label(self, places: _Places, opened: np.ndarray, view: View, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """Images and labels of places and their views, in worlds given by index."""
        room, count, device = self.room, len(worlds), view.ids.device
        eye, matrix = cameras(places.position, places.rotation.astype(float), places.standing)
        eyes, matrices = (torch.from_numpy(values).to(device, torch.float32) for values in (eye, matrix))
        counts = labels.pixel_counts(view.ids, room)
        thing = _choose(labels.removable(counts, room, MIN_PIXELS, SIZE * SIZE), places.choice)
        mask = labels.mask_of(view.ids, thing, room)
        without = np.full(len(self.world), -1)
        without[worlds] = thing
        rest = self.world.view(
            ("depth", "normals"), worlds=np.isin(np.arange(len(self.world)), worlds), without=without
        )
        points = labels.surface_points(view.depth, eyes, matrices)
        flags = labels.openability(view.ids, torch.from_numpy(places.open).to(device), room)
        flags |= labels.traversable(points, view.normals, view.depth, room).to(torch.uint8) * TRAVERSABLE
        flags |= mask.to(torch.uint8) * MASK
        index = np.empty(count, list(COLUMNS.items()))
        index["scene"], index["scene_type"] = room.room.scene, room.room.type
        index["split"] = split(room.room.scene) if room.room.scene in SCENES else "other"
        index["x"], index["y"], index["z"] = eye.T
        index["rotation"], index["standing"], index["opened"] = places.rotation, places.standing, opened
        index["object"] = thing
        index["object_type"] = [room.room.things[number].type if number >= 0 else "" for number in thing]
        return {
            "rgb": view.rgb.cpu().numpy(),
            "depth": labels.stored_depth(view.depth),
            "normals": labels.stored_normals(labels.camera_normals(view.normals, matrices)),
            "ids": labels.stored_ids(view.ids),
            "flags": flags.cpu().numpy(),
            "types": labels.type_counts(counts, room),
            "object_end": mask.flatten(1).sum(1).cpu().numpy(),
            "object_depth": labels.stored_depth(rest.depth[mask]),
            "object_normals": labels.stored_normals(labels.camera_normals(rest.normals, matrices)[mask]),
            "index": index,
        }


def all_places(room: CompiledRoom, rng: np.random.Generator) -> _Places:
    """All reachable positions, rotations and heights in random order; odd ones have openables open.

    An openable stays closed where it would hit the agent's body.
    """
    positions = room.floor.reachable().positions
    order = rng.permutation(len(positions) * len(ROTATIONS) * 2)
    position = positions[order // (len(ROTATIONS) * 2)]
    rotation = np.array(ROTATIONS)[order // 2 % len(ROTATIONS)]
    openables = max(len(room.openables), 1)
    is_open = rng.random((len(order), openables)) < OPEN_SHARE
    is_open[::2] = False
    is_open[:, len(room.openables) :] = False
    row, number = np.nonzero(is_open)
    swept = Floors([room.floor]).swept_by(np.zeros(len(row), int), position[row], number)
    is_open[row[swept], number[swept]] = False
    return _Places(position, rotation, order % 2 == 1, is_open, rng.random(len(order)))


def _choose(allowed: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """One of the allowed things (B, things) of each image by numbers from 0 to 1 (B,); -1 where there is none."""
    number = (choice * allowed.sum(1)).astype(int)
    which = (np.cumsum(allowed, 1) > number[:, None]).argmax(1)
    return np.where(allowed.any(1), which, -1)
