"""The trials that are being played: woken from the store, acted in, told to whoever sits at them.

All of it runs in the engine's thread. A trial is prepared and rebuilt by jobs, so that nobody waits for another's room.
"""

from __future__ import annotations

import base64
import json
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.viz.picture import encoded
from scrubjay.web import pointing
from scrubjay.web.database import deal_as_json, deal_from_json
from scrubjay.web.opponents import Opponents, dealt, next_step, thought_of
from scrubjay.web.seen_map import SeenMap
from scrubjay.web.trial import CAN, GIVE_UP, HIDE, POINT_OPEN, POINT_PLACE, SEEK, NotNow, Trial
from scrubjay.web.worker import Job, Worker
from scrubjay.web.world_pool import WorldPool

log = logging.getLogger("scrubjay.web")
PACE = 1 / 8
"""Seconds between the steps of a scripted seeker that is watched."""
SKIP = "Skip"
GAME_STEPS = 230
"""About as many as a scripted hider takes, for the progress that is shown."""
IDLE = 600.0
"""Seconds after which a trial that nobody sits at is left to the store."""
MOST_IDLE = 100
"""Trials that nobody sits at in memory, about 0.6 MB each; beyond it, the oldest are left to the store."""
BLOCKED = "Something is in the way."
FAILED = {
    "Move": BLOCKED, "Rotate": BLOCKED, "OpenAt": "It does not open from here: come within 1.5 meters.",
    "CloseObjects": "Nothing within reach could be closed.", "DropObject": "It cannot be let go here.",
    "ClaimVisible": "No: it must be in the picture, and within 1.5 meters.",
}  # fmt: skip
"""What people are told when an action whose name begins so fails."""


class Unknown(Exception):
    """No such trial."""


class Seat(Protocol):
    """Whoever plays or watches a trial. Called in the engine's thread."""

    def send(self, message: dict[str, Any], picture: bytes | None = None) -> None: ...

    def taken(self) -> None:
        """Somebody else sits here now."""
        ...

    def lost(self) -> None:
        """What was done last could not be kept: the trial must be opened again, as the store has it."""
        ...


@dataclass
class Sitting:
    """A trial in memory."""

    row: sqlite3.Row
    trial: Trial | None = None
    """None until it is awake."""
    seen: SeenMap | None = None
    count: int = 0
    """Steps in the store."""
    started: float = 0.0
    seat: Seat | None = None
    drawn: tuple[bytes, bytes] = (b"", b"")
    """The state of the last picture, and the picture."""
    result: dict[str, Any] | None = None
    progress: float = 0.0
    busy: bool = False
    """A job works on it."""
    skip: bool = False
    touched: float = 0.0

    @property
    def phase(self) -> str:
        if self.trial is None:
            return "prepare"
        return "done" if self.result else self.trial.phase


