"""Connections that come in number or never end: the server closes them, stays reachable, and logs little."""

import json
import logging
import resource
import shutil
import socket
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from web_helpers import free_port, make_settings, new_game, playing, request, server_process

from scrubjay.web.connections import Limits, RepeatFilter
from scrubjay.web.server import running

HALF_SENT = b"POST /api/play HTTP/1.1\r\nHost: localhost\r\n"
HALF_BODY = HALF_SENT + b"Content-Length: 100\r\n\r\n{"
WHOLE = b"GET /api/options HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def connection(url: str, data: bytes = b""):
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as opened:
        opened.sendall(data)
        yield opened


def read_to_end(opened: socket.socket) -> bytes:
    """What the server sends until it closes the connection; TimeoutError if it does not."""
    received = b""
    try:
        while data := opened.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def read_answer(opened: socket.socket) -> int:
    """The status of an answer that is a JSON object."""
    answer = b""
    while not answer.endswith(b"}"):
        answer += opened.recv(65536)
    return int(answer.split()[1])


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """The URL of a server with short time limits."""
    limits = Limits(header_seconds=1.0, body_seconds=1.5)
    with running(make_settings(tmp_path_factory.mktemp("play"), limits=limits)) as (_, url):
        yield url


@pytest.mark.parametrize(
    ("data", "answer", "seconds"),
    [(b"", b"", 1.0), (HALF_SENT, b"HTTP/1.1 408", 1.0), (HALF_BODY, b"HTTP/1.1 408", 1.5)],
    ids=["idle", "headers", "body"],
)
def test_a_request_that_never_ends_is_closed(hasty, data, answer, seconds):
    began = time.monotonic()
    with connection(hasty, data) as opened:
        received = read_to_end(opened)
    assert received.startswith(answer) and bool(received) == bool(answer)
    assert time.monotonic() - began > seconds - 0.1  # Not before its time; a busy machine may take longer.


def test_a_request_that_trickles_is_closed(hasty):
    with connection(hasty) as opened, pytest.raises(OSError):  # Reset, or a broken pipe.
        opened.sendall(HALF_SENT + b"X-Padding: ")
        for _ in range(100):
            opened.sendall(b"x")
            time.sleep(0.1)


def test_whole_requests_and_sockets_outlive_the_time_limits(hasty):
    with connection(hasty) as opened:
        for _ in range(4):
            time.sleep(0.4)
            opened.sendall(WHOLE)
            assert read_answer(opened) == 200
    with playing(hasty, new_game(hasty)) as one:
        for steps in (1, 2, 3):
            time.sleep(0.7)
            assert one.act("RotateLeft")["steps"] == steps


