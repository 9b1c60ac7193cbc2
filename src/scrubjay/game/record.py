"""Records: finished games as lines of JSON that replay bit-exactly on a CPU."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # Python 3.11: pydantic cannot read the one in typing.

from scrubjay.errors import RecordError, explain
from scrubjay.files import write_atomically
from scrubjay.game.actions import NAMES, NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.stages import LIMITS, advance
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

VERSION = 3
READABLE_VERSIONS = (2, VERSION)
"""Version 2 called the spec a deal."""
CHOICE = "PS"
"""Begins the choice of a place among the actions; its four numbers follow."""


def _check_action(name: str) -> str:
    if name and name not in NUMBERS and not _is_choice(name):
        raise ValueError(f"unknown action {name!r}")
    return name


def _is_choice(name: str) -> bool:
    kind, *numbers = name.split(" ")
    return kind == CHOICE and len(numbers) == 4 and all(n.removeprefix("-").isdecimal() for n in numbers)


ActionName = Annotated[str, AfterValidator(_check_action)]
Numbers = Annotated[list[int], Field(min_length=len(LIMITS), max_length=len(LIMITS))]
Poses = Annotated[list[float], Field(max_length=7)]


class Hidden(TypedDict):
    """How the hider left the room."""

    pose: list[float]
    """The object's."""
    open: list[int]
    """Numbers of the openables that were open."""


@dataclass
class Record:
    """A game from its spec to its end.

    Fields are checked when a record is read (`from_dict`), not when it is created.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    scene: str
    spec: EpisodeSpec
    size: int
    """The image's edge in pixels, which decides what an action at a cell does."""
    renderer: str
    """Its kind; for the same reason, since renderers differ in a few pixels at edges."""
    limits: Numbers
    """Maximum steps of each stage."""
    players: dict[str, str] = field(default_factory=dict)
    """The names of the hider and the seeker."""
    actions: list[ActionName] = field(default_factory=list)
    """Names; `PS` and four numbers for the choice of a place; empty for an action that its stage does not have."""
    success: list[StrictBool] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)
    """The player's place after each step, as in `CacheGame.relative_place`."""
    opened: list[int] = field(default_factory=list)
    """The openable that each step opened, or -1."""
    hits: list[list[bool]] = field(default_factory=list)
    """For each manipulation: was the target hit, and did PlaceAt succeed."""
    hidden: Hidden | None = None
    found: bool = False
    pose: Poses = field(default_factory=list)
    """The object's final pose."""
    hash: str = ""
    """Of the world's state after every step."""
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return _adapter().dump_python(self, mode="json")

    @staticmethod
    def from_dict(data: Any) -> Record:
        """A record from parsed JSON, of this version or an earlier one; RecordError says what is wrong."""
        if not isinstance(data, dict) or data.get("version") not in READABLE_VERSIONS:
            versions = " or ".join(map(str, READABLE_VERSIONS))
            raise RecordError(f"not a record of version {versions}")
        if data["version"] == 2:
            data = {("spec" if name == "deal" else name): value for name, value in data.items()} | {"version": VERSION}
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
        scene = game.world.rooms[game.world.room_of[b]].room.scene
        record = new_record(scene, spec, game.world, self.players, game.limits)
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
    scene: str, spec: EpisodeSpec, world: World, players: dict[str, str], limits: np.ndarray = LIMITS
) -> Record:
    """The record of a game before its first step."""
    return Record(scene, spec, world.size, world.renderer.name.split(" ")[0], limits.tolist(), dict(players))


def _hidden(pose: np.ndarray, is_open: np.ndarray) -> Hidden:
    return {"pose": pose.tolist(), "open": np.flatnonzero(is_open).tolist()}


def step_digest(result: StepResult, b: int) -> bytes:
    """What a step did in game b, to the last bit."""
    flags = np.array([result.success[b], result.hit[b], result.placed[b], result.ended[b]])
    return flags.tobytes() + result.pose[b].tobytes() + result.place[b].tobytes() + result.opened[b].tobytes()


def replay(record: Record, world: World) -> Iterator[tuple[CacheGame, StepResult]]:
    """Replays a record step by step in a world of its room alone; RecordError at the first difference."""
    if len(world) != 1 or world.rooms[0].room.scene != record.scene or world.size != record.size:
        raise RecordError(f"a record of {record.scene} at {record.size} pixels replays in a world of that room alone")
    if not record.actions:
        raise RecordError("a record without actions is no game")
    game = CacheGame(world, lambda *_: record.spec, np.array(record.limits), forgiving=True)
    digest = hashlib.sha256()
    for number, (name, success) in enumerate(zip(record.actions, record.success, strict=True)):
        kind, *numbers = name.split(" ")
        if kind == CHOICE:
            result = game.step(np.array([NOTHING]), np.array([[int(n) for n in numbers]]))
        else:
            result = game.step(np.array([NUMBERS[name] if name else NOTHING]))
        digest.update(step_digest(result, 0))
        if result.success[0] != success:
            raise RecordError(f"step {number}, {name}, {'failed' if success else 'succeeded'} in the replay")
        yield game, result
        if result.finished[0] and number + 1 < len(record.actions):
            raise RecordError(f"the replay ends after step {number}, before the record does")
    if not result.finished[0] or result.found[0] != record.found or result.pose[0].tolist() != record.pose:
        raise RecordError("the replay ends differently")
    if digest.hexdigest() != record.hash:
        raise RecordError("the replay has another hash: a state on the way differed")


def save_records(records: Iterable[Record], path: str | os.PathLike[str]) -> None:
    """Writes records as lines of JSON."""
    write_atomically(path, "".join(json.dumps(record.to_dict()) + "\n" for record in records))


def load_records(path: str | os.PathLike[str]) -> list[Record]:
    """Reads records; RecordError names the first line that is not one."""
    records = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            records.append(Record.from_dict(json.loads(line)))
        except json.JSONDecodeError as error:
            raise RecordError(f"{path}, line {number}: not JSON, perhaps truncated: {error}") from error
        except RecordError as error:
            raise RecordError(f"{path}, line {number}: {error}") from error
    if not records:
        raise RecordError(f"{path}: no records")
    return records
