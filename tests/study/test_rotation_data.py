"""Permanence: pairs of sequences that differ in images alone, and the log-odds of turning back."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from scrubjay.agent.config import SMALL
from scrubjay.errors import SpotError
from scrubjay.game.actions import NUMBERS
from scrubjay.rooms.generate import split, type_of
from scrubjay.study.dynamic_experiments import rotation_examples
from scrubjay.study.dynamic_probe import draw_repetitions
from scrubjay.study.rotation_data import SCALES, RotationScale, make_rotation_data
from scrubjay.study.rotation_odds import TurningOdds, _row, odds_text, turning_back
from scrubjay.study.sequences import SequenceData
from scrubjay.study.sources import DynamicSource, compute_features, untrained
from scrubjay.workers.pool import ProcessWorkers

SCALE = RotationScale((1, 1), 2, steps=3, goals=("Cup", "Tomato"), candidates=6, types=("bathroom",), near=True)


@pytest.fixture(scope="module")
def agent():
    return untrained(SMALL)


@pytest.fixture(scope="module")
def data(tmp_path_factory, agent) -> SequenceData:
    folder = tmp_path_factory.mktemp("rotation") / "data"
    make_rotation_data(folder, agent, SCALE)
    return SequenceData(folder, "rotation")


def test_pairs_differ_in_images_before_the_turn_alone(data):
    assert len(data) >= 4 and len(data) % 2 == 0
    for number in range(0, len(data), 2):
        seen, unseen = data.index[number], data.index[number + 1]
        assert seen["treatment"] and not unseen["treatment"] and seen["pair"] == unseen["pair"]
        one, other = data.frames_of(number), data.frames_of(number + 1)
        for name in ("last_action", "last_success", "place", "step"):
            assert np.array_equal(data.read(name, one), data.read(name, other)), name
        found, images = int(seen["found"]), [data.images(frames) for frames in (one, other)]
        differs = (images[0] != images[1]).any((1, 2, 3))
        assert len(one) == found + 6 and differs[found] and not differs[found + 1 :].any()
        turn = NUMBERS["RotateLeft" if seen["turn"] == "left" else "RotateRight"]
        assert data.read("last_action", one)[found + 1] == turn
        assert data.read("step", one).tolist() == [0] * (found + 1) + [1, 2, 3, 4, 5]


def test_a_resumed_data_set_equals_an_unbroken_one(data, agent, tmp_path):
    def interrupt(done: int, _: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_rotation_data(tmp_path, agent, SCALE, data.folder / "spots", progress=interrupt)
    with ProcessWorkers(2) as workers:
        make_rotation_data(tmp_path, agent, SCALE, data.folder / "spots", workers=workers)
    assert SequenceData(tmp_path, "rotation").digest == data.digest


def test_scenes_without_spots_are_left_out(data, agent, tmp_path):
    two = replace(SCALE, scenes=(2, 1))
    make_rotation_data(tmp_path / "out", agent, two, data.folder / "spots")
    some = SequenceData(tmp_path / "out", "rotation")
    assert set(some.index["scene"]) == set(data.index["scene"]) and len(some.facts["blocks"]) == 2 < len(two.names())
    spots = shutil.copytree(data.folder / "spots", tmp_path / "spots")
    (test,) = {str(scene) for scene in data.index["scene"] if split(scene) == "test"}
    (spots / f"{test}-Cup.json").unlink()
    with pytest.raises(SpotError, match="no hiding spots of bathroom of the test scenes, with Cup, Tomato"):
        make_rotation_data(tmp_path / "none", agent, SCALE, spots)
    assert not (tmp_path / "none").exists()


def test_examples_are_five_after_the_turn_and_objects_are_held_out(data):
    examples = rotation_examples(data)
    assert len(examples.frame) == 5 * len(data) and examples.table.label.mean() == 0.5
    _, repetitions = draw_repetitions(examples.table, (10,), 4)
    for one in repetitions:
        (held,) = one.held_out["object"]
        goals = data.index["goal"][data.sequence_of(examples.frame)]
        assert (goals[one.test] == held).all() and (goals[one.train[-1]] != held).all()
        assert (data.index["split"][data.sequence_of(examples.frame[one.test])] == "test").all()


def test_log_odds_are_of_turning_back(data, agent):
    examples, source = rotation_examples(data), TurningOdds(DynamicSource("one", agent))
    (values,) = compute_features([source], data, examples.frame)
    rows = turning_back("one", data, examples.frame, values[:, 0])
    assert [row.step for row in rows if row.split == "all"] == [1, 2, 3, 4, 5]
    first = rows[0]
    assert first.pairs == len(data) // 2 and first.difference == pytest.approx(
        first.treatment - first.control, abs=1e-9
    )
    # By hand: the first pair's logits at the first frame after the turn.
    expected = []
    for number in (0, 1):
        frames, state = data.frames_of(number)[: int(data.index["found"][0]) + 2], agent.initial_state(1)
        for step, frame in enumerate(frames):
            image = torch.from_numpy(data.images(np.array([frame])))
            told = DynamicSource("one", agent).observe(data, np.array([frame]), step, image)
            with torch.no_grad():
                output = agent.act(state, told, torch.tensor([step == 0]))
            state = output.state
        left, right = (float(output.decision.logits[0, NUMBERS[f"Rotate{way}"]]) for way in ("Left", "Right"))
        expected.append(right - left if data.index["turn"][0] == "left" else left - right)
    at = [np.flatnonzero(examples.frame == data.frames_of(n)[int(data.index["found"][0]) + 1])[0] for n in (0, 1)]
    sign = -1 if data.index["turn"][0] == "left" else 1
    np.testing.assert_allclose(sign * values[at, 0], expected, atol=1e-5)


def test_the_interval_has_scenes_as_clusters():
    seen, unseen = np.array([0.3, 0.1, 0.5, 0.1]), np.array([0.1, 0.1, 0.1, 0.1])
    row = _row("one", 1, "all", seen, unseen, np.array(["a", "a", "b", "b"]))
    # Differences 0.2, 0, 0.4, 0: mean 0.15; sums -0.1 and 0.1; variance 2 * 0.02 / 16; t(0.975, 1) = 12.7062.
    assert row.difference == pytest.approx(0.15) and row.scenes == 2
    assert row.high - row.difference == pytest.approx(12.7062 * 0.05, rel=1e-4)
    (read,) = csv.DictReader(odds_text([row]).splitlines())
    assert float(read["difference"]) == pytest.approx(0.15)


def test_the_papers_scale_has_forty_train_and_ten_test_scenes_of_whole_games():
    names = SCALES["paper"].names()
    assert [split(name) for name in names].count("train") == 40 and [split(name) for name in names].count("test") == 10
    assert len(set(names)) == 50 and {type_of(name) for name in names} == {"kitchen", "living_room"}
