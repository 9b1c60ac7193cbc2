"""How processes find each other, and whether they can train together, before they do anything else.

They talk through torch's key-value store, as text: processes of different versions can still tell each other so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import torch
from torch.distributed import DistError, PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

import scrubjay
from scrubjay.errors import ClusterError
from scrubjay.training.run import VERSION

CONNECT = timedelta(seconds=120)
"""How long a process tries to reach the first one."""
STARTUP = timedelta(minutes=5)
"""How long it waits for the others to start, which read the package from a network's disk at once."""
SHARED_SECONDS = 20.0
"""How long a file that one process has written may take to appear to another."""
REMEDIES = {
    "python": "install the same Python on every node",
    "torch": "install the same version on every node",
    "scrubjay": "install the same version on every node",
    "sources": "update the package on every node, so that its files are the same",
    "run": "install the same version on every node",
    "device": "give every node the same --device",
    "config": "give every node the same command",
}
"""What must be equal in all processes, and what to do if it is not."""


def describe(config: str, device: str) -> dict[str, str]:
    """What this process has in common with the others, if all is well. `config`: a new run's as JSON, else empty."""
    package = Path(scrubjay.__file__).parent
    sources = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        sources.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return {
        "host": socket.gethostname(),
        "python": ".".join(map(str, sys.version_info[:2])),
        "torch": torch.__version__.split("+")[0],
        "scrubjay": scrubjay.__version__,
        "sources": sources.hexdigest()[:12],
        "run": str(VERSION),
        "device": device.split(":")[0],
        "config": config,
    }


def connect() -> tuple[Store, int, int]:
    """The processes' store, this one's rank, and their number; ClusterError if the first cannot be reached."""
    where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    try:
        return next(rendezvous("env://", timeout=CONNECT))
    except (DistError, OSError, ValueError) as error:
        raise ClusterError(
            f"the first process at {where} cannot be reached within {CONNECT.seconds} seconds "
            f"({str(error).splitlines()[0].split('[')[0].strip()}): check the address, that the port is open between "
            f"the nodes, and that all {os.environ['WORLD_SIZE']} processes were started"
        ) from error


def meet(store: Store, rank: int, size: int, mine: Mapping[str, str]) -> Store:
    """Waits until all processes have told each other what they are; their own part of the store.

    ClusterError if some do not come, or differ from the first in what must be equal. torchrun may keep one store for
    all its restarts, with what processes that are gone have written. So each process has a number of its own, and the
    first one lists those it knows until each has confirmed that it is on the list.
    """
    me = {**mine, "number": secrets.token_hex(8)}
    store.set(f"process/{rank}", json.dumps(me))
    name, until = "", time.monotonic() + STARTUP.total_seconds()
    while True:
        everyone = _list(store, rank, size)
        if everyone and everyone[rank] == me:
            name = hashlib.sha256(json.dumps(everyone).encode()).hexdigest()
            store.set(f"{name}/{rank}", "here")
            if rank == 0 and store.check([f"{name}/{each}" for each in range(size)]):
                store.set(f"{name}/complete", "")
            if store.check([f"{name}/complete"]):
                break
        if time.monotonic() > until:
            here = [each for each in range(size) if each == rank or (name and store.check([f"{name}/{each}"]))]
            missing = ", ".join(str(each) for each in range(size) if each not in here)
            raise ClusterError(
                f"of {size} processes {missing} did not start within {STARTUP.total_seconds():.0f} seconds: see what "
                "they print, and start all of them again"
            )
        time.sleep(0.05)
    own, problem = PrefixStore(name, store), difference(everyone)
    if problem:
        _leave_together(own, size)
        raise ClusterError(problem)
    return own


def _list(store: Store, rank: int, size: int) -> list[dict[str, str]]:
    """The processes as the first one knows them; empty until all have been there once."""
    if rank == 0:
        keys = [f"process/{each}" for each in range(size)]
        if store.check(keys):
            store.set("list", json.dumps([json.loads(text) for text in store.multi_get(keys)]))
    return json.loads(store.get("list")) if store.check(["list"]) else []


def difference(processes: Sequence[Mapping[str, str]]) -> str:
    """In one sentence, how a process differs from the first and what to do; empty if all are alike."""
    first = processes[0]
    for rank, each in enumerate(processes):
        for name, remedy in REMEDIES.items():
            if each[name] != first[name]:
                what = f"{name} {each[name]}, and process 0 on {first['host']} has {first[name]}"
                if name == "config":
                    what = f"another {_fields(each[name], first[name])} than process 0 on {first['host']}"
                return f"process {rank} on {each['host']} has {what}: {remedy}"
    return ""


def _fields(one: str, other: str) -> str:
    """The fields in which two configs differ."""
    a, b = (json.loads(text) if text else {} for text in (one, other))
    return ", ".join(name for name in (a or b) if a.get(name) != b.get(name)) if a and b else "run"


def _leave_together(store: Store, size: int) -> None:
    """The store may be in the first process: it waits until all have read what they need."""
    with contextlib.suppress(DistError):
        store.add("read", 1)
        until = time.monotonic() + 10
        while store.add("read", 0) < size and time.monotonic() < until:
            time.sleep(0.02)


def appears(path: Path, content: str) -> bool:
    """Does a file that another process has written appear here?"""
    until = time.monotonic() + SHARED_SECONDS
    while True:
        with contextlib.suppress(OSError):
            if path.read_text() == content:
                return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.1)
