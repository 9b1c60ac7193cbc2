"""The trials that are being played: woken from the database, acted in, told to whoever sits at them.

All of it runs in the engine's thread. A trial is prepared and rebuilt by jobs, so that nobody waits for another's room.
"""

from __future__ import annotations

import base64
import json
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.viz.picture import encode_picture
from scrubjay.web import pointing
from scrubjay.web.database import spec_from_json, spec_to_json
from scrubjay.web.opponents import Opponents, dealt, internals_of, next_step
from scrubjay.web.seen_map import SeenMap
from scrubjay.web.trial import ALLOWED, GIVE_UP, HIDE, POINT_OPEN, POINT_PLACE, SEEK, NotAllowedError, Trial
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


class UnknownTrialError(Exception):
    """No such trial."""


class Client(Protocol):
    """Whoever plays or watches a trial. Called in the engine's thread."""

    def send(self, message: dict[str, Any], picture: bytes | None = None) -> None: ...

    def taken(self) -> None:
        """Somebody else sits here now."""
        ...

    def lost(self) -> None:
        """What was done last could not be kept: the trial must be opened again, as the database has it."""
        ...


@dataclass
class Session:
    """A trial in memory."""

    row: sqlite3.Row
    trial: Trial | None = None
    """None until it is awake."""
    seen: SeenMap | None = None
    count: int = 0
    """Steps in the store."""
    started: float = 0.0
    client: Client | None = None
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

    def __init__(self, worker: Worker, rooms: WorldPool, opponents: Opponents, clock: Callable[[], float]) -> None:
        self.worker, self.rooms, self.opponents, self.clock = worker, rooms, opponents, clock
        self.database = worker.database
        self.active: dict[str, Session] = {}
        worker.on_rollback = self._forget
        worker.at_end(rooms.close)

    def _forget(self) -> None:
        """Nothing in memory counts any more; everybody comes back to what the database has."""
        for session in self.active.values():
            if session.client is not None:
                session.client.lost()
        self.active.clear()

    def sit(self, token: str, client: Client) -> None:
        """Somebody opens a trial; who sat there is told so."""
        session = self.active.get(token)
        if session is None:
            row = self.database.trial(token)
            if row is None:
                raise UnknownTrialError("There is no such game.")
            session = self.active[token] = Session(row)
        if session.client is not None and session.client is not client:
            self.worker.after_commit(session.client.taken)
        session.client, session.touched = client, self.clock()
        row = session.row
        welcome = {
            "type": "welcome", "kind": row["role"], "goal": row["goal"],
            "practice": bool(row["practice"]), "study": row["study"] is not None,
            "scene": row["scene"], "size": self.rooms.size,
            "opponent": row["opponent"] if row["study"] is None else "",
            "bounds": self._bounds(session),
        }  # fmt: skip
        self.worker.after_commit(lambda: client.send(welcome))
        if session.seen:
            session.seen.changed = True
        self._tell(session)
        self._go_on(session)

    def leave(self, token: str, client: Client) -> None:
        """Somebody has gone. What nobody sits at is forgotten after a while, or when it is over."""
        session = self.active.get(token)
        if session is not None and session.client is client:
            session.client = None
        now = self.clock()
        idle = [(name, other) for name, other in self.active.items() if other.client is None and not other.busy]
        idle.sort(key=lambda entry: entry[1].touched)
        for number, (name, other) in enumerate(idle):
            if other.result or now - other.touched > IDLE or number < len(idle) - MOST_IDLE:
                del self.active[name]

    def act(self, token: str, client: Client, reply: int, name: str) -> None:
        """One of the things that a person can do."""
        session, trial = self._awake(token, client)
        if name == SKIP and session.phase == "watch":
            session.skip = True
            self._tell(session, reply)
            return
        if name == GIVE_UP and self.give_up_in(session):
            raise NotAllowedError("It is too early to give up.")
        steps = trial.steps_for(name)
        self._take(session, reply, lambda take: [take(step) for step in steps])

    def point(self, token: str, client: Client, reply: int, x: float, y: float, to: str) -> None:
        """Opens what is at a point of the picture, or brings the hand there."""
        session, trial = self._awake(token, client)
        if (POINT_OPEN if to == "open" else POINT_PLACE) not in ALLOWED[session.phase]:
            raise NotAllowedError("Pointing does nothing now.")
        if to == "open":
            step = pointing.open_action_at(trial, x, y)
            self._take(session, reply, lambda take: take(step))
        else:
            pointing.hand_target(trial, x, y)
            self._take(session, reply, lambda take: pointing.move_hand_to(trial, x, y, take))

    def ping(self, token: str, client: Client, reply: int) -> None:
        session, _ = self._awake(token, client)
        message = {"type": "pong", "reply": reply, "give_up_in": self.give_up_in(session),
                   "seconds": self._seconds(session)}  # fmt: skip
        self.worker.after_commit(lambda: client.send(message))

    def give_up_in(self, session: Session) -> float | None:
        """Seconds until a seeker may give up; None for who cannot."""
        if session.row["role"] == HIDE or session.result:
            return None
        return max(0.0, round(session.row["patience"] - self._seconds(session), 1))

    # Inside.

    def _seconds(self, session: Session) -> float:
        return round(self.clock() - session.started, 1) if session.started else 0.0

    def _bounds(self, session: Session) -> list[float] | None:
        return list(session.trial.game.world.rooms[0].room.bounds) if session.trial else None

    def _awake(self, token: str, client: Client) -> tuple[Session, Trial]:
        session = self.active.get(token)
        if session is None or session.client is not client:
            raise NotAllowedError("This game is open elsewhere, or was put away: open it again.")
        if session.trial is None:
            raise NotAllowedError("The game is still being prepared.")
        session.trial.bind(self.rooms.world(session.row["scene"]))
        session.touched = self.clock()
        return session, session.trial

    def _take(self, session: Session, reply: int, act: Callable[[Callable[[str], bool]], Any]) -> None:
        """Takes steps, keeps them, and tells what came of them."""
        trial = session.trial
        assert trial is not None
        taken: list[tuple[str, bool]] = []

        def take(step: str) -> bool:
            taken.append((step, trial.step(step)))
            return taken[-1][1]

        try:
            act(take)
            self.database.add_steps(session.row["id"], session.count, taken, self.clock())
            session.count += len(taken)
            if trial.record is not None:
                self._finish(session)
            self._tell(session, reply, _notice(taken))
            self._go_on(session)
        except Exception:
            # What is in memory may be ahead of the database: it is rebuilt from there.
            self.active.pop(session.row["token"], None)
            raise

    def _finish(self, session: Session) -> None:
        """The game is over: its record is kept."""
        trial, row = session.trial, session.row
        assert trial is not None and trial.record is not None
        record = trial.record
        sought = trial.deal.last == Stage.S
        given_up = row["role"] == SEEK and not record.found
        name = self.database.add_record(record, trial.internals()) if row["study"] is None or row["practice"] else None
        self.database.change(
            "trials", row["id"], ended=self.clock(), found=record.found if sought else None, given_up=given_up,
            steps=trial.steps, record=json.dumps(record.to_dict()), record_id=name,
        )  # fmt: skip
        session.result = {"found": record.found if sought else None, "steps": trial.steps, "record": name}

    def _tell(self, session: Session, reply: int | None = None, notice: str = "") -> None:
        """Sends the state, and the picture that belongs to it, once all is kept."""
        client, trial, phase = session.client, session.trial, session.phase
        if client is None:
            return
        can = [name for name in ALLOWED[phase] if name != GIVE_UP or not self.give_up_in(session)]
        message = {
            "type": "state", "reply": reply, "phase": phase, "steps": trial.steps if trial else 0,
            "seconds": self._seconds(session), "give_up_in": self.give_up_in(session),
            "success": trial.success if trial else None, "notice": notice,
            "place": list(trial.place) if trial else None, "bounds": self._bounds(session),
            "can": [SKIP] if phase == "watch" else can, "map": None,
            "progress": round(session.progress, 3), "result": session.result,
        }  # fmt: skip
        picture = None
        if trial is not None and session.seen is not None:
            picture = self._picture(session, trial)
            if session.seen.changed:
                message["map"] = "data:image/png;base64," + base64.b64encode(session.seen.png()).decode()
        self.worker.after_commit(lambda: client.send(message, picture))

    def _picture(self, session: Session, trial: Trial) -> bytes:
        """What is seen now, drawn if anything has changed: many actions of people fail, and drawing costs most."""
        state = b"".join(values.tobytes() for values in vars(trial.state).values())
        if session.drawn[0] != state:
            trial.bind(self.rooms.world(session.row["scene"]))
            session.drawn = state, encode_picture(trial.game.look().rgb[0].cpu().numpy(), "JPEG")
            self._map(session)
        return session.drawn[1]

    def _map(self, session: Session) -> None:
        """Adds to the map what the person sees; a scripted player's views are its own."""
        trial = session.trial
        if trial is None or session.seen is None or trial.phase in ("prepare", "watch"):
            return
        view = trial.game.look()
        hidden = trial.game.world.goal_mask(view)[0].cpu().numpy()
        session.seen.add(trial.state, np.where(hidden, 0, view.depth[0].cpu().numpy()))

    def _go_on(self, session: Session) -> None:
        """Starts the job that a trial waits for, if it waits for one and none is under way."""
        if not session.busy and session.phase in ("prepare", "watch"):
            session.busy = True
            self.worker.start(self._job(session))

    def _job(self, session: Session) -> Job:
        try:
            yield from self._wake(session) if session.trial is None else self._seek(session)
        except Exception:
            log.exception("a trial could not be prepared")
            self.active.pop(session.row["token"], None)
            if client := session.client:
                message = {"type": "error", "reply": None, "code": "failed", "message": "This game cannot be played."}
                self.worker.after_commit(lambda: client.send(message))
            return
        finally:
            session.busy = False
        self._go_on(session)

    def _wake(self, session: Session) -> Job:
        """Loads the room, takes the stored steps again, and lets a scripted hider hide."""
        row, rooms = session.row, self.rooms
        while not rooms.ready(row["scene"]):
            yield 0.02
        world = rooms.world(row["scene"])
        if row["deal"] is None:
            deal = rooms.later(dealt, world, row["role"], row["goal"], row["opponent"], row["seed"])
            while not deal.done():
                yield 0.01
            self.database.change("trials", row["id"], deal=spec_to_json(deal.result()))
            session.row = row = self.database.trial(row["token"]) or row
        person = "person" if row["study"] is None else f"participant {row['participant']}"
        hider, seeker = (person, row["opponent"]) if row["role"] == HIDE else (row["opponent"], person)
        trial = Trial(
            rooms.world(row["scene"]), spec_from_json(row["deal"]), row["role"], {"hider": hider, "seeker": seeker}
        )
        session.seen = SeenMap(world.rooms[0].room.bounds)
        steps = self.database.steps(row["id"])
        session.count = len(steps)
        draft = replace(session, trial=trial)
        for number, step in enumerate(steps):
            trial.bind(rooms.world(row["scene"]))
            self._map(draft)
            if trial.step(step["action"]) != bool(step["success"]):
                raise RuntimeError(f"step {number} of trial {row['id']} went otherwise when it was taken again")
            session.progress = number / len(steps)
            yield 0
        if trial.phase == "prepare":
            yield from self._hide(session, trial)
        if row["started"] is None:
            self.database.change("trials", row["id"], started=self.clock())
            session.row = row = self.database.trial(row["token"]) or row
        if row["ended"] is not None:
            found = row["found"] if row["found"] is None else bool(row["found"])
            session.result = {"found": found, "steps": row["steps"], "record": row["record_id"]}
        session.trial, session.started, session.touched = trial, row["started"], self.clock()
        trial.success = None
        self._tell(session)

    def _hide(self, session: Session, trial: Trial) -> Job:
        """A scripted hider hides; its steps are kept together, so that it is all there or begins again."""
        row = session.row
        player = self.opponents.hiders[row["opponent"]](row["seed"])
        taken: list[tuple[str, bool]] = []
        while trial.phase == "prepare":
            trial.bind(self.rooms.world(row["scene"]))
            step = next_step(player, trial.game)
            taken.append((step, trial.step(step, internals_of(player))))
            session.progress = min(0.99, len(taken) / GAME_STEPS)
            if len(taken) % 10 == 0:
                self._tell(session)
            yield 0
        self.database.add_steps(row["id"], 0, taken, self.clock(), script=True)
        session.count = len(taken)

    def _seek(self, session: Session) -> Job:
        """A scripted seeker seeks what a person has hidden, for as long as somebody watches."""
        trial, row = session.trial, session.row
        assert trial is not None
        player = self.opponents.seekers[row["opponent"]](row["seed"])
        while session.client is not None or session.skip:
            trial.bind(self.rooms.world(row["scene"]))
            trial.step(next_step(player, trial.game), internals_of(player))
            if trial.record is not None:
                self._finish(session)
                self._tell(session)
                return
            if not session.skip:
                self._tell(session)
            yield 0 if session.skip else PACE


def _notice(taken: list[tuple[str, bool]]) -> str:
    """What a person is told about steps, if the last of them failed."""
    if not taken or taken[-1][1]:
        return ""
    kinds = [kind for kind in FAILED if taken[-1][0].startswith(kind)]
    return FAILED[max(kinds, key=len)] if kinds else ""
