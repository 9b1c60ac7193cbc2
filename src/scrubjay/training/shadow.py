"""The classification baseline: a second encoder that shadows the agent's through training.

It starts with the same weights. Whenever the agent's encoder takes a step of an optimizer, the shadow takes one on the
same images, but to classify the objects that are visible (the paper's "SIR (Class.)", G.1). So the two differ in what
they were trained for, and in nothing else.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from scrubjay.agent import weights
from scrubjay.agent.config import AgentConfig
from scrubjay.errors import WeightsError
from scrubjay.files import write_atomically
from scrubjay.game.actions import Stage
from scrubjay.training.class_labels import CLASSES
from scrubjay.training.hiding_buffer import HidingEpisodes
from scrubjay.training.replay import Triplets
from scrubjay.training.rollout import Rollout

FOLDER, NAMES = "class", "classes.json"
"""The shadow's folder in a checkpoint or a milestone, and its file with the classes in the order of the logits."""
PRIOR_LOGIT = -3.4
"""Initial logit of every class: an image shows 3.3 of the 101 on average."""


@dataclass(frozen=True)
class LabeledImages:
    """N images of one optimizer step."""

    image: torch.Tensor
    """(N, H, W, 3) uint8."""
    visible: torch.Tensor
    """(N, 101) bool: the types in CLASSES that are visible."""
    mask: torch.Tensor
    """(N,) bool: False for steps that nothing is learned from, such as padding."""


def labeled_images(batch: Rollout | HidingEpisodes | Triplets) -> LabeledImages:
    """The images that a batch trains the agent's encoder on."""
    assert batch.visible is not None
    if isinstance(batch, Triplets):
        image, visible = torch.cat([batch.before, batch.after]), torch.cat(batch.visible.unbind(1))
        return LabeledImages(image, visible, torch.ones_like(visible[:, 0]))
    # A rollout's steps of PS have no loss, and stand for padding in batches of manipulations.
    mask = batch.mask if isinstance(batch, HidingEpisodes) else batch.observation.stage != int(Stage.PS)
    return LabeledImages(*(part.flatten(0, 1) for part in (batch.observation.image, batch.visible, mask)))


class ShadowClassifier(nn.Module):
    """An encoder and a linear layer: images (N, H, W, 3) uint8 to the logits (N, 101) that types are visible."""

    def __init__(self, encoder: nn.Module, config: AgentConfig, seed: int = 0) -> None:
        """Copies an encoder as it is now; draws none of the global random numbers."""
        super().__init__()
        self.config, self.encoder = config, copy.deepcopy(encoder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.linear = nn.Linear(config.sir_channels, len(CLASSES))
        nn.init.constant_(self.linear.bias, PRIOR_LOGIT)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.linear(self.encoder(image).pooled)

    def loss(self, batch: LabeledImages) -> torch.Tensor:
        """Binary cross entropy, mean over types and over the images in the mask; 0 without any."""
        logits, target = self(batch.image).float(), batch.visible.float()
        each = F.binary_cross_entropy_with_logits(logits, target, reduction="none").mean(1)
        return (each * batch.mask).sum() / batch.mask.sum().clamp(min=1)


def save_shadow(shadow: ShadowClassifier, folder: Path) -> None:
    """Writes a shadow into the folder of a checkpoint or a milestone."""
    weights.save(shadow, shadow.config, folder / FOLDER)
    write_atomically(folder / FOLDER / NAMES, json.dumps(CLASSES) + "\n")


def fill_shadow(shadow: ShadowClassifier, folder: Path) -> None:
    """Reads what `save_shadow` wrote; WeightsError, before anything changes, if it is missing or does not fit."""
    path = shadow_folder(folder) / NAMES
    try:
        names = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: damaged: {error}") from error
    if names != list(CLASSES):
        raise WeightsError(f"{path}: other classes, or in another order")
    config, tensors = weights.load(path.parent)
    if config != shadow.config:
        raise WeightsError(f"{path.parent}: its config differs from the agent's")
    weights.fill(shadow, tensors)


def shadow_folder(folder: Path) -> Path:
    """The newest shadow's folder of a run, a checkpoint or a milestone; WeightsError if it has none."""
    found = [folder / FOLDER, *sorted(folder.glob(f"checkpoints/[0-9]*/{FOLDER}"))]
    found = [path for path in found if (path / NAMES).exists()]
    if not found:
        raise WeightsError(
            f"{folder}: it has no encoder trained to classify: train a run with --shadow-classifier, from its start on"
        )
    return found[-1]
