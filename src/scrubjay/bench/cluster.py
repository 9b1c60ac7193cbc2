"""How training scales with processes: measures the parts of one, checks what the model predicts for 2 and 4 on this
machine, and predicts the GPUs of a cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from scrubjay.agent.agent import Agent
from scrubjay.agent.normalization import RunningNorm
from scrubjay.bench.cluster_model import RULES, Network, Parts, cost, fixed_share, predict
from scrubjay.files import write_atomically
from scrubjay.study.record import machine
from scrubjay.training.config import PRESETS, TrainConfig, from_json, to_json
from scrubjay.training.distributed import Group, make_group
from scrubjay.training.trainer import Trainer

WARMUP = 3
"""Updates before measuring."""
LOCAL = (1, 2, 4)
"""Processes measured on this machine."""
CLUSTER = (1, 2, 4, 8, 16, 32, 64)
"""GPUs predicted."""
SHOWN = (1, 8, 64)
"""Those of the table."""
TIMEOUT = 1200
"""Seconds for one measurement."""


@dataclass(frozen=True)
class Cluster:
    """GPUs to predict, and what they cost."""

    gpus_per_node: int = 8
    gigabits: float = 400.0
    """Bandwidth between nodes, each way."""
    inner_gigabytes: float = 450.0
    """Bandwidth of a GPU within its node, each way."""
    microseconds: float = 20.0
    """Latency of a hop, software included."""
    price: float = 3.0
    """Of a GPU's hour."""
    games: float = 4.5e6
    steps_per_game: float = 700.0

    def network(self) -> Network:
        return Network(
            self.gigabits * 1e9 / 8, self.microseconds * 1e-6, self.inner_gigabytes * 1e9, self.microseconds * 1e-6,
            self.gpus_per_node,
        )  # fmt: skip


def gpu_parts(overlap: bool) -> Parts:
    """An update of whole games on one H200, 40 rooms x 24 games, from results/pretrain.jsonl and results/learning.md.

    With `overlap`, playing takes 93 % of the mean update of 3.86 s (updates 61 on) and learning nearly all of it;
    without, 4.61 and 3.44 s. Updates vary by 0.15 s (standard deviation), all of it taken as playing's: learning runs
    the same kernels each time. Fixed shares: acting and whatever is not known to shrink with the games (1.7 of 4.6 s of
    playing); 23 of the 101 ms of an optimizer step, by a line through those of 40 and 320 sequences. About 40 optimizer
    steps: 24 on rollouts, the others on manipulations, hidings and replay; each averages all gradients in one message
    and running statistics in two.
    """
    parameters = sum(p.numel() for p in Agent(PRESETS["cache"].agent).parameters())
    times = (3.58, 0.15, 0.37, 3.86, 0.0, 0.23) if overlap else (4.61, 0.15, 0.37, 3.44, 0.0, 0.23)
    return Parts(30_600, *times, 40, 120, 40 * 4 * parameters / 1e6, overlap=overlap)


