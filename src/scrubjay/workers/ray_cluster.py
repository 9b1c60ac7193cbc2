"""Workers of a Ray cluster: a local one that is started for them, or one that runs.

Ray is an optional package, imported on use only. Tasks are not retried by Ray but by `map`, so that a task that kills
its workers is given up here as it is elsewhere, and results that were lost with their node are made again.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import pickle
import platform
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import scrubjay
from scrubjay.errors import ClusterError, DataError
from scrubjay.workers.base import Result, Tasks, Workers, pack_function
from scrubjay.workers.processes import answer

CONNECT_SECONDS = 5.0
"""How long a cluster may take to accept a connection."""
CHECK_SECONDS = 60.0
"""How long its nodes may take to start their first worker."""
IN_FLIGHT = 2
"""Tasks given to the cluster for each of its cores: one at work, one waiting."""
HTTP2_PREFACE, HTTP2_SETTINGS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What a client of gRPC says first, and the first frame of either side."""
QUIET: dict[str, Any] = {"logging_level": logging.CRITICAL, "log_to_driver": False}
LOOPBACK = "127.0.0.1"
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
"""Of a local cluster. Nothing is reported to Ray's makers. Without the second, Ray replaces the loopback address by
this machine's and listens to the network. The third is asked of whoever wants to use it, in versions that ask."""
SHORT_FOLDER = "/tmp"
"""Where a local cluster's sockets are: their paths may have 107 characters, and Ray adds 64."""
PACKAGES = {"MuJoCo": "mujoco", "NumPy": "numpy", "PyTorch": "torch", "Ray": "ray"}
"""Whose versions must be equal everywhere for equal results."""


