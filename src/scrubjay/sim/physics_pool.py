"""Runs the physics of many worlds in parallel, in threads or in child processes.

The GIL lets threads gain little for short physics; processes scale with the cores, at the price of a message. An
action is a pure function, so results do not depend on where it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from scrubjay import tree
from scrubjay.errors import PhysicsError, ProcessError
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.physics import Physics, PhysicsState
from scrubjay.sim.state import State
from scrubjay.workers.processes import ProcessPool

BATCH = {"drop": 1, "move_openable": 1, "close": 1, "hold": 2, "move_hand": 2, "carry": 6, "rotate_hand": 6}
"""Actions that are worth a message: those that step the engine take milliseconds each."""
MAX_BATCHES = 4
"""Messages to each process for a large batch, which balances the load."""


Pending = Callable[[], np.ndarray]
"""Waits for physics in k worlds; says which succeeded, (k,) bool."""


class PhysicsPool(Protocol):
    """Runs physics for batches of worlds."""

    def submit(self, rooms: Sequence[CompiledRoom], method: str, state: State, *arguments: np.ndarray) -> Pending:
        """Starts a method of `Physics` in k worlds, given their rooms, their state (k, ...) and its arguments (k, ...).

        The function returned must be called once: it waits, says which succeeded, (k,) bool, and has updated their rows
        of the state, which nobody else may use until then.
        """

    def forget(self, room: CompiledRoom) -> None:
        """Frees what is kept for a room."""

    def close(self) -> None: ...


class PhysicsThreads:
    """Physics in threads of this process."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count or os.cpu_count()
        self._begin()
        self._idle: dict[CompiledRoom, list[Physics]] = {}

    def _begin(self) -> None:
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="physics")

    def submit(self, rooms: Sequence[CompiledRoom], method: str, state: State, *arguments: np.ndarray) -> Pending:
        if os.getpid() != self._process:
            self._begin()  # This process was forked: it has the pool, but none of its threads.
        for room in rooms:
            self._idle.setdefault(room, [])

        def one(row: int) -> bool:
            idle = self._idle[rooms[row]]
            try:
                physics = idle.pop()
            except IndexError:
                physics = Physics(rooms[row])
            done = _act(physics, method, state, row, arguments)
            idle.append(physics)
            return done

        successes = self._pool.map(one, range(len(rooms)))
        return lambda: np.fromiter(successes, bool, len(rooms))

    def forget(self, room: CompiledRoom) -> None:
        self._idle.pop(room, None)

    def close(self) -> None:
        if os.getpid() == self._process:
            self._pool.shutdown()


class PhysicsProcesses:
    """Physics in child processes, each with all rooms in use. Worlds may share them.

    They end with this process, and when any of them fails.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"physics needs at least one process, not {count}")
        self._numbers: dict[CompiledRoom, int] = {}
        self._next = 0
        self.pool = ProcessPool(_Engines(), count)

    def submit(self, rooms: Sequence[CompiledRoom], method: str, state: State, *arguments: np.ndarray) -> Pending:
        if not self.pool.children:
            raise PhysicsError("the physics processes are closed")
        size = max(BATCH[method], -(-len(rooms) // (MAX_BATCHES * len(self.pool.children))))
        parts = [slice(begin, begin + size) for begin in range(0, len(rooms), size)]
        with _physics_errors():
            for room in rooms:
                if room not in self._numbers:
                    self._add(room)
            numbers = [self._numbers[room] for room in rooms]
            replies = self.pool.submit(
                ("run", numbers[part], method, *tree.index((state, arguments), part)) for part in parts
            )

        def receive() -> np.ndarray:
            success = np.zeros(len(rooms), bool)
            with _physics_errors():
                for index, (done, then) in replies:
                    success[parts[index]] = done
                    tree.index_put_(state, parts[index], then)
            return success

        return receive

    def forget(self, room: CompiledRoom) -> None:
        if room in self._numbers:
            self.pool.broadcast("remove", self._numbers.pop(room))

    def close(self) -> None:
        self.pool.close()

    def _add(self, room: CompiledRoom) -> None:
        """Sends a room to all processes, without its shapes: physics does not use them."""
        self._numbers[room], self._next = self._next, self._next + 1
        self.pool.broadcast("add", self._numbers[room], replace(room, shapes=()))


@contextmanager
def _physics_errors() -> Iterator[None]:
    """Whatever goes wrong in a child becomes a PhysicsError."""
    try:
        yield
    except ProcessError as error:
        raise PhysicsError(f"physics: {error}") from error
    except Exception as error:
        raise PhysicsError(f"physics failed in a child process: {error!r}") from error


class _Engines(dict[int, Physics]):
    """A child's engines, by the numbers of their rooms; serves the requests of `PhysicsProcesses`."""

    def __call__(self, request: str, *arguments: Any) -> tuple[np.ndarray, State] | None:
        if request == "run":
            return self.run(*arguments)
        if request == "add":
            number, room = arguments
            self[number] = Physics(room)
        else:
            del self[arguments[0]]
        return None

    def run(
        self, numbers: list[int], method: str, state: State, arguments: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, State]:
        """Which actions succeeded, and the state after them."""
        done = [_act(self[number], method, state, row, arguments) for row, number in enumerate(numbers)]
        return np.array(done), state


def physics_state(state: State, row: int, openables: int) -> PhysicsState:
    """One world's state as `Physics` takes it, in a room with so many openables."""
    kind = GOALS[state.goal[row]] if state.goal[row] >= 0 else ""
    return PhysicsState(
        state.position[row], state.rotation[row], bool(state.standing[row]), state.open[row, :openables], kind,
        state.pose[row], bool(state.held[row]),
    )  # fmt: skip


def _act(physics: Physics, method: str, state: State, row: int, arguments: Sequence[np.ndarray]) -> bool:
    """Runs one world's action; updates its row on success."""
    count = len(physics.compiled.openables)
    then = getattr(physics, method)(physics_state(state, row, count), *(values[row] for values in arguments))
    if then is None:
        return False
    state.rotation[row], state.standing[row], state.open[row, :count] = then.rotation, then.standing, then.open
    state.pose[row], state.held[row] = then.pose, then.held
    return True
