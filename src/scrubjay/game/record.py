"""Records: finished games as lines of JSON that replay bit-exactly on a CPU."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, FiniteFloat, StrictBool, StrictInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # Python 3.11: pydantic cannot read the one in typing.

from scrubjay.errors import RecordError, explain
from scrubjay.files import write_atomically
from scrubjay.game.actions import NAMES, NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.stages import LIMITS, advance
from scrubjay.rooms.room import Room
from scrubjay.sim.base_world import BaseWorld, WorldRoom
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import AgentPose

VERSION = 4
READABLE_VERSIONS = (2, 3, VERSION)
"""Version 2 called the spec a deal; neither it nor version 3 has digests of the room and of the record."""
REMOTE = "AI2-THOR"
"""The renderer of games that were not played in our own worlds."""
CHOICE = "PS"
"""Begins the choice of a place among the actions; its four numbers follow."""


def _check_action(name: str) -> str:
    if name and name not in NUMBERS and not _is_choice(name):
        raise ValueError(f"unknown action {name!r}")
    return name


def _is_choice(name: str) -> bool:
    kind, *numbers = name.split(" ")
    return kind == CHOICE and len(numbers) == 4 and all(re.fullmatch("-?[0-9]{1,4}", n) for n in numbers)


def _check_limits(limits: list[int]) -> list[int]:
    if limits[Stage.PS] != 1:
        raise ValueError(f"limits: PS has one step, not {limits[Stage.PS]}")
    return limits


ActionName = Annotated[str, AfterValidator(_check_action)]
Size = Annotated[StrictInt, Field(ge=CELLS, multiple_of=CELLS)]
Limit = Annotated[StrictInt, Field(ge=1)]
Limits = Annotated[list[Limit], Field(min_length=len(LIMITS), max_length=len(LIMITS)), AfterValidator(_check_limits)]
Place = Annotated[list[StrictInt], Field(min_length=4, max_length=4)]
Hit = Annotated[list[StrictBool], Field(min_length=2, max_length=2)]
Openable = Annotated[StrictInt, Field(ge=0)]
OpenableOrNone = Annotated[StrictInt, Field(ge=NOTHING)]
Pose = Annotated[list[FiniteFloat], Field(min_length=7, max_length=7)]
NoPose = Annotated[list[FiniteFloat], Field(max_length=0)]


class Hidden(TypedDict):
    """How the hider left the room."""

    pose: Pose
    """The object's."""
    open: list[Openable]
    """Numbers of the openables that were open."""


@dataclass
class Record:
    """A game from its spec to its end.

    Fields are checked when a record is read (`from_dict`), not when it is created.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    scene: str
    spec: EpisodeSpec
    size: Size
    """The image's edge in pixels, which decides what an action at a cell does."""
    renderer: str
    """Its kind; for the same reason, since renderers differ in a few pixels at edges."""
    limits: Limits
    """Maximum steps of each stage."""
    players: dict[str, str] = field(default_factory=dict)
    """The names of the hider and the seeker."""
    actions: list[ActionName] = field(default_factory=list)
    """Names; `PS` and four numbers for the choice of a place; empty for an action that its stage does not have."""
    success: list[StrictBool] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    """The player's place after each step, as in `CacheGame.relative_place`."""
    opened: list[OpenableOrNone] = field(default_factory=list)
    """The openable that each step opened, or -1."""
    hits: list[Hit] = field(default_factory=list)
    """For each manipulation: was the target hit, and did PlaceAt succeed."""
    hidden: Hidden | None = None
    found: StrictBool = False
    pose: Pose | NoPose = field(default_factory=list)
    """The object's final pose."""
    hash: str = ""
    """Of the world's state after every step."""
    room: str = ""
    """The digest of its room, which notices a changed generator of rooms; empty in records of earlier versions."""
    sha256: str = field(default="", compare=False, repr=False)
    """The digest of all else in the file that it was read from; see `digest`."""
    version: int = VERSION

    def __post_init__(self) -> None:
        if len({len(steps) for steps in (self.actions, self.success, self.places, self.opened)}) != 1:
            raise ValueError("actions, success, places and opened are lists of the same length")

    @property
    def goal(self) -> str:
        return self.spec.goal

    @property
    def start(self) -> AgentPose:
        return self.spec.start

    def stages(self) -> list[Stage]:
        """The stage of each action, by the rules."""
        stages, steps, limits = [], np.zeros((1, len(Stage)), int), np.array(self.limits)
        stage, last = np.array([self.spec.first]), np.array([self.spec.last])
        for name, success in zip(self.actions, self.success, strict=True):
            stages.append(Stage(stage[0]))
            steps[0, stage] += 1
            action = np.array([NUMBERS.get(name, NOTHING)])
            transition = advance(stage, last, action, np.array([success]), steps, limits)
            steps[transition.placing, Stage.OM] = 0
            stage = transition.stage
        return stages

    def digest(self) -> str:
        """Hexadecimal SHA-256 of all fields but `sha256`."""
        data = _adapter().dump_python(self, mode="json", exclude={"sha256"})
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return _adapter().dump_python(self, mode="json") | {"sha256": self.digest()}

    @staticmethod
    def from_dict(data: Any) -> Record:
        """A record from parsed JSON, of this version or an earlier one; RecordError says what is wrong."""
        if not isinstance(data, dict) or data.get("version") not in READABLE_VERSIONS:
            versions = " or ".join(map(str, READABLE_VERSIONS))
            raise RecordError(f"not a record of version {versions}")
        if data["version"] == VERSION and "sha256" not in data:
            raise RecordError("sha256: field required")
        if data["version"] == 2:
            data = {("spec" if name == "deal" else name): value for name, value in data.items()}
        data = data | {"version": VERSION}
        try:
            return _adapter().validate_python(data)
        except ValidationError as error:
            raise RecordError(explain(error)) from error


@cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


class Recorder:
    """Records the games of a `CacheGame` as they are played. Call `note` after every step."""

    def __init__(self, game: CacheGame, players: dict[str, str] | None = None) -> None:
        self.game, self.players = game, players or {}
        self._records = [self._begin(b) for b in range(len(game))]
        self._digests = [hashlib.sha256() for _ in self._records]

    def note(self, result: StepResult, place: np.ndarray | None = None) -> list[Record]:
        """Adds a step, and the places (B, 4) chosen in PS; returns the records of the games that it finished."""
        finished = []
        for b, record in enumerate(self._records):
            if result.waited[b]:
                continue
            if result.stage[b] == Stage.PS:
                assert place is not None
                record.actions.append(" ".join([CHOICE, *(str(int(number)) for number in place[b])]))
            else:
                record.actions.append(NAMES[result.action[b]] if result.action[b] != NOTHING else "")
            record.success.append(bool(result.success[b]))
            record.places.append(result.place[b].tolist())
            record.opened.append(int(result.opened[b]))
            if result.stage[b] == Stage.OM and result.ended[b]:
                record.hits.append([bool(result.hit[b]), bool(result.placed[b])])
            self._digests[b].update(step_digest(result, b))
            if result.finished[b]:
                self._finish(b, result)
                finished.append(record)
                self._records[b], self._digests[b] = self._begin(b), hashlib.sha256()
            elif self.game.stage[b] == Stage.S and result.stage[b] != Stage.S:
                state = self.game.world.state
                record.hidden = _hidden(state.pose[b], state.open[b])
        return finished

    def _begin(self, b: int) -> Record:
        game, spec = self.game, self.game.specs[b]
        room = game.world.rooms[game.world.room_of[b]].room
        record = new_record(room, spec, game.world, self.players, game.limits)
        if spec.first == Stage.S:
            record.hidden = _hidden(game.world.state.pose[b], game.world.state.open[b])
        return record

    def _finish(self, b: int, result: StepResult) -> None:
        record = self._records[b]
        record.found, record.pose = bool(result.found[b]), result.pose[b].tolist()
        record.hash = self._digests[b].hexdigest()
        if record.spec.last == Stage.OH:
            record.hidden = _hidden(result.pose[b], result.open[b])


def new_record(
    room: Room, spec: EpisodeSpec, world: BaseWorld, players: dict[str, str], limits: np.ndarray = LIMITS
) -> Record:
    """The record of a game before its first step."""
    renderer = world.renderer_name.split(" ")[0]
    return Record(room.scene, spec, world.size, renderer, limits.tolist(), dict(players), room=room.digest)


def _hidden(pose: np.ndarray, is_open: np.ndarray) -> Hidden:
    return {"pose": pose.tolist(), "open": np.flatnonzero(is_open).tolist()}


def step_digest(result: StepResult, b: int) -> bytes:
    """What a step did in game b, to the last bit."""
    flags = np.array([result.success[b], result.hit[b], result.placed[b], result.ended[b]])
    return flags.tobytes() + result.pose[b].tobytes() + result.place[b].tobytes() + result.opened[b].tobytes()


def check_fits(record: Record, room: WorldRoom) -> None:
    """RecordError unless the room is the one that was played in, and has the record's start and openables."""
    if record.room and record.room != room.room.digest:
        raise RecordError(f"{record.scene} is another room now: it is not generated as when the game was recorded")
    count, opened = len(room.openables), record.hidden["open"] if record.hidden else ()
    for name, numbers in (("spec.open", record.spec.open), ("opened", record.opened), ("hidden.open", opened)):
        if max(numbers, default=NOTHING) >= count:
            raise RecordError(f"{name}: {record.scene} has {count} openables, the record number {max(numbers)}")
    try:
        room.floor.grid(record.start[:2], record.start.rotation % 90)
    except ValueError as error:
        raise RecordError(f"spec.start: {error}") from error


