"""How many steps of play an agent learns from in a second, rendering, game, acting and learning included."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from rich.console import Console

from scrubjay.agent.config import preset_name
from scrubjay.bench.world import machine
from scrubjay.game.cache import CacheGame
from scrubjay.game.observation import observe
from scrubjay.players.base import RandomPlayer
from scrubjay.training.config import PRESETS, TRAIN, TrainConfig
from scrubjay.training.rollout import Rollout
from scrubjay.training.trainer import Trainer

KINDS = ("rgb", "ids", "depth")
"""What is drawn of every step."""
CHUNK = 320
"""Sequences of 32 that make one step of the optimizer with the paper's numbers; fewer of longer ones."""


def measure(training: TrainConfig, device: str, updates: int, console: Console) -> dict:
    """Steps a second of a training, what each part of an update takes, and the memory."""
    console.print(f"building {len(training.scenes)} rooms")
    with contextlib.closing(Trainer(training, device)) as trainer:
        collector, replay = trainer.start_segment()
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
        steps = training.games * training.unroll_length
        # The parts one after another, each waited for: what overlaps in training is counted in full here.
        with _timed(parts, "collect", device):
            rollout = collector.collect(training.unroll_length)
        with _timed(parts, "learn", device):
            trainer.train_rollout(rollout)
        if collector.hiding_buffers:
            with _timed(parts, "hiding", device):
                trainer.train_hiding(collector)
        if replay is not None:
            with _timed(parts, "replay", device):
                trainer.train_dynamics(replay)
        # What collecting consists of.
        with _timed(parts, "render", device):
            for _ in range(training.unroll_length):
                for world in trainer.worlds:
                    world.view(KINDS)
        with _timed(parts, "act", device), torch.no_grad():
            for number, acting in enumerate(collector.actors):
                seen = observe(collector.games[number])
                for _ in range(training.unroll_length):
                    acting(seen, collector.begins[number], update_state=False)
        with _timed(parts, "game", device):
            for number, game in enumerate(collector.games):
                _play(game, rollout, sum(map(len, collector.games[:number])), whole=bool(collector.hiding_buffers))
    gib = torch.cuda.max_memory_allocated(device) / 2**30 if device.startswith("cuda") else 0.0
    return {
        "task": training.task,
        "agent": preset_name(training.agent),
        "steps_per_s": round(steps / seconds, 1),
        "update_ms": round(1000 * seconds, 1),
        **{f"{name}_ms": round(1000 * value, 1) for name, value in parts.items()},
        "games": training.games,
        "rooms": len(training.scenes),
        "unroll_length": training.unroll_length,
        "minibatch_games": training.minibatch_games,
        "epochs": training.epochs,
        "gpu_gib": round(gib, 1),
        "machine": machine(device),
        "torch": torch.__version__,
    }


def _play(game: CacheGame, rollout: Rollout, first: int, whole: bool) -> None:
    """Plays as long as a rollout is, without an agent.

    Actions that were chosen a while ago, from the `first` game on, do as well as others. Whole games are at other
    stages by now, so that there they are drawn anew.
    """
    player, everyone = RandomPlayer(0), np.ones(len(game), bool)
    for actions in rollout.action[:, first : first + len(game)].cpu().numpy():
        game.step(*(player(game, everyone) if whole else (actions, np.zeros((len(game), 4), int))))


def trainings(preset: str, numbers: str, **changes: Any) -> TrainConfig:
    """A preset's training with some changes; with the paper's numbers, or those that the preset has."""
    if numbers == "preset":
        return TrainConfig.preset(preset, **changes)
    plain = PRESETS[preset]
    paper = TrainConfig(
        task=plain.task, scenes=plain.scenes, copies=plain.copies, unroll_length=plain.unroll_length,
        minibatch_games=CHUNK * 32 // plain.unroll_length, agent=plain.agent,
    )  # fmt: skip
    return replace(paper, **changes)


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
