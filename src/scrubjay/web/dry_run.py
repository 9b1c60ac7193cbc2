"""A dry run: simulated participants go through a study on a real server over loopback, and leave data to analyse.

Seekers are played by scripted ones of different skill, whose actions become a person's clicks and keys. The server's
clock runs faster than time, so that nobody waits long to give up. Every fifth participant leaves in the middle, and
every tenth does not agree.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from scrubjay.errors import StudyError
from scrubjay.files import write_atomically
from scrubjay.players.base import Player
from scrubjay.players.by_name import SEEKERS
from scrubjay.sim.cells import CELLS
from scrubjay.web import export, simulated
from scrubjay.web.app import Server, Settings
from scrubjay.web.load_test import request_json
from scrubjay.web.opponents import next_step
from scrubjay.web.server import running
from scrubjay.web.study_protocol import load_study
from scrubjay.web.trial import FEET, GIVE_UP, NO_ACTION, SEEK

PAUSE = 0.06
"""Seconds between a participant's actions; the server allows 20 a second."""
SKILLS = ("oracle", "frontier", "random")
"""Scripted seekers, from the best to the worst; participants take turns."""
MAX_SEARCH = 40
"""Steps after which a seeker wants to give up."""
HIDING_STEPS = 12
"""Steps that a hider walks, on average, and tries to place the object before walking on."""
LEAVES, DECLINES = 5, 10
"""Every so many participants leave before the last trial, or do not agree."""
AT_ONCE = 12
"""Participants at a time."""
TIMEOUT = 60.0
UNFOCUSED = 0.02
"""Probability of a loss of focus before an action."""


class FastClock:
    """Runs `speed` times as fast as time, from now on."""

    def __init__(self, speed: float) -> None:
        self.speed, self.start = speed, time.time()

    def __call__(self) -> float:
        return self.start + (time.time() - self.start) * self.speed


def dry_run(
    study: Path,
    out: Path,
    participants: int = 5,
    speed: float = 20.0,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **settings: Any,
) -> dict[str, Any]:
    """Lets simulated participants take part in a study; writes its export and the database `play.db` to a folder.

    `progress` gets the number of participants who have left or finished, and their total; `settings` are the server's.
    """
    if (out / "play.db").exists():
        raise StudyError(f"{out}: has the data of an earlier dry run: choose another folder")
    name = load_study(study)[0].name
    clock = FastClock(speed)
    with running(Settings(out / "play.db", [study], clock=clock, **settings)) as (server, url):
        people = [_Person(server, url.rstrip("/"), name, k, random.Random(f"{seed} {k}")) for k in range(participants)]
        asyncio.run(_run_all(people, progress))
    for file in export.FILES:
        write_atomically(out / file, "".join(export.export_file(out / "play.db", name, file)))
    (numbers,) = export.read_progress(out / "play.db")
    sources = {source["source"]: {key: source[key] for key in ("done", "found")} for source in numbers["sources"]}
    keys = ("participants", "finished", "declined", "under_way", "trials_done", "trials_wanted")
    return {"study": name, **{key: numbers[key] for key in keys}, "sources": sources}


