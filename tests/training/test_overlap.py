"""Learning while the next rollout is collected: as many steps from the same number of rollouts, one rollout later."""

import threading
import time
from dataclasses import replace

import pytest
import torch

from scrubjay.agent.config import SMALL
from scrubjay.training.config import TrainConfig
from scrubjay.training.hogwild import check_asynchronous
from scrubjay.training.overlap import Background, FairLock
from scrubjay.training.run import Run
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer

TINY = TrainConfig.preset(
    "demo", scenes=("FloorPlan401",), copies=2, unroll_length=4, minibatch_games=2, updates=5, checkpoint_interval=3,
    replay_size=64, agent=SMALL, overlap=True,
)  # fmt: skip
WHOLE = replace(
    TINY, task="cache", copies=4, stage_limits=(4, 1, 4, 6, 8), manipulation_minibatch=2, hiding_minibatch=2, updates=9,
    checkpoint_interval=9, replay_batches=0,
)  # fmt: skip


def optimizer_steps(trainer: Trainer, name: str = "play") -> int:
    return max((int(state["step"]) for state in trainer.optimizers[name].state.values()), default=0)


def test_a_waiting_thread_is_next():
    """Without turns, a thread that takes a lock again and again would keep another waiting for long."""
    lock, order, stop = FairLock(), [], threading.Event()

    def again_and_again() -> None:
        while not stop.is_set():
            with lock:
                order.append("often")
                time.sleep(0.002)

    thread = threading.Thread(target=again_and_again)
    thread.start()
    try:
        for _ in range(5):
            before = len(order)
            with lock:
                assert len(order) <= before + 2
                order.append("once")
            time.sleep(0.005)
    finally:
        stop.set()
        thread.join()


def test_an_error_in_the_background_is_raised_where_its_result_is_taken():
    background = Background("cpu", FairLock())
    background.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        background.result()
    background.start(lambda: 3)
    assert background.result() == 3
    background.close()


@pytest.mark.parametrize("config", [TINY, pytest.param(WHOLE, marks=pytest.mark.slow)], ids=["explore", "whole games"])
def test_as_much_is_learned_from_as_many_rollouts(config):
    steps, rows = {}, {}
    for overlap in (False, True):
        trainer = Trainer(replace(config, overlap=overlap))
        rows[overlap] = []
        trainer.run(rows[overlap].append, lambda: False, lambda: None)
        steps[overlap] = optimizer_steps(trainer)
        assert all(torch.isfinite(parameter).all() for parameter in trainer.agent.parameters())
        trainer.close()
    if config is TINY:
        assert steps[True] == steps[False] > 0
    assert steps[True] > 0
    # The first rollout of a segment is learned from during the second.
    segments = range(0, config.updates, config.checkpoint_interval)
    empty = [number for number, row in enumerate(rows[True]) if not row["losses"]]
    assert empty == list(segments)
    assert [row["steps"] for row in rows[True]] == [row["steps"] for row in rows[False]] or config is WHOLE


def test_a_run_that_overlaps_is_resumed(tmp_path):
    run = Run.begin(tmp_path / "run", replace(TINY, updates=3))
    assert train(run).update == 3
    run.close()
    with pytest.raises(ValueError, match="overlap"):
        check_asynchronous(TINY)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("config", [TINY, WHOLE], ids=["explore", "whole games"])
def test_graphs_are_captured_and_replayed_beside_collecting(config):
    trainer = Trainer(replace(config, updates=24, checkpoint_interval=12), "cuda")
    rows = []
    trainer.run(rows.append, lambda: False, lambda: None)
    assert len(rows) == 24 and "rollouts" in trainer.graphs
    assert sum(not row["losses"] for row in rows) == 2
    assert all(torch.isfinite(parameter).all() for parameter in trainer.agent.parameters())
    trainer.close()


@pytest.mark.parametrize("overlap", [True, False])
def test_collecting_beside_learning_reads_no_weights_that_learning_has_converted(overlap):
    """Threads share autocast's copies, and one stream would read what another has yet to compute: rewards were NaN."""
    trainer = Trainer(replace(TINY, overlap=overlap))
    collector, _ = trainer.start_segment()
    with collector.autocast():
        assert torch.is_autocast_cache_enabled() is not overlap
    with trainer.autocast():
        assert torch.is_autocast_cache_enabled()
    trainer.close()
