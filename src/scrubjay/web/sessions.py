"""Trials in memory: restored from the database, acted in, and sent to their clients.

Everything runs in the worker's thread. Jobs prepare and restore trials, so that no client blocks another.
"""

from __future__ import annotations

import base64
import json
import logging
import sqlite3
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from scrubjay.game.actions import Stage
from scrubjay.sim.world import World
from scrubjay.viz.picture import encode_picture
from scrubjay.web import pointing
from scrubjay.web.database import size_from_json, spec_from_json, spec_to_json
from scrubjay.web.opponents import Opponents, internals_of, next_step, sample_spec
from scrubjay.web.score import score_game
from scrubjay.web.seen_map import SeenMap
from scrubjay.web.trial import ALLOWED, GIVE_UP, HIDE, POINT_OPEN, POINT_PLACE, SEEK, NotAllowedError, Trial
from scrubjay.web.worker import Job, Worker
from scrubjay.web.world_pool import WorldPool

log = logging.getLogger("scrubjay.web")
WATCH_INTERVAL = 1 / 8
"""Seconds between the steps of a seeker that a person watches."""
SKIP = "Skip"
TYPICAL_HIDER_STEPS = 230
"""Of the scripted hiders; the scale of the progress bar."""
MAX_IDLE_SECONDS = 600.0
"""How long a trial without a client stays in memory."""
MAX_IDLE = 100
"""Trials without a client in memory, about 0.6 MB each; beyond that the oldest are dropped."""
UNPLAYED_SECONDS, EXPIRY_INTERVAL = 6 * 3600.0, 600.0
"""How long a free game without an action stays in the database, and how often it is asked."""
MAX_FOCUS_CHANGES = 1000
"""That are stored of a trial in memory."""
BLOCKED = "Something is in the way."
FAILURE_NOTICES = {
    "Move": BLOCKED, "Rotate": BLOCKED,
    "OpenAt": "It does not open from here: come within 1.5 meters, or step out of its way.",
    "CloseObjects": "Nothing within reach could be closed.", "DropObject": "It cannot be dropped here.",
    "ClaimVisible": "No: it must be in view and within 1.5 meters.",
}  # fmt: skip
"""Shown when an action whose name starts with the key fails; the longest key wins."""


class UnknownTrialError(Exception):
    """No trial has this token."""


class Client(Protocol):
    """The person playing or watching a trial. Called in the worker's thread."""

    def send(self, message: dict[str, Any], image: bytes | None = None) -> None: ...

    def replaced(self) -> None:
        """Another client has opened the trial."""
        ...

    def reconnect(self) -> None:
        """The last changes could not be stored: the client must reconnect to the stored state."""
        ...


@dataclass
class Session:
    """A trial in memory."""

    row: sqlite3.Row
    size: int
    """Of its images."""
    trial: Trial | None = None
    """None until it is restored."""
    seen: SeenMap | None = None
    stored_steps: int = 0
    started: float = 0.0
    client: Client | None = None
    rendered: tuple[bytes, bytes] = (b"", b"")
    """The state last rendered, and its image."""
    openables: dict[str, Any] | None = None
    """What can be opened in that image, as the page gets it."""
    result: dict[str, Any] | None = None
    progress: float = 0.0
    busy: bool = False
    """Whether a job works on it."""
    skip: bool = False
    last_active: float = 0.0
    focus_changes: int = 0

    @property
    def phase(self) -> str:
        if self.trial is None:
            return "prepare"
        return "done" if self.result else self.trial.phase