async def _run_all(people: Sequence[_Person], progress: Callable[[int, int], None]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def run(person: _Person) -> None:
        async with places:
            await person.run()

    for done, person in enumerate(asyncio.as_completed([run(person) for person in people]), 1):
        await person
        progress(done, len(people))


@dataclass
class _Person:
    """A simulated participant."""

    server: Server
    url: str
    study: str
    number: int
    rng: random.Random
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def run(self) -> None:
        """Goes through the study from joining to the completion code, or to where this participant leaves."""
        study = self.server.studies[self.study]
        body: dict[str, Any] = {"parameters": simulated.parameters(self.rng, study.platform or "prolific")}
        token = (await request_json(self.url, f"/api/studies/{self.study}/join", body))["participant"]
        status = await request_json(self.url, "/api/participant", token=token)
        if self._every(DECLINES):
            await request_json(self.url, "/api/participant", {"do": "decline"}, token)
            return
        while status["status"] in simulated.NEXT_ACTION:
            if status["trial"]:
                if self._every(LEAVES) and status["done"] >= study.trials // 2:
                    return
                await self._play(status["trial"])
            await asyncio.sleep(PAUSE)
            body = simulated.next_step(status, self.rng) | {"at": self._now()}
            status = await request_json(self.url, "/api/participant", body, token)

    def _every(self, count: int) -> bool:
        return self.number % count == count - 1

    def _now(self) -> int:
        return int(self.server.settings.clock() * 1000)

    async def _play(self, trial: str) -> None:
        """Plays a trial to its end."""
        skill = SKILLS[self.number % len(SKILLS)]
        player = SEEKERS[skill](self.rng.getrandbits(31))
        async with connect(self.url.replace("http", "ws", 1) + "/socket", compression=None, max_queue=None) as socket:
            await socket.send(json.dumps({"type": "hello", "trial": trial}))
            state = await self._receive(socket)
            for step in itertools.count():
                while state["phase"] == "prepare":
                    state = await self._receive(socket)
                if state["phase"] == "done":
                    return
                await asyncio.sleep(PAUSE)
                if self.rng.random() < UNFOCUSED:
                    for focused in (False, True):
                        await self._ask(socket, {"type": "focus", "focused": focused, "at": self._now()})
                        await asyncio.sleep(PAUSE)
                action = await self._choose(trial, state, step, player)
                answer = await self._ask(socket, action | ({"at": self._now()} if action["type"] != "ping" else {}))
                state = answer if answer["type"] == "state" else state | {"can": _with_patience(state, answer)}

    async def _choose(self, trial: str, state: dict, step: int, player: Player) -> dict[str, Any]:
        """The next message: an action, a click, or a ping to wait until giving up is possible."""
        if state["phase"] != SEEK:
            return {"type": "act", "do": self._hiding_action(state["phase"])}
        if step >= MAX_SEARCH:
            return {"type": "act", "do": GIVE_UP} if GIVE_UP in state["can"] else {"type": "ping"}
        wish = await asyncio.wrap_future(self.server.worker.call(self._wish, trial, player))
        if wish.startswith("OpenAt"):
            row, column = (int(number) for number in wish.removeprefix("OpenAt|").split(","))
            return {"type": "point", "x": (column - 0.5) / CELLS, "y": (row - 0.5) / CELLS, "to": "open"}
        return {"type": "act", "do": wish if wish in state["can"] else self.rng.choice(FEET)}

    def _wish(self, token: str, player: Player) -> str:
        """What a scripted seeker would do next; in the worker's thread."""
        session = self.server.sessions.active.get(token)
        if session is None or session.trial is None or session.trial.record is not None:
            return NO_ACTION
        session.trial.bind(self.server.sessions.worlds.world(session.row["scene"]))
        return next_step(player, session.trial.game)

    def _hiding_action(self, phase: str) -> str:
        """Walks about, holds the object out and drops it, and is content with where it comes to rest."""
        now = self.rng.random() < 1 / HIDING_STEPS
        if phase == "walk":
            return "HideHere" if now else self.rng.choice(("MoveAhead", "MoveAhead", "RotateLeft", "RotateRight"))
        if phase == "placed":
            return "ReadyForSeeker"
        if now:
            return "Walk"
        return self.rng.choice(("MoveHandAhead", "MoveHandAhead", "MoveHandUp", "DropObject", "DropObject"))

    async def _ask(self, socket: ClientConnection, message: dict[str, Any]) -> dict[str, Any]:
        """Sends a message and returns its answer; a refused action is answered by an error."""
        number = next(self.ids)
        await socket.send(json.dumps(message | {"id": number}))
        while (answer := await self._receive(socket)).get("reply") != number:
            pass
        return answer

    async def _receive(self, socket: ClientConnection) -> dict[str, Any]:
        """The next message; an image that follows a state is dropped."""
        message = json.loads(await asyncio.wait_for(socket.recv(), TIMEOUT))
        if message["type"] == "state" and message["phase"] != "prepare":
            await asyncio.wait_for(socket.recv(), TIMEOUT)
        if message["type"] == "error" and message["code"] != "not_now":
            raise StudyError(f"a simulated participant was refused: {message['message']}")
        return message if message["type"] != "welcome" else await self._receive(socket)


def _with_patience(state: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """The available actions after a pong or an error: giving up too, when its time has come."""
    return [*state["can"], GIVE_UP] if answer.get("give_up_in") == 0 else state["can"]
