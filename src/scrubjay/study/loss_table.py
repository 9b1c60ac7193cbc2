"""Test losses of several encoders, one row per example: what the statistics read."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scrubjay.errors import StatisticsError
from scrubjay.files import write_atomically

COLUMNS = ("encoder", "scene_type", "scene", "x", "y", "z", "rotation", "loss")


@dataclass(frozen=True)
class LossTable:
    """Losses of one task; every field has one entry per example. Checked on construction."""

    encoder: np.ndarray
    """Which encoder's features the probe read, as text (N)."""
    scene_type: np.ndarray
    """Text (N)."""
    scene: np.ndarray
    """Text (N); a scene has one type."""
    place: np.ndarray
    """The camera's position in metres, height included (N, 3)."""
    rotation: np.ndarray
    """The camera's yaw in degrees (N)."""
    loss: np.ndarray
    """Positive: the Gamma model and ratios need it (N)."""

    def __post_init__(self) -> None:
        for name in ("encoder", "scene_type", "scene"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.str_))
        for name in ("place", "rotation", "loss"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        n = len(self.loss)
        if n == 0:
            raise StatisticsError("the table of losses is empty")
        for name, width in (
            ("encoder", 1),
            ("scene_type", 1),
            ("scene", 1),
            ("place", 3),
            ("rotation", 1),
            ("loss", 1),
        ):
            shape = (n,) if width == 1 else (n, width)
            if getattr(self, name).shape != shape:
                raise StatisticsError(f"{name} must have shape {shape}, not {getattr(self, name).shape}")
        for name in ("place", "rotation"):
            if not np.isfinite(getattr(self, name)).all():
                raise StatisticsError(f"{name} has values that are not finite")
        bad = np.flatnonzero(~(np.isfinite(self.loss) & (self.loss > 0)))
        if len(bad):
            raise StatisticsError(
                f"losses must be positive and finite, but {len(bad)} of {n} are not;"
                f" the first is {self.loss[bad[0]]} ({self._name(bad[0])})"
            )
        pairs = np.unique(np.stack([self.scene, self.scene_type], axis=1), axis=0)
        scenes, counts = np.unique(pairs[:, 0], return_counts=True)
        if (counts > 1).any():
            raise StatisticsError(f"scene {scenes[counts > 1][0]} has more than one scene type")
        seen: dict[tuple, int] = {}
        for i, key in enumerate(
            zip(self.encoder, self.scene, map(tuple, self.place.tolist()), self.rotation, strict=True)
        ):
            if key in seen:
                raise StatisticsError(f"rows {seen[key] + 1} and {i + 1} are the same place: {self._name(i)}")
            seen[key] = i

    def _name(self, row: int) -> str:
        x, y, z = self.place[row]
        return f"{self.encoder[row]} in {self.scene[row]} at ({x:g}, {y:g}, {z:g}), rotation {self.rotation[row]:g}"

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def encoders(self) -> list[str]:
        """The encoders' names, sorted."""
        return np.unique(self.encoder).tolist()

    def rows(self, which: np.ndarray) -> LossTable:
        """The rows that an index or mask selects."""
        return LossTable(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def require(self, *encoders: str) -> None:
        """Raises unless there are two encoders or more, the named ones among them."""
        known = self.encoders
        for name in encoders:
            if name not in known:
                raise StatisticsError(f"no losses of encoder {name!r}; there are {', '.join(known)}")
        if len(known) < 2:
            raise StatisticsError(f"a comparison needs two encoders or more; there is only {known[0]}")

    def capped(self, points: int, seed: int = 0) -> LossTable:
        """At most `points` rows of each scene and encoder, sampled without replacement.

        Encoders that were tested at the same places keep the same ones, so comparisons stay paired. The choice does not
        depend on the order of rows.
        """
        if points < 1:
            raise StatisticsError(f"points must be 1 or more, not {points}")
        keep = np.zeros(len(self), bool)
        for number, scene in enumerate(np.unique(self.scene)):
            rows = np.flatnonzero(self.scene == scene)
            where = np.column_stack([self.place[rows], self.rotation[rows]])
            _, index = np.unique(where, axis=0, return_inverse=True)
            index = index.reshape(-1)
            rank = np.random.default_rng([seed, number]).permutation(index.max() + 1)[index]
            for encoder in np.unique(self.encoder[rows]):
                mine = np.flatnonzero(self.encoder[rows] == encoder)
                keep[rows[mine[np.argsort(rank[mine])[:points]]]] = True
        return self if keep.all() else self.rows(keep)


def read_losses(path: Path) -> LossTable:
    """Reads a CSV file (`.gz` allowed) with the columns of `COLUMNS`, in any order; others are ignored."""
    try:
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise StatisticsError(f"{path} cannot be read: {error}") from error
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise StatisticsError(f"{path} lacks the columns {', '.join(missing)}")
    rows = list(reader)
    numbers = {}
    for name in ("x", "y", "z", "rotation", "loss"):
        try:
            numbers[name] = np.array([float(row[name]) for row in rows])
        except (TypeError, ValueError) as error:
            raise StatisticsError(f"{path}: column {name} must be numbers: {error}") from error
    words = {name: np.array([row[name] or "" for row in rows], np.str_) for name in COLUMNS[:3]}
    place = np.column_stack([numbers["x"], numbers["y"], numbers["z"]])
    return LossTable(**words, place=place, rotation=numbers["rotation"], loss=numbers["loss"])


def write_losses(table: LossTable, path: Path) -> None:
    """Writes a CSV file, compressed if its name ends in `.gz`, that `read_losses` reads back exactly."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for i in range(len(table)):
        numbers: Sequence[float] = [*table.place[i].tolist(), float(table.rotation[i]), float(table.loss[i])]
        writer.writerow([table.encoder[i], table.scene_type[i], table.scene[i], *map(repr, numbers)])
    text = out.getvalue().encode()
    write_atomically(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
