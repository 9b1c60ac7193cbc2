"""Times that must stay small, as ratios of two times on the same machine: they mean the same on a busy one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console

from scrubjay.bench.world import spread
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.generate import SCENES
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.world import World
from scrubjay.spots.spots import candidate_spots
from scrubjay.study.record import machine

LIMITS = {"slowest_room": 3.0, "visibility": 0.2, "import": 0.5}
"""The largest ratio that is in order: the slowest fixed room to the median one, what sees a hiding spot to rendering it
from everywhere, and importing the package to importing NumPy."""


def measure(rooms: int, console: Console) -> dict:
    """The ratios by name, and those that are above their limits."""
    console.print(f"making {rooms} rooms")
    ratios = {"slowest_room": _slowest_room(SCENES[:: max(1, len(SCENES) // rooms)][:rooms])}
    console.print("looking for a hiding spot")
    ratios["visibility"] = _visibility(spread(4))
    console.print("importing")
    ratios["import"] = _import()
    ratios = {name: round(ratio, 3) for name, ratio in ratios.items()}
    too_large = [name for name, ratio in ratios.items() if ratio > LIMITS[name]]
    return {"ratios": ratios, "limits": LIMITS, "too_large": too_large, "machine": machine("cpu")}


def _seconds(work: Callable[..., object], *arguments: Any, times: int = 1) -> float:
    """CPU time of the fastest of some tries."""
    tries = []
    for _ in range(times):
        start = time.process_time()
        work(*arguments)
        tries.append(time.process_time() - start)
    return min(tries)


def _slowest_room(scenes: tuple[str, ...]) -> float:
    """Making and compiling the slowest room to the median one; the slowest few are measured again."""
    taken = {scene: _seconds(build_room, scene) for scene in scenes}
    for scene in sorted(taken, key=taken.__getitem__)[-3:]:
        taken[scene] = min(taken[scene], _seconds(build_room, scene, times=2))
    return max(taken.values()) / float(np.median(list(taken.values())))


def _visibility(scenes: list[str]) -> float:
    """From where a hiding spot is visible, to rendering the spot from all those poses."""
    rng, alone, rendered = np.random.default_rng(0), 0.0, 0.0
    for scene, goal in zip(scenes, GOALS, strict=False):
        room = build_room(scene)
        grid, spot = room.floor.reachable(), candidate_spots(room, goal, 1, rng)[0]
        is_open, pose = spot.is_open(room), np.array(spot.pose)
        visible_from(room, is_open, goal, pose, grid)  # What is kept for a room is computed once.
        alone += _seconds(visible_from, room, is_open, goal, pose, grid, times=3)
        with World([room], 8) as world:
            world.view(("ids",))
            rendered += _seconds(world.view, ("ids",), times=3) * len(grid)
    return alone / rendered


def _import() -> float:
    code = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    package, numpy = (
        min(float(subprocess.check_output([sys.executable, "-c", code.format(name)])) for _ in range(3))
        for name in ("scrubjay", "numpy")
    )
    return package / numpy
