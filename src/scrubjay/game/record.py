"""Finished games as data: a line of JSON each, that replays to the same game, bit by bit, on a CPU."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.errors import RecordError
from scrubjay.files import write_atomically
from scrubjay.game.actions import NAMES, NOTHING, NUMBERS, Stage
from scrubjay.game.cache import CacheGame, StepResult
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.stages import LIMITS, advance
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

VERSION = 2


@dataclass
class Record:
    """A game from its deal to its end."""

    scene: str
    deal: dict[str, Any]
    """The fields of a `EpisodeSpec`, stages by name."""
    size: int
    """The image's edge in pixels: what an action at a cell does depends on it."""
    renderer: str
    """Its kind, for the same reason: pixels at edges differ a little."""
    limits: list[int]
    players: dict[str, str] = field(default_factory=dict)
    """Who played as hider and as seeker."""
    actions: list[str] = field(default_factory=list)
    """Names; for the choice of a place, `PS` and its four numbers; empty for an action that its stage does not have."""
    success: list[bool] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)
    """Where the player was after each step, like `CacheGame.relative_place`."""
    opened: list[int] = field(default_factory=list)
    """The number of the openable that each step opened, or -1."""
    hits: list[list[bool]] = field(default_factory=list)
    """For each manipulation: was the target hit, and did PlaceAt succeed."""
    hidden: dict[str, Any] | None = None
    """How the hider left the room: the object's `pose`, and the numbers of the openables that were `open`."""
    found: bool = False
    pose: list[float] = field(default_factory=list)
    """Where the object was in the end."""
    hash: str = ""
    """Of the world's state after every step."""
    version: int = VERSION

    @property
    def goal(self) -> str:
        return self.deal["goal"]

    @property
    def start(self) -> AgentPose:
        return AgentPose(*self.deal["start"])

    def dealt(self) -> EpisodeSpec:
        """The deal that the game began with."""
        d = self.deal
        return EpisodeSpec(
            d["goal"], _place(d["start"]), Stage[d["first"]], Stage[d["last"]], d["place"] and _place(d["place"]),
            d["target"] and tuple(d["target"]), d["pose"] and tuple(d["pose"]), tuple(d["open"]), bool(d["anywhere"]),
        )  # fmt: skip

    def stages(self) -> list[Stage]:
        """The stage of each action, by the rules."""
        stages, steps, limits = [], np.zeros((1, len(Stage)), int), np.array(self.limits)
        stage, last = np.array([Stage[self.deal["first"]]]), np.array([Stage[self.deal["last"]]])
        for name, success in zip(self.actions, self.success, strict=True):
            stages.append(Stage(stage[0]))
            steps[0, stage] += 1
            action = np.array([NUMBERS.get(name, NOTHING)])
            transition = advance(stage, last, action, np.array([success]), steps, limits)
            steps[transition.placing, Stage.OM] = 0
            stage = transition.stage
        return stages


class Recorder:
    """Writes down the games of a `CacheGame` while they are played. Call `note` after every step."""

    def __init__(self, game: CacheGame, players: dict[str, str] | None = None) -> None:
        self.game, self.players = game, players or {}
        self._open = [self._begun(b) for b in range(len(game))]
        self._digests = [hashlib.sha256() for _ in self._open]

    def note(self, outcome: StepResult, place: np.ndarray | None = None) -> list[Record]:
        """Takes down a step; returns the records of the games that ended with it."""
        done = []
        for b, record in enumerate(self._open):
            if outcome.stage[b] == Stage.PS:
                assert place is not None
                record.actions.append("PS " + " ".join(str(int(number)) for number in place[b]))
            else:
                record.actions.append(NAMES[outcome.action[b]] if outcome.action[b] != NOTHING else "")
            record.success.append(bool(outcome.success[b]))
            record.places.append(outcome.place[b].tolist())
            record.opened.append(int(outcome.opened[b]))
            if outcome.stage[b] == Stage.OM and outcome.ended[b]:
                record.hits.append([bool(outcome.hit[b]), bool(outcome.placed[b])])
            self._digests[b].update(digest_of(outcome, b))
            if outcome.finished[b]:
                record.found, record.pose = bool(outcome.found[b]), outcome.pose[b].tolist()
                record.hash = self._digests[b].hexdigest()
                if record.deal["last"] == Stage.OH.name:
                    record.hidden = {"pose": record.pose, "open": np.flatnonzero(outcome.open[b]).tolist()}
                done.append(record)
                self._open[b], self._digests[b] = self._begun(b), hashlib.sha256()
            elif self.game.stage[b] == Stage.S and outcome.stage[b] != Stage.S:
                record.hidden = self._hidden(b)
        return done

    def _begun(self, b: int) -> Record:
        game = self.game
        dealt = game.specs[b]
        scene = game.world.rooms[game.world.room_of[b]].room.scene
        deal = {**asdict(dealt), "first": dealt.first.name, "last": dealt.last.name}
        renderer = game.world.renderer.name.split(" ")[0]
        record = Record(scene, json.loads(json.dumps(deal)), game.world.size, renderer, game.limits.tolist())
        record.players = dict(self.players)
        if dealt.first == Stage.S:
            record.hidden = self._hidden(b)
        return record

    def _hidden(self, b: int) -> dict[str, Any]:
        state = self.game.world.state
        return {"pose": state.pose[b].tolist(), "open": np.flatnonzero(state.open[b]).tolist()}


