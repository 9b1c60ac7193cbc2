"""Workers that are child processes of this one."""

from __future__ import annotations

import pickle
import selectors
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scrubjay.errors import ProcessError
from scrubjay.workers.base import Result, Tasks, Workers, pack_function
from scrubjay.workers.processes import ChildDied, ChildProcess


class ProcessWorkers(Workers):
    """Up to `count` child processes. One that dies is replaced, and its task done again."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"workers: at least one process, not {count}")
        self._count = count
        self._functions: dict[ChildProcess, bytes] = {}
        """All children, with the function that each has got."""

    @property
    def pids(self) -> list[int]:
        """Of the children that there are."""
        return [child.process.pid for child in self._functions]

    def map(
        self, function: Callable[..., Result], items: Iterable[tuple], gpu: bool = False
    ) -> Iterator[tuple[int, Result]]:
        packed, tasks = pack_function(function), Tasks(function, items)
        idle, busy = list(self._functions), dict[ChildProcess, tuple[int, tuple]]()
        done: deque[tuple[int, Result]] = deque()
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    # First of all, so that nobody waits for whoever takes the results.
                    while (idle or len(self._functions) < self._count) and (task := tasks.next()):
                        child = idle.pop() if idle else self._start()
                        busy[child] = task
                        try:
                            self._send(child, packed, task[1])
                        except ChildDied as died:
                            tasks.lost(*busy.pop(child), self._bury(child, died))
                        else:
                            selector.register(child.connection, selectors.EVENT_READ, child)
                    while done:
                        yield done.popleft()
                    if not busy:
                        return
                    for key, _ in selector.select():
                        child = key.data
                        selector.unregister(child.connection)
                        try:
                            done.append((busy[child][0], child.receive()))
                            idle.append(child)
                        except ChildDied as died:
                            tasks.lost(*busy[child], self._bury(child, died))
                        del busy[child]
            finally:
                # Nobody waits for the replies of those at work.
                self._end(list(busy))

    def close(self) -> None:
        self._end(list(self._functions))

    def _start(self) -> ChildProcess:
        child = ChildProcess(_Caller())
        self._functions[child] = b""
        return child

    def _send(self, child: ChildProcess, packed: bytes, item: tuple) -> None:
        """A task, with its function if the child has another one."""
        child.request(None if self._functions[child] == packed else packed, item)
        self._functions[child] = packed

    def _bury(self, child: ChildProcess, died: ProcessError) -> str:
        """Removes a child that died; says how."""
        self._end([child])
        return str(died)

    def _end(self, children: list[ChildProcess]) -> None:
        for child in children:
            self._functions.pop(child, None)
            child.connection.close()
        for child in children:
            child.wait()


class _Caller:
    """What a child does with a request: calls the newest function that it has got."""

    def __init__(self) -> None:
        self._function: Callable | None = None

    def __call__(self, packed: bytes | None, item: tuple) -> Any:
        if packed is not None:
            self._function = pickle.loads(packed)
        assert self._function is not None
        return self._function(*item)
