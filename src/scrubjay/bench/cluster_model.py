"""A model of one update of synchronous training in n processes: playing, waiting for the slowest, learning, averaging.

Arithmetic on what was measured with one process, and on a network's figures; `bench/cluster.py` measures and checks it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

Rule = Literal["global", "process"]
RULES: tuple[Rule, ...] = ("global", "process")
"""What a process has: a share of the games, or as many as one alone (`--batch-rule`; `scaled` takes as long)."""
GOOD_EFFICIENCY = 0.9
"""Above it the processes' own work takes nearly all of the time."""


@dataclass(frozen=True)
class Parts:
    """An update of one process alone. Times in seconds."""

    steps: float
    """Environment steps."""
    play: float
    play_std: float
    """Standard deviation between updates."""
    play_fixed: float
    """Share of the time that does not shrink with the number of games."""
    learn: float
    learn_std: float
    learn_fixed: float
    optimizer_steps: int
    messages: int
    """Tensors and numbers that processes average or add up."""
    megabytes: float
    """Of all messages."""
    cores: float = 0.0
    """CPU cores that the process keeps busy, where cores are what processes compete for; else 0."""
    overlap: bool = False
    """Playing and learning run at once."""


@dataclass(frozen=True)
class Network:
    """What connects processes, each way. Latencies are of one hop."""

    bandwidth: float
    """Bytes per second of a node."""
    latency: float
    """Seconds."""
    inner_bandwidth: float
    """Bytes per second of a process within its node."""
    inner_latency: float
    per_node: int
    """Processes of a node."""


@dataclass(frozen=True)
class Prediction:
    """An update of n processes. Times in seconds."""

    processes: int
    rule: Rule
    play: float
    learn: float
    wait: float
    """For the slowest process."""
    average: float
    """Gradients and statistics, over the network."""
    update: float
    steps_per_s: float
    efficiency: float
    """Steps per second of a process, relative to one alone."""
    bottleneck: Literal["compute", "small shares", "stragglers", "network"]
    """What costs most, if efficiency is not good."""

    def row(self) -> dict[str, Any]:
        """As JSON."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def ring_seconds(size: float, count: int, bandwidth: float, latency: float, messages: int = 1) -> float:
    """A ring all-reduce of `size` bytes: each process sends 2 (n - 1) / n of them, in 2 (n - 1) hops a message."""
    return 2 * (count - 1) / count * size / bandwidth + 2 * (count - 1) * latency * messages


def average_seconds(size: float, count: int, network: Network, messages: int = 1) -> float:
    """An all-reduce in two levels: within each node, and between the nodes, whose processes share its bandwidth."""
    inside = min(count, network.per_node)
    nodes = -(-count // network.per_node)
    return ring_seconds(size, inside, network.inner_bandwidth, network.inner_latency, messages) + ring_seconds(
        size, nodes, network.bandwidth, network.latency, messages
    )


@cache
def expected_maximum(count: int) -> float:
    """The expected largest of n standard normal numbers: the integral of x n phi(x) Phi(x)^(n - 1)."""
    x = np.linspace(-10, 10, 20_001)
    below = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in x])
    density = count * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * below ** (count - 1)
    return float(np.trapezoid(x * density, x))


def fixed_share(games: list[int], seconds: list[float]) -> float:
    """The share of the time for the most games that a line through the times, by games, has at 0 games."""
    slope, intercept = np.polyfit(games, seconds, 1)
    most = float(np.polyval([slope, intercept], max(games)))
    return float(np.clip(intercept / most, 0, 1)) if most > 0 else 0.0


def predict(parts: Parts, count: int, network: Network, rule: Rule, cores: int = 0) -> Prediction:
    """An update of n processes; `cores` of each node, if they compete for them.

    With the rule `global` the games of one process are shared out; with `process` each has as many.
    """
    share = 1 / count if rule == "global" else 1.0
    crowded = max(1.0, min(count, network.per_node) * parts.cores / cores) if cores else 1.0
    play = parts.play * (parts.play_fixed + (1 - parts.play_fixed) * share) * crowded
    learn = parts.learn * (parts.learn_fixed + (1 - parts.learn_fixed) * share) * crowded
    # All wait for the slowest at the end of playing, and again at every optimizer step, whose times vary independently.
    slowest = expected_maximum(count)
    play_wait = slowest * parts.play_std * play / parts.play
    learn_wait = slowest * parts.learn_std * math.sqrt(parts.optimizer_steps) * learn / parts.learn
    average = average_seconds(parts.megabytes * 1e6, count, network, parts.messages)
    playing, learning = play + play_wait, learn + learn_wait + average
    update = max(playing, learning) if parts.overlap else playing + learning
    alone = max(parts.play, parts.learn) if parts.overlap else parts.play + parts.learn
    ideal = alone * share
    wait = play_wait + learn_wait
    if parts.overlap:
        wait = play_wait if playing >= learning else learn_wait
    losses = {
        "small shares": (max(play, learn) if parts.overlap else play + learn) - ideal, "stragglers": wait,
        "network": 0.0 if parts.overlap and playing >= learning else average,
    }  # fmt: skip
    efficiency = ideal / update
    worst: Any = max(losses, key=losses.__getitem__)
    return Prediction(
        count, rule, play, learn, wait, average, update, parts.steps * count * share / update, efficiency,
        "compute" if efficiency >= GOOD_EFFICIENCY else worst,
    )  # fmt: skip


def cost(prediction: Prediction, games: float, steps_per_game: float, price: float) -> dict[str, float]:
    """Games a day, and days and money that so many games take at a price of each process's hour."""
    a_day = prediction.steps_per_s / steps_per_game * 86_400
    days, hours = games / a_day, 24 * games / a_day * prediction.processes
    return {"games_a_day": round(a_day), "days": round(days, 2), "cost": round(hours * price)}
