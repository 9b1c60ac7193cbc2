"""The server's memory: finished trials are freed at once, and memory does not grow under load."""

import gc
import threading
import time
import weakref
from pathlib import Path

import pytest
from web_helpers import free_port, make_settings, new_game, playing, server_process

from scrubjay.web import sessions
from scrubjay.web.load_test import LoadReport, run_load_test
from scrubjay.web.server import running

PEOPLE, PAUSE = 20, 0.1
WARM_UP_SECONDS, MEASURED_SECONDS = 15, 30


@pytest.fixture
def no_gc():
    """Disables the garbage collector, so that reference cycles stay in memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_finished_trial_is_freed_at_once_even_after_refused_actions(tmp_path, no_gc):
    with running(make_settings(tmp_path)) as (server, url):
        references = []
        for last in ("GiveUp", "RotateLeft"):
            token = new_game(url)
            with playing(url, token) as one:
                session = server.sessions.active[token]
                references += [weakref.ref(session), weakref.ref(session.trial)]
                del session
                for to in ("open", "place"):
                    assert one.ask(type="point", x=0.5, y=0.0, to=to)["code"] == "not_now"
                assert one.act("GiveUp")["phase"] == "done"
                if last == "RotateLeft":
                    assert one.act(last)["code"] == "not_now"
        deadline = time.monotonic() + 10
        while any(reference() for reference in references) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [reference() for reference in references] == [None] * 4


def test_only_the_latest_idle_trials_stay_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_IDLE", 2)
    with running(make_settings(tmp_path)) as (server, url):
        tokens = [new_game(url) for _ in range(4)]
        for token in tokens:
            with playing(url, token) as one:
                assert one.act("RotateLeft")["steps"] == 1
            deadline = time.monotonic() + 10
            while server.sessions.active[token].client is not None and time.monotonic() < deadline:
                time.sleep(0.02)
        assert list(server.sessions.active) == tokens[2:]
        with playing(url, tokens[0]) as again:
            assert again.state["steps"] == 1 and again.state["phase"] == "seek"


def resident(pid: int) -> int:
    """Resident memory of a process in kilobytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_flat_under_load(tmp_path):
    """Hundreds of trials start and end. The server runs without the garbage collector, whose timing would make the
    result random; only the web server's own cycles, a few kilobytes per connection, may accumulate."""
    report = LoadReport()
    with server_process(tmp_path, free_port(), size=224) as (server, url):
        seconds = WARM_UP_SECONDS + MEASURED_SECONDS + 1
        arguments = dict(count=PEOPLE, seconds=seconds, url=url, pause=PAUSE, report=report)
        load = threading.Thread(target=run_load_test, kwargs=arguments)
        load.start()
        time.sleep(WARM_UP_SECONDS)
        before, trials = resident(server.pid), report.finished
        time.sleep(MEASURED_SECONDS)
        after, trials = resident(server.pid), report.finished - trials
        load.join()
    assert trials > 50, report.errors
    assert after < 1.05 * before, f"{before} kB became {after} kB in {trials} trials"
