"""Asynchronous training (HOGWILD!), as in the paper: worker processes update shared weights without locks.

Weights and the optimizers' moments are in shared memory. Each worker copies the weights, plays its own games, computes
gradients, and steps the shared optimizer at once. Runs are not reproducible, and resuming starts other games.
"""

from __future__ import annotations

import queue
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.synchronize import Event
from types import ModuleType
from typing import Any

import torch
from torch import multiprocessing

from scrubjay.agent.agent import Agent
from scrubjay.agent.normalization import running_norms
from scrubjay.errors import TrainingError
from scrubjay.training.actor_critic import Losses, Weights
from scrubjay.training.config import TrainConfig
from scrubjay.training.distributed import Group
from scrubjay.training.optimizers import make_optimizers, set_learning_rates
from scrubjay.training.run import Progress, Run
from scrubjay.training.sharing import shard
from scrubjay.training.trainer import Report, Trainer

Optimizers = dict[str, torch.optim.Adam]
POLL_SECONDS = 1.0
"""How often the main process checks whether to stop."""


class Worker(Trainer):
    """A trainer whose gradients update a shared agent instead of its own."""

    def __init__(self, config: TrainConfig, rank: int, size: int, shared: Agent, optimizers: Optimizers) -> None:
        group = Group()
        group.rank, group.size = rank, size
        super().__init__(config, "cpu", group)
        group.size, self.weight = 1, 1.0  # It has its shard of the rooms, and counts its own steps.
        self.total_updates = 0
        """Updates of all workers so far, which learning rates depend on."""
        self.shared, self.shared_optimizers = shared, optimizers
        self._pairs = list(zip(self.agent.parameters(), shared.parameters(), strict=True))
        for mine, its in zip(running_norms(self.agent), running_norms(shared), strict=True):
            # Running statistics are shared: every worker updates them for all.
            mine._buffers = its._buffers

    def _own_config(self, config: TrainConfig) -> TrainConfig:
        # Its share of the rooms, or all of them if there are fewer than workers; batches are each worker's own.
        rank, size = self.group.rank, self.group.size
        scenes = config.scenes if len(config.scenes) < size else shard(config.scenes, rank, size)
        return replace(config, scenes=tuple(scenes))

    def update(self, *args: Any) -> dict[str, Any]:
        self.copy_shared()
        return super().update(*args)

    def _schedule_learning_rates(self) -> None:
        # Parameter groups are this process's own, also the shared optimizers'. Its own optimizers only log their rates.
        for optimizers in (self.optimizers, self.shared_optimizers):
            set_learning_rates(optimizers, self.config, Progress(self.total_updates, games=self.progress.games))

    def copy_shared(self) -> None:
        """Copies the shared weights, while other workers change them."""
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


def check_asynchronous(config: TrainConfig) -> None:
    """Raises ValueError if workers cannot train such a run."""
    if config.shadow_classifier:
        raise ValueError("asynchronous: HOGWILD! workers train no shadow_classifier: leave out one of the two")
    if config.overlap:
        raise ValueError("asynchronous: HOGWILD! workers learn side by side as it is: leave out overlap")
    if config.pretraining_updates:
        raise ValueError("asynchronous: HOGWILD! workers have no pretraining_updates: pretrain in a run of its own")
    if config.learning_rate_schedule == "adaptive":
        raise ValueError(
            "asynchronous: HOGWILD! workers have no adaptive learning rates: choose constant or linear ones"
        )


def train_asynchronously(
    run: Run, workers: int, report: Report | None = None, stop: Callable[[], bool] = lambda: False
) -> Progress:
    """Trains a run with worker processes on the CPU, to its end or until `stop()`."""
    if workers < 1:
        raise ValueError(f"asynchronous: must be at least 1, not {workers}")
    config = run.config
    check_asynchronous(config)
    torch.manual_seed(config.seed)
    agent = Agent(config.agent)
    optimizers = make_optimizers(agent, config)
    for optimizer in optimizers.values():
        _init_moments(optimizer)
    progress = run.restore(agent, optimizers)
    agent.share_memory()
    for optimizer in optimizers.values():
        _share(optimizer)
    run.rewind(progress)
    if progress.update == 0:
        run.save_milestones(agent, progress, games_before=-1)
    context = multiprocessing.get_context("spawn")
    rows: Any = context.Queue()
    stopping = context.Event()
    # Losses against collapse are for the first games of all workers.
    games: Any = context.Value("q", progress.games)
    updates: Any = context.Value("q", progress.update)
    seeds = [config.seed + 1000 * (rank + 1) + progress.update for rank in range(workers)]
    processes = [
        context.Process(
            target=_work, args=(config, rank, workers, seeds[rank], agent, optimizers, rows, games, updates, stopping)
        )
        for rank in range(workers)
    ]
    with _without_main():
        for process in processes:
            process.start()
    try:
        while not config.is_done(progress.update, progress.games) and not stop():
            try:
                row = rows.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if not all(process.is_alive() for process in processes):
                    raise TrainingError("a worker process died; the last checkpoint, if any, is intact") from None
                continue
            progress = Progress(
                progress.update + 1, progress.steps + row["worker_steps"], progress.games + row["worker_games"],
                progress.seconds + row["worker_seconds"] / workers,
            )  # fmt: skip
            run.save_milestones(agent, progress, games.value)
            games.value, updates.value = progress.games, progress.update
            row |= {"update": progress.update, "steps": progress.steps, "games": progress.games}
            run.log(row)
            if report:
                report(row)
            if progress.update % config.checkpoint_interval == 0:
                run.save(agent, optimizers, progress)
    finally:
        stopping.set()
        for process in processes:
            process.join(60)
            process.kill()
    run.save(agent, optimizers, progress)
    return progress


def _work(
    config: TrainConfig,
    rank: int,
    size: int,
    seed: int,
    agent: Agent,
    optimizers: Optimizers,
    rows: Any,
    games: Any,
    updates: Any,
    stopping: Event,
) -> None:
    """Trains segment after segment, until `stopping` is set or the main process is gone."""
    # Ctrl-C goes to all processes of a terminal. The main process saves, and then stops the workers.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    worker = Worker(replace(config, seed=seed), rank, size, agent, optimizers)
    try:
        while not stopping.is_set():
            collector, replay = worker.start_segment()
            for _ in range(config.checkpoint_interval):
                if stopping.is_set() or (parent and not parent.is_alive()):
                    return
                worker.progress = before = replace(worker.progress, games=games.value)
                worker.total_updates = updates.value
                row = worker.update(collector, replay)
                now = worker.progress
                rows.put(row | {
                    "worker": rank, "worker_steps": row["steps"] - before.steps,
                    "worker_games": now.games - before.games, "worker_seconds": now.seconds - before.seconds,
                })  # fmt: skip
    finally:
        rows.cancel_join_thread()
        worker.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Starts processes that do not run the user's main script again, which may have no `__main__` guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _init_moments(optimizer: torch.optim.Adam) -> None:
    """Creates the state of the first step, so that it can be shared before."""
    for parameter in (p for group in optimizer.param_groups for p in group["params"]):
        optimizer.state[parameter] = {
            "step": torch.zeros(()),
            **{name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")},
        }


def _share(optimizer: torch.optim.Adam) -> None:
    for values in optimizer.state.values():
        for tensor in values.values():
            tensor.share_memory_()
