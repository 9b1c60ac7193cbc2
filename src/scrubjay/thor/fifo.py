"""The client's default protocol on Linux: two named pipes, messages of typed fields."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import time
from contextlib import suppress
from typing import Any

from scrubjay.errors import ThorError
from scrubjay.thor.connection import ClientGone, Watch, drawn, image_bytes, parse_action, plain
from scrubjay.thor.engine import Event

HEADER = struct.Struct("!BI")
"""A field's type and length; its bytes follow."""
METADATA, ACTION, PATCH, END = 1, 2, 11, 255
IMAGES = {
    "rgb": 4, "depth": 5, "normals": 6, "classes": 8, "ids": 9, "third_party_rgb": 10,
    "third_party_depth": 12, "third_party_normals": 13, "third_party_ids": 14, "third_party_classes": 15,
}  # fmt: skip
PIPE_BYTES = 1 << 20
"""The client joins what it reads, pipeful by pipeful: in the default 64 KiB an image is copied again and again."""
PARTS = 1024
"""As many parts as one writev takes (IOV_MAX)."""
OPEN_SECONDS = 100.0
"""The client opens its end right after starting the engine."""


class FifoConnection:
    """The engine's ends of the pipes that a client has made."""

    def __init__(self, server_pipe: str, client_pipe: str) -> None:
        try:
            from msgpack import Packer
        except ImportError as error:
            raise ThorError("the FIFO protocol needs msgpack: pip install 'scrubjay[thor]'") from error
        self._packer = Packer(default=plain)
        self._watch = Watch()
        self._server_pipe, self._client_pipe = server_pipe, client_pipe
        self._output: int | None = None
        self._input: int | None = None
        self._received = bytearray()

    def exchange(self, event: Event) -> dict[str, Any]:
        """Sends an event and waits for the next action; raises ClientGone if there will be none."""
        self.send(event)
        return self.receive()

    def send(self, event: Event) -> None:
        """Sends an event: its metadata, and its pictures kind by kind."""
        if self._output is None:
            self._output = self._open_for_writing(self._server_pipe)
        # The client unpacks the metadata while the pictures are being drawn.
        self._write_fields([(PATCH if event.patch else METADATA, memoryview(self.pack(event.message)))])
        final = drawn(event)
        images = [(IMAGES[kind], image_bytes(image)) for kind, all_ in final.images.items() for image in all_]
        if final is not event:  # Takes the place of the first.
            images.append((METADATA, memoryview(self.pack(final.message))))
        self._write_fields([*images, (END, memoryview(b""))])

    def pack(self, message: dict[str, Any]) -> bytes:
        """A message as msgpack."""
        return self._packer.pack(message)

    def receive(self) -> dict[str, Any]:
        """The next action."""
        if self._input is None:
            # The client opens its end when it sends its first action; until then polling neither returns nor ends.
            self._input = os.open(self._client_pipe, os.O_RDONLY | os.O_NONBLOCK)
        action = None
        while True:
            kind, length = HEADER.unpack(self._read(HEADER.size))
            body = self._read(length)
            if kind == END:
                break
            if kind != ACTION:
                raise ThorError(f"the client sent a field of type {kind}; it should send actions, type {ACTION}")
            action = body
        return parse_action(action)

    def close(self) -> None:
        """Closes both pipes; the client sees the end of the file."""
        for descriptor in (self._output, self._input):
            if descriptor is not None:
                os.close(descriptor)

    def _open_for_writing(self, path: str) -> int:
        """Opens a pipe as soon as the client reads from it; a blocking open would outlive a client that never does."""
        start = time.monotonic()
        while True:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            self._watch.check()
            if time.monotonic() - start > OPEN_SECONDS:
                raise ClientGone("nobody reads from the server pipe")
            time.sleep(0.005)
        with suppress(OSError):  # Beyond the user's limit it works as well, only slower.
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return descriptor

    def _read(self, size: int) -> bytes:
        assert self._input is not None
        while len(self._received) < size:
            self._watch.wait(self._input, select.POLLIN)
            part = os.read(self._input, max(size, PIPE_BYTES))
            if not part:
                raise ClientGone("the client closed its pipe")
            self._received += part
        body = bytes(self._received[:size])
        del self._received[:size]
        return body

    def _write_fields(self, fields: list[tuple[int, memoryview]]) -> None:
        self._write([part for kind, body in fields for part in (memoryview(HEADER.pack(kind, len(body))), body)])

    def _write(self, parts: list[memoryview]) -> None:
        assert self._output is not None
        parts = [part for part in parts if len(part)]
        while parts:
            self._watch.wait(self._output, select.POLLOUT)
            try:
                written = os.writev(self._output, parts[:PARTS])
            except BlockingIOError:  # Ready for less than a page.
                continue
            except BrokenPipeError as error:
                raise ClientGone("the client closed its pipe") from error
            done = 0
            while done < len(parts) and written >= len(parts[done]):
                written -= len(parts[done])
                done += 1
            parts = parts[done:]
            if written:
                parts[0] = parts[0][written:]
