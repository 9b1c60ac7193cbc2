"""Child processes of our own Python that serve requests.

Fresh interpreters, since a process that uses CUDA cannot be forked. Not `multiprocessing`, whose children run the
user's main script again: that needs a `__main__` guard, and fails for notebooks and scripts on standard input. The
children have a session of their own, so Ctrl-C reaches only the parent, and end when their connection does.
"""

from __future__ import annotations

import os
import pickle
import select
import selectors
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from scrubjay.errors import ProcessError

EXIT_TIMEOUT = 5.0
"""Seconds that a child may take to exit before it is killed."""


class ChildDied(ProcessError):
    """A child process that ended, or no longer answers."""


class ChildProcess:
    """A process that calls `handler` with the arguments of each request. The handler is pickled, so its module must be
    importable."""

    def __init__(self, handler: Callable) -> None:
        self.connection, theirs = Pipe()
        # The same package and libraries as here, wherever they were found.
        paths = [path or os.getcwd() for path in sys.path]
        serving = f"from scrubjay.workers.processes import serve; serve({theirs.fileno()})"
        code = f"import sys; sys.path[:] = {paths!r}; {serving}"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self.send(pickle.dumps(handler, pickle.HIGHEST_PROTOCOL))

    def request(self, *arguments: Any) -> None:
        """Sends a request that `receive` has the reply to."""
        self.send(_pack(arguments, reply=True))

    def send(self, packed: bytes) -> None:
        try:
            self.connection.send_bytes(packed)
        except OSError:
            raise self._died() from None

    def receive(self) -> Any:
        """The reply to the oldest open request. Raises what the handler raised."""
        try:
            packed = self.connection.recv_bytes()
        except (EOFError, OSError):
            raise self._died() from None
        reply, error = pickle.loads(packed)
        if error:
            raise error
        return reply

    def wait(self) -> None:
        """Waits for the exit, once the connection is closed."""
        try:
            self.process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _died(self) -> ChildDied:
        try:
            code = self.process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            return ChildDied("a child process does not answer")
        return ChildDied(f"a child process ended unexpectedly, with exit code {code}; was there enough memory?")


@dataclass(eq=False)
class _Submission:
    """Requests to a pool, and the replies that nobody has taken yet."""

    requests: Iterator[tuple[int, tuple]]
    running: int = 0
    """Requests that children work on."""
    replies: deque[tuple[int, Any]] = field(default_factory=deque)


class ProcessPool:
    """Children that share requests. Any error closes the pool: replies might still come that nobody expects."""

    def __init__(self, handler: Callable, count: int) -> None:
        self._selector = selectors.DefaultSelector()
        self.children: list[ChildProcess] = []
        """Empty when the pool is closed."""
        self._idle: list[ChildProcess] = []
        self._busy: dict[ChildProcess, tuple[_Submission, int]] = {}
        self._waiting: deque[_Submission] = deque()
        """Submissions with requests that no child has got yet."""
        try:
            for _ in range(count):
                child = ChildProcess(handler)
                self.children.append(child)
                self._idle.append(child)
                self._selector.register(child.connection, selectors.EVENT_READ, child)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, requests: Iterable[tuple]) -> Iterator[tuple[int, Any]]:
        """Gives each child one request at a time. Yields each request's index and reply, in order of completion."""
        yield from self.submit(requests)

    def submit(self, requests: Iterable[tuple]) -> Iterator[tuple[int, Any]]:
        """Like `map`, but idle children begin at once. All replies must be taken.

        Several submissions share the children: first come, first served.
        """
        submission = _Submission(enumerate(requests))
        self._waiting.append(submission)
        self._feed()
        return self._replies(submission)

    def _replies(self, submission: _Submission) -> Iterator[tuple[int, Any]]:
        try:
            while True:
                while submission.replies:
                    yield submission.replies.popleft()
                if submission.running or submission in self._waiting:
                    self._receive()
                else:
                    return
        except BaseException:
            self.close()
            raise

    def _feed(self) -> None:
        """Gives requests to idle children."""
        try:
            while self._idle and self._waiting:
                if (item := next(self._waiting[0].requests, None)) is None:
                    self._waiting.popleft()
                    continue
                index, request = item
                child = self._idle.pop()
                child.request(*request)
                self._busy[child] = self._waiting[0], index
                self._waiting[0].running += 1
        except BaseException:
            self.close()
            raise

    def _receive(self) -> None:
        """Waits for replies, whosever they are, and gives those children more to do."""
        if not self.children:
            raise ProcessError("the child processes are closed")
        for key, _ in self._selector.select():
            child = key.data
            reply = child.receive()
            self._idle.append(child)
            submission, index = self._busy.pop(child)
            submission.running -= 1
            submission.replies.append((index, reply))
        self._feed()

    def broadcast(self, *request: Any) -> None:
        """Sends a request without a reply to all children."""
        packed = _pack(request, reply=False)
        try:
            for child in self.children:
                child.send(packed)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        children, self.children, self._idle = self.children, [], []
        self._selector.close()
        for child in children:
            child.connection.close()
        for child in children:
            child.wait()


def serve(descriptor: int) -> None:
    """The child's main loop."""
    threading.Thread(target=_exit_with_connection, args=(descriptor,), daemon=True).start()
    connection = Connection(descriptor)
    try:
        handler = connection.recv()
        while True:
            request, wants_reply = connection.recv()
            if not wants_reply:
                handler(*request)
                continue
            # Not `send`, whose pickler would share the memory of torch's tensors instead of sending them.
            connection.send_bytes(pickle.dumps(answer(handler, request), pickle.HIGHEST_PROTOCOL))
    except (EOFError, OSError):
        return


def answer(handler: Callable, request: tuple) -> tuple[Any, Exception | None]:
    """The result of a request, or the exception, ready to be sent."""
    try:
        return handler(*request), None
    except Exception as error:
        return None, _portable(error)


def _exit_with_connection(descriptor: int) -> None:
    """Exits as soon as the other end is closed, even in the middle of a request."""
    poll = select.poll()
    poll.register(descriptor, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(0)


def _portable(error: Exception) -> Exception:
    """An exception that can be sent, with the child's traceback as a note."""
    text = "In a child process:\n" + traceback.format_exc()
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = ProcessError(f"{type(error).__name__}: {error}")
    copy.add_note(text)
    return copy


def _pack(request: tuple, reply: bool) -> bytes:
    return pickle.dumps((request, reply), pickle.HIGHEST_PROTOCOL)
