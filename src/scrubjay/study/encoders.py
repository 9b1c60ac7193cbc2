"""Encoders of studies by name: ours, untrained, pretrained ones that packages carry, and any from local files.

    ours@FOLDER                   the encoder of a run, of an agent's weights or of an encoder's weights
    scrubjay-paper                the encoder of a released agent; the same as ours@scrubjay-paper
    auto-encoder@FOLDER, classes@FOLDER   the same, of a folder that `scrubjay study train` wrote
    class@FOLDER                  the encoder that a run with --shadow-classifier trained to classify objects
    random[:SEED]                 the paper's encoder, untrained
    efficientnet-lite0, mobilenetv2, augnet-resnet50   weights that Python packages carry
    timm:NAME@FILE, hf:FOLDER, torch:FILE              weights that you have; see `study.foreign`
    python:package.module:Class   a class of your own, which gets the paper's `AgentConfig` and returns `Encoded`

All become a `StudyEncoder`: frozen, images of 224 pixels in, features (N, C, 7, 7) out, with a description for tables.
The network is never asked, and nothing in a file is executed; only `python:` imports code, and must be allowed to.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch.nn import functional as F

from scrubjay.agent import released, weights
from scrubjay.agent.config import PAPER, AgentConfig
from scrubjay.agent.encoder import IMAGENET_MEAN, IMAGENET_STD, Encoded, Encoder
from scrubjay.agent.encoders import FROM_FOLDER, FROM_PYTHON, check_trusted, make_encoder
from scrubjay.errors import EncoderError, WeightsError
from scrubjay.sim.cells import CELLS
from scrubjay.study import foreign
from scrubjay.study.weight_files import sha256_of
from scrubjay.training.shadow import shadow_folder

IMAGE_SIZE = 224
"""Height and width of a study's images in pixels."""
RANDOM, CLASS = "random", "class@"
TRAINING_FILE = "training.safetensors"
"""What `study.encoder_training` continues from; it says what was trained."""
BASELINES = ("auto-encoder", "classes")
"""Encoders that `scrubjay study train` trains; see `study.encoder_training`."""


@dataclass(frozen=True)
class Description:
    """What a table says about an encoder."""

    name: str
    """As it was asked for."""
    network: str
    image_size: int
    """Images are resampled to this height and width."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    """Images in [0, 1] are normalized by these."""
    licence: str
    sha256: str
    """Of names and values of the weights: the same wherever they are stored."""
    parameters: int
    channels: int
    """C of the features (C, 7, 7)."""
    skip_channels: tuple[int, ...]
    """Channels of the four finer scales, finest first; () if it gives none."""
    source: str = ""
    """sha256 of the source code, of a class of your own."""

    @property
    def key(self) -> str:
        """A digest of all that features depend on: equal keys, equal features."""
        parts = [self.network, self.image_size, self.mean, self.std, self.sha256, self.source]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "key": self.key}


class StudyEncoder(nn.Module):
    """A frozen encoder: images (N, 224, 224, 3) uint8 to features (N, C, 7, 7), float32.

    EncoderError, at once, if the network's output is not finite, has another shape or is no `Encoded`.
    """

    def __init__(
        self, name: str, network: nn.Module, licence: str, *, kind: str = "", source: str = "", image_size: int = 0
    ) -> None:
        super().__init__()
        self.network = network.eval().requires_grad_(False)
        self.image_size = image_size or IMAGE_SIZE
        encoded = self._check(name)
        self.description = Description(
            name=name,
            network=kind or type(network).__name__,
            image_size=self.image_size,
            mean=tuple(getattr(network, "mean", IMAGENET_MEAN)),
            std=tuple(getattr(network, "std", IMAGENET_STD)),
            licence=licence,
            sha256=sha256_of(network.state_dict()),
            parameters=sum(parameter.numel() for parameter in network.parameters()),
            channels=encoded.sir.shape[1],
            skip_channels=tuple(skip.shape[1] for skip in encoded.skips),
            source=source,
        )

    def train(self, mode: bool = True) -> StudyEncoder:
        """Stays in evaluation mode."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, image: torch.Tensor) -> Encoded:
        encoded = self.network(resized(image, self.image_size))
        if encoded.sir.shape[2:] == (CELLS, CELLS):
            return encoded
        sir = F.interpolate(encoded.sir.float(), (CELLS, CELLS), mode="area")
        return replace(encoded, sir=sir, pooled=sir.mean((2, 3)))

    def _check(self, name: str) -> Encoded:
        """Encodes a black and a noisy image."""
        noise = torch.randint(0, 256, (1, IMAGE_SIZE, IMAGE_SIZE, 3), generator=torch.Generator().manual_seed(0))
        image = torch.cat([torch.zeros_like(noise), noise]).to(torch.uint8)
        try:
            encoded = self.network(resized(image, self.image_size))
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            raise EncoderError(f"encoder: {name} fails on images of {self.image_size} pixels: {error}") from error
        if not isinstance(encoded, Encoded):
            raise EncoderError(f"encoder: {name} must return an Encoded, not {type(encoded).__name__}")
        shape = tuple(encoded.sir.shape)
        if len(shape) != 4 or shape[0] != 2 or 0 in shape:
            raise EncoderError(f"encoder: the features of {name} have shape {shape}, not (2, C, height, width)")
        if len(encoded.skips) not in (0, 4):
            raise EncoderError(f"encoder: {name} gives {len(encoded.skips)} finer scales, not four or none")
        for features in (encoded.sir, *encoded.skips):
            if not torch.isfinite(features).all():
                raise EncoderError(f"encoder: {name} gives NaN or infinite features")
        return self(image)


