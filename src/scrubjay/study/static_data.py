"""The synthetic images of the static experiments, with the labels of all seven tasks: what a folder of them holds.

A folder has one folder of memory-mapped arrays per scene (see `FIELDS`), `index.csv` with a row per image, and
`data.json`, which says how it was made. `static_generate.py` writes it. Images are SIZE x SIZE; an image takes about
half a megabyte, the paper's 38,055 take 20 GB.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scrubjay.errors import DataError
from scrubjay.rooms.catalog import TYPES
from scrubjay.rooms.room import GOALS
from scrubjay.study.data_files import open_array, read_index, read_json

VERSION = 1
SIZE = 224
TASKS = ("depth", "normals", "class", "openability", "traversable", "object_depth", "object_normals")
SPLITS = ("train", "validation", "test")
CLASSES = 90
"""Object types of the task "class"."""
MIN_PIXELS = 502
"""Pixels that a type or an object must have to count: 1 % of an image."""
TRAIN_IMAGES = 1200
"""The paper's training examples of each probe."""
DEPTH_STEP = 0.00025
"""Meters per unit of stored depth: up to 16.38 m in 16 bits."""
NORMAL_STEP = 1 / 127
TYPE_NAMES = tuple(sorted(set(TYPES) - {*GOALS, "Doorway"}))
"""Types that can be classes, as columns of `types.npy`. The room's shell and the goal objects are none."""
OPENABILITY, TRAVERSABLE, MASK = 0b11, 0b100, 0b1000
"""Bits of a pixel's flags: 0 other, 1 closed, 2 open; walkable; part of the object that is taken out."""

FIELDS: dict[str, tuple[type, tuple[int, ...]]] = {
    "rgb": (np.uint8, (SIZE, SIZE, 3)),
    "depth": (np.uint16, (SIZE, SIZE)),
    "normals": (np.int8, (SIZE, SIZE, 3)),
    "ids": (np.uint8, (SIZE, SIZE)),
    "flags": (np.uint8, (SIZE, SIZE)),
    "types": (np.uint16, (len(TYPE_NAMES),)),
    "object_end": (np.int64, ()),
}
"""Arrays with a row per image, by file name. Depth is in DEPTH_STEP, 0 for nothing; normals are in NORMAL_STEP, along
the camera's right, up and backward axes; ids are those of the room's things, 255 for nothing; types are pixels of each
type."""
OBJECT_FIELDS: dict[str, tuple[type, tuple[int, ...]]] = {
    "object_depth": (np.uint16, ()),
    "object_normals": (np.int8, (3,)),
}
"""Depth and normals without the object: only its pixels, in the order of rows; `object_end` says where an image ends.
All other pixels are those of the whole image."""

COLUMNS = {
    "scene": "U24",
    "scene_type": "U12",
    "split": "U10",
    "x": "f8",
    "y": "f8",
    "z": "f8",
    "rotation": "i4",
    "standing": "?",
    "opened": "?",
    "object": "i4",
    "object_type": "U24",
}
"""The index: x east, y north and z up of the camera, in meters; degrees; `opened`, whether openables were opened at
random; the id and type of the object that is taken out, -1 and "" for none."""


