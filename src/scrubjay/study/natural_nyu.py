"""NYUv2: depth from the labelled .mat file, and depth or walkable floor from ViRB's folders of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scrubjay.errors import DataError
from scrubjay.study.encoders import IMAGE_SIZE
from scrubjay.study.natural_data import SPLITS, Labelled, NaturalData, Progress, Source, digest_of, halve
from scrubjay.study.pictures import BROKEN, list_pictures, read_picture, resize_labels, resize_picture

MAT, SPLITS_MAT = "nyu_depth_v2_labeled.mat", "splits.mat"
LABELS = {"depth": "depths", "walkable": "walkable"}
"""Folders of labels, by task."""
MILLIMETERS = 1000


def nyu_source(path: str | Path, task: str, limit: int | None = None) -> Source:
    """NYUv2 from a .mat file, a folder with one, or ViRB's folders; of each split at most `limit` pictures."""
    path = Path(path)
    if task == "depth" and path.is_file():
        return NyuMat(path, limit)
    if task == "depth" and (path / MAT).is_file():
        return NyuMat(path / MAT, limit)
    return NyuFolders(path, task, limit)


class NyuMat:
    """Depth: nyu_depth_v2_labeled.mat (version 7.3), with splits.mat beside it."""

    task = "depth"

    def __init__(self, path: str | Path, limit: int | None = None) -> None:
        self.path = Path(path)
        h5py = _h5py()
        try:
            with h5py.File(self.path) as file:
                shapes = {name: file[name].shape for name in ("images", "depths")}
        except (OSError, KeyError, AttributeError) as error:
            raise DataError(f"{path}: not {MAT} of NYUv2, or damaged: {error}") from error
        images, depths = shapes["images"], shapes["depths"]
        # MATLAB's arrays have their axes reversed: (n, 3, width, height) and (n, width, height).
        if len(images) != 4 or images[1] != 3 or depths != (images[0], *images[2:]):
            raise DataError(f"{path}: pictures of shape {images} and depths of shape {depths} do not fit together")
        train, test = self._read_splits(images[0])
        validation, rest = halve(len(test))
        rows = {"train": train, "validation": [test[i] for i in validation], "test": [test[i] for i in rest]}
        self.rows = {split: mine[:limit] for split, mine in rows.items()}

    def load(self, store: Path, progress: Progress = lambda done, total: None) -> NaturalData:
        """Reads all pictures; DataError if one has no depth."""
        splits, done, total = {}, 0, sum(map(len, self.rows.values()))
        with _h5py().File(self.path) as file:
            for split, rows in self.rows.items():
                images = np.empty((len(rows), IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
                depths = np.empty((len(rows), IMAGE_SIZE, IMAGE_SIZE), np.float32)
                for place, row in enumerate(rows):
                    try:
                        image, depth = file["images"][row], file["depths"][row]
                    except OSError as error:
                        raise DataError(f"{self.path}: picture {row + 1} cannot be read: {error}") from error
                    images[place] = resize_picture(np.ascontiguousarray(image.transpose(2, 1, 0)), IMAGE_SIZE)
                    depths[place] = _checked_depth(resize_labels(depth.T, IMAGE_SIZE), f"{self.path}: {row + 1}")
                    done += 1
                    progress(done, total)
                splits[split] = Labelled(images, depths)
        return NaturalData(self.task, digest_of(splits), splits)

    def _read_splits(self, count: int) -> tuple[list[int], list[int]]:
        """Rows, from 0, to train and to test."""
        path = self.path.with_name(SPLITS_MAT)
        if not path.is_file():
            raise DataError(f"{self.path}: no {SPLITS_MAT} beside it; NYUv2's page has it")
        numbers = _read_mat(path)
        lists = []
        for name in ("trainNdxs", "testNdxs"):
            if name not in numbers or not len(mine := np.asarray(numbers[name]).ravel().astype(int).tolist()):
                raise DataError(f"{path}: no list {name}")
            if min(mine) < 1 or max(mine) > count:
                wrong = min(mine) if min(mine) < 1 else max(mine)
                raise DataError(f"{path}: {name} names picture {wrong}, but there are 1 to {count}")
            lists.append([number - 1 for number in mine])
        if len(set(lists[0] + lists[1])) < len(lists[0]) + len(lists[1]):
            raise DataError(f"{path}: a picture is listed twice")
        _check_count(len(lists[1]), path)
        return sorted(lists[0]), sorted(lists[1])


class NyuFolders:
    """Depth or walkable floor: nyu/{train,test}/{images,depths,walkable} as of ViRB; pictures and labels have one name.

    Depths are meters in floating point or millimeters in 16 bits; floor is where a label is not 0. Pictures without a
    label are left out: walkable floor was not drawn in all of them.
    """

    def __init__(self, folder: str | Path, task: str, limit: int | None = None) -> None:
        self.task, self.folder = task, Path(folder)
        if not (self.folder / "train").is_dir() and (self.folder / "nyu" / "train").is_dir():
            self.folder /= "nyu"
        train, test = (self._pairs(split) for split in ("train", "test"))
        _check_count(len(test), self.folder)
        validation, rest = halve(len(test))
        pairs = {"train": train, "validation": [test[i] for i in validation], "test": [test[i] for i in rest]}
        self.pairs = {split: mine[:limit] for split, mine in pairs.items()}

    def load(self, store: Path, progress: Progress = lambda done, total: None) -> NaturalData:
        """Reads all pictures; DataError if one is broken, or has another size than its label."""
        splits, done, total = {}, 0, sum(map(len, self.pairs.values()))
        for split in SPLITS:
            images, targets = [], []
            for image_path, label_path in self.pairs[split]:
                image, label = read_picture(image_path), self._read_label(label_path)
                if image.shape[:2] != label.shape:
                    sizes = [f"{width} x {height}" for height, width in (label.shape, image.shape[:2])]
                    raise DataError(f"{label_path}: {sizes[0]} pixels, but its picture has {sizes[1]}")
                label = resize_labels(label, IMAGE_SIZE)
                images.append(resize_picture(image, IMAGE_SIZE))
                targets.append(_checked_depth(label, str(label_path)) if self.task == "depth" else label)
                done += 1
                progress(done, total)
            splits[split] = Labelled(np.stack(images), np.stack(targets))
        return NaturalData(self.task, digest_of(splits), splits)

    def _pairs(self, split: str) -> list[tuple[Path, Path]]:
        """Each labelled picture and its label, by name."""
        folder, kind = self.folder / split, LABELS[self.task]
        if not (folder / "images").is_dir() or not (folder / kind).is_dir():
            raise DataError(f"{folder}: needs the folders images and {kind} with pictures in them")
        images, labels = (
            {path.stem: path for path in list_pictures(folder / part)} for part in ("images", kind)
        )  # fmt: skip
        if lost := sorted(set(labels) - set(images)):
            raise DataError(f"{folder}: {len(lost)} labels have no picture, as {labels[lost[0]].name}")
        return [(images[name], labels[name]) for name in sorted(labels)]

    def _read_label(self, path: Path) -> np.ndarray:
        try:
            with Image.open(path) as file:
                if self.task == "walkable":
                    return np.asarray(file.convert("L")) > 0
                depth = np.asarray(file)
        except BROKEN as error:
            raise DataError(f"{path}: not a picture, or a broken one") from error
        if depth.ndim != 2 or depth.dtype == np.uint8:
            raise DataError(f"{path}: depths are floating point numbers in meters or 16 bits in millimeters")
        return depth.astype(np.float32) / (1 if np.issubdtype(depth.dtype, np.floating) else MILLIMETERS)


def _check_count(count: int, where: Path) -> None:
    """Refuses lists of test pictures that are too short to halve."""
    if count < 3:
        raise DataError(f"{where}: {count} test pictures; three or more are needed, half of them to validate")


def _checked_depth(depth: np.ndarray, where: str) -> np.ndarray:
    """Depth with 0 where it is not known."""
    depth = np.where(np.isfinite(depth) & (depth > 0), depth, 0).astype(np.float32)
    if not depth.any():
        raise DataError(f"{where} has no depth at all")
    return depth


def _read_mat(path: Path) -> Mapping[str, Any]:
    """The arrays of a .mat file of any version."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        return loadmat(path)
    except NotImplementedError:  # Version 7.3, which is HDF5.
        try:
            with _h5py().File(path) as file:
                return {name: np.asarray(file[name]) for name in file if not name.startswith("#")}
        except (OSError, TypeError) as error:
            raise DataError(f"{path}: not a .mat file, or damaged: {error}") from error
    except (MatReadError, ValueError, TypeError, OSError) as error:
        raise DataError(f"{path}: not a .mat file, or damaged: {error}") from error


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise DataError("NYUv2's .mat file needs the package h5py: pip install scrubjay[natural]") from error
    return h5py