def resized(image: torch.Tensor, size: int) -> torch.Tensor:
    """Images (N, H, W, 3) uint8 at another size: pixels averaged, or interpolated bilinearly."""
    if image.shape[1:3] == (size, size):
        return image
    pixels = image.permute(0, 3, 1, 2).float()
    if size < image.shape[1]:
        pixels = F.interpolate(pixels, (size, size), mode="area")
    else:
        pixels = F.interpolate(pixels, (size, size), mode="bilinear", align_corners=False)
    return pixels.round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def load_encoder(name: str, trust_code: bool = False) -> StudyEncoder:
    """The encoder of a name, checked, on the CPU; EncoderError or WeightsError says in a sentence what is wrong.

    `trust_code` allows names, and agents, that import code (`python:...`).
    """
    if name.startswith(FROM_FOLDER):
        return _ours(name, name.removeprefix(FROM_FOLDER), trust_code)
    baseline, at, folder = name.partition("@")
    if at and baseline in BASELINES:
        return _baseline(name, baseline, folder)
    if name.startswith(CLASS):
        return _ours(name, str(shadow_folder(Path(name.removeprefix(CLASS)))), trust_code)
    if name.startswith(FROM_PYTHON):
        return _python(name, trust_code)
    if name.split(":")[0] == RANDOM:
        return _random(name)
    if released.is_name(name):
        return _ours(name, name, trust_code)
    kind, colon, rest = name.partition(":")
    loader = foreign.FILES.get(kind) if colon else None
    if loader is not None and rest:
        loaded = loader(rest)
    elif name in foreign.PACKAGES:
        loaded = foreign.PACKAGES[name]()
    else:
        raise EncoderError(f"encoder: unknown encoder {name!r}; choose from {', '.join(CHOICES)}")
    return StudyEncoder(name, loaded.network, loaded.licence, kind=loaded.kind, image_size=loaded.image_size)


CHOICES = (
    f"{FROM_FOLDER}FOLDER", f"{RANDOM}[:SEED]", *foreign.PACKAGES,
    *(f"{name}@FOLDER" for name in BASELINES), f"{CLASS}FOLDER", "timm:NAME@FILE", "hf:FOLDER", "torch:FILE",
    f"{FROM_PYTHON}package.module:Class", released.DEFAULT,
)  # fmt: skip


def _ours(name: str, folder: str, trust_code: bool) -> StudyEncoder:
    config, tensors = weights.load_encoder(folder)
    check_trusted(config, trust_code)
    network = make_encoder(config, load_weights=False)
    try:
        weights.fill(network, tensors)
    except WeightsError as error:
        raise WeightsError(f"{folder}: weights of another network: {error}") from error
    licence = released.load_card(folder).licence if released.is_name(folder) else "yours"
    return agent_encoder(name, network, config, licence)


def agent_encoder(name: str, network: nn.Module, config: AgentConfig, licence: str = "yours") -> StudyEncoder:
    """An agent's encoder, as a study names it."""
    # Centering is part of the network, but of none of its tensors.
    kind = f"{type(network).__name__}{'' if config.centered_filters else ', plain filters'}"
    return StudyEncoder(name, network, licence, kind=kind, image_size=config.image_size)


def _baseline(name: str, task: str, folder: str) -> StudyEncoder:
    """An encoder of our own, if it was trained as the name says."""
    try:
        with safe_open(Path(folder) / TRAINING_FILE, "pt") as file:
            trained = json.loads((file.metadata() or {})["facts"])["task"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise EncoderError(f"encoder: {folder} holds no {task}: it lacks a readable {TRAINING_FILE}") from error
    if trained != task:
        raise EncoderError(f"encoder: {folder} holds no {task}; it was trained on {trained}")
    return _ours(name, folder, trust_code=False)


def _random(name: str) -> StudyEncoder:
    _, colon, seed = name.partition(":")
    if colon and not seed.isdecimal():
        raise EncoderError(f"encoder: {name}: the seed must be a number, not {seed!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed or 0))
        network = Encoder(PAPER)
    return StudyEncoder(name, network, "none")


def _python(name: str, trust_code: bool) -> StudyEncoder:
    config = replace(PAPER, encoder=name)
    if not trust_code:
        raise EncoderError(f"encoder: {name} runs code: allow it with --trust-code (trust_code=True)")
    try:
        network = make_encoder(config)
    except ValueError as error:
        raise EncoderError(str(error)) from error
    # A class without weights can change only in its code.
    source = hashlib.sha256(_source(type(network)).encode()).hexdigest()
    licence = str(getattr(network, "licence", "unstated"))
    return StudyEncoder(name, network, licence, source=source)


def _source(cls: type) -> str:
    """The source of the module that a class is defined in."""
    module: Callable[..., object] | object = inspect.getmodule(cls)
    try:
        return inspect.getsource(module)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return cls.__qualname__
