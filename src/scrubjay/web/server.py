"""Runs the server, in the foreground or in a thread."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator

import torch
import uvicorn

from scrubjay.web.app import Server, Settings
from scrubjay.web.connections import backlog, limited_protocol, raise_descriptor_limit
from scrubjay.web.schemas import MAX_MESSAGE_BYTES

__all__ = ["Server", "Settings", "running", "serve"]
M_MMAP_THRESHOLD, MMAP_BYTES = -3, 128 * 1024
"""The `mallopt` parameter, and the size from which blocks are mapped and returned to the system individually."""


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8000, log: Callable[[str], None] = print) -> None:
    """Runs a server until it is interrupted; logs its address."""
    _fix_mmap_threshold()
    raise_descriptor_limit()
    # Operations on one image are too small to share; threads that wait for each other cost more than they do, and on a
    # machine without a free core many times as much.
    torch.set_num_threads(1)
    with _bound(host, port) as sockets:  # First: if the port is taken, no database is created.
        server = Server(settings)
        for entry in sockets:
            entry.listen(backlog())  # Who connects as soon as the address is printed waits, and is not refused.
        log(f"Serving at {_url(host, sockets)} (the admin token is in {server.token_file})")
        uvicorn.Server(_config(server)).run(sockets)


@contextlib.contextmanager
def running(settings: Settings, host: str = "127.0.0.1", port: int = 0) -> Iterator[tuple[Server, str]]:
    """A server in a background thread, and its URL; port 0 picks a free one."""
    with _bound(host, port) as sockets:
        url, server = _url(host, sockets), Server(settings)
        web = uvicorn.Server(_config(server))
        thread = threading.Thread(target=web.run, args=(sockets,), daemon=True)
        thread.start()
        while not web.started:
            if not thread.is_alive():
                raise OSError(f"cannot start a server at {url}")
            time.sleep(0.01)
        try:
            yield server, url
        finally:
            web.should_exit = True
            thread.join()


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets bound to all addresses of a host, closed at the end."""
    if not 0 <= port < 2**16:
        raise ValueError(f"port: 0 to {2**16 - 1}, not {port}")
    with contextlib.ExitStack() as stack:
        sockets: list[socket.socket] = []
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
                sockets.append(stack.enter_context(socket.socket(family, socket.SOCK_STREAM)))
                sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    sockets[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sockets[-1].bind((address[0], sockets[0].getsockname()[1] or port, *address[2:]))
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            advice = "the port is in use: choose another" if in_use else error.strerror
            raise OSError(f"cannot listen at {host} port {port}: {advice}") from error
        yield sockets


def _fix_mmap_threshold() -> None:
    """Keeps images out of glibc's heaps.

    glibc raises its threshold when the first image is freed. From then on images share the heap with small long-lived
    objects, and the fragmented memory is never returned to the system.
    """
    with contextlib.suppress(AttributeError, OSError):  # Other C libraries have no mallopt.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)


def _config(server: Server) -> uvicorn.Config:
    # No access log, since record names are secrets. No compression: messages in are small, images out are JPEG.
    return uvicorn.Config(
        server.app(), http=limited_protocol(server.settings.limits), backlog=backlog(), log_level="warning",
        access_log=False, ws_max_size=2 * MAX_MESSAGE_BYTES, ws_per_message_deflate=False, timeout_graceful_shutdown=3,
    )  # fmt: skip


def _url(host: str, sockets: list[socket.socket]) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}/"
