"""Commands that train the encoders of the baselines: study train auto-encoder, study train classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scrubjay.cli.arguments import Natural, Positive, PositiveFloatOrNone, PositiveOrNone
from scrubjay.cli.terminal import err, progress_bar

if TYPE_CHECKING:
    from scrubjay.study.encoder_training import EncoderTraining, EncoderTrainingConfig

PICTURES = 8
"""Images in the picture of reconstructions."""


def auto_encoder(
    data: Path = Path("out/study/static"),
    out: Path = Path("out/study/auto-encoder"),
    scale: Literal["paper", "mini"] = "paper",
    device: str = "cpu",
    minutes: PositiveFloatOrNone = None,
    max_epochs: Positive = 200,
    learning_rate: PositiveFloatOrNone = None,
    batch_size: PositiveOrNone = None,
    seed: Natural = 0,
) -> None:
    """Trains the auto-encoder baseline: the paper's encoder rebuilds the static experiments' train images.

    `auto-encoder@OUT` is then an encoder of `scrubjay study static`; reconstructions.png shows what it keeps. Training
    that was interrupted continues after its last epoch; one that ran out of minutes or epochs continues with more.

    Args:
        data: Folder of `scrubjay study data static`.
        out: Folder of weights, checkpoint and picture.
        scale: The paper's encoder at 224 pixels, or a small one for a trial.
        device: cpu, cuda or cuda:N.
        minutes: Stop before the epoch that would exceed so many minutes of training, in all.
        max_epochs: Stop after so many epochs, in all; the schedule usually stops before.
        learning_rate: Adam's learning rate at the start, by default 0.001.
        batch_size: Images of an update, by default 256 (mini: 8).
        seed: Seed of initial weights and of the order of images.
    """
    import numpy as np
    import torch

    from scrubjay.sim.render.make import check_device
    from scrubjay.study.auto_encoder import auto_encoder_training
    from scrubjay.study.encoders import resized
    from scrubjay.study.static_data import StaticData
    from scrubjay.viz.reconstructions import write_reconstructions

    check_device(device)
    images = StaticData(data)
    config = _config(scale, learning_rate, batch_size, seed)
    training = auto_encoder_training(images, out, config, device)
    _train(training, "Auto-encoder", max_epochs, minutes)
    rows = images.split("validation")
    shown = torch.from_numpy(images.images(rows[np.linspace(0, len(rows) - 1, min(PICTURES, len(rows))).astype(int)]))
    pictures = training.model.cpu().reconstruct(resized(shown, config.agent.image_size))
    write_reconstructions(out / "reconstructions.png", *pictures)
    print(out)


def classes(
    images: Path,
    out: Path = Path("out/study/classes"),
    scale: Literal["paper", "mini"] = "paper",
    device: str = "cpu",
    minutes: PositiveFloatOrNone = None,
    max_epochs: Positive = 200,
    learning_rate: PositiveFloatOrNone = None,
    batch_size: PositiveOrNone = None,
    seed: Natural = 0,
) -> None:
    """Trains the paper's encoder to classify pictures, as its ImageNet baseline: mean pool, linear, cross entropy.

    `classes@OUT` is then an encoder of `scrubjay study static`. Every picture is decoded once before training begins.
    Training that was interrupted continues after its last epoch; one that ran out of minutes or epochs with more.

    Args:
        images: Folder with train/CLASS/*.jpg and val/CLASS/*.jpg, as ImageNet has.
        out: Folder of weights and checkpoint.
        scale: The paper's encoder at 224 pixels, or a small one for a trial.
        device: cpu, cuda or cuda:N.
        minutes: Stop before the epoch that would exceed so many minutes of training, in all.
        max_epochs: Stop after so many epochs, in all; the schedule usually stops before.
        learning_rate: Adam's learning rate at the start, by default 0.001.
        batch_size: Pictures of an update, by default 256 (mini: 8).
        seed: Seed of initial weights, of the order of pictures and of their crops.
    """
    from scrubjay.sim.render.make import check_device
    from scrubjay.study.class_folder import ClassFolder, classes_training

    check_device(device)
    folder, config = ClassFolder(images), _config(scale, learning_rate, batch_size, seed)
    with progress_bar("Pictures") as progress:
        training = classes_training(folder, out, config, device, progress)
    _train(training, "Classes", max_epochs, minutes)
    print(out)


def _config(
    scale: Literal["paper", "mini"], learning_rate: float | None, batch_size: int | None, seed: int
) -> EncoderTrainingConfig:
    from scrubjay.study.encoder_training import SCALES

    config = SCALES[scale]
    return replace(
        config,
        learning_rate=learning_rate or config.learning_rate,
        batch_size=batch_size or config.batch_size,
        seed=seed,
    )


def _train(training: EncoderTraining, what: str, max_epochs: int, minutes: float | None) -> None:
    """Trains with a progress bar, and says what came of it."""
    with progress_bar(what) as progress:
        training.run(max_epochs, minutes, progress)
    best = training.epochs[training.best_epoch]
    seconds = sum(epoch.seconds for epoch in training.epochs)
    err.print(
        f"{len(training.epochs)} epochs in {seconds:.0f} s; the best is {training.best_epoch}, "
        f"validation loss {best.validation_loss:.4f}", highlight=False,
    )  # fmt: skip
