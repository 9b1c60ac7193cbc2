"""Data of the experiments in foyers: no leaks, labels against a slow reference, killed runs continue, the pages."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from scrubjay.agent.config import SMALL
from scrubjay.cli.main import main
from scrubjay.errors import DataError
from scrubjay.game.actions import NUMBERS, Stage
from scrubjay.sim.render.base import GOAL_ALONE
from scrubjay.sim.world import World
from scrubjay.study import foyer_data
from scrubjay.study.dynamic_experiments import contained_examples, tracking_examples
from scrubjay.study.foyer_data import ContainedScale, TrackingScale, make_contained_data, make_tracking_data
from scrubjay.study.foyer_tracking import is_good_path
from scrubjay.study.sequences import FIELDS, SequenceData
from scrubjay.study.sources import NEUTRAL_TARGET, DynamicSource, untrained
from scrubjay.viz.clips import describe_actions, write_contained_clips, write_tracking_clips
from scrubjay.workers.pool import ProcessWorkers

CONTAINED = ContainedScale(1, 1, ("FloorPlan504",), ("Desk", "SideTable"), ("Box",), ("Cup", "Bread"))
TRACKING = TrackingScale(1, ("FloorPlan501",), ("DiningTable",), ("Cup", "Tomato"))


@pytest.fixture(scope="module")
def contained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foyer") / "contained"
    make_contained_data(folder, CONTAINED)
    return folder


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foyer") / "tracking"
    make_tracking_data(folder, TRACKING)
    return folder


def test_nothing_but_pictures_and_actions_differs_between_the_labels(contained):
    data = SequenceData(contained, "contained")
    assert data.stage == Stage.OM and len(data) == 8
    assert set(data.fields) == set(FIELDS), "nothing else is stored by frame"
    into, behind = data.index[0::2], data.index[1::2]
    assert (into["label"] == 1).all() and (behind["label"] == 0).all()
    # What depends on the label: itself, and how many movements there were.
    for name in set(data.index.dtype.names) - {"first", "length", "label", "forward_steps"}:
        assert np.array_equal(into[name], behind[name]), name
    for number in range(0, len(data), 2):
        one, other = data.frames_of(number), data.frames_of(number + 1)
        assert np.array_equal(data.images(one[:1]), data.images(other[:1])), "the same start"
        for frames in (one, other):
            assert (data.read("place", frames) == [0, 0, 0, 1]).all()
            assert data.read("last_success", frames).tolist() == [False] + [True] * (len(frames) - 1)
            ahead = data.read("last_action", frames) == NUMBERS["MoveHandAhead"]
            assert ahead.sum() == data.index["forward_steps"][data.sequence_of(frames[:1])[0]]
            assert NUMBERS["DropObject"] not in data.read("last_action", frames)
        assert not np.array_equal(data.images(one[-1:]), data.images(other[-1:]))


def test_an_agent_is_told_the_same_for_both_labels(contained):
    """On real pairs: whatever it observes beside images and its own actions, step by step."""
    data = SequenceData(contained, "contained")
    source, image = DynamicSource("untrained", untrained(SMALL, 0)), torch.zeros((1, 224, 224, 3), dtype=torch.uint8)
    for number in range(0, len(data), 2):
        frames = [data.frames_of(one) for one in (number, number + 1)]
        for step in range(min(map(len, frames))):
            told = [vars(source.observe(data, own[[step]], step, image)) for own in frames]
            for name in set(told[0]) - {"image", "last_action"}:
                assert torch.equal(told[0][name], told[1][name]), name
            assert told[0]["target"].tolist() == [list(NEUTRAL_TARGET)]


def test_the_experiments_take_the_data(contained, tracked):
    examples = contained_examples(SequenceData(contained, "contained"))
    assert examples.table.label.tolist() == [True, False] * 4
    data = SequenceData(tracked, "tracking")
    examples = tracking_examples(data)
    assert (data.read("visible", examples.frame) < 10).all() and 0 < examples.table.label.mean() < 1


def test_a_killed_run_continues_to_the_same_data(contained, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(contained, folder)
    facts = json.loads((folder / "data.json").read_text())
    del facts["counts"]
    (folder / "data.json").write_text(json.dumps(facts))
    shutil.rmtree(folder / facts["blocks"][0])
    kept = (folder / facts["blocks"][1] / "images.npy").stat().st_mtime_ns
    with pytest.raises(DataError, match="incomplete; run `scrubjay study data contained` again"):
        SequenceData(folder, "contained")
    reported = []
    with ProcessWorkers(1) as workers:
        make_contained_data(folder, CONTAINED, progress=lambda *numbers: reported.append(numbers), workers=workers)
    assert reported == [(1, 2), (2, 2)]
    assert (folder / facts["blocks"][1] / "images.npy").stat().st_mtime_ns == kept
    assert SequenceData(folder, "contained").digest == SequenceData(contained, "contained").digest
    with pytest.raises(DataError, match="made of other scenes, sizes or seeds"):
        make_contained_data(folder, replace(CONTAINED, poses=2))


def test_pixels_of_an_object_by_cell_are_those_that_one_counts(tracked):
    """Pixel by pixel, in a world that holds the object where a movement left it."""
    data = SequenceData(tracked, "tracking")
    assert len(data) == 2 and data.index["goal"].tolist() == ["Cup", "Tomato"]
    rooms, rows, paths, trajectories = foyer_data.plan_tracking("FloorPlan501", "DiningTable", TRACKING, 0)
    for number in range(len(data)):
        frames = data.frames_of(number)
        room = next(
            r for r, row in enumerate(rows) if row.front == pytest.approx(data.index["front"][number], abs=1e-5)
        )
        world_number = room * 2 + number
        seen_before = data.read("visible", frames)
        assert is_good_path(seen_before)
        renderer = json.loads((tracked / "data.json").read_text())["facts"]["renderer"]
        with World([rooms[room]], 1, renderer, threads=1) as world:
            state = world.state
            state.position, state.rotation = paths.position[[world_number]], paths.rotation[[world_number]]
            state.standing, state.goal = np.array([False]), paths.goal[[world_number]]
            for step in (0, int(seen_before.argmin())):
                state.pose = trajectories.poses[[world_number], step]
                own = len(rooms[room].room.things) + state.goal[0]
                everything = world.view(("ids",)).ids[0].numpy()
                alone = world.view(("ids",), GOAL_ALONE).ids[0].numpy()
                counted = np.zeros((7, 7), int)
                for row, column in np.argwhere(alone == own):
                    counted[row // 32, column // 32] += 1
                assert np.array_equal(data.read("cells", frames[[step]])[0], counted) and counted.sum() > 10
                assert seen_before[step] == (everything == own).sum()
        assert (data.read("place", frames) == 0).all(), "crouching"


def test_a_scale_of_what_does_not_exist_is_one_sentence():
    for wrong, words in (
        (lambda: replace(CONTAINED, tables=("Bench",)), "tables: Bench is none of DiningTable, CoffeeTable"),
        (lambda: replace(CONTAINED, receptacles=("Bath",)), "receptacles: Bath is none of Bowl, Pot"),
        (lambda: replace(CONTAINED, foyers=()), "foyers: nothing is none of FloorPlan501"),
        (lambda: replace(CONTAINED, poses=0), "rooms and poses: 1 or more, not 1 and 0"),
        (lambda: replace(TRACKING, objects=("Bread",)), "objects: Bread is none of Cup, Knife, Tomato"),
        (lambda: TrackingScale(0), "paths: 1 or more, not 0"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()


def test_pages_show_clips_of_both(contained, tracked, tmp_path):
    write_contained_clips(SequenceData(contained, "contained"), tmp_path / "contained.html")
    page = (tmp_path / "contained.html").read_text()
    assert page.count("Into the Box") == page.count("Behind the Box") > 4 and "4 pairs" in page
    write_tracking_clips(SequenceData(tracked, "tracking"), tmp_path / "tracking.html")
    page = (tmp_path / "tracking.html").read_text()
    assert page.count("data:image/webp") == 2 * 3 and "2 paths" in page
    actions = [NUMBERS[name] for name in ("RotateHand|-X", "MoveHandLeft", "MoveHandLeft", "MoveHandDown")]
    assert describe_actions(np.array(actions)) == "1 turned, 2 left, 1 down"


def test_the_commands_make_data_and_pages(tmp_path, monkeypatch, capsys):
    small = replace(CONTAINED, tables=("Desk",), objects=("Tomato",))
    monkeypatch.setitem(foyer_data.CONTAINED_SCALES, "mini", small)
    monkeypatch.setattr(
        "sys.argv", ["scrubjay", "study", "data", "contained", "--scale", "mini", "--out", str(tmp_path)]
    )
    main()
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "clips.html")
    assert (tmp_path / "index.csv").read_text().count("\n") == 3
    monkeypatch.setattr(
        "sys.argv", ["scrubjay", "study", "data", "tracking", "--seed", "-1", "--out", str(tmp_path / "t")]
    )
    with pytest.raises(SystemExit):
        main()
    assert "seed: 0 or more, not -1" in capsys.readouterr().err and not (tmp_path / "t").exists()
