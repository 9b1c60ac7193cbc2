"""A long run of random play, to check that memory stays flat and images stay consistent with the state."""

from __future__ import annotations

import time

import numpy as np
import torch
from rich.console import Console

from scrubjay.bench.world import TRAIN, scatter
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_rooms
from scrubjay.sim.pose import cameras
from scrubjay.sim.render.base import Shot
from scrubjay.sim.render.opengl import OpenGLRenderer
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS, World
from scrubjay.study.record import machine


def measure(device: str, minutes: float, copies: int, interval: float, console: Console) -> dict:
    """Plays at random in all 80 train rooms and samples memory and images at intervals."""
    console.print(f"building {len(TRAIN)} rooms")
    rng = np.random.default_rng(0)
    samples: list[dict] = []
    with World(build_rooms(TRAIN), copies, device=device) as world:
        scatter(world, rng)
        world.view(("rgb", "ids"))
        start, steps = time.monotonic(), 0
        while time.monotonic() - start < 60 * minutes:
            play(world, rng)
            view = world.view(("rgb", "ids"))
            steps += 1
            if time.monotonic() - start > interval * len(samples):
                samples.append(
                    {
                        "s": round(time.monotonic() - start),
                        "steps": steps,
                        "host_mib": _host_mib(),
                        "gpu_mib": _gpu_mib(device),
                        "ids_equal": check(world, view.ids, rng),
                    }
                )
                console.print(samples[-1])
    settled = samples[len(samples) // 4 :]
    return {
        "minutes": minutes,
        "worlds": len(TRAIN) * copies,
        "world_steps": steps * len(TRAIN) * copies,
        "host_mib_first_last": [settled[0]["host_mib"], settled[-1]["host_mib"]],
        "gpu_mib_first_last": [settled[0]["gpu_mib"], settled[-1]["gpu_mib"]],
        "ids_equal_least": min(sample["ids_equal"] for sample in samples),
        "checks": len(samples),
        "machine": machine(device),
    }


def play(world: World, rng: np.random.Generator) -> None:
    """One random action in every world, mostly walking, as by an untrained agent."""
    count = len(world)
    kind = rng.choice(8, size=count, p=[0.45, 0.16, 0.04, 0.14, 0.05, 0.03, 0.11, 0.02])

    def where(number: int, values: np.ndarray) -> np.ndarray:
        return np.where(kind == number, values, -1)

    world.move(where(0, rng.integers(3, size=count)))
    world.rotate(where(1, rng.integers(2, size=count)))
    world.stand(where(2, rng.integers(2, size=count)))
    world.open_at(where(3, rng.integers(7, size=count)), where(3, rng.integers(7, size=count)))
    world.close_near(kind == 4)
    world.hold(where(5, rng.integers(len(GOALS), size=count)))
    world.move_hand(where(6, rng.integers(len(HAND_MOVES), size=count)))
    world.rotate_hand(where(6, np.where(rng.random(count) < 0.2, rng.integers(len(HAND_TURNS), size=count), -1)))
    world.drop(kind == 7)


def check(world: World, ids: torch.Tensor, rng: np.random.Generator, worlds: int = 4) -> float:
    """The minimum over a few worlds of the share of pixels whose id agrees with OpenGL's rendering of the state."""
    s, agreement = world.state, 1.0
    for b in rng.choice(len(world), worlds, replace=False):
        one = slice(b, b + 1)
        eye, matrix = cameras(s.position[one], s.rotation[one], s.standing[one])
        opengl = OpenGLRenderer([world.rooms[world.room_of[b]]], 1, world.size)
        expected = opengl.draw(Shot(eye, matrix, s.open[one], s.goal[one], s.pose[one]), ("ids",)).ids[0]
        opengl.close()
        agreement = min(agreement, float((expected == ids[b].cpu()).float().mean()))
    return round(agreement, 5)


def _host_mib() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


def _gpu_mib(device: str) -> int:
    if not device.startswith("cuda"):
        return 0
    free, total = torch.cuda.mem_get_info(device)
    return (total - free) >> 20
