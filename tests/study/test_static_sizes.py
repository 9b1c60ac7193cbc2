"""Probes at other numbers of training examples: the table, the cache, the chart, and what is refused."""

import csv
import sys

import numpy as np
import pytest

from scrubjay.cli.main import main
from scrubjay.errors import ProbeError
from scrubjay.study.encoders import load_encoder
from scrubjay.study.probe import ProbeConfig
from scrubjay.study.static import PLAIN, SIZE_FIELDS, WITH_SKIPS, StaticScale, StaticStudy
from scrubjay.study.static_data import StaticData
from scrubjay.study.static_generate import make_static_data
from scrubjay.viz.static_sizes import draw_sizes

COUNTS = {"FloorPlan401": 6, "FloorPlan402": 6, "FloorPlan421": 4, "FloorPlan426": 4, "FloorPlan427": 4}
TINY = StaticScale(ProbeConfig(size=14, max_epochs=1, batch_size=4), training_images=8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes") / "data"
    make_static_data(folder, COUNTS)
    return StaticData(folder)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_each_size_has_its_rows_and_the_studys_own_is_not_trained_again(data, tmp_path):
    encoders = [load_encoder("random")]
    StaticStudy(data, encoders, tmp_path, TINY, tasks=("depth", "class")).run()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "losses").glob("*.npy")}
    table = (tmp_path / "static.csv").read_bytes()
    assert not (tmp_path / "static_sizes.csv").exists()
    done = []
    study = StaticStudy(data, encoders, tmp_path, TINY, tasks=("depth", "class"), sizes=(12, 4, 8))
    study.run(lambda *numbers: done.append(numbers))
    rows = read(tmp_path / "static_sizes.csv")
    assert tuple(rows[0]) == SIZE_FIELDS and done[-1] == (10, 10), "nine probes, and features of the new examples"
    assert sorted((row["decoder"], row["task"], int(row["size"])) for row in rows) == sorted(
        (decoder, task, size)
        for decoder, task in ((PLAIN, "depth"), (PLAIN, "class"), (WITH_SKIPS, "depth"))
        for size in (4, 8, 12)
    )
    own = {(row["decoder"], row["task"]): row for row in read(tmp_path / "static.csv")}
    for row in rows:
        assert 0 < float(row["low"]) <= float(row["loss"]) <= float(row["high"])
        same = row["loss"] == own[row["decoder"], row["task"]]["loss"]
        assert same == (row["size"] == "8")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list((tmp_path / "losses").glob("*.npy"))) == 9
    assert (tmp_path / "static.csv").read_bytes() == table
    assert draw_sizes([row for row in study.size_rows if row["decoder"] == PLAIN], ["random"])[:4] == b"\x89PNG"


def test_fewer_examples_are_among_more_and_come_from_all_scenes(data):
    few, more = (data.training_rows("depth", count) for count in (4, 8))
    assert set(few) <= set(more)
    assert np.unique(data.index["scene"][few], return_counts=True)[1].tolist() == [2, 2]


def test_sizes_that_there_are_not_images_for_are_refused(data, tmp_path):
    for sizes in ((0,), (13,)):
        with pytest.raises(ProbeError, match="sizes: from 1 to the 12 train images of depth"):
            StaticStudy(data, [load_encoder("random")], tmp_path, TINY, tasks=("depth",), sizes=sizes)
    assert not any(tmp_path.iterdir())


def test_the_page_shows_the_curves(data, tmp_path, monkeypatch, capsys):
    words = ["study", "static", "--encoders", "random", "--data", str(data.folder), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["scrubjay", *words, "--tasks", "class", "--scale", "mini", "--sizes", "3", "12"])
    main()
    assert "Fewer and more training examples" in (tmp_path / "index.html").read_text()
    assert [row["size"] for row in read(tmp_path / "static_sizes.csv")] == ["3", "12"]
