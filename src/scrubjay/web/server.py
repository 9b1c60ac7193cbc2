"""Runs the server, in the foreground or beside other work."""

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
M_MMAP_THRESHOLD, LARGE = -3, 128 * 1024
"""glibc's switch, and the bytes from which memory is taken from the system by itself and given back to it."""


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8000, say: Callable[[str], None] = print) -> None:
    """Runs a server until it is interrupted, and says where it is."""
    _pictures_apart()
    server = Server(settings)
    say(f"Scrubjay is at {_url(host, port)} (the admin's token is in {server.token_file})")
    uvicorn.Server(_config(server, host, port)).run()


@contextlib.contextmanager
def running(settings: Settings, host: str = "127.0.0.1", port: int = 0) -> Iterator[tuple[Server, str]]:
    """A server in a thread of its own, and its address; port 0 is any that is free."""
    server = Server(settings)
    web = uvicorn.Server(_config(server, host, port))
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    while not web.started:
        if not thread.is_alive():
            raise OSError(f"no server can be started at {_url(host, port)}")
        time.sleep(0.01)
    try:
        yield server, _url(host, web.servers[0].sockets[0].getsockname()[1])
    finally:
        web.should_exit = True
        thread.join()


def _pictures_apart() -> None:
    """Keeps pictures out of glibc's heaps.

    Its limit would rise with the first of them, and then small things that stay lie between large ones that go: memory
    that is free, and never given back.
    """
    with contextlib.suppress(AttributeError, OSError):  # Other C libraries have no such switch.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def _config(server: Server, host: str, port: int) -> uvicorn.Config:
    # No access log: names of records are secrets. What comes in is small; what goes out are pictures, packed already.
    return uvicorn.Config(
        server.app(), host=host, port=port, log_level="warning", access_log=False, ws_max_size=2 * MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False, timeout_graceful_shutdown=3,
    )  # fmt: skip


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
