"""Synchronous training in several processes: each plays its own games, and gradients are averaged.

`torchrun` sets each process's rank in the environment. Without it there is one process, and all this does nothing.
Which part of a run a process has is in `sharing.py`, how processes find each other in `rendezvous.py`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed, nn

from scrubjay.agent.normalization import RunningNorm
from scrubjay.errors import ClusterError, RunError, ScrubjayError, TrainingError
from scrubjay.files import write_atomically
from scrubjay.training.rendezvous import SHARED_SECONDS, appears, connect, describe, meet
from scrubjay.training.run import Run

T = TypeVar("T")
TIMEOUT = timedelta(minutes=10)
"""How long processes wait for each other within an update, if the network does not tell them that one is gone."""
PATIENCE = timedelta(hours=6)
"""How long they wait while one of them validates, or makes hiding spots."""


class Group:
    """The processes of a run; by default the only one."""

    rank, size = 0, 1

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Averages gradients over processes, in place; all have the same ones set."""

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        """Averages tensors over processes, in place."""

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of a tensor over processes."""
        return tensor

    def average_norms(self, norms: Sequence[RunningNorm]) -> None:
        """Merges the running statistics of all processes."""

    def broadcast(self, tensors: Sequence[torch.Tensor]) -> None:
        """Copies the first process's tensors to all, in place."""

    def max(self, number: int, device: str) -> int:
        """The maximum over processes."""
        return number

    def sum(self, number: int, device: str) -> int:
        """The sum over processes."""
        return number

    def gather(self, item: T) -> list[T]:
        """The items of all processes, in the first one; undefined in the others."""
        return [item]

    def gather_everywhere(self, item: T) -> list[T]:
        """The items of all processes, in all of them."""
        return [item]

    def wait(self) -> None:
        """Waits for all processes, however long one of them takes."""

    def check_equal(self, agent: nn.Module, when: str) -> None:
        """TrainingError unless the agents of all processes are equal to the bit."""

    def open_run(self, open_run: Callable[[], Run]) -> Run:
        """The run to train; only the first process writes into its folder."""
        return open_run()

    def close(self) -> None:
        """Leaves the group."""


class TorchGroup(Group):
    """The processes that `torchrun` started; ClusterError if they cannot train together."""

    def __init__(self, device: str, config: str = "") -> None:
        """`config`: a new run's, as JSON."""
        self.store, self.rank, self.size = connect()
        store = meet(self.store, self.rank, self.size, describe(config, device))
        backend = "nccl" if "cuda" in device else "gloo"
        distributed.init_process_group(backend, None, TIMEOUT, self.size, self.rank, store)
        self._patient = distributed.new_group(backend="gloo", timeout=PATIENCE)
        """For objects, which are on the CPU, and for what may take long."""

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        # Where only some processes have a gradient, sizes must still agree; `check_equal` would notice.
        self.average([torch.zeros_like(p) if p.grad is None else p.grad for p in parameters])

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        # One message for all of them: each costs the network's latency.
        self._at_once(tensors, lambda flat: (distributed.all_reduce(flat), flat.div_(self.size)))

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        distributed.all_reduce(tensor)
        return tensor

    def average_norms(self, norms: Sequence[RunningNorm]) -> None:
        own = [norm.mean.clone() for norm in norms]
        self.average([norm.mean for norm in norms])
        for norm, mean in zip(norms, own, strict=True):
            # What differs between processes, which have different rooms, is variance too.
            norm.variance.add_((mean - norm.mean) ** 2)
        self.average([norm.variance for norm in norms])

    def broadcast(self, tensors: Sequence[torch.Tensor]) -> None:
        self._at_once(tensors, lambda flat: distributed.broadcast(flat, 0))

    def _at_once(self, tensors: Sequence[torch.Tensor], change: Callable[[torch.Tensor], object]) -> None:
        """Changes tensors of one type as one, whatever their strides."""
        if not tensors:
            return
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        change(flat)
        with torch.no_grad():
            for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
                tensor.copy_(part.view(tensor.shape))

    def max(self, number: int, device: str) -> int:
        return self._all_reduce(number, device, distributed.ReduceOp.MAX)

    def sum(self, number: int, device: str) -> int:
        return self._all_reduce(number, device, distributed.ReduceOp.SUM)

    def gather(self, item: T) -> list[T]:
        items: list[Any] = [None] * self.size
        distributed.gather_object(item, items if self.rank == 0 else None, group=self._patient)
        return items

    def gather_everywhere(self, item: T) -> list[T]:
        items: list[Any] = [None] * self.size
        distributed.all_gather_object(items, item, group=self._patient)
        return items

    def _all_reduce(self, number: int, device: str, op: Any) -> int:
        tensor = torch.tensor(number, device=device)
        distributed.all_reduce(tensor, op)
        return int(tensor)

    def wait(self) -> None:
        distributed.barrier(group=self._patient)

    def check_equal(self, agent: nn.Module, when: str) -> None:
        digests = self.gather_everywhere(digest(agent))
        if different := [str(rank) for rank, each in enumerate(digests) if each != digests[0]]:
            raise TrainingError(
                f"{when} the agents of processes {', '.join(different)} differ from the first one's: train on GPUs of "
                "one kind; the last checkpoint is intact"
            )

    def open_run(self, open_run: Callable[[], Run]) -> Run:
        run: Run | None = None
        opened: list[Any] = [None, "the first process could not open the run"]
        try:
            if self.rank == 0:
                run = open_run()
                opened = [run.folder, run.config]
        except (ScrubjayError, ValueError, OSError) as error:
            opened = [None, str(error)]
            raise
        finally:
            # The others wait for this, also if opening failed.
            distributed.broadcast_object_list(opened, group=self._patient)
        if opened[0] is None:
            raise RunError(opened[1])
        run = run or Run(*opened)
        self._check_shared(run)
        return run

    def _check_shared(self, run: Run) -> None:
        """ClusterError unless all processes see what the first one writes into the run's folder."""
        token = [secrets.token_hex(8)]
        distributed.broadcast_object_list(token, group=self._patient)
        path = run.folder / f".shared-{token[0]}"
        if self.rank == 0:
            write_atomically(path, token[0])
        seen = self.gather_everywhere(appears(path, token[0]))
        if self.rank == 0:
            path.unlink()
        if not all(seen):
            run.close()
            blind = [str(rank) for rank, sees in enumerate(seen) if not sees]
            raise ClusterError(
                f"{run.folder} is not the same folder on all nodes: processes {', '.join(blind)} did not see within "
                f"{SHARED_SECONDS:.0f} seconds what process 0 wrote there; put it on a file system that all nodes share"
            )

    def close(self) -> None:
        distributed.destroy_process_group()


def is_one_of_many() -> bool:
    """Was this process started as one of several, by torchrun or otherwise?"""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_lost(error: RuntimeError) -> bool:
    """Does an error mean that another process is gone?"""
    words = ("closed by peer", "reset by peer", "Broken pipe", "Socket closed", "Connection refused")
    return isinstance(error, distributed.DistBackendError) or any(each in str(error) for each in words)


def make_group(device: str, config: str = "") -> tuple[Group, str]:
    """This process's group and its device; `config`: a new run's, as JSON, which must be the same in all processes."""
    if not is_one_of_many():
        return Group(), device
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    return TorchGroup(device, config), device


def digest(agent: nn.Module) -> str:
    """A digest of weights and running statistics, without the numbers of batches, which differ between processes."""
    content = hashlib.sha256()
    for name, tensor in sorted(agent.state_dict().items()):
        if not name.endswith(".batches"):
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()
