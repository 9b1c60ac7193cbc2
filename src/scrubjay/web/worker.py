"""The thread that owns all worlds and writes to the database.

OpenGL contexts are bound to a thread, and trials in one room share a world, so all acting, rendering and writing
happens here, serially. Calls that are queued together share one commit and are answered after it. Long work is a
generator, advanced between calls. While the database cannot be written, on a full disk for one, nothing runs, and
calls are refused: no state in memory gets ahead of what is stored.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from scrubjay.web.database import Database

log = logging.getLogger("scrubjay.web")
MAX_BATCH = 8
"""Calls that share a commit: the first of them waits for the last."""

PROBE_SECONDS = 1.0
"""Between two attempts to write to a database that could not be written."""

Job = Iterator[float]
"""Long work: each `next` does a small part of it and yields the seconds to wait before the following part."""

Call = tuple[Callable[[], Any], Future]
"""A function, and the future that receives its result."""


class StorageError(Exception):
    """The database cannot be written now; the message is sent to the client."""

    def __init__(self) -> None:
        super().__init__("The server cannot save anything at the moment. Nothing is lost; please try again soon.")


class Worker:
    """Runs calls and jobs in its own thread, each in a database transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._jobs: list[tuple[float, Job]] = []
        self._outbox: list[Callable[[], None]] = []
        self._cleanups: list[Callable[[], None]] = []
        self.on_rollback: Callable[[], None] = lambda: None
        """Called after a failed commit, when the state in memory is ahead of the database."""
        self.problem: str | None = None
        """Why the database cannot be written; None while it can."""
        self._next_probe = 0.0
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., Any], *args: Any) -> Future:
        """Queues a function for the thread; its future resolves when everything it wrote is on disk."""
        future: Future = Future()
        self._calls.put((lambda: function(*args), future))
        return future

    def stop(self) -> None:
        """Answers the calls already queued, then ends the thread."""
        self._calls.put(None)
        self._thread.join()

    # The following methods are called from the worker's thread.

    def start(self, job: Job) -> None:
        self._jobs.append((0.0, job))

    def after_commit(self, send: Callable[[], None]) -> None:
        """Calls `send` once everything written so far is on disk; drops it if the commit fails."""
        self._outbox.append(send)

    def on_stop(self, cleanup: Callable[[], None]) -> None:
        self._cleanups.append(cleanup)

    def _run(self) -> None:
        while (calls := self._next_calls()) is not None:
            if self.problem is not None and not self._can_write():
                _resolve(calls, [(None, StorageError()) for _ in calls])
                if not calls:
                    time.sleep(0.02)  # Jobs are due, but wait.
                continue
            if calls:
                self._answer(calls)
            self._advance()
        for cleanup in self._cleanups:
            cleanup()
        self.database.close()

    def _next_calls(self) -> list[Call] | None:
        """The next batch of calls; empty if a job is due first, None at the end."""
        pause = min((due for due, _ in self._jobs), default=float("inf")) - time.monotonic()
        calls: list[Call] = []
        try:
            call = self._calls.get(timeout=None if pause == float("inf") else max(pause, 0))
            while call is not None:
                calls.append(call)
                if len(calls) == MAX_BATCH:
                    return calls
                call = self._calls.get_nowait()
        except queue.Empty:
            return calls
        if calls:
            self._calls.put(None)
            return calls
        return None

    def _answer(self, calls: list[Call]) -> None:
        try:
            with self.database.transaction():
                results = [*map(self._try, [function for function, _ in calls])]
        except Exception as error:
            results = [(None, self._roll_back(error))] * len(calls)
        _resolve(calls, results)
        # An exception's traceback holds this frame. If the frame held the exception or its future in turn, the cycle
        # would keep the finished trial and its images alive until the garbage collector's next full run, in minutes.
        calls.clear()
        results.clear()
        self._flush()

    def _try(self, function: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """A call's result, or the exception it raised; its writes are undone in that case."""
        try:
            with self.database.savepoint():
                return function(), None
        except Exception as error:
            if not self.database.db.in_transaction:  # SQLite has undone all of it: no call of the batch is stored.
                raise
            return None, error

    def _roll_back(self, error: Exception) -> Exception:
        """Takes back what the failed transaction did in memory; returns the error for its callers."""
        self._outbox.clear()
        self.on_rollback()
        if not isinstance(error, sqlite3.OperationalError):
            log.error("a commit failed", exc_info=error)
            return error
        self.problem = f"{self.database.path} cannot be written: {error}"
        self._next_probe = time.monotonic() + PROBE_SECONDS
        log.error("%s. Games wait until it can.", self.problem)
        return StorageError()

    def _can_write(self) -> bool:
        """Tries to write to a database that could not be written, now and then."""
        if time.monotonic() < self._next_probe:
            return False
        self._next_probe = time.monotonic() + PROBE_SECONDS
        try:
            self.database.probe()
        except sqlite3.Error:
            return False
        log.warning("%s can be written again", self.database.path)
        self.problem = None
        return True

    def _advance(self) -> None:
        """Advances the job that has been due longest by one part."""
        due = [entry for entry in self._jobs if entry[0] <= time.monotonic()]
        if not due:
            return
        entry = min(due, key=lambda entry: entry[0])
        self._jobs.remove(entry)
        try:
            with self.database.transaction():
                pause = next(entry[1], None)
        except Exception as error:
            self._roll_back(error)
            pause = PROBE_SECONDS  # If the error is its own, it is at its end then.
        if pause is not None:
            self._jobs.append((time.monotonic() + pause, entry[1]))
        self._flush()

    def _flush(self) -> None:
        outbox, self._outbox = self._outbox, []
        for send in outbox:
            send()


def _resolve(calls: list[Call], results: list[tuple[Any, Exception | None]]) -> None:
    for (_, future), (value, error) in zip(calls, results, strict=True):
        if future.set_running_or_notify_cancel():
            if error:
                future.set_exception(error)
            else:
                future.set_result(value)