def measure(preset: str, updates: int, cluster: Cluster, out: Path | None, console: Console) -> dict[str, Any]:
    """Measures and predicts this machine's processes, predicts GPUs, and writes cluster.jsonl and cluster.png."""
    local = check_model(TrainConfig.preset(preset, validation_games=0), updates, console)
    rows = predict_cluster(cluster)
    console.print(_table(rows))
    result = {"local": local, "cluster": rows, "assumptions": vars(cluster), "machine": machine("cpu")}
    if out:
        lines = [{"what": "local", **row} for row in local["rows"]] + [{"what": "cluster", **row} for row in rows]
        write_atomically(out / "cluster.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        _plot(local["rows"], rows, out / "cluster.png", machine("cpu"))
    return result


def _table(rows: list[dict[str, Any]]) -> Table:
    names = ("GPUs", "rule", "overlap", "update", "efficiency", "games a day", "days", "cost", "bottleneck")
    table = Table(*names, box=None, padding=(0, 1))
    for row in (row for row in rows if row["processes"] in SHOWN):
        table.add_row(
            str(row["processes"]), row["rule"], "yes" if row["overlap"] else "no", f"{row['update']:.2f} s",
            f"{row['efficiency']:.0%}", f"{row['games_a_day']:,}", f"{row['days']:.2f}", f"{row['cost']:,}",
            row["bottleneck"],
        )  # fmt: skip
    return table


def predict_cluster(cluster: Cluster) -> list[dict[str, Any]]:
    """Predictions for GPUs: all batch rules' updates, games a day, days and cost."""
    rows = []
    for parts in (gpu_parts(overlap=False), gpu_parts(overlap=True)):
        for rule in RULES:
            for count in CLUSTER:
                prediction = predict(parts, count, cluster.network(), rule)
                money = cost(prediction, cluster.games, cluster.steps_per_game, cluster.price)
                rows.append({"overlap": parts.overlap, **prediction.row(), **money})
    return rows


def check_model(config: TrainConfig, updates: int, console: Console) -> dict[str, Any]:
    """Parts of one process, and the update of 1, 2 and 4 as predicted from them and as measured."""
    cores = len(os.sched_getaffinity(0))
    alone = {}
    for copies in sorted({max(1, config.copies // count) for count in LOCAL}, reverse=True):
        console.print(f"one process, {len(config.scenes) * copies} games")
        alone[copies] = _run(1, replace(config, copies=copies), updates)
    whole, games = alone[config.copies], [len(config.scenes) * copies for copies in alone]
    parts = replace(
        _parts(whole),
        play_fixed=fixed_share(games, [each["play"] for each in alone.values()]),
        learn_fixed=fixed_share(games, [each["learn"] for each in alone.values()]),
    )
    rows, network = [], None
    for count in LOCAL:
        if count > 1:
            console.print(f"{count} processes")
        measured = whole if count == 1 else _run(count, config, updates)
        if network is None and count > 1:
            bandwidth, latency = measured["bandwidth"], measured["latency"]
            network = Network(bandwidth, latency, bandwidth, latency, max(LOCAL))
        prediction = predict(parts, count, network or Network(1e9, 0, 1e9, 0, 1), "global", cores)
        rows.append({**prediction.row(), "measured": round(measured["update"], 4), "cores": cores})
        console.print(f"{count}: predicted {prediction.update:.2f} s, measured {measured['update']:.2f} s")
    return {"parts": vars(parts), "network": vars(network) if network else None, "rows": rows}


def _parts(measured: dict[str, Any]) -> Parts:
    return Parts(
        measured["steps"], measured["play"], measured["play_std"], 0.0, measured["learn"], measured["learn_std"], 0.0,
        measured["optimizer_steps"], measured["messages"], measured["megabytes"], measured["cores"],
    )  # fmt: skip


def _run(count: int, config: TrainConfig, updates: int) -> dict[str, Any]:
    """What the first of some processes measured."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "config.json").write_text(to_json(config))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), "-m"]
        path = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run(
            [*command, "scrubjay.bench.cluster", scratch, str(updates)],
            capture_output=True, text=True, timeout=TIMEOUT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{count} processes failed: {done.stderr[-2000:]}")
        return json.loads((Path(scratch) / "measured.json").read_text())


class CountingGroup(Group):
    """One process that counts what it would send to others."""

    def __init__(self) -> None:
        self.messages, self.bytes, self.optimizer_steps = 0, 0, 0

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        self.optimizer_steps += 1
        self._count(parameters)

    def average_norms(self, norms: Sequence[RunningNorm]) -> None:
        for name in ("mean", "variance"):
            self._count([getattr(norm, name) for norm in norms])

    def max(self, number: int, device: str) -> int:
        self._count([torch.zeros(1)])
        return number

    sum = max

    def gather(self, item: Any) -> list[Any]:
        self._count([torch.zeros(1000)])
        return [item]

    def _count(self, tensors: Sequence[torch.Tensor]) -> None:
        self.messages += 1
        self.bytes += sum(tensor.numel() * 4 for tensor in tensors)


def measure_process(folder: Path, updates: int) -> None:
    """Runs in each of the processes: trains, and writes what an update took."""
    group, _ = make_group("cpu")
    config = from_json((folder / "config.json").read_text())
    counting = CountingGroup()
    with contextlib.closing(Trainer(config, "cpu", counting if group.size == 1 else group)) as trainer:
        collector, replay = trainer.start_segment()
        for _ in range(WARMUP):
            trainer.update(collector, replay)
        counting.messages = counting.bytes = counting.optimizer_steps = 0
        times, plays, steps, busy = [], [], trainer.progress.steps, time.process_time()
        for _ in range(updates):
            start = time.perf_counter()
            row = trainer.update(collector, replay)
            times.append(time.perf_counter() - start)
            plays.append(row["charts"]["collect_share"] * times[-1])
        busy = time.process_time() - busy
        size = 4 * sum(p.numel() for p in trainer.agent.parameters())
        steps = trainer.progress.steps - steps
    learns = [each - play for each, play in zip(times, plays, strict=True)]
    result = {
        "update": statistics.mean(times), "steps": steps / updates, "cores": busy / sum(times),
        "play": statistics.mean(plays), "play_std": statistics.stdev(plays),
        "learn": statistics.mean(learns), "learn_std": statistics.stdev(learns),
        "optimizer_steps": round(counting.optimizer_steps / updates), "messages": round(counting.messages / updates),
        "megabytes": counting.bytes / updates / 1e6,
    }  # fmt: skip
    if group.size > 1:
        # A ring of n: 2 (n - 1) hops for a small message, and 2 (n - 1) / n of a large one's bytes.
        small, large = (_seconds_to_average(group, torch.zeros(count)) for count in (1, size // 4))
        result["latency"] = small / (2 * (group.size - 1))
        result["bandwidth"] = 2 * (group.size - 1) / group.size * size / max(large - small, 1e-9)
    if group.rank == 0:
        write_atomically(folder / "measured.json", json.dumps(result))
    group.close()


def _seconds_to_average(group: Group, tensor: torch.Tensor, times: int = 20) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        group.average([tensor])
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _plot(local: list[dict[str, Any]], cluster: list[dict[str, Any]], path: Path, title: str) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4))
    counts = [str(row["processes"]) for row in local]
    bottom = [0.0] * len(local)
    for name in ("play", "learn", "wait", "average"):
        left.bar(counts, [row[name] for row in local], 0.5, bottom, label=name)
        bottom = [low + row[name] for low, row in zip(bottom, local, strict=True)]
    left.plot(counts, [row["measured"] for row in local], "kD", label="measured")
    left.set(xlabel="processes on this machine", ylabel="seconds of an update", title=title)
    left.legend(fontsize=8)
    for overlap, style in ((True, "-"), (False, "--")):
        for rule, color in (("process", "tab:blue"), ("global", "tab:orange")):
            rows = [row for row in cluster if (row["overlap"], row["rule"]) == (overlap, rule)]
            label = f"batch rule {rule}" + (", overlap" if overlap else "")
            points = [row["processes"] for row in rows], [row["games_a_day"] / 1e6 for row in rows]
            right.plot(*points, style, color=color, marker="o", markersize=3, label=label)
    right.set(xscale="log", yscale="log", xlabel="GPUs, predicted", ylabel="million games a day")
    right.set_xticks(CLUSTER, [str(count) for count in CLUSTER])
    right.grid(alpha=0.3)
    right.legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure_process(Path(sys.argv[1]), int(sys.argv[2]))
