"""The replay buffer survives checkpoints: a resumed run replays what an uninterrupted one does."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import torch as safetensors

from scrubjay.errors import RunError
from scrubjay.training.config import TrainConfig
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.train import train

EXPLORE = TrainConfig.preset(
    "demo", scenes=("FloorPlan401",), copies=2, unroll_length=4, minibatch_games=2, updates=4, checkpoint_interval=2,
    augment=True, replay_batches=2, replay_batch_size=4, replay_size=40, replay_max_age=10, replay_group_share=1.0,
)  # fmt: skip
CACHE = replace(
    EXPLORE, task="cache", rotate_grid=True, stage_limits=(3, 1, 3, 3, 3), hiding_minibatch=1, unroll_length=8
)


def files_of(path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "progress.json"}


def train_to_end(run: Run) -> Path:
    """Trains a run, closes it and returns its folder."""
    try:
        train(run)
    finally:
        run.close()
    return run.folder


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """An uninterrupted run."""
    return train_to_end(Run.begin(tmp_path_factory.mktemp("runs") / "explored", EXPLORE))


@pytest.mark.parametrize("config", [EXPLORE, pytest.param(CACHE, marks=pytest.mark.slow)], ids=["explore", "cache"])
def test_the_replay_buffer_survives_a_checkpoint(config, explored, tmp_path):
    """Batches of four from a buffer of forty, in use before and after the checkpoint; one pass spans it."""
    folder = explored if config == EXPLORE else train_to_end(Run.begin(tmp_path / "uninterrupted", config))
    before, last = checkpoints(folder)
    for kept in ("buffer", "no buffer"):
        shutil.copytree(folder, tmp_path / kept)
        shutil.rmtree(tmp_path / kept / "checkpoints" / last.name)
    path = tmp_path / "no buffer" / "checkpoints" / before.name
    about = json.loads((path / "progress.json").read_text())
    del about["replay.safetensors"]
    (path / "replay.safetensors").unlink()
    (path / "progress.json").write_text(json.dumps(about))
    for kept in ("buffer", "no buffer"):
        train_to_end(Run.open(tmp_path / kept))
    rows, resumed, lost = (replay_rows(path) for path in (folder, tmp_path / "buffer", tmp_path / "no buffer"))
    assert all("dynamics/inverse" in row for row in rows) and rows == resumed
    assert files_of(checkpoints(tmp_path / "buffer")[-1]) == files_of(last)
    triplets = [row["replay_triplets"] for row in rows]
    assert triplets == sorted(triplets) and triplets[2] > triplets[1] > 2 * 4, "nothing is lost at the checkpoint"
    # A checkpoint without a buffer, as of a run begun from another's agent, continues with an empty one.
    assert lost[2]["replay_triplets"] < triplets[1] and lost != rows


def replay_rows(folder: Path) -> list[dict[str, float]]:
    """The losses and the replay charts of a run's updates."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    charts = ("replay_triplets", "replay_uses")
    return [row["losses"] | {name: row["charts"][name] for name in charts} for row in rows]


def test_a_damaged_replay_buffer_is_refused(explored, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(explored, folder)
    path, log = checkpoints(folder)[-1], (folder / "metrics.jsonl").read_text()
    data, about = (path / "replay.safetensors").read_bytes(), json.loads((path / "progress.json").read_text())
    assert len(data) < 100_000
    tensors = safetensors.load(data)
    other_size = safetensors.save({name: t[:-1] if t.ndim else t for name, t in tensors.items()})
    no_action = safetensors.save(tensors | {"0.action": tensors["0.action"] + 219})
    no_slot = safetensors.save(tensors | {"0.pending": torch.tensor([40])})
    for wrong, digest, message in (
        (data[:-1], False, "its digest differs"),
        (b"", False, "its digest differs"),
        (b"{}", True, "header too small"),
        (safetensors.save({"0.round": tensors["0.round"]}), True, "missing"),
        (other_size, True, "not int32"),
        (no_action, True, "out of range"),
        (no_slot, True, "out of range"),
    ):
        (path / "replay.safetensors").write_bytes(wrong)
        if digest:
            about["replay.safetensors"] = hashlib.sha256(wrong).hexdigest()
        (path / "progress.json").write_text(json.dumps(about))
        with pytest.raises(RunError, match=f"damaged: .*{message}.*Delete"):
            train_to_end(Run.open(folder))
    (path / "replay.safetensors").unlink()
    with pytest.raises(RunError, match=r"damaged: .*Delete"):
        train_to_end(Run.open(folder))
    assert (folder / "metrics.jsonl").read_text() == log, "nothing was changed"
