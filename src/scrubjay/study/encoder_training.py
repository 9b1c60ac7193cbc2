"""Training of encoders on images, for the baselines of studies: the paper's encoder with a head of its own (P 661).

Adam and a learning rate that falls when the validation loss does not, as for probes; all training images, the best
epoch on the validation images. Every epoch ends in a checkpoint, and on a CPU a continued training equals an unbroken
one to the bit. The folder holds the best encoder as weights (`ours@FOLDER`), `training.safetensors` to continue from,
and `epochs.csv`.

The paper's learning rate, 1e-2, is for decoders with group norm. The encoder has no norm: in 100 updates at 1e-2 its
features grew to 1e15 and the loss stayed at the mean image's; at 1e-3 they grew to 200 and the loss fell steadily.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors
from torch import nn

from scrubjay.agent import weights
from scrubjay.agent.config import CHECKED, PAPER, SMALL, AgentConfig, explain_errors
from scrubjay.agent.encoder import Encoder
from scrubjay.errors import TrainingError, WeightsError
from scrubjay.files import write_atomically
from scrubjay.study.encoders import TRAINING_FILE, resized
from scrubjay.study.plateau import PlateauConfig
from scrubjay.study.result_table import table_text

VERSION = 1
HELD_SHARE = 0.5
"""Images are held on a GPU if they take at most this share of its free memory."""
BLOCK = 512
"""Images that are brought to the device at once."""
AHEAD = 2
"""Batches that are read while others are learned from."""
Progress = Callable[[int, int], None]


@explain_errors
@checked_dataclass(frozen=True, config=CHECKED)
class EncoderTrainingConfig(PlateauConfig):
    """How an encoder is trained: as in the paper but for the learning rate, and ours where it is silent."""

    learning_rate: PositiveFloat = 1e-3
    """Adam's learning rate at the start; the paper's 1e-2 is too much for an encoder without norms."""
    agent: AgentConfig = PAPER
    """Sizes of the encoder."""
    batch_size: PositiveInt = 256
    """Images of an update."""
    size: Literal[14, 28, 56, 112, 224] = 224
    """Height and width of an auto-encoder's reconstructions in pixels."""
    seed: NonNegativeInt = 0
    """Of the initial weights, the order of images and their crops."""


SCALES = {
    "paper": EncoderTrainingConfig(),
    "mini": EncoderTrainingConfig(agent=SMALL, size=56, batch_size=8),
}


