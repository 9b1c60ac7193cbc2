"""A journal of trials: a folder of two files to which finished games are appended line by line, and one of agents."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from scrubjay.errors import RecordError, explain
from scrubjay.evaluation.matches import Match
from scrubjay.evaluation.scores import Score
from scrubjay.files import write_atomically
from scrubjay.game import metrics
from scrubjay.game.record import Record

GAMES_FILE, HIDINGS_FILE, AGENTS_FILE = "games.jsonl", "hidings.jsonl", "agents.json"


class SearchResult(NamedTuple):
    """How a search went."""

    found: bool
    steps: int
    """The whole budget if nothing was found."""
    false_claims: int


def search_result(record: Record) -> SearchResult:
    """The result of a search from its record."""
    claimed, succeeded = np.array(record.actions) == "ClaimVisible", np.array(record.success, bool)
    return SearchResult(
        record.found, metrics.seeker_steps(claimed, succeeded), metrics.false_claims(claimed, succeeded)
    )


class HidingLine(BaseModel):
    """A line of the hidings file."""

    model_config = ConfigDict(extra="forbid")

    record: dict[str, Any]
    """The search for the hidden object before its first step."""
    score: dict[str, float]
    """Metrics that the hiding has, by name."""


class Ledger:
    """Finished games by match, and the scores of the hidings, in memory."""

    def __init__(self) -> None:
        self.hidings: dict[Match, Record] = {}
        self.results: dict[Match, SearchResult] = {}
        """Of searches."""
        self.scores: dict[Match, Score] = {}
        """Of hidings, by the search for them without a seeker."""

    def add_game(self, match: Match, record: Record) -> None:
        """Adds a finished game."""
        # Searches are many and long: only their results stay in memory.
        if match.seeker:
            self.results[match] = search_result(record)
        else:
            self.hidings[match] = record

    def add_score(self, search: Match, start: Record, score: Score) -> None:
        """Adds a hiding's score; `start` is the record of the search for it before its first step."""
        self.scores[search] = score

    def has(self, match: Match) -> bool:
        return match in (self.results if match.seeker else self.hidings)


class Additions(Ledger):
    """The part of a ledger that is about some scenes, and what is added to it, to be sent elsewhere."""

    def __init__(self, ledger: Ledger, scenes: Collection[str]) -> None:
        super().__init__()
        self.hidings.update({match: record for match, record in ledger.hidings.items() if match.scene in scenes})
        self.results.update({match: result for match, result in ledger.results.items() if match.scene in scenes})
        self.scores.update({match: score for match, score in ledger.scores.items() if match.scene in scenes})
        self.games_added: list[tuple[Match, Record]] = []
        self.scores_added: list[tuple[Match, Record, Score]] = []

    def add_game(self, match: Match, record: Record) -> None:
        super().add_game(match, record)
        self.games_added.append((match, record))

    def add_score(self, search: Match, start: Record, score: Score) -> None:
        super().add_score(search, start, score)
        self.scores_added.append((search, start, score))


class Journal(Ledger):
    """A ledger that is a folder of files."""

    def __init__(self, folder: Path, size: int, agents: Mapping[str, str] = {}) -> None:
        """Reads the folder; RecordError if a file is broken, or its games have another image size.

        `agents` are the digests of trained players, by name. Games of others under the same names are refused.
        """
        super().__init__()
        self.folder = folder
        stored = _read_agents(folder)
        if other := [name for name, digest in agents.items() if stored.get(name, digest) != digest]:
            raise RecordError(f"{folder} has games of another agent named {other[0]}: choose another folder")
        self._new_agents = {**stored, **agents} if agents.keys() - stored.keys() else {}
        path = folder / GAMES_FILE
        for number, data in _read_lines(path):
            record = _read_record(path, number, data)
            if record.size != size:
                raise RecordError(
                    f"{folder} has games with images of {record.size} pixels, not {size}: choose another folder"
                )
            super().add_game(match_of(record), record)
        path = folder / HIDINGS_FILE
        for number, data in _read_lines(path):
            try:
                line = HidingLine.model_validate(data)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"]) or "line"
                raise RecordError(f"{path}, line {number}: {where}: {first['msg']}") from error
            values = {field.name: line.score.get(field.name, np.nan) for field in fields(Score)}
            self.scores[match_of(_read_record(path, number, line.record))] = Score(**values)

    def add_game(self, match: Match, record: Record) -> None:
        """Appends a finished game."""
        if self._new_agents:
            write_atomically(self.folder / AGENTS_FILE, json.dumps(self._new_agents, indent=1) + "\n")
            self._new_agents = {}
        _append(self.folder / GAMES_FILE, record.to_dict())
        super().add_game(match, record)

    def add_score(self, search: Match, start: Record, score: Score) -> None:
        """Appends a hiding's score."""
        _append(self.folder / HIDINGS_FILE, {"record": start.to_dict(), "score": score.to_dict()})
        super().add_score(search, start, score)

    def append(self, additions: Additions) -> None:
        """Appends what was added elsewhere."""
        for game in additions.games_added:
            self.add_game(*game)
        for scored in additions.scores_added:
            self.add_score(*scored)


def load_searches(folder: Path, wanted: Collection[Match]) -> dict[Match, Record]:
    """The records of some of a journal's games. Others are skipped without being checked, since searches are long."""
    players = {(match.scene, match.hider, match.seeker) for match in wanted}
    path, found = folder / GAMES_FILE, {}
    for number, data in _read_lines(path):
        names = data.get("players", {})
        if (data.get("scene"), names.get("hider", ""), names.get("seeker", "")) in players:
            record = _read_record(path, number, data)
            if (match := match_of(record)) in wanted:
                found[match] = record
    return found


def match_of(record: Record) -> Match:
    """The match that a record is of."""
    return Match(record.scene, record.players.get("hider", ""), record.players.get("seeker", ""), record.spec)


def _read_agents(folder: Path) -> dict[str, str]:
    path = folder / AGENTS_FILE
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes()) if path.exists() else {}
    except ValidationError as error:
        raise RecordError(f"{path}: not a list of agents: {explain(error)}") from error


def _read_record(path: Path, number: int, data: Any) -> Record:
    try:
        return Record.from_dict(data)
    except RecordError as error:
        raise RecordError(f"{path}, line {number}: {error}") from error


def _read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers and parsed lines. Truncates a last line that was cut off when the tournament was stopped."""
    if not path.exists():
        return
    complete = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                os.truncate(path, complete)
                return
            complete += len(line)
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise RecordError(f"{path}, line {number}: {error}") from error


def _append(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(data) + "\n")
