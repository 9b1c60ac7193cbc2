"""Training of a decoder on frozen features: what can be read out of them (P 661).

`train_probe` is a pure function of examples, config and seed. Its result is the loss of every test example, which the
statistics compare between encoders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from pydantic import NonNegativeInt, PositiveInt
from pydantic.dataclasses import dataclass as checked_dataclass

from scrubjay.agent.config import CHECKED, explain_errors
from scrubjay.errors import ProbeError
from scrubjay.study.decoders import ClassHead, DenseDecoder
from scrubjay.study.features import Skips
from scrubjay.study.plateau import PlateauConfig
from scrubjay.study.probe_losses import TASKS, Labels, Task, unit_vectors

Decoder = DenseDecoder | ClassHead
GPU_BATCH = 128
"""Examples that are judged at once on a GPU."""


@explain_errors
@checked_dataclass(frozen=True, config=CHECKED)
class ProbeConfig(PlateauConfig):
    """How decoders are trained, by default as in the paper, and ours where it is silent."""

    batch_size: PositiveInt = 32
    """Examples of an update; the paper names no number."""
    max_epochs: PositiveInt = 200
    """Epochs at most; the paper names no limit."""
    size: Literal[14, 28, 56, 112, 224] = 224
    """Height and width of predictions in pixels; labels are subsampled to it. Less than 224 is for trials."""
    standardize: bool = True
    """Standardize features by channel before decoding; see `decoders`."""
    seed: NonNegativeInt = 0
    """Of the decoder's initial weights and of the order of examples."""


@dataclass(frozen=True)
class Examples:
    """Features and labels of n examples."""

    sir: torch.Tensor
    """(n, C, 7, 7)."""
    labels: Mapping[str, np.ndarray] | Mapping[str, torch.Tensor]
    """Of one task; see `probe_losses`."""
    skips: Skips | None = None
    """The four finer scales, for decoders with skips."""

    def __len__(self) -> int:
        return len(self.sir)


@dataclass(frozen=True)
class Epoch:
    """What happened in an epoch."""

    validation_loss: float
    learning_rate: float


@dataclass(frozen=True)
class ProbeResult:
    """A trained decoder and its losses."""

    task: str
    with_skips: bool
    losses: np.ndarray
    """The loss of each test example, (n,) float32."""
    best_epoch: int
    """The epoch, from 0, whose weights the decoder has."""
    validation_loss: float
    """Of that epoch."""
    epochs: list[Epoch]
    parameters: int
    """Of the decoder."""
    seconds: float
    decoder: Decoder = field(repr=False)


def train_probe(
    task_name: str,
    train: Examples,
    validation: Examples,
    test: Examples,
    config: ProbeConfig | None = None,
    device: str | torch.device = "cpu",
    progress: Callable[[int, Epoch], None] | None = None,
) -> ProbeResult:
    """Trains a decoder, keeps the weights that are best on the validation examples, and takes the test losses.

    With skips if the examples have them; the class head reads none. ProbeError, before training, if examples do not fit
    together; `progress` is told of each epoch.
    """
    start = time.perf_counter()
    config = config or ProbeConfig()
    if task_name not in TASKS:
        raise ProbeError(f"probe: unknown task {task_name!r}; choose from {', '.join(TASKS)}")
    task = TASKS[task_name]
    parts = {"train": train, "validation": validation, "test": test}
    sets = {name: _DeviceExamples(name, task, part, config, device) for name, part in parts.items()}
    if len({(part.sir.shape[1], part.skips is None) for part in parts.values()}) > 1:
        raise ProbeError("probe: train, validation and test features are of different encoders")
    with deterministic():
        decoder = _make_decoder(task, sets["train"], config).to(device)
        best_epoch, epochs = _fit(decoder, task, sets["train"], sets["validation"], config, progress)
        losses = _losses(decoder, task, sets["test"], config).cpu().numpy()
    if not np.isfinite(losses).all():
        raise ProbeError(f"probe: {task_name}: the decoder's test losses are not finite; try a lower learning_rate")
    return ProbeResult(
        task=task_name,
        with_skips=bool(decoder.skip_norms),
        losses=losses,
        best_epoch=best_epoch,
        validation_loss=epochs[best_epoch].validation_loss,
        epochs=epochs,
        parameters=sum(parameter.numel() for parameter in decoder.parameters()),
        seconds=time.perf_counter() - start,
        decoder=decoder.eval(),
    )


