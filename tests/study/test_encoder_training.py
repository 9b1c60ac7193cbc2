"""Training of baseline encoders: it learns, continues to the bit, and refuses what does not fit."""

import csv
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from scrubjay.agent.config import SMALL
from scrubjay.cli.main import main
from scrubjay.errors import EncoderError, TrainingError
from scrubjay.study import encoder_training
from scrubjay.study.auto_encoder import AutoEncoder
from scrubjay.study.encoder_training import EncoderTraining, EncoderTrainingConfig, ImageSet
from scrubjay.study.encoders import load_encoder
from scrubjay.study.static_generate import make_static_data

TINY = EncoderTrainingConfig(
    agent=replace(SMALL, sir_channels=16, encoder_channels=(8, 8, 8, 16)), size=14, batch_size=4, learning_rate=0.003,
    beta1=0.9,
)  # fmt: skip


class Checkers:
    """Images of random colors in 7 x 7 cells: what an encoder of 7 x 7 features can keep."""

    fixed = True

    def __init__(self, n: int, seed: int, size: int = 112):
        cells = np.random.default_rng(seed).integers(0, 256, (n, 7, 7, 3), dtype=np.uint8)
        self.pixels = cells.repeat(size // 7, 1).repeat(size // 7, 2)
        self.labels = np.arange(n)

    def read(self, rows, epoch):
        return self.pixels[rows]


TRAIN, VALIDATION = Checkers(24, 0), Checkers(10, 1)


def training(out, config=TINY, task="auto-encoder", train=TRAIN):
    return EncoderTraining(AutoEncoder, {"task": task, "data": "checkers"}, train, VALIDATION, out, config)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "epochs.csv"}


def test_an_auto_encoder_rebuilds_unseen_images_better_than_their_mean(tmp_path):
    trained = training(tmp_path)
    trained.run(max_epochs=20)
    mean = np.abs(VALIDATION.pixels / 255 - TRAIN.pixels.mean(0) / 255).mean()
    assert trained.epochs[trained.best_epoch].validation_loss < 0.75 * mean
    # What was kept is the best epoch, and its encoder is what a study reads.
    image = torch.from_numpy(VALIDATION.pixels)
    targets, rebuilt = trained.model.reconstruct(image)
    error = np.abs(targets.astype(float) - rebuilt).mean() / 255
    assert error == pytest.approx(trained.epochs[trained.best_epoch].validation_loss, abs=0.005)
    loaded = load_encoder(f"ours@{tmp_path}")
    assert torch.equal(loaded.network(image).sir, trained.model.encoder(image).sir)


def test_a_continued_training_equals_an_unbroken_one(tmp_path):
    # The rate falls after every other epoch without a better loss: the schedule's state counts too.
    config = replace(TINY, patience=1, threshold=0.1, factor=0.5, min_learning_rate=1e-6)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    training(whole, config).run(max_epochs=4)

    def kill(done: int, _: int) -> None:
        if done == 2 * 6 + 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training(cut, config).run(max_epochs=4, progress=kill)
    continued = training(cut, config)
    assert len(continued.epochs) == 2
    continued.run(max_epochs=4)
    unbroken = training(whole, config)
    for one, other in zip(continued.epochs, unbroken.epochs, strict=True):
        assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
    assert len({epoch.learning_rate for epoch in unbroken.epochs}) > 1
    assert files(cut).keys() == files(whole).keys()
    states = [encoder_training.read_state(folder / "training.safetensors")[1] for folder in (cut, whole)]
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())
    rows = list(csv.DictReader((cut / "epochs.csv").open()))
    assert [row["epoch"] for row in rows] == list("0123")


def test_training_ends_with_the_schedule_the_epochs_or_the_minutes(tmp_path):
    # Nothing counts as better after the first epoch.
    config = replace(TINY, threshold=100.0, patience=0)
    scheduled = training(tmp_path / "schedule", config)
    scheduled.run()
    assert [epoch.learning_rate for epoch in scheduled.epochs] == pytest.approx([3e-3] * 2 + [3e-4])
    assert scheduled.finished
    timed = training(tmp_path / "time")
    timed.run(minutes=1e-6)
    assert len(timed.epochs) == 1
    timed.run(max_epochs=3)
    assert len(timed.epochs) == 3 and len(training(tmp_path / "time").epochs) == 3


