"""One static study of several on the same data, such as encoders that were measured on different machines.

Everything that comparisons need is in the studies' folders: neither images nor encoders are read. The files of all
probes are copied, so that `scrubjay study static` can go on with the result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.errors import DataError
from scrubjay.files import write_atomically
from scrubjay.study.loss_table import LossTable, read_losses, write_losses
from scrubjay.study.record import read_record
from scrubjay.study.result_table import table_text
from scrubjay.study.static import FIELDS, KINDS, PLAIN, WITH_SKIPS, Row, comparison_rows, losses_file


class FinishedStudy:
    """The results in a study's folder."""

    def __init__(self, folder: str | Path) -> None:
        """DataError if there are none."""
        self.folder = Path(folder)
        self.record = read_record(folder)
        if self.record["study"] != "static":
            raise DataError(f"{folder}: the study {self.record['study']}, not static")
        if "data" not in self.record["facts"]:
            raise DataError(f"{folder}: the study is not finished; run its command again")
        self.encoders: list[dict[str, Any]] = self._read("encoders.json")
        self.probes: list[dict[str, str]] = self._read("probes.json")

    def has(self, task: str, decoder: str) -> bool:
        """Was the task probed with such decoders?"""
        return any((probe["task"], probe["decoder"]) == (task, decoder) for probe in self.probes)

    def losses(self, task: str, decoder: str) -> LossTable:
        """Of all its encoders at a task."""
        return read_losses(self.folder / losses_file(task, decoder))

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"{self.folder / name}: not a finished study's: {error}") from error


def merge_studies(folders: Sequence[str | Path], out: str | Path, control: str | None) -> list[Row]:
    """Writes the results of all encoders, compared with the control if it is among them; the rows of static.csv.

    DataError, before anything is written, if studies differ in data or scale, or share an encoder.
    """
    out, studies = Path(out), [FinishedStudy(folder) for folder in folders]
    _check(studies, out)
    encoders = [encoder for one in studies for encoder in one.encoders]
    if control not in [encoder["name"] for encoder in encoders]:
        control = None
    tasks = dict.fromkeys(probe["task"] for one in studies for probe in one.probes)
    tables = {
        decoder: {
            task: _joined([one.losses(task, decoder) for one in studies if one.has(task, decoder)], task)
            for task in tasks
            if any(one.has(task, decoder) for one in studies)
        }
        for decoder in (PLAIN, WITH_SKIPS)
    }
    rows = [row for decoder, its in tables.items() for row in comparison_rows(decoder, its, control)]
    for decoder, its in tables.items():
        for task, table in its.items():
            write_losses(table, out / losses_file(task, decoder))
    for one in studies:
        for path in (probe[kind] for probe in one.probes for kind in KINDS if kind in probe):
            if (one.folder / path).exists():
                write_atomically(out / path, (one.folder / path).read_bytes())
    write_atomically(out / "encoders.json", json.dumps(encoders, indent=1) + "\n")
    probes = [probe for one in studies for probe in one.probes]
    write_atomically(out / "probes.json", json.dumps(probes, indent=1) + "\n")
    # Who measured what, and when: the sessions of all.
    record = {**studies[0].record, "sessions": [each for one in studies for each in one.record["sessions"]]}
    record["facts"] = {**record["facts"], "control": control}
    write_atomically(out / "study.json", json.dumps(record, indent=1) + "\n")
    write_atomically(out / "static.csv", table_text(rows, FIELDS))
    return rows


def _check(studies: Sequence[FinishedStudy], out: Path) -> None:
    if len(studies) < 2:
        raise DataError("merge: at least two studies")
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out}: not empty; choose another folder")
    first, seen = studies[0], dict[str, Path]()
    for one in studies:
        for fact in ("data", "scale"):
            if one.record["facts"].get(fact) != first.record["facts"].get(fact):
                raise DataError(f"{one.folder}: another {fact} than in {first.folder}; losses cannot be compared")
        for name in (str(encoder["name"]) for encoder in one.encoders):
            if name in seen:
                raise DataError(f"{one.folder}: {name} is in {seen[name]}, too")
            seen[name] = one.folder


def _joined(parts: Sequence[LossTable], task: str) -> LossTable:
    """The losses of several studies at a task; DataError if they are not of the same images."""
    places = [
        set(zip(part.scene, map(tuple, part.place.tolist()), part.rotation.tolist(), strict=True)) for part in parts
    ]
    if any(each != places[0] for each in places):
        raise DataError(f"{task}: losses of other images; the tables were changed")
    return LossTable(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in LossTable.__dataclass_fields__)
    )
