"""Training under torchrun: processes are killed, told to stop, leave and join, and the run goes on."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scrubjay.training.run import checkpoints

pytestmark = pytest.mark.slow
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TWO = ["--standalone", "--nproc-per-node", "2", "--max-restarts", "30"]
TINY = [
    "--scenes", "FloorPlan401", "FloorPlan402", "--copies", "2", "--unroll-length", "8", "--minibatch-games", "2",
    "--replay-size", "64", "--replay-batch-size", "4",
]  # fmt: skip
STEPS = 2 * 2 * 8
"""Of an update."""
LIMIT = 400.0
"""Seconds that anything may take here."""


@contextmanager
def launch(options: list[str], out: Path, *words: str) -> Iterator[subprocess.Popen]:
    """torchrun, in a process group that does not survive the test."""
    command = [*TORCHRUN, *options, "-m", "scrubjay", "train", "demo", "--out", str(out), *TINY, *words]
    with open(out.with_suffix(f".{time.monotonic_ns()}.log"), "w") as log:
        # Without the second one a node that joins is never told the first one's address (torch 2.13).
        settings = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1" if "--nnodes" in options else "0"}
        agent = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | settings, start_new_session=True)
    try:
        yield agent
    finally:
        for pid in children(agent.pid):
            kill(pid, signal.SIGKILL)
        if agent.poll() is None:
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def kill(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def rows(out: Path) -> list[dict]:
    path = out / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def identity(out: Path) -> int | None:
    """Of the log, which is written anew when a run continues."""
    path = out / "metrics.jsonl"
    return path.stat().st_ino if path.exists() else None


def wait_for(condition, agent: subprocess.Popen, out: Path) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        assert agent.poll() is None and time.monotonic() < until, logs(out)
        time.sleep(0.05)


def logs(out: Path) -> str:
    return "\n".join(path.read_text()[-8000:] for path in sorted(out.parent.glob("*.log")))


def assert_complete(out: Path, updates: int) -> None:
    """Every update is logged once, with all its steps, and the last one is saved."""
    assert [row["update"] for row in rows(out)] == list(range(1, updates + 1)), logs(out)
    assert [row["steps"] for row in rows(out)] == [STEPS * update for update in range(1, updates + 1)]
    assert checkpoints(out)[-1].name == f"{updates:08d}"


@pytest.mark.timeout(1500)  # On a busy machine each start takes half a minute.
def test_ten_killed_processes_cost_the_updates_since_the_last_checkpoint(tmp_path):
    """At random moments: while they start, play, learn or save. Processes compare their agents at each checkpoint."""
    out, rng, updates, lost = tmp_path / "run", random.Random(0), 60, []
    with launch(TWO, out, "--updates", str(updates), "--checkpoint-interval", "3") as agent:
        for _ in range(10):
            wait_for(lambda: len(children(agent.pid)) == 2, agent, out)
            if rng.random() < 0.7:
                # Rows after the checkpoint are dropped when processes start again, in a new file.
                file, more = identity(out), rng.randint(1, 4)
                wait_for(lambda file=file: identity(out) != file, agent, out)
                known = len(rows(out))
                wait_for(lambda known=known, more=more: len(rows(out)) >= known + more, agent, out)
            time.sleep(rng.uniform(0, 2))
            saved = [0, *(int(path.name) for path in checkpoints(out))][-1]
            lost.append((len(rows(out)), saved))
            victims = children(agent.pid)
            kill(rng.choice(victims), signal.SIGKILL)
            wait_for(lambda gone=victims: not set(gone) & set(children(agent.pid)), agent, out)
        assert agent.wait(LIMIT) == 0, logs(out)
    print("updates logged and saved when a process was killed:", lost)
    assert max(logged for logged, _ in lost) > 6, "some were killed while they trained"
    assert_complete(out, updates)
    assert {row["charts"]["processes"] for row in rows(out)} == {2}


def test_what_is_told_to_stop_saves_first_and_the_same_command_continues(tmp_path):
    out = tmp_path / "run"
    words = ["--updates", "12", "--checkpoint-interval", "1000"]
    with launch(TWO, out, *words) as agent:
        wait_for(lambda: len(rows(out)) >= 3, agent, out)
        agent.send_signal(signal.SIGTERM)
        agent.wait(60)
    (saved,) = checkpoints(out)
    assert 3 <= int(saved.name) < 12
    with launch(TWO, out, *words) as agent:
        assert agent.wait(LIMIT) == 0, logs(out)
    assert_complete(out, 12)
    assert f"continues after update {int(saved.name)} with 2 processes" in logs(out)


def test_bad_input_ends_torchrun_at_once(tmp_path):
    out = tmp_path / "run"
    with launch(TWO, out, "--updates", "1") as agent:
        assert agent.wait(LIMIT) == 0, logs(out)
    start = time.monotonic()
    with launch(TWO, out, "--updates", "2") as agent:
        assert agent.wait(LIMIT) != 0
    assert "is a run with another updates: choose another folder with --out" in logs(out)
    assert time.monotonic() - start < 60, "it was not started thirty times"


def test_a_second_node_joins_and_leaves(tmp_path):
    """Two agents on this machine, on the loopback interface alone."""
    out, updates = tmp_path / "run", 60
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    node = [
        "--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "5", "--local-addr", "127.0.0.1",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "test",
        "--rdzv-conf", "last_call_timeout=3",
    ]  # fmt: skip
    words = ["--updates", str(updates), "--checkpoint-interval", "1000"]
    counts = lambda: [row["charts"]["processes"] for row in rows(out)]  # noqa: E731
    with launch(node, out, *words) as first:
        wait_for(lambda: len(rows(out)) >= 2, first, out)
        with launch(node, out, *words) as second:
            wait_for(lambda: 2 in counts(), first, out)
            time.sleep(1)
            second.send_signal(signal.SIGTERM)
            second.wait(60)
        assert first.wait(LIMIT) == 0, logs(out)
    assert_complete(out, updates)
    assert counts()[0] == counts()[-1] == 1 and 2 in counts(), "nothing was lost: leaving and joining write checkpoints"
