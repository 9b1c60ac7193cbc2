"""Training speed in environment steps per second: rendering, game, agent and learning included."""

from __future__ import annotations

import contextlib
import cProfile
import io
import pstats
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import PAPER, SMALL, preset_name
from scrubjay.files import write_atomically
from scrubjay.game.cache import CacheGame
from scrubjay.game.observation import observe
from scrubjay.players.base import RandomPlayer
from scrubjay.study.record import machine
from scrubjay.training.config import PRESETS, TrainConfig
from scrubjay.training.rollout import Collector, Rollout
from scrubjay.training.trainer import Trainer

MAX_WARMUP = 8
"""Updates before measuring, at most."""
KINDS = ("rgb", "ids", "depth")
"""Images rendered at every step."""
MINIBATCH_STEPS = 320 * 32
"""Steps of a minibatch with the paper's hyperparameters, which do not name one."""


def measure(
    config: TrainConfig,
    device: str,
    updates: int,
    console: Console,
    profile: Path | None = None,
    agent: Agent | None = None,
) -> dict[str, Any]:
    """Steps and games per second, milliseconds of each part of an update, and GPU memory.

    `agent` is the one that learns, with the config's networks, by default an untrained one. `profile`: writes where the
    host spends one more update, function by function, to a text file.
    """
    console.print(f"building {len(config.scenes)} rooms")
    with contextlib.closing(Trainer(config, device)) as trainer:
        if agent is not None:
            trainer.agent.load_state_dict(agent.state_dict())
        collector, replay = trainer.start_segment()
        console.print(f"{config.games} games of {config.task}")
        warm, graphs = 0, -1
        while warm < 3 or (len(trainer.graphs) > graphs and warm < MAX_WARMUP):
            graphs, warm = len(trainer.graphs), warm + 1
            trainer.update(collector, replay)
        console.print(f"measuring {updates} updates after {warm} others")
        parts: dict[str, float] = {}
        times, before = list[float](), trainer.progress
        for _ in range(updates):
            _wait(device)
            start = time.perf_counter()
            trainer.update(collector, replay)
            times.append(time.perf_counter() - start)
        # Kinds of minibatches that first occur now are compiled and captured now: the median leaves those updates out.
        seconds = statistics.median(times)
        console.print("updates took " + ", ".join(f"{each:.2f}" for each in times) + " s")
        steps = (trainer.progress.steps - before.steps) / updates
        games = (trainer.progress.games - before.games) / updates
        console.print(f"{steps / seconds:,.0f} steps/s, {seconds:.2f} s an update")
        if profile:
            _write_profile(profile, lambda: trainer.update(collector, replay))
            if device.startswith("cuda"):
                _write_kernels(profile.with_suffix(".kernels.txt"), lambda: _collect(trainer, collector))
        # Parts one after another, each synchronized: what overlaps in training is counted in full here.
        with _timed(parts, "collect", device):
            rollout = _collect(trainer, collector)
        with _timed(parts, "learn", device):
            trainer.train_rollout(rollout)
        if trainer.manipulations is not None:
            with _timed(parts, "manipulation", device):
                trainer.train_manipulations(trainer.manipulations)
        if collector.hiding_buffers:
            with _timed(parts, "hiding", device):
                trainer.train_hiding(collector)
        if replay is not None:
            with _timed(parts, "replay", device):
                trainer.train_dynamics(replay)
        # The parts of collecting.
        with _timed(parts, "render", device):
            for _ in range(config.unroll_length):
                for world in trainer.worlds:
                    world.view(KINDS)
        with _timed(parts, "act", device), torch.no_grad():
            for number, actor in enumerate(collector.actors):
                observation = observe(collector.games[number])
                for _ in range(config.unroll_length):
                    actor(observation, collector.is_first[number], update_state=False)
        with _timed(parts, "game", device):
            for game in collector.games:
                _play(game, config.unroll_length)
    gib = torch.cuda.max_memory_allocated(device) / 2**30 if device.startswith("cuda") else 0.0
    return {
        "task": config.task,
        "agent": preset_name(config.agent),
        "steps_per_s": round(steps / seconds, 1),
        "games_per_s": round(games / seconds, 2),
        "update_ms": round(1000 * seconds, 1),
        **{f"{name}_ms": round(1000 * value, 1) for name, value in parts.items()},
        "games": config.games,
        "rooms": len(config.scenes),
        "unroll_length": config.unroll_length,
        "minibatch_games": config.minibatch_games,
        "epochs": config.epochs,
        "overlap": config.overlap,
        "gpu_gib": round(gib, 1),
        "machine": machine(device),
        "torch": torch.__version__,
    }


def _collect(trainer: Trainer, collector: Collector) -> Rollout:
    """The next rollout, with its manipulations kept."""
    rollout = collector.collect(trainer.config.unroll_length)
    if trainer.manipulations is not None:
        trainer.manipulations.add(rollout)
    return rollout


def _play(game: CacheGame, steps: int) -> None:
    """Steps a game without an agent. Its episodes may be at any stage by now: a random player acts, not a rollout."""
    player, all_games = RandomPlayer(0), np.ones(len(game), bool)
    for _ in range(steps):
        game.step(*player(game, all_games))


def benchmark_config(preset: str, numbers: str, **changes: Any) -> TrainConfig:
    """A preset with some fields changed, with its own hyperparameters (`preset`) or the paper's."""
    if numbers == "preset":
        return TrainConfig.preset(preset, **changes)
    plain = PRESETS[preset]
    paper = TrainConfig(
        task=plain.task, scenes=plain.scenes, copies=plain.copies, unroll_length=plain.unroll_length,
        minibatch_games=MINIBATCH_STEPS // plain.unroll_length, agent=SMALL if preset == "demo" else PAPER,
    )  # fmt: skip
    return replace(paper, **changes)


def some_rooms(scenes: Sequence[str], count: int) -> tuple[str, ...]:
    """`count` of the rooms, of all their types."""
    return tuple(scenes[:: max(1, len(scenes) // count)][:count])


def _write_profile(path: Path, function: Callable[[], object]) -> None:
    """Runs a function and writes where the host spent its time."""
    profiler, text = cProfile.Profile(), io.StringIO()
    profiler.runcall(function)
    for order in ("cumulative", "tottime"):
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(60)
    write_atomically(path, text.getvalue().encode())


def _write_kernels(path: Path, function: Callable[[], object]) -> None:
    """Runs a function and writes which kernels the GPU spent its time on, and how long it was busy."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.profiler.profile(activities=kinds) as profiler:
        function()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    averages = profiler.key_averages()
    busy = sum(event.self_device_time_total for event in averages) / 1e6
    tables = [averages.table(sort_by=order, row_limit=40) for order in ("self_cuda_time_total", "self_cpu_time_total")]
    text = f"GPU busy {busy:.2f} s of {seconds:.2f} s\n" + "\n".join(tables)
    write_atomically(path, text.encode())


@contextlib.contextmanager
def _timed(parts: dict[str, float], name: str, device: str) -> Iterator[None]:
    """Adds the seconds of a block, with the device synchronized."""
    _wait(device)
    start = time.perf_counter()
    yield
    _wait(device)
    parts[name] = time.perf_counter() - start


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
