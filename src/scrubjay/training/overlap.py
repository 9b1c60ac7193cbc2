"""Learning in the background: one thread learns from a rollout while another collects the next.

Collecting keeps a CPU busy and learning a GPU. Side by side they take as long as the slower of the two. The policy
that acts changes meanwhile, as with HOGWILD!; each action's probability is recorded when it is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch

SWITCH_INTERVAL = 5e-4
"""Seconds for which a thread may keep the interpreter while another wants it. A step of collecting waits for the GPU
many times, and after each wait it would lose up to Python's own 5 ms."""


class FairLock:
    """A lock whose waiter is next: a thread that releases it and wants it again has to wait its turn."""

    def __init__(self) -> None:
        self._held, self._next = Lock(), Lock()

    def __enter__(self) -> None:
        with self._next:
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()


class Background:
    """A thread that learns, on a CUDA stream of its own."""

    def __init__(self, device: str, turn: FairLock) -> None:
        """`turn` is held by whoever must not be disturbed: collecting holds it for a step at a time."""
        self.turn = turn
        self._stream = torch.cuda.Stream(device) if device.startswith("cuda") else None
        self._pool = ThreadPoolExecutor(1, "learning")
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._future: Future[Any] | None = None
        self.is_running = False
        """A function was started, and its result not taken yet."""

    def start(self, function: Callable[[], Any]) -> None:
        """Runs a function after what is queued on the GPU so far."""
        assert not self.is_running, "one at a time"
        self.is_running = True
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        self._future = self._pool.submit(self._run, function)

    def result(self) -> Any:
        """Waits for the function; what is queued on the GPU from now on comes after what it did there."""
        assert self._future is not None, "nothing was started"
        try:
            value = self._future.result()
        finally:
            self._future, self.is_running = None, False
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        return value

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For the function itself: the other thread stands still, and the GPU has finished what it was given."""
        with self.turn:
            self._wait()
            yield
            self._wait()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        sys.setswitchinterval(self._switch_interval)

    def _run(self, function: Callable[[], Any]) -> Any:
        if self._stream is None:
            return function()
        with torch.cuda.device(self._stream.device), torch.cuda.stream(self._stream):
            return function()

    def _wait(self) -> None:
        if self._stream is not None:
            torch.cuda.synchronize(self._stream.device)
