"""The server over real HTTP and WebSockets: playing, reconnecting, two windows, giving up, rejected input."""

import json
import urllib.error
import urllib.request

import pytest
from web_helpers import ROOM, SIZE, make_settings, new_game, playing, request, wait_for_replay
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from scrubjay.game.record import Record, replay
from scrubjay.sim.world import World
from scrubjay.web.server import running


def test_responses_have_security_headers(server):
    with urllib.request.urlopen(server[1] + "api/options") as answer:
        headers, options = answer.headers, json.loads(answer.read())
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
    assert options["goals"] == ["Bread", "Cup", "Knife", "Plunger", "Tomato"]
    assert options["hiders"][0] == "somewhere" and [entry["scene"] for entry in options["scenes"]] == ["hut"]


@pytest.mark.parametrize(("path", "name"), [("", "index"), ("play", "play"), ("watch", "watch"), ("admin", "admin")])
def test_pages_share_one_head_and_load_their_own_script(server, path, name):
    with urllib.request.urlopen(server[1] + path) as answer:
        headers, text = answer.headers, answer.read().decode()
    assert headers["Content-Type"] == "text/html; charset=utf-8" and headers["Cache-Control"] == "no-cache"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert text.startswith("<!doctype html>") and "{%" not in text
    assert f'<script type="module" src="/static/{name}.js"></script>' in text and text.count("<script") == 1
    assert request(server[1], "/static/base.html")[0] == 404


def test_a_person_seeks_and_reconnects_at_the_same_step(server):
    url = server[1]
    trial = new_game(url)
    with playing(url, trial) as one:
        assert one.welcome["kind"] == "seek" and one.state["phase"] == "seek" and one.state["map"]
        assert one.state["bounds"] == [-2, -2, 2, 2] and one.state["steps"] == 0
        left = one.act("RotateLeft")
        assert left["success"] and left["steps"] == 1 and (left["place"][2] - one.state["place"][2]) % 360 == 270
        assert one.act("Crouch")["place"][3] is False
    with playing(url, trial) as again:
        assert again.state["steps"] == 2 and again.state["place"][:3] == left["place"][:3]
        assert again.state["place"][3] is False and again.state["map"]
        over = again.act("GiveUp")
        assert over["phase"] == "done" and over["result"]["found"] is False and over["can"] == []
        assert again.act("RotateLeft")["code"] == "not_now"
    with playing(url, trial) as after:
        assert after.state["phase"] == "done" and after.state["result"] == over["result"]


def test_a_trial_survives_a_restart(tmp_path):
    with running(make_settings(tmp_path)) as (_, url):
        trial = new_game(url, "hide", "random")
        with playing(url, trial) as one:
            for do in (
                "MoveAhead",
                "HideHere",
                "MoveHandAhead",
                "DropObject",
                "PickUp",
                "Walk",
                "RotateLeft",
                "HideHere",
            ):
                before = one.act(do)
                assert before["type"] == "state", before
            before = one.act("MoveHandDown")
    with running(make_settings(tmp_path)) as (server, url), playing(url, trial) as again:
        for key in ("phase", "place", "steps"):
            assert again.state[key] == before[key]
        assert again.state["phase"] == "hand"
        assert again.act("DropObject")["phase"] == "placed"
        assert again.act("ReadyForSeeker")["phase"] == "watch"
        record = again.skip_to_end()["result"]["record"]
        answer = wait_for_replay(url, record)
        stages = [step["stage"] for step in answer["steps"]]
        assert answer["ready"] and set(stages) == {"EM", "PS", "OH", "OM", "S"}
        assert answer["players"]["hider"] == "person"
        with urllib.request.urlopen(url + f"api/records/{record}/frames/{len(stages) - 1}") as frame:
            assert frame.headers["Content-Type"] == "image/jpeg" and frame.read(2) == b"\xff\xd8"
        with urllib.request.urlopen(url + f"api/records/{record}/plan") as plan:
            assert plan.read(4) == b"\x89PNG"
        row = server.sessions.database.trial(trial)
        with World([ROOM], size=SIZE) as world:
            assert sum(1 for _ in replay(Record.from_dict(json.loads(row["record"])), world)) == len(stages)


def test_the_newer_of_two_windows_takes_over(server):
    url = server[1]
    trial = new_game(url)
    with playing(url, trial) as old:
        old.act("RotateLeft")
        with playing(url, trial) as new:
            assert new.state["steps"] == 1
            assert old.receive()["type"] == "taken"
            with pytest.raises(ConnectionClosed) as closed:
                old.socket.recv(timeout=10)
            assert closed.value.rcvd.code == 4001
            assert new.act("RotateLeft")["steps"] == 2


