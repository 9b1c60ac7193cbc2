"""How many steps of play an agent learns from in a second, rendering, game, acting and learning included."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import torch
from rich.console import Console

from scrubjay.bench.world import machine
from scrubjay.learning.config import TRAIN, changed
from scrubjay.learning.train import Trainer


def measure(preset: str, device: str, updates: int, changes: dict, console: Console) -> dict:
    """Steps a second of a preset's training, what each part of an update takes, and the memory."""
    training = changed(preset, **changes)
    console.print(f"building {len(training.scenes)} rooms")
    with contextlib.closing(Trainer(training, device)) as trainer:
        collector, replay = trainer.segment()
        console.print(f"{training.games} games of {training.task}")
        for _ in range(2):
            trainer.update(collector, replay)
        parts: dict[str, float] = {}
        _wait(device)
        start = time.perf_counter()
        for _ in range(updates):
            trainer.update(collector, replay)
        _wait(device)
        seconds = (time.perf_counter() - start) / updates
        steps = training.games * training.length
        # The parts one after another, each waited for: what overlaps in training is counted in full here.
        with _timed(parts, "collect", device):
            rollout = collector.collect(training.length)
        with _timed(parts, "learn", device):
            trainer.learn(rollout)
        if replay is not None:
            with _timed(parts, "replay", device):
                trainer.replay(replay)
        with _timed(parts, "render", device):
            for _ in range(training.length):
                for world in trainer.worlds:
                    world.view(("rgb", "ids", "depth"))
    gib = torch.cuda.max_memory_allocated(device) / 2**30 if device.startswith("cuda") else 0.0
    return {
        "preset": preset,
        "steps_per_s": round(steps / seconds, 1),
        "update_ms": round(1000 * seconds, 1),
        **{f"{name}_ms": round(1000 * value, 1) for name, value in parts.items()},
        "games": training.games,
        "rooms": len(training.scenes),
        "length": training.length,
        "gpu_gib": round(gib, 1),
        "machine": machine(device),
        "torch": torch.__version__,
    }


def rooms(count: int) -> tuple[str, ...]:
    """Some of the train rooms, of all types."""
    return TRAIN[:: max(1, len(TRAIN) // count)][:count]


@contextlib.contextmanager
def _timed(parts: dict[str, float], name: str, device: str) -> Iterator[None]:
    """Notes how long something took on the device and around it."""
    _wait(device)
    start = time.perf_counter()
    yield
    _wait(device)
    parts[name] = time.perf_counter() - start


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
