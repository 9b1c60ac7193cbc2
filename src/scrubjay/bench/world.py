"""How fast rooms are built, looked at and acted in, and what they weigh."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console

from scrubjay.world.generate import SCENES, make_room
from scrubjay.world.mjcf import compile_room
from scrubjay.world.room import GOALS
from scrubjay.world.world import HAND_MOVES, HAND_TURNS, World


def measure(rooms: int, copies: int, seconds: float, size: int, renderer: str, console: Console) -> dict:
    """All figures of the world, by name."""
    console.print(f"building {rooms} rooms")
    step = max(1, 120 // rooms)
    build, compiled = [], []
    for scene in SCENES[:120:step][:rooms]:
        start = time.perf_counter()
        compiled.append(compile_room(make_room(scene)))
        build.append(time.perf_counter() - start)
    rng = np.random.default_rng(0)
    with World(compiled[:1], copies, renderer, size) as world:
        console.print(f"looking through {world.renderer.name}")
        speeds = {}
        for name, kinds in {"rgb_fps": ("rgb",), "rgb_ids_fps": ("rgb", "ids"), "normals_fps": ("normals",)}.items():
            speeds[name] = round(len(world) * _rate(lambda kinds=kinds: _look(world, rng, kinds), seconds), 1)
        drawn = world.renderer.name
    with World(compiled, copies, renderer, size) as world:
        console.print("acting with the hand")
        hands, settle = _hands(world, rng, seconds)
        console.print("walking")
        walk = len(world) * _rate(lambda: world.move(rng.integers(3, size=len(world))), min(seconds, 2))
        world.view(("rgb", "ids"))
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        **speeds,
        "build_s": round(float(np.mean(build)), 4),
        "build_max_s": round(max(build), 4),
        "hand_actions_per_s": round(hands, 1),
        "settle_s": round(settle, 5),
        "walk_steps_per_s": round(walk),
        "rss_mib": round(rss),
        "rooms": rooms,
        "copies": copies,
        "renderer": drawn,
        "machine": platform.processor() or platform.machine(),
    }


def _rate(act: Callable[[], object], seconds: float) -> float:
    """Calls a second, after one for warming up."""
    act()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        act()
        calls += 1
    return calls / (time.perf_counter() - start)


def _scatter(world: World, rng: np.random.Generator) -> None:
    """Agents at random reachable positions, turned and standing at random."""
    for b in range(len(world)):
        positions = world.reachable[world.room_of[b]].positions
        world.state.position[b] = positions[rng.integers(len(positions))]
    world.state.rotation[:] = 90.0 * rng.integers(4, size=len(world))
    world.state.standing[:] = rng.random(len(world)) < 0.5


def _look(world: World, rng: np.random.Generator, kinds: tuple[str, ...]) -> None:
    _scatter(world, rng)
    world.view(kinds)


def _hands(world: World, rng: np.random.Generator, seconds: float) -> tuple[float, float]:
    """Hand movements and rotations a second with all threads, and the mean time of a drop until it rests."""
    count, actions, acting, dropping, drops = len(world), 0, 0.0, 0.0, 0
    while acting < seconds:
        _scatter(world, rng)
        world.hold(rng.integers(len(GOALS), size=count))
        start = time.perf_counter()
        for _ in range(10):
            turns = rng.random(count) < 0.25
            world.move_hand(np.where(turns, -1, rng.integers(len(HAND_MOVES), size=count)))
            world.rotate_hand(np.where(turns, rng.integers(len(HAND_TURNS), size=count), -1))
            actions += int(world.state.held.sum())
        middle = time.perf_counter()
        drops += int(world.drop(np.ones(count, bool)).sum())
        acting, dropping = acting + middle - start, dropping + time.perf_counter() - middle
    return actions / acting, dropping / max(drops, 1)
