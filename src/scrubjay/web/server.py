"""Runs the server, in the foreground or in a thread."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator

import uvicorn

from scrubjay.web.app import Server, Settings
from scrubjay.web.schemas import MAX_MESSAGE_BYTES

__all__ = ["Server", "Settings", "running", "serve"]
M_MMAP_THRESHOLD, MMAP_BYTES = -3, 128 * 1024
"""The `mallopt` parameter, and the size from which blocks are mapped and returned to the system individually."""


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8000, log: Callable[[str], None] = print) -> None:
    """Runs a server until it is interrupted; logs its address."""
    _fix_mmap_threshold()
    server = Server(settings)
    log(f"Serving at {_url(host, port)} (the admin token is in {server.token_file})")
    uvicorn.Server(_config(server, host, port)).run()


@contextlib.contextmanager
def running(settings: Settings, host: str = "127.0.0.1", port: int = 0) -> Iterator[tuple[Server, str]]:
    """A server in a background thread, and its URL; port 0 picks a free one."""
    server = Server(settings)
    web = uvicorn.Server(_config(server, host, port))
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    while not web.started:
        if not thread.is_alive():
            raise OSError(f"cannot start a server at {_url(host, port)}")
        time.sleep(0.01)
    try:
        yield server, _url(host, web.servers[0].sockets[0].getsockname()[1])
    finally:
        web.should_exit = True
        thread.join()


def _fix_mmap_threshold() -> None:
    """Keeps images out of glibc's heaps.

    glibc raises its threshold when the first image is freed. From then on images share the heap with small long-lived
    objects, and the fragmented memory is never returned to the system.
    """
    with contextlib.suppress(AttributeError, OSError):  # Other C libraries have no mallopt.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)


def _config(server: Server, host: str, port: int) -> uvicorn.Config:
    # No access log, since record names are secrets. No compression: messages in are small, images out are JPEG.
    return uvicorn.Config(
        server.app(), host=host, port=port, log_level="warning", access_log=False, ws_max_size=2 * MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False, timeout_graceful_shutdown=3,
    )  # fmt: skip


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
