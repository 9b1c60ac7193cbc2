"""Several processes that learn together: each plays its own games, and their gradients are averaged.

Started by `torchrun`, every process finds its rank in the environment. Without it there is one process, and nothing
here does anything.
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
PATIENCE = timedelta(hours=1)
"""How long processes wait for each other."""


class Group:
    """The processes of a run; by default the only one."""

    rank, size = 0, 1

    def wrapped(self, module: nn.Module) -> nn.Module:
        """A module whose gradients are averaged over all processes."""
        return module

    def average(self, parameters: list[nn.Parameter]) -> None:
        """Averages gradients of parameters that are used outside the wrapped module."""

    def agree(self, tensors: list[torch.Tensor]) -> None:
        """Averages tensors over all processes."""

    def most(self, number: int, device: str) -> int:
        """The largest of the numbers that the processes have."""
        return number

    def total(self, number: int, device: str) -> int:
        """The sum of the numbers that the processes have."""
        return number

    def share(self, things: Sequence[T]) -> Sequence[T]:
        """This process's part of some things; all of them where there are fewer than processes."""
        return things if len(things) < self.size else things[self.rank :: self.size]

    def opened(self, open_run: Callable[[], Run]) -> Run:
        """The run that this process trains; only the first one writes into its folder."""
        return open_run()

    def close(self) -> None:
        """Leaves the group."""


class TorchGroup(Group):
    """The processes that `torchrun` started."""

    def __init__(self, device: str) -> None:
        # The first process holds exams and makes hiding spots, for which the others wait.
        distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo", timeout=PATIENCE)
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def wrapped(self, module: nn.Module) -> nn.Module:
        # Not every batch has every stage, so not every head has a gradient each time.
        return DistributedDataParallel(module, find_unused_parameters=True)

    def average(self, parameters: list[nn.Parameter]) -> None:
        for parameter in parameters:
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= self.size

    def agree(self, tensors: list[torch.Tensor]) -> None:
        for tensor in tensors:
            distributed.all_reduce(tensor)
            tensor /= self.size

    def most(self, number: int, device: str) -> int:
        return self._reduced(number, device, distributed.ReduceOp.MAX)

    def total(self, number: int, device: str) -> int:
        return self._reduced(number, device, distributed.ReduceOp.SUM)

    def _reduced(self, number: int, device: str, how: Any) -> int:
        every = torch.tensor(number, device=device)
        distributed.all_reduce(every, how)
        return int(every)

    def opened(self, open_run: Callable[[], Run]) -> Run:
        found: list[Any] = [None, "the first process could not open the run"]
        try:
            if self.rank == 0:
                run = open_run()
                found = [run.folder, run.config]
        finally:
            # Whatever happened, the others are waiting to hear of it.
            distributed.broadcast_object_list(found)
        if found[0] is None:
            raise RunError(found[1])
        return run if self.rank == 0 else Run(*found)

    def close(self) -> None:
        distributed.destroy_process_group()


def group_of(device: str) -> tuple[Group, str]:
    """The group that this process belongs to, and its device."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Group(), device
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    return TorchGroup(device), device
