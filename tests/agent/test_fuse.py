"""Settings of the whole process that threads change for a while."""

import threading

import torch

from scrubjay.agent.fuse import varying_shapes


def test_the_last_thread_that_leaves_restores_the_search_for_algorithms(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with varying_shapes():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with varying_shapes():
        thread.start()
        assert entered.wait(10) and not torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.benchmark, "the other thread is not done"
    leave.set()
    thread.join()
    assert torch.backends.cudnn.benchmark
