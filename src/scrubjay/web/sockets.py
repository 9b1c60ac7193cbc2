"""The WebSocket at which a person plays: messages in, states and images out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from starlette.websockets import WebSocket, WebSocketDisconnect

from scrubjay.web import schemas
from scrubjay.web.schemas import Act, BadInputError, Focus, Message, Point, seconds
from scrubjay.web.security import TokenBucket, same_origin
from scrubjay.web.sessions import Sessions, UnknownTrialError
from scrubjay.web.trial import NotAllowedError
from scrubjay.web.worker import StorageError, Worker

log = logging.getLogger("scrubjay.web")
RATE, BURST = 20, 40
"""Messages per second on average, and at once."""
MAX_MALFORMED = 20
"""Malformed messages before the socket is closed."""
MAX_QUEUED = 100
"""Messages queued for a slow client before it is disconnected."""
HELLO_SECONDS, CLOSE_SECONDS = 15.0, 5.0
BAD, REPLACED, UNKNOWN, RECONNECT = 4000, 4001, 4004, 1012
"""Close codes."""


class SocketClient:
    """A session's client. The worker's thread queues messages; the socket's task sends them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.outbox: asyncio.Queue[tuple[dict[str, Any], bytes | None] | int] = asyncio.Queue()
        """Messages with their images, or a close code."""

    def send(self, message: dict[str, Any], image: bytes | None = None) -> None:
        self._schedule(lambda: self._put((message, image)))

    def replaced(self) -> None:
        self.send({"type": "taken", "message": "This game continues in another window, where it was opened last."})
        self.close(REPLACED)

    def reconnect(self) -> None:
        self.close(RECONNECT)

    def close(self, code: int) -> None:
        self._schedule(lambda: self.outbox.put_nowait(code))

    def _put(self, item: tuple[dict[str, Any], bytes | None]) -> None:
        self.outbox.put_nowait(item if self.outbox.qsize() < MAX_QUEUED else RECONNECT)

    def _schedule(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: the client is gone.
            self.loop.call_soon_threadsafe(callback)


async def serve_socket(socket: WebSocket, worker: Worker, sessions: Sessions) -> None:
    """Serves one client from its hello until it disconnects."""
    if not same_origin(socket.headers):
        await socket.close(BAD)
        return
    await socket.accept()
    client, token = SocketClient(asyncio.get_running_loop()), None
    try:
        token = await _open(socket, worker, sessions, client)
        if token is not None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_run_until_closed, tasks, _write(socket, client))
                await _run_until_closed(tasks, _read(socket, worker, sessions, client, token))
    except (WebSocketDisconnect, RuntimeError):
        pass  # Disconnected before the hello.
    finally:
        if token is not None:
            worker.call(sessions.leave, token, client)


async def _run_until_closed(tasks: TaskGroup, task: Awaitable[None]) -> None:
    """Runs the reader or the writer; the first to end cancels the other."""
    try:
        await task
    except (WebSocketDisconnect, RuntimeError):
        pass  # The client disconnected.
    finally:
        tasks.cancel_scope.cancel()


async def _open(socket: WebSocket, worker: Worker, sessions: Sessions, client: SocketClient) -> str | None:
    """Waits for the hello and opens its trial; returns the trial's token, None if the hello is refused."""
    try:
        text = await asyncio.wait_for(_receive_text(socket), HELLO_SECONDS)
        token = schemas.parse(schemas.hello, text).trial
        await asyncio.wrap_future(worker.call(sessions.open, token, client))
        return token
    except (BadInputError, TimeoutError) as error:
        await _refuse(socket, "bad_message", str(error) or "No hello was received.", BAD)
    except StorageError as error:
        await _refuse(socket, "failed", str(error), RECONNECT)
    except UnknownTrialError as error:
        await _refuse(socket, "unknown_trial", str(error), UNKNOWN)
    return None


async def _refuse(socket: WebSocket, code: str, text: str, close_code: int) -> None:
    await socket.send_text(json.dumps(_error(None, code, text)))
    await socket.close(close_code)


async def _receive_text(socket: WebSocket) -> str:
    """The next text message; BadInputError if it is binary or too long."""
    received = await socket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1005))
    text = received.get("text")
    if text is None or len(text) > schemas.MAX_MESSAGE_BYTES:
        raise BadInputError(f"messages must be text of at most {schemas.MAX_MESSAGE_BYTES} characters")
    return text


async def _write(socket: WebSocket, client: SocketClient) -> None:
    """Sends queued messages until a close code comes up."""
    while not isinstance(item := await client.outbox.get(), int):
        message, image = item
        await socket.send_text(json.dumps(message))
        if image is not None:
            await socket.send_bytes(image)
    await socket.close(item)


async def _read(socket: WebSocket, worker: Worker, sessions: Sessions, client: SocketClient, token: str) -> None:
    """Handles messages one at a time, each answered before the next is read."""
    bucket, malformed = TokenBucket(RATE, BURST), 0
    while malformed < MAX_MALFORMED:
        reply = None
        try:
            text = await _receive_text(socket)
            message = schemas.parse(schemas.message, text)
            reply = message.id
            if not bucket.take():
                client.send(_error(reply, "too_fast", "Please slow down."))
                continue
            await _handle(worker, sessions, client, token, message)
        except BadInputError as error:
            malformed += 1
            client.send(_error(reply, "bad_message", str(error)))
        except NotAllowedError as error:
            client.send(_error(reply, "not_now", str(error)))
        except WebSocketDisconnect:
            raise
        except StorageError as error:
            client.send(_error(reply, "failed", str(error)))
            client.close(RECONNECT)
            break
        except Exception:
            log.exception("an action failed")
            client.send(_error(reply, "failed", "That did not work. The game has not changed."))
            client.close(RECONNECT)
            break
    else:
        client.close(BAD)
    # Give the writer time to flush its queue; it cancels this task when it is done.
    await asyncio.sleep(CLOSE_SECONDS)


def _handle(
    worker: Worker, sessions: Sessions, client: SocketClient, token: str, message: Message
) -> asyncio.Future[None]:
    """Passes a message to the worker. The caller must not keep the future: its exception would form a cycle with it."""
    if isinstance(message, Act):
        call = worker.call(sessions.act, token, client, message.id, message.do, seconds(message.at))
    elif isinstance(message, Point):
        place = (message.x, message.y, message.to)
        call = worker.call(sessions.point, token, client, message.id, *place, seconds(message.at))
    elif isinstance(message, Focus):
        call = worker.call(sessions.focus, token, client, message.id, message.focused, seconds(message.at))
    else:
        call = worker.call(sessions.ping, token, client, message.id)
    return asyncio.wrap_future(call)


def _error(reply: int | None, code: str, text: str) -> dict[str, Any]:
    return {"type": "error", "reply": reply, "code": code, "message": text}
