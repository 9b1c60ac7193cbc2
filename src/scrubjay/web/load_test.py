"""Simulated participants: they play through a study over the real socket, for tests and for load."""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

PATIENCE = 10.0
"""Seconds that an answer may take."""
FAVOURITES = ("MoveAhead", "MoveAhead", "RotateLeft", "RotateRight")
RARE = ("GiveUp", "Walk", "PickUp", "ReadyForSeeker", "Skip")
"""Done one time in ten where they can be done."""


@dataclass
class LoadReport:
    """What all of them met with."""

    seconds: list[float] = field(default_factory=list)
    """Of each answer to an action."""
    errors: list[str] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    """The most steps of each trial that the server has confirmed."""
    finished: int = 0
    """Trials that came to an end."""

    def as_json(self) -> dict[str, Any]:
        middle, late = np.percentile(self.seconds, (50, 99)) * 1000 if self.seconds else (float("nan"),) * 2
        return {
            "answers": len(self.seconds), "errors": len(self.errors), "p50_ms": round(float(middle), 1),
            "p99_ms": round(float(late), 1), "trials": self.finished,
        }  # fmt: skip


def participants(
    count: int,
    seconds: float,
    url: str,
    study: str = "",
    pause: float = 1.0,
    seed: int = 0,
    report: LoadReport | None = None,
) -> dict[str, Any]:
    """So many people play for so many seconds, an action every `pause`; the answers' number, errors and times.

    They take part in a study of the server, by default its first one, or play freely where there is none.
    """
    report = report or LoadReport()
    asyncio.run(_all(count, seconds, url.rstrip("/"), study, pause, seed, report))
    return report.as_json()


async def _all(count: int, seconds: float, url: str, study: str, pause: float, seed: int, report: LoadReport) -> None:
    options = await _request(url, "/api/options")
    if not study and options["studies"]:
        study = options["studies"][0]["name"]
    end = time.monotonic() + seconds
    people = [_Person(url, study, options, pause, random.Random(f"{seed} {k}"), end, report) for k in range(count)]
    await asyncio.gather(*(person.live(pause * k / count) for k, person in enumerate(people)))


async def _request(url: str, path: str, body: dict | None = None, token: str = "") -> Any:
    """An HTTP request with JSON in and out."""

    def ask() -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=PATIENCE) as answer:
            return json.load(answer)

    return await asyncio.to_thread(ask)


class _Person:
    """One who takes part again and again until the time is up."""

    def __init__(
        self, url: str, study: str, options: dict, pause: float, rng: random.Random, end: float, report: LoadReport
    ) -> None:
        self.url, self.study, self.options, self.pause = url, study, options, pause
        self.rng, self.end, self.report = rng, end, report
        self.token = ""

    async def live(self, late: float) -> None:
        await asyncio.sleep(late)
        trial = ""
        while time.monotonic() < self.end:
            try:
                trial = trial or await self._next_trial()
                await self._play(trial)
                trial = ""
            except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError, urllib.error.URLError) as error:
                if time.monotonic() < self.end:
                    self.report.errors.append(repr(error))
                await asyncio.sleep(min(0.5, self.pause))

    async def _next_trial(self) -> str:
        """The trial under way, or the next one; a participant who is done comes back as another."""
        if not self.study:
            scene = self.rng.choice(self.options["scenes"])["scene"]
            asked = {"role": "seek", "scene": scene, "goal": self.rng.choice(self.options["goals"]),
                     "opponent": "somewhere"}  # fmt: skip
            return (await _request(self.url, "/api/play", asked))["trial"]
        if not self.token:
            joined = await _request(self.url, f"/api/studies/{self.study}/join", {"parameters": {}})
            self.token = joined["participant"]
        status = await _request(self.url, "/api/participant", token=self.token)
        participant_action = {"consent": "agree", "instructions": "begin", "trials": "next"}
        while status["trial"] is None:
            if status["status"] not in participant_action:
                self.token = ""
                await asyncio.sleep(self.pause)
                return await self._next_trial()
            status = await _request(
                self.url, "/api/participant", {"do": participant_action[status["status"]]}, self.token
            )
        return status["trial"]

    async def _play(self, trial: str) -> None:
        """Plays a trial to its end, or until the time is up."""
        address = self.url.replace("http", "ws", 1) + "/socket"
        async with connect(address, compression=None, max_queue=None) as socket:
            await socket.send(json.dumps({"type": "hello", "trial": trial}))
            state = await self._state(socket, trial)
            number = 0
            while state["phase"] != "done" and time.monotonic() < self.end:
                if state["phase"] in ("prepare", "watch"):
                    state = await self._state(socket, trial)
                    continue
                begun, number = time.monotonic(), number + 1
                await socket.send(json.dumps(self._choice(number, state["can"])))
                answer = await self._state(socket, trial, number)
                self.report.seconds.append(time.monotonic() - begun)
                state = answer or state
                await asyncio.sleep(max(0.0, begun + self.pause - time.monotonic()))
            self.report.finished += state["phase"] == "done"

    def _choice(self, number: int, can: list[str]) -> dict[str, Any]:
        """What to do next: mostly walk, sometimes open, rarely end."""
        usual = [name for name in can if name not in RARE and not name.startswith("point")]
        rare = [name for name in can if name in RARE]
        pointing = [name.partition(":")[2] for name in can if name.startswith("point")]
        draw = self.rng.random()
        if pointing and draw < 0.15:
            x, y = self.rng.random(), self.rng.random()
            return {"type": "point", "id": number, "x": x, "y": y, "to": self.rng.choice(pointing)}
        if rare and (draw > 0.9 or not usual):
            return {"type": "act", "id": number, "do": self.rng.choice(rare)}
        liked = [name for name in FAVOURITES if name in can]
        return {"type": "act", "id": number, "do": self.rng.choice(liked if liked and draw < 0.7 else usual)}

    async def _state(self, socket: ClientConnection, trial: str, reply: int | None = None) -> Any:
        """The next state, or the one that answers a number, with its picture; None if that could not be done now."""
        while True:
            message = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
            if message["type"] == "error" and message["code"] == "not_now" and message["reply"] == reply:
                return None
            if message["type"] in ("error", "taken"):
                raise OSError(message["message"])
            if message["type"] != "state":
                continue
            if message["phase"] != "prepare":
                picture = await asyncio.wait_for(socket.recv(), PATIENCE)
                assert isinstance(picture, bytes)
            self.report.acknowledged[trial] = max(self.report.acknowledged.get(trial, 0), message["steps"])
            if reply is None or message["reply"] == reply:
                return message
