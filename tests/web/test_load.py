"""Many clients at once: timely answers; no acknowledged step is lost when the server is killed or its disk is full."""

import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console
from web_helpers import free_port, make_settings, playing, request, server_process

from scrubjay.bench.server import measure
from scrubjay.game.actions import NUMBERS
from scrubjay.web.database import Database
from scrubjay.web.load_test import LoadReport, run_load_test
from scrubjay.web.server import running


def can_mount() -> bool:
    """Whether a namespace of our own can be made, and a file system mounted in it."""
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


def test_simulated_participants_play_without_errors_beside_idle_and_half_sent_connections(tmp_path):
    with running(make_settings(tmp_path)) as (_, url):
        report = LoadReport()
        summary = run_load_test(6, 4, url, pause=0.25, report=report, idle=10, half_sent=10)
        assert summary["errors"] == 0, report.errors
        assert summary["answers"] > 20 and 0 < summary["p50_ms"] <= summary["p99_ms"]


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    port, report = free_port(), LoadReport()
    with server_process(tmp_path, port) as (process, url):
        load = threading.Thread(target=run_load_test, args=(6, 12, url), kwargs=dict(pause=0.1, report=report))
        load.start()
        wait_for_answers(load, report, 40)
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


def test_nothing_acknowledged_is_lost_on_a_full_disk_and_games_continue_when_there_is_space(tmp_path):
    """A limit of file sizes stands in for the disk: the system refuses to write, as it would there."""
    port, report = free_port(), LoadReport()
    with server_process(tmp_path, port, stderr=subprocess.PIPE) as (process, url):
        load = threading.Thread(target=run_load_test, args=(6, 14, url), kwargs=dict(pause=0.1, report=report))
        load.start()
        wait_for_answers(load, report, 40)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        time.sleep(1.5)
        body = dict(role="seek", scene="hut", goal="Bread", opponent="somewhere")
        status, answer = request(url, "/api/play", body)
        assert status == 503 and answer["error"] == "storage" and "cannot save" in answer["message"]
        token = (tmp_path / "play.db.admin-token").read_text().strip()
        assert "play.db cannot be written: " in request(url, "/api/admin/progress", token=token)[1]["problem"]
        before = len(report.latencies)
        time.sleep(1)
        assert len(report.latencies) == before
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        wait_for_answers(load, report, before + 20)
        load.join()
        assert request(url, "/api/admin/progress", token=token)[1]["problem"] is None
        os.kill(process.pid, signal.SIGKILL)
        log = process.stderr.read().decode().splitlines()
    assert len(report.latencies) > before
    check_stored(tmp_path, report)
    assert log[0].startswith(f"{tmp_path / 'play.db'} cannot be written: ") and "can be written again" in log[-1]
    assert len(log) <= 4, log


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs a namespace in which to mount a small disk")
def test_a_small_disk_fills_up_in_the_middle_of_a_study(tmp_path, study_file):
    """The same on a file system of 4 MB, which a file fills to the last byte; in the end the server is killed."""
    port, report, folder = free_port(), LoadReport(), tmp_path / "disk"
    folder.mkdir()
    mount = 'mount -t tmpfs -o size=4m none "$0" && "$@"; exec sleep 600'
    prefix = ["unshare", "-Urm", "sh", "-c", mount, str(folder)]
    with server_process(folder, port, study=study_file, prefix=prefix, stderr=subprocess.PIPE) as (shell, url):
        disk = Path(f"/proc/{shell.pid}/root{folder}")
        load = threading.Thread(target=run_load_test, args=(10, 300, url), kwargs=dict(pause=0.1, report=report))
        load.start()
        wait_for_answers(load, report, 100)
        with open(disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
            while True:
                filler.write(b"x" * 4096)
        time.sleep(2)
        status, answer = request(url, "/api/studies/find/join", {"parameters": {}})
        assert status == 503 and answer["error"] == "storage"
        before = len(report.latencies)
        time.sleep(1)
        assert len(report.latencies) == before
        (disk / "filler").unlink()
        wait_for_answers(load, report, before + 100)
        os.kill(int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text()), signal.SIGKILL)
        report.end = 0
        load.join()
        shutil.copytree(disk, tmp_path / "copy")
    log = shell.stderr.read().decode()
    assert len(report.latencies) >= before + 100
    check_stored(tmp_path / "copy", report)
    assert "cannot be written: database or disk is full" in log and "can be written again" in log
    assert len(log.splitlines()) <= 6, log


@pytest.mark.slow
def test_the_benchmark_loses_nothing():
    result = measure(5, 15, 0.5, 10, 10, 112, Console(stderr=True))
    assert result["errors"] == result["lost_steps"] == 0 and result["answers"] > 40
    assert 0 < result["p50_ms"] <= result["p99_ms"] and 0 < result["cores_server"] < 4
    first, last = result["host_mib_first_last"]
    assert first > 0 and last <= result["host_mib_most"]


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_fifty_kills(tmp_path, study_file):
    port, report, load = free_port(), LoadReport(), None
    for _ in range(50):
        with server_process(tmp_path, port, study=study_file) as (process, url):
            if load is None:
                load = threading.Thread(
                    target=run_load_test,
                    args=(10, 3600, url),
                    kwargs=dict(pause=0.1, report=report),
                    daemon=True,  # A failed test must not wait for it.
                )
                load.start()
            wait_for_answers(load, report, len(report.latencies) + 40)
            os.kill(process.pid, signal.SIGKILL)
        check_stored(tmp_path, report)
    report.end = 0
    load.join()
    assert len(report.latencies) >= 2000 and len(report.participants) >= 10
    # What the server knew it still knows: errors are those of connections.
    assert not [error for error in report.errors if "no such" in error or "HTTPError" in error]


def wait_for_answers(load: threading.Thread, report: LoadReport, count: int) -> None:
    while len(report.latencies) < count and load.is_alive():
        time.sleep(0.05)


def check_stored(folder: Path, report: LoadReport) -> None:
    """Everything that was acknowledged is in the database."""
    with closing(Database(folder / "play.db")) as database:
        stored = stored_actions(database)
        participants = {row["token"]: row["status"] for row in database.all("SELECT token, status FROM participants")}
    assert sum(report.acknowledged.values()) > 5
    assert all(stored[trial] >= steps for trial, steps in dict(report.acknowledged).items())
    order = ("consent", "instructions", "trials", "done")
    for participant, status in dict(report.participants).items():
        assert order.index(participants[participant]) >= order.index(status)


def stored_actions(database: Database) -> dict[str, int]:
    """Number of people's actions per trial token."""
    rows = database.all("SELECT token, action FROM trials JOIN steps ON trial = id WHERE NOT script")
    counts = {row["token"]: 0 for row in database.all("SELECT token FROM trials")}
    for row in rows:
        counts[row["token"]] += row["action"] in NUMBERS
    return counts
