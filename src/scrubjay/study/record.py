"""What made a study's results: commands, dates, versions, hardware, and how long each part took.

`study.json` has the study's name, facts about it, and one session for each time that a command worked on it: results
that were resumed, or that encoders were added to, have several.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import scrubjay
from scrubjay.errors import DataError, reason
from scrubjay.files import write_atomically

FILE = "study.json"
VERSION = 1


class StudyRecord:
    """The record of a study while a command works on it; written when it begins and after each part.

    >>> record = StudyRecord(out, "static", "cuda", scale="paper")
    >>> with record.part("images"):
    ...     make_static_data(out / "data", counts)
    """

    def __init__(self, out: str | Path, study: str, device: str = "cpu", **facts: str | int | None) -> None:
        """Begins a session; `facts` say what is studied. DataError if the folder has another study's record."""
        self.path = Path(out) / FILE
        before = read_record(out) if self.path.exists() else {"study": study, "sessions": []}
        if before["study"] != study:
            raise DataError(f"{self.path}: of the study {before['study']}, not {study}; choose another folder")
        self.seconds: dict[str, float] = {}
        session = {
            "command": shlex.join(["scrubjay", *sys.argv[1:]]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": machine(device),
            "commit": package_commit(),
            "versions": _versions(),
            "seconds": self.seconds,
        }
        self.content: dict[str, Any] = {
            "version": VERSION, "study": study, "facts": facts, "sessions": [*before["sessions"], session],
        }  # fmt: skip
        self.write()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measures a part, also one that fails or is interrupted."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, 2)
            self.write()

    def write(self) -> None:
        write_atomically(self.path, json.dumps(self.content, indent=1) + "\n")


def read_record(folder: str | Path) -> dict[str, Any]:
    """A study's record: study, facts, sessions; DataError if there is none, or something else."""
    path = Path(folder) / FILE
    try:
        content = json.loads(path.read_text())
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']}, not {VERSION}")
        for session in content["sessions"]:
            texts = (content["study"], *(session[name] for name in ("command", "date", "device", "commit")))
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("a session's command, date, device and commit must be texts")
            if not all(isinstance(value, float | int) for value in session["seconds"].values()):
                raise TypeError("a session's seconds must be numbers")
        return {"facts": {}, **content}
    except OSError as error:
        raise DataError(f"{path}: not the record of a study: {reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not the record of a study: {error!r}") from error


def machine(device: str) -> str:
    """The hardware, in words."""
    cpu = f"{os.cpu_count()} CPU cores, {platform.machine()}"
    return f"{torch.cuda.get_device_name(device)}, {cpu}" if device.startswith("cuda") else cpu


def package_commit() -> str:
    """The package's git commit, if git tracks it, and whether it was changed since; else empty."""
    here = Path(__file__).parent.parent
    if not _git(here, "ls-files", "--", "study/record.py"):
        return ""
    changed = " with changes" if _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".") else ""
    return _git(here, "rev-parse", "HEAD") + changed


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _versions() -> dict[str, str]:
    own = {"scrubjay": scrubjay.__version__, "python": platform.python_version()}
    return {**own, "torch": torch.__version__, "numpy": np.__version__}
