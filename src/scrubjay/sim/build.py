"""Builds rooms from their names, many of them in child processes."""

from __future__ import annotations

import os
from collections.abc import Sequence

from scrubjay.rooms import molmospaces
from scrubjay.rooms.generate import make_room
from scrubjay.sim.compile import CompiledRoom, compile_room
from scrubjay.workers.pool import ProcessWorkers

MIN_ROOMS = 4
"""Rooms for which it pays to start a process."""


def build_room(scene: str) -> CompiledRoom:
    """Makes a room by its name and compiles it, or loads one of `molmospaces:PATH`."""
    if scene.startswith(molmospaces.PREFIX):
        from scrubjay.sim.molmospaces import load_molmospaces  # Imported late: few programs need it.

        return load_molmospaces(molmospaces.scene_path(scene))
    return compile_room(make_room(scene))


def build_rooms(scenes: Sequence[str], processes: int | None = None) -> list[CompiledRoom]:
    """Generates rooms and compiles them, in at most `processes` child processes (by default one per core)."""
    processes = min(processes or os.cpu_count() or 1, len(scenes) // MIN_ROOMS)
    if processes < 2:
        return [build_room(scene) for scene in scenes]
    with ProcessWorkers(processes) as workers:
        rooms = dict(workers.map(build_room, [(scene,) for scene in scenes]))
    return [rooms[index] for index in range(len(scenes))]
