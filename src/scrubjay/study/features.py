"""Features of a data set, computed once for each encoder.

A folder holds one folder per encoder, named by the encoder's key, with `encoder.json` (its description) and safetensors
files of up to SHARD examples: `rows` int64 (n,) and `sir` bfloat16 (n, C, 7, 7). Files are written whole, so that an
interrupted computation continues after its last file. The finer scales of our own encoders are a hundred times larger:
they are computed when needed and held in memory (`Skips`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors

from scrubjay.agent.encoder import Encoded
from scrubjay.errors import EncoderError
from scrubjay.files import write_atomically
from scrubjay.study.encoders import Description, StudyEncoder
from scrubjay.workers.base import HERE, Workers

SHARD = 512
"""Examples in a file."""
BATCH = 64
"""Images that are encoded at once."""
HELD_BYTES = {"cuda": 8 << 30, "cpu": 2 << 30}
"""Most memory for the finer scales of a set of examples, or, where they take more, for its images."""
Images = Callable[[np.ndarray], np.ndarray]
"""Rows (n,) of a data set to its images (n, 224, 224, 3) uint8."""


class FeatureCache:
    """An encoder's features of one data set.

    `data` is a digest of the data set, for folders that more than one share: another digest is another cache.
    """

    def __init__(self, folder: str | Path, description: Description, data: str = "") -> None:
        self.folder = Path(folder) / (f"{description.key}-{data}" if data else description.key)
        self.description = description
        self._places: dict[int, tuple[Path, int]] = {}
        """Where each row is: a file, and the place in it."""
        for path in sorted(self.folder.glob("sir-*.safetensors")):
            self._add(path)

    def missing(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Those of the rows that are not there yet, (n,) int64, in order and without repetition."""
        return np.array(sorted({int(row) for row in rows} - self._places.keys()), np.int64)

    def compute(
        self,
        encoder: StudyEncoder,
        images: Images,
        rows: Sequence[int] | np.ndarray,
        device: str | torch.device = "cpu",
        progress: Callable[[int, int], None] | None = None,
        workers: Workers = HERE,
    ) -> None:
        """Encodes the rows that are missing; `progress` is told how many are done, and of how many.

        EncoderError if features are not finite; what was computed before stays. Workers send features back.
        """
        missing = self.missing(rows)
        if not len(missing):
            return
        if encoder.description.key != self.description.key:
            raise EncoderError(
                f"features: {self.folder} is the cache of another encoder than {encoder.description.name}"
            )
        about = json.dumps(self.description.as_dict(), indent=1) + "\n"
        write_atomically(self.folder / "encoder.json", about)
        shards = [missing[start : start + SHARD] for start in range(0, len(missing), SHARD)]
        encode, done = partial(encode_rows, encoder, images, device), 0
        for index, sir in workers.map(encode, [(shard,) for shard in shards], gpu=torch.device(device).type == "cuda"):
            shard = shards[index]
            if not torch.isfinite(sir).all():
                raise EncoderError(f"features: {self.description.name} gives NaN or infinite features of images")
            name = f"sir-{hashlib.sha256(shard.tobytes()).hexdigest()[:16]}.safetensors"
            write_atomically(self.folder / name, safetensors.save({"rows": torch.from_numpy(shard), "sir": sir}))
            self._add(self.folder / name)
            done += len(shard)
            if progress is not None:
                progress(done, len(missing))

    def load(self, rows: Sequence[int] | np.ndarray) -> torch.Tensor:
        """Features of computed rows, (n, C, 7, 7) bfloat16, on the CPU, in the order of the rows."""
        if len(missing := self.missing(rows)):
            raise EncoderError(f"features: {len(missing)} examples of {len(rows)} are not computed")
        by_file: dict[Path, list[tuple[int, int]]] = {}
        for place, row in enumerate(rows):
            path, index = self._places[int(row)]
            by_file.setdefault(path, []).append((place, index))
        sir = torch.empty((len(rows), self.description.channels, 7, 7), dtype=torch.bfloat16)
        for path, places in by_file.items():
            targets, sources = zip(*places, strict=True)
            sir[list(targets)] = safetensors.load_file(path)["sir"][list(sources)]
        return sir

    def _add(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as file:
                rows = file.get_tensor("rows")
        except (OSError, SafetensorError) as error:
            raise EncoderError(f"features: {path}: damaged; delete it, and it is computed again") from error
        for place, row in enumerate(rows.tolist()):
            self._places[row] = path, place


def encode_rows(encoder: StudyEncoder, images: Images, device: str | torch.device, rows: np.ndarray) -> torch.Tensor:
    """Features of rows (n,), (n, C, 7, 7) bfloat16, on the CPU."""
    encoder, parts = encoder.to(device), []
    for first in range(0, len(rows), BATCH):
        batch = rows[first : first + BATCH]
        parts.append(_encode(encoder, images(batch), device).sir[: len(batch)].to(torch.bfloat16))
    return torch.cat(parts).cpu().contiguous()


class Skips:
    """The four finer scales of examples, finest first, bfloat16, held on the device if they fit.

    Else they are encoded again for each batch, on a GPU from images that it holds: those take a fifth of the memory.
    """

    def __init__(
        self, encoder: StudyEncoder, images: Images, rows: np.ndarray, device: str | torch.device = "cpu"
    ) -> None:
        if not encoder.description.skip_channels:
            raise EncoderError(f"features: {encoder.description.name} gives no finer scales")
        self.encoder, self.images, self.rows, self.device = encoder.to(device), images, np.asarray(rows), device
        self.held: tuple[torch.Tensor, ...] = ()
        self._pixels: torch.Tensor | None = None
        kind = torch.device(device).type
        most = HELD_BYTES[kind]
        first = self.images(self.rows[:1])
        one = sum(skip.numel() * skip.element_size() for skip in self._encode(first))
        starts = range(0, len(self.rows), BATCH)
        if one * len(self.rows) <= most:
            parts = [self._encode(self.images(self.rows[start : start + BATCH])) for start in starts]
            self.held = tuple(torch.cat(scale) for scale in zip(*parts, strict=True))
        elif kind == "cuda" and first.nbytes * len(self.rows) <= most:
            self._pixels = torch.cat(
                [to_device(self.images(self.rows[start : start + BATCH]), device) for start in starts]
            )

    @property
    def on_device(self) -> bool:
        """Is all that they are made of in the device's memory?"""
        return bool(self.held) or self._pixels is not None

    def __getitem__(self, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Scales of the examples at these places in `rows`, each (n, C, h, w)."""
        if self.held:
            return tuple(scale[places] for scale in self.held)
        if self._pixels is not None:
            return tuple(skip.to(torch.bfloat16) for skip in self.encoder(self._pixels[places]).skips)
        return self._encode(self.images(self.rows[places.cpu().numpy()]))

    def _encode(self, images: np.ndarray) -> tuple[torch.Tensor, ...]:
        encoded = _encode(self.encoder, images, self.device)
        return tuple(skip[: len(images)].to(torch.bfloat16) for skip in encoded.skips)


class DataFeatures:
    """An encoder's features of one data set: read from the cache, computed where they are missing.

    `cache` is the folder of all encoders' features of the data set, and `data` its digest; see `FeatureCache`.
    """

    KEPT = 3
    """Sets of examples whose finer scales stay in memory: train, validation and test."""
    SIRS = 6
    """Sets of examples whose features do: those of images with an object, too."""

    def __init__(
        self,
        encoder: StudyEncoder,
        images: Images,
        cache: str | Path,
        data: str = "",
        device: str | torch.device = "cpu",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.encoder, self.images, self.device, self.progress = encoder.to(device), images, device, progress
        self.cache = FeatureCache(cache, encoder.description, data)
        self._skips: dict[bytes, Skips] = {}
        self._sirs: dict[bytes, torch.Tensor] = {}

    def sir(self, rows: np.ndarray) -> torch.Tensor:
        """Features of rows (n,), (n, C, 7, 7) bfloat16, on the device."""
        key = np.asarray(rows, np.int64).tobytes()
        if key not in self._sirs:
            self.cache.compute(self.encoder, self.images, rows, self.device, self.progress)
            while len(self._sirs) >= self.SIRS:
                del self._sirs[next(iter(self._sirs))]
            self._sirs[key] = self.cache.load(rows).to(self.device)
        return self._sirs[key]

    def skips(self, rows: np.ndarray) -> Skips:
        """The finer scales of rows (n,)."""
        rows = np.asarray(rows, np.int64)
        key = rows.tobytes()
        if key not in self._skips:
            while len(self._skips) >= self.KEPT:
                del self._skips[next(iter(self._skips))]
            self._skips[key] = Skips(self.encoder, self.images, rows, self.device)
        return self._skips[key]


def to_device(images: np.ndarray, device: str | torch.device) -> torch.Tensor:
    """Images as a tensor; arrays that are read-only, as memory maps are, are copied."""
    return torch.from_numpy(np.array(images)).to(device)


def _encode(encoder: StudyEncoder, images: np.ndarray, device: str | torch.device) -> Encoded:
    """Encodes up to BATCH images. On a GPU the last is repeated: each number of images would be compiled."""
    if torch.device(device).type == "cuda" and len(images) < BATCH:
        images = np.concatenate([images, images[-1:].repeat(BATCH - len(images), 0)])
    return encoder(to_device(images, device))
