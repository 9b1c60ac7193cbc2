"""The auto-encoder baseline: the paper's encoder, trained to rebuild images from its 7 x 7 features (F).

The decoder is that of the probes without skips: with them the features could stay empty. The error is the mean
absolute difference of pixels in [0, 1]: in normalized units it would be 4.4 times as large, which Adam does not notice,
and in these the schedule's threshold of 1e-4 means a fortieth of a gray level.
"""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent.encoder import IMAGENET_MEAN, Encoder
from scrubjay.study.decoders import DenseDecoder
from scrubjay.study.encoder_training import EncoderTraining, EncoderTrainingConfig
from scrubjay.study.static import data_digest
from scrubjay.study.static_data import StaticData


class AutoEncoder(nn.Module):
    """Images (n, H, W, 3) uint8 to reconstructions (n, 3, size, size), about [0, 1]."""

    def __init__(self, config: EncoderTrainingConfig) -> None:
        super().__init__()
        self.encoder = Encoder(config.agent)
        self.decoder = DenseDecoder(config.agent.sir_channels, 3, size=config.size)
        self.decoder.head.bias = nn.Parameter(torch.tensor(IMAGENET_MEAN))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(image).sir).float()

    def loss(self, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """The mean absolute error of each image, (n,); labels mean nothing."""
        return (self(image) - self.target(image)).abs().mean((1, 2, 3))

    def target(self, image: torch.Tensor) -> torch.Tensor:
        """Images as reconstructions should be: pixels averaged to their size."""
        pixels = image.permute(0, 3, 1, 2).float() / 255
        blocks = pixels.shape[2] // self.decoder.size
        return F.avg_pool2d(pixels, blocks) if blocks > 1 else pixels

    @torch.no_grad()
    def reconstruct(self, image: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Targets and reconstructions as pictures (n, size, size, 3) uint8."""
        self.eval()
        both = (self.target(image), self(image).clamp(0, 1))
        targets, rebuilt = ((values * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy() for values in both)
        return targets, rebuilt


class StaticImages:
    """The images of a split of the static experiments' data, without labels."""

    fixed = True

    def __init__(self, data: StaticData, split: str) -> None:
        self.data, self.rows = data, data.split(split)
        self.labels = np.zeros(len(self.rows), np.int64)

    def read(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """Images (m, 224, 224, 3) uint8 of rows of the split."""
        return self.data.images(self.rows[rows])


def auto_encoder_training(
    data: StaticData, out: str | os.PathLike[str], config: EncoderTrainingConfig | None = None, device: str = "cpu"
) -> EncoderTraining:
    """The training of an auto-encoder on all train images, begun or continued in a folder."""
    facts = {"task": "auto-encoder", "data": data_digest(data)}
    train, validation = (StaticImages(data, split) for split in ("train", "validation"))
    return EncoderTraining(AutoEncoder, facts, train, validation, out, config or EncoderTrainingConfig(), device)
