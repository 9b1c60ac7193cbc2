"""The natural study: decoders learn, the table is right, resuming, the page, and what is refused."""

import csv
import sys

import numpy as np
import pytest
import torch
from study.natural_folders import means, write_sun, write_virb

from scrubjay.cli.main import main
from scrubjay.errors import DataError, EncoderError
from scrubjay.study.natural import FIELDS, NaturalStudy, interval, read_scores
from scrubjay.study.natural_data import SPLITS, NaturalData
from scrubjay.study.natural_nyu import nyu_source
from scrubjay.study.natural_probe import NaturalConfig, mean_score, train_natural
from scrubjay.study.natural_sun import Sun
from scrubjay.study.natural_tasks import TASKS
from scrubjay.study.static import PLAIN, WITH_SKIPS
from scrubjay.viz.natural_study import write_natural_page

TINY = NaturalConfig(scene_epochs=2, dense_epochs=1, batch_size=4, size=14)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Scenes, depth and walkable surfaces."""
    folder = tmp_path_factory.mktemp("natural")
    virb = write_virb(folder / "nyu")
    sources = [Sun(write_sun(folder / "sun")), nyu_source(virb, "depth"), nyu_source(virb, "walkable")]
    return [source.load(folder / "store") for source in sources]


def on_itself(data: NaturalData, split: str) -> NaturalData:
    """Validation and test are what is trained on."""
    return NaturalData(data.task, data.digest, dict.fromkeys(SPLITS, data[split]), data.classes)


def test_scenes_can_be_overfitted(data):
    config = NaturalConfig(scene_epochs=60, scene_learning_rate=3e-3, augment=False)
    result = train_natural(on_itself(data[0], "test"), means(), config=config)
    assert result.scores.mean() > 0.95 and len(result.scores) == 6 and len(result.validation) == 60
    assert result.shown.tolist() == data[0]["test"].target[:4].tolist()


@pytest.mark.parametrize("with_skips", [False, True])
def test_walkable_surfaces_can_be_overfitted(data, with_skips):
    config = NaturalConfig(dense_epochs=25, dense_learning_rate=3e-3, size=28, augment=False)
    result = train_natural(on_itself(data[2], "train"), means(), with_skips, config)
    assert np.nanmean(result.scores) > 0.95
    assert result.shown.shape == (2, 28, 28) and result.shown[:, 20:].mean() > 0.9 > 0.1 > result.shown[:, :8].mean()


def test_depth_can_be_overfitted(data):
    config = NaturalConfig(dense_epochs=120, dense_learning_rate=1e-3, size=28, augment=False)
    result = train_natural(on_itself(data[1], "train"), means(), True, config)
    assert result.scores.mean() < 0.05, "depth is the red of the picture, within 5 %"
    truth = data[1]["train"].target[:, 4::8, 4::8]
    np.testing.assert_allclose(result.scores, np.mean(np.abs(result.shown - truth) / truth, (1, 2)), rtol=1e-4)


def test_the_best_epoch_on_validation_is_kept(data):
    config = NaturalConfig(dense_epochs=4, size=14, dense_learning_rate=1e-2)
    result = train_natural(data[1], means(), config=config)
    assert result.validation[result.best_epoch] == min(result.validation)
    same = NaturalData("depth", "x", {**data[1].splits, "test": data[1]["validation"]})
    again = train_natural(same, means(), config=config)
    target = torch.from_numpy(data[1]["validation"].target)
    mean = mean_score(TASKS["depth"], torch.from_numpy(again.scores), target)
    assert float(mean) == pytest.approx(min(result.validation), rel=1e-6), "the same data, bit by bit"


def test_training_leaves_the_global_random_state_alone(data):
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    train_natural(data[0], means(), config=TINY)
    assert torch.equal(torch.rand(3), expected)


def test_encoders_without_finer_scales_have_no_skips(data):
    with pytest.raises(EncoderError, match="gives no finer scales"):
        train_natural(data[1], means(skips=False), True, TINY)


def read(folder):
    with open(folder / "natural.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_every_encoder_has_a_row_for_each_task_and_decoder(data, tmp_path):
    encoders, seen = [means("one"), means("two"), means("plain", skips=False)], []
    study = NaturalStudy(data, encoders, tmp_path, TINY, "one")
    rows = study.run(lambda *numbers: seen.append(numbers))
    written = read(tmp_path)
    assert tuple(written[0]) == FIELDS and len(written) == len(rows) == 3 + 2 * 5
    assert seen[0] == (0, 16) and seen[-1] == (16, 16) and sorted(seen) == seen
    for row in written:
        assert (row["difference"] == "") == (row["encoder"] == "one")
        assert (row["task"], row["decoder"]) != ("scenes", WITH_SKIPS)
    assert {row["task"] for row in written} == set(TASKS)
    # A value is the mean of the scores in the file; the same network has no difference from itself.
    depth = next(row for row in written if (row["task"], row["decoder"], row["encoder"]) == ("depth", PLAIN, "two"))
    scores = read_scores(study.scores_path("depth", PLAIN, encoders[1]), 2).scores
    assert float(depth["value"]) == pytest.approx(scores.mean(), rel=1e-5) and float(depth["difference"]) == 0
    assert depth["metric"] == "absolute relative error" and depth["images"] == "2" and depth["epochs"] == "1"

    write_natural_page(tmp_path / "natural.html", study, rows, "a few images")
    page = (tmp_path / "natural.html").read_text()
    assert "a few images" in page and "Depth (NYUv2), with skip connections" in page
    # Five charts; pictures, truths and predictions of two test images.
    assert page.count("data:image/png;base64,") == 5 + 2 * 2 * ((2 + 3) + (2 + 2))
    for row in rows:
        assert not np.isfinite(row["value"]) or f"{row['value']:.3f}" in page


def test_an_interrupted_study_continues_and_equals_an_unbroken_one(data, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    encoders = [means("one"), means("two")]
    NaturalStudy(data[:2], encoders, whole, TINY, "one").run()

    def interrupt(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NaturalStudy(data[:2], encoders, cut, TINY, "one").run(interrupt)
    before = {path: path.stat().st_mtime_ns for path in (cut / "scores").iterdir()}
    assert len(before) == 1 and not (cut / "natural.csv").exists()
    NaturalStudy(data[:2], encoders, cut, TINY, "one").run()
    assert (cut / "natural.csv").read_bytes() == (whole / "natural.csv").read_bytes()
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what was there is not computed again"


def test_wrong_requests_are_errors_before_anything_is_computed(data, tmp_path):
    with pytest.raises(EncoderError, match="control: imagenet is not among"):
        NaturalStudy(data, [means()], tmp_path, TINY, "imagenet")
    with pytest.raises(EncoderError, match="each once"):
        NaturalStudy(data, [means(), means()], tmp_path, TINY)
    with pytest.raises(DataError, match="at least one"):
        NaturalStudy([], [means()], tmp_path, TINY)
    assert not any(tmp_path.iterdir())


def test_a_damaged_file_of_scores_is_refused(data, tmp_path):
    study = NaturalStudy(data[:1], [means()], tmp_path, TINY)
    study.run()
    (path,) = (tmp_path / "scores").iterdir()
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match="delete the file"):
        study.run()


def test_intervals_leave_out_images_without_a_score():
    values = np.array([0.25, np.nan, 0.75, np.nan])
    mean = interval(values)
    assert (mean.estimate, mean.low, mean.high) == (0.5, 0.25, 0.75)
    alone, none = interval(values[:2]), interval(values[3:])
    assert alone.estimate == 0.25 and np.isnan([alone.low, *none]).all()


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["scrubjay", "study", "natural", *map(str, words)])
    main()


def test_the_command_measures_an_encoder(tmp_path, monkeypatch, capsys):
    folder, out = write_virb(tmp_path / "nyu"), tmp_path / "out"
    words = ["--encoders", "random", "--nyu", folder, "--walkable", folder, "--scale", "mini", "--out", out]
    command(monkeypatch, *words)
    assert capsys.readouterr().out.strip() == str(out / "natural.html")
    assert {row["task"] for row in read(out)} == {"depth", "walkable"}
    assert (out / "natural.html").read_text().count("<section>") == 5


def test_the_command_refuses_in_one_line(tmp_path, monkeypatch, capsys):
    for words, message in (
        ((), "give the folder of a data set"),
        (("--sun", tmp_path / "no"), "no such folder"),
        (("--nyu", tmp_path), "needs the folders images and depths"),
    ):
        with pytest.raises(SystemExit):
            command(monkeypatch, "--encoders", "random", "--out", tmp_path / "out", *words)
        assert message in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()
