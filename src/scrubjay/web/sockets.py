"""The socket at which a person plays: messages in, states and pictures out."""

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
from scrubjay.web.schemas import Act, BadInputError, Message, Point
from scrubjay.web.security import TokenBucket, same_origin
from scrubjay.web.sessions import Sessions, UnknownTrialError
from scrubjay.web.trial import NotAllowedError
from scrubjay.web.worker import Worker

log = logging.getLogger("scrubjay.web")
RATE, BURST = 20, 40
"""Messages a second, and at once."""
MOST_WRONG = 20
"""Malformed messages before the socket is closed."""
MOST_WAITING = 100
"""Messages that a slow reader may leave waiting."""
HELLO_SECONDS, GOODBYE_SECONDS = 15.0, 5.0
BAD, TAKEN, UNKNOWN, AGAIN = 4000, 4001, 4004, 1012
"""Why sockets are closed; the last: come again."""


class Listener:
    """A client at a trial: what the engine's thread sends is put in line for the socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.line: asyncio.Queue[tuple[dict[str, Any], bytes | None] | int] = asyncio.Queue()

    def send(self, message: dict[str, Any], picture: bytes | None = None) -> None:
        self._later(lambda: self._put((message, picture)))

    def taken(self) -> None:
        text = "This game was opened in another window, and goes on there."
        self.send({"type": "taken", "message": text})
        self.close(TAKEN)

    def lost(self) -> None:
        self.close(AGAIN)

    def close(self, code: int) -> None:
        self._later(lambda: self.line.put_nowait(code))

    def _put(self, item: tuple[dict[str, Any], bytes | None]) -> None:
        if self.line.qsize() < MOST_WAITING:
            self.line.put_nowait(item)
        else:
            self.line.put_nowait(AGAIN)

    def _later(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
            self.loop.call_soon_threadsafe(call)


async def serve_socket(socket: WebSocket, worker: Worker, sessions: Sessions) -> None:
    """One person at one trial, from hello to goodbye."""
    if not same_origin(socket.headers):
        await socket.close(BAD)
        return
    await socket.accept()
    listener, token = Listener(asyncio.get_running_loop()), None
    try:
        token = await _greeted(socket, worker, sessions, listener)
        if token is not None:
            async with anyio.create_task_group() as both:
                both.start_soon(_until_over, both, _write(socket, listener))
                await _until_over(both, _read(socket, worker, sessions, listener, token))
    except (WebSocketDisconnect, RuntimeError):
        pass  # Gone before anything was said.
    finally:
        if token is not None:
            worker.call(sessions.leave, token, listener)


async def _until_over(both: TaskGroup, work: Awaitable[None]) -> None:
    """Reads or writes until one of the two is over, which ends the other."""
    try:
        await work
    except (WebSocketDisconnect, RuntimeError):
        pass  # The other side has gone.
    finally:
        both.cancel_scope.cancel()


async def _greeted(socket: WebSocket, worker: Worker, sessions: Sessions, listener: Listener) -> str | None:
    """Waits for the hello, and takes the client; None if there is none to take."""
    try:
        text = await asyncio.wait_for(_text(socket), HELLO_SECONDS)
        token = schemas.parsed(schemas.hello, text).trial
        await asyncio.wrap_future(worker.call(sessions.sit, token, listener))
        return token
    except (BadInputError, TimeoutError) as error:
        await _refuse(socket, "bad_message", str(error) or "Nothing was said.", BAD)
    except UnknownTrialError as error:
        await _refuse(socket, "unknown_trial", str(error), UNKNOWN)
    return None


async def _refuse(socket: WebSocket, code: str, said: str, close: int) -> None:
    await socket.send_text(_error(None, code, said))
    await socket.close(close)


async def _text(socket: WebSocket) -> str:
    """The next message; BadInputError if it is none."""
    received = await socket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1005))
    text = received.get("text")
    if text is None or len(text) > schemas.MAX_MESSAGE_BYTES:
        raise BadInputError(f"messages are text of at most {schemas.MAX_MESSAGE_BYTES} characters")
    return text


async def _write(socket: WebSocket, listener: Listener) -> None:
    while await _sent(socket, await listener.line.get()):
        pass


async def _sent(socket: WebSocket, item: tuple[dict[str, Any], bytes | None] | int) -> bool:
    """Writes what was in line; False at the end."""
    if isinstance(item, int):
        await socket.close(item)
        return False
    message, picture = item
    await socket.send_text(json.dumps(message))
    if picture is not None:
        await socket.send_bytes(picture)
    return True


async def _read(socket: WebSocket, worker: Worker, sessions: Sessions, listener: Listener, token: str) -> None:
    """Takes messages one after another, each answered before the next is looked at."""
    bucket, wrong = TokenBucket(RATE, BURST), 0
    while wrong < MOST_WRONG:
        reply = None
        try:
            text = await _text(socket)
            message = schemas.parsed(schemas.message, text)
            reply = message.id
            if not bucket.take():
                listener.send(_said(reply, "too_fast", "Slow down, please."))
                continue
            await _done(worker, sessions, listener, token, message)
        except BadInputError as error:
            wrong += 1
            listener.send(_said(reply, "bad_message", str(error)))
        except NotAllowedError as error:
            listener.send(_said(reply, "not_now", str(error)))
        except WebSocketDisconnect:
            raise
        except Exception:
            log.exception("an action failed")
            listener.send(_said(reply, "failed", "That did not work. The game goes on where it was."))
            listener.close(AGAIN)
            break
    else:
        listener.close(BAD)
    # What is in line is still written; the writer's end ends this too.
    await asyncio.sleep(GOODBYE_SECONDS)


def _done(worker: Worker, sessions: Sessions, listener: Listener, token: str, message: Message) -> asyncio.Future[None]:
    """Has done what a message asks for. Who waits must not keep the call: an error would hold them, and they it."""
    if isinstance(message, Act):
        call = worker.call(sessions.act, token, listener, message.id, message.do)
    elif isinstance(message, Point):
        call = worker.call(sessions.point, token, listener, message.id, message.x, message.y, message.to)
    else:
        call = worker.call(sessions.ping, token, listener, message.id)
    return asyncio.wrap_future(call)


def _said(reply: int | None, code: str, said: str) -> dict[str, Any]:
    return {"type": "error", "reply": reply, "code": code, "message": said}


def _error(reply: int | None, code: str, said: str) -> str:
    return json.dumps(_said(reply, code, said))
