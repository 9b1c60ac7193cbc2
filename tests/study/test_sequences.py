"""Sequences as files: what is written is read, broken folders are refused, killed runs continue."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from scrubjay.errors import DataError
from scrubjay.game.actions import NUMBERS, Stage
from scrubjay.sim.world import World
from scrubjay.study.sequences import Clip, ClipRecorder, SequenceData, SequenceWriter

COLUMNS = {"scene": "U24", "label": "i4"}
EXTRAS = {"cells": ("uint16", (7, 7))}


def clip(length: int, seed: int, similar: bool) -> Clip:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (length, 224, 224, 3), np.uint8)
    if similar:
        images[1:, 50:] = images[0, 50:]
    action = np.r_[-1, rng.integers(0, 219, length - 1)]
    extras = {"cells": rng.integers(0, 999, (length, 7, 7))}
    success, place = rng.random(length) < 0.5, rng.integers(-9, 9, (length, 4))
    return Clip(images, action, success, place, "Cup", {"scene": f"room {seed}", "label": seed % 2}, extras)


def pair(seed: int) -> list[Clip]:
    """A clip, and one that is nearly the same but for its length."""
    first = clip(4, seed, True)
    images = first.images[[0, 1, 2, 3, 3]].copy()
    images[2, 100:110] = 7
    return [first, Clip(**{**vars(clip(5, seed + 1, False)), "images": images, "like": first})]


BLOCKS = {
    "pair": pair(8),
    "a": [clip(3, 0, True), clip(1, 1, False)],
    "none": [],
    "b": [clip(5, 2, True), clip(2, 3, False)],
}


def writer(folder, **changes) -> SequenceWriter:
    arguments = {"experiment": "tracking", "stage": Stage.OM, "seed": 0, "blocks": list(BLOCKS)} | changes
    return SequenceWriter(folder, columns=COLUMNS, extras=EXTRAS, **arguments)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequences") / "data"
    target = writer(folder)
    for block in target.missing():
        target.write(block, BLOCKS[block])
    target.finish()
    return folder


def test_sequences_are_read_as_they_were_written(made):
    data, clips = SequenceData(made, "tracking"), [one for block in BLOCKS.values() for one in block]
    assert len(data) == 6 and data.frames == 20 and data.stage == Stage.OM
    for number, one in enumerate(clips):
        frames = data.frames_of(number)
        assert np.array_equal(data.images(frames), one.images)
        for name in ("last_action", "last_success", "place"):
            assert np.array_equal(data.read(name, frames), getattr(one, name))
        assert np.array_equal(data.read("cells", frames), one.extras["cells"])
        assert data.index["scene"][number] == one.columns["scene"] and data.index["goal"][number] == "Cup"
        assert (data.sequence_of(frames) == number).all()
    mixed = np.array([9, 2, 4, 0])
    every = np.concatenate([one.images for one in clips])
    assert np.array_equal(data.images(mixed), every[mixed])


def test_a_killed_run_continues_and_ends_as_an_unbroken_one(made, tmp_path):
    first = writer(tmp_path)
    first.write("none", [])
    with pytest.raises(DataError, match="incomplete; run `scrubjay study data tracking` again"):
        SequenceData(tmp_path, "tracking")
    with pytest.raises(ValueError, match="3 blocks are missing: pair"):
        first.finish()
    again = writer(tmp_path)
    assert again.missing() == ["pair", "a", "b"]
    for block in again.missing():
        again.write(block, BLOCKS[block])
    again.finish()
    assert SequenceData(tmp_path, "tracking").digest == SequenceData(made, "tracking").digest
    assert (tmp_path / "index.csv").read_bytes() == (made / "index.csv").read_bytes()
    assert writer(tmp_path).missing() == []


def test_folders_of_other_data_are_refused(made, tmp_path):
    with pytest.raises(DataError, match="no data here; make it with `scrubjay study data tracking"):
        SequenceData(tmp_path, "tracking")
    with pytest.raises(DataError, match="of the experiment tracking, not space"):
        SequenceData(made, "space")
    with pytest.raises(DataError, match="other scenes, sizes or seeds"):
        writer(made, seed=1)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="neither empty nor a folder of data"):
        writer(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: edit(folder, version=7), "of version 7, not 1"),
        (lambda folder: shutil.rmtree(folder / "b"), "not a readable array"),
        (lambda folder: np.save(folder / "a/place.npy", np.zeros((4, 3), np.int16)), "is expected; make the data"),
        (lambda folder: (folder / "index.csv").write_text("first\n"), "the columns must be first, length, goal"),
    ],
)
def test_broken_data_is_refused_in_a_sentence(made, tmp_path, change, message):
    folder = shutil.copytree(made, tmp_path / "copy")
    change(folder)
    with pytest.raises(DataError, match=message):
        SequenceData(folder, "tracking")


def edit(folder, **values) -> None:
    facts = json.loads((folder / "data.json").read_text())
    (folder / "data.json").write_text(json.dumps(facts | values))


def test_a_clip_that_does_not_fit_is_refused(tmp_path):
    target, one = writer(tmp_path), clip(3, 0, True)
    for changed, message in (
        (Clip(**{**vars(one), "goal": "Elephant"}), "unknown goal object"),
        (Clip(**{**vars(one), "place": one.place[:2]}), "place: shape"),
        (Clip(**{**vars(one), "last_action": np.array([3, 3, 3])}), "NOTHING at the first frame"),
        (Clip(**{**vars(one), "columns": {}}), "columns: scene, label"),
    ):
        with pytest.raises(ValueError, match=message):
            target.write("a", [changed])
    assert target.missing() == list(BLOCKS)


def test_a_recorder_follows_worlds_of_different_lengths():
    with World(["FloorPlan1"], 2, size=224) as world:
        recorder = ClipRecorder(world, seen=np.array([1, 2]))
        first = world.view().rgb.cpu().numpy()
        world.rotate(np.array([1, 1]))
        recorder.add(np.full(2, NUMBERS["RotateRight"]), np.ones(2, bool), seen=np.array([3, 4]))
        world.rotate(np.array([0, -1]))
        left = np.array([NUMBERS["RotateLeft"], -1])
        recorder.add(left, np.ones(2, bool), np.array([True, False]), seen=np.array([5, 6]))
        one, other = (recorder.clip(number, "Cup", {"scene": "FloorPlan1"}) for number in range(2))
    assert one.last_action.tolist() == [-1, NUMBERS["RotateRight"], NUMBERS["RotateLeft"]]
    assert np.array_equal(one.images[[0, 2]], first[[0, 0]]) and not np.array_equal(one.images[1], first[0])
    assert one.place.tolist() == [[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    assert len(other.images) == 2 and other.extras["seen"].tolist() == [2, 4]
