"""Benchmarks of the world: building rooms, rendering, acting, memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle

import numpy as np
import torch
from rich.console import Console

from scrubjay.rooms.generate import SCENES
from scrubjay.rooms.room import GOALS
from scrubjay.sim import cells
from scrubjay.sim.build import build_room, build_rooms
from scrubjay.sim.render.base import GOAL_ALONE, WITHOUT_OPENABLES
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS, World
from scrubjay.study.record import machine

TRAIN = [scene for start in range(0, 120, 30) for scene in SCENES[start : start + 20]]
"""The 80 train rooms of four types."""
FIRST_FRAME = """
import sys, time
from scrubjay.sim.build import build_room
from scrubjay.sim.render.make import make_renderer
from scrubjay.sim.world import World
room = build_room("FloorPlan1")
start = time.perf_counter()
with World([room], renderer=sys.argv[1], device=sys.argv[2]) as world:
    world.view(("rgb", "ids")).rgb.cpu()
    print(time.perf_counter() - start)
"""


def spread(count: int) -> list[str]:
    """Scenes of all four types, evenly; beyond the 80 train rooms, from other seeds."""
    scenes = TRAIN[:: max(1, len(TRAIN) // count)][:count]
    kinds = ("kitchen", "living_room", "bedroom", "bathroom")
    return scenes + [f"{kinds[i % 4]}-{i}" for i in range(count - len(scenes))]


def measure(rooms: int, copies: int, seconds: float, size: int, renderer: str, device: str, console: Console) -> dict:
    """All figures of the world benchmark, by name."""
    console.print(f"building {rooms} rooms")
    build = []
    for scene in spread(min(rooms, 10)):
        start = time.perf_counter()
        build_room(scene)
        build.append(time.perf_counter() - start)
    compiled = build_rooms(spread(rooms))
    rng = np.random.default_rng(0)
    figures: dict = {}
    with World(compiled, copies, renderer, size, device) as world:
        console.print(f"rendering with {world.renderer.name}")
        # On a CPU one room is measured, to be comparable with other engines.
        rendered = world if device.startswith("cuda") else World(compiled[:1], copies, renderer, size, device)
        figures |= render_rates(rendered, rng, seconds)
        console.print("acting with the hand")
        hands, settle = _hands(world, rng, seconds)
        console.print("walking")
        walk = len(world) * rate(lambda: world.move(rng.integers(3, size=len(world))), min(seconds, 2), device)
        world.view(("rgb", "ids"))
        if device.startswith("cuda"):
            free, total = torch.cuda.mem_get_info(device)
            figures["gpu_mib"] = round((total - free) / 2**20)
        renderer_name = world.renderer.name
    console.print("first frame, cold and warm")
    cold, warm = first_frames(renderer, device)
    return {
        **figures,
        "build_s": round(float(np.mean(build)), 4),
        "build_max_s": round(max(build), 4),
        "hand_actions_per_s": round(hands, 1),
        "settle_s": round(settle, 5),
        "walk_steps_per_s": round(walk),
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "first_frame_cold_s": cold,
        "first_frame_warm_s": warm,
        "rooms": rooms,
        "copies": copies,
        "geoms": round(float(np.mean([room.visual_geoms for room in compiled])), 1),
        "renderer": renderer_name,
        "machine": machine(device),
    }


def render_rates(world: World, rng: np.random.Generator, seconds: float, names: tuple[str, ...] = ()) -> dict:
    """Frames per second of the views that a game requests (or those in `names`); agents move before each frame."""
    views: dict[str, Callable[[], object]] = {
        "rgb_fps": lambda: world.view(("rgb",)),
        "rgb_ids_fps": lambda: world.view(("rgb", "ids")),
        "rgb_ids_cells_fps": lambda: _cells(world),
        "goal_alone_fps": lambda: world.view(("ids",), GOAL_ALONE),
        "without_openables_fps": lambda: world.view(("ids",), WITHOUT_OPENABLES),
        "normals_fps": lambda: world.view(("normals",)),
    }
    scatter(world, rng)
    world.hold(rng.integers(len(GOALS), size=len(world)))
    world.state.open[:] = rng.random(world.state.open.shape) < 0.05
    device = world.view(("rgb",)).rgb.device
    poses = [_random_poses(world, rng) for _ in range(8)]

    def from_next_pose(render: Callable[[], object]) -> Callable[[], None]:
        upcoming = cycle(poses)

        def move_and_render() -> None:
            world.state.position[:], world.state.rotation[:] = next(upcoming)
            render()

        return move_and_render

    return {
        name: round(len(world) * rate(from_next_pose(render), seconds, str(device)), 1)
        for name, render in views.items()
        if not names or name in names
    }


def _cells(world: World) -> torch.Tensor:
    """Renders rgb and ids, and reduces the ids to the cells' openables and goal pixels."""
    view = world.view(("rgb", "ids"))
    openables, _ = cells.openables_at_cells(view.ids, world.openable_of_thing.to(view.ids.device))
    return torch.stack([openables.int(), cells.pixels_per_cell(world.goal_mask(view))]).cpu()


def rate(act: Callable[[], object], seconds: float, device: str = "cpu") -> float:
    """Calls per second, after two warm-up calls; synchronizes with a GPU before and after."""

    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    act()
    act()
    wait()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        act()
        calls += 1
        if calls % 4 == 0:
            wait()
    wait()
    return calls / (time.perf_counter() - start)


def _random_poses(world: World, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random reachable positions and rotations."""
    grids = [grid.positions for grid in world.reachable]
    positions = np.stack([grids[room][rng.integers(len(grids[room]))] for room in world.room_of])
    return positions, 90.0 * rng.integers(4, size=len(world))


def scatter(world: World, rng: np.random.Generator) -> None:
    """Moves agents to random reachable positions, rotations and postures."""
    world.state.position[:], world.state.rotation[:] = _random_poses(world, rng)
    world.state.standing[:] = rng.random(len(world)) < 0.5


def _hands(world: World, rng: np.random.Generator, seconds: float) -> tuple[float, float]:
    """Hand actions per second with all threads, and the mean seconds of a drop until the object rests."""
    count, actions, acting, dropping, drops = len(world), 0, 0.0, 0.0, 0
    while acting < seconds:
        scatter(world, rng)
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


def first_frames(renderer: str, device: str) -> tuple[float, float]:
    """Seconds from a compiled room to its first frame in a new process, without and with cached kernels."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "WARP_CACHE_PATH": cache}
        command = [sys.executable, "-c", FIRST_FRAME, renderer, device]
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    cold, warm = (round(float(run.stdout.split()[-1]), 3) for run in runs)
    return cold, warm
