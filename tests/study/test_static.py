"""The static study: its table, resuming, and what it refuses."""

import csv
import sys

import numpy as np
import pytest

from scrubjay.cli.main import main
from scrubjay.errors import DataError, EncoderError, ProbeError
from scrubjay.study.encoders import load_encoder
from scrubjay.study.probe import ProbeConfig
from scrubjay.study.static import FIELDS, PLAIN, WITH_SKIPS, StaticScale, StaticStudy
from scrubjay.study.static_data import StaticData
from scrubjay.study.static_generate import make_static_data
from scrubjay.viz.static_study import write_static_page

COUNTS = {"FloorPlan401": 6, "FloorPlan402": 6, "FloorPlan421": 4, "FloorPlan426": 4, "FloorPlan427": 4}
TINY = StaticScale(ProbeConfig(size=14, max_epochs=1, batch_size=4), training_images=8)
TASKS = ("depth", "class")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A few images of five bathrooms, two of them test scenes."""
    folder = tmp_path_factory.mktemp("study") / "data"
    make_static_data(folder, COUNTS)
    return StaticData(folder)


@pytest.fixture(scope="module")
def encoders():
    return [load_encoder("random"), load_encoder("random:1")]


def read(folder):
    with open(folder / "static.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_every_encoder_has_a_row_for_each_task_and_decoder(data, encoders, tmp_path):
    done = []
    StaticStudy(data, encoders, tmp_path, TINY, "random", TASKS).run(lambda *numbers: done.append(numbers))
    rows = read(tmp_path)
    assert tuple(rows[0]) == FIELDS and done == [(number, 6) for number in range(7)]
    assert sorted((row["encoder"], row["decoder"], row["task"]) for row in rows) == sorted(
        (name, decoder, task)
        for name in ("random", "random:1")
        for decoder, task in ((PLAIN, "depth"), (PLAIN, "class"), (WITH_SKIPS, "depth"))
    )
    for row in rows:
        assert 0 < float(row["low"]) <= float(row["loss"]) <= float(row["high"])
        assert (float(row["ratio"]) == 1) == (row["encoder"] == "random")
    # The loss is the mean over scenes of each scene's mean, as the files of single losses have them.
    test = data.index[data.split("test")]
    (file,) = (path for path in (tmp_path / "losses").glob("class-*.npy") if _is_loss_of(path, rows, test))
    assert file.exists()


def _is_loss_of(path, rows, test) -> bool:
    losses = np.load(path)
    mean = np.mean([losses[test["scene"] == scene].mean() for scene in set(test["scene"].tolist())])
    wanted = next(row for row in rows if row["encoder"] == "random:1" and row["task"] == "class")
    return float(wanted["loss"]) == pytest.approx(mean + 1e-6, rel=1e-5)


def test_the_page_has_a_chart_for_each_decoder_and_every_loss(data, encoders, tmp_path):
    rows = StaticStudy(data, encoders, tmp_path, TINY, "random", TASKS).run()
    descriptions = [encoder.description.as_dict() for encoder in encoders]
    write_static_page(tmp_path / "index.html", rows, descriptions, "random", "24 images")
    page = (tmp_path / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2 and "24 images" in page
    for name in ("static-plain.png", "static-skips.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    assert all(f"{row['loss']:.3f}" in page for row in rows)
    assert all(each["sha256"][:16] in page for each in descriptions)


def test_an_interrupted_study_continues_and_equals_an_unbroken_one(data, encoders, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    StaticStudy(data, encoders, whole, TINY, "random", TASKS).run()

    def interrupt(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StaticStudy(data, encoders, cut, TINY, "random", TASKS).run(interrupt)
    before = {path: path.stat().st_mtime_ns for path in (cut / "losses").glob("*.npy")}
    assert len(before) == 2 and not (cut / "static.csv").exists()
    StaticStudy(data, encoders, cut, TINY, "random", TASKS).run()
    assert (cut / "static.csv").read_bytes() == (whole / "static.csv").read_bytes()
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what was there is not computed again"


def test_wrong_requests_are_errors_before_anything_is_computed(data, encoders, tmp_path):
    with pytest.raises(EncoderError, match="control: imagenet is not among"):
        StaticStudy(data, encoders, tmp_path, TINY, "imagenet")
    with pytest.raises(EncoderError, match="each once"):
        StaticStudy(data, encoders[:1] * 2, tmp_path, TINY)
    with pytest.raises(ProbeError, match="tasks: unknown taste"):
        StaticStudy(data, encoders, tmp_path, TINY, tasks=("depth", "taste"))
    assert not any(tmp_path.iterdir())


def test_a_file_of_losses_that_was_cut_is_refused(data, encoders, tmp_path):
    study = StaticStudy(data, encoders[:1], tmp_path, TINY, tasks=("class",))
    study.run()
    (path,) = (tmp_path / "losses").glob("class-*.npy")
    np.save(path, np.load(path)[:-1])
    with pytest.raises(DataError, match="delete the file"):
        study.run()


def test_the_command_measures_an_encoder(data, tmp_path, monkeypatch, capsys):
    words = ["study", "static", "--encoders", "random", "--data", str(data.folder), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["scrubjay", *words, "--tasks", "class", "--scale", "mini"])
    main()
    assert capsys.readouterr().out.strip() == str(tmp_path / "index.html")
    page = (tmp_path / "index.html").read_text()
    assert "What encoders see" in page and "random" in page
    assert "data:image/png" not in page, "no chart without a control"
    (row,) = read(tmp_path)
    assert (row["encoder"], row["task"], row["ratio"]) == ("random", "class", "")