class Sessions:
    """The trials under way."""

    def __init__(self, engine: Worker, rooms: WorldPool, opponents: Opponents, clock: Callable[[], float]) -> None:
        self.engine, self.rooms, self.opponents, self.clock = engine, rooms, opponents, clock
        self.store = engine.store
        self.sittings: dict[str, Sitting] = {}
        engine.when_lost = self._forget
        engine.at_end(rooms.close)

    def _forget(self) -> None:
        """Nothing in memory counts any more; everybody comes back to what the store has."""
        for sitting in self.sittings.values():
            if sitting.seat is not None:
                sitting.seat.lost()
        self.sittings.clear()

    def sit(self, token: str, seat: Seat) -> None:
        """Somebody opens a trial; who sat there is told so."""
        sitting = self.sittings.get(token)
        if sitting is None:
            row = self.store.trial(token)
            if row is None:
                raise Unknown("There is no such game.")
            sitting = self.sittings[token] = Sitting(row)
        if sitting.seat is not None and sitting.seat is not seat:
            self.engine.after_commit(sitting.seat.taken)
        sitting.seat, sitting.touched = seat, self.clock()
        row = sitting.row
        welcome = {
            "type": "welcome", "kind": row["role"], "goal": row["goal"],
            "practice": bool(row["practice"]), "study": row["study"] is not None,
            "scene": row["scene"], "size": self.rooms.size,
            "opponent": row["opponent"] if row["study"] is None else "",
            "bounds": self._bounds(sitting),
        }  # fmt: skip
        self.engine.after_commit(lambda: seat.send(welcome))
        if sitting.seen:
            sitting.seen.changed = True
        self._tell(sitting)
        self._go_on(sitting)

    def leave(self, token: str, seat: Seat) -> None:
        """Somebody has gone. What nobody sits at is forgotten after a while, or when it is over."""
        sitting = self.sittings.get(token)
        if sitting is not None and sitting.seat is seat:
            sitting.seat = None
        now = self.clock()
        idle = [(name, other) for name, other in self.sittings.items() if other.seat is None and not other.busy]
        idle.sort(key=lambda entry: entry[1].touched)
        for number, (name, other) in enumerate(idle):
            if other.result or now - other.touched > IDLE or number < len(idle) - MOST_IDLE:
                del self.sittings[name]

    def act(self, token: str, seat: Seat, reply: int, name: str) -> None:
        """One of the things that a person can do."""
        sitting, trial = self._awake(token, seat)
        if name == SKIP and sitting.phase == "watch":
            sitting.skip = True
            self._tell(sitting, reply)
            return
        if name == GIVE_UP and self.give_up_in(sitting):
            raise NotNow("It is too early to give up.")
        steps = trial.steps_of(name)
        self._take(sitting, reply, lambda take: [take(step) for step in steps])

    def point(self, token: str, seat: Seat, reply: int, x: float, y: float, to: str) -> None:
        """Opens what is at a point of the picture, or brings the hand there."""
        sitting, trial = self._awake(token, seat)
        if (POINT_OPEN if to == "open" else POINT_PLACE) not in CAN[sitting.phase]:
            raise NotNow("Pointing does nothing now.")
        if to == "open":
            step = pointing.opening(trial, x, y)
            self._take(sitting, reply, lambda take: take(step))
        else:
            pointing.aim(trial, x, y)
            self._take(sitting, reply, lambda take: pointing.bring(trial, x, y, take))

    def ping(self, token: str, seat: Seat, reply: int) -> None:
        sitting, _ = self._awake(token, seat)
        message = {"type": "pong", "reply": reply, "give_up_in": self.give_up_in(sitting),
                   "seconds": self._seconds(sitting)}  # fmt: skip
        self.engine.after_commit(lambda: seat.send(message))

    def give_up_in(self, sitting: Sitting) -> float | None:
        """Seconds until a seeker may give up; None for who cannot."""
        if sitting.row["role"] == HIDE or sitting.result:
            return None
        return max(0.0, round(sitting.row["patience"] - self._seconds(sitting), 1))

    # Inside.

    def _seconds(self, sitting: Sitting) -> float:
        return round(self.clock() - sitting.started, 1) if sitting.started else 0.0

    def _bounds(self, sitting: Sitting) -> list[float] | None:
        return list(sitting.trial.game.world.rooms[0].room.bounds) if sitting.trial else None

    def _awake(self, token: str, seat: Seat) -> tuple[Sitting, Trial]:
        sitting = self.sittings.get(token)
        if sitting is None or sitting.seat is not seat:
            raise NotNow("This game is open elsewhere, or was put away: open it again.")
        if sitting.trial is None:
            raise NotNow("The game is still being prepared.")
        sitting.trial.bind(self.rooms.world(sitting.row["scene"]))
        sitting.touched = self.clock()
        return sitting, sitting.trial

    def _take(self, sitting: Sitting, reply: int, act: Callable[[Callable[[str], bool]], Any]) -> None:
        """Takes steps, keeps them, and tells what came of them."""
        trial = sitting.trial
        assert trial is not None
        taken: list[tuple[str, bool]] = []

        def take(step: str) -> bool:
            taken.append((step, trial.step(step)))
            return taken[-1][1]

        try:
            act(take)
            self.store.add_steps(sitting.row["id"], sitting.count, taken, self.clock())
            sitting.count += len(taken)
            if trial.record is not None:
                self._finish(sitting)
            self._tell(sitting, reply, _notice(taken))
            self._go_on(sitting)
        except Exception:
            # What is in memory may be ahead of the store: it is rebuilt from there.
            self.sittings.pop(sitting.row["token"], None)
            raise

    def _finish(self, sitting: Sitting) -> None:
        """The game is over: its record is kept."""
        trial, row = sitting.trial, sitting.row
        assert trial is not None and trial.record is not None
        record = trial.record
        sought = trial.deal.last == Stage.S
        given_up = row["role"] == SEEK and not record.found
        name = self.store.add_record(record, trial.internals()) if row["study"] is None or row["practice"] else None
        self.store.change(
            "trials", row["id"], ended=self.clock(), found=record.found if sought else None, given_up=given_up,
            steps=trial.steps, record=json.dumps(asdict(record)), record_id=name,
        )  # fmt: skip
        sitting.result = {"found": record.found if sought else None, "steps": trial.steps, "record": name}

    def _tell(self, sitting: Sitting, reply: int | None = None, notice: str = "") -> None:
        """Sends the state, and the picture that belongs to it, once all is kept."""
        seat, trial, phase = sitting.seat, sitting.trial, sitting.phase
        if seat is None:
            return
        can = [name for name in CAN[phase] if name != GIVE_UP or not self.give_up_in(sitting)]
        message = {
            "type": "state", "reply": reply, "phase": phase, "steps": trial.steps if trial else 0,
            "seconds": self._seconds(sitting), "give_up_in": self.give_up_in(sitting),
            "success": trial.success if trial else None, "notice": notice,
            "place": list(trial.place) if trial else None, "bounds": self._bounds(sitting),
            "can": [SKIP] if phase == "watch" else can, "map": None,
            "progress": round(sitting.progress, 3), "result": sitting.result,
        }  # fmt: skip
        picture = None
        if trial is not None and sitting.seen is not None:
            picture = self._picture(sitting, trial)
            if sitting.seen.changed:
                message["map"] = "data:image/png;base64," + base64.b64encode(sitting.seen.png()).decode()
        self.engine.after_commit(lambda: seat.send(message, picture))

    def _picture(self, sitting: Sitting, trial: Trial) -> bytes:
        """What is seen now, drawn if anything has changed: many actions of people fail, and drawing costs most."""
        state = b"".join(values.tobytes() for values in vars(trial.state).values())
        if sitting.drawn[0] != state:
            trial.bind(self.rooms.world(sitting.row["scene"]))
            sitting.drawn = state, encoded(trial.game.look().rgb[0].cpu().numpy(), "JPEG")
            self._map(sitting)
        return sitting.drawn[1]

    def _map(self, sitting: Sitting) -> None:
        """Adds to the map what the person sees; a scripted player's views are its own."""
        trial = sitting.trial
        if trial is None or sitting.seen is None or trial.phase in ("prepare", "watch"):
            return
        view = trial.game.look()
        hidden = trial.game.world.goal_mask(view)[0].cpu().numpy()
        sitting.seen.add(trial.state, np.where(hidden, 0, view.depth[0].cpu().numpy()))

    def _go_on(self, sitting: Sitting) -> None:
        """Starts the job that a trial waits for, if it waits for one and none is under way."""
        if not sitting.busy and sitting.phase in ("prepare", "watch"):
            sitting.busy = True
            self.engine.start(self._job(sitting))

    def _job(self, sitting: Sitting) -> Job:
        try:
            yield from self._wake(sitting) if sitting.trial is None else self._seek(sitting)
        except Exception:
            log.exception("a trial could not be prepared")
            self.sittings.pop(sitting.row["token"], None)
            if seat := sitting.seat:
                message = {"type": "error", "reply": None, "code": "failed", "message": "This game cannot be played."}
                self.engine.after_commit(lambda: seat.send(message))
            return
        finally:
            sitting.busy = False
        self._go_on(sitting)

    def _wake(self, sitting: Sitting) -> Job:
        """Loads the room, takes the stored steps again, and lets a scripted hider hide."""
        row, rooms = sitting.row, self.rooms
        while not rooms.ready(row["scene"]):
            yield 0.02
        world = rooms.world(row["scene"])
        if row["deal"] is None:
            deal = rooms.later(dealt, world, row["role"], row["goal"], row["opponent"], row["seed"])
            while not deal.done():
                yield 0.01
            self.store.change("trials", row["id"], deal=deal_as_json(deal.result()))
            sitting.row = row = self.store.trial(row["token"]) or row
        person = "person" if row["study"] is None else f"participant {row['participant']}"
        hider, seeker = (person, row["opponent"]) if row["role"] == HIDE else (row["opponent"], person)
        trial = Trial(
            rooms.world(row["scene"]), deal_from_json(row["deal"]), row["role"], {"hider": hider, "seeker": seeker}
        )
        sitting.seen = SeenMap(world.rooms[0].room.bounds)
        steps = self.store.steps(row["id"])
        sitting.count = len(steps)
        draft = replace(sitting, trial=trial)
        for number, step in enumerate(steps):
            trial.bind(rooms.world(row["scene"]))
            self._map(draft)
            if trial.step(step["action"]) != bool(step["success"]):
                raise RuntimeError(f"step {number} of trial {row['id']} went otherwise when it was taken again")
            sitting.progress = number / len(steps)
            yield 0
        if trial.phase == "prepare":
            yield from self._hide(sitting, trial)
        if row["started"] is None:
            self.store.change("trials", row["id"], started=self.clock())
            sitting.row = row = self.store.trial(row["token"]) or row
        if row["ended"] is not None:
            found = row["found"] if row["found"] is None else bool(row["found"])
            sitting.result = {"found": found, "steps": row["steps"], "record": row["record_id"]}
        sitting.trial, sitting.started, sitting.touched = trial, row["started"], self.clock()
        trial.success = None
        self._tell(sitting)

    def _hide(self, sitting: Sitting, trial: Trial) -> Job:
        """A scripted hider hides; its steps are kept together, so that it is all there or begins again."""
        row = sitting.row
        player = self.opponents.hiders[row["opponent"]](row["seed"])
        taken: list[tuple[str, bool]] = []
        while trial.phase == "prepare":
            trial.bind(self.rooms.world(row["scene"]))
            step = next_step(player, trial.game)
            taken.append((step, trial.step(step, thought_of(player))))
            sitting.progress = min(0.99, len(taken) / GAME_STEPS)
            if len(taken) % 10 == 0:
                self._tell(sitting)
            yield 0
        self.store.add_steps(row["id"], 0, taken, self.clock(), script=True)
        sitting.count = len(taken)

    def _seek(self, sitting: Sitting) -> Job:
        """A scripted seeker seeks what a person has hidden, for as long as somebody watches."""
        trial, row = sitting.trial, sitting.row
        assert trial is not None
        player = self.opponents.seekers[row["opponent"]](row["seed"])
        while sitting.seat is not None or sitting.skip:
            trial.bind(self.rooms.world(row["scene"]))
            trial.step(next_step(player, trial.game), thought_of(player))
            if trial.record is not None:
                self._finish(sitting)
                self._tell(sitting)
                return
            if not sitting.skip:
                self._tell(sitting)
            yield 0 if sitting.skip else PACE


def _notice(taken: list[tuple[str, bool]]) -> str:
    """What a person is told about steps, if the last of them failed."""
    if not taken or taken[-1][1]:
        return ""
    kinds = [kind for kind in FAILED if taken[-1][0].startswith(kind)]
    return FAILED[max(kinds, key=len)] if kinds else ""
