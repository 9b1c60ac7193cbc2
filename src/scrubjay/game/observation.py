"""Observations of B games as tensors on one device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.cache import CacheGame

NO_ACTION = len(actions.NAMES)
"""Stands for no action: the last action at the beginning of an episode, and the PlaceAt where nothing landed."""


@dataclass(frozen=True)
class Observation:
    """Observations of B players; leading axes are (B,), or (T, B) for T steps."""

    image: torch.Tensor
    """(..., height, width, 3) uint8, as rendered."""
    last_action: torch.Tensor
    """(...,) int64: an action, or NO_ACTION."""
    last_success: torch.Tensor
    """(...,) bool."""
    standing: torch.Tensor
    """(...,) bool."""
    goal: torch.Tensor
    """(...,) int64: an index into GOALS."""
    stage: torch.Tensor
    """(...,) int64."""
    place: torch.Tensor
    """(..., 4) int64: steps right and ahead of the game's start, quarter turns from its heading, standing."""
    landed: torch.Tensor
    """(...,) int64: in OH, the PlaceAt action whose target the last manipulation's object landed on, or NO_ACTION."""
    target: torch.Tensor
    """(..., 3) int64: in OM, modality, row and column; 0 elsewhere."""
    time_left: torch.Tensor
    """(...,) float32: the share of the stage's steps left, 1 at the first. Critics alone may use it."""


def observe(game: CacheGame, image: torch.Tensor | None = None) -> Observation:
    """Observes all games, on the renderer's device; `image` replaces the rendered one."""
    image = game.look().rgb if image is None else image

    def tensor(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(image.device, non_blocking=True)

    return Observation(
        image,
        tensor(np.where(game.last_action == NOTHING, NO_ACTION, game.last_action)),
        tensor(game.last_success.copy()),
        tensor(game.world.state.standing.copy()),
        tensor(game.goal.copy()),
        tensor(game.stage.copy()),
        tensor(game.relative_place()),
        tensor(np.where((game.landed == NOTHING) | (game.stage != Stage.OH), NO_ACTION, game.landed)),
        tensor(np.where((game.stage == Stage.OM)[:, None], game.target, 0)),
        tensor(_time_left(game)),
    )


def _time_left(game: CacheGame) -> np.ndarray:
    """(B,) float32."""
    taken = game.time[np.arange(len(game)), game.stage]
    return (1 - taken / game.limits[game.stage]).astype(np.float32)
