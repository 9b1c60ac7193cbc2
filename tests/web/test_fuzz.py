"""Fuzzing: no input makes the server fail or crash, and other games continue."""

import http.client
import json
import time
from contextlib import suppress
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web_helpers import make_settings, new_game, playing, request, wait_for_replay
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from scrubjay.web.app import WRITE_LIMIT
from scrubjay.web.security import RateLimiter
from scrubjay.web.server import running
from scrubjay.web.trial import ALLOWED

PATHS = [
    "/", "/play", "/watch", "/admin", "/study/x", "/static/x", "/api/options", "/api/play", "/api/games",
    "/api/records", "/api/records/1", "/api/records/x/frames/0", "/api/records/x/plan", "/api/studies/x/join",
    "/api/participant", "/api/admin/progress", "/api/admin/studies/x/trials.csv", "/socket",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
KEYS = [
    "role", "scene", "goal", "opponent", "seed", "do", "answers", "at", "parameters", "hider", "seeker", "version",
    "actions", "spec",
]  # fmt: skip
WORDS = ["seek", "hide", "hut", "Cup", "somewhere", "random", "agree", "answer", "next", "foyer-1", "ClaimVisible"]
ALMOST_VALID = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS) | JSON, max_size=6)
NAMES = sorted({name for names in ALLOWED.values() for name in names})
MESSAGES = st.one_of(
    st.text(max_size=60),
    st.binary(max_size=60),
    JSON.map(json.dumps),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["act", "point", "ping", "focus", "hello", "x"]) | JSON},
        optional={
            "id": st.integers(0, 9) | JSON, "do": st.sampled_from(NAMES) | JSON, "x": st.floats(0, 1) | JSON,
            "y": st.floats(0, 1) | JSON, "to": st.sampled_from(["open", "place"]) | JSON, "trial": JSON,
            "focused": st.booleans(), "at": st.integers() | JSON,
        },
    ).map(json.dumps),
)  # fmt: skip
RELAXED = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(make_settings(tmp_path_factory.mktemp("fuzz"))) as (server, url):
        # No rate limits, so that every request reaches its handler.
        for limiter in (server.read_limiter, server.write_limiter):
            limiter.burst = limiter.rate = 1e9
        yield server, url


@pytest.fixture(scope="module")
def bystander(server):
    """A person who plays all the while."""
    with playing(server[1], new_game(server[1])) as one:
        yield one


def still_playing(one) -> bool:
    """Whether a player still gets answers, after a pause if rate-limited."""
    while (answer := one.act("RotateLeft"))["type"] == "error" and answer["code"] == "too_fast":
        time.sleep(0.2)
    return bool(answer["success"])


@RELAXED
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]),
    path=st.sampled_from(PATHS) | st.text(max_size=30).map(lambda text: "/" + quote(text)),
    body=st.none() | st.binary(max_size=200) | (ALMOST_VALID | JSON).map(lambda data: json.dumps(data).encode()),
    token=st.none() | st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=50),
)
def test_no_request_makes_the_server_fail(server, bystander, method, path, body, token):
    where = urlsplit(server[1])
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    headers = {} if token is None else {"Authorization": "Bearer " + token}
    connection.request(method, path, body, {k: v.encode("latin-1") for k, v in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 500
    if method != "HEAD" and answer.status >= 400 and answer.headers["Content-Type"] == "application/json":
        assert json.loads(content)["message"]
    connection.close()
    assert still_playing(bystander)


@RELAXED
@given(messages=st.lists(MESSAGES, max_size=12), role=st.sampled_from(["seek", "hide"]))
def test_no_message_damages_a_game(server, bystander, messages, role):
    url = server[1]
    trial = new_game(url, role, "somewhere" if role == "seek" else "random")
    with playing(url, trial) as one:
        for message in messages:
            one.socket.send(message)
        one.socket.send(json.dumps({"type": "ping", "id": 777}))
        answer = one.receive()
        while answer.get("reply") != 777:
            assert answer["type"] in ("state", "error", "pong") and answer.get("code") != "failed"
            one.state = answer if answer["type"] == "state" else one.state
            answer = one.receive()
        assert answer["type"] == "pong"
    server[0].worker.call(server[0].sessions.active.pop, trial, None).result()
    with playing(url, trial) as again:
        # Restored from the database, it is unchanged.
        assert again.state["steps"] == one.state["steps"] or one.state["phase"] == "watch"
        assert again.state["place"] == one.state["place"] or one.state["phase"] == "watch"
    assert still_playing(bystander)


@pytest.fixture(scope="module")
def record(server):
    """A short game that replays."""
    server[0].upload_limiter = RateLimiter(*WRITE_LIMIT)
    trial = new_game(server[1])
    with playing(server[1], trial) as one:
        one.act("RotateLeft")
        one.act("GiveUp")
    return json.loads(server[0].worker.call(server[0].sessions.database.trial, trial).result()["record"])


@RELAXED
@given(data=st.data())
def test_no_record_makes_the_server_fail(server, bystander, record, data):
    """Valid records with one or two fields replaced."""
    odd = JSON | st.sampled_from([10**400, -1, 0, [], {}, "", "S", [10**400] * 4, [1e308] * 7, [0.5, 0.5, 45.0, True]])
    changed = json.loads(json.dumps(record))
    for _ in range(data.draw(st.integers(1, 2))):
        inner = data.draw(st.sampled_from([changed, changed["spec"] if isinstance(changed["spec"], dict) else changed]))
        inner[data.draw(st.sampled_from(sorted(inner) or ["odd"]))] = data.draw(odd)
        if "spec" not in changed:
            break
    status, answer = request(server[1], "/api/records", changed)
    assert status in (200, 400)
    if status == 200:
        wait_for_replay(server[1], answer["record"])
    assert still_playing(bystander)


@RELAXED
@given(first=MESSAGES)
def test_no_first_message_but_hello_is_accepted(server, first):
    with connect(server[1].replace("http", "ws", 1) + "socket") as socket:
        socket.send(first)
        codes = set()
        with suppress(ConnectionClosed):
            while True:
                codes.add(json.loads(socket.recv(timeout=20))["code"])
    assert codes <= {"bad_message", "unknown_trial"} and codes
