"""What processes tell each other before they train, without training."""

import os
import threading
import time
from datetime import timedelta

import pytest
import torch
from torch.distributed import TCPStore

from scrubjay.errors import ClusterError
from scrubjay.training import rendezvous
from scrubjay.training.rendezvous import REMEDIES, appears, connect, describe, difference, meet


def test_processes_that_are_alike_differ_in_nothing():
    mine = describe("{}", "cuda:1")
    assert set(mine) == {"host", *REMEDIES} and mine["device"] == "cuda" and mine["torch"] in torch.__version__
    assert difference([mine, mine | {"host": "other"}]) == ""


@pytest.mark.parametrize("name", REMEDIES)
def test_the_first_difference_is_named_with_its_remedy(name):
    one = describe('{"seed": 1, "copies": 2, "task": "seek"}', "cpu") | {"host": "a"}
    other = '{"seed": 1, "copies": 3, "task": "cache"}' if name == "config" else "odd"
    sentence = difference([one, one, one | {"host": "b", name: other}])
    what = "another copies, task than process 0 on a"
    if name != "config":
        what = f"{name} odd, and process 0 on a has {one[name]}"
    assert sentence == f"process 2 on b has {what}: {REMEDIES[name]}"


def test_a_new_run_and_a_resumed_one_do_not_go_together():
    one, other = describe('{"seed": 1}', "cpu"), describe("", "cpu")
    assert "has another run than process 0" in difference([one, other])


def test_processes_that_are_gone_are_not_met():
    """torchrun may keep the store: what was there before the restart looks like the processes of today."""
    store, mine, met = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False), describe("", "cpu"), []

    def start(rank: int, late: float = 0.0) -> threading.Thread:
        def run() -> None:
            client = TCPStore("127.0.0.1", store.port, is_master=False)
            time.sleep(late)
            own = meet(client, rank, 2, mine)
            own.set(f"told/{rank}", str(rank))
            met.append(own.get(f"told/{1 - rank}"))

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    for _ in range(3):
        met.clear()
        # The first meets its old companion in the store, long before the new one comes.
        threads = [start(0), start(1, late=0.5)]
        for thread in threads:
            thread.join(30)
        assert sorted(met) == [b"0", b"1"]


def test_processes_wait_for_each_other_and_say_the_same():
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    mine, said = describe("", "cpu"), {}

    def check(rank: int) -> None:
        client = TCPStore("127.0.0.1", store.port, is_master=False)
        try:
            meet(client, rank, 3, mine | {"torch": "1.0" if rank == 2 else "2.0"})
        except ClusterError as error:
            said[rank] = str(error)

    threads = [threading.Thread(target=check, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 3 and len(set(said.values())) == 1 and "has torch 1.0" in said[0]


def test_a_process_that_does_not_come_is_named(monkeypatch):
    monkeypatch.setattr(rendezvous, "STARTUP", timedelta(seconds=0.2))
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with pytest.raises(ClusterError, match="of 3 processes 1, 2 did not start within"):
        meet(store, 0, 3, describe("", "cpu"))


def test_a_first_process_that_cannot_be_reached_is_one_sentence(monkeypatch):
    monkeypatch.setattr(rendezvous, "CONNECT", timedelta(seconds=1))
    free = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port = free.port
    del free
    for name, value in {"RANK": 1, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(ClusterError) as error:
        connect()
    sentence = str(error.value)
    assert f"the first process at 127.0.0.1:{port} cannot be reached within 1 seconds" in sentence
    assert "all 2 processes were started" in sentence and "\n" not in sentence
    del os.environ["MASTER_ADDR"]
    with pytest.raises(ClusterError, match="MASTER_ADDR expected, but not set"):
        connect()


def test_a_file_appears_only_with_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "SHARED_SECONDS", 0.3)
    assert not appears(tmp_path / "token", "abc")
    (tmp_path / "token").write_text("another run's")
    assert not appears(tmp_path / "token", "abc")
    threading.Timer(0.1, (tmp_path / "token").write_text, ("abc",)).start()
    assert appears(tmp_path / "token", "abc")