class StaticData:
    """Images and labels of a finished folder. Rows count all images, scene by scene.

    >>> data = StaticData("out/study/static")
    >>> rows = data.training_rows("depth")
    >>> images, labels = data.images(rows[:32]), data.labels("depth", rows[:32])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Checks versions, shapes and counts of everything; raises DataError with one sentence."""
        self.folder = Path(folder)
        self.facts = read_facts(self.folder)
        if not (self.folder / "index.csv").exists():
            raise DataError(f"{folder}: the data is incomplete; run `scrubjay study data static` again to continue")
        self.index = read_index(self.folder / "index.csv", COLUMNS)
        """Structured array with the columns of COLUMNS, a row per image."""
        counts: dict[str, int] = self.facts["scenes"]
        scenes = [scene for scene, count in counts.items() for _ in range(count)]
        if self.index["scene"].tolist() != scenes:
            raise DataError(f"{folder}: index.csv does not have the {len(scenes)} images that data.json lists")
        self._starts = np.cumsum([0, *counts.values()])
        self._scenes = [open_scene(self.folder / scene, count) for scene, count in counts.items()]
        sizes = np.concatenate([np.diff(scene["object_end"], prepend=0) for scene in self._scenes])
        if not np.array_equal(sizes > 0, self.index["object"] >= 0):
            raise DataError(f"{folder}: index.csv and the arrays disagree about objects")
        self.classes = self._choose_classes()
        """The names of the task "class", most frequent first, (90,)."""

    def __len__(self) -> int:
        return len(self.index)

    def __reduce__(self) -> tuple:
        """Other processes open the folder themselves."""
        return StaticData, (self.folder.resolve(),)

    def split(self, name: str) -> np.ndarray:
        """Row numbers of "train", "validation" or "test"."""
        if name not in SPLITS:
            raise ValueError(f"unknown split {name!r}; choose one of {', '.join(SPLITS)}")
        return np.flatnonzero(self.index["split"] == name)

    def usable(self, task: str, rows: np.ndarray) -> np.ndarray:
        """Those of the rows that have labels of a task: for objects, the images from which one can be taken out."""
        _check_task(task)
        rows = np.asarray(rows)
        return rows[self.index["object"][rows] >= 0] if task.startswith("object") else rows

    def training_rows(self, task: str, count: int = TRAIN_IMAGES, seed: int = 0) -> np.ndarray:
        """At most `count` rows to train a task's probe, equally many of each train scene; fewer are among more."""
        rows = self.usable(task, self.split("train"))
        rng, turns = np.random.default_rng(seed), np.empty(len(rows))
        names = self.index["scene"][rows]
        for scene in dict.fromkeys(self.index["scene"][self.split("train")].tolist()):
            order = rng.permutation(int((self.index["scene"] == scene).sum()))
            mine = np.flatnonzero(names == scene)
            first = np.flatnonzero(self.index["scene"] == scene)[0]
            # An image's turn among those of its scene that are left; a fraction shuffles the scenes of one turn.
            turns[mine] = np.argsort(np.argsort(order[rows[mine] - first])) + rng.random()
        return np.sort(rows[np.argsort(turns, kind="stable")[:count]])

    def images(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """RGB images (n, 224, 224, 3) uint8."""
        return self.read("rgb", rows)

    def labels(self, task: str, rows: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
        """A task's labels of rows (n,): always "target", "valid" where pixels may lack one, "mask" for objects.

        | task | target |
        | --- | --- |
        | depth, object_depth | (n, 224, 224) float32, meters along the camera's axis |
        | normals, object_normals | (n, 224, 224, 3) float32, unit vectors: the camera's right, up and backward axes |
        | class | (n, 90) bool, in the order of `classes` |
        | openability | (n, 224, 224) uint8: 0 other, 1 closed, 2 open |
        | traversable | (n, 224, 224) bool |

        "valid" and "mask" are (n, 224, 224) bool: where there is a surface, and the pixels of the object that the
        target leaves out. Raises ValueError for rows that are not `usable`.
        """
        _check_task(task)
        rows = self._checked(rows)
        if len(self.usable(task, rows)) < len(rows):
            raise ValueError(f"{task}: some of these images have no object to take out; choose rows with `usable`")
        if task == "class":
            columns = [TYPE_NAMES.index(name) for name in self.classes]
            return {"target": self.read("types", rows)[:, columns] >= MIN_PIXELS}
        if task in ("openability", "traversable"):
            flags = self.read("flags", rows)
            return {"target": flags & OPENABILITY if task == "openability" else flags & TRAVERSABLE > 0}
        kind = task.removeprefix("object_")
        stored, depth = self.read(kind, rows), self.read("depth", rows) if kind == "normals" else None
        labels: dict[str, np.ndarray] = {}
        if task.startswith("object"):
            labels["mask"] = self.read("flags", rows) & MASK > 0
            for i, row in enumerate(rows):
                stored[i][labels["mask"][i]] = self._object_pixels(task, row)
                if depth is not None:
                    depth[i][labels["mask"][i]] = self._object_pixels("object_depth", row)
        labels["valid"] = (stored if depth is None else depth) > 0
        labels["target"] = _meters(stored) if kind == "depth" else _unit_vectors(stored)
        return labels

    def read(self, field: str, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """The stored values of a field (see FIELDS) in any rows (n,)."""
        rows = self._checked(rows)
        kind, shape = FIELDS[field]
        values: np.ndarray = np.empty((len(rows), *shape), kind)
        scene = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(scene):
            mine = np.flatnonzero(scene == number)
            values[mine] = self._scenes[number][field][rows[mine] - self._starts[number]]
        return values

    def _object_pixels(self, field: str, row: int) -> np.ndarray:
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        scene, own = self._scenes[number], row - self._starts[number]
        start = scene["object_end"][own - 1] if own else 0
        return scene[field][start : scene["object_end"][own]]

    def _choose_classes(self) -> tuple[str, ...]:
        """The 90 types that most train images show; ties go by name."""
        positive = (self.read("types", self.split("train")) >= MIN_PIXELS).sum(0)
        return tuple(TYPE_NAMES[column] for column in np.argsort(-positive, kind="stable")[:CLASSES])

    def _checked(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, int) if len(rows) == 0 else np.asarray(rows)
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
            raise ValueError(f"rows are one whole number per image, not {rows.dtype} {rows.shape}")
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise ValueError(f"rows are from 0 to {len(self) - 1}, not {rows.min()} to {rows.max()}")
        return rows


def read_facts(folder: Path) -> dict:
    """How a folder was made, and its number of images by scene; DataError if there is none, or of another version."""
    facts = read_json(folder, VERSION, "scrubjay study data static")
    scenes = facts.get("scenes")
    if not isinstance(scenes, dict) or not scenes or not all(type(n) is int and n > 0 for n in scenes.values()):
        raise DataError(f"{folder / 'data.json'}: scenes must be numbers of images by name")
    return facts


def open_scene(folder: Path, count: int) -> dict[str, np.ndarray]:
    """A scene's arrays, memory-mapped and checked against the number of images."""
    arrays: dict[str, np.ndarray] = {}
    for name, (kind, shape) in (FIELDS | OBJECT_FIELDS).items():
        path = folder / f"{name}.npy"
        rows = count if name in FIELDS else int(arrays["object_end"][-1])
        array = open_array(path, kind, (rows, *shape))
        if name == "object_end" and (np.diff(array, prepend=0) < 0).any():
            raise DataError(f"{path}: the ends of objects must not decrease")
        arrays[name] = array
    return arrays


def _check_task(task: str) -> None:
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}; choose one of {', '.join(TASKS)}")


def _meters(stored: np.ndarray) -> np.ndarray:
    return stored.astype(np.float32) * np.float32(DEPTH_STEP)


def _unit_vectors(stored: np.ndarray) -> np.ndarray:
    """Stored normals (..., 3) at unit length; 0 where there is none."""
    vectors = stored.astype(np.float32)
    vectors /= np.maximum(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)), 1)[..., None]
    return vectors
