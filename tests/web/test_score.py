"""Scores of free play, what they are compared with, and the size of its pictures."""

from contextlib import closing

import numpy as np
import pytest
from web_helpers import SIZE, STUDY, make_settings, new_game, playing, request, wait_for_replay

from scrubjay.game.actions import Stage
from scrubjay.game.record import save_records
from scrubjay.web.database import Database
from scrubjay.web.score import score
from scrubjay.web.server import running
from scrubjay.web.trial import HIDE


@pytest.fixture
def url(tmp_path):
    with running(make_settings(tmp_path)) as (_, url):
        yield url


def seek(url: str, turns: int, seed: int = 3) -> dict:
    """Gives up after some turns; returns the result."""
    with playing(url, new_game(url, seed=seed)) as player:
        for _ in range(turns):
            player.act("RotateLeft")
        return player.act("GiveUp")["result"]


def hide(url: str, seed: int = 3) -> dict:
    """Drops the object where the person stands; returns the result."""
    with playing(url, new_game(url, HIDE, "random", seed)) as player:
        for action in ("HideHere", "DropObject", "ReadyForSeeker"):
            assert player.act(action)["type"] == "state"
        return player.skip_to_end()["result"]


def test_hider_and_seeker_share_a_hundred_points():
    assert [score(length, hiding=False) for length in (0, 5, 250, 500)] == [100, 99, 50, 0]
    assert all(score(length, True) + score(length, False) == 100 for length in range(501))


def test_a_search_that_failed_counts_as_500_steps(url):
    first = seek(url, 2)
    assert (first["found"], first["steps"], first["search"], first["score"]) == (False, 2, 500, 0)
    assert (first["games"], first["beaten"], first["scripted"]) == (0, 0, {})
    assert seek(url, 1)["games"] == 1


def test_a_hider_is_told_how_long_the_search_took_and_how_other_hiders_fared(url):
    results = [hide(url, seed) for seed in (3, 4, 5)]
    lengths = []
    for result in results:
        replay = wait_for_replay(url, result["record"])
        searched = sum(step["stage"] == Stage.S.name for step in replay["steps"])
        lengths.append(searched if result["found"] else 500)
    assert [result["search"] for result in results] == lengths
    assert [result["score"] for result in results] == [round(length / 5) for length in lengths]
    assert [result["games"] for result in results] == [0, 1, 2]
    assert results[2]["beaten"] == sum(length < lengths[2] for length in lengths[:2])
    assert results[0]["scripted"] == {"heuristic": 440, "random": 242}
    assert seek(url, 0)["games"] == 0, "seekers are not compared with hiders"


def test_free_play_has_larger_pictures_for_both_players_and_studies_keep_theirs(tmp_path, in_drawer):
    (tmp_path / "study.toml").write_text(STUDY)
    save_records([in_drawer], tmp_path / "people.jsonl")
    with running(make_settings(tmp_path, play_size=2 * SIZE, studies=[tmp_path / "study.toml"])) as (_, url):
        with playing(url, new_game(url, HIDE, "random")) as player:
            assert player.welcome["size"] == 2 * SIZE
            for action in ("HideHere", "DropObject", "ReadyForSeeker"):
                player.act(action)
            result = player.skip_to_end()["result"]
        assert wait_for_replay(url, result["record"])["size"] == 2 * SIZE
        token = request(url, "/api/studies/find/join", {})[1]["participant"]
        for do in ("agree", "begin", "next"):
            status = request(url, "/api/participant", {"do": do}, token)[1]
        with playing(url, status["trial"]) as player:
            assert player.welcome["size"] == SIZE


def test_a_game_keeps_the_size_it_was_started_with(tmp_path):
    """Also one that was started before free play had a size of its own: its stored spec has none."""
    with running(make_settings(tmp_path)) as (_, url):
        trials = [new_game(url), new_game(url)]
        for trial in trials:
            with playing(url, trial) as player:
                place = player.act("RotateLeft")["place"]
    with closing(Database(tmp_path / "play.db", writable=True)) as database:
        database.db.execute("UPDATE trials SET deal = json_remove(deal, '$.size') WHERE token = ?", [trials[0]])
    with running(make_settings(tmp_path, play_size=2 * SIZE)) as (_, url):
        for trial in trials:
            with playing(url, trial) as player:
                assert player.welcome["size"] == SIZE
                assert np.allclose(player.state["place"], place)
