"""Records to watch: each is replayed once, and its frames are cached."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scrubjay.errors import RecordError
from scrubjay.game.actions import Stage
from scrubjay.game.episode import RandomEpisodes
from scrubjay.game.record import Record
from scrubjay.game.record import replay as replay_record
from scrubjay.sim.compile import CompiledRoom
from scrubjay.viz.floorplan import draw_floorplan
from scrubjay.viz.picture import encode_picture
from scrubjay.web.database import new_token
from scrubjay.web.opponents import Opponents, internals_of, next_step
from scrubjay.web.trial import SEEK, Trial
from scrubjay.web.worker import Job, Worker
from scrubjay.web.world_pool import WorldPool

log = logging.getLogger("scrubjay.web")
MAX_CACHED = 6
"""Replays kept beside those in progress: about 8 MB each, 20 MB at 448 pixels."""
MAX_IN_PROGRESS = 8
MAX_STEPS, MAX_IMAGE_SIZE = 5000, 448
"""Limits of uploaded records."""
PLAN_SIZE = 500


class BusyError(Exception):
    """Too many replays are in progress; the message is shown to the client."""


@dataclass
class Replay:
    """A record as the watch page shows it; filled by a job."""

    ready: bool = False
    progress: float = 0.0
    failed: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    """One JPEG per step."""
    plan: bytes = b""
    internals: dict[str, Any] | None = None
    """Values that the players reported: a list per name with one per step, or None."""

    def as_json(self) -> dict[str, Any]:
        if self.failed:
            return {"ready": False, "failed": self.failed}
        if not self.ready:
            return {"ready": False, "progress": round(self.progress, 3)}
        return {"ready": True, **self.facts, "steps": self.steps, "internals": self.internals}


class Replays:
    """Replays by record name. Methods run in the worker's thread."""

    def __init__(self, worker: Worker, worlds: WorldPool, opponents: Opponents, listed: Sequence[Record] = ()) -> None:
        self.worker, self.worlds, self.opponents = worker, worlds, opponents
        self._listed = {str(number): record for number, record in enumerate(listed, 1)}
        self._cache: OrderedDict[str, Replay] = OrderedDict()
        self._in_progress = 0

    def listed(self) -> list[dict[str, Any]]:
        """The records that anyone may watch."""
        return [
            {
                "record": name, "scene": record.scene, "goal": record.goal, "steps": len(record.actions),
                "hider": record.players.get("hider", ""), "seeker": record.players.get("seeker", ""),
                "found": record.found,
            }
            for name, record in self._listed.items()
        ]  # fmt: skip

    def add(self, data: Any) -> str:
        """Stores an uploaded record and returns its name; RecordError if it is invalid."""
        try:
            record = Record.from_dict(data)
        except RecordError:
            raise
        except Exception as error:
            raise RecordError("invalid record") from error
        if not isinstance(record.scene, str) or not isinstance(record.players, dict):
            raise RecordError("a record needs a scene and players")
        if not 0 < len(record.actions) <= MAX_STEPS:
            raise RecordError(f"only records with 1 to {MAX_STEPS} steps can be watched")
        if not isinstance(record.size, int) or not 0 < record.size <= MAX_IMAGE_SIZE or record.size % 7:
            raise RecordError(f"only records with images of up to {MAX_IMAGE_SIZE} pixels can be watched")
        return self.worker.database.add_record(record)

    def play(self, scene: str, goal: str, hider: str, seeker: str, seed: int) -> str:
        """Starts a game between two players; returns the name under which it can be watched."""
        name, replay = new_token(), Replay()
        self._start(name, replay, self._play(name, replay, scene, goal, hider, seeker, seed))
        return name

    def get(self, name: str) -> Replay:
        """A record's replay, started if necessary; KeyError if there is no such record."""
        if name not in self._cache:
            stored = (self._listed[name], None) if name in self._listed else self.worker.database.record(name)
            if stored is None:
                raise KeyError(name)
            record, internals = stored
            replay = Replay(internals=internals)
            self._start(name, replay, self._replay(replay, record))
        self._cache.move_to_end(name)
        return self._cache[name]

    def _start(self, name: str, replay: Replay, job: Job) -> None:
        if self._in_progress >= MAX_IN_PROGRESS:
            raise BusyError("Too many games are being prepared. Try again in a moment.")
        self._in_progress += 1
        self._cache[name] = replay
        while len(self._cache) > MAX_CACHED + MAX_IN_PROGRESS:
            self._cache.popitem(last=False)
        self.worker.start(self._guard(replay, job))

    def _guard(self, replay: Replay, job: Job) -> Job:
        """Runs a job; reports its failure on the replay."""
        try:
            yield from job
        except RecordError as error:
            replay.failed = f"This record does not replay: {error}."
        except Exception:
            log.exception("a replay failed")
            replay.failed = "This record cannot be shown."
        finally:
            self._in_progress -= 1

    def _play(self, name: str, replay: Replay, scene: str, goal: str, hider: str, seeker: str, seed: int) -> Job:
        while not self.worlds.ready(scene):
            yield 0.02
        world = self.worlds.world(scene)
        spec = RandomEpisodes(seed, (goal,))(world, 0)
        trial = Trial(world, spec, SEEK, {"hider": hider, "seeker": seeker}, human=False)
        hides, seeks = self.opponents.hiders[hider](seed), self.opponents.seekers[seeker](seed + 1)
        while trial.record is None:
            trial.bind(self.worlds.world(scene))
            player = seeks if trial.game.stage[0] == Stage.S else hides
            trial.step(next_step(player, trial.game), internals_of(player))
            replay.progress = min(0.5, replay.progress + 0.5 / 700)
            yield 0
        replay.internals = trial.internals()
        self.worker.database.add_record(trial.record, replay.internals, name)
        yield from self._replay(replay, trial.record)

    def _replay(self, replay: Replay, record: Record) -> Job:
        """Replays a record step by step and renders its frames."""
        while not self.worlds.ready(record.scene, record.size):
            yield 0.02
        world = self.worlds.world(record.scene, record.size)
        state = world.state = world.state.copy()
        results = replay_record(record, world)
        start, total = replay.progress, len(record.actions)
        pose, frame = list(record.start), b""
        for number in range(total):
            if self.worlds.world(record.scene, record.size) is not world:
                raise RecordError("its room was unloaded meanwhile, try again")
            world.state = state
            game, result = next(results)
            next_began = result.finished[0] or (result.stage[0] != Stage.S and game.stage[0] == Stage.S)
            if not next_began:
                # Otherwise the world already shows the next game or the search; this step changed nothing visible.
                pose, frame = list(world.agent_pose(0)), encode_picture(game.look().rgb[0].cpu().numpy(), "JPEG")
            elif not frame:
                frame = encode_picture(np.zeros((record.size, record.size, 3), np.uint8), "JPEG")
            replay.frames.append(frame)
            replay.steps.append(_step(record, number, result, pose))
            replay.progress = start + (1 - start) * number / total
            yield 0
        world.state = state
        for _ in results:  # Exhausting the generator compares the hash.
            pass
        compiled = world.rooms[0]
        replay.plan = encode_picture(draw_floorplan(compiled, _grid(compiled, record), size=PLAN_SIZE))
        replay.facts = {
            "scene": record.scene, "goal": record.goal, "found": record.found, "players": record.players,
            "size": record.size, "bounds": list(compiled.room.bounds), "start": list(record.start),
        }  # fmt: skip
        replay.ready = True


def _step(record: Record, number: int, result: Any, pose: list) -> dict[str, Any]:
    stage = Stage(result.stage[0])
    position = result.pose[0, :3].tolist()
    return {
        "stage": stage.name, "action": record.actions[number], "success": bool(result.success[0]),
        "hit": bool(result.hit[0]), "place": pose, "object": position if stage >= Stage.OH else None,
        "opened": int(result.opened[0]),
    }  # fmt: skip


def _grid(compiled: CompiledRoom, record: Record):
    return compiled.floor.grid(np.array(record.start[:2]), record.start.rotation % 90)
