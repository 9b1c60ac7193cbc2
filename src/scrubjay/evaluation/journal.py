"""What a tournament has played so far: a folder of two files, to which finished games are added line by line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scrubjay.errors import RecordError
from scrubjay.evaluation.matches import Trial
from scrubjay.evaluation.scores import Score
from scrubjay.game import metrics
from scrubjay.game.record import Record

GAMES, HIDINGS = "games.jsonl", "hidings.jsonl"


class Result(NamedTuple):
    """How a search went."""

    found: bool
    steps: int
    """The whole budget if it found nothing."""
    false_claims: int


def result_of(record: Record) -> Result:
    """How the search went that a record is of."""
    claimed, succeeded = np.array(record.actions) == "ClaimVisible", np.array(record.success, bool)
    return Result(record.found, metrics.seeker_steps(claimed, succeeded), metrics.false_claims(claimed, succeeded))


class Journal:
    """Finished games, by trial, and the scores of what was hidden."""

    def __init__(self, folder: Path, size: int) -> None:
        """Reads what the folder has; RecordError if that is broken, or was played with images of another size."""
        self.folder = folder
        self.hidings: dict[Trial, Record] = {}
        self.results: dict[Trial, Result] = {}
        """Of searches."""
        self.scores: dict[Trial, Score] = {}
        """Of hiding places, by the trial without a seeker that searches there."""
        for number, data in _lines(folder / GAMES):
            record = _read(folder / GAMES, number, data)
            if record.size != size:
                raise RecordError(f"{folder} has games at {record.size} pixels, not {size}; take another folder")
            self._keep(trial_of(record), record)
        for number, data in _lines(folder / HIDINGS):
            try:
                trial = trial_of(Record.from_dict(data["record"]))
                self.scores[trial] = Score(**{f.name: float(data["score"].get(f.name, np.nan)) for f in fields(Score)})
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise RecordError(f"{folder / HIDINGS}, line {number}: {error}") from error

    def add_game(self, trial: Trial, record: Record) -> None:
        """A game has ended."""
        _append(self.folder / GAMES, record.to_dict())
        self._keep(trial, record)

    def add_score(self, trial: Trial, place: Record, score: Score) -> None:
        """A hiding place has been looked at: a record of the search there before its first step."""
        _append(self.folder / HIDINGS, {"record": place.to_dict(), "score": score.to_dict()})
        self.scores[trial] = score

    def has(self, trial: Trial) -> bool:
        return trial in (self.results if trial.seeker else self.hidings)

    def _keep(self, trial: Trial, record: Record) -> None:
        # Searches are many and long: what they were is in the file.
        if trial.seeker:
            self.results[trial] = result_of(record)
        else:
            self.hidings[trial] = record


def trial_of(record: Record) -> Trial:
    """The trial that a record is of."""
    return Trial(record.scene, record.players.get("hider", ""), record.players.get("seeker", ""), record.spec)


def _read(path: Path, number: int, data: Any) -> Record:
    try:
        return Record.from_dict(data)
    except RecordError as error:
        raise RecordError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The lines of a file as JSON gives them, with their numbers. A last line that was cut off is removed from it."""
    if not path.exists():
        return
    whole = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                os.truncate(path, whole)
                return
            whole += len(line)
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise RecordError(f"{path}, line {number}: {error}") from error


def _append(path: Path, data: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(data) + "\n")
