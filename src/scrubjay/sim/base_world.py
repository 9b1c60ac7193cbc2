"""What the game needs of a world, whatever simulates it: a state of a few numbers, actions on it, and views of it.

`World` simulates our own rooms; `thor.world.ThorWorld` acts in AI2-THOR. All arrays have a leading batch axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
import torch

from scrubjay.rooms.floor import Grid
from scrubjay.rooms.room import Room
from scrubjay.sim import cells
from scrubjay.sim.pose import REACH, AgentPose, cameras, project, reach
from scrubjay.sim.render.base import EVERYTHING, GOAL_ALONE, View
from scrubjay.sim.state import State

NOTHING = -1
MOVES = ("ahead", "left", "right")
HAND_MOVES = ("ahead", "left", "right", "back", "up", "down")
HAND_TURNS = ("-X", "+X", "-Y", "+Y", "-Z", "+Z")


class WorldFloor(Protocol):
    """Where a body can walk: a `Floor` is one."""

    def reachable(self) -> Grid: ...

    def grid(self, start: Any, angle: float = 0.0) -> Grid: ...

    def positions(self, start: Any, angle: float = 0.0) -> np.ndarray: ...

    def clearance(self, points: np.ndarray) -> np.ndarray: ...


class WorldRoom(Protocol):
    """A room of a world: a `CompiledRoom` is one."""

    @property
    def room(self) -> Room: ...

    @property
    def things(self) -> tuple[str, ...]:
        """Names by id: the room's things and then the five goal objects."""
        ...

    @property
    def openables(self) -> Sequence[Any]:
        """What opens, by number; each has the id of its `thing`."""
        ...

    @property
    def floor(self) -> WorldFloor: ...


