"""Records that are watched: each is replayed once, and its pictures are kept for a while."""

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
from scrubjay.game.record import Record, replay
from scrubjay.sim.compile import CompiledRoom
from scrubjay.viz.floorplan import draw_floorplan
from scrubjay.viz.picture import encode_picture
from scrubjay.web.database import new_token
from scrubjay.web.opponents import Opponents, internals_of, next_step
from scrubjay.web.trial import SEEK, Trial
from scrubjay.web.worker import Job, Worker
from scrubjay.web.world_pool import WorldPool

log = logging.getLogger("scrubjay.web")
KEPT = 6
"""Replayed records in memory: about 8 MB each."""
MOST_STEPS, MOST_PIXELS = 5000, 448
"""Of records from outside."""
PLAN_SIZE = 500
MOST_AT_ONCE = 8
"""Records that are replayed or played at a time."""


class BusyError(Exception):
    """Too much is being prepared already; the message is for whoever asked."""


@dataclass
class Told:
    """A record as it is shown."""

    ready: bool = False
    progress: float = 0.0
    failed: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    plan: bytes = b""
    internals: dict[str, Any] | None = None
    """What players thought: a list for each name, with a number or None for each step."""

    def as_json(self) -> dict[str, Any]:
        if self.failed:
            return {"ready": False, "failed": self.failed}
        if not self.ready:
            return {"ready": False, "progress": round(self.progress, 3)}
        return {"ready": True, **self.facts, "steps": self.steps, "internals": self.internals}


