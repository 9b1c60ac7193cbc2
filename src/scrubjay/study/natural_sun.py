"""Scenes of SUN397: the folders a to z, and the lists of the first partition, which the paper's authors used."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.study.encoders import IMAGE_SIZE
from scrubjay.study.natural_data import Labelled, NaturalData, Progress
from scrubjay.study.pictures import read_all

STORED_SIZES = {"train": 256, "validation": IMAGE_SIZE, "test": IMAGE_SIZE}
"""Height and width of stored pictures; those to train on are cropped."""
BROKEN_LIMIT = 10
"""Pictures that may be undecodable; two of the real ones are."""
HELD_OUT = 0.1
"""Share of each class's training pictures that validate."""
Line = tuple[str, str]
"""Class and path of a picture."""


class Sun:
    """SUN397's tree (a/abbey/sun_x.jpg) with Training_01.txt and Testing_01.txt, whose lines are paths from its root.

    The lists are in the folder, in a folder Partitions in it, or beside it. If ClassName.txt is there, lists must have
    its classes. `classes` and `per_class` limit how many are read, for trials.
    """

    task = "scenes"

    def __init__(self, folder: str | Path, classes: int | None = None, per_class: int | None = None) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise DataError(f"{folder}: no such folder; SUN397 is a folder with the folders a to z in it")
        train, test = self._read_list("Training_01.txt"), self._read_list("Testing_01.txt")
        if shared := {path for _, path in train} & {path for _, path in test}:
            raise DataError(f"{folder}: {min(shared)} is in both lists, to train and to test")
        wanted = self._read_class_names() or {name for name, _ in train + test}
        for name, lines in (("Training_01.txt", train), ("Testing_01.txt", test)):
            there = {label for label, _ in lines}
            if missing := sorted(wanted - there):
                raise DataError(f"{folder}: {name} lacks {len(missing)} of {len(wanted)} classes, as {missing[0]}")
            if unknown := sorted(there - wanted):
                raise DataError(f"{folder}: {name} has the class {unknown[0]}, which is not in ClassName.txt")
            if lost := [path for _, path in lines if not (self.folder / path).is_file()]:
                raise DataError(f"{folder}: {name} names {len(lost)} pictures that are not there, as {lost[0]}")
        self.classes = tuple(sorted(wanted))[:classes]
        if len(self.classes) < 2:
            raise DataError(f"{folder}: two classes or more are needed, not {len(self.classes)}")
        train, validation = self._hold_out(self._limit(train, per_class))
        self.lines = {"train": train, "validation": validation, "test": self._limit(test, per_class)}

    def load(self, store: Path, progress: Progress = lambda done, total: None) -> NaturalData:
        """Decodes all pictures once into `store`; undecodable ones are left out, up to BROKEN_LIMIT."""
        sizes = [(self.folder / path).stat().st_size for lines in self.lines.values() for _, path in lines]
        digest = hashlib.sha256(repr([self.lines, sizes, STORED_SIZES]).encode()).hexdigest()[:16]
        folder = Path(store) / f"scenes-{digest}"
        if not folder.exists():
            self._decode(folder, progress)
        try:
            broken = json.loads((folder / "broken.json").read_text())
            images = {split: np.load(folder / f"{split}.npy", mmap_mode="r") for split in self.lines}
        except (OSError, ValueError) as error:
            raise DataError(f"{folder}: damaged; delete the folder, and the pictures are read again") from error
        splits = {}
        for split, lines in self.lines.items():
            labels = [self.classes.index(label) for label, path in lines if path not in broken]
            if images[split].shape != (len(labels), STORED_SIZES[split], STORED_SIZES[split], 3):
                raise DataError(f"{folder}: not the pictures of {self.folder}; delete the folder")
            if missing := set(range(len(self.classes))) - set(labels):
                raise DataError(f"{self.folder}: no picture of {self.classes[min(missing)]} to {split} can be decoded")
            splits[split] = Labelled(images[split], np.array(labels, np.int64))
        return NaturalData(self.task, digest, splits, self.classes, tuple(broken))

    def _decode(self, folder: Path, progress: Progress) -> None:
        """Writes the pictures as arrays; the folder gets its name when they are complete."""
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        total, before, broken = sum(map(len, self.lines.values())), 0, list[str]()
        for split, lines in self.lines.items():
            shape = len(lines), STORED_SIZES[split], STORED_SIZES[split], 3
            images = np.lib.format.open_memmap(unfinished / f"{split}.npy", "w+", np.uint8, shape)
            bad = read_all(
                [self.folder / path for _, path in lines], images, partial(_shifted, progress, before, total)
            )
            broken += [lines[place][1] for place in bad]
            if len(broken) > BROKEN_LIMIT:
                shutil.rmtree(unfinished)
                raise DataError(
                    f"{self.folder}: more than {BROKEN_LIMIT} pictures cannot be decoded, as {broken[0]}; two of "
                    "SUN397's are known to be broken"
                )
            images.flush()
            if bad:
                np.save(unfinished / "whole.npy", np.delete(images, bad, 0))
                os.replace(unfinished / "whole.npy", unfinished / f"{split}.npy")
            before += len(lines)
        write_atomically(unfinished / "broken.json", json.dumps(broken) + "\n")
        unfinished.rename(folder)

    def _find(self, name: str) -> Path | None:
        places = (self.folder, self.folder / "Partitions", self.folder.parent, self.folder.parent / "Partitions")
        return next((place / name for place in places if (place / name).is_file()), None)

    def _read_list(self, name: str) -> list[Line]:
        path = self._find(name)
        if path is None:
            raise DataError(f"{self.folder}: no {name}, which is in SUN397's Partitions.zip; put it into the folder")
        paths = [line.strip().lstrip("/") for line in path.read_text(errors="replace").splitlines() if line.strip()]
        lines = [(str(PurePosixPath(each).parent), each) for each in paths]
        for label, each in lines:
            if label == "." or ".." in PurePosixPath(each).parts:
                raise DataError(f"{path}: {each[:80]!r} is not a path as /a/abbey/sun_x.jpg")
        if not lines or len(set(paths)) < len(paths):
            raise DataError(f"{path}: {'a picture is listed twice' if lines else 'the list is empty'}")
        return lines

    def _read_class_names(self) -> set[str]:
        path = self._find("ClassName.txt")
        return {line.strip().lstrip("/") for line in path.read_text().splitlines() if line.strip()} if path else set()

    def _limit(self, lines: Sequence[Line], per_class: int | None) -> list[Line]:
        """The lines of the classes, sorted, at most so many of each."""
        by_class: dict[str, list[Line]] = {name: [] for name in self.classes}
        for line in sorted(lines):
            if line[0] in by_class and (per_class is None or len(by_class[line[0]]) < per_class):
                by_class[line[0]].append(line)
        return [line for mine in by_class.values() for line in mine]

    def _hold_out(self, lines: Sequence[Line], seed: int = 0) -> tuple[list[Line], list[Line]]:
        """Lines to train on and to validate with: of each class a share, at least one and not all."""
        rng, validation = np.random.default_rng(seed), set[Line]()
        for name in self.classes:
            mine = [line for line in lines if line[0] == name]
            if len(mine) < 2:
                raise DataError(f"{self.folder}: {name} needs two training pictures or more, one of them to validate")
            validation |= {mine[place] for place in rng.permutation(len(mine))[: max(1, round(HELD_OUT * len(mine)))]}
        return [line for line in lines if line not in validation], sorted(validation)


def _shifted(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)