class RayWorkers(Workers):
    """The cores of a Ray cluster, each with one task at a time."""

    def __init__(self, address: str | None = None) -> None:
        """Connects to the cluster at an address, `auto` for one of this machine; starts a local one without.

        ClusterError if that is impossible, or other versions are installed there.
        """
        self._environment: dict[str, str] | None = dict(os.environ)
        self._folder, self._connected = "", False
        self._ray: Any = None
        try:
            if address is None:
                self._start()
            else:
                self._connect(address)
                self._check_versions(address)
        except BaseException:
            self.close()
            raise

    def map(
        self, function: Callable[..., Result], items: Iterable[tuple], gpu: bool = False
    ) -> Iterator[tuple[int, Result]]:
        errors, tasks = self._ray.exceptions, Tasks(function, items)
        packed = self._ray.put(pack_function(function))
        call = self._ray.remote(num_cpus=1, num_gpus=int(gpu), max_retries=0)(call_packed)
        running: dict[Any, tuple[int, tuple]] = {}
        done: list[tuple[int, Result]] = []
        lost = (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError, errors.ObjectLostError)
        try:
            while True:
                while len(running) < IN_FLIGHT * self._slots(gpu) and (task := tasks.next()):
                    running[call.remote(packed, pickle.dumps(task[1], pickle.HIGHEST_PROTOCOL))] = task
                if done:
                    yield done.pop()
                if not running:
                    return
                (reference,), _ = self._ray.wait(list(running), num_returns=1)
                index, item = running.pop(reference)
                try:
                    result, error = pickle.loads(self._ray.get(reference))
                except lost as died:
                    tasks.lost(index, item, f"the last one is lost ({type(died).__name__}); was there enough memory?")
                    continue
                if error:
                    raise error
                done.append((index, result))
        finally:
            # After `close` nobody is left, and Ray would start a cluster to ask.
            for reference in running if self._connected else ():
                self._ray.cancel(reference, force=True)

    def check_folder(self, folder: str | os.PathLike[str]) -> None:
        path = Path(folder).resolve()
        for host, names in self._on_all_nodes(list_folder, str(path)):
            if names != list_folder(str(path)):
                raise DataError(
                    f"{path}: {host} does not see this folder as it is here; what workers read must lie in a folder "
                    "that all machines share, under the same path"
                )

    @property
    def address(self) -> str:
        """Where others find the cluster, if they know its token."""
        return self._ray.get_runtime_context().gcs_address

    def close(self) -> None:
        if self._connected:
            self._ray.shutdown()
            self._connected = False
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
        if self._environment is not None:
            for name in [name for name in os.environ if name.startswith(("RAY_", "PYTHON"))]:
                del os.environ[name]
                if name in self._environment:
                    os.environ[name] = self._environment[name]
            self._environment = None

    def _start(self) -> None:
        """Starts a local cluster."""
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._import()
        # The same package and libraries as here, wherever they were found.
        os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        from ray._private import ray_constants

        self._folder = tempfile.mkdtemp(prefix="scrubjay-", dir=SHORT_FOLDER)
        clusters = ray_constants.ENABLE_RAY_CLUSTER
        try:
            ray_constants.ENABLE_RAY_CLUSTER = False  # In case ray was imported before its variable was set.
            self._ray.init(
                "local", num_cpus=os.cpu_count(), include_dashboard=False, _node_ip_address=LOOPBACK,
                _temp_dir=self._folder, **QUIET,
            )  # fmt: skip
        finally:
            ray_constants.ENABLE_RAY_CLUSTER = clusters
        if self._ray.util.get_node_ip_address() != LOOPBACK:
            raise ClusterError("this version of Ray would open a local cluster to the network: install another one")

    def _connect(self, address: str) -> None:
        """Connects to a cluster that runs."""
        if address != "auto":
            _check_listens(address)
        self._import()
        try:
            self._ray.init(address, **QUIET)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise ClusterError(_why_not(address, error)) from error

    def _import(self) -> None:
        # Else Ray prints to standard output when a worker dies.
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
        try:
            import ray
        except ImportError as error:
            raise ClusterError(
                "--workers ray needs the package ray: install it with `pip install 'scrubjay[ray]'`"
            ) from error
        if ray.is_initialized():
            raise ClusterError("this process uses a Ray cluster already: shut it down with ray.shutdown() first")
        self._ray, self._connected = ray, True

    def _slots(self, gpu: bool) -> float:
        """Tasks that the cluster can do at once; it may grow and shrink."""
        return max(1.0, self._ray.cluster_resources().get("GPU" if gpu else "CPU", 0.0))

    def _check_versions(self, address: str) -> None:
        own = versions()
        for host, theirs in self._on_all_nodes(versions):
            if other := [name for name, version in own.items() if theirs[name] != version]:
                name = other[0]
                raise ClusterError(
                    f"{host} of the Ray cluster {address} has {name} {theirs[name]}, here is {own[name]}: install the "
                    "same everywhere, for equal results"
                )

    def _on_all_nodes(self, function: Callable[..., Result], *arguments: Any) -> list[tuple[str, Result]]:
        """Calls a function once on each machine that works; ClusterError where that is impossible."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        if not nodes:
            raise ClusterError("the Ray cluster has no machine with a free core")
        call = self._ray.remote(num_cpus=0, max_retries=0)(function)
        references = [
            call.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                *arguments
            )
            for node in nodes
        ]
        names = [node["NodeManagerHostname"] for node in nodes]
        try:
            return list(zip(names, self._ray.get(references, timeout=CHECK_SECONDS), strict=True))
        except self._ray.exceptions.GetTimeoutError as error:
            raise ClusterError(f"the Ray cluster starts no worker within {CHECK_SECONDS:.0f} seconds") from error
        except self._ray.exceptions.RayError as error:
            last = str(error).strip().splitlines()[-1]
            raise ClusterError(
                f"workers of the Ray cluster do not run Scrubjay; is it installed there? They say: {last}"
            ) from error


_newest: tuple[bytes, Callable] | None = None
"""Of a worker: the function of its last task, which may have kept something for the next one."""


def call_packed(function: bytes, item: bytes) -> bytes:
    """A worker's side of `map`: the result and the exception, one of which is None."""
    return pickle.dumps(answer(_call, (function, item)), pickle.HIGHEST_PROTOCOL)


def _call(function: bytes, item: bytes) -> Any:
    global _newest
    if _newest is None or _newest[0] != function:
        _newest = function, pickle.loads(function)
    return _newest[1](*pickle.loads(item))


def versions() -> dict[str, str]:
    """What is installed here."""
    found = {"Scrubjay": scrubjay.__version__, "Python": platform.python_version()}
    for name, package in PACKAGES.items():
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def list_folder(path: str) -> list[str] | None:
    """The names in a folder; None if there is no such folder."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return None


def _check_listens(address: str) -> None:
    """ClusterError unless a server of gRPC answers there: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.sendall(HTTP2_PREFACE + HTTP2_SETTINGS)
            answer = connection.recv(len(HTTP2_SETTINGS))
    except (OSError, OverflowError) as error:
        raise ClusterError(_why_not(address, error)) from error
    if answer[3:4] != HTTP2_SETTINGS[3:4]:
        raise ClusterError(f"what listens at {address} is no Ray cluster: is this its port?")


def _why_not(address: str, error: BaseException) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    if "ersion mismatch" in words:
        return f"the Ray cluster at {address} has other versions: install the same everywhere ({words})"
    if address == "auto":
        return "no Ray cluster runs on this machine: start one with `ray start --head`, or use --workers ray"
    return (
        f"no Ray cluster can be reached at {address} ({words[:80]}): is it running, its port open, and does it ask "
        "for a token (RAY_AUTH_MODE=token)?"
    )
