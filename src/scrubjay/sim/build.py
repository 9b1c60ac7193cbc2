"""Many rooms built side by side, in processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from scrubjay.rooms.generate import make_room
from scrubjay.sim.compile import CompiledRoom, compile_room


def build_room(scene: str) -> CompiledRoom:
    """A room by its name, compiled."""
    return compile_room(make_room(scene))


def build_rooms(scenes: Sequence[str], processes: int | None = None) -> list[CompiledRoom]:
    """Rooms by their names, compiled. Fresh processes, since one with CUDA in use cannot be copied."""
    processes = min(processes or os.cpu_count() or 1, len(scenes) // 4)
    if processes < 2:
        return [build_room(scene) for scene in scenes]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(build_room, scenes, chunksize=2))
