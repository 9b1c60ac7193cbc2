"""The renderers' interface: shots in, views out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scrubjay.sim.compile import FIXED, GOAL, MOVING, CompiledRoom
from scrubjay.sim.pose import FIELD_OF_VIEW, cameras
from scrubjay.sim.state import State

if TYPE_CHECKING:
    import torch

EVERYTHING = (FIXED, MOVING, GOAL)
WITHOUT_OPENABLES = (FIXED, GOAL)
"""Without the moving parts of openables: what one would see through them."""
GOAL_ALONE = (GOAL,)
"""Only the goal object."""


class View:
    """Images of B worlds on the renderer's device. Reading one that was not rendered raises ValueError."""

    def __init__(self, **images: torch.Tensor) -> None:
        self.images = images

    @property
    def rgb(self) -> torch.Tensor:
        """(B, height, width, 3) uint8."""
        return self._image("rgb")

    @property
    def depth(self) -> torch.Tensor:
        """(B, height, width) float32: meters along the camera's axis, 0 for background."""
        return self._image("depth")

    @property
    def ids(self) -> torch.Tensor:
        """(B, height, width) int16: ids of the room's things, -1 for background."""
        return self._image("ids")

    @property
    def normals(self) -> torch.Tensor:
        """(B, height, width, 3) float32: unit vectors in the room's frame, 0 for background."""
        return self._image("normals")

    def _image(self, kind: str) -> torch.Tensor:
        if kind not in self.images:
            rendered = ", ".join(self.images)
            raise ValueError(f"this view has no {kind}, only {rendered}: pass {kind!r} when you request the view")
        return self.images[kind]


KINDS = ("rgb", "depth", "ids", "normals")


@dataclass(frozen=True)
class Shot:
    """What to render in B worlds: cameras and everything that moves."""

    eye: np.ndarray
    """(B, 3)"""
    matrix: np.ndarray
    """(B, 3, 3): the camera's right, up and backward axes as columns."""
    open: np.ndarray
    """(B, openables) bool."""
    goal: np.ndarray
    """(B,): the goal object's index in GOALS, -1 for none."""
    pose: np.ndarray
    """(B, 7): the goal object's center and quaternion."""
    field_of_view: float = FIELD_OF_VIEW
    worlds: np.ndarray | None = None
    """(B,): indices of the renderer's worlds; None for all of them in order."""
    left_out: np.ndarray | None = None
    """(B, things of the largest room or more) bool: things that are not drawn; None for nothing."""

    @classmethod
    def from_state(cls, state: State, worlds: np.ndarray) -> Shot:
        """What the agents of the worlds with indices (n,) see."""
        eye, matrix = cameras(state.position[worlds], state.rotation[worlds], state.standing[worlds])
        return cls(eye, matrix, state.open[worlds], state.goal[worlds], state.pose[worlds], worlds=worlds)

    def room_of(self, rooms: int, copies: int) -> np.ndarray:
        """The worlds' rooms (B,) in a renderer of so many rooms and copies; ValueError for worlds it does not have."""
        count = rooms * copies
        worlds = np.arange(count) if self.worlds is None else np.asarray(self.worlds)
        for name in ("eye", "matrix", "open", "goal", "pose"):
            if worlds.shape != (len(getattr(self, name)),):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, for {worlds.shape[0]} worlds")
        if self.left_out is not None and (self.left_out.ndim != 2 or len(self.left_out) != len(worlds)):
            raise ValueError(f"left_out has shape {self.left_out.shape}, for {worlds.shape[0]} worlds")
        if not np.issubdtype(worlds.dtype, np.integer) or (worlds < 0).any() or (worlds >= count).any():
            raise ValueError(f"world indices are integers from 0 to {count - 1}, not {worlds}")
        return worlds // copies


class Renderer(Protocol):
    """Renders shots into views of the same worlds. `name` tells the renderer and its device."""

    name: str

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View: ...

    def replace(self, number: int, room: CompiledRoom) -> None: ...

    def close(self) -> None: ...
