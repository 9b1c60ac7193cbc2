"""The engine's process: what AI2-THOR's client starts in place of Unity.

The client says in the environment how it wants to be spoken to, and on the command line how large its pictures are.
Whatever goes wrong is answered with a failed action: a client whose engine is silent waits for minutes.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scrubjay.errors import ScrubjayError, ThorError

if TYPE_CHECKING:
    from scrubjay.thor.connection import Connection
    from scrubjay.thor.engine import Engine, Event

SIZE = 300
"""Width and height of pictures, unless the client says otherwise."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves one client until it is gone; returns the exit code."""
    # Ctrl-C reaches the client, which may want to save its work; the engine ends with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        connection = connect(os.environ)
        serve(*start(*screen_size(words)), connection)
    except ScrubjayError as error:
        print(f"scrubjay: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def serve(engine: Engine | FailedEngine, event: Event, connection: Connection) -> None:
    """Sends the first event, and answers a client's actions until it is gone."""
    from scrubjay.thor.connection import ClientGone, failure, words

    last = event
    try:
        while True:
            action = connection.exchange(event)
            try:
                event = engine.step(action)
            except Exception as error:
                traceback.print_exc()
                reason = f"{action['action']} failed in the engine: {words(error)}"
                event = failure(last, action["action"], action.get("sequenceId", 0), reason)
            if not event.patch:
                last = event
    except ClientGone:
        return
    finally:
        engine.close()


def connect(environment: Mapping[str, str]) -> Connection:
    """The connection that the client asks for in the environment."""

    def value(name: str) -> str:
        if not (found := environment.get(f"AI2THOR_{name}")):
            raise ThorError(
                f"AI2THOR_{name} is not set: AI2-THOR's client starts this program, "
                "as Controller(local_executable_path=...) or after `scrubjay thor install`"
            )
        return found

    kind = value("SERVER_TYPE")
    if kind == "FIFO":
        from scrubjay.thor.fifo import FifoConnection

        return FifoConnection(value("FIFO_SERVER_PIPE_PATH"), value("FIFO_CLIENT_PIPE_PATH"))
    if kind == "WSGI":
        from scrubjay.thor.wsgi import WsgiConnection

        host, port = value("HOST"), value("PORT")
        if not port.isdigit():
            raise ThorError(f"AI2THOR_PORT is {port!r}; it should be a number")
        return WsgiConnection(host, int(port), value("CLIENT_TOKEN"))
    raise ThorError(f"AI2THOR_SERVER_TYPE is {kind!r}; FIFO and WSGI are supported")


def screen_size(words: Sequence[str]) -> tuple[int, int]:
    """Width and height from a Unity player's command line; the other options mean nothing here."""
    options = dict(pairwise(words))
    sizes = [options.get(f"-screen-{side}", "") for side in ("width", "height")]
    width, height = (int(size) if size.isdigit() and int(size) else SIZE for size in sizes)
    return width, height


def start(width: int, height: int) -> tuple[Engine | FailedEngine, Event]:
    """The engine and its first event; or one that tells the client why there is none."""
    try:
        from scrubjay.thor.engine import Engine

        engine = Engine(width, height)
        return engine, engine.first()
    except Exception as error:
        from scrubjay.thor.connection import words

        traceback.print_exc()
        failed = FailedEngine(width, height, f"Scrubjay's engine did not start: {words(error)}")
        return failed, failed.first()


class FailedEngine:
    """Stands in for an engine that could not be made: every action fails and says why."""

    def __init__(self, width: int, height: int, reason: str) -> None:
        self._reason = reason
        self._agent = {
            "agentId": 0, "screenWidth": width, "screenHeight": height, "sceneName": "", "objects": [], "colors": None,
            "thirdPartyCameras": [], "lastAction": "", "lastActionSuccess": True, "errorMessage": "", "errorCode": "",
            "actionReturn": None,
        }  # fmt: skip

    def first(self) -> Event:
        """An event without a scene."""
        return self._event({"sequenceId": 0})

    def step(self, action: dict[str, Any]) -> Event:
        """The reason; but what the client does before it first looks at an error succeeds."""
        if action["action"] == "GetScenesInBuild":
            return self._event(action, actionReturn=[f"FloorPlan{room}_physics" for room in range(1, 431)])
        if action["action"] == "Reset":
            return self._event(action)
        from scrubjay.thor.connection import failure

        return failure(self.first(), action["action"], action.get("sequenceId", 0), self._reason)

    def close(self) -> None:
        """Nothing to close."""

    def _event(self, action: Mapping[str, Any], **changes: Any) -> Event:
        from scrubjay.thor.engine import Event

        agent = self._agent | {"lastAction": action.get("action", "")} | changes
        sequence = action.get("sequenceId", 0)
        return Event(
            {"agents": [agent], "thirdPartyCameras": [], "activeAgentId": 0, "sequenceId": sequence},
        )


if __name__ == "__main__":
    sys.exit(main())
