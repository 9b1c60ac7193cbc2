"""Load test: simulated participants who play through a study over HTTP and the WebSocket."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from scrubjay.web import simulated

TIMEOUT = 10.0
"""Seconds to wait for an answer."""
COMMON_ACTIONS = ("MoveAhead", "MoveAhead", "RotateLeft", "RotateRight")
RARE_ACTIONS = ("GiveUp", "Walk", "PickUp", "ReadyForSeeker", "Skip")
"""Taken one time in ten when available."""


HALF_SENT = b"POST /api/play HTTP/1.1\r\nHost: localhost\r\n"


@dataclass
class LoadReport:
    """What all simulated participants measured."""

    latencies: list[float] = field(default_factory=list)
    """Seconds from an action to its answer."""
    errors: list[str] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    """The largest number of steps that the server has confirmed, per trial."""
    finished: int = 0
    """Trials played to their end."""
    participants: dict[str, str] = field(default_factory=dict)
    """The last status that the server has confirmed, per participant."""
    end: float = math.inf
    """When participants stop, on the monotonic clock; may be moved."""

    def as_json(self) -> dict[str, Any]:
        p50, p99 = np.percentile(self.latencies, (50, 99)) * 1000 if self.latencies else (float("nan"),) * 2
        return {
            "answers": len(self.latencies), "errors": len(self.errors), "p50_ms": round(float(p50), 1),
            "p99_ms": round(float(p99), 1), "trials": self.finished,
        }  # fmt: skip


def run_load_test(
    count: int,
    seconds: float,
    url: str,
    study: str = "",
    pause: float = 1.0,
    seed: int = 0,
    report: LoadReport | None = None,
    idle: int = 0,
    half_sent: int = 0,
) -> dict[str, Any]:
    """Runs `count` simulated participants, each acting every `pause` seconds; returns the report as JSON.

    They take part in the named study, by default the server's first, or in free play if it has none. Meanwhile `idle`
    connections that send nothing and `half_sent` requests that never end are held, and opened again when closed.
    """
    report = report or LoadReport()

    async def run() -> None:
        held = [asyncio.create_task(_hold(url, b"")) for _ in range(idle)]
        held += [asyncio.create_task(_hold(url, HALF_SENT)) for _ in range(half_sent)]
        await _run_all(count, seconds, url.rstrip("/"), study, pause, seed, report)
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)

    asyncio.run(run())
    return report.as_json()


async def _hold(url: str, data: bytes) -> None:
    """Holds a connection on which a request is begun and never ended."""
    address = urlsplit(url)
    while True:
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port or 80)
            writer.write(data)
            await reader.read()
            writer.close()
        except OSError:
            pass
        await asyncio.sleep(0.2)


async def _run_all(
    count: int, seconds: float, url: str, study: str, pause: float, seed: int, report: LoadReport
) -> None:
    options = await request_json(url, "/api/options")
    if not study and options["studies"]:
        study = options["studies"][0]["name"]
    report.end = time.monotonic() + seconds
    people = [_Participant(url, study, options, pause, random.Random(f"{seed} {k}"), report) for k in range(count)]
    await asyncio.gather(*(person.run(pause * k / count) for k, person in enumerate(people)))


async def request_json(url: str, path: str, body: dict | None = None, token: str = "") -> Any:
    """Sends an HTTP request with JSON in and out."""

    def send() -> Any:
        headers = {"Content-Type": "application/json", "User-Agent": "Scrubjay, simulated"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=TIMEOUT) as answer:
            return json.load(answer)

    return await asyncio.to_thread(send)


class _Participant:
    """Plays trials until the time is up."""

    def __init__(
        self, url: str, study: str, options: dict, pause: float, rng: random.Random, report: LoadReport
    ) -> None:
        self.url, self.study, self.options, self.pause = url, study, options, pause
        self.rng, self.report = rng, report
        self.token = ""

    async def run(self, delay: float) -> None:
        await asyncio.sleep(delay)
        trial = ""
        while time.monotonic() < self.report.end:
            try:
                trial = trial or await self._next_trial()
                await self._play(trial)
                trial = ""
            except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError, urllib.error.URLError) as error:
                if time.monotonic() < self.report.end:
                    self.report.errors.append(repr(error))
                await asyncio.sleep(min(0.5, self.pause))

    async def _next_trial(self) -> str:
        """The current or next trial; a participant who has finished the study joins again as a new one."""
        if not self.study:
            scene = self.rng.choice(self.options["scenes"])["scene"]
            body = {"role": "seek", "scene": scene, "goal": self.rng.choice(self.options["goals"]),
                    "opponent": "somewhere"}  # fmt: skip
            return (await request_json(self.url, "/api/play", body))["trial"]
        if not self.token:
            body = {"parameters": simulated.parameters(self.rng)}
            joined = await request_json(self.url, f"/api/studies/{self.study}/join", body)
            self.token = joined["participant"]
        status = await self._status()
        while status["trial"] is None:
            if status["status"] not in simulated.NEXT_ACTION:
                self.token = ""
                await asyncio.sleep(self.pause)
                return await self._next_trial()
            status = await self._status(simulated.next_step(status, self.rng))
        return status["trial"]

    async def _status(self, body: dict | None = None) -> Any:
        """The participant's status, after an action if there is a body."""
        status = await request_json(self.url, "/api/participant", body, self.token)
        self.report.participants[self.token] = status["status"]
        return status

    async def _play(self, trial: str) -> None:
        """Plays a trial to its end, or until the time is up."""
        address = self.url.replace("http", "ws", 1) + "/socket"
        async with connect(address, compression=None, max_queue=None) as socket:
            await socket.send(json.dumps({"type": "hello", "trial": trial}))
            state = await self._receive_state(socket, trial)
            number = 0
            while state["phase"] != "done" and time.monotonic() < self.report.end:
                if state["phase"] in ("prepare", "watch"):
                    state = await self._receive_state(socket, trial)
                    continue
                sent, number = time.monotonic(), number + 1
                await socket.send(json.dumps(self._choose_action(number, state["can"])))
                answer = await self._receive_state(socket, trial, number)
                self.report.latencies.append(time.monotonic() - sent)
                state = answer or state
                await asyncio.sleep(max(0.0, sent + self.pause - time.monotonic()))
            self.report.finished += state["phase"] == "done"

    def _choose_action(self, number: int, can: list[str]) -> dict[str, Any]:
        """Mostly walks, sometimes clicks, rarely ends the trial."""
        usual = [name for name in can if name not in RARE_ACTIONS and not name.startswith("point")]
        rare = [name for name in can if name in RARE_ACTIONS]
        pointing = [name.partition(":")[2] for name in can if name.startswith("point")]
        draw = self.rng.random()
        if pointing and draw < 0.15:
            x, y = self.rng.random(), self.rng.random()
            return {"type": "point", "id": number, "x": x, "y": y, "to": self.rng.choice(pointing)}
        if rare and (draw > 0.9 or not usual):
            return {"type": "act", "id": number, "do": self.rng.choice(rare)}
        common = [name for name in COMMON_ACTIONS if name in can]
        return {"type": "act", "id": number, "do": self.rng.choice(common if common and draw < 0.7 else usual)}

    async def _receive_state(self, socket: ClientConnection, trial: str, reply: int | None = None) -> Any:
        """Receives the next state with its image, or the one that answers `reply`; None if that action was refused."""
        while True:
            message = json.loads(await asyncio.wait_for(socket.recv(), TIMEOUT))
            if message["type"] == "error" and message["code"] == "not_now" and message["reply"] == reply:
                return None
            if message["type"] in ("error", "taken"):
                raise OSError(message["message"])
            if message["type"] != "state":
                continue
            if message["phase"] != "prepare":
                image = await asyncio.wait_for(socket.recv(), TIMEOUT)
                assert isinstance(image, bytes)
            self.report.acknowledged[trial] = max(self.report.acknowledged.get(trial, 0), message["steps"])
            if reply is None or message["reply"] == reply:
                return message
