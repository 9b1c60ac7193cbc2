"""Synchronous training in several processes: each plays its own games, and gradients are averaged.

`torchrun` sets each process's rank in the environment. Without it there is one process, and all this does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from scrubjay.errors import RunError
from scrubjay.training.run import Run

T = TypeVar("T")
TIMEOUT = timedelta(hours=1)
"""How long processes wait for each other."""


class Group:
    """The processes of a run; by default the only one."""

    rank, size = 0, 1

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with its gradients averaged over processes."""
        return module

    def average_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Averages the gradients, where set, of parameters used outside the wrapped module."""

    def average(self, tensors: list[torch.Tensor]) -> None:
        """Averages tensors over processes, in place."""

    def max(self, number: int, device: str) -> int:
        """The maximum over processes."""
        return number

    def sum(self, number: int, device: str) -> int:
        """The sum over processes."""
        return number

    def gather(self, item: T) -> list[T]:
        """The items of all processes, in the first one; undefined in the others."""
        return [item]

    def shard(self, items: Sequence[T]) -> Sequence[T]:
        """This process's part of the items; all of them if there are fewer than processes."""
        return items if len(items) < self.size else items[self.rank :: self.size]

    def open_run(self, open_run: Callable[[], Run]) -> Run:
        """The run to train; only the first process writes into its folder."""
        return open_run()

    def close(self) -> None:
        """Leaves the group."""


class TorchGroup(Group):
    """The processes that `torchrun` started."""

    def __init__(self, device: str) -> None:
        # The others wait while the first process runs validation and makes hiding spots.
        distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo", timeout=TIMEOUT)
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def wrap(self, module: nn.Module) -> nn.Module:
        # Batches without a stage leave its heads without gradients.
        return DistributedDataParallel(module, find_unused_parameters=True)

    def average_gradients(self, parameters: list[nn.Parameter]) -> None:
        for parameter in parameters:
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= self.size

    def average(self, tensors: list[torch.Tensor]) -> None:
        for tensor in tensors:
            distributed.all_reduce(tensor)
            tensor /= self.size

    def max(self, number: int, device: str) -> int:
        return self._all_reduce(number, device, distributed.ReduceOp.MAX)

    def sum(self, number: int, device: str) -> int:
        return self._all_reduce(number, device, distributed.ReduceOp.SUM)

    def gather(self, item: T) -> list[T]:
        items: list[Any] = [None] * self.size
        distributed.gather_object(item, items if self.rank == 0 else None)
        return items

    def _all_reduce(self, number: int, device: str, op: Any) -> int:
        tensor = torch.tensor(number, device=device)
        distributed.all_reduce(tensor, op)
        return int(tensor)

    def open_run(self, open_run: Callable[[], Run]) -> Run:
        opened: list[Any] = [None, "the first process could not open the run"]
        try:
            if self.rank == 0:
                run = open_run()
                opened = [run.folder, run.config]
        finally:
            # The others wait for this, also if opening failed.
            distributed.broadcast_object_list(opened)
        if opened[0] is None:
            raise RunError(opened[1])
        return run if self.rank == 0 else Run(*opened)

    def close(self) -> None:
        distributed.destroy_process_group()


def make_group(device: str) -> tuple[Group, str]:
    """This process's group and its device."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Group(), device
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    return TorchGroup(device), device
