"""Running the server: its files, its port, wrong options, studies alone, links that lead nowhere."""

import socket
import stat
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from web_helpers import Clock, make_settings, new_game, playing, request

from scrubjay.cli.main import main
from scrubjay.web.database import Database
from scrubjay.web.server import running
from scrubjay.web.sessions import UNPLAYED_SECONDS


def modes(folder) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_only_their_owner_reads_the_servers_files(tmp_path):
    with running(make_settings(tmp_path)) as (_, url):
        new_game(url)
        assert set(modes(tmp_path)) == {
            "play.db", "play.db-wal", "play.db-shm", "play.db.lock", "play.db.admin-token"
        }  # fmt: skip
        assert set(modes(tmp_path).values()) == {0o600}


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o664, 0o660), (0o660, 0o660), (0o640, 0o640)])
def test_an_older_database_is_closed_to_others(tmp_path, before, after):
    with closing(Database(tmp_path / "play.db", writable=True)):
        pass
    (tmp_path / "play.db").chmod(before)
    with closing(Database(tmp_path / "play.db", writable=True)):
        assert modes(tmp_path)["play.db"] == after


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--port", "99999"], "--port: 0 to 65535, not 99999"),
        (["--port", "-1"], "--port: 0 to 65535, not -1"),
        (["--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid"),
        (["--size", "0"], "--size: a multiple of 7, the cells of a side, not 0"),
        (["--size", "100"], "--size: a multiple of 7, the cells of a side, not 100"),
        (["--only-studies"], "only-studies: name the studies"),
        (["--connections-per-client", "0"], "--connections-per-client: 1 or more, not 0"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_leaves_nothing(args, message, tmp_path, monkeypatch, capsys):
    check_refused(["--port", "0", *args], message, tmp_path, monkeypatch, capsys)


def test_a_port_in_use_is_noticed_before_anything_is_made(tmp_path, monkeypatch, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        message = f"cannot listen at 127.0.0.1 port {port}: the port is in use: choose another"
        check_refused(["--port", port], message, tmp_path, monkeypatch, capsys)


def check_refused(args, message, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["scrubjay", "serve", "--no-released", *args])
    with pytest.raises(SystemExit) as exit:
        main()
    printed = capsys.readouterr()
    assert exit.value.code == 2 and message in printed.err and "Traceback" not in printed.err
    assert not printed.out and not list(folder.iterdir())


def fetch(url: str, path: str, accept: str = "text/html,*/*;q=0.8") -> tuple[int, str, str]:
    """Status, media type and text of an answer to a browser."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url.rstrip("/") + path, headers={"Accept": accept})
        ) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.mark.parametrize("path", ["/study/finde", "/plya", "/study", "/play/me"])
def test_a_mistyped_link_shows_a_page(server, path):
    status, media_type, text = fetch(server[1], path)
    assert status == 404 and media_type.startswith("text/html")
    assert text.startswith("<!doctype html>") and "This link leads nowhere" in text and "<script" not in text
    assert ("no such study" in text) == (path == "/study/finde")


@pytest.mark.parametrize(
    ("path", "accept"), [("/api/nothing", "text/html"), ("/api/records/nobody", "text/html"), ("/study/x", "*/*")]
)
def test_the_api_answers_in_json(server, path, accept):
    status, media_type, text = fetch(server[1], path, accept)
    assert status == 404 and media_type == "application/json" and '"not_found"' in text


def test_studies_alone(tmp_path, study_file):
    with running(make_settings(tmp_path / "server", studies=[study_file], only_studies=True)) as (_, url):
        for path, body in (("/api/play", {}), ("/api/games", {}), ("/api/records", {}), ("/api/records", None),
                           ("/api/records/1", None), ("/play", None), ("/watch", None)):  # fmt: skip
            assert request(url, path, body)[0] == 404, path
        for path in ("/", "/study/find", "/admin"):
            status, _, text = fetch(url, path)
            assert status == 200 and "/play" not in text and "/watch" not in text
        status, joined = request(url, "/api/studies/find/join", {"parameters": {}})
        assert status == 200
        for do in ("agree", "begin", "next"):
            status, answer = request(url, "/api/participant", {"do": do}, joined["participant"])
            assert status == 200, answer
        with playing(url, answer["trial"]) as one:
            assert one.act("RotateLeft")["steps"] == 1


def test_games_that_were_never_played_expire(tmp_path):
    clock = Clock()
    with running(make_settings(tmp_path, clock=clock)) as (server, url):
        unplayed, opened, played = (new_game(url, opponent="random") for _ in range(3))
        for token in (opened, played):
            with playing(url, token) as one:
                if token == played:
                    one.act("RotateLeft")
        clock.now += UNPLAYED_SECONDS / 2
        young = new_game(url)
    with running(make_settings(tmp_path, clock=clock)) as (server, url):
        assert stored(server) == [unplayed, opened, played, young]
    clock.now += UNPLAYED_SECONDS / 2 + 1
    with running(make_settings(tmp_path, clock=clock)) as (server, url):
        deadline = time.monotonic() + 10
        while len(stored(server)) > 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert stored(server) == [played, young]
        database = server.sessions.database
        assert {row["trial"] for row in server.worker.call(database.all, "SELECT trial FROM steps").result()} == {3}
        with playing(url, played) as again:
            assert again.state["steps"] == 1


def stored(server) -> list[str]:
    """The tokens of the trials in the database."""
    rows = server.worker.call(server.sessions.database.all, "SELECT token FROM trials ORDER BY id").result()
    return [row["token"] for row in rows]