@pytest.mark.slow
def test_a_client_that_does_not_read_is_disconnected(tmp_path):
    """An HTTP client that asks for more than buffers hold, and a WebSocket that ignores the seeker it watches."""
    limits = Limits(send_seconds=1.0)
    with running(make_settings(tmp_path, limits=limits)) as (server, url), ExitStack() as stack:
        greedy = stack.enter_context(connection(url))
        greedy.settimeout(20)
        with pytest.raises(ConnectionError):  # Reset, or a broken pipe.
            while True:
                greedy.sendall(b"GET /static/home.webp HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        trial = new_game(url, "hide", "random")
        address = urlsplit(url)
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.connect((address.hostname, address.port))
        with playing(url, trial, sock=stack.enter_context(small), max_queue=1) as one:
            for do in ("HideHere", "DropObject", "ReadyForSeeker"):
                assert one.act(do)["type"] == "state"
            deadline = time.monotonic() + 30
            while server.sessions.active[trial].client is not None and time.monotonic() < deadline:
                time.sleep(0.1)
            assert server.sessions.active[trial].client is None


def test_half_sent_requests_of_a_client_give_way_to_its_next(tmp_path):
    with running(make_settings(tmp_path, limits=Limits(per_client=6))) as (_, url), ExitStack() as stack:
        one = stack.enter_context(playing(url, new_game(url)))
        half_sent = [stack.enter_context(connection(url, HALF_SENT)) for _ in range(12)]
        assert request(url, "/api/options")[0] == 200
        assert one.act("RotateLeft")["steps"] == 1
        assert read_to_end(half_sent[0]).startswith(b"HTTP/1.1 503")
        half_sent[-1].settimeout(0.3)
        with pytest.raises(TimeoutError):
            read_to_end(half_sent[-1])  # The latest are still open.


def test_a_client_with_all_its_connections_in_use_is_refused_and_others_are_not(tmp_path):
    with running(make_settings(tmp_path, limits=Limits(per_client=3))) as (_, url), ExitStack() as stack:
        tokens = [new_game(url) for _ in range(3)]
        time.sleep(0.2)
        for token in tokens:
            stack.enter_context(playing(url, token))
        with connection(url, WHOLE) as opened:
            assert read_to_end(opened).startswith(b"HTTP/1.1 503")
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), 10, ("127.0.0.2", 0)) as other:
            other.sendall(WHOLE)
            assert read_answer(other) == 200


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
def test_half_sent_requests_exhaust_no_descriptors(tmp_path):
    """With 128 descriptors, 140 such requests made the server unreachable, and its log grew by 40 MB a minute."""
    log, port = tmp_path / "log", free_port()
    with (
        open(log, "w") as file,
        server_process(tmp_path, port, prefix=["prlimit", "--nofile=128"], stderr=file) as (_, url),
        ExitStack() as stack,
    ):
        trial = new_game(url)
        for _ in range(140):
            stack.enter_context(connection(url, HALF_SENT))
        assert request(url, "/api/options")[0] == 200
        with playing(url, trial) as one:
            assert one.act("RotateLeft")["steps"] == 1
        time.sleep(1)
    assert len(log.read_text().splitlines()) <= 3


def test_running_out_of_descriptors_is_one_line_in_the_log(tmp_path):
    log, port = tmp_path / "log", free_port()
    with (
        open(log, "w") as file,
        server_process(tmp_path, port, stderr=file) as (process, url),
        ExitStack() as stack,
    ):
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        for _ in range(20):
            stack.enter_context(connection(url, WHOLE))
        time.sleep(2.5)
        assert log.read_text() == "no new connection can be accepted: Too many open files\n"
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
        assert request(url, "/api/options")[0] == 200


def test_a_client_that_disconnects_in_a_body_is_not_logged(hasty, caplog):
    for _ in range(3):
        with connection(hasty, HALF_BODY):
            pass
    time.sleep(0.3)
    assert not caplog.records


def test_repeated_messages_are_counted_instead():
    now, passed = [0.0], []
    repeats = RepeatFilter(10, lambda: now[0])
    for now[0], text in ((0, "a"), (1, "a"), (1, "b"), (9, "a"), (10, "a"), (11, "a"), (20, "a")):
        record = logging.LogRecord("log", logging.WARNING, "", 0, "full: %s", (text,), None)
        record.msg = f"{text}: %s"
        if repeats.filter(record):
            passed.append((now[0], record.getMessage()))
    assert passed == [(0, "a: a"), (1, "b: b"), (10, "a: a (2 more like this)"), (20, "a: a (1 more like this)")]


def test_new_games_are_limited_per_client(tmp_path):
    with running(make_settings(tmp_path)) as (server, url):
        body = dict(role="seek", scene="hut", goal="Bread", opponent="somewhere")
        began, codes = time.monotonic(), [200]
        with connection(url) as opened:
            # Two more are allowed each second: a slow machine takes longer to be refused.
            while codes[-1] == 200 and len(codes) <= 400:
                codes.append(_post(opened, "/api/play", body))
        codes, allowed = codes[1:], 200 + 2 * (time.monotonic() - began)
        assert codes[:200] == [200] * 200 and codes[-1] == 429 and codes.count(200) <= allowed + 1
        count = server.worker.call(server.sessions.database.one, "SELECT count(*) FROM trials").result()[0]
        assert count == codes.count(200)
        assert request(url, "/api/options")[0] == 200


def _post(opened: socket.socket, path: str, body: dict) -> int:
    """The status of a request on an open connection."""
    data = json.dumps(body).encode()
    opened.sendall(
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(data), data)
    )
    return read_answer(opened)
