"""B rooms that can be acted in and looked at, always with a leading batch axis.

State is a few numbers a world; pictures are a function of it. Actions take one number for each world, with -1 for the
worlds that do nothing, and return which of them succeeded; a failed action changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from queue import Empty, SimpleQueue

import numpy as np
import torch

from scrubjay.world import cells
from scrubjay.world.floor import GRID, Grid
from scrubjay.world.generate import make_room
from scrubjay.world.mjcf import Compiled, compile_room
from scrubjay.world.physics import HAND_TURN, Physics, Situation
from scrubjay.world.place import REACH, Place, ahead, cameras, reach
from scrubjay.world.render_gl import OpenGL
from scrubjay.world.room import GOALS, Room
from scrubjay.world.view import EVERYTHING, GOAL_ALONE, KINDS, Renderer, RendererError, Shot, View
from scrubjay.world.walking import Floors

NOTHING = -1
MOVES = ("ahead", "left", "right")
HAND_MOVES = ("ahead", "left", "right", "back", "up", "down")
HAND_TURNS = ("-X", "+X", "-Y", "+Y", "-Z", "+Z")


@dataclass
class State:
    """All that changes in B worlds."""

    position: np.ndarray
    """Of the agents, (B, 2): the paper's x and z."""
    rotation: np.ndarray
    """Degrees, (B,), from 0 up to 360."""
    standing: np.ndarray
    """(B,) bool."""
    open: np.ndarray
    """Which openables are, (B, openables of the room with most) bool."""
    goal: np.ndarray
    """The goal object's number in GOALS, (B,); -1 where there is none."""
    pose: np.ndarray
    """The goal object's centre and quaternion, (B, 7)."""
    held: np.ndarray
    """Is the goal object in the hand, (B,) bool."""

    def copy(self) -> State:
        return State(*(getattr(self, f.name).copy() for f in fields(self)))


