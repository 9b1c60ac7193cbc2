"""Many clients at once: timely answers, and no acknowledged step is lost when the server is killed."""

import os
import signal
import threading
import time
from contextlib import closing

from web_helpers import free_port, make_settings, playing, server_process

from scrubjay.game.actions import NUMBERS
from scrubjay.web.database import Database
from scrubjay.web.load_test import LoadReport, run_load_test
from scrubjay.web.server import running


def test_simulated_participants_play_without_errors(tmp_path):
    with running(make_settings(tmp_path)) as (_, url):
        report = LoadReport()
        summary = run_load_test(6, 4, url, pause=0.25, report=report)
        assert summary["errors"] == 0, report.errors
        assert summary["answers"] > 20 and 0 < summary["p50_ms"] <= summary["p99_ms"]


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    port, report = free_port(), LoadReport()
    with server_process(tmp_path, port) as (process, url):
        load = threading.Thread(target=run_load_test, args=(6, 12, url), kwargs=dict(pause=0.1, report=report))
        load.start()
        while len(report.latencies) < 40 and load.is_alive():
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        load.join()
    with closing(Database(tmp_path / "play.db")) as database:
        stored = stored_actions(database)
    assert sum(report.acknowledged.values()) > 5
    assert all(stored[trial] >= steps for trial, steps in report.acknowledged.items())
    with server_process(tmp_path, port) as (_, url):
        for trial in report.acknowledged:
            # They continue at the same step.
            with playing(url, trial) as again:
                assert again.state["steps"] == stored[trial]


def stored_actions(database: Database) -> dict[str, int]:
    """Number of people's actions per trial token."""
    rows = database.all("SELECT token, action FROM trials JOIN steps ON trial = id WHERE NOT script")
    counts = {row["token"]: 0 for row in database.all("SELECT token FROM trials")}
    for row in rows:
        counts[row["token"]] += row["action"] in NUMBERS
    return counts