def digest_of(outcome: StepResult, b: int) -> bytes:
    """What a step did in one game, to the last bit."""
    flags = np.array([outcome.success[b], outcome.hit[b], outcome.placed[b], outcome.ended[b]])
    return flags.tobytes() + outcome.pose[b].tobytes() + outcome.place[b].tobytes() + outcome.opened[b].tobytes()


def replay(record: Record, world: World) -> Iterator[tuple[CacheGame, StepResult]]:
    """Plays a record again in a world of its room alone, step by step; RecordError where anything differs."""
    if len(world) != 1 or world.rooms[0].room.scene != record.scene or world.size != record.size:
        raise RecordError(f"a record of {record.scene} at {record.size} pixels replays in a world of that room alone")
    if not record.actions:
        raise RecordError("a record without actions is no game")
    game = CacheGame(world, lambda *_: record.dealt(), np.array(record.limits), forgiving=True)
    digest = hashlib.sha256()
    for number, (name, success) in enumerate(zip(record.actions, record.success, strict=True)):
        kind, *numbers = name.split(" ")
        if kind == "PS":
            outcome = game.step(np.array([NOTHING]), np.array([[int(n) for n in numbers]]))
        else:
            outcome = game.step(np.array([NAMES.index(name) if name else NOTHING]))
        digest.update(digest_of(outcome, 0))
        if outcome.success[0] != success:
            raise RecordError(f"step {number}, {name}, {'failed' if success else 'succeeded'} in the replay")
        yield game, outcome
        if outcome.finished[0] and number + 1 < len(record.actions):
            raise RecordError(f"the replay ends after step {number}, the record goes on")
    if not outcome.finished[0] or outcome.found[0] != record.found or outcome.pose[0].tolist() != record.pose:
        raise RecordError("the replay ends differently")
    if digest.hexdigest() != record.hash:
        raise RecordError("the replay has another hash: some state on the way differed")


def save_records(records: Iterable[Record], path: str | os.PathLike[str]) -> None:
    """Writes records as lines of JSON."""
    write_atomically(path, "".join(json.dumps(asdict(record)) + "\n" for record in records))


def load_records(path: str | os.PathLike[str]) -> list[Record]:
    """Reads records; RecordError says what is wrong with any other file."""
    records = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            records.append(checked(json.loads(line)))
        except (json.JSONDecodeError, RecordError) as error:
            raise RecordError(f"{path}, line {number}: {error}") from error
    if not records:
        raise RecordError(f"{path}: no records")
    return records


def checked(data: Any) -> Record:
    """A record from what JSON gave; RecordError says what is wrong with it."""
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise RecordError(f"not a record of version {VERSION}")
    known = {f.name for f in fields(Record)}
    if set(data) != known:
        raise RecordError(f"a record has {', '.join(sorted(known))}")
    record = Record(**data)
    lists: Sequence[Any] = (record.actions, record.success, record.places, record.opened)
    if not all(isinstance(values, list) for values in lists) or len({len(values) for values in lists}) != 1:
        raise RecordError("actions, success, places and opened are lists of the same length")
    for name in record.actions:
        if not isinstance(name, str) or (name and name not in NAMES and not _is_choice(name)):
            raise RecordError(f"unknown action {name!r}")
    if not all(isinstance(success, bool) for success in record.success):
        raise RecordError("success is true or false for every action")
    if not isinstance(record.limits, list) or len(record.limits) != len(LIMITS):
        raise RecordError(f"limits are {len(LIMITS)} numbers")
    try:
        record.dealt()
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"no deal: {error}") from error
    return record


def _is_choice(name: str) -> bool:
    kind, *numbers = name.split(" ")
    return kind == "PS" and len(numbers) == 4 and all(n.lstrip("-").isdigit() for n in numbers)


def _place(numbers: Sequence[Any]) -> AgentPose:
    x, y, rotation, standing = numbers
    return AgentPose(float(x), float(y), float(rotation), bool(standing))
