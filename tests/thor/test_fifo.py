"""Two pipes, read and written by an obvious client of the test's own."""

from __future__ import annotations

import json
import os
import struct
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.errors import RendererError, ThorError
from scrubjay.thor.connection import ClientGone
from scrubjay.thor.engine import Drawing, Event
from scrubjay.thor.fifo import IMAGES, FifoConnection

msgpack = pytest.importorskip("msgpack")


class Client:
    """What AI2-THOR's client does with the pipes, byte by byte."""

    def __init__(self, folder) -> None:
        self.paths = [str(folder / "server.pipe"), str(folder / "client.pipe")]
        for path in self.paths:
            os.mkfifo(path)
        self.reader = self.writer = None

    def read(self) -> list[tuple[int, bytes]]:
        """The fields of one message."""
        self.reader = self.reader or open(self.paths[0], "rb")  # noqa: SIM115
        fields = []
        while True:
            kind, length = struct.unpack("!BI", self.reader.read(5))
            if kind == 255:
                return fields
            fields.append((kind, self.reader.read(length)))

    def write(self, *fields: tuple[int, bytes]) -> None:
        self.writer = self.writer or open(self.paths[1], "wb", buffering=0)  # noqa: SIM115
        for kind, body in (*fields, (255, b"")):
            self.writer.write(struct.pack("!BI", kind, len(body)) + body)

    def close(self) -> None:
        for pipe in (self.reader, self.writer):
            if pipe:
                pipe.close()


@pytest.fixture
def client(tmp_path):
    client = Client(tmp_path)
    yield client
    client.close()


def exchange(client: Client, event: Event, *answer: tuple[int, bytes]) -> tuple[list, object]:
    """What the client reads, and what the engine gets for its answer: an action or an exception."""
    got: list = []

    def serve() -> None:
        try:
            got.append(FifoConnection(*client.paths).exchange(event))
        except Exception as error:
            got.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    fields = client.read()
    client.write(*answer)
    thread.join(10)
    return fields, got[0]


def test_an_event_and_an_action_cross_the_pipes(client):
    rgb = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    depth = np.arange(8, dtype=np.float32).reshape(2, 4)
    event = Event({"agents": [{"x": np.float32(0.5)}], "sequenceId": 3}, {"rgb": [rgb, rgb + 100], "depth": [depth]})
    fields, action = exchange(client, event, (2, b'{"action": "Pass", "sequenceId": 4}'))
    assert action == {"action": "Pass", "sequenceId": 4}
    assert [kind for kind, _ in fields] == [1, 4, 4, 5]
    assert msgpack.unpackb(fields[0][1]) == {"agents": [{"x": 0.5}], "sequenceId": 3}
    # The bottom row first: twelve bytes of row 1, then those of row 0.
    assert fields[1][1] == bytes(range(12, 24)) + bytes(range(12))
    assert fields[2][1] == bytes(range(112, 124)) + bytes(range(100, 112))
    assert fields[3][1] == struct.pack("<8f", 4, 5, 6, 7, 0, 1, 2, 3)


def test_a_patch_has_a_type_of_its_own(client):
    fields, _ = exchange(client, Event({"agentId": 0}, patch=True), (2, b'{"action": "Pass"}'))
    assert fields == [(11, msgpack.packb({"agentId": 0}))]


def test_pictures_larger_than_a_pipe_arrive(client):
    picture = np.random.default_rng(0).integers(256, size=(1000, 1000, 3), dtype=np.uint8)
    fields, _ = exchange(client, Event({}, {"rgb": [picture], "ids": [picture]}), (2, b'{"action": "Pass"}'))
    assert [body == picture[::-1].tobytes() for _, body in fields[1:]] == [True, True]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=st.dictionaries(st.text(), values), kinds=st.lists(st.sampled_from(sorted(IMAGES)), unique=True))
def test_any_event_and_any_action_survive_the_way(message, kinds, tmp_path_factory):
    client = Client(tmp_path_factory.mktemp("pipes"))
    images = {kind: [np.full((2, 2, 4), IMAGES[kind], np.uint8)] for kind in kinds}
    action = {"action": "Any", **message}
    fields, got = exchange(client, Event(message, images), (2, json.dumps(action).encode()))
    client.close()
    assert got == action
    assert msgpack.unpackb(fields[0][1], strict_map_key=False) == message
    assert fields[1:] == [(IMAGES[kind], bytes([IMAGES[kind]]) * 16) for kind in kinds]


def test_pictures_that_cannot_be_drawn_are_a_failed_action(client, capsys):
    def draw():
        raise RendererError("no OpenGL library works")

    agent = {"lastAction": "Reset", "lastActionSuccess": True, "errorMessage": ""}
    event = Event({"agents": [agent], "activeAgentId": 0, "sequenceId": 3}, Drawing(draw))
    fields, _ = exchange(client, event, (2, b'{"action": "Pass"}'))
    first, second = (msgpack.unpackb(body) for kind, body in fields if kind == 1)
    # The client takes the last metadata of a message.
    assert first["agents"][0]["lastActionSuccess"] and second["sequenceId"] == 3
    assert second["agents"][0]["lastActionSuccess"] is False
    assert second["agents"][0]["errorMessage"] == "nothing could be drawn after Reset: no OpenGL library works"
    assert "no OpenGL" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["{}", '{"sequenceId": 4}'])
def test_an_action_without_a_name_is_a_farewell(client, words):
    assert isinstance(exchange(client, Event({}), (2, words.encode()))[1], ClientGone)


@pytest.mark.parametrize(
    ("field", "words"),
    [((2, b"MoveAhead"), "no JSON"), ((2, b"[1]"), "no object"), ((4, b"{}"), "a field of type 4")],
)
def test_what_is_no_action_is_refused(client, field, words):
    error = exchange(client, Event({}), field)[1]
    assert isinstance(error, ThorError) and words in str(error)


def test_a_client_that_closes_its_end_is_gone(client):
    connection = FifoConnection(*client.paths)
    reader = os.open(client.paths[0], os.O_RDONLY | os.O_NONBLOCK)
    connection.send(Event({}))
    os.close(reader)
    with pytest.raises(ClientGone):
        connection.send(Event({}))
    writer = threading.Thread(target=lambda: open(client.paths[1], "wb").close())
    writer.start()
    with pytest.raises(ClientGone):
        connection.receive()
    writer.join()
    connection.close()