def test_invalid_messages_get_an_error_and_change_nothing(server):
    url = server[1]
    trial = new_game(url)
    with playing(url, trial) as one:
        for message in (
            "", "no", "[]", "{}", '{"type":"act"}', '{"type":"act","id":1,"do":7}', '{"type":"fly","id":1}',
            '{"type":"point","id":1,"x":2,"y":0,"to":"open"}', '{"type":"act","id":1,"do":"' + "x" * 99 + '"}',
            b"\x00\x01", "x" * 5000,
        ):  # fmt: skip
            one.socket.send(message)
            assert one.receive()["code"] == "bad_message"
        for do in ("HideHere", "Fly", "point:open", "PS 0 0 0 0", "", "Walk"):
            assert one.act(do)["code"] == "not_now"
        assert one.ask(type="point", x=0.5, y=1.0, to="place")["code"] == "not_now"
        assert one.act("RotateLeft")["steps"] == 1


def test_malformed_messages_close_the_socket_and_fast_ones_are_limited(server):
    url = server[1]
    trial = new_game(url)
    with playing(url, trial) as one:
        for _ in range(60):
            one.send(type="ping", id=1)
        kinds = [one.receive() for _ in range(60)]
        assert {"pong", "error"} == {message["type"] for message in kinds}
        assert {message["code"] for message in kinds if message["type"] == "error"} == {"too_fast"}
    with playing(url, trial) as one, pytest.raises(ConnectionClosed) as closed:
        for _ in range(30):
            one.socket.send("?")
        while True:
            one.receive()
    assert closed.value.rcvd.code == 4000


def test_unknown_trials_and_other_origins_are_refused(server):
    url = server[1]
    with connect(url.replace("http", "ws", 1) + "socket") as socket:
        socket.send(json.dumps({"type": "hello", "trial": "nobody"}))
        assert json.loads(socket.recv())["code"] == "unknown_trial"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv()
        assert closed.value.rcvd.code == 4004
    with pytest.raises(Exception, match="403"), playing(url, "x", origin="http://elsewhere.example"):
        pass
    body = dict(role="seek", scene="hut", goal="Cup", opponent="somewhere")
    assert request(url, "/api/play", body, headers={"Origin": "http://elsewhere.example"})[0] == 403
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(url, headers={"Host": "elsewhere.example"}))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/play", {"role": "seek", "scene": "hut", "goal": "Gold", "opponent": "somewhere"}, 400),
        ("/api/play", {"role": "seek", "scene": "../x", "goal": "Cup", "opponent": "somewhere"}, 400),
        ("/api/play", {"role": "seek", "scene": "hut", "goal": "Cup", "opponent": "nobody"}, 400),
        ("/api/play", {"role": "hide", "scene": "hut", "goal": "Cup", "opponent": "somewhere"}, 400),
        ("/api/play", {"role": "seek"}, 400),
        ("/api/play", {"x": "y" * 9000}, 413),
        ("/api/games", {"scene": "hut", "goal": "Cup", "hider": "random", "seeker": "me"}, 400),
        ("/api/records", {"version": 2}, 400),
        ("/api/records", [1], 400),
        ("/api/studies/none/join", {"parameters": {}}, 404),
        ("/api/participant", {"do": "agree"}, 401),
        ("/api/participant", {"do": "fly"}, 400),
        ("/api/nothing", {}, 404),
    ],
)
def test_bad_requests_get_a_sentence(server, path, body, status):
    code, answer = request(server[1], path, body)
    assert code == status and answer["message"]


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e%2fapp.py", "/static//etc/passwd", "/study/x"])
def test_no_path_reaches_the_file_system(server, path):
    assert request(server[1], path)[0] == 404


def test_an_uploaded_record_is_replayed_and_a_forged_one_is_not(server):
    url = server[1]
    trial = new_game(url, seed=5)
    with playing(url, trial) as one:
        one.act("RotateLeft")
        one.act("GiveUp")
    record = json.loads(server[0].worker.call(server[0].sessions.database.trial, trial).result()["record"])
    for data, failure in ((record, None), ({**record, "hash": "0"}, "another hash")):
        status, answer = request(url, "/api/records", data)
        assert status == 200
        replayed = wait_for_replay(url, answer["record"])
        assert replayed["ready"] if failure is None else failure in replayed["failed"]


def test_giving_up_needs_patience_in_studies(server, clock):
    """In studies only: a free game may be given up at once."""
    url = server[1]
    with playing(url, new_game(url)) as one:
        assert one.state["give_up_in"] == 0 and "GiveUp" in one.state["can"]
    new_trial = server[0].sessions.database.new_trial
    created = server[0].worker.call(lambda: new_trial("seek", "hut", "Bread", "somewhere", 3, clock(), patience=100.0))
    token = created.result()
    with playing(url, token) as one:
        assert one.state["give_up_in"] == 100 and "GiveUp" not in one.state["can"]
        clock.now += 99
        assert one.ask(type="ping")["give_up_in"] == 1
        assert one.act("GiveUp")["code"] == "not_now"
        clock.now += 1
        assert "GiveUp" in one.act("RotateLeft")["can"]
        assert one.act("GiveUp")["phase"] == "done"
