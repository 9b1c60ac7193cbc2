"""Files that data sets of the experiments share: indexes as CSV, checked arrays, folders written whole."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from scrubjay.errors import DataError

Fields = Mapping[str, tuple[type, tuple[int, ...]]]
"""Arrays by file name: the dtype and shape of a row."""


def read_json(folder: Path, version: int, command: str) -> dict:
    """A folder's data.json; DataError if there is none, or one of another version. `command` makes such data."""
    path = folder / "data.json"
    try:
        facts = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise DataError(f"{folder}: no data here; make it with `{command} --out {folder}`") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: not a description of data: {error}") from error
    if not isinstance(facts, dict) or facts.get("version") != version:
        found = facts.get("version") if isinstance(facts, dict) else None
        raise DataError(f"{folder}: data of version {found}, not {version}; make it again")
    return facts


def open_array(path: Path, kind: type | np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this dtype and shape, memory-mapped; DataError says what it is instead."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not a readable array: {error}") from error
    if array.dtype != kind or array.shape != shape:
        wanted = f"{np.dtype(kind)} {shape}"
        raise DataError(f"{path}: {array.dtype} {array.shape} where {wanted} is expected; make the data again")
    return array


def read_index(path: Path, columns: Mapping[str, str]) -> np.ndarray:
    """An index as a structured array with these columns: names and NumPy's dtypes, "?" for bool."""
    try:
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not an index: {error}") from error
    if not rows or rows[0] != list(columns):
        raise DataError(f"{path}: the columns must be {', '.join(columns)}")
    index = np.empty(len(rows) - 1, list(columns.items()))
    for number, row in enumerate(rows[1:]):
        try:
            index[number] = tuple(
                {"True": True, "False": False}[value] if kind == "?" else value
                for value, kind in zip(row, columns.values(), strict=True)
            )
        except (ValueError, KeyError) as error:
            raise DataError(f"{path}, line {number + 2}: not a row of an index: {error}") from error
    return index


def index_text(index: np.ndarray) -> str:
    """An index as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(index.dtype.names or ())
    writer.writerows(row.tolist() for row in index)
    return text.getvalue()


def write_folder(folder: Path, arrays: Mapping[str, np.ndarray | str]) -> None:
    """Writes arrays, and texts by their file names, beside a folder and renames it: it is whole or not there.

    An array named "index" becomes index.csv.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, values in arrays.items():
        if isinstance(values, str):
            (partial / name).write_text(values)
        elif name == "index":
            (partial / "index.csv").write_text(index_text(values))
        else:
            np.save(partial / f"{name}.npy", values, allow_pickle=False)
    os.replace(partial, folder)
