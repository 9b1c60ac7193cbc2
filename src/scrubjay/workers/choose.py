"""Workers by name, as `--workers` takes them."""

from __future__ import annotations

import re

from scrubjay.workers.base import HERE, Workers
from scrubjay.workers.pool import ProcessWorkers

CHOICES = "a number of processes from 1, ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT"
RAY = "ray"


def is_name(words: str) -> bool:
    """Whether `open_workers` takes a name."""
    return bool(re.fullmatch(r"0*[1-9]\d*|ray|ray:auto|ray:(//)?[^/\s]+:\d{1,5}", words))


def open_workers(words: str) -> Workers:
    """Workers by name: N processes of this machine (1 is this one), `ray` for a local cluster that is started for them,
    `ray:auto`, `ray:HOST:PORT` or `ray://HOST:PORT` for one that runs.

    ValueError for another name, ClusterError for a cluster that cannot be used.
    """
    if not is_name(words):
        raise ValueError(f"workers: {CHOICES}, not {words}")
    if words.isdecimal():
        return HERE if int(words) == 1 else ProcessWorkers(int(words))
    from scrubjay.workers.ray_cluster import RayWorkers

    if words == RAY:
        return RayWorkers()
    return RayWorkers(words if words.startswith("ray://") else words.removeprefix("ray:"))
