"""The one thread that owns all worlds and writes to the database.

OpenGL's contexts belong to a thread, and trials in one room share a world; so all acting, drawing and writing happens
here, one thing after another. Calls that wait together share one commit, and are answered after it. Long work is a
generator that is advanced between calls.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from scrubjay.web.database import Database

log = logging.getLogger("scrubjay.web")
MOST_TOGETHER = 8
"""Calls that share a commit: the first of them waits for the last."""

Job = Iterator[float]
"""Long work: each `next` does a little of it and gives the seconds until it wants to go on."""


Call = tuple[Callable[[], Any], Future]
"""What is to be done, and where the answer goes."""


class Worker:
    """Runs calls and jobs in its thread, each in a transaction of the store."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._jobs: list[tuple[float, Job]] = []
        self._outbox: list[Callable[[], None]] = []
        self._at_end: list[Callable[[], None]] = []
        self.on_rollback: Callable[[], None] = lambda: None
        """Called when what calls or a job wrote could not be kept: what is in memory is ahead of the store."""
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., Any], *values: Any) -> Future:
        """Has a function called in the thread; the answer comes when all that it wrote is on the disk."""
        future: Future = Future()
        self._calls.put((lambda: function(*values), future))
        return future

    def stop(self) -> None:
        """Ends the thread when the calls before are answered."""
        self._calls.put(None)
        self._thread.join()

    # For those who run in the thread.

    def start(self, job: Job) -> None:
        self._jobs.append((0.0, job))

    def after_commit(self, send: Callable[[], None]) -> None:
        """Has something sent when what was written before is on the disk."""
        self._outbox.append(send)

    def at_end(self, close: Callable[[], None]) -> None:
        self._at_end.append(close)

    def _run(self) -> None:
        while (calls := self._waiting()) is not None:
            if calls:
                self._answer(calls)
            self._advance()
        for close in self._at_end:
            close()
        self.database.close()

    def _waiting(self) -> list[Call] | None:
        """The next calls; none if a job is due before any comes; None at the end."""
        pause = min((due for due, _ in self._jobs), default=float("inf")) - time.monotonic()
        calls: list[Call] = []
        try:
            first = self._calls.get(timeout=None if pause == float("inf") else max(pause, 0))
            while first is not None:
                calls.append(first)
                if len(calls) == MOST_TOGETHER:
                    return calls
                first = self._calls.get_nowait()
        except queue.Empty:
            return calls
        if calls:
            self._calls.put(None)
            return calls
        return None

    def _answer(self, calls: list[Call]) -> None:
        try:
            with self.database.transaction():
                answers = [*map(self._tried, [function for function, _ in calls])]
        except Exception as error:
            log.exception("a commit failed")
            self._outbox.clear()
            self.on_rollback()
            answers = [(None, error)] * len(calls)
        _hand_over(calls, answers)
        # An error holds the frames that it has passed, this one too. If this one held the error or its future in turn,
        # all of it would wait for the collector: minutes, with the trial that was acted in and its pictures.
        calls.clear()
        answers.clear()
        self._send()

    def _tried(self, function: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """What a call answers, or what it raised."""
        try:
            with self.database.part():
                return function(), None
        except Exception as error:
            return None, error

    def _advance(self) -> None:
        """Advances the job that is due first by a little."""
        due = [entry for entry in self._jobs if entry[0] <= time.monotonic()]
        if not due:
            return
        entry = min(due, key=lambda entry: entry[0])
        self._jobs.remove(entry)
        try:
            with self.database.transaction():
                pause = next(entry[1], None)
            if pause is not None:
                self._jobs.append((time.monotonic() + pause, entry[1]))
        except Exception:
            log.exception("a job failed")
            self._outbox.clear()
            self.on_rollback()
        self._send()

    def _send(self) -> None:
        sending, self._outbox = self._outbox, []
        for send in sending:
            send()


def _hand_over(calls: list[Call], answers: list[tuple[Any, Exception | None]]) -> None:
    """Gives each call's answer, or what it raised, to whoever waits for it."""
    for (_, future), (answer, wrong) in zip(calls, answers, strict=True):
        if future.set_running_or_notify_cancel():
            if wrong:
                future.set_exception(wrong)
            else:
                future.set_result(answer)
