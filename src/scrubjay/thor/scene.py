"""One room with agents, loose things and cameras: what AI2-THOR's actions change and its metadata tells.

Everything is in the room's frame (x east, y north, z up; yaws clockwise from north), in meters and degrees;
`coordinates.py` converts from and to Unity's. An action either succeeds or raises ActionFailed and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np


class ActionFailed(Exception):
    """An action that did not succeed; its text becomes the event's errorMessage."""


@dataclass
class SceneAgent:
    """An agent's body and camera."""

    position: np.ndarray
    """(2,)"""
    rotation: float
    """Degrees in [0, 360)."""
    horizon: float
    """Degrees by which the camera looks down."""
    standing: bool
    held: int | None = None
    """The id of the thing in its hand."""


@dataclass(frozen=True)
class SceneCamera:
    """A camera that belongs to nobody."""

    position: np.ndarray
    """(3,)"""
    rotation: np.ndarray
    """Pitch (down), yaw (clockwise) and roll in degrees, as Unity orders them: (3,)."""
    field_of_view: float = 90.0
    orthographic_size: float | None = None
    """Half the height of the picture in meters, for a camera without perspective."""


@dataclass(frozen=True)
class Pictures:
    """What one camera sees, rows from the top: None for what was not asked for."""

    rgb: np.ndarray
    """(height, width, 3) uint8."""
    depth: np.ndarray | None = None
    """(height, width) float32, meters along the camera's axis."""
    ids: np.ndarray | None = None
    """(height, width) int16: thing ids, -1 for the background."""
    normals: np.ndarray | None = None
    """(height, width, 3) float32, in the room's frame."""


class Scene:
    """A room by name (`FloorPlan28` is iTHOR's, by its table) with agents in it."""

    def __init__(self, name: str, agents: int = 1, width: int = 300, height: int = 300) -> None:
        raise NotImplementedError

    # What there is. Things are numbered; numbers stay until the scene is made anew.
    things: tuple[str, ...]
    """Names by id, the table's (`Apple_3a2b1c`), or the room's own."""
    agents: list[SceneAgent]
    cameras: list[SceneCamera]
    hidden: set[int]
    """Ids of things that are not drawn."""
    absent: set[int]
    """Ids of things that were taken out of the scene."""

    def pose(self, thing: int) -> np.ndarray:
        """Center and quaternion, (7,)."""
        raise NotImplementedError

    def corners(self, thing: int) -> np.ndarray:
        """The corners of its oriented box where it is now, (8, 3)."""
        raise NotImplementedError

    def openness(self, thing: int) -> float | None:
        """0 closed to 1 open; None for what does not open."""
        raise NotImplementedError

    def containers(self, thing: int) -> list[int]:
        """What it lies in or on, the nearest first."""
        raise NotImplementedError

    # Bodies.

    def move(self, agent: int, offset: np.ndarray, force: bool = False) -> None:
        """Walks along (2,), swept in steps; a held thing goes along."""
        raise NotImplementedError

    def turn(self, agent: int, rotation: float, horizon: float, standing: bool, force: bool = False) -> None:
        """Changes rotation, horizon or posture; a held thing goes along and may be in the way."""
        raise NotImplementedError

    def teleport(
        self, agent: int, position: np.ndarray, rotation: float, horizon: float, standing: bool, force: bool = False
    ) -> None: ...

    def reachable(self, agent: int, step: float, limit: int = 10_000, turned: bool = False) -> np.ndarray:
        """Positions (n, 2) on a grid through the agent's own that it can walk to."""
        raise NotImplementedError

    def path(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Corners (n, 2) of a shortest walk; raises ActionFailed if there is none."""
        raise NotImplementedError

    # Hands and things. `force` ignores reach and sight.

    def set_openness(self, agent: int, thing: int, openness: float, force: bool = False) -> None: ...

    def pick_up(self, agent: int, thing: int, force: bool = False) -> None: ...

    def drop(self, agent: int, force: bool = False) -> None:
        """Lets go; the thing falls until it rests."""
        raise NotImplementedError

    def throw(self, agent: int, newtons: float) -> None: ...

    def put(self, agent: int, receptacle: int, force: bool = False, stationary: bool = True) -> None:
        """Puts the held thing into or onto a receptacle, where it fits."""
        raise NotImplementedError

    def move_held(self, agent: int, offset: np.ndarray, force: bool = False) -> None:
        """Moves the held thing by (3,): ahead, right and up of the agent."""
        raise NotImplementedError

    def turn_held(self, agent: int, quaternion: np.ndarray) -> None:
        """Turns the held thing by a quaternion in the room's frame."""
        raise NotImplementedError

    def place(self, thing: int, pose: np.ndarray, settle: bool = False, force: bool = False) -> None:
        """Moves a loose thing to a pose (7,)."""
        raise NotImplementedError

    def remove(self, thing: int) -> None: ...

    def restore(self, thing: int) -> None: ...

    # Eyes.

    def see(self, agent: int, kinds: Collection[str]) -> Pictures:
        """An agent's pictures: rgb, and depth, ids, normals if among the kinds."""
        raise NotImplementedError

    def look_through(self, camera: int, kinds: Collection[str]) -> Pictures:
        """A camera's pictures."""
        raise NotImplementedError

    def visible(self, agent: int, distance: float) -> set[int]:
        """Things in an agent's frame, within the distance of its vertical axis, and not covered by others."""
        raise NotImplementedError

    def ray(self, agent: int, x: float, y: float) -> tuple[int, np.ndarray] | None:
        """The thing (-1: floor, walls, ceiling count as things if they are) and the point seen at a place of the frame.

        From 0 to 1, from the top left.
        """
        raise NotImplementedError

    def resize(self, width: int, height: int) -> None: ...

    def set_field_of_view(self, agent: int, degrees: float) -> None: ...

    def retexture(self, seed: int, kinds: Sequence[str] | None = None) -> None:
        """Other materials from the catalog, the same for the same seed."""
        raise NotImplementedError

    def close(self) -> None: ...
