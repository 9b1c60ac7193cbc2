"""Events as forms, posted to a small server that reads them with Python's own parser."""

from __future__ import annotations

import json
import threading
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from scrubjay.errors import ThorError
from scrubjay.thor.connection import ClientGone
from scrubjay.thor.engine import Event
from scrubjay.thor.wsgi import WsgiConnection


@pytest.fixture
def server():
    """A server that keeps the forms it gets and answers with what `answers` holds."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            whole = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body
            self.server.forms.append(
                [
                    (
                        part.get_param("name", header="Content-disposition"),
                        part.get_filename(),
                        part.get_payload(decode=True),
                    )
                    for part in message_from_bytes(whole).get_payload()
                ]
            )
            status, answer = self.server.answers.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.forms, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_events_are_forms_and_responses_are_actions(server):
    connection = WsgiConnection("127.0.0.1", server.server_port, "a token")
    rgb = np.full((2, 4, 3), 65, np.uint8)
    rgb[0] = 66
    message = {"agents": [{"x": np.float32(0.5), "lastAction": "A", "objects": []}], "sequenceId": 0}
    server.answers = [
        (200, b'{"action": "Pass", "sequenceId": 1}'),
        (200, b'{"action": "Done", "sequenceId": 2}'),
        (200, b"{}"),
    ]
    assert connection.exchange(Event(message, {"rgb": [rgb], "third_party_ids": [rgb]})) == {
        "action": "Pass",
        "sequenceId": 1,
    }
    assert connection.exchange(Event({"agentId": 0, "lastAction": "B"}, patch=True))["action"] == "Done"
    with pytest.raises(ClientGone):
        connection.exchange(Event(message))
    first, patched, plain = server.forms
    assert [(name, file) for name, file, _ in first] == [
        ("metadata", None), ("token", None), ("image", "rgb"), ("image_thirdParty_image_ids", "third_party_ids"),
    ]  # fmt: skip
    assert json.loads(first[0][2]) == {"agents": [{"x": 0.5, "lastAction": "A", "objects": []}], "sequenceId": 0}
    assert first[1][2] == b"a token" and first[2][2] == b"A" * 12 + b"B" * 12
    # There are no patches here: the last event comes again with the patch in it.
    assert json.loads(patched[0][2]) == {
        "agents": [{"x": 0.5, "lastAction": "B", "objects": [], "agentId": 0}], "activeAgentId": 0, "sequenceId": 1,
    }  # fmt: skip
    assert len(patched) == 4 and len(plain) == 2
    connection.close()


def test_a_client_that_refuses_an_event_is_an_error(server):
    server.answers = [(403, b"")]
    with pytest.raises(ThorError, match="403"):
        WsgiConnection("127.0.0.1", server.server_port, "").exchange(Event({}))


def test_a_client_that_is_not_there_is_gone():
    with pytest.raises(ClientGone):
        WsgiConnection("127.0.0.1", 9, "").exchange(Event({}))
