"""Where physics runs: the actions of some worlds at once, in threads of this process or in processes of their own.

Python runs one thread at a time, so threads gain little for short physics; processes gain as much as there are cores,
for the price of a message. An action is a function of its arguments, so it does not matter where it runs.
"""

from __future__ import annotations

import os
import pickle
import selectors
import subprocess
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Protocol

import numpy as np

from scrubjay import tree
from scrubjay.errors import PhysicsError
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.physics import Physics, Situation
from scrubjay.sim.state import State

TOGETHER = {"drop": 1, "swing": 1, "close": 1, "hold": 2, "move_hand": 2, "carry": 6, "rotate_hand": 6}
"""How many actions are worth a message: those that let the engine run take some milliseconds each."""
SHARES = 4
"""Messages that each process gets for a large batch, so that who is done early helps the others."""
PATIENCE = 5.0
"""Seconds that a process may take to end."""


class PhysicsPool(Protocol):
    """What runs physics."""

    def run(self, rooms: Sequence[CompiledRoom], method: str, state: State, *arguments: np.ndarray) -> np.ndarray:
        """Runs a method of `Physics` for k worlds: their rooms, their state (k, ...), its arguments (k, ...).

        Returns which succeeded, (k,) bool; their rows of the state are changed.
        """

    def forget(self, room: CompiledRoom) -> None:
        """Keeps nothing more of a room that has left its world."""

    def close(self) -> None: ...


class Threads:
    """Engines in this process."""

    def __init__(self, count: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(count or os.cpu_count(), thread_name_prefix="physics")
        self._idle: dict[CompiledRoom, list[Physics]] = {}

    def run(self, rooms: Sequence[CompiledRoom], method: str, state: State, *arguments: np.ndarray) -> np.ndarray:
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

        return np.fromiter(self._pool.map(one, range(len(rooms))), bool, len(rooms))

    def forget(self, room: CompiledRoom) -> None:
        self._idle.pop(room, None)

    def close(self) -> None:
        self._pool.shutdown()


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen
    connection: Connection


class Processes:
    """Engines in processes that several worlds may share, one after another. Each has all rooms that were played in.

    They end when they are closed, when this process ends in whatever way, and when anything goes wrong.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"physics needs at least one process, not {count}")
        self._numbers: dict[CompiledRoom, int] = {}
        self._next = 0
        self._selector = selectors.DefaultSelector()
        self._workers = [_begun() for _ in range(count)]
        for worker in self._workers:
            self._selector.register(worker.connection, selectors.EVENT_READ, worker)

    def run(self, rooms: Sequence[CompiledRoom], method: str, state: State, *arguments: np.ndarray) -> np.ndarray:
        if not self._workers:
            raise PhysicsError("the physics processes are closed")
        try:
            for room in rooms:
                if room not in self._numbers:
                    self._introduce(room)
            return self._deal([self._numbers[room] for room in rooms], method, state, arguments)
        except BaseException:
            # Answers may still come that nobody waits for, so nothing could be asked after this.
            self.close()
            raise

    def forget(self, room: CompiledRoom) -> None:
        if room in self._numbers:
            self._tell_all(("forget", self._numbers.pop(room)))

    def close(self) -> None:
        workers, self._workers = self._workers, []
        self._selector.close()
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            try:
                worker.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()

    def _introduce(self, room: CompiledRoom) -> None:
        """Sends a room to all processes. What is only seen stays here."""
        self._numbers[room], self._next = self._next, self._next + 1
        self._tell_all(("room", self._numbers[room], replace(room, shapes=())))

    def _tell_all(self, message: tuple) -> None:
        packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        for worker in self._workers:
            self._send(worker, packed)

    def _deal(self, numbers: list[int], method: str, state: State, arguments: Sequence[np.ndarray]) -> np.ndarray:
        """Gives each process a few worlds at a time until none is left."""
        done = np.zeros(len(numbers), bool)
        size = max(TOGETHER[method], -(-len(numbers) // (SHARES * len(self._workers))))
        waiting = [slice(begin, begin + size) for begin in range(0, len(numbers), size)]
        idle, busy = list(self._workers), dict[_Worker, slice]()
        while waiting or busy:
            while waiting and idle:
                worker, part = idle.pop(), waiting.pop()
                message = ("run", numbers[part], method, *tree.index((state, arguments), part))
                self._send(worker, pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
                busy[worker] = part
            for key, _ in self._selector.select():
                worker = key.data
                answer = self._receive(worker)
                part = busy.pop(worker)
                done[part], then = answer
                tree.index_put_(state, part, then)
                idle.append(worker)
        return done

    def _send(self, worker: _Worker, packed: bytes) -> None:
        try:
            worker.connection.send_bytes(packed)
        except OSError:
            raise _dead(worker) from None

    def _receive(self, worker: _Worker) -> tuple[np.ndarray, State]:
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            raise _dead(worker) from None
        if isinstance(answer, str):
            raise PhysicsError(f"physics failed in a process of its own:\n{answer}")
        return answer


def _act(physics: Physics, method: str, state: State, row: int, arguments: Sequence[np.ndarray]) -> bool:
    """Runs one world's action and changes its row, if it succeeds."""
    goal, count = state.goal[row], len(physics.compiled.openables)
    now = Situation(state.position[row], state.rotation[row], bool(state.standing[row]), state.open[row, :count],
                    GOALS[goal] if goal >= 0 else "", state.pose[row], bool(state.held[row]))  # fmt: skip
    then = getattr(physics, method)(now, *(values[row] for values in arguments))
    if then is None:
        return False
    state.rotation[row], state.standing[row], state.open[row, :count] = then.rotation, then.standing, then.open
    state.pose[row], state.held[row] = then.pose, then.held
    return True


def _begun() -> _Worker:
    """A fresh process, since one with CUDA in use cannot be copied. Not one of `multiprocessing`, whose processes run
    the main script again and hear Ctrl-C: it belongs to a session of its own and ends when its connection does."""
    here, there = Pipe()
    code = f"from scrubjay.sim.physics_pool import serve; serve({there.fileno()})"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, pass_fds=[there.fileno()],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, start_new_session=True,
    )  # fmt: skip
    there.close()
    return _Worker(process, here)


def _dead(worker: _Worker) -> PhysicsError:
    try:
        code = worker.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return PhysicsError("a physics process does not answer any more")
    return PhysicsError(f"a physics process has ended unexpectedly, with exit code {code}; was there enough memory?")


def serve(handle: int) -> None:
    """A process's whole life: it does what it is told until the connection ends."""
    connection, engines = Connection(handle), dict[int, Physics]()
    try:
        while True:
            what, *details = connection.recv()
            if what == "room":
                number, room = details
                engines[number] = Physics(room)
            elif what == "forget":
                del engines[details[0]]
            else:
                connection.send(_answer(engines, *details))
    except (EOFError, OSError):
        return


def _answer(
    engines: dict[int, Physics], numbers: list[int], method: str, state: State, arguments: Sequence[np.ndarray]
) -> tuple[np.ndarray, State] | str:
    """Which actions succeeded, and the state after them; what went wrong, in words, if anything did."""
    try:
        done = [_act(engines[number], method, state, row, arguments) for row, number in enumerate(numbers)]
    except Exception:
        return traceback.format_exc()
    return np.array(done), state
