"""What cameras see, and what a renderer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from scrubjay.sim.compile import FIXED, GOAL, MOVING, CompiledRoom
from scrubjay.sim.pose import FIELD_OF_VIEW, cameras
from scrubjay.sim.state import State

EVERYTHING = (FIXED, MOVING, GOAL)
WITHOUT_OPENABLES = (FIXED, GOAL)
"""The room with the moving parts of openables left out: what one would see through them."""
GOAL_ALONE = (GOAL,)
"""The goal object with all else invisible."""


class View:
    """Pictures of B worlds on the renderer's device; asking for one that was not taken is an error."""

    def __init__(self, **pictures: torch.Tensor) -> None:
        self.pictures = pictures

    @property
    def rgb(self) -> torch.Tensor:
        """(B, height, width, 3) uint8."""
        return self._taken("rgb")

    @property
    def depth(self) -> torch.Tensor:
        """(B, height, width) float32: meters along the camera's axis, 0 where nothing is."""
        return self._taken("depth")

    @property
    def ids(self) -> torch.Tensor:
        """(B, height, width) int16: the number of the thing in its room, -1 where nothing is."""
        return self._taken("ids")

    @property
    def normals(self) -> torch.Tensor:
        """(B, height, width, 3) float32: unit vectors in the room's axes, 0 where nothing is."""
        return self._taken("normals")

    def _taken(self, kind: str) -> torch.Tensor:
        if kind not in self.pictures:
            taken = ", ".join(self.pictures)
            raise ValueError(f"this view has no {kind}, only {taken}: name it when you ask for the view")
        return self.pictures[kind]


KINDS = ("rgb", "depth", "ids", "normals")


@dataclass(frozen=True)
class Shot:
    """What is to be drawn: cameras and all that moves, for B worlds."""

    eye: np.ndarray
    """(B, 3)"""
    matrix: np.ndarray
    """(B, 3, 3): the camera's right, up and backward axes as columns."""
    open: np.ndarray
    """(B, openables) bool."""
    goal: np.ndarray
    """(B,): the goal object's number, -1 for none."""
    pose: np.ndarray
    """(B, 7): the goal object's center and quaternion."""
    field_of_view: float = FIELD_OF_VIEW
    worlds: np.ndarray | None = None
    """(B,): their numbers among the renderer's worlds; without them, they are all of its worlds in their order."""

    @classmethod
    def of(cls, state: State, worlds: np.ndarray) -> Shot:
        """What the agents of some worlds (n,), by number, look at."""
        eye, matrix = cameras(state.position[worlds], state.rotation[worlds], state.standing[worlds])
        return cls(eye, matrix, state.open[worlds], state.goal[worlds], state.pose[worlds], worlds=worlds)

    def room_of(self, rooms: int, copies: int) -> np.ndarray:
        """The worlds' rooms, (B,), for a renderer of so many; ValueError if they are not its worlds."""
        most = rooms * copies
        worlds = np.arange(most) if self.worlds is None else np.asarray(self.worlds)
        for name in ("eye", "matrix", "open", "goal", "pose"):
            if worlds.shape != (len(getattr(self, name)),):
                raise ValueError(
                    f"{name} {getattr(self, name).shape} is not of as many worlds as there are, {worlds.shape}"
                )
        if not np.issubdtype(worlds.dtype, np.integer) or (worlds < 0).any() or (worlds >= most).any():
            raise ValueError(f"the renderer's worlds are numbers from 0 to {most - 1}, not {worlds}")
        return worlds // copies


class Renderer(Protocol):
    """Turns shots into views of the same worlds. `name` says which one it is, and on what."""

    name: str

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View: ...

    def replace(self, number: int, room: CompiledRoom) -> None: ...

    def close(self) -> None: ...
