"""The client's other protocol: it runs an HTTP server, events are posted to it, its responses are the actions."""

from __future__ import annotations

import json
import select
import uuid
from http.client import HTTPConnection, HTTPException
from typing import Any

from scrubjay.errors import ThorError
from scrubjay.thor.connection import ClientGone, Watch, drawn, image_bytes, parse_action, plain
from scrubjay.thor.engine import Event

IMAGES = {
    "rgb": "image", "depth": "image_depth", "normals": "image_normals",
    "classes": "image_classes", "ids": "image_ids", "third_party_rgb": "image-thirdParty-camera",
    "third_party_depth": "image_thirdParty_depth", "third_party_normals": "image_thirdParty_normals",
    "third_party_ids": "image_thirdParty_image_ids", "third_party_classes": "image_thirdParty_classes",
}  # fmt: skip


class WsgiConnection:
    """The engine as the HTTP client of AI2-THOR's client."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._http, self._token = HTTPConnection(host, port), token
        self._watch = Watch()
        self._last: Event | None = None
        self._sequence: Any = 0

    def exchange(self, event: Event) -> dict[str, Any]:
        """Sends an event and waits for the next action; raises ClientGone if there will be none."""
        event = drawn(self._whole(event))
        boundary = uuid.uuid4().hex
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        try:
            self._http.request("POST", "/train", form(event, self._token, boundary), headers)
            self._watch.wait(self._http.sock.fileno(), select.POLLIN)
            response = self._http.getresponse()
            body = response.read()
        except (HTTPException, OSError) as error:
            raise ClientGone(f"the client closed its connection: {error}") from error
        if response.status != 200:
            raise ThorError(f"the client refused an event: HTTP status {response.status}")
        action = parse_action(body)
        self._sequence = action.get("sequenceId", self._sequence)
        return action

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def _whole(self, event: Event) -> Event:
        """This protocol has no patches: the last event with the patch in it."""
        if event.patch:
            assert self._last is not None
            last, agent = self._last.message, event.message["agentId"]
            agents = [{**old, **event.message} if i == agent else old for i, old in enumerate(last["agents"])]
            message = {**last, "agents": agents, "activeAgentId": agent, "sequenceId": self._sequence}
            event = Event(message, self._last.images)
        self._last = event
        return event


def form(event: Event, token: str, boundary: str) -> bytes:
    """An event as multipart/form-data; the client's parser wants both headers, spelled like this, no more colons."""
    texts = {"metadata": json.dumps(event.message, default=plain), "token": token}
    parts = [
        (f'form-data; name="{name}"', "text/plain; charset=utf-8", memoryview(text.encode()))
        for name, text in texts.items()
    ]
    parts += [
        (f'form-data; name="{IMAGES[kind]}"; filename="{kind}"', "application/octet-stream", image_bytes(image))
        for kind, images in event.images.items()
        for image in images
    ]
    pieces: list[bytes | memoryview] = []
    for disposition, kind, body in parts:
        head = f"--{boundary}\r\nContent-disposition: {disposition}\r\nContent-Type: {kind}\r\n\r\n"
        pieces += [head.encode("ascii"), body, b"\r\n"]
    return b"".join([*pieces, f"--{boundary}--\r\n".encode("ascii")])
