"""A Ray cluster as workers: local, quiet and closed to the network; and clusters that cannot be used."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from workers_helpers import die_once, pid_of

from scrubjay.errors import ClusterError, DataError
from scrubjay.spots.spots import make_spot_files
from scrubjay.workers import ray_cluster
from scrubjay.workers.choose import open_workers

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
BEGIN = """
from scrubjay.workers.choose import open_workers
from workers_helpers import pid_of
workers = open_workers("ray")
pids = {pid for _, pid in workers.map(pid_of, [(n,) for n in range(20)])}
print(workers.address, *pids, flush=True)
"""
WAIT = "import os, sys, time\n" + BEGIN + "with workers: sys.stdin.readline()"
WORK = "import os\n" + BEGIN + "with workers: list(workers.map(pid_of, ((n,) for n in range(100_000))))"


def start(script: str) -> tuple[subprocess.Popen, str, list[int]]:
    """A process with a local cluster, the cluster's address, and the pids of its workers."""
    environment = {**os.environ, **ray_cluster.ENVIRONMENT}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment,
    )  # fmt: skip
    assert owner.stdout is not None
    words = owner.stdout.readline().split()
    assert words, owner.communicate()[1]
    return owner, words[0], [int(pid) for pid in words[1:]]


def gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def soon(happens, seconds: float = 30.0) -> bool:
    waited = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if happens():
            return True
        waited.wait(0.05)
    return False


@needs_ray
@pytest.mark.slow
def test_a_local_cluster_does_what_a_lost_worker_left(tmp_path):
    before = dict(os.environ)
    with open_workers("ray") as workers:
        task = partial(die_once, str(tmp_path))
        assert sorted(workers.map(task, [(n,) for n in range(3)])) == [(n, n) for n in range(3)]
        assert workers.address.startswith("127.0.0.1:")
    assert dict(os.environ) == before


@needs_ray
@pytest.mark.slow
def test_spots_of_two_workers_one_of_whom_is_killed_are_those_of_one_process(tmp_path):
    scenes, goals = ["foyer-1", "foyer-2"], ["Cup", "Tomato", "Knife"]
    make_spot_files(scenes, goals, tmp_path / "one", candidates=6)
    killed: list[int] = []
    with open_workers("ray") as workers:

        def kill_once(done: int, _: int) -> None:
            if done == 2 and not killed:
                killed.extend(worker_pids())
                os.kill(killed[0], signal.SIGKILL)

        make_spot_files(scenes, goals, tmp_path / "two", kill_once, candidates=6, workers=workers)
    assert killed
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(names) == 6 and names == sorted(path.name for path in (tmp_path / "two").iterdir())
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in names)


def worker_pids() -> list[int]:
    """Workers of Ray that make spots now."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::call_packed"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@needs_ray
@pytest.mark.slow
def test_a_cluster_that_runs_is_used_and_left_running(tmp_path, monkeypatch):
    owner, address, pids = start(WAIT)
    for name, value in (*ray_cluster.ENVIRONMENT.items(), ("RAY_AUTH_MODE", "token")):
        monkeypatch.setenv(name, value)
    with open_workers(f"ray:{address}") as workers:
        assert len(dict(workers.map(pid_of, [(n,) for n in range(4)]))) == 4
        workers.check_folder(tmp_path)
        with monkeypatch.context() as here:
            here.setattr(os, "listdir", lambda path: ["seen here alone"])
            with pytest.raises(
                DataError, match="does not see this folder as it is here; what workers read must lie in"
            ):
                workers.check_folder(tmp_path)
    with monkeypatch.context() as here:
        here.setattr("scrubjay.__version__", "0.0.1")
        with pytest.raises(ClusterError, match=r"has Scrubjay .*, here is 0\.0\.1: install the same everywhere"):
            open_workers(f"ray:{address}")
    assert owner.poll() is None
    _, errors = owner.communicate("\n", timeout=60)
    assert (owner.returncode, errors) == (0, "") and soon(lambda: all(map(gone, pids)))


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_no_worker_outlives_its_owner(how):
    owner, address, pids = start(WORK)
    owner.send_signal(how)
    owner.communicate(timeout=60)
    assert owner.returncode != 0 and soon(lambda: all(map(gone, pids)))
    host, port = address.split(":")
    with pytest.raises(ConnectionError):
        socket.create_connection((host, int(port)), 1).close()


@pytest.mark.parametrize("scheme", ["ray:", "ray://"])
def test_a_cluster_that_cannot_be_reached_is_one_sentence(scheme):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(
            ClusterError, match=rf"no Ray cluster can be reached at .*127\.0\.0\.1:{port} .*is it running"
        ):
            open_workers(f"{scheme}127.0.0.1:{port}")


def test_another_server_is_no_cluster():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ClusterError, match=r"what listens at .* is no Ray cluster: is this its port"):
            open_workers(f"ray:127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"needs the package ray: install it with `pip install 'scrubjay\[ray\]'`"):
        open_workers("ray")
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_nothing_imports_ray_unasked():
    code = "import sys, scrubjay.cli.main, scrubjay.workers.ray_cluster; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
