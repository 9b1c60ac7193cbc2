"""Limits on connections: time for a request, connections per client, file descriptors, and the log they may fill.

uvicorn limits the idle time between two requests and pings WebSockets; it has no limits for what is here.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("scrubjay.web")
MAX_BACKLOG = 128
"""Connections accepted at once, before any of them is counted."""
RESERVED_DESCRIPTORS, MAX_DESCRIPTORS = 64, 65536
"""Left for the database, rooms and exports; the most that are asked of the system."""
REPEAT_SECONDS = 10.0
"""Between two log messages of one kind."""
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
TIMED_OUT, TOO_MANY = b"408 Request Timeout", b"503 Service Unavailable"


@dataclass(frozen=True)
class Limits:
    """Of the HTTP server. Times are in seconds."""

    per_client: int = 1000
    """Open connections per client address: a browser has up to seven. A reverse proxy is one client."""
    header_seconds: float = 10.0
    """For a request's headers, from the connection or the answer before."""
    body_seconds: float = 60.0
    """For a request's body."""
    send_seconds: float = 60.0
    """For a client to read on when an answer waits (on Linux)."""

    def __post_init__(self) -> None:
        if self.per_client < 1:
            raise ValueError(f"connections per client: 1 or more, not {self.per_client}")


def backlog() -> int:
    """Connections that may wait to be accepted."""
    return min(MAX_BACKLOG, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8)


def max_connections() -> int:
    """Open connections for which the process has file descriptors."""
    return max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS - backlog())


def raise_descriptor_limit() -> None:
    """Allows the process as many file descriptors as the system permits: many shells start with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP connection with limits.

    Where there are too many connections, the one that has waited longest for a request is closed: half-sent requests
    keep nobody out. If all are in use, the new one is refused.
    """

    limits = Limits()
    total = MAX_DESCRIPTORS
    waiting_since: float | None = None
    """When it began to wait for headers or a body; None while it does not."""
    _timer: asyncio.TimerHandle | None = None
    _watched: Any = None
    """The client's state in h11 that the timer is for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux. It holds for WebSockets, too, whose protocol is another.
            milliseconds = int(1000 * self.limits.send_seconds)
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        self._watch()
        mine = [other for other in self.connections if _address(other) == _address(self)]
        if len(mine) > min(self.limits.per_client, self.total * 3 // 4):
            self._close_oldest(mine)
        elif len(self.connections) > self.total:
            self._close_oldest(self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Starts the timer when the connection begins to wait for headers or a body; stops it when they are here."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:  # Closed, or a WebSocket now.
            self._cancel()
        elif (state := self.conn.their_state) is not self._watched:
            self._cancel()
            self._watched = state
            if state in (h11.IDLE, h11.SEND_BODY):
                seconds = self.limits.header_seconds if state is h11.IDLE else self.limits.body_seconds
                self.waiting_since = self.loop.time()
                self._timer = self.loop.call_later(seconds, self._close, TIMED_OUT)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.waiting_since = None

    def _close_oldest(self, connections: Iterable[Any]) -> None:
        """Closes the connection that has waited longest for a request, or this one."""
        log.warning("too many connections: those that wait longest are closed (the latest is from %s)", _address(self))
        waiting = [other for other in connections if getattr(other, "waiting_since", None) and other is not self]
        oldest = min(waiting, key=lambda other: other.waiting_since, default=self)
        oldest._close(TOO_MANY)

    def _close(self, status: bytes) -> None:
        """Closes the connection, with an answer if a request or this connection itself is refused."""
        self._cancel()
        self.connections.discard(self)  # connection_lost comes later; until then it does not count.
        idle = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if (not idle or status is TOO_MANY) and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status)
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # The client does not read: closing would wait for it.
        else:
            self.transport.close()


def limited_protocol(limits: Limits) -> type[LimitedProtocol]:
    """The protocol for uvicorn with these limits, and with the present limit of file descriptors."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits, "total": max_connections()})


def _address(connection: Any) -> str:
    """The client's address of a connection, an HTTP one or a WebSocket."""
    return connection.client[0] if connection.client else ""


class RepeatFilter(logging.Filter):
    """Lets one message of a kind pass every few seconds; the next one says how many were left out."""

    def __init__(self, seconds: float = REPEAT_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.seconds, self.clock = seconds, clock
        self._last: dict[tuple, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, record.levelno, record.msg, record.exc_info and record.exc_info[0])
        with self._lock:
            now = self.clock()
            passed, left_out = self._last.get(kind, (-self.seconds, 0))
            if now - passed < self.seconds:
                self._last[kind] = passed, left_out + 1
                return False
            if len(self._last) > 1000:
                self._last.clear()
            self._last[kind] = now, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like this)", None
        return True


@contextmanager
def quiet_log(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Rate-limits the log of the server and its libraries; a line, not a traceback, where descriptors run out."""
    repeats, loggers = RepeatFilter(), [logging.getLogger(name) for name in ("uvicorn.error", "asyncio", log.name)]
    for logger in loggers:
        logger.addFilter(repeats)
    loop.set_exception_handler(_log_exception)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(repeats)


def _log_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in OUT_OF_RESOURCES:
        log.error("no new connection can be accepted: %s", error.strerror)
    else:
        loop.default_exception_handler(context)
