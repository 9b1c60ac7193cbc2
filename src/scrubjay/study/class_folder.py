"""The classification baseline on a folder of pictures, as ImageNet comes: FOLDER/train/CLASS/*, FOLDER/val/CLASS/*.

The encoder's features, averaged over cells, and a linear layer predict the class (F). The paper says nothing of crops;
these are the usual ones: in training a random part of the picture (a quarter of it or more, sides from 3 : 4 to 4 : 3),
mirrored half of the time; in validation the middle, 7/8 of the shorter side.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.encoder import Encoder
from scrubjay.errors import DataError
from scrubjay.study.encoder_training import EncoderTraining, EncoderTrainingConfig

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
SMALLEST_SHARE = 0.25
"""The smallest part of a picture that is cropped in training."""
MIDDLE = 7 / 8
"""Of a picture's shorter side, in validation."""
BROKEN = (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError)
Progress = Callable[[int, int], None]


class ClassFolder:
    """The pictures of a folder, listed and checked; DataError says in a sentence what is wrong."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        found = {split: self._list(split) for split in ("train", "val")}
        self.classes = tuple(found["train"])
        """Names, sorted; labels are their places."""
        if missing := sorted(found["train"].keys() - found["val"].keys()):
            raise DataError(f"{self.folder / 'val'}: lacks class {missing[0]!r} of train, and {len(missing) - 1} more")
        if unknown := sorted(found["val"].keys() - found["train"].keys()):
            raise DataError(
                f"{self.folder / 'val'}: class {unknown[0]!r} is not in train, nor are {len(unknown) - 1} more"
            )
        if len(self.classes) < 2:
            raise DataError(f"{self.folder / 'train'}: at least two classes, each a folder of pictures, not one")
        self.paths = {split: [path for paths in classes.values() for path in paths] for split, classes in found.items()}
        self.labels = {
            split: np.repeat(np.arange(len(self.classes)), [len(paths) for paths in classes.values()])
            for split, classes in found.items()
        }

    @property
    def digest(self) -> str:
        """Of all pictures' paths and sizes in bytes."""
        lines = [
            f"{path.relative_to(self.folder)} {path.stat().st_size}" for paths in self.paths.values() for path in paths
        ]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def check(self, progress: Progress = lambda done, total: None) -> None:
        """Decodes every picture once; DataError names the first that is broken."""
        paths = [path for paths in self.paths.values() for path in paths]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done, error in enumerate(pool.map(_broken, paths), 1):
                if error:
                    pool.shutdown(cancel_futures=True)
                    raise DataError(error)
                progress(done, len(paths))

    def _list(self, split: str) -> dict[str, list[Path]]:
        """Pictures by class, both sorted."""
        root = self.folder / split
        if not root.is_dir():
            raise DataError(f"{root}: no such folder; a folder of pictures has train/CLASS and val/CLASS")
        classes = sorted(path for path in root.iterdir() if path.is_dir())
        found = {
            each.name: sorted(path for path in each.iterdir() if path.suffix.lower() in SUFFIXES) for each in classes
        }
        if not found:
            raise DataError(f"{root}: no classes; each is a folder of pictures")
        if empty := [name for name, paths in found.items() if not paths]:
            raise DataError(f"{root / empty[0]}: no pictures ({', '.join(SUFFIXES)})")
        return found


class Pictures:
    """One split of a folder, cropped to a size."""

    def __init__(self, folder: ClassFolder, split: str, size: int, seed: int = 0) -> None:
        self.paths: Sequence[Path] = folder.paths[split]
        self.labels = folder.labels[split]
        self.size, self.seed = size, seed
        self.fixed = split == "val"
        self._pool = ThreadPoolExecutor(os.cpu_count())

    def read(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """Pictures (m, size, size, 3) uint8; in training, crops depend on row, epoch and seed alone."""
        return np.stack(list(self._pool.map(lambda row: self._crop(int(row), epoch), rows)))

    def _crop(self, row: int, epoch: int) -> np.ndarray:
        path = self.paths[row]
        try:
            with Image.open(path) as image:
                # JPEGs are decoded at a fraction of their size where that is still twice what is needed.
                image.draft("RGB", (2 * self.size, 2 * self.size))
                picture = image.convert("RGB")
        except BROKEN as error:
            raise DataError(f"{path}: not a readable picture: {error}") from error
        if self.fixed:
            return np.asarray(picture.resize((self.size, self.size), Image.Resampling.BILINEAR, _middle(picture.size)))
        rng = np.random.default_rng((self.seed, epoch, row))
        cropped = np.asarray(
            picture.resize((self.size, self.size), Image.Resampling.BILINEAR, random_box(picture.size, rng))
        )
        return cropped[:, ::-1] if rng.random() < 0.5 else cropped


class Classifier(nn.Module):
    """The paper's encoder with a linear layer on its pooled features."""

    def __init__(self, config: EncoderTrainingConfig, classes: int) -> None:
        super().__init__()
        self.encoder = Encoder(config.agent)
        self.linear = nn.Linear(config.agent.sir_channels, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits (n, classes)."""
        return self.linear(self.encoder(image).pooled).float()

    def loss(self, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """Cross entropy of each image, (n,)."""
        return F.cross_entropy(self(image), label, reduction="none")


def classes_training(
    folder: ClassFolder,
    out: str | os.PathLike[str],
    config: EncoderTrainingConfig | None = None,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> EncoderTraining:
    """The training of a classifier, begun or continued in a folder.

    All pictures are checked before it begins; `progress` is told of those done, and of how many.
    """
    config = config or EncoderTrainingConfig()
    train, val = (Pictures(folder, split, config.agent.image_size, config.seed) for split in ("train", "val"))
    facts = {"task": "classes", "data": folder.digest, "classes": list(folder.classes)}
    training = EncoderTraining(
        lambda config: Classifier(config, len(folder.classes)), facts, train, val, out, config, device
    )
    if not training.epochs:
        folder.check(progress)
    return training


def random_box(size: tuple[int, int], rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a random part of a picture of a width and height."""
    width, height = size
    area = width * height * rng.uniform(SMALLEST_SHARE, 1)
    ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
    w, h = min(width, (area * ratio) ** 0.5), min(height, (area / ratio) ** 0.5)
    left, top = rng.uniform(0, width - w), rng.uniform(0, height - h)
    return left, top, left + w, top + h


def _middle(size: tuple[int, int]) -> tuple[float, float, float, float]:
    side, (x, y) = MIDDLE * min(size), (size[0] / 2, size[1] / 2)
    return x - side / 2, y - side / 2, x + side / 2, y + side / 2


def _broken(path: Path) -> str:
    """What is wrong with a picture; nothing if it can be read."""
    try:
        with Image.open(path) as image:
            image.convert("RGB")
    except BROKEN as error:
        return f"{path}: not a readable picture: {error}"
    return ""
