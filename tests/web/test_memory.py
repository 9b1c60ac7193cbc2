"""The server's memory: what is over is freed at once, and under load nothing grows."""

import gc
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import weakref
from pathlib import Path

import pytest
from web.test_server import new_game, playing, settings

from scrubjay.web import sessions
from scrubjay.web.load_test import LoadReport, participants
from scrubjay.web.server import running

SERVER = """
import gc
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from web.test_server import settings
from scrubjay.web.server import serve
gc.disable()
serve(replace(settings(Path(sys.argv[1])), size=224), port=int(sys.argv[2]))
"""
PEOPLE, PAUSE = 20, 0.1
WARM, FLAT = 15, 30
"""Seconds."""


@pytest.fixture
def no_collector():
    """Without the collector, all that lies in circles stays: it comes rarely to what has lived for a second."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_trial_that_is_over_is_freed_at_once_whatever_failed_in_it(tmp_path, no_collector):
    with running(settings(tmp_path)) as (server, url):
        kept = []
        for last in ("GiveUp", "RotateLeft"):
            token = new_game(url)
            with playing(url, token) as one:
                session = server.sessions.active[token]
                kept += [weakref.ref(session), weakref.ref(session.trial)]
                del session
                for to in ("open", "place"):
                    assert one.ask(type="point", x=0.5, y=0.0, to=to)["code"] == "not_now"
                assert one.act("GiveUp")["phase"] == "done"
                if last == "RotateLeft":
                    assert one.act(last)["code"] == "not_now"
        until = time.monotonic() + 10
        while any(held() for held in kept) and time.monotonic() < until:
            time.sleep(0.05)
        assert [held() for held in kept] == [None] * 4


def test_of_trials_that_were_left_only_the_last_stay_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_IDLE", 2)
    with running(settings(tmp_path)) as (server, url):
        tokens = [new_game(url) for _ in range(4)]
        for token in tokens:
            with playing(url, token) as one:
                assert one.act("RotateLeft")["steps"] == 1
            until = time.monotonic() + 10
            while server.sessions.active[token].client is not None and time.monotonic() < until:
                time.sleep(0.02)
        assert list(server.sessions.active) == tokens[2:]
        with playing(url, tokens[0]) as again:
            assert again.state["steps"] == 1 and again.state["phase"] == "seek"


def resident(pid: int) -> int:
    """Kilobytes of memory that a process has now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_flat_under_load(tmp_path):
    """Hundreds of trials that begin and end. Without the collector, whose turns would make the result a matter of luck;
    what the web server's own circles hold, some kilobytes a connection, is all that may stay."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [sys.executable, "-c", SERVER, str(tmp_path), str(port), str(Path(__file__).parents[1])]
    server, url, report = (
        subprocess.Popen(arguments, stdout=subprocess.DEVNULL),
        f"http://127.0.0.1:{port}",
        LoadReport(),
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(url + "/api/options", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        given = dict(count=PEOPLE, seconds=WARM + FLAT + 1, url=url, pause=PAUSE, report=report)
        load = threading.Thread(target=participants, kwargs=given)
        load.start()
        time.sleep(WARM)
        before, trials = resident(server.pid), report.finished
        time.sleep(FLAT)
        after, trials = resident(server.pid), report.finished - trials
        load.join()
    finally:
        server.kill()
        server.wait()
    assert trials > 50, report.errors
    assert after < 1.05 * before, f"{before} kB became {after} kB in {trials} trials"
