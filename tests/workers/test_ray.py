"""A Ray cluster as workers: local, quiet and closed to the network; and clusters that cannot be used."""

import os
import subprocess
import sys

import pytest

ray = pytest.importorskip("ray")
LOCAL = """
import os, signal, sys
from scrubjay.workers.choose import open_workers
from workers_helpers import pid_of
with open_workers("ray") as workers:
    pids = {pid for _, pid in workers.map(pid_of, [(n,) for n in range(20)])}
    print(workers.address, *pids, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def cluster():
    """A local cluster in another process: that process, its address, and the pids of its workers."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    owner = subprocess.Popen(
        [sys.executable, "-c", LOCAL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert owner.stdout is not None
    address, *pids = owner.stdout.readline().split()
    yield owner, address, [int(pid) for pid in pids]
    owner.communicate("\n", timeout=60)
    assert owner.returncode == 0
