"""A load test of the web server: latencies, lost actions and memory with many participants in a study."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console

from scrubjay.errors import ProcessError
from scrubjay.game.actions import NUMBERS, Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Hidden, Record, save_records
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.pose import AgentPose
from scrubjay.spots.spots import candidate_spots
from scrubjay.study.record import machine
from scrubjay.web.database import Database
from scrubjay.web.load_test import LoadReport, run_load_test

SCENES = ("FloorPlan26", "FloorPlan226", "FloorPlan326", "FloorPlan426")
"""A room of each type."""
STUDY = """
name = "load"
title = "Load"
kind = "seek"
consent = "None is needed."
instructions = "Seek."
trials = 20
repeats = 1000
practice = {scene = "FloorPlan26", goal = "Bread"}
[[places]]
source = "anywhere"
records = "places.jsonl"
"""
SAMPLE_SECONDS, START_SECONDS = 10.0, 300.0
MAX_RAMP_SECONDS = 60.0
"""At most, until memory counts: participants come one after another, and rooms are loaded."""


def measure(
    participants: int, seconds: float, pause: float, idle: int, half_sent: int, size: int, console: Console
) -> dict:
    """Runs a server in a process of its own, and the participants in this one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        console.print(f"hiding objects in {', '.join(SCENES)}")
        write_study(folder)
        with _server(folder, size, console) as (process, url):
            report, samples = LoadReport(), list[tuple[float, float]]()
            done = threading.Event()
            watch = threading.Thread(target=_watch, args=(process.pid, samples, done, console))
            watch.start()
            before = _cpu_seconds(process.pid), _cpu_seconds(os.getpid()), _busy_seconds()
            try:
                result = run_load_test(
                    participants, seconds, url, pause=pause, report=report, idle=idle, half_sent=half_sent
                )
            finally:
                done.set()
                watch.join()
            after = _cpu_seconds(process.pid), _cpu_seconds(os.getpid()), _busy_seconds()
            process.kill()  # What was acknowledged must be there without an orderly end, too.
            process.wait()
        lost = _lost_steps(folder / "play.db", report)
    for error in sorted(set(report.errors)):
        console.print(f"{report.errors.count(error)} times {error}", markup=False)
    cores = [round((end - start) / seconds, 2) for start, end in zip(before, after, strict=True)]
    settled = [mib for at, mib in samples if at >= min(MAX_RAMP_SECONDS, seconds / 3)] or [samples[-1][1]]
    return {
        **result, "lost_steps": lost, "host_mib_first_last": [settled[0], settled[-1]],
        "host_mib_most": max(mib for _, mib in samples), "cores_server": cores[0], "cores_participants": cores[1],
        "cores_others": round(cores[2] - cores[0] - cores[1], 2),
        "participants": participants, "seconds": seconds, "idle": idle, "half_sent": half_sent, "size": size,
        "machine": machine("cpu"),
    }  # fmt: skip


def write_study(folder: Path, per_room: int = 10) -> None:
    """Writes study.toml with objects hidden at random in a room of each type."""
    rng, records = np.random.default_rng(0), []
    for scene in SCENES:
        compiled = build_room(scene)
        positions = compiled.floor.reachable().positions
        for number in range(per_room):
            goal = GOALS[number % len(GOALS)]
            spot = candidate_spots(compiled, goal, 1, rng)[0]
            x, y = positions[rng.integers(len(positions))]
            start = AgentPose(float(x), float(y), 90.0 * int(rng.integers(4)), True)
            spec = EpisodeSpec(goal, start, Stage.EM, Stage.OH)
            hidden: Hidden = {
                "pose": [float(value) for value in spot.pose],
                "open": [int(value) for value in spot.open],
            }
            records.append(Record(scene, spec, 224, "OpenGL", [1] * 5, {"hider": "anywhere"}, hidden=hidden))
    save_records(records, folder / "places.jsonl")
    (folder / "study.toml").write_text(STUDY)


@contextmanager
def _server(folder: Path, size: int, console: Console) -> Iterator[tuple[subprocess.Popen, str]]:
    """`scrubjay serve` with the study of a folder, and its URL."""
    command = [sys.executable, "-m", "scrubjay", "serve", "--data", str(folder / "play.db"), "--studies",
               str(folder / "study.toml"), "--only-studies", "--port", "0", "--size", str(size)]  # fmt: skip
    console.print("starting the server")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise ProcessError("the server does not start")
        url = line.split()[2]
        urllib.request.urlopen(url + "api/options", timeout=START_SECONDS).close()
        time.sleep(5)  # Rooms are preloaded.
        yield process, url
    finally:
        process.kill()
        process.wait()


def _watch(pid: int, samples: list[tuple[float, float]], done: threading.Event, console: Console) -> None:
    """Samples resident memory in MiB until the end."""
    began = time.monotonic()
    while True:
        samples.append((round(time.monotonic() - began, 1), _resident_mib(pid)))
        console.print(f"{samples[-1][0]:.0f} s: {samples[-1][1]} MiB")
        if done.wait(SAMPLE_SECONDS):
            return


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _busy_seconds() -> float:
    """Processor time of all processes of the machine so far."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _lost_steps(path: Path, report: LoadReport) -> int:
    """Steps that were acknowledged and are not in the database."""
    with closing(Database(path)) as database:
        rows = database.all("SELECT token, action FROM trials JOIN steps ON trial = id WHERE NOT script")
    stored = dict.fromkeys(report.acknowledged, 0)
    for row in rows:
        if row["token"] in stored:
            stored[row["token"]] += row["action"] in NUMBERS
    return sum(max(0, steps - stored[trial]) for trial, steps in report.acknowledged.items())