class Trainee(Protocol):
    """An encoder with a head, an `nn.Module`."""

    encoder: Encoder

    def loss(self, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """Losses (n,) of images (n, size, size, 3) uint8 with labels (n,) int64, which may mean nothing."""
        ...


class ImageSource(Protocol):
    """Images to learn from."""

    labels: np.ndarray
    """(n,) int64."""
    fixed: bool
    """Whether images are the same in every epoch, so that they may be held on the device."""

    def read(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """Images (m, H, W, 3) uint8 of rows (m,)."""
        ...


@dataclass(frozen=True)
class TrainingEpoch:
    """What happened in an epoch."""

    learning_rate: float
    train_loss: float
    validation_loss: float
    seconds: float


class EncoderTraining:
    """Trains one encoder in a folder, or continues there."""

    def __init__(
        self,
        make: Callable[[EncoderTrainingConfig], nn.Module],
        facts: dict[str, Any],
        train: ImageSource,
        validation: ImageSource,
        out: str | os.PathLike[str],
        config: EncoderTrainingConfig,
        device: str = "cpu",
    ) -> None:
        """`make` builds the `Trainee`; `facts` say what is trained and on which data.

        TrainingError, before anything is written, if the folder holds another training.
        """
        if not len(train.labels) or not len(validation.labels):
            raise TrainingError("training: there are no images to train or to validate with")
        self.out, self.config, self.device, self.sources = Path(out), config, device, (train, validation)
        self.facts: dict[str, Any] = {"version": VERSION, **facts, "config": asdict(config)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model: Any = make(config)
        self.epochs: list[TrainingEpoch] = []
        self.best_epoch = 0
        self.best: dict[str, torch.Tensor] = {}
        """The best epoch's tensors, on the CPU."""
        state = self._read() if (self.out / TRAINING_FILE).exists() else None
        self.model.to(device)
        self.optimizer = config.make_optimizer(self.model.parameters())
        self.plateau = config.make_schedule(self.optimizer)
        if state is not None:
            self._restore(*state)

    @property
    def finished(self) -> bool:
        """Whether the learning rate has fallen to its end."""
        # Less a little: products of the factor are not exact.
        return self.config.is_over(self.optimizer)

    def run(self, max_epochs: int = 200, minutes: float | None = None, progress: Progress | None = None) -> None:
        """Trains to the end, for so many epochs, or minutes of training, in all; the best weights are left in `model`.

        `progress` is told of updates done and at most to do. TrainingError if training diverges; weights and checkpoint
        are then those of the epoch before.
        """
        if max_epochs < 1 or (minutes is not None and minutes <= 0):
            raise TrainingError("training: max_epochs must be 1 or more, and minutes more than 0")
        train, validation = (ImageSet(source, self.device) for source in self.sources)
        while not self.finished and len(self.epochs) < max_epochs and self._has_time(minutes):
            with _fast_convolutions():
                self._epoch(train, validation, max_epochs, progress)
            self._write()
        self.model.load_state_dict(self.best)

    def _has_time(self, minutes: float | None) -> bool:
        """Whether another epoch, as long as the longest of late, ends in time; the first may always run."""
        spent, late = sum(epoch.seconds for epoch in self.epochs), [epoch.seconds for epoch in self.epochs[-3:]]
        return minutes is None or not late or spent + max(late) <= 60 * minutes

    def _epoch(self, train: ImageSet, validation: ImageSet, max_epochs: int, progress: Progress | None) -> None:
        start, number, size = time.perf_counter(), len(self.epochs), min(self.config.batch_size, len(train))
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(self.config.seed << 20 | number))
        # Batches of one size: another would be compiled again on a GPU. What is left out differs by epoch.
        updates = len(train) // size
        total = torch.zeros((), device=self.device)
        self.model.train()
        for place, (image, label) in enumerate(train.batches(order[: updates * size], size, number)):
            self.optimizer.zero_grad(set_to_none=True)
            loss = self._losses(image, label).mean()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
            if progress is not None:
                progress(number * updates + place + 1, max_epochs * updates)
        rate = self.optimizer.param_groups[0]["lr"]
        losses = float(total) / updates, self._validate(validation, size)
        if not all(map(math.isfinite, losses)):
            raise TrainingError("training diverged; start again in another folder with a lower learning_rate")
        self.epochs.append(TrainingEpoch(rate, *losses, time.perf_counter() - start))
        self.plateau.step(losses[1])
        if not self.best or losses[1] < self.epochs[self.best_epoch].validation_loss:
            self.best_epoch, self.best = number, _copied(self.model)

    @torch.no_grad()
    def _validate(self, data: ImageSet, size: int) -> float:
        """The mean loss of all images."""
        self.model.eval()
        # The last batch is filled up with images that do not count.
        count = len(data)
        order = torch.arange(-(-count // size) * size) % count
        losses = [self._losses(image, label) for image, label in data.batches(order, size, 0)]
        return float(torch.cat(losses)[:count].double().mean())

    def _losses(self, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            return self.model.loss(resized(image, self.config.agent.image_size), label)

    def _write(self) -> None:
        """Writes the best weights if this epoch's are, then the checkpoint."""
        if self.best_epoch == len(self.epochs) - 1:
            weights.save(nn.ModuleDict({"encoder": self.model.encoder}), self.config.agent, self.out)
        tensors = {f"model.{name}": value for name, value in _copied(self.model).items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": value.detach().cpu().contiguous() for name, value in state.items()}
        plateau = self.plateau.state_dict()
        progress = {
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "best_epoch": self.best_epoch,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "plateau": {name: plateau[name] for name in ("best", "num_bad_epochs", "last_epoch")},
        }
        about = {"facts": json.dumps(self.facts), "progress": json.dumps(progress)}
        write_atomically(self.out / TRAINING_FILE, safetensors.save(tensors, about))
        write_atomically(self.out / "epochs.csv", epochs_text(self.epochs))

    def _read(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """The checkpoint's tensors and progress, if it is one of this training."""
        path = self.out / TRAINING_FILE
        facts, tensors, progress = read_state(path)
        own = json.loads(json.dumps(self.facts))
        if other := sorted(key for key in own.keys() | facts.keys() if own.get(key) != facts.get(key)):
            raise TrainingError(f"{self.out}: holds a training with another {other[0]}; choose another folder")
        return tensors, progress

    def _restore(self, tensors: dict[str, torch.Tensor], progress: dict[str, Any]) -> None:
        try:
            parts: dict[str, dict[str, torch.Tensor]] = {"model": {}, "best": {}, "adam": {}}
            for name, value in tensors.items():
                part, _, rest = name.partition(".")
                parts[part][rest] = value
            weights.fill(self.model, parts["best"])  # Checked as the others are.
            weights.fill(self.model, parts["model"])
            self.best, self.best_epoch = parts["best"], int(progress["best_epoch"])
            self.epochs = [TrainingEpoch(**epoch) for epoch in progress["epochs"]]
            state = self.optimizer.state_dict()
            for number, parameter in enumerate(self.model.parameters()):
                mean, square = (torch.empty_like(parameter) for _ in range(2))
                # In the parameter's memory format, as Adam makes them.
                mean.copy_(parts["adam"][f"{number}.exp_avg"])
                square.copy_(parts["adam"][f"{number}.exp_avg_sq"])
                step = parts["adam"][f"{number}.step"]
                state["state"][number] = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
            state["param_groups"][0]["lr"] = progress["learning_rate"]
            self.optimizer.load_state_dict(state)
            self.plateau.load_state_dict({**self.plateau.state_dict(), **progress["plateau"]})
        except (KeyError, TypeError, ValueError, RuntimeError, WeightsError) as error:
            raise TrainingError(f"{self.out / TRAINING_FILE}: not a complete checkpoint: {error}") from error


class ImageSet:
    """A source's images in batches on a device: held there if they fit a GPU, else read a few batches ahead."""

    def __init__(self, source: ImageSource, device: str) -> None:
        self.source, self.device = source, torch.device(device)
        self.labels = torch.from_numpy(source.labels)
        self.held: torch.Tensor | None = None
        if self.device.type == "cuda" and source.fixed:
            one, count = source.read(np.arange(1), 0), len(source.labels)
            if one.nbytes * count <= HELD_SHARE * torch.cuda.mem_get_info(self.device)[0]:
                self.held = torch.empty((count, *one.shape[1:]), dtype=torch.uint8, device=self.device)
                blocks = [np.arange(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK)]
                for rows, images in zip(blocks, _ahead(lambda rows: source.read(rows, 0), blocks), strict=True):
                    self.held[rows[0] : rows[-1] + 1] = torch.from_numpy(images).to(self.device)
                self.labels = self.labels.to(self.device)

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, order: torch.Tensor, size: int, epoch: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Images and labels in an order (n,), cut into batches."""
        if self.held is not None:
            for places in order.to(self.device).split(size):
                yield self.held[places], self.labels[places]
            return
        rows = order.split(size)
        for places, image in zip(rows, _ahead(lambda rows: self._read(rows, epoch), rows), strict=True):
            yield image.to(self.device, non_blocking=True), self.labels[places].to(self.device, non_blocking=True)

    def _read(self, rows: torch.Tensor, epoch: int) -> torch.Tensor:
        image = torch.from_numpy(self.source.read(rows.numpy(), epoch))
        return image.pin_memory() if self.device.type == "cuda" else image


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, Any]]:
    """What was trained, tensors by name, and the progress of a checkpoint; TrainingError if it is none."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts, progress = json.loads(about["facts"]), json.loads(about["progress"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise TrainingError(f"{path}: not a checkpoint of an encoder's training, or damaged: {error}") from error
    return facts, tensors, progress


def epochs_text(epochs: Sequence[TrainingEpoch]) -> str:
    """epochs.csv: a header and a line for each epoch."""
    rows = [{"epoch": number, **asdict(epoch)} for number, epoch in enumerate(epochs)]
    return table_text(rows, ["epoch", "learning_rate", "train_loss", "validation_loss", "seconds"])


def _copied(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().cpu().clone().contiguous() for name, value in module.state_dict().items()}


def _ahead(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """The function's values of items, in order; computed in a thread, a few ahead."""
    with ThreadPoolExecutor(1) as pool:
        waiting = [pool.submit(function, item) for item in items[:AHEAD]]
        for place in range(len(items)):
            value = waiting.pop(0).result()
            if place + AHEAD < len(items):
                waiting.append(pool.submit(function, items[place + AHEAD]))
            yield value


@contextmanager
def _fast_convolutions() -> Iterator[None]:
    """cuDNN measures which of its algorithms is fastest: batches have one size."""
    cudnn = torch.backends.cudnn
    before, cudnn.benchmark = cudnn.benchmark, True
    try:
        yield
    finally:
        cudnn.benchmark = before
