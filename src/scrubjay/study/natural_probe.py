"""Training of a decoder on a frozen encoder's features of natural images (F.2).

Training pictures change at random, so their features are computed batch by batch; those of other pictures are computed
once. `train_natural` is a pure function of data, encoder, config and seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass as checked_dataclass
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR

from scrubjay.agent.config import CHECKED, explain_errors
from scrubjay.errors import EncoderError, ProbeError
from scrubjay.study.encoders import IMAGE_SIZE, StudyEncoder
from scrubjay.study.features import Skips, to_device
from scrubjay.study.natural_augmentation import crop_randomly, jitter_randomly
from scrubjay.study.natural_data import SPLITS, Labelled, NaturalData
from scrubjay.study.natural_decoders import Decoder, PyramidDecoder, SceneHead, fit_norms
from scrubjay.study.natural_tasks import DEPTH_UNIT, TASKS, NaturalTask
from scrubjay.study.probe import deterministic

Features = tuple[torch.Tensor, Sequence[torch.Tensor]]
"""The SIR (n, C, 7, 7) and the finer scales of n pictures, both on the device."""
STATISTICS_IMAGES = 512
"""Training pictures, unchanged, that features are standardized by."""


@explain_errors
@checked_dataclass(frozen=True, config=CHECKED)
class NaturalConfig:
    """How decoders are trained; the paper names none of the numbers."""

    batch_size: PositiveInt = 64
    """Pictures of an update."""
    scene_epochs: PositiveInt = 100
    """Epochs of scene classification."""
    dense_epochs: PositiveInt = 250
    """Epochs of depth and walkable surfaces, which have few pictures."""
    scene_learning_rate: PositiveFloat = 1e-4
    """Adam's learning rate for scenes at the start; by a cosine it falls to 0."""
    dense_learning_rate: PositiveFloat = 1e-3
    """That of depth and walkable surfaces."""
    augment: bool = True
    """Change training pictures at random: scenes are cropped and mirrored, colors of the others change."""
    size: Literal[14, 28, 56, 112, 224] = 224
    """Height and width of predictions in pixels; labels are subsampled to it. Less than 224 is for trials."""
    seed: NonNegativeInt = 0
    """Of the decoder's initial weights, dropout, the order of pictures and their changes."""


@dataclass(frozen=True)
class NaturalResult:
    """A trained decoder and the scores of the test pictures."""

    task: str
    scores: np.ndarray
    """(n,) float32; see `natural_tasks`."""
    best_epoch: int
    """The epoch, from 0, whose weights the decoder has."""
    validation: list[float]
    """The metric on the validation pictures after each epoch."""
    shown: np.ndarray
    """Predictions for the first test pictures: (k, size, size) meters or walkable (0, 1); (k,) classes."""
    seconds: float
    decoder: Decoder = field(repr=False)


