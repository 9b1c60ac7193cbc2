"""The static experiments on synthetic images: how well seven tasks are read out of each encoder's features (F.1).

A study is a pure function of data, encoders and config. Each probe's test losses are a file that is named after all it
depends on, so that an interrupted study continues where it stopped, and a new encoder only adds its own probes.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from scrubjay.errors import DataError, EncoderError, ProbeError
from scrubjay.files import write_atomically
from scrubjay.study.bootstrap import mean_losses
from scrubjay.study.comparison import compare_encoders
from scrubjay.study.encoders import RANDOM, StudyEncoder
from scrubjay.study.features import SHARD
from scrubjay.study.loss_table import LossTable, write_losses
from scrubjay.study.printed import encoder_note
from scrubjay.study.probe import ProbeConfig, ProbeResult
from scrubjay.study.probe_files import save_probe
from scrubjay.study.result_table import table_text
from scrubjay.study.static_data import TASKS, StaticData
from scrubjay.study.static_predictions import Predictions, save_predictions
from scrubjay.study.static_tasks import PLAIN, WITH_SKIPS, Probe, StaticProber, StaticScale
from scrubjay.workers.base import HERE, Workers

KINDS = {"losses": "npy", "predictions": "npz", "decoders": "safetensors"}
"""Folders of the probes' files, which are keys of probes.json, and the names' endings."""
LOSSES, PREDICTIONS, DECODERS = KINDS
SAVED_DECODERS = ("depth",)
"""Tasks whose trained decoders are kept, for pictures of your own; a decoder is a few megabytes."""
SMALLEST_LOSS = 1e-6
"""Added to losses: a Gamma model and a ratio need them positive."""


SCALES = {
    "paper": StaticScale(ProbeConfig()),
    "mini": StaticScale(ProbeConfig(size=28, max_epochs=2), training_images=32),
}


FIELDS = (
    "encoder", "decoder", "task", "loss", "low", "high", "ratio", "ratio_low", "ratio_high", "difference",
    "standard_error", "difference_low", "difference_high", "df", "t", "p", "p_holm", "significant", "note", "control",
    "about",
)  # fmt: skip
"""Columns of static.csv. From `ratio` on they compare with the `control` of that decoder (see `Comparison`); empty
without one. `about` is what a table must say of an encoder."""
SIZE_FIELDS = ("encoder", "decoder", "task", "size", "loss", "low", "high")
"""Columns of static_sizes.csv: losses as in static.csv, of probes with `size` training examples."""
Row = dict[str, str | float | bool]


class StaticStudy:
    """Probes of several encoders on one data set; results are in a folder."""

    def __init__(
        self,
        data: StaticData,
        encoders: Sequence[StudyEncoder],
        out: Path,
        scale: StaticScale = SCALES["paper"],
        control: str | None = None,
        tasks: Sequence[str] = TASKS,
        device: str = "cpu",
        sizes: Sequence[int] = (),
    ) -> None:
        """`control` is the encoder that others are compared with; decoders with skips, where it has none, with the
        untrained encoder, if that is there. `sizes` are numbers of training examples that losses are measured for, too.

        EncoderError or ProbeError if encoders, control, tasks or sizes are wrong.
        """
        names = [encoder.description.name for encoder in encoders]
        check_names(names, tasks)
        if control is not None and control not in names:
            raise EncoderError(f"control: {control} is not among the encoders {', '.join(names)}")
        self.data, self.encoders, self.out, self.scale = data, list(encoders), Path(out), scale
        self.control, self.tasks, self.device = control, list(tasks), device
        self.sizes = sorted(set(sizes))
        self.size_rows: list[Row] = []
        """Rows of static_sizes.csv after a run; none without sizes."""
        for task in self.tasks if sizes else ():
            there = len(data.usable(task, data.split("train")))
            if self.sizes[0] < 1 or self.sizes[-1] > there:
                raise ProbeError(f"sizes: from 1 to the {there} train images of {task}, not {sizes}")
        self.digest = data_digest(data)
        by_name = dict(zip(names, encoders, strict=True))
        self.prober = StaticProber(data, by_name, self.out / "features", self.digest, scale, device)
        self.shown = self.prober.shown

    def run(
        self, progress: Callable[[int, int], None] = lambda done, total: None, workers: Workers = HERE
    ) -> list[Row]:
        """Trains the probes that are missing and writes static.csv, encoders.json and probes.json.

        Of each probe there are files of the losses of all test images and of predictions for a few; of depth, also the
        decoder. `progress` is told of probes, and of files of features that they need. Workers read the folders of data
        and results, which all of them must see.
        """
        own = self.scale.training_images
        probes = [
            Probe(encoder.description.name, decoder, size, task)
            for encoder in self.encoders
            for decoder in _decoders(encoder)
            for size in (own, *(size for size in self.sizes if size != own))
            for task in _tasks_of(decoder, self.tasks)
        ]
        self._train([probe for probe in probes if not self._path(probe).exists()], len(probes), progress, workers)
        losses: dict[int, dict[tuple[str, str], dict[str, np.ndarray]]] = {}
        for probe in probes:
            its = losses.setdefault(probe.size, {}).setdefault((probe.decoder, probe.task), {})
            its[probe.encoder] = self._read(probe)
        rows = list(self._rows(losses[own]))
        descriptions = [encoder.description.as_dict() for encoder in self.encoders]
        write_atomically(self.out / "encoders.json", json.dumps(descriptions, indent=1) + "\n")
        listed = self._files([probe for probe in probes if probe.size == own])
        write_atomically(self.out / "probes.json", json.dumps(listed, indent=1) + "\n")
        if self.sizes:
            self.size_rows = [
                {
                    "encoder": name,
                    "decoder": decoder,
                    "task": task,
                    "size": size,
                    **mean._asdict(),
                    "loss": mean.estimate,
                }
                for size in self.sizes
                for (decoder, task), each in losses[size].items()
                for name, mean in mean_losses(self._table(task, each)).items()
            ]
            write_atomically(self.out / "static_sizes.csv", table_text(self.size_rows, SIZE_FIELDS))
        write_atomically(self.out / "static.csv", table_text(rows, FIELDS))
        return rows

    def _train(
        self, missing: Sequence[Probe], total: int, progress: Callable[[int, int], None], workers: Workers
    ) -> None:
        """Computes features of all examples of the missing probes, then trains these."""
        if not missing:
            progress(total, total)
            return
        workers.check_folder(self.data.folder)
        caches = {name: self.prober.features(name).cache for name in dict.fromkeys(probe.encoder for probe in missing)}
        rows = {
            name: cache.missing(np.concatenate([self._examples(probe) for probe in missing if probe.encoder == name]))
            for name, cache in caches.items()
        }
        shards = sum(-(-len(each) // SHARD) for each in rows.values())
        done, total = total - len(missing), total + shards

        def tell(*_: int) -> None:
            nonlocal done
            progress(done := done + 1, total)

        progress(done, total)
        for name, cache in caches.items():
            cache.compute(self.prober.encoders[name], self.data.images, rows[name], self.device, tell, workers)
        workers.check_folder(self.prober.cache)
        for index, (result, predictions) in workers.map(self.prober, missing, gpu=self.device.startswith("cuda")):
            self._save(missing[index], result, predictions)
            tell()

    def _examples(self, probe: Probe) -> np.ndarray:
        return np.concatenate(list(self.prober.rows(probe.task, probe.size).values()))

    def _save(self, probe: Probe, result: ProbeResult, predictions: Predictions | None) -> None:
        name = self._file_name(probe)
        if predictions is not None:
            if probe.task in SAVED_DECODERS:
                save_probe(result, self.out / DECODERS / f"{name}.safetensors")
            save_predictions(predictions, probe.task, self.out / PREDICTIONS / f"{name}.npz")
        # Last, for where they are the probe is done.
        buffer = io.BytesIO()
        np.save(buffer, result.losses)
        write_atomically(self._path(probe), buffer.getvalue())

    def _read(self, probe: Probe) -> np.ndarray:
        """The test losses of a probe that is done."""
        path, count = self._path(probe), len(self.prober.rows(probe.task, probe.size)["test"])
        losses = np.load(path, allow_pickle=False)
        if losses.shape != (count,) or not np.isfinite(losses).all():
            raise DataError(f"{path}: not the losses of {count} test images; delete the file")
        return losses

    def _path(self, probe: Probe) -> Path:
        return self.out / LOSSES / f"{self._file_name(probe)}.npy"

    def _file_name(self, probe: Probe) -> str:
        """Of a probe's files: a digest of all that it depends on."""
        key = self.prober.encoders[probe.encoder].description.key
        parts = [self.digest, key, probe.decoder, probe.task, probe.size, asdict(self.scale.config)]
        return f"{probe.task}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"

    def _files(self, probes: Sequence[Probe]) -> list[dict[str, str]]:
        """probes.json: the files of each probe; results of earlier versions may lack some."""
        listed = []
        for probe in probes:
            name = self._file_name(probe)
            files = {folder: f"{folder}/{name}.{suffix}" for folder, suffix in KINDS.items()}
            there = {kind: path for kind, path in files.items() if (self.out / path).exists()}
            listed.append({"encoder": probe.encoder, "decoder": probe.decoder, "task": probe.task, **there})
        return listed

    def _rows(self, losses: Mapping[tuple[str, str], Mapping[str, np.ndarray]]) -> Iterator[Row]:
        for decoder in (PLAIN, WITH_SKIPS):
            tables = {task: self._table(task, each) for (one, task), each in losses.items() if one == decoder}
            for task, table in tables.items():
                write_losses(table, self.out / losses_file(task, decoder))
            yield from comparison_rows(decoder, tables, self.control)

    def _table(self, task: str, losses: Mapping[str, np.ndarray]) -> LossTable:
        """All encoders' losses at a task, with the places of the test images."""
        rows = self.data.usable(task, self.data.split("test"))
        index = np.tile(self.data.index[rows], len(losses))
        return LossTable(
            encoder=np.repeat(list(losses), len(rows)),
            scene_type=index["scene_type"],
            scene=index["scene"],
            place=np.stack([index["x"], index["y"], index["z"]], -1),
            rotation=index["rotation"],
            loss=np.concatenate(list(losses.values())) + SMALLEST_LOSS,
        )


