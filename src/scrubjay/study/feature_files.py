"""Files of features: named after all they depend on, small enough to be carried to where probes are fitted.

Sources of one experiment are computed together, some hundred sequences at a time, here or by workers; what was computed
before an interruption stays. Features are stored in float16 where that changes no feature by more than a hundredth of
its standard deviation: probes standardize them anyway.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.study.dynamic_experiments import Examples
from scrubjay.study.feature_pass import Progress
from scrubjay.study.sequences import SequenceData
from scrubjay.study.sources import Source, compute_features
from scrubjay.workers.base import HERE, Workers

SHARDS = {"cuda": 1024, "cpu": 256}
"""Sequences of one task, whose features are written at once."""
COARSE = 0.01
"""Rounding to float16 may change a feature by so much of its standard deviation (root mean square)."""


def features_path(source: Source, data: SequenceData, examples: Examples, folder: Path) -> Path:
    """The file of a source's features of examples."""
    return Path(folder) / f"{data.experiment}-{data.digest}-{examples.digest}-{source.key}.npy"


def features_files(
    sources: Sequence[Source],
    data: SequenceData,
    examples: Examples,
    folder: Path,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
    workers: Workers = HERE,
) -> list[Path]:
    """The files of sources' features (n, D), float16 or float32, computed where they are not there.

    `progress` is told of sequences. DataError if some are missing and the data has no images. Workers send features
    back, and read the images in the data's folder.
    """
    paths = [features_path(source, data, examples, folder) for source in sources]
    missing = {path: source for path, source in zip(paths, sources, strict=True) if not path.exists()}
    sequence = data.sequence_of(examples.frame)
    sequences = np.unique(sequence)
    if not missing:
        progress(len(sequences), len(sequences))
        return paths
    if not data.has_images:
        names = ", ".join(source.name for source in missing.values())
        raise DataError(
            f"{data.folder}: neither images nor features of {names}; copy images.npy of its blocks, or the folder "
            f"{folder} from where features were computed with the same agents and encoders"
        )
    size = SHARDS[torch.device(device).type]
    starts = range(0, len(sequences), size)
    rows = [np.flatnonzero(np.isin(sequence, sequences[start : start + size])) for start in starts]
    parts = [[path for path in missing if not _part(path, start).exists()] for start in starts]
    todo = [number for number, lacking in enumerate(parts) if lacking]
    items = []
    for number in todo:
        mine, wanted = rows[number], [list(missing).index(path) for path in parts[number]]
        items.append((wanted, examples.frame[mine], None if examples.cell is None else examples.cell[mine]))
    done = len(sequences) - sum(len(sequences[starts[number] :][:size]) for number in todo)
    progress(done, len(sequences))
    workers.check_folder(data.folder)
    compute = partial(_features, list(missing.values()), data, device)
    for index, computed in workers.map(compute, items, gpu=device.startswith("cuda")):
        start = starts[todo[index]]
        for path, features in zip(parts[todo[index]], computed, strict=True):
            _write(_part(path, start), features.astype(np.float32))
        progress(done := done + len(sequences[start:][:size]), len(sequences))
    for path, source in missing.items():
        whole = [np.load(_part(path, start), allow_pickle=False) for start in starts]
        features = np.empty((len(examples.frame), whole[0].shape[1]), np.float32)
        for mine, part in zip(rows, whole, strict=True):
            features[mine] = part
        _write(path, features if source.precise else packed(features))
        for start in starts:
            _part(path, start).unlink()
    progress(len(sequences), len(sequences))
    return paths


def _features(
    sources: Sequence[Source], data: SequenceData, device: str, wanted: Sequence[int], frame: np.ndarray,
    cell: np.ndarray | None,
) -> list[np.ndarray]:  # fmt: skip
    """Features of some of the sources at examples."""
    return compute_features([sources[number] for number in wanted], data, frame, cell, device)


def packed(features: np.ndarray) -> np.ndarray:
    """Features (n, D) in float16 where that is precise enough, else as they are."""
    with np.errstate(over="ignore"):
        small = features.astype(np.float16)
    if not np.isfinite(small).all():
        return features
    for start in range(0, features.shape[1], 256):
        some = features[:, start : start + 256]
        error = np.square(small[:, start : start + 256] - some, dtype=np.float64).mean(0)
        if (error > COARSE**2 * some.var(0, dtype=np.float64)).any():
            return features
    return small


def _part(path: Path, start: int) -> Path:
    """The file of features of a shard."""
    return path.with_name(f"{path.stem}.{start}.part.npy")


def _write(path: Path, values: np.ndarray) -> None:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_atomically(path, buffer.getvalue())
