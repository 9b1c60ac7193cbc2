"""The engine without a connection; the unmodified client in an environment and a home of its own, and a display."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from thor.driver import BASE, Client

from scrubjay.thor.install import COMMIT, install, launcher_path

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
CLIENT = "ai2thor==5.0.0"


def make_environment(folder: Path, *packages: str, options: tuple[str, ...] = ()) -> Path:
    """The interpreter of a virtual environment with packages from the registry; made once for a checkout.

    Skips the test where they cannot be had.
    """
    python, done = folder / "bin" / "python", folder / "done.txt"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # Several processes run the tests.
        if not (done.exists() and done.read_text() == str(packages)):
            if not python.exists():
                subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
            made = subprocess.run([*pip, *options, *packages], capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"{', '.join(packages)} cannot be installed here: {made.stderr.strip().splitlines()[-1]}")
            done.write_text(str(packages))
    return python


@pytest.fixture(scope="session")
def client_python() -> Path:
    """An interpreter that has the client."""
    pytest.importorskip("msgpack")
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    return make_environment(ROOT / "out" / f"{CLIENT.replace('==', '-')}-{version}", CLIENT)


@pytest.fixture(scope="session")
def allenact(client_python: Path) -> Path:
    """The folder of allenact and its plugins, without their dependencies."""
    folder = client_python.parents[1]
    packages = ("allenact==0.5.4", "allenact-plugins==0.5.4")
    python = make_environment(folder.with_name(f"{folder.name}-allenact"), *packages, options=("--no-deps",))
    return next((python.parents[1] / "lib").glob("python*/site-packages"))


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    """An X display with GLX."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb here; on Debian and Ubuntu `apt-get install xvfb`")
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "1024x768x24", "+extension", "GLX", "-nolisten", "tcp"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    yield f":{server.stdout.readline().strip()}"
    server.kill()
    server.wait()


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """A home in which the engine is installed. The client deletes releases: never in the user's own."""
    home = tmp_path_factory.mktemp("home")
    install(home, COMMIT)
    return home


@pytest.fixture
def run_script(client_python: Path, home: Path) -> Callable[..., Any]:
    """Runs a script of this folder, or code, with the client; returns the JSON that it prints last."""

    def run(script: str, *arguments: str, python: Path = client_python, **environment: str) -> Any:
        clean = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "PYTHONPATH")}
        clean |= {"HOME": str(home), "OMP_NUM_THREADS": "1", **environment}
        command = [SCRIPTS / script] if script.endswith(".py") else ["-c", script]
        done = subprocess.run(
            [python, *command, *arguments], cwd=home, env=clean, capture_output=True, text=True, timeout=300
        )
        log = home / ".ai2thor" / "log" / "unity.log"
        said = log.read_text() if log.exists() else ""
        assert done.returncode == 0, f"{done.stderr}\nThe engine said:\n{said[-2000:]}"
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def _client() -> Iterator[Client]:
    client = Client()
    yield client
    client.engine.close()


@pytest.fixture(scope="module")
def _walker(_client: Client) -> Client:
    _client.reset()
    return _client


@pytest.fixture
def walker(_walker: Client) -> Client:
    """An agent at BASE that faces north; for tests that change nothing but agents, since a new room takes a second."""
    _walker.must("Initialize")
    _walker.must("TeleportFull", **BASE, rotation={"x": 0, "y": 0, "z": 0}, horizon=0, standing=True)
    return _walker


@pytest.fixture
def kitchen(_client: Client) -> Client:
    """A room as it is at first."""
    _client.reset()
    return _client


@pytest.fixture(scope="module")
def real_client(client_python: Path, home: Path) -> Iterator[None]:
    """The client in this process, in a home of its own. Of packages that both environments have, ours counts."""
    packages = next((client_python.parents[1] / "lib").glob("python*/site-packages"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(packages)])
        patch.setenv("HOME", str(home))
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        yield


@pytest.fixture(scope="session")
def executable(home: Path) -> str:
    """The engine's executable."""
    return str(launcher_path(home))
