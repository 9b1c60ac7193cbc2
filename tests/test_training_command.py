"""Training from the command line: as one process, stopped and resumed, and as two that learn together."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from scrubjay.learning.checkpoint import checkpoints

SMALL = ["--scenes", "FloorPlan401", "--copies", "2", "--chunk", "2", "--interval", "2"]


def command(*words: str, **more) -> list[str]:
    return [sys.executable, "-m", "scrubjay.cli", *words]


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )


def test_a_run_is_trained_resumed_and_refused(tmp_path):
    out = tmp_path / "run"
    done = run("train", "demo", "--out", str(out), "--updates", "2", *SMALL)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["update"] == 2 and said["steps"] == 2 * 2 * 16
    assert list((out / "tensorboard").iterdir())
    again = run("train", "demo", "--out", str(out), *SMALL)
    assert again.returncode == 2 and "is a run already" in again.stderr and "Traceback" not in again.stderr
    other = run("train", "demo", "--out", str(tmp_path / "other"), "--copies", "0")
    assert other.returncode == 2 and "copies: at least 1" in other.stderr and not (tmp_path / "other").exists()
    resumed = run("train", "--resume", str(out))
    assert resumed.returncode == 0 and json.loads(resumed.stdout.splitlines()[-1])["update"] == 2


def test_an_interrupted_run_saves(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        command("train", "demo", "--out", str(out), "--updates", "500", "--scenes", "FloorPlan401", "--copies", "2"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    log = out / "metrics.jsonl"
    until = time.monotonic() + 200
    while not (log.exists() and log.read_text().count("\n") >= 2) and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    said = json.loads(stdout.splitlines()[-1])
    assert said["update"] >= 2 and checkpoints(out)[-1].name == f"{said['update']:08d}"
    assert "go on with" in stderr


@pytest.mark.slow
def test_two_processes_learn_together(tmp_path):
    out = tmp_path / "run"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, "-m", "scrubjay.cli", "train", "demo", "--out", str(out), "--updates", "2", "--copies", "2",
         "--chunk", "2", "--interval", "1", "--scenes", "FloorPlan401", "FloorPlan402"],
        capture_output=True, text=True, timeout=400, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2] and rows[-1]["steps"] == 2 * 2 * 16 * 2, "both play"


@pytest.mark.slow
def test_workers_that_do_not_wait_for_each_other(tmp_path):
    out = tmp_path / "run"
    done = run(
        "train", "demo", "--out", str(out), "--updates", "4", "--copies", "2", "--chunk", "2", "--interval", "2",
        "--scenes", "FloorPlan401", "FloorPlan402", "--asynchronous", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2, 3, 4] and {row["worker"] for row in rows} == {0, 1}
    assert checkpoints(out)[-1].name == "00000004"
    refused = run("train", "demo", "--out", str(tmp_path / "other"), "--asynchronous", "-1")
    assert refused.returncode == 2 and "at least one worker" in refused.stderr
