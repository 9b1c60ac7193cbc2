"""The paper's way to train: several processes, each with games of its own, change shared weights without waiting.

Weights and the optimizers' moments lie in shared memory. Each worker copies the weights, plays, computes gradients, and
steps the shared optimizer whenever it has some, locks or not (HOGWILD!). Runs are not the same twice, and a run that
goes on is another one than an unbroken one.
"""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.synchronize import Event
from typing import Any

import torch
from torch import multiprocessing

from scrubjay.agent.agent import Agent
from scrubjay.agent.normalization import running_norms
from scrubjay.errors import TrainingError
from scrubjay.training.actor_critic import Losses, Weights
from scrubjay.training.config import TrainConfig
from scrubjay.training.distributed import Group
from scrubjay.training.run import Progress, Run
from scrubjay.training.trainer import Report, Trainer, optimizers_of

Optimizers = dict[str, torch.optim.Adam]
PATIENCE = 1.0
"""Seconds after which the first process looks whether it was asked to stop."""


class Worker(Trainer):
    """A trainer whose gradients change the shared agent instead of its own."""

    def __init__(self, training: TrainConfig, rank: int, size: int, shared: Agent, optimizers: Optimizers) -> None:
        group = Group()
        group.rank, group.size = rank, size
        super().__init__(training, "cpu", group)
        group.size = 1  # It has its part of the rooms, and its steps are its own.
        self.shared, self.shared_optimizers = shared, optimizers
        self._pairs = list(zip(self.agent.parameters(), shared.parameters(), strict=True))
        for mine, its in zip(running_norms(self.agent), running_norms(shared), strict=True):
            # What is usual is the same for all, and whoever learns changes it for all.
            mine._buffers = its._buffers

    def update(self, *args: Any) -> dict[str, Any]:
        self.copy_shared()
        return super().update(*args)

    def copy_shared(self) -> None:
        """The weights as they are now, while others change them."""
        with torch.no_grad():
            for mine, shared in self._pairs:
                mine.copy_(shared)

    def _optimizer_step(self, name: str, losses: Losses, weights: Weights, batch: object) -> torch.Tensor:
        norm = self.backward(name, losses, weights, batch)
        for mine, shared in self._pairs:
            shared.grad = mine.grad
        self.shared_optimizers[name].step()
        self.copy_shared()
        return norm


def train_asynchronously(
    run: Run, workers: int, report: Report | None = None, stop: Callable[[], bool] = lambda: False
) -> Progress:
    """Trains a run with some workers on this machine's cores, to its end or until `stop`."""
    if workers < 1:
        raise ValueError(f"asynchronous: at least one worker, not {workers}")
    training = run.config
    torch.manual_seed(training.seed)
    agent = Agent(training.agent)
    optimizers = optimizers_of(agent, training)
    for optimizer in optimizers.values():
        _begin_moments(optimizer)
    progress = run.restore(agent, optimizers)
    agent.share_memory()
    for optimizer in optimizers.values():
        _share(optimizer)
    run.rewind(progress)
    context = multiprocessing.get_context("spawn")
    rows: Any = context.Queue()
    ending = context.Event()
    # Some losses are for the run's first games only, whoever plays them.
    games: Any = context.Value("q", progress.games)
    seeds = [training.seed + 1000 * (rank + 1) + progress.update for rank in range(workers)]
    processes = [
        context.Process(
            target=_work, args=(training, rank, workers, seeds[rank], agent, optimizers, rows, games, ending)
        )
        for rank in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        while progress.update < training.updates and not stop():
            try:
                row = rows.get(timeout=PATIENCE)
            except queue.Empty:
                if not all(process.is_alive() for process in processes):
                    raise TrainingError("a worker has ended; the last checkpoint, if there is one, is intact") from None
                continue
            progress = Progress(
                progress.update + 1, progress.steps + row["worker_steps"], progress.games + row["worker_games"],
                progress.seconds + row["worker_seconds"] / workers,
            )  # fmt: skip
            games.value = progress.games
            row |= {"update": progress.update, "steps": progress.steps, "games": progress.games}
            run.log(row)
            if report:
                report(row)
            if progress.update % training.checkpoint_interval == 0:
                run.save(agent, optimizers, progress)
    finally:
        ending.set()
        for process in processes:
            process.join(60)
            process.kill()
    run.save(agent, optimizers, progress)
    return progress


def _work(
    training: TrainConfig,
    rank: int,
    size: int,
    seed: int,
    agent: Agent,
    optimizers: Optimizers,
    rows: Any,
    games: Any,
    ending: Event,
) -> None:
    """A worker's whole life: segment after segment, until it is told to end, or there is nobody left to tell it."""
    # Ctrl-C goes to all processes of a terminal. The first one saves, and then tells the others.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    worker = Worker(replace(training, seed=seed), rank, size, agent, optimizers)
    try:
        while not ending.is_set():
            collector, replay = worker.segment()
            for _ in range(training.checkpoint_interval):
                if ending.is_set() or (parent and not parent.is_alive()):
                    return
                worker.progress = before = replace(worker.progress, games=games.value)
                row = worker.update(collector, replay)
                now = worker.progress
                rows.put(row | {
                    "worker": rank, "worker_steps": row["steps"] - before.steps,
                    "worker_games": now.games - before.games, "worker_seconds": now.seconds - before.seconds,
                })  # fmt: skip
    finally:
        rows.cancel_join_thread()
        worker.close()


def _begin_moments(optimizer: torch.optim.Adam) -> None:
    """The state that the first step would make, so that it can be shared before."""
    for parameter in (p for group in optimizer.param_groups for p in group["params"]):
        optimizer.state[parameter] = {
            "step": torch.zeros(()),
            **{name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")},
        }


def _share(optimizer: torch.optim.Adam) -> None:
    for values in optimizer.state.values():
        for tensor in values.values():
            tensor.share_memory_()
