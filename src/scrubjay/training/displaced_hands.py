"""Manipulations that begin with the hand elsewhere.

The game always begins them with the object at the hand's default position. A memory that counts movements from there
knows where the object is without a look, and is lost where it begins elsewhere, as in the study of what is carried
behind books.
"""

from __future__ import annotations

import numpy as np

from scrubjay.sim.pose import cameras, unproject
from scrubjay.sim.world import World

DEPTHS = 0.3, 1.6
"""Meters along the camera's axis."""


class DisplacedHands:
    """Moves hands to random points of what the camera sees, through free air; a share of practiced manipulations."""

    def __init__(self, share: float, rng: np.random.Generator) -> None:
        self.share, self.rng = share, rng

    def __call__(self, world: World, begun: np.ndarray) -> np.ndarray:
        """Which of the manipulations that have just begun (B,) begin elsewhere."""
        moved = begun & (self.rng.random(len(begun)) < self.share)
        state, image, depth = world.state, self.rng.random((len(begun), 2)), self.rng.uniform(*DEPTHS, len(begun))
        point = unproject(*cameras(state.position, state.rotation, state.standing), image, depth)
        return world.move_hand_to(np.where(moved[:, None], point, np.nan))
