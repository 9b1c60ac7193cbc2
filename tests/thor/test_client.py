"""The unmodified client from PyPI with an engine that has no world: both protocols, start, errors, and the end."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import scrubjay

pytestmark = pytest.mark.slow  # The client and its packages, 360 MB, are installed first.
TESTS = Path(__file__).parents[1]
SERVE = """
import sys
sys.path[:0] = sys.argv[1:3]
import os
from constant_engine import ConstantEngine
from scrubjay.thor.serve import connect, screen_size, serve
engine = ConstantEngine(*screen_size(sys.argv[3:]))
serve(engine, engine.first(), connect(os.environ))
"""
SCRIPT = """
import json, sys, time
import numpy as np
import ai2thor.fifo_server, ai2thor.wsgi_server
from ai2thor.controller import Controller

server = {"FIFO": ai2thor.fifo_server.FifoServer, "WSGI": ai2thor.wsgi_server.WsgiServer}[sys.argv[2]]
start = time.perf_counter()
controller = Controller(
    local_executable_path=sys.argv[1], x_display="0", server_class=server, scene="FloorPlan1", width=120, height=80,
    renderDepthImage=True, renderInstanceSegmentation=True,
)
started = time.perf_counter() - start
event = controller.last_event
rows, columns = np.mgrid[:80, :120]
assert (event.frame == np.stack([rows, columns, 0 * rows], 2)).all()
assert np.allclose(event.depth_frame, rows + columns / 1000)
assert event.instance_masks["Cup|+01.00|+01.00|+01.00"].sum() == 2 * 120
assert event.instance_detections2D["Cup|+01.00|+01.00|+01.00"] == (0, 0, 119, 1)
assert event.metadata["agent"]["position"]["x"] == 0.25
before = controller.step("Pass")
query = controller.step("Query")
assert query.metadata["actionReturn"] == [1, 2] and query.metadata["lastAction"] == "Query"
assert (query.frame == before.frame).all()
failed = controller.step("Fail")
assert not failed and failed.metadata["errorMessage"] == "it failed"
crashed = controller.step("Crash")
assert not crashed and "KeyError" in crashed.metadata["errorMessage"]
try:
    controller.step("Unknown")
except ValueError as error:
    words = str(error)
assert controller.step("Pass")
start = time.perf_counter()
for _ in range(50):
    controller.step("Pass")
rate = 50 / (time.perf_counter() - start)
process = controller.server.unity_proc
controller.stop()
print(json.dumps({"words": words, "gone": process.poll() is not None, "started": started, "rate": rate}))
"""


@pytest.fixture(scope="module")
def executable(tmp_path_factory) -> Path:
    """The engine without a world as a program."""
    path = tmp_path_factory.mktemp("engine") / "engine"
    words = [sys.executable, "-P", "-c", SERVE, str(Path(scrubjay.__file__).parents[1]), str(TESTS)]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("protocol", ["FIFO", "WSGI"])
def test_the_client_understands_every_answer(run_script, executable, protocol):
    got = run_script(SCRIPT, str(executable), protocol)
    assert got["words"] == "no such action" and got["gone"]