class World:
    """Rooms to act in. World b is copy `b % copies` of room `b // copies`."""

    def __init__(
        self,
        rooms: Sequence[str | Room | Compiled],
        copies: int = 1,
        renderer: str = "auto",
        size: int = 224,
        threads: int | None = None,
        shadows: bool = False,
    ) -> None:
        if not rooms or copies < 1:
            raise ValueError("a world needs at least one room and one copy of it")
        if size < 7 or size % cells.CELLS:
            raise ValueError(f"the image size {size} is not a multiple of {cells.CELLS}, the cells of a side")
        self.rooms = [_compiled(room) for room in rooms]
        self.copies, self.size = copies, size
        self.room_of = np.repeat(np.arange(len(self.rooms)), copies)
        self.reachable = [room.floor.reachable() for room in self.rooms]
        self._walking = Floors([room.floor for room in self.rooms])
        self._openables = max(1, max(len(room.openables) for room in self.rooms))
        self._physics: list[SimpleQueue[Physics]] = [SimpleQueue() for _ in self.rooms]
        self._threads = ThreadPoolExecutor(threads or os.cpu_count(), thread_name_prefix="physics")
        self._renderer_name, self._shadows = renderer, shadows
        self._renderer: Renderer | None = None
        self.openable_of_thing = self._openable_table()
        self.state = self._initial_state()

    def __len__(self) -> int:
        return len(self.room_of)

    @property
    def renderer(self) -> Renderer:
        """Made when first looked through: acting needs no pixels."""
        if self._renderer is None:
            self._renderer = make_renderer(self._renderer_name, self.rooms, self.copies, self.size, self._shadows)
        return self._renderer

    def close(self) -> None:
        self._threads.shutdown()
        if self._renderer is not None:
            self._renderer.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # Where agents are.

    def place(self, world: int) -> Place:
        s = self.state
        return Place(*map(float, s.position[world]), float(s.rotation[world]), bool(s.standing[world]))

    def put(self, world: int, place: Place) -> None:
        """Moves an agent to a place at which a body can stand; ValueError otherwise."""
        point = np.array([[place.x, place.z]], float)
        here = slice(world, world + 1)
        if not self._walking.free(self.room_of[here], point, self.state.open[here])[0]:
            scene = self.rooms[self.room_of[world]].room.scene
            raise ValueError(f"no body can stand at ({place.x:.2f}, {place.z:.2f}) in {scene}")
        self.state.position[world] = point
        self.state.rotation[world] = place.rotation % 360
        self.state.standing[world] = place.standing

    def grid(self, world: int) -> Grid:
        """The positions that an agent can reach from where it is, on the grid as it is turned."""
        angle = self.state.rotation[world] % 90
        return self.rooms[self.room_of[world]].floor.grid(self.state.position[world], angle)

    def move(self, direction: np.ndarray) -> np.ndarray:
        """Steps of 0.25 m ahead, left or right (0, 1, 2)."""
        direction = self._checked(direction, MOVES)
        turn = np.array([0.0, -90.0, 90.0])[direction]
        step = GRID * ahead(self.state.rotation + turn)
        here = self.state.position
        free = (direction != NOTHING) & ~self.state.held
        for share in (0.5, 1.0):
            free &= self._walking.free(self.room_of, here + share * step, self.state.open)
        self.state.position = np.where(free[:, None], here + step, here)
        return free

    def rotate(self, direction: np.ndarray) -> np.ndarray:
        """Quarter turns to the left or the right (0, 1); a held object turns along unless it would collide."""
        direction = self._checked(direction, ("left", "right"))
        rotation = (self.state.rotation + np.array([-90.0, 90.0])[direction]) % 360
        return self._change_body(direction != NOTHING, rotation=rotation)

    def stand(self, upright: np.ndarray) -> np.ndarray:
        """Crouches or stands up (0, 1); an agent that already does fails."""
        upright = self._checked(upright, ("crouch", "stand"))
        wanted = upright == 1
        return self._change_body((upright != NOTHING) & (wanted != self.state.standing), standing=wanted)

    def _change_body(self, worlds: np.ndarray, **changes: np.ndarray) -> np.ndarray:
        def carried(world: int, physics: Physics, now: Situation) -> Situation | None:
            then = Situation(**{**vars(now), **{name: values[world] for name, values in changes.items()}})
            return physics.carry(now, then)

        done = worlds & ~self.state.held
        for name, values in changes.items():
            setattr(self.state, name, np.where(done, values, getattr(self.state, name)))
        return done | self._simulate(worlds & self.state.held, carried)

    # Openables.

    def open(self, openable: np.ndarray) -> np.ndarray:
        """Opens a thing, by its number among the room's openables, unless it would hit the agent."""
        most = np.array([len(room.openables) for room in self.rooms])[self.room_of]
        openable = np.asarray(openable)
        if openable.shape != (len(self),) or (openable < NOTHING).any() or (openable >= np.maximum(most, 1)).any():
            raise ValueError(f"openables are numbers from -1 to {int(most.max()) - 1}, one for each of {len(self)} worlds")
        worlds = (openable != NOTHING) & (most > 0)
        worlds &= ~self.state.open[np.arange(len(self)), openable]
        worlds &= ~self._walking.swept_by(self.room_of, self.state.position, openable)
        return self._simulate(worlds, lambda world, physics, now: physics.swing(now, int(openable[world]), True))

    def open_at(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Opens what is at or near the centre of an image cell, if it is within reach; rows and columns 0 to 6."""
        row, column = (self._checked(index, range(cells.CELLS)) for index in (row, column))
        view = self.view(("ids", "depth"))
        found, pixel = cells.openables_at_cells(view.ids, self.openable_of_thing.to(view.ids.device))
        worlds = torch.arange(len(self), device=found.device)
        cell = (worlds, torch.as_tensor(row, device=found.device), torch.as_tensor(column, device=found.device))
        openable, pixel = found[cell], pixel[cell]
        depth = view.depth.reshape(len(self), -1)[worlds, pixel].cpu().numpy()
        point = self._point(pixel.cpu().numpy(), depth)
        near = (reach(self.state.position, point) <= REACH) & (row != NOTHING) & (column != NOTHING)
        return self.open(np.where(near, openable.cpu().numpy(), NOTHING))

    def close_near(self, worlds: np.ndarray) -> np.ndarray:
        """Closes all open things within reach; succeeds where at least one closed."""
        worlds = np.asarray(worlds, bool)
        near = self.state.open & worlds[:, None]
        near &= self._walking.reach(self.room_of, self.state.position) <= REACH

        def closed(world: int, physics: Physics, now: Situation) -> Situation | None:
            start = now
            for number in np.flatnonzero(near[world]):
                if not self._walking.swept_by(self.room_of[[world]], now.position[None], np.array([number]))[0]:
                    now = physics.swing(now, int(number), False) or now
            return now if now is not start else None

        return self._simulate(near.any(1), closed)

    # The hand.

    def hold(self, goal: np.ndarray) -> np.ndarray:
        """Takes a goal object, by its number in GOALS, into the hand at its default position."""
        goal = self._checked(goal, GOALS)
        return self._simulate(goal != NOTHING, lambda world, physics, now: physics.hold(now), goal)

    def move_hand(self, direction: np.ndarray) -> np.ndarray:
        """Moves the held object by 0.1 m: ahead, left, right, back, up, down (0 to 5), as the agent faces."""
        direction = self._checked(direction, HAND_MOVES)
        facing = ahead(self.state.rotation)
        right = np.stack([facing[:, 1], -facing[:, 0]], 1)
        level = np.stack([facing, -right, right, -facing])
        vectors = np.zeros((6, len(self), 3))
        vectors[:4, :, :2], vectors[4, :, 2], vectors[5, :, 2] = level, 1, -1
        return self._simulate(
            (direction != NOTHING) & self.state.held,
            lambda world, physics, now: physics.move_hand(now, vectors[direction[world], world]),
        )

    def rotate_hand(self, turn: np.ndarray) -> np.ndarray:
        """Turns the held object by 30 degrees about -X, +X, -Y, +Y, -Z, +Z (0 to 5): right, up and ahead of the agent.

        As in the paper's left-handed axes, -Y turns it counter-clockwise seen from above.
        """
        turn = self._checked(turn, HAND_TURNS)
        facing = np.concatenate([ahead(self.state.rotation), np.zeros((len(self), 1))], 1)
        up = np.tile([0.0, 0.0, 1.0], (len(self), 1))
        axes = np.stack([np.cross(facing, up), up, facing])
        return self._simulate(
            (turn != NOTHING) & self.state.held,
            lambda world, physics, now: physics.rotate_hand(
                now, axes[turn[world] // 2, world], HAND_TURN * (-1 if turn[world] % 2 else 1)
            ),
        )

    def drop(self, worlds: np.ndarray) -> np.ndarray:
        """Lets go of the held object and waits until it rests."""
        return self._simulate(np.asarray(worlds, bool) & self.state.held, lambda _, physics, now: physics.drop(now))

    def remove(self, worlds: np.ndarray) -> None:
        """Takes the goal object out of the room."""
        worlds = np.asarray(worlds, bool)
        self.state.goal[worlds], self.state.held[worlds] = NOTHING, False

    def contained(self) -> np.ndarray:
        """The id of the thing that contains the goal object, (B,); -1 where none does."""
        found = np.full(len(self), NOTHING)

        def look(world: int, physics: Physics, now: Situation) -> None:
            found[world] = physics.contains(now)

        self._simulate(self.state.goal != NOTHING, look)
        return found

    # Pictures.

    def view(self, kinds: Sequence[str] = ("rgb",), groups: Sequence[int] = EVERYTHING) -> View:
        """What the agents' cameras see: any of rgb, depth, ids, normals."""
        if unknown := set(kinds) - set(KINDS):
            raise ValueError(f"unknown kinds of picture {sorted(unknown)}; there are {', '.join(KINDS)}")
        s = self.state
        eye, matrix = cameras(s.position, s.rotation, s.standing)
        return self.renderer.draw(Shot(eye, matrix, s.open, s.goal, s.pose), kinds, groups)

    def goal_pixels(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Two masks (B, size, size): the goal object's pixels as seen, and those with all else invisible."""
        return self._goal_mask(self.view(("ids",))), self._goal_mask(self.view(("ids",), GOAL_ALONE))

    def _goal_mask(self, view: View) -> torch.Tensor:
        things = np.array([len(self.rooms[room].room.things) for room in self.room_of])
        ids = torch.as_tensor(np.where(self.state.goal == NOTHING, -2, things + self.state.goal), device=view.ids.device)
        return view.ids == ids[:, None, None]

    # Inside.

    def _simulate(
        self,
        worlds: np.ndarray,
        act: Callable[[int, Physics, Situation], Situation | None],
        goal: np.ndarray | None = None,
    ) -> np.ndarray:
        """Runs an action's physics in threads for the worlds that need it, and keeps what succeeded."""
        s, done = self.state, np.zeros(len(self), bool)
        kinds = s.goal if goal is None else np.where(worlds, goal, s.goal)

        def one(world: int) -> Situation | None:
            number = self.room_of[world]
            room, idle = self.rooms[number], self._physics[number]
            try:
                physics = idle.get_nowait()
            except Empty:
                physics = Physics(room)
            kind = GOALS[kinds[world]] if kinds[world] != NOTHING else ""
            now = Situation(s.position[world], s.rotation[world], bool(s.standing[world]),
                            s.open[world, : len(room.openables)], kind, s.pose[world], bool(s.held[world]))  # fmt: skip
            result = act(world, physics, now)
            idle.put(physics)
            return result

        chosen = np.flatnonzero(worlds)
        for world, then in zip(chosen, self._threads.map(one, chosen), strict=True):
            if then is not None:
                done[world] = True
                s.rotation[world], s.standing[world] = then.rotation, then.standing
                s.open[world, : len(then.open)] = then.open
                s.goal[world], s.pose[world], s.held[world] = kinds[world], then.pose, then.held
        return done

    def _checked(self, action: np.ndarray, names: Sequence) -> np.ndarray:
        action = np.asarray(action)
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            raise ValueError(f"one whole number for each of {len(self)} worlds is needed, not {action.dtype} {action.shape}")
        if (action < NOTHING).any() or (action >= len(names)).any():
            wrong = action[(action < NOTHING) | (action >= len(names))][0]
            raise ValueError(f"action {wrong} is out of range: -1 for nothing, or 0 to {len(names) - 1} for {', '.join(map(str, names))}")
        return action

    def _initial_state(self) -> State:
        """Agents stand at the first reachable position of their room, everything is closed, no goal object is there."""
        count = len(self)
        position = np.stack([self.reachable[room].positions[0] for room in self.room_of])
        pose = np.tile([0.0, 0, 0, 1, 0, 0, 0], (count, 1))
        return State(
            position, np.zeros(count), np.ones(count, bool), np.zeros((count, self._openables), bool),
            np.full(count, NOTHING), pose, np.zeros(count, bool),
        )  # fmt: skip

    def _openable_table(self) -> torch.Tensor:
        """Each thing's number among its room's openables, (B, most things + 1); -1 for none and for no thing."""
        most = max(len(room.things) for room in self.rooms)
        table = np.full((len(self.rooms), most + 1), NOTHING)
        for row, room in zip(table, self.rooms, strict=True):
            for number, openable in enumerate(room.openables):
                row[openable.thing] = number
        return torch.from_numpy(table[self.room_of])

    def _point(self, pixel: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Where pixels (B,) of a depth (B,) are in their rooms, (B, 3)."""
        eye, matrix = cameras(self.state.position, self.state.rotation, self.state.standing)
        x = (pixel % self.size + 0.5) / self.size * 2 - 1
        y = 1 - (pixel // self.size + 0.5) / self.size * 2
        local = np.stack([x, y, -np.ones_like(x)], 1) * depth[:, None]
        return eye + np.einsum("bij,bj->bi", matrix, local)


def make_renderer(
    name: str, rooms: Sequence[Compiled], copies: int, size: int, shadows: bool = False, culled: bool = False
) -> Renderer:
    """A renderer by name: 'opengl', 'warp' (on the CPU), or 'auto', the faster of them that works.

    `culled` leaves out surfaces seen from behind, so that one can look into a room from outside.
    """
    if name not in ("auto", "opengl", "warp"):
        raise ValueError(f"unknown renderer {name!r}; there are auto, opengl and warp")
    if name != "warp":
        try:
            return OpenGL(rooms, copies, size, shadows, culled)
        except RendererError:
            if name == "opengl":
                raise
    from scrubjay.world.render_warp import Warp  # Imported late: Warp looks for devices and compiles its kernel.

    return Warp(rooms, copies, size, culled=culled)


def _compiled(room: str | Room | Compiled) -> Compiled:
    if isinstance(room, Compiled):
        return room
    return compile_room(make_room(room) if isinstance(room, str) else room)