@torch.no_grad()
def predict(result: ProbeResult, examples: Examples, device: str | torch.device = "cpu") -> np.ndarray:
    """A decoder's predictions, float32: metres (n, H, W), unit normals (n, H, W, 3), probabilities of types (n, 90), of
    openability (n, H, W, 3) or of traversable surface (n, H, W)."""
    task, decoder = TASKS[result.task], result.decoder.to(device)
    config = ProbeConfig(size=decoder.size if isinstance(decoder, DenseDecoder) else 224)  # type: ignore[arg-type]
    data = _DeviceExamples("examples", task, examples, config, device)
    parts = []
    for places in data.batches(config.batch_size):
        output = data.decode(decoder, places)
        if "normals" in task.name:
            output = unit_vectors(output)
        elif task.name == "openability":
            output = output.softmax(1)
        elif task.name in ("class", "traversable"):
            output = output.sigmoid()
        if task.dense:
            output = output.permute(0, 2, 3, 1).squeeze(3)
        parts.append(output.cpu())
    return torch.cat(parts).numpy()


class _DeviceExamples:
    """Examples on a device, checked; labels at the decoder's size, in the dtypes they came in."""

    def __init__(
        self, name: str, task: Task, examples: Examples, config: ProbeConfig, device: str | torch.device
    ) -> None:
        wanted = ["target", "mask"] if task.masked else ["target"]
        for entry in wanted:
            if entry not in examples.labels:
                raise ProbeError(f"probe: the {name} labels of {task.name} lack {entry!r}")
        if not len(examples):
            raise ProbeError(f"probe: {task.name} has no {name} examples")
        self.device = device
        self.sir = examples.sir.to(device)
        self.skips = examples.skips if task.dense else None
        self.labels: Labels = {}
        for entry, values in examples.labels.items():
            if len(values) != len(examples):
                raise ProbeError(f"probe: {len(values)} {name} labels of {task.name} for {len(examples)} examples")
            tensor = torch.from_numpy(np.array(values)) if isinstance(values, np.ndarray) else values
            self.labels[entry] = self._sized(tensor, task, config.size).to(device)
            if tensor.is_floating_point() and not torch.isfinite(self.labels[entry]).all():
                raise ProbeError(f"probe: the {name} labels of {task.name} are not finite")

    def __len__(self) -> int:
        return len(self.sir)

    def batches(self, size: int, order: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Places of examples on the device, cut into batches; in an order, or the one they came in."""
        return (torch.arange(len(self)) if order is None else order).to(self.device).split(size)

    def decode(self, decoder: Decoder, places: torch.Tensor) -> torch.Tensor:
        """The decoder's output for the examples at these places."""
        skips = self.skips[places] if self.skips is not None else ()
        mask = self.labels["mask"][places] if "mask" in self.labels else None
        sir = self.sir[places].float().contiguous(memory_format=torch.channels_last)
        return decoder(sir, skips, mask)

    def loss(self, decoder: Decoder, task: Task, places: torch.Tensor) -> torch.Tensor:
        """The loss of each of the examples at these places."""
        return task.loss(self.decode(decoder, places), {name: value[places] for name, value in self.labels.items()})

    @staticmethod
    def _sized(values: torch.Tensor, task: Task, size: int) -> torch.Tensor:
        if not task.dense:
            return values
        height, width = values.shape[1:3]
        step = height // size
        if height != width or not step or step * size != height:
            raise ProbeError(f"probe: labels of {task.name} are {height} x {width}, not {size} x {size} or a multiple")
        return values[:, step // 2 :: step, step // 2 :: step].contiguous()


def _make_decoder(task: Task, train: _DeviceExamples, config: ProbeConfig) -> Decoder:
    channels = train.sir.shape[1]
    skip_channels = train.skips.encoder.description.skip_channels if train.skips is not None else ()
    decoder: Decoder
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if task.dense:
            decoder = DenseDecoder(channels, task.outputs, skip_channels, task.masked, config.size)
        else:
            decoder = ClassHead(channels, train.labels["target"].shape[1])
            decoder.start_at(train.labels["target"].cpu())
    if config.standardize:
        batches = train.batches(config.batch_size)
        decoder.fit(train.sir[places] for places in batches)
        for scale, norm in enumerate(decoder.skip_norms):
            assert train.skips is not None
            norm.fit(train.skips[places][scale] for places in batches)  # type: ignore[operator]
    return decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _fit(
    decoder: Decoder,
    task: Task,
    train: _DeviceExamples,
    validation: _DeviceExamples,
    config: ProbeConfig,
    progress: Callable[[int, Epoch], None] | None,
) -> tuple[int, list[Epoch]]:
    """Trains until the learning rate is too small; leaves the best weights, and returns their epoch and all epochs."""
    on_gpu = torch.device(train.device).type == "cuda"
    optimizer = config.make_optimizer(decoder.parameters(), capturable=on_gpu)
    step = _Step(decoder, task, train, optimizer)
    # The last batch of an epoch may be smaller; finer scales that are not on the GPU are read from a file.
    captured = on_gpu and len(train) >= config.batch_size and (train.skips is None or train.skips.on_device)
    graph = _GraphStep(step, config.batch_size) if captured else None
    plateau = config.make_schedule(optimizer)
    order = torch.Generator().manual_seed(config.seed)
    best, best_epoch, epochs = None, 0, list[Epoch]()
    for number in range(config.max_epochs):
        decoder.train()
        for places in train.batches(config.batch_size, torch.randperm(len(train), generator=order)):
            (graph if graph is not None and len(places) == config.batch_size else step)(places)
        rate = optimizer.param_groups[0]["lr"]
        loss = float(_losses(decoder, task, validation, config).double().mean())
        epochs.append(Epoch(loss, rate))
        if progress is not None:
            progress(number, epochs[-1])
        if np.isfinite(loss) and (best is None or loss < epochs[best_epoch].validation_loss):
            best_epoch, best = number, {name: value.clone() for name, value in decoder.state_dict().items()}
        plateau.step(loss)
        if config.is_over(optimizer):
            break
    if best is None:
        raise ProbeError(f"probe: {task.name}: training diverged; try a lower learning_rate")
    decoder.load_state_dict(best)
    return best_epoch, epochs


class _Step:
    """A step of the optimizer on the examples at some places."""

    def __init__(self, decoder: Decoder, task: Task, train: _DeviceExamples, optimizer: torch.optim.Optimizer) -> None:
        self.decoder, self.task, self.train, self.optimizer = decoder, task, train, optimizer
        for parameter in decoder.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def __call__(self, places: torch.Tensor) -> None:
        # Gradients stay where they are, as a CUDA graph needs them.
        self.optimizer.zero_grad(set_to_none=False)
        self.train.loss(self.decoder, self.task, places).mean().backward()
        self.optimizer.step()


class _GraphStep:
    """The same as one CUDA graph, for batches of one size: a small decoder's kernels take longer to start than to run.

    It is captured again when the learning rate has changed, which it holds.
    """

    WARMUP_STEPS = 3

    def __init__(self, step: _Step, size: int) -> None:
        """Takes a few steps, as capturing must, and undoes them."""
        self.step, self.places = step, torch.arange(size, device=step.train.device)
        before = {name: value.clone() for name, value in step.decoder.state_dict().items()}
        self.stream = torch.cuda.Stream(step.train.device)
        self.stream.wait_stream(torch.cuda.current_stream(step.train.device))
        with torch.cuda.stream(self.stream):
            for _ in range(self.WARMUP_STEPS):
                step(self.places)
        torch.cuda.current_stream(step.train.device).wait_stream(self.stream)
        step.decoder.load_state_dict(before)
        for state in step.optimizer.state.values():
            for value in state.values():
                value.zero_()
        self._capture()

    def __call__(self, places: torch.Tensor) -> None:
        if self.rate != self.step.optimizer.param_groups[0]["lr"]:
            self._capture()
        self.places.copy_(places)
        self.graph.replay()

    def _capture(self) -> None:
        self.rate = self.step.optimizer.param_groups[0]["lr"]
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.step(self.places)


@torch.no_grad()
def _losses(decoder: Decoder, task: Task, data: _DeviceExamples, config: ProbeConfig) -> torch.Tensor:
    """The loss of each example, (n,), on the device."""
    decoder.eval()
    # Examples do not mix, so large batches only save a GPU starts of kernels.
    size = max(config.batch_size, GPU_BATCH) if torch.device(data.device).type == "cuda" else config.batch_size
    return torch.cat([data.loss(decoder, task, places) for places in data.batches(size)])


@contextmanager
def deterministic() -> Iterator[None]:
    """cuDNN's deterministic algorithms, chosen without measuring."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before
