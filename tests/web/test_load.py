"""Many at once: answers in time, nothing that was acknowledged is lost when the server is killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from web.test_server import playing, settings

from scrubjay.game.actions import NUMBERS
from scrubjay.web.database import Database
from scrubjay.web.load_test import LoadReport, participants
from scrubjay.web.server import running

SERVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from web.test_server import playing, settings
from scrubjay.web.server import serve
serve(settings(Path(sys.argv[1])), port=int(sys.argv[2]))
"""


def test_simulated_participants_play_without_errors(tmp_path):
    with running(settings(tmp_path)) as (_, url):
        report = LoadReport()
        said = participants(6, 4, url, pause=0.25, report=report)
        assert said["errors"] == 0, report.errors
        assert said["answers"] > 20 and 0 < said["p50_ms"] <= said["p99_ms"]


@pytest.fixture
def started(tmp_path):
    """Starts servers as processes of their own on one port; they are ended in the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes: list[subprocess.Popen] = []

    def start() -> tuple[subprocess.Popen, str]:
        arguments = [sys.executable, "-c", SERVER, str(tmp_path), str(port), str(Path(__file__).parents[1])]
        processes.append(subprocess.Popen(arguments, stdout=subprocess.DEVNULL))
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(url + "/api/options", timeout=5).close()
                return processes[-1], url
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError("the server does not start")

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_what_was_acknowledged_survives_a_kill(started, tmp_path):
    process, url = started()
    report = LoadReport()
    load = threading.Thread(target=participants, args=(6, 12, url), kwargs=dict(pause=0.1, report=report))
    load.start()
    while len(report.seconds) < 40 and load.is_alive():
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    load.join()
    database = Database(tmp_path / "play.db")
    kept = _kept(database)
    database.close()
    assert sum(report.acknowledged.values()) > 5
    assert all(kept[trial] >= steps for trial, steps in report.acknowledged.items())
    _, url = started()
    for trial in report.acknowledged:
        # They go on at the step where they were.
        with playing(url + "/", trial) as again:
            assert again.state["steps"] == kept[trial]


def _kept(database: Database) -> dict[str, int]:
    """Actions of people in each trial, by its token."""
    rows = database.all("SELECT token, action FROM trials JOIN steps ON trial = id WHERE NOT script")
    counts = {row["token"]: 0 for row in database.all("SELECT token FROM trials")}
    for row in rows:
        counts[row["token"]] += row["action"] in NUMBERS
    return counts
