"""The classification baseline on folders of pictures: it learns, continues, and refuses broken folders at once."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from scrubjay.agent.config import SMALL
from scrubjay.cli.main import main
from scrubjay.errors import DataError
from scrubjay.study.class_folder import ClassFolder, Pictures, classes_training, random_box
from scrubjay.study.encoder_training import EncoderTrainingConfig, read_state
from scrubjay.study.encoders import load_encoder

COLORS = {"blue": (30, 60, 200), "green": (40, 180, 60), "red": (210, 40, 50)}
TINY = EncoderTrainingConfig(
    agent=replace(SMALL, sir_channels=16, encoder_channels=(8, 8, 8, 16)), batch_size=6, learning_rate=0.003, beta1=0.9
)


@pytest.fixture
def folder(tmp_path):
    """Noisy pictures of three colors, of different sizes and formats."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 8), ("val", 3)):
        for name, color in COLORS.items():
            (tmp_path / "images" / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = rng.normal(color, 25, (150 + 10 * number, 140, 3)).clip(0, 255).astype(np.uint8)
                path = tmp_path / "images" / split / name / f"{number}.{'png' if number == 2 else 'JPEG'}"
                Image.fromarray(pixels).save(path)
    return tmp_path / "images"


def test_a_classifier_learns_the_classes_of_a_folder(folder, tmp_path):
    pictures = ClassFolder(folder)
    assert (
        pictures.classes == ("blue", "green", "red") and pictures.labels["val"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    )
    training = classes_training(pictures, tmp_path / "out", TINY)
    training.run(max_epochs=6)
    assert training.epochs[training.best_epoch].validation_loss < 0.5 * np.log(3)
    images = Pictures(pictures, "val", 112).read(np.arange(9), 0)
    assert training.model(torch.from_numpy(images)).argmax(1).tolist() == pictures.labels["val"].tolist()
    encoder = load_encoder(f"classes@{tmp_path / 'out'}")
    assert encoder.description.channels == 16


def test_a_continued_training_equals_an_unbroken_one(folder, tmp_path):
    pictures = ClassFolder(folder)
    classes_training(pictures, tmp_path / "whole", TINY).run(max_epochs=2)
    classes_training(pictures, tmp_path / "cut", TINY).run(max_epochs=1)
    classes_training(pictures, tmp_path / "cut", TINY).run(max_epochs=2)
    whole, cut = (read_state(tmp_path / name / "training.safetensors")[1] for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], value) for name, value in cut.items())


def test_crops_differ_by_epoch_in_training_and_are_the_middle_in_validation(folder):
    train, val = (Pictures(ClassFolder(folder), split, 112) for split in ("train", "val"))
    rows = np.array([3, 0])
    one, again, other = train.read(rows, 0), train.read(rows, 0), train.read(rows, 1)
    assert one.shape == (2, 112, 112, 3) and np.array_equal(one, again) and not np.array_equal(one, other)
    assert np.array_equal(train.read(rows[1:], 0), one[1:]), "a picture's crop does not depend on its batch"
    assert np.array_equal(val.read(rows, 0), val.read(rows, 1))
    rng = np.random.default_rng(0)
    for _ in range(100):
        left, top, right, bottom = random_box((200, 100), rng)
        assert 0 <= left < right <= 200 and 0 <= top < bottom <= 100
        assert (right - left) * (bottom - top) > 0.2 * 200 * 100


def other_class(folder):
    (folder / "val" / "red").rename(folder / "val" / "pink")


def extra_class(folder):
    (folder / "val" / "pink").mkdir()
    (folder / "val" / "red" / "0.JPEG").rename(folder / "val" / "pink" / "0.JPEG")


def empty_class(folder):
    for path in (folder / "train" / "red").iterdir():
        path.rename(path.with_suffix(".txt"))


def no_val(folder):
    (folder / "val").rename(folder / "test")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_class, "val: lacks class 'red' of train, and 0 more"),
        (extra_class, "val: class 'pink' is not in train"),
        (empty_class, "red: no pictures"),
        (no_val, "val: no such folder"),
    ],
)
def test_folders_that_do_not_fit_are_refused(folder, change, words):
    change(folder)
    with pytest.raises(DataError, match=words):
        ClassFolder(folder)


@pytest.mark.parametrize("cut", [0, 700])
def test_a_broken_picture_is_named_before_anything_is_computed(folder, tmp_path, cut, monkeypatch, capsys):
    path = folder / "train" / "green" / "5.JPEG"
    path.write_bytes(path.read_bytes()[:cut])
    out = tmp_path / "out"
    monkeypatch.setattr(
        sys, "argv", ["scrubjay", "study", "train", "classes", "--images", str(folder), "--out", str(out)]
    )
    with pytest.raises(SystemExit):
        main()
    assert "5.JPEG: not a readable picture" in capsys.readouterr().err.replace("\n", "")
    assert not out.exists()


def test_the_command_trains(folder, tmp_path, monkeypatch, capsys):
    words = ["study", "train", "classes", "--images", str(folder), "--out", str(tmp_path / "out"), "--scale", "mini"]
    monkeypatch.setattr(sys, "argv", ["scrubjay", *words, "--max-epochs", "1"])
    main()
    assert capsys.readouterr().out.strip() == str(tmp_path / "out")
    assert load_encoder(f"ours@{tmp_path / 'out'}").description.image_size == 112
