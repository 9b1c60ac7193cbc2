"""A batch of B worlds to act in and to render; all arrays have a leading batch axis.

The state is a few numbers per world, and images are a function of it. Actions take one integer per world, -1 for no
action, and return which succeeded, (B,) bool; a failed action changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from scrubjay import tree
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import GRID, Grid
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim import cells
from scrubjay.sim.base_world import HAND_MOVES, HAND_TURNS, MOVES, NOTHING, BaseWorld
from scrubjay.sim.broadphase import Broadphase
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom, compile_room
from scrubjay.sim.containment import Containment, things_within
from scrubjay.sim.physics import HAND_AHEAD, HAND_BELOW, HAND_STEP, HAND_TURN, SWEEP_STEP
from scrubjay.sim.physics_pool import Pending, PhysicsPool, PhysicsThreads
from scrubjay.sim.pose import REACH, AgentPose, cameras, hand_directions, in_view, reach
from scrubjay.sim.quaternion import quat_from_axis_angle, quat_mul
from scrubjay.sim.render.base import EVERYTHING, KINDS, Renderer, Shot, View
from scrubjay.sim.render.make import check_request, make_renderer
from scrubjay.sim.state import State, initial_state
from scrubjay.sim.walking import Floors

_process = os.getpid()


class World(BaseWorld):
    """A batch of rooms to act in. World b is copy `b % copies` of room `b // copies`."""

    rooms: list[CompiledRoom]

    def __init__(
        self,
        rooms: Sequence[str | Room | CompiledRoom],
        copies: int = 1,
        renderer: str = "auto",
        size: int = 224,
        device: str = "cpu",
        threads: int | None = None,
        shadows: bool = False,
        physics: PhysicsPool | None = None,
    ) -> None:
        """Takes rooms by name, as data or compiled; see `make_renderer` for renderers and devices.

        Physics runs in `threads` threads of its own, or in a shared pool `physics`, which the caller closes.
        """
        if not rooms or copies < 1:
            raise ValueError("a world needs at least one room and one copy of it")
        if size < 7 or size % cells.CELLS:
            raise ValueError(f"the image size {size} is not a multiple of {cells.CELLS}, the cells of a side")
        check_request(renderer, device, len(rooms), copies, size)
        self._made_of = list(rooms)
        self._options = dict(renderer=renderer, size=size, device=device, threads=threads, shadows=shadows)
        self.closed = False
        self.rooms = [_compiled(room) for room in rooms]
        self.copies, self.size, self._device = copies, size, device
        self.room_of = np.repeat(np.arange(len(self.rooms)), copies)
        self._physics: PhysicsPool = physics or PhysicsThreads(threads)
        self._shared_physics = physics is not None
        self._deferred: list[tuple[np.ndarray, State, Pending]] | None = None
        """Physics not yet received, if it is deferred: worlds, their states, and what waits for it."""
        self._make_renderer = lambda: make_renderer(renderer, self.rooms, copies, size, device, shadows)
        self._renderer: Renderer | None = None
        self._gather()
        self.state = initial_state(self._first_positions(), self.openable_count.max(initial=1))

    @property
    def renderer(self) -> Renderer:
        """Created on first use, since acting needs no pixels."""
        if self._renderer is None:
            self._renderer = self._make_renderer()
        return self._renderer

    @property
    def renderer_name(self) -> str:
        return self.renderer.name

    def replace(self, number: int, room: str | Room | CompiledRoom) -> None:
        """Replaces a room and resets its copies; the other worlds keep their state."""
        before, self.rooms[number], self._made_of[number] = self.rooms[number], _compiled(room), room
        self._physics.forget(before)
        self._gather()
        fresh = initial_state(
            self._first_positions(), max(self.state.open.shape[1], self.openable_count.max(initial=1))
        )
        kept = self.room_of != number
        for name, values in vars(self.state).items():
            new = getattr(fresh, name)
            if name == "open":
                new[kept, : values.shape[1]] = values[kept]
            else:
                new[kept] = values[kept]
        self.state = fresh
        if self._renderer is not None:
            self._renderer.replace(number, self.rooms[number])

    def __reduce__(self) -> tuple:
        """Pickles and copies what it was made from and its state; the copy has physics and a renderer of its own."""
        return _remake, (self._made_of, self.copies, self._options, self.state)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if not self._shared_physics:
            self._physics.close()
        if self._renderer is not None:
            self._renderer.close()

    # Where agents are.

    def can_stand(self) -> np.ndarray:
        """Whether the agents' bodies fit where they are, (B,) bool."""
        return self._floors.free(self.room_of, self.state.position, self.state.open)

    def set_agent_pose(self, world: int, pose: AgentPose) -> None:
        """Moves an agent. Raises ValueError where a body cannot stand."""
        point = np.array([[pose.x, pose.y]], float)
        here = slice(world, world + 1)
        if not self._floors.free(self.room_of[here], point, self.state.open[here])[0]:
            scene = self.rooms[self.room_of[world]].room.scene
            raise ValueError(f"no body can stand at ({pose.x:.2f}, {pose.y:.2f}) in {scene}")
        self.state.position[world] = point
        self.state.rotation[world] = pose.rotation % 360
        self.state.standing[world] = pose.standing

    def grid(self, world: int) -> Grid:
        """The positions that an agent can reach from its own, on a grid aligned with its rotation."""
        angle = self.state.rotation[world] % 90
        return self.rooms[self.room_of[world]].floor.grid(self.state.position[world], angle)

    def move(self, direction: np.ndarray) -> np.ndarray:
        """Moves by 0.25 m ahead, left or right (0, 1, 2)."""
        direction = self._checked(direction, MOVES)
        turn = np.array([0.0, -90.0, 90.0])[direction]
        step = GRID * facing_vector(self.state.rotation + turn)
        here = self.state.position
        free = (direction != NOTHING) & ~self.state.held
        for share in (0.5, 1.0):
            free &= self._floors.free(self.room_of, here + share * step, self.state.open)
        self.state.position = np.where(free[:, None], here + step, here)
        return free

    def rotate(self, direction: np.ndarray) -> np.ndarray:
        """Turns left or right by 90 degrees (0, 1); fails if a held object would collide."""
        direction = self._checked(direction, ("left", "right"))
        rotation = (self.state.rotation + np.array([-90.0, 90.0])[direction]) % 360
        return self._change_body(direction != NOTHING, rotation, self.state.standing)

    def stand(self, upright: np.ndarray) -> np.ndarray:
        """Crouches or stands up (0, 1); fails if the agent already does."""
        upright = self._checked(upright, ("crouch", "stand"))
        wanted = upright == 1
        changes = (upright != NOTHING) & (wanted != self.state.standing)
        return self._change_body(changes, self.state.rotation, wanted)

    def _change_body(self, worlds: np.ndarray, rotation: np.ndarray, standing: np.ndarray) -> np.ndarray:
        s, done = self.state, worlds & ~self.state.held
        s.rotation, s.standing = np.where(done, rotation, s.rotation), np.where(done, standing, s.standing)
        return done | self._simulate(worlds & s.held, "carry", rotation, standing)

    # Openables.

    def open(self, openable: np.ndarray) -> np.ndarray:
        """Opens things by their numbers among the rooms' openables; fails if one would hit the agent."""
        most = self.openable_count[self.room_of]
        openable = np.asarray(openable)
        if openable.shape != (len(self),) or (openable < NOTHING).any() or (openable >= np.maximum(most, 1)).any():
            last = int(most.max()) - 1
            raise ValueError(f"openables are numbers from -1 to {last}, one for each of {len(self)} worlds")
        worlds = (openable != NOTHING) & (most > 0)
        worlds &= ~self.state.open[np.arange(len(self)), openable]
        worlds &= ~self._floors.swept_by(self.room_of, self.state.position, openable)
        indices = np.flatnonzero(worlds)
        indices = indices[self._untouched(indices, openable[indices])]
        self.state.open[indices, openable[indices]] = True
        free = np.isin(np.arange(len(self)), indices)
        return free | self._simulate(worlds & ~free, "move_openable", openable, np.ones(len(self), bool))

    def close_near(self, worlds: np.ndarray) -> np.ndarray:
        """Closes all open things within reach; succeeds where at least one closed."""
        worlds = np.asarray(worlds, bool)
        near = self.state.open & worlds[:, None]
        indices = np.flatnonzero(near.any(1))
        near[indices] &= self._floors.reach(self.room_of[indices], self.state.position[indices]) <= REACH
        pairs = np.nonzero(near)
        near[pairs] = ~self._floors.swept_by(self.room_of[pairs[0]], self.state.position[pairs[0]], pairs[1])
        pairs = np.nonzero(near)
        touched = np.isin(np.arange(len(self)), pairs[0][~self._untouched(*pairs)])
        free = near.any(1) & ~touched
        self.state.open[free] &= ~near[free]
        return free | self._simulate(touched, "close", near)

    def _untouched(self, world: np.ndarray, openable: np.ndarray) -> np.ndarray:
        """Whether openables (n,) of worlds (n,) move without touching the goal object, (n,) bool."""
        s = self.state
        away = self._broadphase.untouched(self.room_of[world], openable, s.goal[world], s.pose[world, :3])
        return away | (s.goal[world] == NOTHING)

    # The hand.

    def hold(self, goal: np.ndarray) -> np.ndarray:
        """Puts a goal object, by its number in GOALS, into the hand at its default position, or near it."""
        goal = self._checked(goal, GOALS)
        s, worlds = self.state, goal != NOTHING
        eye, _ = cameras(s.position, s.rotation, s.standing)
        pose = np.concatenate([eye, quat_from_axis_angle(np.array([0.0, 0, 1]), -s.rotation)], 1)
        pose[:, :2] += HAND_AHEAD * facing_vector(s.rotation)
        pose[:, 2] -= HAND_BELOW
        free = self._clear(worlds, goal, pose[:, :3], pose[:, :3])
        s.goal, s.held = np.where(free, goal, s.goal), s.held | free
        s.pose = np.where(free[:, None], pose, s.pose)
        return free | self._simulate(worlds & ~free, "hold", goal=goal)

    def move_hand(self, direction: np.ndarray) -> np.ndarray:
        """Moves the held object by 0.1 m: ahead, left, right, back, up, down (0 to 5), as the agent faces."""
        direction = self._checked(direction, HAND_MOVES)
        s, worlds = self.state, (direction != NOTHING) & self.state.held
        if not worlds.any():
            return worlds
        way = hand_directions(s.rotation)[direction, np.arange(len(self))]
        # In free space it moves in steps as far as arm and view allow; elsewhere physics decides.
        steps = np.arange(1, round(HAND_STEP / SWEEP_STEP) + 1) * SWEEP_STEP
        points = s.pose[:, None, :3] + steps[:, None] * way[:, None]
        eye, matrix = cameras(s.position, s.rotation, s.standing)
        allowed = reach(s.position[:, None], points) <= REACH
        allowed &= in_view(eye[:, None], matrix[:, None], points)
        reached = np.minimum.accumulate(allowed, 1).sum(1)
        free = self._clear(worlds, s.goal, s.pose[:, :3], points[:, -1])
        done = free & (reached > 0)
        s.pose[done, :3] = points[done, reached[done] - 1]
        return done | self._simulate(worlds & ~free, "move_hand", way)

    def move_hand_to(self, point: np.ndarray) -> np.ndarray:
        """Moves held objects straight to points (B, 3), NaN for none; they stay unless arm, view and free air allow it.

        No action of the game: training begins manipulations elsewhere with it.
        """
        s = self.state
        worlds = s.held & (reach(s.position, point) <= REACH)
        worlds &= in_view(*cameras(s.position, s.rotation, s.standing), point)
        free = self._clear(worlds, s.goal, s.pose[:, :3], point)
        s.pose[free, :3] = point[free]
        return free

    def rotate_hand(self, turn: np.ndarray) -> np.ndarray:
        """Turns the held object by 30 degrees about -X, +X, -Y, +Y, -Z, +Z (0 to 5): right, up and ahead of the agent.

        As in the paper's left-handed axes, -Y turns it counter-clockwise seen from above.
        """
        turn = self._checked(turn, HAND_TURNS)
        s, worlds = self.state, (turn != NOTHING) & self.state.held
        if not worlds.any():
            return worlds
        facing = np.concatenate([facing_vector(s.rotation), np.zeros((len(self), 1))], 1)
        up = np.tile([0.0, 0.0, 1.0], (len(self), 1))
        axis = np.stack([np.cross(facing, up), up, facing])[turn // 2, np.arange(len(self))]
        degrees = np.where(turn % 2, -HAND_TURN, HAND_TURN)
        free = self._clear(worlds, s.goal, s.pose[:, :3], s.pose[:, :3])
        s.pose[free, 3:] = quat_mul(quat_from_axis_angle(axis, degrees), s.pose[:, 3:])[free]
        return free | self._simulate(worlds & ~free, "rotate_hand", axis, degrees)

    def drop(self, worlds: np.ndarray) -> np.ndarray:
        """Drops the held object and simulates until it rests."""
        return self._simulate(np.asarray(worlds, bool) & self.state.held, "drop")

    def remove(self, worlds: np.ndarray) -> None:
        """Removes the goal object from the room."""
        worlds = np.asarray(worlds, bool)
        self.state.goal[worlds], self.state.held[worlds] = NOTHING, False

    def contained(self, worlds: np.ndarray | bool = True, points: np.ndarray | None = None) -> np.ndarray:
        """The id of the thing that contains the goal object, (B,); -1 for none, and outside `worlds`.

        `points` (B, 3) are looked up instead of the objects' centers.
        """
        s, thing = self.state, np.full(len(self), NOTHING)
        indices = np.flatnonzero((s.goal != NOTHING) & ~s.held & worlds)
        points = s.pose[:, :3] if points is None else points
        thing[indices] = self._containment.containing(self.room_of[indices], s.open[indices], points[indices])
        return thing

    # Physics in the background.

    def defer_physics(self) -> None:
        """From now on actions start physics without waiting for it, and succeed in `receive_physics`.

        A world may take one action until then.
        """
        self._deferred = self._deferred or []

    @property
    def awaits_physics(self) -> bool:
        """Is there anything to receive?"""
        return bool(self._deferred)

    def receive_physics(self) -> np.ndarray:
        """Waits for the deferred physics, and defers no more; returns which actions succeeded, (B,) bool."""
        deferred, self._deferred = self._deferred or [], None
        success = np.zeros(len(self), bool)
        for one in deferred:
            success |= self._receive(*one)
        return success

    # Pictures.

    def view(
        self,
        kinds: Sequence[str] = ("rgb",),
        groups: Sequence[int] = EVERYTHING,
        worlds: np.ndarray | None = None,
        without: np.ndarray | None = None,
        hidden: np.ndarray | None = None,
    ) -> View:
        """Renders the agents' views: any of rgb, depth, ids, normals; of `worlds` (B,) bool only, or of all.

        `without` (B,) are ids of things that are left out, each with all that is in or on it; -1 leaves out nothing.
        Only the image changes. A goal object that the thing contains is left out too; its shade on the floor stays.
        `hidden` (B,) bool: goal objects that are left out, in every step of training, where `without` is too slow.
        """
        if unknown := set(kinds) - set(KINDS):
            raise ValueError(f"unknown kinds of picture {sorted(unknown)}; there are {', '.join(KINDS)}")
        _survive_fork()
        shot = Shot.from_state(self.state, self._some(worlds))
        if without is not None:
            shot = self._leave_out(shot, np.asarray(without))
        if hidden is not None:
            shot = replace(shot, goal=np.where(hidden[shot.worlds], NOTHING, shot.goal))
        return self.renderer.draw(shot, kinds, groups)

    # Inside.

    def _gather(self) -> None:
        """Stacks the rooms' lookup tables, so that all worlds are looked up at once."""
        self.openable_count = np.array([len(room.openables) for room in self.rooms])
        self.reachable = [room.floor.reachable() for room in self.rooms]
        self._floors = Floors([room.floor for room in self.rooms])
        self._broadphase = Broadphase(self.rooms)
        self._containment = Containment(self.rooms)
        self._thing_count = np.array([len(room.room.things) for room in self.rooms])
        self.openable_of_thing = torch.from_numpy(cells.openable_table(self.rooms)[self.room_of])
        self._openables = self.openable_of_thing.to(self._device)

    def _leave_out(self, shot: Shot, without: np.ndarray) -> Shot:
        """A shot without the things (B,), and what is in or on them."""
        last = self._thing_count[self.room_of] + len(GOALS) - 1
        if without.shape != (len(self),) or not np.issubdtype(without.dtype, np.integer):
            raise ValueError(
                f"without needs one thing for each of {len(self)} worlds, not {without.dtype} {without.shape}"
            )
        if (without < NOTHING).any() or (without > last).any():
            wrong = int(np.flatnonzero((without < NOTHING) | (without > last))[0])
            raise ValueError(
                f"world {wrong} has things 0 to {last[wrong]}, so it cannot be drawn without {without[wrong]}"
            )
        if (without == NOTHING).all():
            return shot
        left_out = np.zeros((len(self), int(self._thing_count.max())), bool)
        for world in np.flatnonzero(without != NOTHING):
            things = self._thing_count[self.room_of[world]]
            left_out[world, :things] = things_within(self.rooms[self.room_of[world]])[without[world], :things]
        held_in = self.contained(without != NOTHING)
        own = np.where(self.state.goal == NOTHING, NOTHING, self._thing_count[self.room_of] + self.state.goal)
        worlds, numbers = shot.worlds, np.arange(len(self))
        gone = ((held_in != NOTHING) & left_out[numbers, held_in]) | ((own != NOTHING) & (own == without))
        return replace(shot, goal=np.where(gone[worlds], NOTHING, shot.goal), left_out=left_out[worlds])

    def _first_positions(self) -> np.ndarray:
        return np.stack([self.reachable[room].positions[0] for room in self.room_of])

    def _clear(self, worlds: np.ndarray, goal: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """In which worlds objects move from `start` to `end` through free space."""
        indices, free = np.flatnonzero(worlds), np.zeros(len(self), bool)
        if len(indices):
            free[indices] = self._broadphase.clear(
                self.room_of[indices], self.state.open[indices], goal[indices], start[indices], end[indices]
            )
        return free

    def _simulate(
        self, worlds: np.ndarray, method: str, *arguments: np.ndarray, goal: np.ndarray | None = None
    ) -> np.ndarray:
        """Runs a method of `Physics` in `worlds`, with their rows of its arguments; returns which succeeded."""
        indices = np.flatnonzero(worlds)
        if not len(indices):
            return np.zeros(len(self), bool)
        now = tree.index(self.state, indices)
        if goal is not None:
            now.goal = goal[indices]
        rooms = [self.rooms[number] for number in self.room_of[indices]]
        pending = self._physics.submit(rooms, method, now, *(values[indices] for values in arguments))
        if self._deferred is None:
            return self._receive(indices, now, pending)
        self._deferred.append((indices, now, pending))
        return np.zeros(len(self), bool)

    def _receive(self, indices: np.ndarray, now: State, pending: Pending) -> np.ndarray:
        """Waits for physics in worlds, given by index, with their states; returns which succeeded, (B,) bool."""
        done = pending()
        indices = indices[done]
        tree.index_put_(self.state, indices, tree.index(now, done))
        return np.isin(np.arange(len(self)), indices)


def _survive_fork() -> None:
    """A fork has none of PyTorch's threads, and would wait for them for ever: it computes without."""
    global _process
    if os.getpid() != _process:
        torch.set_num_threads(1)
        _process = os.getpid()


def _remake(rooms: list[str | Room | CompiledRoom], copies: int, options: dict[str, Any], state: State) -> World:
    world = World(rooms, copies, **options)
    world.state = state.copy()
    return world


def _compiled(room: str | Room | CompiledRoom) -> CompiledRoom:
    if isinstance(room, CompiledRoom):
        return room
    return build_room(room) if isinstance(room, str) else compile_room(room)
