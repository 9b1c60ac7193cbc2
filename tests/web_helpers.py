"""A small server for tests, its HTTP and WebSocket clients, and records to serve.

Run as a script, it serves a folder's database on a port: `python web_helpers.py FOLDER PORT SIZE [STUDY]`.
"""

from __future__ import annotations

import gc
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from helpers import drawer_chest, hut
from websockets.sync.client import connect

from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.web.app import WRITE_LIMIT
from scrubjay.web.seen_map import backproject
from scrubjay.web.server import Settings, serve
from scrubjay.web.trial import SEEK, Trial

SIZE = 112
ROOM = compile_room(hut(*drawer_chest()))
SCENE = "foyer-7"
"""A valid scene name for studies; tests build the hut for it."""
START = AgentPose(0.0, 0.0, 0.0, True)
STUDY = """
name = "find"
title = "Find the loaf"
kind = "seek"
consent = "You may stop at any time.\\n\\nNothing else is asked of you."
instructions = "Look for the object."
trials = 2
repeats = 100
code = "JAY7"
practice = {scene = "foyer-7", goal = "Bread"}
[[places]]
source = "people"
records = "people.jsonl"
"""
"""A study of the loaves in people.jsonl."""


class Clock:
    """Stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make_settings(folder: Path, **overrides: Any) -> Settings:
    options = dict(size=SIZE, build=lambda scene: ROOM, scenes=("hut",)) | overrides
    return Settings(folder / "play.db", **({"play_size": options["size"]} | options))


def request(url: str, path: str, body: Any = None, token: str = "", headers: dict | None = None) -> tuple[int, Any]:
    """Status and JSON of an HTTP request; POST if there is a body."""
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    message = urllib.request.Request(url.rstrip("/") + path, data, authorization | (headers or {}))
    try:
        with urllib.request.urlopen(message, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def download(url: str, token: str, study: str, file: str) -> str:
    """One of a study's export files."""
    address = f"{url}api/admin/studies/{study}/{file}"
    message = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(message) as answer:
        return answer.read().decode()


def new_game(url: str, role: str = "seek", opponent: str = "somewhere", seed: int = 3) -> str:
    """Starts a free game and returns its trial's token."""
    body = dict(role=role, scene="hut", goal="Bread", opponent=opponent, seed=seed)
    status, answer = request(url, "/api/play", body)
    assert status == 200
    return answer["trial"]


def wait_for_replay(url: str, record: str) -> dict:
    """A record's JSON when its replay is ready or has failed."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status, answer = request(url, f"/api/records/{record}")
        assert status == 200, answer
        if "progress" not in answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("the replay takes too long")


class Player:
    """A person at the WebSocket."""

    def __init__(self, connection, trial: str) -> None:
        self.socket, self.number = connection, 0
        self.send(type="hello", trial=trial)
        self.welcome = self.receive()
        self.state = self.receive() if self.welcome["type"] == "welcome" else {}
        while self.state.get("phase") == "prepare":
            self.state = self.receive()

    def send(self, **message) -> None:
        self.socket.send(json.dumps(message))

    def receive(self, timeout: float = 20) -> dict:
        """The next message; the image that follows a state is checked and dropped."""
        message = json.loads(self.socket.recv(timeout=timeout))
        if message["type"] == "state" and message["phase"] != "prepare":
            assert self.socket.recv(timeout=20).startswith(b"\xff\xd8")
        return message

    def act(self, do: str) -> dict:
        return self.ask(type="act", do=do)

    def ask(self, **message) -> dict:
        """Sends a message and returns its answer."""
        self.number += 1
        self.send(id=self.number, **message)
        answer = self.receive()
        assert answer["reply"] == self.number
        return answer

    def skip_to_end(self) -> dict:
        """Skips watching the seeker; returns the final state."""
        self.send(type="act", id=99, do="Skip")
        state = self.receive()
        while state["phase"] != "done":
            state = self.receive(timeout=120)  # A whole search of up to 500 steps.
        return state


@contextmanager
def playing(url: str, trial: str, **options) -> Iterator[Player]:
    with connect(url.replace("http", "ws", 1).rstrip("/") + "/socket", **options) as connection:
        yield Player(connection, trial)


def hidden_record(start: AgentPose, pose: list[float], player: str = "p") -> Record:
    """A game in which a loaf was hidden at a pose, with nothing open."""
    spec = EpisodeSpec("Bread", start, Stage.EM, Stage.OH)
    return Record(SCENE, spec, SIZE, "OpenGL", [1] * 5, {"hider": player},
                  hidden={"pose": pose, "open": []})  # fmt: skip


def take(trial: Trial, *names: str) -> list[str]:
    """Takes a person's actions in a trial; returns the steps they expanded to."""
    taken = []
    for name in names:
        for step in trial.steps_for(name):
            trial.step(step)
            taken.append(step)
    return taken


def center_of(mask: np.ndarray) -> tuple[float, float]:
    """The pixel of a mask (H, W) nearest to its median, as image fraction (x, y)."""
    rows, columns = np.nonzero(mask)
    center = np.hypot(rows - np.median(rows), columns - np.median(columns)).argmin()
    return (columns[center] + 0.5) / mask.shape[1], (rows[center] + 0.5) / mask.shape[0]


def drawer_at(trial: Trial, inside: bool = False) -> tuple[float, float]:
    """The drawer's image fraction (x, y), or that of the open drawer's floor."""
    view, world = trial.game.look(), trial.game.world
    mask = view.ids[0].numpy() == world.rooms[0].things.index("Drawer_0")
    if inside:
        height = backproject(trial.state, view.depth[0].numpy())[..., 2]
        mask &= (height > 0.6) & (height < 0.68)
    return center_of(mask)


def study_trial(world: World, record: Record) -> Trial:
    """The study's trial, to locate things in its images."""
    spec = EpisodeSpec("Bread", START, Stage.S, Stage.S, pose=tuple(record.hidden["pose"]))
    return Trial(world, spec, SEEK, {})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server_process(
    folder: Path,
    port: int,
    size: int = SIZE,
    study: Path | None = None,
    prefix: Sequence[str] = (),
    stderr: Any = None,
) -> Iterator[tuple[subprocess.Popen, str]]:
    """A server in its own process, without the garbage collector, and its URL; killed at the end.

    The words of `prefix` are a command that runs it; its log goes to `stderr`.
    """
    arguments = [*prefix, sys.executable, __file__, str(folder), str(port), str(size), *([study] if study else [])]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=stderr)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(url + "/api/options", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise AssertionError("the server does not start")
        yield process, url
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    gc.disable()
    studies = [Path(name) for name in sys.argv[4:]]
    settings = make_settings(Path(sys.argv[1]), size=int(sys.argv[3]), studies=studies, new_limit=WRITE_LIMIT)
    serve(settings, port=int(sys.argv[2]))
