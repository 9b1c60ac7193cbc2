"""Finished games as data: a line of JSON each, that replays to the same game, bit by bit, on a CPU."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from scrubjay.game.actions import NAMES, NOTHING, Stage
from scrubjay.game.cache import Cache, Deal, Outcome
from scrubjay.world.files import write_atomically
from scrubjay.world.place import Place
from scrubjay.world.room import GOALS
from scrubjay.world.world import World

VERSION = 1


class RecordError(ValueError):
    """A record that is not one, or that does not replay."""


@dataclass
class Record:
    """A game from its deal to its end."""

    scene: str
    goal: str
    start: tuple[float, float, float, bool]
    size: int
    """The image's edge in pixels: what an action at a cell does depends on it."""
    actions: list[str] = field(default_factory=list)
    """Names; for the choice of a place, `PS` and its four numbers."""
    success: list[bool] = field(default_factory=list)
    found: bool = False
    pose: list[float] = field(default_factory=list)
    """Where the object was in the end."""
    version: int = VERSION


class Recorder:
    """Writes down the games of a `Cache` while they are played. Call `note` after every step."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._open = [self._begun(b) for b in range(len(cache))]

    def note(self, outcome: Outcome, place: np.ndarray | None = None) -> list[Record]:
        """Takes down a step; returns the records of the games that ended with it."""
        done = []
        for b, record in enumerate(self._open):
            if outcome.stage[b] == Stage.PS:
                assert place is not None
                record.actions.append("PS " + " ".join(str(int(number)) for number in place[b]))
            else:
                record.actions.append(NAMES[outcome.action[b]])
            record.success.append(bool(outcome.success[b]))
            if outcome.finished[b]:
                record.found, record.pose = bool(outcome.found[b]), outcome.pose[b].tolist()
                done.append(record)
                self._open[b] = self._begun(b)
        return done

    def _begun(self, b: int) -> Record:
        cache = self.cache
        x, z, rotation, standing = cache.start[b]
        scene = cache.world.rooms[cache.world.room_of[b]].room.scene
        start = (float(x), float(z), float(rotation), bool(standing))
        return Record(scene, GOALS[cache.goal[b]], start, cache.world.size)


def replay(record: Record, world: World) -> Iterator[tuple[Cache, Outcome]]:
    """Plays a record again in a world of its room alone, step by step; RecordError where anything differs."""
    if len(world) != 1 or world.rooms[0].room.scene != record.scene or world.size != record.size:
        raise RecordError(f"a record of {record.scene} at {record.size} pixels replays in a world of that room alone")
    if not record.actions:
        raise RecordError("a record without actions is no game")
    x, z, rotation, standing = record.start
    cache = Cache(world, lambda _: Deal(record.goal, Place(x, z, rotation, bool(standing))))
    for number, (name, success) in enumerate(zip(record.actions, record.success, strict=True)):
        kind, *numbers = name.split(" ")
        if kind == "PS":
            outcome = cache.step(np.array([NOTHING]), np.array([[int(n) for n in numbers]]))
        else:
            outcome = cache.step(np.array([NAMES.index(name)]))
        if outcome.success[0] != success:
            raise RecordError(f"step {number}, {name}, {'failed' if success else 'succeeded'} in the replay")
        yield cache, outcome
    if not outcome.finished[0] or outcome.found[0] != record.found or outcome.pose[0].tolist() != record.pose:
        raise RecordError("the replay ends differently")


def save_records(records: Iterable[Record], path: str | os.PathLike[str]) -> None:
    """Writes records as lines of JSON."""
    write_atomically(path, "".join(json.dumps(asdict(record)) + "\n" for record in records))


def load_records(path: str | os.PathLike[str]) -> list[Record]:
    """Reads records; RecordError says what is wrong with any other file."""
    known = {f.name for f in fields(Record)}
    records = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise RecordError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(data, dict) or data.get("version") != VERSION:
            raise RecordError(f"{path}, line {number}: not a record of version {VERSION}")
        if set(data) != known or len(data["actions"]) != len(data["success"]):
            raise RecordError(f"{path}, line {number}: a record has {', '.join(sorted(known))}, one outcome an action")
        unknown = [name for name in data["actions"] if name not in NAMES and not name.startswith("PS ")]
        if unknown:
            raise RecordError(f"{path}, line {number}: unknown action {unknown[0]!r}")
        records.append(Record(**{**data, "start": tuple(data["start"])}))
    return records