def test_images_that_are_read_are_those_that_are_held():
    data = ImageSet(TRAIN, "cpu")
    order = torch.tensor([5, 3, 23, 0, 1])
    images, labels = zip(*data.batches(order, 2, 0), strict=True)
    assert [len(image) for image in images] == [2, 2, 1]
    assert np.array_equal(torch.cat(images).numpy(), TRAIN.pixels[order.numpy()])
    assert torch.equal(torch.cat(labels), order)


def test_another_training_or_a_broken_one_is_refused_and_left_alone(tmp_path):
    training(tmp_path).run(max_epochs=1)
    before = files(tmp_path)
    with pytest.raises(TrainingError, match="another config; choose another folder"):
        training(tmp_path, replace(TINY, seed=1))
    with pytest.raises(TrainingError, match="another task"):
        training(tmp_path, task="classes")
    assert files(tmp_path) == before
    state = tmp_path / "training.safetensors"
    state.write_bytes(before[state.name][:-100])
    with pytest.raises(TrainingError, match="damaged"):
        training(tmp_path)


def test_a_diverged_training_says_so_and_keeps_what_was_there(tmp_path):
    training(tmp_path).run(max_epochs=1)
    before = files(tmp_path)
    diverging = training(tmp_path)
    with torch.no_grad():
        diverging.model.decoder.head.bias.fill_(float("nan"))
    with pytest.raises(TrainingError, match="lower learning_rate"):
        diverging.run(max_epochs=2)
    assert files(tmp_path) == before


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training") / "data"
    make_static_data(folder, {"FloorPlan401": 9, "FloorPlan421": 3, "FloorPlan426": 1})
    return folder


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["scrubjay", "study", "train", *map(str, words)])
    main()


def test_the_command_trains_an_encoder_for_studies_and_draws_what_it_rebuilds(data, tmp_path, monkeypatch, capsys):
    words = ["auto-encoder", "--data", data, "--out", tmp_path, "--scale", "mini", "--max-epochs"]
    command(monkeypatch, *words, "1")
    assert capsys.readouterr().out.strip() == str(tmp_path)
    command(monkeypatch, *words, "2")
    picture = Image.open(tmp_path / "reconstructions.png")
    assert picture.size == (4 + 3 * 228, 4 + 2 * 228)
    assert len((tmp_path / "epochs.csv").read_text().splitlines()) == 3
    encoder = load_encoder(f"auto-encoder@{tmp_path}")
    assert (encoder.description.image_size, encoder.description.channels) == (112, 32)
    assert encoder.description.key == load_encoder(f"ours@{tmp_path}").description.key


def test_a_name_that_says_auto_encoder_is_checked(tmp_path):
    training(tmp_path, task="classes").run(max_epochs=1)
    with pytest.raises(EncoderError, match="holds no auto-encoder"):
        load_encoder(f"auto-encoder@{tmp_path}")
    with pytest.raises(EncoderError, match="holds no auto-encoder"):
        load_encoder("auto-encoder@nowhere")


def test_without_data_or_with_other_sizes_nothing_is_written(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    with pytest.raises(SystemExit):
        command(monkeypatch, "auto-encoder", "--data", tmp_path / "none", "--out", out)
    assert "no data here" in capsys.readouterr().err
    other = shutil.copytree(data, tmp_path / "other")
    np.save(other / "FloorPlan401" / "rgb.npy", np.zeros((9, 112, 112, 3), np.uint8))
    with pytest.raises(SystemExit):
        command(monkeypatch, "auto-encoder", "--data", other, "--out", out)
    assert "(9, 112, 112, 3)" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command(monkeypatch, "auto-encoder", "--data", data, "--out", out, "--minutes", "0")
    assert not out.exists()