def check_names(encoders: Sequence[str], tasks: Sequence[str]) -> None:
    """An error unless there are encoders, each once, and the tasks exist."""
    if len(set(encoders)) < len(encoders) or not encoders:
        raise EncoderError(f"encoders: at least one, each once, not {', '.join(encoders) or 'none'}")
    if unknown := set(tasks) - set(TASKS):
        raise ProbeError(f"tasks: unknown {', '.join(sorted(unknown))}; choose from {', '.join(TASKS)}")


def losses_file(task: str, decoder: str) -> str:
    """All encoders' losses at a task, in a folder of results."""
    return f"{LOSSES}/{task}-{'skips' if decoder == WITH_SKIPS else 'plain'}.csv.gz"


def comparison_rows(decoder: str, tables: Mapping[str, LossTable], control: str | None) -> Iterator[Row]:
    """Rows of static.csv of one decoder from the losses at each task.

    Encoders are compared with the control, or where it is not among them, as EfficientNet has no skips, with the
    untrained one; with neither, there are losses alone.
    """
    encoders = next(iter(tables.values())).encoders if tables else []
    choices = [control, RANDOM] if control else []
    compared_with = next((name for name in choices if name in encoders), None)
    rows: list[Row]
    if compared_with and len(encoders) > 1:
        compared = compare_encoders(tables, compared_with).comparisons
        rows = [{**comparison.row(), "control": compared_with} for comparison in compared]
    else:
        rows = [
            {"task": task, "encoder": name, "loss": mean.estimate, "low": mean.low, "high": mean.high}
            for task, table in tables.items()
            for name, mean in mean_losses(table).items()
        ]
    yield from ({**row, "decoder": decoder, "about": encoder_note(str(row["encoder"]))} for row in rows)