def renderer_of(record: Record) -> str:
    """The name of the renderer to replay a record with; RecordError if its game was not played in our own worlds."""
    if record.renderer == REMOTE:
        raise RecordError(f"a game on {REMOTE} does not replay: neither its physics nor its pictures are ours")
    return record.renderer.lower()


def replay(record: Record, world: BaseWorld) -> Iterator[tuple[CacheGame, StepResult]]:
    """Replays a record step by step in a world of its room alone; RecordError at the first difference.

    Everything that the game decides is compared. What remains, such as the players' names, is compared with the digest
    in the file that the record was read from.
    """
    if len(world) != 1 or world.rooms[0].room.scene != record.scene or world.size != record.size:
        raise RecordError(f"a record of {record.scene} at {record.size} pixels replays in a world of that room alone")
    if not record.actions:
        raise RecordError("a record without actions is no game")
    check_fits(record, world.rooms[0])
    game = CacheGame(world, lambda *_: record.spec, np.array(record.limits), forgiving=True)
    recorder, last = Recorder(game, record.players), len(record.actions) - 1
    for number, name in enumerate(record.actions):
        kind, *numbers = name.split(" ")
        place = np.array([[int(n) for n in numbers]]) if kind == CHOICE else np.zeros((1, 4), int)
        result = game.step(np.array([NUMBERS.get(name, NOTHING)]), place)
        finished = recorder.note(result, place)
        _compare_step(record, number, result)
        yield game, result
        if finished and number < last:
            raise RecordError(f"the replay ends after step {number}, before the record does")
    if not finished:
        raise RecordError("the replay ends differently: it goes on")
    _compare_end(record, finished[0])


def _compare_step(record: Record, number: int, result: StepResult) -> None:
    name = record.actions[number] or "nothing"
    if result.success[0] != record.success[number]:
        raise RecordError(f"step {number}, {name}, {'succeeded' if result.success[0] else 'failed'} in the replay")
    where = f"step {number + 1} of {len(record.actions)}, {name} in {Stage(result.stage[0]).name}"
    place, opened = result.place[0].tolist(), int(result.opened[0])
    if place != record.places[number]:
        raise RecordError(f"{where}: it led to {place}, recorded was {record.places[number]}")
    if opened != record.opened[number]:
        raise RecordError(f"{where}: it opened {opened}, recorded was {record.opened[number]}")


def _compare_end(record: Record, again: Record) -> None:
    """RecordError unless a replay's record equals the one that was replayed."""
    if (again.found, again.pose) != (record.found, record.pose):
        raise RecordError("the replay ends differently")
    if again.hits != record.hits:
        raise RecordError(f"hits: the replay's manipulations ended with {again.hits}, recorded was {record.hits}")
    was_recorded = record.hidden is not None or record.room  # Not always, in early versions.
    if again.hidden != record.hidden and was_recorded:
        raise RecordError(f"hidden: the replay's hider left {again.hidden}, recorded was {record.hidden}")
    if again.hash != record.hash:
        raise RecordError("the replay has another hash: a state on the way differed")
    if record.sha256 not in ("", record.digest()):
        raise RecordError("the game is the same, but other parts of the record were edited, such as its players")


def save_records(records: Iterable[Record], path: str | os.PathLike[str]) -> None:
    """Writes records as lines of JSON."""
    write_atomically(path, "".join(json.dumps(record.to_dict()) + "\n" for record in records))


def load_records(path: str | os.PathLike[str]) -> list[Record]:
    """Reads records; RecordError names the first line that is not one.

    A last line that was cut off is left out, with a warning, if there are others.
    """
    records: list[Record] = []
    for number, record in read_records(path):
        if isinstance(record, CutOffError) and records:
            warnings.warn(f"{record}; the {number - 1} before it are read", stacklevel=2)
        elif isinstance(record, RecordError):
            raise record
        else:
            records.append(record)
    return records


class CutOffError(RecordError):
    """The last line of a file of records is not complete."""


def read_records(path: str | os.PathLike[str]) -> Iterator[tuple[int, Record | RecordError]]:
    """Numbers of lines from 1, each with its record or with what is wrong with it; RecordError if there are none."""
    lines = Path(path).read_bytes().splitlines(keepends=True)
    if not lines:
        raise RecordError(f"{path}: no records")
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            yield number, Record.from_dict(json.loads(line))
        except RecordError as error:
            yield number, RecordError(f"{where}: {error}")
        except ValueError as error:  # Neither JSON nor, perhaps, text.
            problem = RecordError if line.endswith(b"\n") else CutOffError
            yield number, problem(f"{where}: not JSON, perhaps truncated: {error}")
