"""The natural images of the paper's F.2, from the folders that a user has.

`natural_sun.py` reads SUN397's scenes, `natural_nyu.py` NYUv2 with depth or walkable floor. Each source checks its
lists and shapes when it is made, before a picture is decoded; `load` then reads everything at the size that encoders
see. DataError says in one sentence what is wrong.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

SPLITS = ("train", "validation", "test")
Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""


@dataclass(frozen=True)
class Labelled:
    """Pictures and labels of one split."""

    images: np.ndarray
    """(n, S, S, 3) uint8, perhaps a memory map; S is 224, or more where pictures are cropped."""
    target: np.ndarray
    """Classes (n,) int64, meters (n, 224, 224) float32 with 0 where unknown, or walkable (n, 224, 224) bool."""

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class NaturalData:
    """A task's pictures."""

    task: str
    """Of `natural_tasks.TASKS`."""
    digest: str
    """What the data is, in 16 characters."""
    splits: Mapping[str, Labelled]
    """Of "train", "validation" and "test"."""
    classes: tuple[str, ...] = ()
    """Of scenes."""
    broken: tuple[str, ...] = ()
    """Pictures that could not be decoded and are left out."""

    def __getitem__(self, split: str) -> Labelled:
        return self.splits[split]


class Source(Protocol):
    """Where a task's pictures come from."""

    task: str

    def load(self, store: Path, progress: Progress = ...) -> NaturalData:
        """Reads all pictures; what takes long to read is kept in the folder `store`."""
        ...


def halve(count: int) -> tuple[list[int], list[int]]:
    """Places of test images that validate, and of those that test.

    Of NYUv2's 654 these are the halves of muscleTorch (Ehsani et al.), whose tasks are those of the paper.
    """
    rng, test, validation = random.Random(0), list(range(count)), list[int]()
    for _ in range(count // 2):
        # Their draw includes the end; of 654 it is never drawn.
        validation.append(test.pop(min(rng.randint(0, len(test)), len(test) - 1)))
    return sorted(validation), test


def digest_of(splits: Mapping[str, Labelled]) -> str:
    """A digest of all pictures and labels."""
    digest = hashlib.sha256()
    for name, examples in splits.items():
        digest.update(f"{name} {examples.images.shape} {examples.target.shape} {examples.target.dtype}".encode())
        digest.update(np.ascontiguousarray(examples.images).data)
        digest.update(np.ascontiguousarray(examples.target).data)
    return digest.hexdigest()[:16]