class Sessions:
    """The trials in memory, by token."""

    def __init__(
        self,
        worker: Worker,
        worlds: WorldPool,
        opponents: Opponents,
        clock: Callable[[], float],
        play_size: int | None = None,
    ) -> None:
        """`play_size`: image size of games outside studies, by default the worlds'."""
        self.worker, self.worlds, self.opponents, self.clock = worker, worlds, opponents, clock
        self.play_size = play_size or worlds.size
        self.database = worker.database
        self.active: dict[str, Session] = {}
        worker.on_rollback = self._reset
        worker.on_stop(worlds.close)

    def _reset(self) -> None:
        """Drops everything in memory; clients reconnect to what the database has."""
        for session in self.active.values():
            if session.client is not None:
                session.client.reconnect()
        self.active.clear()

    def open(self, token: str, client: Client) -> None:
        """Attaches a client to a trial, replacing the one before."""
        session = self.active.get(token)
        if session is None:
            row = self.database.trial(token)
            if row is None:
                raise UnknownTrialError("There is no such game.")
            session = self.active[token] = Session(row, self._size(row))
        if session.client is not None and session.client is not client:
            self.worker.after_commit(session.client.replaced)
        session.client, session.last_active = client, self.clock()
        row = session.row
        welcome = {
            "type": "welcome", "kind": row["role"], "goal": row["goal"],
            "practice": bool(row["practice"]), "study": row["study"] is not None,
            "scene": row["scene"], "size": session.size,
            "opponent": row["opponent"] if row["study"] is None else "",
            "bounds": self._bounds(session),
        }  # fmt: skip
        self.worker.after_commit(lambda: client.send(welcome))
        if session.seen:
            session.seen.changed = True
        self._send_state(session)
        self._start_job(session)

    def leave(self, token: str, client: Client) -> None:
        """Detaches a client. Trials without one are dropped when they are over, too old or too many."""
        session = self.active.get(token)
        if session is not None and session.client is client:
            session.client = None
        now = self.clock()
        idle = [(name, other) for name, other in self.active.items() if other.client is None and not other.busy]
        idle.sort(key=lambda entry: entry[1].last_active)
        for number, (name, other) in enumerate(idle):
            if other.result or now - other.last_active > MAX_IDLE_SECONDS or number < len(idle) - MAX_IDLE:
                del self.active[name]

    def expire_unplayed(self) -> Job:
        """Deletes free games that nobody has acted in for hours, again and again: anyone can start any number."""
        while True:
            in_memory = {session.row["id"] for session in self.active.values()}
            self.database.delete_unplayed(self.clock() - UNPLAYED_SECONDS, in_memory)
            yield EXPIRY_INTERVAL

    def act(self, token: str, client: Client, reply: int, name: str, client_time: float | None = None) -> None:
        """Takes one of the actions in the state's `can`; `client_time`: of the key or button, by the client's clock."""
        session, trial = self._ready(token, client)
        if name == SKIP and session.phase == "watch":
            session.skip = True
            self._send_state(session, reply)
            return
        if name == GIVE_UP and self.give_up_in(session):
            raise NotAllowedError("It is too early to give up.")
        steps = trial.steps_for(name)
        self._take(session, reply, lambda take: [take(step) for step in steps], client_time)

    def point(
        self, token: str, client: Client, reply: int, x: float, y: float, to: str, client_time: float | None = None
    ) -> None:
        """Opens the thing at image fraction (x, y), or moves the hand there."""
        session, trial = self._ready(token, client)
        if (POINT_OPEN if to == "open" else POINT_PLACE) not in ALLOWED[session.phase]:
            raise NotAllowedError("Clicking the picture does nothing now.")
        if to == "open":
            step = pointing.open_action_at(trial, x, y)
            self._take(session, reply, lambda take: take(step), client_time)
        else:
            pointing.hand_target(trial, x, y)  # Raises before anything changes.
            self._take(session, reply, lambda take: pointing.move_hand_to(trial, x, y, take), client_time)

    def focus(self, token: str, client: Client, reply: int, focused: bool, client_time: float) -> None:
        """Notes that a participant's window has lost the focus or has it again."""
        session, _ = self._ready(token, client)
        row = session.row
        if row["study"] is not None and not row["practice"] and session.focus_changes < MAX_FOCUS_CHANGES:
            session.focus_changes += 1
            self.database.insert("focus", trial=row["id"], focused=focused, time=self.clock(), client_time=client_time)
        self.ping(token, client, reply)

    def ping(self, token: str, client: Client, reply: int) -> None:
        session, _ = self._ready(token, client)
        message = {"type": "pong", "reply": reply, "give_up_in": self.give_up_in(session),
                   "seconds": self._seconds(session)}  # fmt: skip
        self.worker.after_commit(lambda: client.send(message))

    def _size(self, row: sqlite3.Row) -> int:
        """Image size of a trial, which decides what its actions do: a game keeps the one it was started with."""
        if row["study"] is not None:
            return self.worlds.size
        return self.play_size if row["deal"] is None else size_from_json(row["deal"]) or self.worlds.size

    def _world(self, session: Session) -> World:
        return self.worlds.world(session.row["scene"], session.size)

    def give_up_in(self, session: Session) -> float | None:
        """Seconds until the seeker may give up; None if giving up is not possible at all."""
        if session.row["role"] == HIDE or session.result:
            return None
        return max(0.0, round(session.row["patience"] - self._seconds(session), 1))

    def _seconds(self, session: Session) -> float:
        return round(self.clock() - session.started, 1) if session.started else 0.0

    def _bounds(self, session: Session) -> list[float] | None:
        return list(session.trial.game.world.rooms[0].room.bounds) if session.trial else None

    def _ready(self, token: str, client: Client) -> tuple[Session, Trial]:
        """The session and its trial, bound to its world; NotAllowedError if the client cannot act in it."""
        session = self.active.get(token)
        if session is None or session.client is not client:
            raise NotAllowedError("This game is open in another window or was unloaded. Open it again.")
        if session.trial is None:
            raise NotAllowedError("The game is still being prepared.")
        session.trial.bind(self._world(session))
        session.last_active = self.clock()
        return session, session.trial

    def _take(
        self,
        session: Session,
        reply: int,
        act: Callable[[Callable[[str], bool]], Any],
        client_time: float | None = None,
    ) -> None:
        """Takes steps, stores them, and sends the new state."""
        trial = session.trial
        assert trial is not None
        taken: list[tuple[str, bool]] = []

        def take(step: str) -> bool:
            taken.append((step, trial.step(step)))
            return taken[-1][1]

        try:
            act(take)
            self.database.add_steps(session.row["id"], session.stored_steps, taken, self.clock(),
                                    client_time=client_time)  # fmt: skip
            session.stored_steps += len(taken)
            if trial.record is not None:
                self._finish(session)
            self._send_state(session, reply, _notice(taken))
            self._start_job(session)
        except Exception:
            # The trial in memory may be ahead of the database: drop it, to be restored from there.
            self.active.pop(session.row["token"], None)
            raise

    def _finish(self, session: Session) -> None:
        """Stores the record of a finished game."""
        trial, row = session.trial, session.row
        assert trial is not None and trial.record is not None
        record = trial.record
        sought = trial.spec.last == Stage.S
        given_up = row["role"] == SEEK and not record.found
        name = self.database.add_record(record, trial.internals()) if row["study"] is None or row["practice"] else None
        self.database.update(
            "trials", row["id"], ended=self.clock(), found=record.found if sought else None, given_up=given_up,
            steps=trial.steps, record=json.dumps(record.to_dict()), record_id=name,
        )  # fmt: skip
        session.row = self.database.trial(row["token"]) or row
        session.result = self._result(session.row)

    def _result(self, row: sqlite3.Row) -> dict[str, Any]:
        """A finished trial's result as the page gets it; in studies without a score, which could steer people."""
        found = None if row["found"] is None else bool(row["found"])
        result = {"found": found, "steps": row["steps"], "record": row["record_id"]}
        return result if row["study"] is not None else result | score_game(self.database, row)

    def _send_state(self, session: Session, reply: int | None = None, notice: str = "") -> None:
        """Sends the state and its image to the client after the commit."""
        client, trial, phase = session.client, session.trial, session.phase
        if client is None:
            return
        allowed = [name for name in ALLOWED[phase] if name != GIVE_UP or not self.give_up_in(session)]
        message = {
            "type": "state", "reply": reply, "phase": phase, "steps": trial.steps if trial else 0,
            "seconds": self._seconds(session), "give_up_in": self.give_up_in(session),
            "success": trial.success if trial else None, "notice": notice,
            "place": list(trial.agent_pose) if trial else None, "bounds": self._bounds(session),
            "can": [SKIP] if phase == "watch" else allowed, "map": None, "openables": None,
            "progress": round(session.progress, 3), "result": session.result,
        }  # fmt: skip
        image = None
        if trial is not None and session.seen is not None:
            image = self._image(session, trial)
            if POINT_OPEN in allowed:
                message["openables"] = session.openables
            if session.seen.changed:
                message["map"] = "data:image/png;base64," + base64.b64encode(session.seen.png()).decode()
        self.worker.after_commit(lambda: client.send(message, image))

    def _image(self, session: Session, trial: Trial) -> bytes:
        """The current view, rendered only if the state changed: many actions fail, and rendering costs most."""
        state = b"".join(values.tobytes() for values in vars(trial.state).values())
        if session.rendered[0] != state:
            trial.bind(self._world(session))
            session.rendered = state, encode_picture(trial.game.look().rgb[0].cpu().numpy(), "JPEG")
            self._update_map(session, trial)
            session.openables = _openables(trial) if POINT_OPEN in ALLOWED[trial.phase] else None
        return session.rendered[1]

    def _update_map(self, session: Session, trial: Trial) -> None:
        """Adds the current view to the map, unless it is the opponent's; the object itself is left out."""
        if session.seen is None or trial.phase in ("prepare", "watch"):
            return
        view = trial.game.look()
        is_goal = trial.game.world.goal_mask(view)[0].cpu().numpy()
        session.seen.add(trial.state, np.where(is_goal, 0, view.depth[0].cpu().numpy()))

    def _start_job(self, session: Session) -> None:
        """Starts the job that a trial waits for, unless it is running already."""
        if not session.busy and session.phase in ("prepare", "watch"):
            session.busy = True
            self.worker.start(self._job(session))

    def _job(self, session: Session) -> Job:
        try:
            for pause in self._restore(session) if session.trial is None else self._seek(session):
                yield pause
                if self.active.get(session.row["token"]) is not session:
                    return  # Dropped meanwhile; a session that took its place has a job of its own.
        except Exception:
            log.exception("a trial could not be prepared")
            self.active.pop(session.row["token"], None)
            if client := session.client:
                message = {"type": "error", "reply": None, "code": "failed", "message": "This game cannot be played."}
                self.worker.after_commit(lambda: client.send(message))
            return
        finally:
            session.busy = False
        self._start_job(session)

    def _restore(self, session: Session) -> Job:
        """Loads the room, replays the stored steps, and lets the opponent hide if it has not yet."""
        row, worlds = session.row, self.worlds
        while not worlds.ready(row["scene"], session.size):
            yield 0.02
        world = self._world(session)
        if row["deal"] is None:
            size = session.size if row["study"] is None else None
            spec = worlds.submit(sample_spec, world, row["role"], row["goal"], row["opponent"], row["seed"])
            while not spec.done():
                yield 0.01
            self.database.update("trials", row["id"], deal=spec_to_json(spec.result(), size))
            session.row = row = self.database.trial(row["token"]) or row
        person = "person" if row["study"] is None else f"participant {row['participant']}"
        hider, seeker = (person, row["opponent"]) if row["role"] == HIDE else (row["opponent"], person)
        trial = Trial(
            self._world(session), spec_from_json(row["deal"]), row["role"], {"hider": hider, "seeker": seeker}
        )
        session.seen = SeenMap(world.rooms[0].room.bounds)
        steps = self.database.steps(row["id"])
        session.stored_steps = len(steps)
        for number, step in enumerate(steps):
            trial.bind(self._world(session))
            self._update_map(session, trial)
            if trial.step(step["action"]) != bool(step["success"]):
                raise RuntimeError(f"step {number} of trial {row['id']} had another result when it was replayed")
            session.progress = number / len(steps)
            yield 0
        if trial.phase == "prepare":
            yield from self._hide(session, trial)
        if row["started"] is None:
            self.database.update("trials", row["id"], started=self.clock())
            session.row = row = self.database.trial(row["token"]) or row
        if row["ended"] is not None:
            session.result = self._result(row)
        session.trial, session.started, session.last_active = trial, row["started"], self.clock()
        trial.success = None
        self._send_state(session)

    def _hide(self, session: Session, trial: Trial) -> Job:
        """Lets the opponent hide; its steps are stored together, so an interrupted hider starts over."""
        row = session.row
        player = self.opponents.hiders[row["opponent"]](row["seed"])
        taken: list[tuple[str, bool]] = []
        while trial.phase == "prepare":
            trial.bind(self._world(session))
            step = next_step(player, trial.game)
            taken.append((step, trial.step(step, internals_of(player))))
            session.progress = min(0.99, len(taken) / TYPICAL_HIDER_STEPS)
            if len(taken) % 10 == 0:
                self._send_state(session)
            yield 0
        self.database.add_steps(row["id"], 0, taken, self.clock(), script=True)
        session.stored_steps = len(taken)

    def _seek(self, session: Session) -> Job:
        """Lets the opponent seek what a person has hidden, while a client watches or has skipped ahead."""
        trial, row = session.trial, session.row
        assert trial is not None
        player = self.opponents.seekers[row["opponent"]](row["seed"])
        while session.client is not None or session.skip:
            trial.bind(self._world(session))
            trial.step(next_step(player, trial.game), internals_of(player))
            if trial.record is not None:
                self._finish(session)
                self._send_state(session)
                return
            if not session.skip:
                self._send_state(session)
            yield 0 if session.skip else WATCH_INTERVAL


def _openables(trial: Trial) -> dict[str, Any]:
    """The openables in view and their labels: the page lights up what a click would open.

    Labels are deflated bytes, not a picture: some browsers add noise to pixels that a page reads back.
    """
    labels, things = pointing.openables_in_view(trial)
    deflated = base64.b64encode(zlib.compress(labels.tobytes(), 1)).decode()
    return {"size": len(labels), "labels": deflated, "things": [vars(thing) for thing in things]}


def _notice(taken: list[tuple[str, bool]]) -> str:
    """The notice for a person whose last step failed."""
    if not taken or taken[-1][1]:
        return ""
    prefixes = [prefix for prefix in FAILURE_NOTICES if taken[-1][0].startswith(prefix)]
    return FAILURE_NOTICES[max(prefixes, key=len)] if prefixes else ""
