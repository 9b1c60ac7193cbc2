"""Training runs: they go on where they stopped, exactly, and say what is wrong with folders that cannot be used."""

import json
import shutil

import pytest
import torch

from scrubjay.game.cache import Cache
from scrubjay.game.deal import Dealer
from scrubjay.learning.checkpoint import Run, RunError, checkpoints
from scrubjay.learning.config import PRESETS, Training, changed, from_json, to_json
from scrubjay.learning.player import load_player
from scrubjay.learning.train import Trainer, TrainingError, train
from scrubjay.world.world import World

TINY = changed(
    "demo", scenes=("FloorPlan401",), copies=2, length=4, chunk=2, updates=4, interval=2, replay_size=64,
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never broken."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run = Run.begin(folder, TINY)
    train(run)
    run.close()
    return folder


def files_of(path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "progress.json"}


def test_a_run_writes_its_folder(whole):
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows] == [1, 2, 3, 4] and rows[-1]["steps"] == 4 * 4 * 2
    assert {"em_policy", "em_value", "em_entropy", "self_prediction", "change"} <= set(rows[0]["loss"])
    assert [path.name for path in checkpoints(whole)] == ["00000002", "00000004"]
    about = json.loads((whole / "run.json").read_text())
    assert from_json(about["training"]) == TINY


def test_a_run_that_goes_on_equals_one_that_was_never_broken(whole, tmp_path):
    """Killed after its first checkpoint, with a line in its log that is later than that."""
    folder = tmp_path / "broken"
    shutil.copytree(whole, folder)
    shutil.rmtree(checkpoints(folder)[-1])
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join(lines[:3]) + '\n{"update": 4, "cut of')
    run = Run.open(folder)
    train(run)
    run.close()
    assert files_of(checkpoints(folder)[-1]) == files_of(checkpoints(whole)[-1])
    again = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert again == [json.loads(line)["loss"] for line in lines]


def test_stopping_saves(tmp_path):
    run = Run.begin(tmp_path / "run", TINY)
    seen = []
    train(run, report=seen.append, stop=lambda: len(seen) >= 1)
    run.close()
    assert len(seen) == 1 and [path.name for path in checkpoints(tmp_path / "run")] == ["00000001"]


def test_an_agent_plays_from_its_run(whole):
    player = load_player(whole, seed=1)
    with World(["FloorPlan401"], size=224) as world:
        cache = Cache(world, Dealer(3))  # Images of another size than the agent's are made smaller.
        for _ in range(3):
            cache.step(*player(cache, cache.games > 0))
    assert cache.time[0, 0] == 3


def test_folders_that_cannot_be_used_say_why(whole, tmp_path):
    with pytest.raises(RunError, match="is a run already"):
        Run.begin(whole, TINY)
    with pytest.raises(RunError, match="is not a run"):
        Run.open(tmp_path)
    run = Run.open(whole)
    with pytest.raises(RunError, match="in use by another process"):
        Run.open(whole)
    run.close()
    folder = tmp_path / "damaged"
    shutil.copytree(whole, folder)
    (folder / "run.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(RunError, match="version"):
        Run.open(folder)


def test_damaged_checkpoints_are_refused_and_the_one_before_serves(whole, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(whole, folder)
    last = checkpoints(folder)[-1]
    data = bytearray((last / "optimisers.safetensors").read_bytes())
    data[-1] ^= 1
    (last / "optimisers.safetensors").write_bytes(data)
    run = Run.open(folder)
    trainer = Trainer(TINY)
    with pytest.raises(RunError, match="Delete this folder"):
        run.restore(trainer.agent, trainer.optimisers)
    shutil.rmtree(last)
    assert run.restore(trainer.agent, trainer.optimisers).update == 2
    trainer.close()
    run.close()


def test_a_loss_that_is_no_number_stops_the_run_with_its_batch(tmp_path, monkeypatch):
    run = Run.begin(tmp_path / "run", TINY)
    from scrubjay.learning import learner

    monkeypatch.setattr(learner.losses, "self_prediction", lambda *_: torch.tensor(float("nan"), requires_grad=True))
    with pytest.raises(TrainingError, match="self_prediction; the batch is in"):
        train(run)
    run.close()
    (saved,) = (tmp_path / "run").glob("not_finite-*.safetensors")
    assert saved.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task": "cook"}, "task"), ({"agent": "huge"}, "agent"), ({"scenes": ()}, "scenes"), ({"copies": 0}, "copies"),
        ({"length": 1}, "length"),
        ({"agent": "paper", "chunk": 1000}, "chunk"), ({"learning_rate": 0.0}, "learning_rate"), ({"seed": -1}, "seed"),
    ],
)  # fmt: skip
def test_impossible_numbers_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        changed("demo", **change)


def test_configs_come_back_from_json():
    for training in PRESETS.values():
        assert from_json(json.loads(to_json(training))) == training
    with pytest.raises(ValueError, match="extra"):
        from_json({**json.loads(to_json(Training())), "extra": 1})
    with pytest.raises(ValueError, match="unknown preset"):
        changed("nothing")
