"""Benchmarks one agent in one game on one core: the time of a step and of its parts."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.metric_map import CAPACITY
from scrubjay.bench.agent import random_observations
from scrubjay.game.actions import Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import RandomEpisodes
from scrubjay.sim.world import World
from scrubjay.study.record import machine
from scrubjay.training.agent_player import AgentPlayer

WARMUP = 5
"""Steps that are not counted: the first ones allocate, and the renderer uploads the room."""
PARTS = ("encoder", "memory", "heads")
Times = dict[str, list[float]]


def measure(
    agent: Agent, scene: str = "FloorPlan21", goal: str = "Tomato", steps: int = 300, seed: int = 3, size: int = 224
) -> dict[str, Any]:
    """Plays one game, with one thread, and returns medians and 95th percentiles in milliseconds by part.

    `step` is the player's whole step: image, observation, networks, sampling. PS, one decision per game, and the rules
    are listed apart.
    """
    times: Times = defaultdict(list)
    with one_thread(), World([scene], size=size) as world:
        game = CacheGame(world, RandomEpisodes(seed, (goal,)))
        player = AgentPlayer(agent, seed)
        with timed(times, "networks", agent, "act"), timed(times, "image", game, "look"):
            for _ in range(steps + WARMUP):
                part = "PS" if game.stage[0] == Stage.PS else "step"
                action, place = _time(times, part, lambda: player(game, np.ones(1, bool)))
                _time(times, "rules", lambda: game.step(action, place))  # noqa: B023
        times |= parts(agent, max(steps // 10, 1))
    rows = {name: _summary(values if name in ("PS", *PARTS) else values[WARMUP:]) for name, values in times.items()}
    return {
        "milliseconds": rows, "steps": steps, "scene": scene, "image_size": agent.config.image_size, "threads": 1,
        "parameters": sum(p.numel() for p in agent.parameters()), "machine": machine("cpu"),
        "torch": torch.__version__,
    }  # fmt: skip


@torch.inference_mode()
def parts(agent: Agent, repeats: int) -> Times:
    """Seconds of the networks' parts, on random observations with a map half full."""
    observation, first = random_observations(agent.config, (1,), "cpu"), torch.zeros(1, dtype=torch.bool)
    state = agent.initial_state(1, CAPACITY // 2)
    times: Times = defaultdict(list)
    for _ in range(repeats + WARMUP):
        encoded = _time(times, "encoder", lambda: agent.encoder(observation.image))
        arguments = (state, encoded.sir, encoded.pooled, observation, first)
        dirs, state = _time(times, "memory", lambda: agent.memory.step(*arguments))  # noqa: B023
        sir = agent.memory.sir_norm(encoded.sir, dim=-3)
        _time(times, "heads", lambda: agent.heads(dirs, sir, observation))  # noqa: B023
    return {name: values[WARMUP:] for name, values in times.items()}


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def timed(times: Times, name: str, owner: Any, method: str) -> Iterator[None]:
    """Times a method of one object."""
    original = getattr(owner, method)
    setattr(owner, method, lambda *args, **options: _time(times, name, lambda: original(*args, **options)))
    try:
        yield
    finally:
        delattr(owner, method)


def _time(times: Times, name: str, call: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = call()
    times[name].append(time.perf_counter() - start)
    return result


def _summary(seconds: list[float]) -> dict[str, float]:
    return {
        "median": round(1000 * float(np.median(seconds)), 2),
        "p95": round(1000 * float(np.quantile(seconds, 0.95)), 2),
        "calls": len(seconds),
    }
