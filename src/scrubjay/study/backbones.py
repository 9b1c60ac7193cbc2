"""Networks of the literature, for weights that come as a file: ResNets, and MobileNetV2.

Parts have the names that published weights use (torchvision's for ResNets), so that tensors fit by name.
Both take normalized images (N, 3, H, W) and give the features before the average pool.
"""

from __future__ import annotations

import re

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent import weights
from scrubjay.errors import WeightsError


class _Basic(nn.Module):
    """The residual block of ResNet-18 and -34: two 3 x 3 convolutions."""

    def __init__(self, channels_in: int, width: int, stride: int, shortcut: bool) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels_in, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        if shortcut:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        same = self.downsample(x) if hasattr(self, "downsample") else x
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(same + self.bn2(self.conv2(x)))


class _Bottleneck(nn.Module):
    """The residual block of deeper ResNets: 1 x 1, 3 x 3 (with the stride), 1 x 1 to four times the width."""

    def __init__(self, channels_in: int, width: int, stride: int, shortcut: bool) -> None:
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        if shortcut:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        same = self.downsample(x) if hasattr(self, "downsample") else x
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(same + self.bn3(self.conv3(x)))


class ResNet(nn.Module):
    """A ResNet without its classifier; `depths` are the blocks of its four stages, ResNet-50's (3, 4, 6, 3)."""

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(self, depths: tuple[int, int, int, int], bottleneck: bool) -> None:
        super().__init__()
        block, expansion = (_Bottleneck, 4) if bottleneck else (_Basic, 1)
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        channels = 64
        for stage, depth in enumerate(depths):
            width, blocks = 64 << stage, []
            for place in range(depth):
                stride = 2 if stage and not place else 1
                blocks.append(
                    block(channels, width, stride, not place and (stride > 1 or channels != width * expansion))
                )
                channels = width * expansion
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return x


class _InvertedResidual(nn.Module):
    """MobileNetV2's block: expand, depthwise 3 x 3, project."""

    def __init__(self, channels_in: int, channels: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = channels_in * expand
        layers: list[nn.Module] = []
        if expand > 1:
            layers += [nn.Conv2d(channels_in, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
        layers += [nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)]
        self.conv = nn.Sequential(*layers)
        self.residual = stride == 1 and channels_in == channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2 of width 1 without its classifier: 1280 channels."""

    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    """Expansion, channels, repetitions and first stride, from the paper's Table 2."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [self._layer(3, 32, 3, 2)]
        channels = 32
        for expand, width, repeats, first_stride in self.blocks:
            for place in range(repeats):
                layers.append(_InvertedResidual(channels, width, 1 if place else first_stride, expand))
                channels = width
        layers.append(self._layer(channels, 1280, 1, 1))
        self.features = nn.Sequential(*layers)

    @staticmethod
    def _layer(channels_in: int, channels: int, kernel: int, stride: int) -> nn.Sequential:
        conv = nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(channels), nn.ReLU6())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.features(x)


def recognize(tensors: dict[str, torch.Tensor]) -> tuple[nn.Module, str]:
    """The network that tensors belong to, filled with them, and its name; prefixes and classifiers are left out.

    WeightsError says which networks are known, or which tensor is missing.
    """
    if prefix := _prefix(tensors, "layer1.0.conv1.weight"):
        own = _without(tensors, prefix[0], "fc.")
        depths = [1 + max((int(m[1]) for m in map(re.compile(rf"layer{stage}\.(\d+)\.").match, own) if m), default=-1)
                  for stage in range(1, 5)]  # fmt: skip
        bottleneck = "layer1.0.conv3.weight" in own
        name = f"ResNet-{2 + (3 if bottleneck else 2) * sum(depths)}"
        return _filled(ResNet((depths[0], depths[1], depths[2], depths[3]), bottleneck), own, name), name
    if prefix := _prefix(tensors, "features.18.0.weight"):
        return _filled(MobileNetV2(), _without(tensors, prefix[0], "classifier."), "MobileNetV2"), "MobileNetV2"
    raise WeightsError(f"no known network (ResNet, MobileNetV2) has a tensor named {min(tensors, default='nothing')!r}")


def _prefix(tensors: dict[str, torch.Tensor], name: str) -> list[str]:
    """What stands before a name in the tensors' names, or nothing."""
    return [key.removesuffix(name) for key in tensors if key == name or key.endswith(f".{name}")][:1]


def _without(tensors: dict[str, torch.Tensor], prefix: str, classifier: str) -> dict[str, torch.Tensor]:
    own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    return {name: tensor for name, tensor in own.items() if not name.startswith(classifier)}


def _filled(network: nn.Module, tensors: dict[str, torch.Tensor], name: str) -> nn.Module:
    # Older files have no counters of batches, and they change nothing.
    counters = {key: value for key, value in network.state_dict().items() if key.endswith("num_batches_tracked")}
    try:
        weights.fill(network, counters | {key: value.to(torch.float32) if value.is_floating_point() else value
                                          for key, value in tensors.items()})  # fmt: skip
    except WeightsError as error:
        raise WeightsError(f"not a {name}: {error}") from error
    return network