def _decoders(encoder: StudyEncoder) -> list[str]:
    return [PLAIN, WITH_SKIPS] if encoder.description.skip_channels else [PLAIN]


def _tasks_of(decoder: str, tasks: Sequence[str]) -> list[str]:
    """The class head reads no skips."""
    return [task for task in tasks if decoder == PLAIN or task != "class"]


def read_probes(out: Path, task: str, decoder: str = PLAIN) -> dict[str, dict[str, Path]]:
    """The files of a finished study's probes of a task, by encoder and kind ("losses", "predictions", "decoders").

    The depth decoders are there to read: `load_probe(read_probes(out, "depth")["random"]["decoders"])`. Files that are
    not there are left out; DataError if the folder has no results.
    """
    path = Path(out) / "probes.json"
    try:
        listed = json.loads(path.read_text())
        mine = [entry for entry in listed if (entry["task"], entry["decoder"]) == (task, decoder)]
        return {
            entry["encoder"]: {
                kind: path.parent / entry[kind]
                for kind in KINDS
                if kind in entry and (path.parent / entry[kind]).exists()
            }
            for entry in mine
        }
    except FileNotFoundError as error:
        raise DataError(f"{out}: no probes.json of `scrubjay study static`; run the study (again)") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a list of probes: {error}") from error


def data_digest(data: StaticData) -> str:
    """What the data set is, in 16 characters: how it was made, and its index."""
    contents = [(data.folder / name).read_bytes() for name in ("data.json", "index.csv")]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]