def train_natural(
    data: NaturalData,
    encoder: StudyEncoder,
    with_skips: bool = False,
    config: NaturalConfig | None = None,
    device: str | torch.device = "cpu",
    shown: int = 4,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NaturalResult:
    """Trains a task's decoder, keeps the weights that are best on the validation pictures, and scores test pictures.

    `progress` is told the epochs. A result with skips is comparable only to others with skips; EncoderError if the
    encoder has none. On a CPU results are exact to the bit for one number of threads.
    """
    start, config, task = time.perf_counter(), config or NaturalConfig(), TASKS[data.task]
    if with_skips and not (encoder.description.skip_channels and task.dense):
        raise EncoderError(f"natural: {encoder.description.name} gives no finer scales, or {data.task} reads none")
    with deterministic(), torch.random.fork_rng(devices=_devices(device)):
        torch.manual_seed(config.seed)
        sets = {
            name: _Examples(data[name], task, encoder, with_skips, config, device, config.augment and name == "train")
            for name in SPLITS
        }
        decoder = _make_decoder(task, data, encoder, with_skips, config).to(device)
        fit_norms(decoder, sets["train"].unchanged())
        best_epoch, validation = _fit(decoder, task, sets["train"], sets["validation"], config, progress)
        scores, predictions = _score(decoder, task, sets["test"], config, shown)
    return NaturalResult(
        task=data.task,
        scores=scores.cpu().numpy(),
        best_epoch=best_epoch,
        validation=validation,
        shown=predictions.cpu().numpy(),
        seconds=time.perf_counter() - start,
        decoder=decoder.eval(),
    )


class _Examples:
    """Pictures, features and labels of a split on a device."""

    def __init__(
        self,
        labelled: Labelled,
        task: NaturalTask,
        encoder: StudyEncoder,
        with_skips: bool,
        config: NaturalConfig,
        device: str | torch.device,
        changed: bool,
    ) -> None:
        self.images, self.task, self.encoder, self.with_skips = labelled.images, task, encoder.to(device), with_skips
        self.config, self.device, self.changed = config, device, changed
        target = torch.from_numpy(np.array(labelled.target))
        if task.dense:
            step = target.shape[1] // config.size
            target = target[:, step // 2 :: step, step // 2 :: step].contiguous()
        self.target = target.to(device)
        self.random = torch.Generator().manual_seed(config.seed)
        """Of the changes."""
        self.held: tuple[torch.Tensor, Skips | None] | None = None if changed else self._hold()

    def __len__(self) -> int:
        return len(self.images)

    def batches(self, order: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Places of pictures, on the CPU, cut into batches."""
        return (torch.arange(len(self)) if order is None else order).split(self.config.batch_size)

    def features(self, places: torch.Tensor) -> Features:
        """Features of the pictures at these places, changed at random if this is a set to train on."""
        if self.held is not None:
            sir, skips = self.held
            return sir[places.to(self.device)], skips[places.to(self.device)] if skips is not None else ()
        images = to_device(self.images[places.numpy()], self.device)
        if self.task.dense:
            return self._encode(jitter_randomly(images, self.random))
        return self._encode(crop_randomly(images, IMAGE_SIZE, self.random))

    def unchanged(self) -> Iterator[Features]:
        """Features of at most STATISTICS_IMAGES pictures as they are."""
        places = torch.arange(len(self))[:: -(-len(self) // STATISTICS_IMAGES)]
        for batch in places.split(self.config.batch_size):
            yield self._encode(self._whole(batch.numpy()))

    def labels(self, places: torch.Tensor) -> torch.Tensor:
        return self.target[places.to(self.device)]

    def _hold(self) -> tuple[torch.Tensor, Skips | None]:
        parts = [self._encode(self._whole(places.numpy()), skips=False)[0] for places in self.batches()]
        rows = np.arange(len(self))
        skips = Skips(self.encoder, lambda rows: self.images[rows], rows, self.device) if self.with_skips else None
        return torch.cat(parts), skips

    def _whole(self, places: np.ndarray) -> torch.Tensor:
        """Pictures as they are, at the encoder's size."""
        images = to_device(self.images[places], self.device)
        if images.shape[1] == IMAGE_SIZE:
            return images
        pixels = images.permute(0, 3, 1, 2).float()
        pixels = F.interpolate(pixels, (IMAGE_SIZE, IMAGE_SIZE), mode="bilinear", antialias=True)
        return pixels.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()

    def _encode(self, images: torch.Tensor, skips: bool = True) -> Features:
        encoded = self.encoder(images)
        wanted = encoded.skips if skips and self.with_skips else ()
        # In bfloat16 as kept features are: whether they are kept does not matter.
        return encoded.sir.to(torch.bfloat16), [skip.to(torch.bfloat16) for skip in wanted]


def _make_decoder(
    task: NaturalTask, data: NaturalData, encoder: StudyEncoder, with_skips: bool, config: NaturalConfig
) -> Decoder:
    description = encoder.description
    if not task.dense:
        return SceneHead(description.channels, len(data.classes))
    skips = description.skip_channels if with_skips else ()
    decoder = PyramidDecoder(description.channels, task.outputs, skips, config.size)
    return decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _fit(
    decoder: Decoder,
    task: NaturalTask,
    train: _Examples,
    validation: _Examples,
    config: NaturalConfig,
    progress: Callable[[int, int], None],
) -> tuple[int, list[float]]:
    """Trains; leaves the best weights, and returns their epoch and the validation metric of all epochs."""
    epochs = config.dense_epochs if task.dense else config.scene_epochs
    rate = config.dense_learning_rate if task.dense else config.scene_learning_rate
    optimizer = torch.optim.Adam(decoder.parameters(), rate, fused=torch.device(train.device).type == "cuda")
    schedule = CosineAnnealingLR(optimizer, epochs)
    order = torch.Generator().manual_seed(config.seed)
    best: dict[str, torch.Tensor] = {}
    best_epoch, metrics, sign = 0, list[float](), 1 if task.higher else -1
    for epoch in range(epochs):
        decoder.train()
        for places in train.batches(torch.randperm(len(train), generator=order)):
            optimizer.zero_grad(set_to_none=True)
            task.loss(decoder(*train.features(places)), train.labels(places)).backward()
            optimizer.step()
        schedule.step()
        scores, _ = _score(decoder, task, validation, config, 0)
        metrics.append(float(mean_score(task, scores, validation.target)))
        # Later weights of an equal metric have trained longer.
        if np.isfinite(metrics[-1]) and (not best or sign * metrics[-1] >= sign * metrics[best_epoch]):
            best_epoch, best = epoch, {name: value.clone() for name, value in decoder.state_dict().items()}
        progress(epoch + 1, epochs)
    if not best:
        raise ProbeError(f"natural: {task.name}: training diverged, or no validation picture has walkable surface")
    decoder.load_state_dict(best)
    return best_epoch, metrics


def mean_score(task: NaturalTask, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A task's metric: the mean over pictures, of scenes over classes, of surfaces over pictures that have a union."""
    if task.dense:
        return scores.double().nanmean()
    return (scores * class_weights(target)).double().mean()


def class_weights(target: torch.Tensor) -> torch.Tensor:
    """Weights (n,) of pictures of classes (n,), whose weighted mean is the mean over classes of each class's mean."""
    counts = torch.bincount(target).float()
    return len(target) / ((counts > 0).sum() * counts[target])


@torch.no_grad()
def _score(
    decoder: Decoder, task: NaturalTask, examples: _Examples, config: NaturalConfig, shown: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The score of each picture, (n,), and the predictions for the first ones, on the device."""
    decoder.eval()
    scores, predictions, left = [], [], shown
    for places in examples.batches():
        output = decoder(*examples.features(places))
        scores.append(task.scores(output, examples.labels(places)))
        if left > 0:
            predictions.append(_as_prediction(task, output[:left]))
            left -= len(predictions[-1])
    return torch.cat(scores), torch.cat(predictions) if predictions else torch.zeros(0)


def _as_prediction(task: NaturalTask, output: torch.Tensor) -> torch.Tensor:
    if task.name == "depth":
        return DEPTH_UNIT * output[:, 0].float()
    return output.argmax(1).float()


def _devices(device: str | torch.device) -> list[int]:
    """The GPU whose random state is kept."""
    device = torch.device(device)
    return [device.index or 0] if device.type == "cuda" else []
