"""One contract for all workers: this process, child processes, and a Ray cluster."""

import importlib.util
import itertools
import os
from functools import partial

import numpy as np
import pytest
from workers_helpers import die, die_once, pid_of, refuse_odd, scaled, square

from scrubjay.errors import ProcessError, RoomError
from scrubjay.workers.base import HERE, Workers
from scrubjay.workers.choose import is_name, open_workers
from scrubjay.workers.pool import ProcessWorkers


@pytest.fixture(scope="module")
def processes():
    with ProcessWorkers(2) as workers:
        yield workers


@pytest.fixture(scope="module")
def cluster():
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs ray")
    with open_workers("ray") as workers:
        yield workers


CLUSTER = pytest.param("cluster", marks=pytest.mark.slow)


@pytest.fixture(params=["this process", "processes", CLUSTER])
def workers(request) -> Workers:
    return HERE if request.param == "this process" else request.getfixturevalue(request.param)


@pytest.fixture(params=["processes", CLUSTER])
def mortal(request) -> Workers:
    """Workers that can die without this process."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_item_comes_back_once_with_its_index(workers, count):
    assert sorted(workers.map(square, [(number,) for number in range(count)])) == [(n, n * n) for n in range(count)]


def test_what_tasks_share_is_a_part_of_the_function(workers):
    values = np.arange(3.0)
    results = dict(workers.map(partial(scaled, values), [(2,), (3,)]))
    assert results[0].tolist() == [0, 2, 4] and results[1].tolist() == [0, 3, 6]
    results[0] += 1  # A result is the caller's own.
    assert dict(workers.map(square, [(5,)])) == {0: 25}, "another function after it"


def test_what_a_task_raises_is_raised_here(workers):
    with pytest.raises(RoomError, match="1 is odd"):
        list(workers.map(refuse_odd, [(1,)]))
    assert dict(workers.map(refuse_odd, [(2,)])) == {0: 2}, "they still work"


def test_items_are_taken_when_they_are_needed_and_a_map_can_be_left(workers):
    taken = []
    items = ((taken.append(number) or number,) for number in itertools.count())
    some = dict(itertools.islice(workers.map(square, items), 5))
    assert len(some) == 5 and all(result == index**2 for index, result in some.items())
    assert len(taken) < 5 + 4 * (os.cpu_count() or 1)
    assert dict(workers.map(square, [(3,)])) == {0: 9}


def test_a_function_that_nobody_can_import_is_refused(mortal):
    with pytest.raises(ValueError, match=r"<lambda>.*a function that they can import"):
        list(mortal.map(lambda: 1, [()]))


def test_a_task_whose_worker_dies_is_done_again(mortal, tmp_path):
    assert sorted(mortal.map(partial(die_once, str(tmp_path)), [(n,) for n in range(5)])) == [(n, n) for n in range(5)]


def test_a_task_that_kills_its_workers_is_given_up(mortal):
    with pytest.raises(ProcessError, match=r"^die\(7\) has ended 3 workers; .*was there enough memory\?$"):
        list(mortal.map(die, [(7,)]))
    assert dict(mortal.map(square, [(4,)])) == {0: 16}


def test_there_are_no_more_processes_than_tasks_and_none_afterwards():
    with ProcessWorkers(5) as workers:
        assert not workers.pids
        pids = {pid for _, pid in workers.map(pid_of, [(0,), (1,)])}
        assert len(pids) == 2 and pids == set(workers.pids)
        assert {pid for _, pid in workers.map(pid_of, [(0,)])} <= pids, "they are used again"
    assert not workers.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("words", ["1", "12", "ray", "ray:auto", "ray:10.0.0.7:6379", "ray://head.example:10001"])
def test_names_of_workers(words):
    assert is_name(words)


@pytest.mark.parametrize(
    "words", ["0", "-1", "banana", "", "2.5", "ray:", "ray:host", "ray://host", "rays", "ray:a b:1"]
)
def test_other_names_are_one_sentence(words):
    with pytest.raises(ValueError, match=f"workers: a number of processes from 1, ray.*, not {words}"):
        open_workers(words)


def test_one_worker_is_this_process():
    assert open_workers("1") is HERE
    with open_workers("3") as workers:
        assert isinstance(workers, ProcessWorkers)