class BaseWorld(ABC):
    """B worlds to act in and to look at. World b is copy `b % copies` of room `b // copies`.

    Actions take one integer per world, -1 for no action, and return which succeeded, (B,) bool. The state may be
    written to between actions: the next action or view starts from what it then holds.
    """

    rooms: Sequence[WorldRoom]
    room_of: np.ndarray
    """(B,): the number of each world's room."""
    copies: int
    size: int
    """Pixels along an image's side."""
    state: State
    closed: bool
    reachable: Sequence[Grid]
    """The positions that can be reached in each room, on the paper's grid."""
    openable_count: np.ndarray
    """Openables of each room, (R,)."""
    openable_of_thing: torch.Tensor
    """The openable that a thing is, by world and id, or -1: (B, things + 1)."""
    _openables: torch.Tensor
    """The same on the images' device."""
    _thing_count: np.ndarray
    """Things of each room without the goal objects, (R,)."""

    def __len__(self) -> int:
        return len(self.room_of)

    @property
    @abstractmethod
    def renderer_name(self) -> str:
        """What images are made by, the kind first."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # Where agents are.

    def agent_pose(self, world: int) -> AgentPose:
        x, y = map(float, self.state.position[world])
        return AgentPose(x, y, float(self.state.rotation[world]), bool(self.state.standing[world]))

    @abstractmethod
    def set_agent_pose(self, world: int, pose: AgentPose) -> None:
        """Moves an agent. Raises ValueError where a body cannot stand."""

    @abstractmethod
    def grid(self, world: int) -> Grid:
        """The positions that an agent can reach from its own, on a grid aligned with its rotation."""

    @abstractmethod
    def move(self, direction: np.ndarray) -> np.ndarray:
        """Moves by 0.25 m ahead, left or right (0, 1, 2)."""

    @abstractmethod
    def rotate(self, direction: np.ndarray) -> np.ndarray:
        """Turns left or right by 90 degrees (0, 1); fails if a held object would collide."""

    @abstractmethod
    def stand(self, upright: np.ndarray) -> np.ndarray:
        """Crouches or stands up (0, 1); fails if the agent already does."""

    # Openables.

    @abstractmethod
    def open(self, openable: np.ndarray) -> np.ndarray:
        """Opens things by their numbers among the rooms' openables; fails if one would hit the agent."""

    def open_at(self, row: np.ndarray, column: np.ndarray, view: View | None = None) -> np.ndarray:
        """Opens what is at or near the center of an image cell, if within reach; rows and columns are 0 to 6.

        `view`, with ids and depth of the current state, saves rendering one.
        """
        row, column = (self._checked(index, range(cells.CELLS)) for index in (row, column))
        view = view or self.view(("ids", "depth"))
        openable, pixel, depth = cells.openables_at(view, self._openables, row, column)
        near = reach(self.state.position, self._point(pixel, depth)) <= REACH
        return self.open(np.where(near, openable, NOTHING).astype(int))

    def openable_cells(self, view: View) -> torch.Tensor:
        """Cells (B, 7, 7) bool of a view with ids and depth where OpenAt finds something closed and within reach.

        On the renderer's device, without waiting for it. Only trying tells whether a door would hit the agent.
        """
        openable, pixel = cells.openables_at_cells(view.ids, self._openables)
        pixel = pixel.flatten(1)
        depth = view.depth.flatten(1).gather(1, pixel)
        eye, matrix = cameras(self.state.position, self.state.rotation, self.state.standing)
        # Points as in `_point`, but only their horizontal distance from the agent.
        camera = torch.from_numpy(
            np.concatenate([matrix[:, :2].swapaxes(1, 2), eye[:, None, :2]], 1).astype(np.float32)
        )
        camera[:, 3] -= torch.from_numpy(self.state.position)
        camera, is_open = (
            t.to(view.ids.device, non_blocking=True) for t in (camera, torch.from_numpy(self.state.open.copy()))
        )
        x, y = (pixel % self.size + 0.5) / self.size * 2 - 1, 1 - (pixel // self.size + 0.5) / self.size * 2
        local = torch.stack([x * depth, y * depth, -depth, torch.ones_like(depth)], -1)
        near = torch.linalg.vector_norm(local @ camera, dim=-1) <= REACH
        closed = ~is_open.gather(1, openable.flatten(1).clamp(min=0))
        return (openable >= 0) & (near & closed).unflatten(1, (cells.CELLS, cells.CELLS))

    def held_cells(self) -> np.ndarray:
        """The row and column (B, 2) of the image's cells, 0 in the middle of the first, where the held object's center
        is, seen or not; NaN where nothing is held, or outside the image."""
        s = self.state
        position = project(*cameras(s.position, s.rotation, s.standing), s.pose[:, :3])
        shown = s.held & (position >= 0).all(-1) & (position <= 1).all(-1)
        return np.where(shown[:, None], position * cells.CELLS - 0.5, np.nan)

    @abstractmethod
    def close_near(self, worlds: np.ndarray) -> np.ndarray:
        """Closes all open things within reach; succeeds where at least one closed."""

    # The hand.

    @abstractmethod
    def hold(self, goal: np.ndarray) -> np.ndarray:
        """Puts a goal object, by its number in GOALS, into the hand at its default position, or near it."""

    @abstractmethod
    def move_hand(self, direction: np.ndarray) -> np.ndarray:
        """Moves the held object by 0.1 m: ahead, left, right, back, up, down (0 to 5), as the agent faces."""

    @abstractmethod
    def rotate_hand(self, turn: np.ndarray) -> np.ndarray:
        """Turns the held object by 30 degrees about -X, +X, -Y, +Y, -Z, +Z (0 to 5): right, up and ahead of the agent.

        As in the paper's left-handed axes, -Y turns it counter-clockwise seen from above.
        """

    @abstractmethod
    def drop(self, worlds: np.ndarray) -> np.ndarray:
        """Drops the held object and simulates until it rests."""

    @abstractmethod
    def remove(self, worlds: np.ndarray) -> None:
        """Removes the goal object from the room."""

    @abstractmethod
    def contained(self, worlds: np.ndarray | bool = True) -> np.ndarray:
        """The id of the thing that contains the goal object, (B,); -1 for none, and outside `worlds`."""

    # Physics in the background, where there is any.

    @abstractmethod
    def defer_physics(self) -> None:
        """From now on actions start physics without waiting for it, and succeed in `receive_physics`.

        A world may take one action until then.
        """

    @property
    @abstractmethod
    def awaits_physics(self) -> bool:
        """Is there anything to receive?"""

    @abstractmethod
    def receive_physics(self) -> np.ndarray:
        """Waits for the deferred physics, and defers no more; returns which actions succeeded, (B,) bool."""

    # Pictures.

    @abstractmethod
    def view(
        self,
        kinds: Sequence[str] = ("rgb",),
        groups: Sequence[int] = EVERYTHING,
        worlds: np.ndarray | None = None,
        without: np.ndarray | None = None,
    ) -> View:
        """Renders the agents' views: any of rgb, depth, ids, normals; of `worlds` (B,) bool only, or of all.

        `without` (B,) are ids of things that are left out, each with all that is in or on it; -1 leaves out nothing.
        """

    def goal_pixels(self, worlds: np.ndarray | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Masks (n, size, size) of the goal objects' visible pixels, and of those with all else invisible."""
        seen, alone = (self.view(("ids",), groups, worlds) for groups in (EVERYTHING, GOAL_ALONE))
        return self.goal_mask(seen, worlds), self.goal_mask(alone, worlds)

    def goal_mask(self, view: View, worlds: np.ndarray | None = None) -> torch.Tensor:
        """Mask (n, size, size) of the goal objects in a view of these worlds with ids."""
        goal = np.where(self.state.goal == NOTHING, -2, self._thing_count[self.room_of] + self.state.goal)
        return cells.pixels_of(view.ids, goal[self._some(worlds)])

    # Inside.

    def _some(self, worlds: np.ndarray | None) -> np.ndarray:
        """The numbers of the worlds in a mask (B,) bool; all for None."""
        if worlds is None:
            return np.arange(len(self))
        worlds = np.asarray(worlds)
        if worlds.shape != (len(self),) or worlds.dtype != bool:
            raise ValueError(f"worlds must be a bool array ({len(self)},), not {worlds.dtype} {worlds.shape}")
        return np.flatnonzero(worlds)

    def _checked(self, action: np.ndarray, names: Sequence) -> np.ndarray:
        action = np.asarray(action)
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            given = f"{action.dtype} {action.shape}"
            raise ValueError(f"one whole number for each of {len(self)} worlds is needed, not {given}")
        if (action < NOTHING).any() or (action >= len(names)).any():
            wrong = action[(action < NOTHING) | (action >= len(names))][0]
            allowed = f"-1 for nothing, or 0 to {len(names) - 1} for {', '.join(map(str, names))}"
            raise ValueError(f"action {wrong} is out of range: {allowed}")
        return action

    def _point(self, pixel: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Positions (B, 3) of pixels (B,) with depths (B,)."""
        eye, matrix = cameras(self.state.position, self.state.rotation, self.state.standing)
        x = (pixel % self.size + 0.5) / self.size * 2 - 1
        y = 1 - (pixel // self.size + 0.5) / self.size * 2
        local = np.stack([x, y, -np.ones_like(x)], 1) * depth[:, None]
        return eye + np.einsum("bij,bj->bi", matrix, local)
