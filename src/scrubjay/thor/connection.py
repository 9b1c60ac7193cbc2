"""What both protocols share: the interface of a connection, and noticing that the client is gone."""

from __future__ import annotations

import json
import os
import select
import traceback
from typing import Any, Protocol

import numpy as np

from scrubjay.errors import ScrubjayError, ThorError
from scrubjay.thor.engine import Event

LOOK_SECONDS = 1.0
"""Between two looks at whether the client's process still exists."""


class ClientGone(Exception):
    """The client ended, or closed the connection."""


class Connection(Protocol):
    """A client at the other end."""

    def exchange(self, event: Event) -> dict[str, Any]:
        """Sends an event and waits for the next action; raises ClientGone if there will be none."""
        ...


class Watch:
    """Waits for a file descriptor, but not longer than the process that started this one exists.

    A pipe that the client's own children inherited stays open after it; a socket likewise.
    """

    def __init__(self) -> None:
        self._parent = os.getppid()

    def check(self) -> None:
        """Raises ClientGone if the process that started this one has ended."""
        if os.getppid() != self._parent:
            raise ClientGone("the process that started the engine has ended")

    def wait(self, descriptor: int, event: int) -> None:
        """Returns once the descriptor is ready for select.POLLIN or POLLOUT, or closed at the other end."""
        poll = select.poll()
        poll.register(descriptor, event)
        while not poll.poll(1000 * LOOK_SECONDS):
            self.check()


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, for packers."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a message cannot hold {type(value).__name__}")


def image_bytes(image: np.ndarray) -> memoryview:
    """A picture as the client reads it, the bottom row first; no copy if the rows lie that way already."""
    return np.ascontiguousarray(image[::-1]).data.cast("B")


def parse_action(text: bytes | None) -> dict[str, Any]:
    """An action from its JSON; what stops the engine raises ClientGone."""
    try:
        action = json.loads(text or b"{}")
    except ValueError as error:
        raise ThorError(f"the client sent an action that is no JSON: {error}") from error
    if not isinstance(action, dict):
        raise ThorError(f"the client sent an action that is no object: {action!r}")
    if "action" not in action:
        raise ClientGone("the client said goodbye")
    return action


def failure(event: Event, action: str, sequence: Any, reason: str) -> Event:
    """An event again, as the answer to an action that failed."""
    changes = {
        "lastAction": action, "lastActionSuccess": False, "errorMessage": reason, "errorCode": "", "actionReturn": None,
    }  # fmt: skip
    agents = [agent | changes for agent in event.message["agents"]]
    return Event({**event.message, "agents": agents, "sequenceId": sequence}, event.images)


def drawn(event: Event) -> Event:
    """The event, if its pictures can be drawn; otherwise one without pictures that says why not."""
    try:
        len(event.images)
        return event
    except Exception as error:
        traceback.print_exc()
        last = event.message["agents"][event.message["activeAgentId"]]["lastAction"]
        reason = f"nothing could be drawn after {last}: {words(error)}"
        return failure(Event(event.message), last, event.message["sequenceId"], reason)


def words(error: Exception) -> str:
    """What went wrong, for a client."""
    return str(error) if isinstance(error, ScrubjayError) else f"{type(error).__name__}: {error}"
