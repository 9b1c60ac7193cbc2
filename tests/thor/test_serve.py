"""The engine's process: how it starts, what it answers when something goes wrong, and that it ends with its client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from constant_engine import ConstantEngine

import scrubjay
from scrubjay.errors import ThorError
from scrubjay.thor.connection import ClientGone
from scrubjay.thor.engine import Event
from scrubjay.thor.serve import FailedEngine, connect, main, screen_size, serve, start

SERVE = "import os; from constant_engine import ConstantEngine; from scrubjay.thor.serve import connect, serve; " \
    "engine = ConstantEngine(); serve(engine, engine.first(), connect(os.environ))"  # fmt: skip
CLIENT = """
import json, os, subprocess, sys, time
folder, code, protocol = sys.argv[1:]
pipes = [os.path.join(folder, name) for name in ("server.pipe", "client.pipe")]
environment = {**os.environ, "AI2THOR_SERVER_TYPE": protocol, "AI2THOR_CLIENT_TOKEN": "t", "AI2THOR_HOST": "127.0.0.1"}
if protocol == "FIFO":
    for path in pipes:
        os.mkfifo(path)
    environment |= dict(zip(("AI2THOR_FIFO_SERVER_PIPE_PATH", "AI2THOR_FIFO_CLIENT_PIPE_PATH"), pipes))
    engine = subprocess.Popen([sys.executable, "-c", code], env=environment)
    ends = [open(pipes[0], "rb", 0), open(pipes[1], "wb", 0)]
    ends[0].read(5)
else:
    import socket
    listener = socket.create_server(("127.0.0.1", 0))
    environment["AI2THOR_PORT"] = str(listener.getsockname()[1])
    engine = subprocess.Popen([sys.executable, "-c", code], env=environment)
    ends = [listener.accept()[0]]
    ends[0].recv(5)
    ends[0].settimeout(0.2)
    try:
        while ends[0].recv(1 << 20): pass
    except TimeoutError: pass
# A child that inherits the pipes and outlives this process, as a worker of a data loader may.
holder = subprocess.Popen(["sleep", "20"], pass_fds=[end.fileno() for end in ends])
print(json.dumps([engine.pid, holder.pid]), flush=True)
time.sleep(60)
"""


class Script:
    """A connection that plays a list of actions and keeps the events."""

    def __init__(self, *actions: dict) -> None:
        self.actions, self.events = list(actions), []

    def exchange(self, event: Event) -> dict:
        self.events.append(event)
        if not self.actions:
            raise ClientGone
        return self.actions.pop(0)


def alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def ends_within(process: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not alive(process):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("protocol", ["FIFO", "WSGI"])
def test_the_engine_ends_with_a_client_that_is_killed_even_if_others_hold_its_pipes(tmp_path, protocol):
    if protocol == "FIFO":
        pytest.importorskip("msgpack")
    paths = [str(Path(scrubjay.__file__).parents[1]), str(Path(__file__).parents[1])]
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(tmp_path), SERVE, protocol],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert client.stdout
    engine, holder = json.loads(client.stdout.readline())
    try:
        assert alive(engine) and alive(holder)
        client.send_signal(signal.SIGKILL)
        client.wait()
        assert ends_within(engine, 10.0)  # A second or two, but the machine may be busy.
        assert alive(holder)
    finally:
        os.kill(holder, signal.SIGKILL)


def test_a_mistake_of_the_engine_is_a_failed_action_and_not_the_end(capsys):
    engine = ConstantEngine()
    actions = [{"action": name, "sequenceId": i} for i, name in enumerate(["Query", "Crash", "Pass"])]
    script = Script(*actions)
    serve(engine, engine.first(), script)
    _, _, crash, after = [event.message for event in script.events]
    assert crash["sequenceId"] == 1 and crash["agents"][0]["lastAction"] == "Crash"
    assert crash["agents"][0]["lastActionSuccess"] is False
    assert "Crash failed in the engine: KeyError" in crash["agents"][0]["errorMessage"]
    assert script.events[2].images.keys() == {"rgb"}
    assert after["agents"][0]["lastActionSuccess"] is True
    assert "a mistake of ours" in capsys.readouterr().err


def test_an_engine_that_does_not_start_tells_the_client(monkeypatch, capsys):
    class Broken:
        def __init__(self, width: int, height: int) -> None:
            raise ThorError("no rooms here")

    monkeypatch.setattr("scrubjay.thor.engine.Engine", Broken)
    engine, first = start(320, 240)
    assert isinstance(engine, FailedEngine)
    assert first.message["agents"][0]["screenWidth"] == 320 and first.message["agents"][0]["lastActionSuccess"]
    assert "FloorPlan28_physics" in engine.step({"action": "GetScenesInBuild"}).message["agents"][0]["actionReturn"]
    assert engine.step({"action": "Reset", "sequenceId": 0}).message["agents"][0]["lastActionSuccess"]
    answer = engine.step({"action": "Initialize", "sequenceId": 1}).message
    assert answer["sequenceId"] == 1 and answer["agents"][0]["lastActionSuccess"] is False
    assert answer["agents"][0]["errorMessage"] == "Scrubjay's engine did not start: no rooms here"
    assert "no rooms here" in capsys.readouterr().err


def test_the_engine_starts_without_torch():
    """It takes longer to import than everything else together."""
    code = "import sys, scrubjay.thor.engine, scrubjay.thor.fifo; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(scrubjay.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_sizes_come_from_unitys_command_line():
    size = ["-screen-width", "640", "-screen-height", "480"]
    words = ["-screen-fullscreen", "0", "-screen-quality", "7", *size, "-force-glcore"]
    assert screen_size(words) == (640, 480)
    assert screen_size(["-batchmode", "-nographics"]) == (300, 300)
    assert screen_size(["-screen-width", "0", "-screen-height"]) == (300, 300)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "AI2THOR_SERVER_TYPE is not set"),
        ({"AI2THOR_SERVER_TYPE": "SMTP"}, "FIFO and WSGI are supported"),
        ({"AI2THOR_SERVER_TYPE": "WSGI", "AI2THOR_HOST": "127.0.0.1"}, "AI2THOR_PORT is not set"),
        ({"AI2THOR_SERVER_TYPE": "WSGI", "AI2THOR_HOST": "h", "AI2THOR_PORT": "x"}, "AI2THOR_PORT is 'x'"),
    ],
)
def test_an_environment_without_a_client_is_explained(environment, words):
    with pytest.raises(ThorError, match=words):
        connect(environment)


def test_started_by_hand_the_engine_says_who_starts_it(monkeypatch, capsys):
    monkeypatch.delenv("AI2THOR_SERVER_TYPE", raising=False)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert main([]) == 1
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.startswith("scrubjay: AI2THOR_SERVER_TYPE is not set: AI2-THOR's client starts this")