class Replays:
    """Records by their names. Runs in the engine's thread."""

    def __init__(self, worker: Worker, rooms: WorldPool, opponents: Opponents, listed: Sequence[Record] = ()) -> None:
        self.worker, self.rooms, self.opponents = worker, rooms, opponents
        self._listed = {str(number): record for number, record in enumerate(listed, 1)}
        self._told: OrderedDict[str, Told] = OrderedDict()
        self._active = 0
        """Jobs under way."""

    def listed(self) -> list[dict[str, Any]]:
        """The records that everybody may watch."""
        return [
            {
                "record": name, "scene": record.scene, "goal": record.goal, "steps": len(record.actions),
                "hider": record.players.get("hider", ""), "seeker": record.players.get("seeker", ""),
                "found": record.found,
            }
            for name, record in self._listed.items()
        ]  # fmt: skip

    def add(self, data: Any) -> str:
        """Keeps a record from outside; RecordError says why not."""
        try:
            record = Record.from_dict(data)
        except RecordError:
            raise
        except Exception as error:
            raise RecordError("a broken record") from error
        if not isinstance(record.scene, str) or not isinstance(record.players, dict):
            raise RecordError("a record has a scene and players")
        if not 0 < len(record.actions) <= MOST_STEPS:
            raise RecordError(f"a record that is watched here has 1 to {MOST_STEPS} steps")
        if not isinstance(record.size, int) or not 0 < record.size <= MOST_PIXELS or record.size % 7:
            raise RecordError(f"a record that is watched here has pictures of at most {MOST_PIXELS} pixels")
        return self.worker.database.add_record(record)

    def play(self, scene: str, goal: str, hider: str, seeker: str, seed: int) -> str:
        """Lets two players play a game; the name under which it can be watched."""
        name, told = new_token(), Told()
        self._start(name, told, self._played(name, told, scene, goal, hider, seeker, seed))
        return name

    def told(self, name: str) -> Told:
        """A record as far as it is replayed; KeyError if there is none."""
        if name not in self._told:
            kept = (self._listed[name], None) if name in self._listed else self.worker.database.record(name)
            if kept is None:
                raise KeyError(name)
            record, internals = kept
            told = Told(internals=internals)
            self._start(name, told, self._replayed(told, record))
        self._told.move_to_end(name)
        return self._told[name]

    def _start(self, name: str, told: Told, job: Job) -> None:
        if self._active >= MOST_AT_ONCE:
            raise BusyError("Many games are being prepared: try again in a moment.")
        self._active += 1
        self._told[name] = told
        while len(self._told) > KEPT + MOST_AT_ONCE:
            self._told.popitem(last=False)
        self.worker.start(self._safely(told, job))

    def _safely(self, told: Told, job: Job) -> Job:
        try:
            yield from job
        except RecordError as error:
            told.failed = f"This record does not replay here: {error}."
        except Exception:
            log.exception("a record could not be shown")
            told.failed = "This record cannot be shown."
        finally:
            self._active -= 1

    def _played(
        self, name: str, told: Told, scene: str, goal: str, hider: str, seeker: str, seed: int
    ) -> Job:  # fmt: skip
        while not self.rooms.ready(scene):
            yield 0.02
        world = self.rooms.world(scene)
        deal = RandomEpisodes(seed, (goal,))(world, 0)
        trial = Trial(world, deal, SEEK, {"hider": hider, "seeker": seeker}, people=False)
        hides, seeks = self.opponents.hiders[hider](seed), self.opponents.seekers[seeker](seed + 1)
        while trial.record is None:
            trial.bind(self.rooms.world(scene))
            player = seeks if trial.game.stage[0] == Stage.S else hides
            trial.step(next_step(player, trial.game), internals_of(player))
            told.progress = min(0.5, told.progress + 0.5 / 700)
            yield 0
        told.internals = trial.internals()
        self.worker.database.add_record(trial.record, told.internals, name)
        yield from self._replayed(told, trial.record)

    def _replayed(self, told: Told, record: Record) -> Job:
        """Replays a record, step by step, and keeps what is shown of it."""
        while not self.rooms.ready(record.scene, record.size):
            yield 0.02
        world = self.rooms.world(record.scene, record.size)
        mine = world.state = world.state.copy()
        steps = replay(record, world)
        begun, total = told.progress, len(record.actions)
        place, frame = list(record.start), b""
        for number in range(total):
            if self.rooms.world(record.scene, record.size) is not world:
                raise RecordError("the room was put away meanwhile, try again")
            world.state = mine
            game, outcome = next(steps)
            moved_on = outcome.finished[0] or (outcome.stage[0] != Stage.S and game.stage[0] == Stage.S)
            if not moved_on:
                # Else the next game or the search has begun already; the step before it changes nothing that is seen.
                place, frame = list(world.agent_pose(0)), encode_picture(game.look().rgb[0].cpu().numpy(), "JPEG")
            elif not frame:
                frame = encode_picture(np.zeros((record.size, record.size, 3), np.uint8), "JPEG")
            told.frames.append(frame)
            told.steps.append(_step(record, number, outcome, place))
            told.progress = begun + (1 - begun) * number / total
            yield 0
        world.state = mine
        for _ in steps:
            pass
        compiled = world.rooms[0]
        told.plan = encode_picture(draw_floorplan(compiled, _grid(compiled, record), size=PLAN_SIZE))
        told.facts = {
            "scene": record.scene, "goal": record.goal, "found": record.found, "players": record.players,
            "size": record.size, "bounds": list(compiled.room.bounds), "start": list(record.start),
        }  # fmt: skip
        told.ready = True


def _step(record: Record, number: int, outcome: Any, place: list) -> dict[str, Any]:
    stage = Stage(outcome.stage[0])
    x, y, height = outcome.pose[0, :3].tolist()
    there = stage >= Stage.OH
    return {
        "stage": stage.name, "action": record.actions[number], "success": bool(outcome.success[0]),
        "hit": bool(outcome.hit[0]), "place": place, "object": [x, y, height] if there else None,
        "opened": int(outcome.opened[0]),
    }  # fmt: skip


def _grid(compiled: CompiledRoom, record: Record):
    return compiled.floor.grid(np.array(record.start[:2]), record.start.rotation % 90)
