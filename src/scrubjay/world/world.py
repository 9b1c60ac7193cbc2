"""B rooms that can be acted in and looked at, always with a leading batch axis.

State is a few numbers a world; pictures are a function of it. Actions take one number for each world, with -1 for the
worlds that do nothing, and return which of them succeeded; a failed action changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

import numpy as np
import torch

from scrubjay.world import cells
from scrubjay.world.clear import Clearings
from scrubjay.world.floor import GRID, Grid
from scrubjay.world.generate import make_room
from scrubjay.world.mjcf import Compiled, compile_room
from scrubjay.world.physics import HAND_AHEAD, HAND_BELOW, HAND_STEP, HAND_TURN, SWEPT_STEP, Physics, Situation
from scrubjay.world.place import REACH, Place, ahead, cameras, in_view, reach
from scrubjay.world.renderers import check_request, make_renderer
from scrubjay.world.room import GOALS, Room
from scrubjay.world.state import initial_state
from scrubjay.world.turns import about, multiplied
from scrubjay.world.view import EVERYTHING, GOAL_ALONE, KINDS, Renderer, Shot, View
from scrubjay.world.walking import Floors

NOTHING = -1
MOVES = ("ahead", "left", "right")
HAND_MOVES = ("ahead", "left", "right", "back", "up", "down")
HAND_TURNS = ("-X", "+X", "-Y", "+Y", "-Z", "+Z")


class World:
    """Rooms to act in. World b is copy `b % copies` of room `b // copies`."""

    def __init__(
        self,
        rooms: Sequence[str | Room | Compiled],
        copies: int = 1,
        renderer: str = "auto",
        size: int = 224,
        device: str = "cpu",
        threads: int | None = None,
        shadows: bool = False,
    ) -> None:
        """Rooms by name, as data or compiled; see `make_renderer` for renderers and devices."""
        if not rooms or copies < 1:
            raise ValueError("a world needs at least one room and one copy of it")
        if size < 7 or size % cells.CELLS:
            raise ValueError(f"the image size {size} is not a multiple of {cells.CELLS}, the cells of a side")
        check_request(renderer, device, len(rooms), copies, size)
        self.rooms = [_compiled(room) for room in rooms]
        self.copies, self.size = copies, size
        self.room_of = np.repeat(np.arange(len(self.rooms)), copies)
        self._threads = ThreadPoolExecutor(threads or os.cpu_count(), thread_name_prefix="physics")
        self._make_renderer = lambda: make_renderer(renderer, self.rooms, copies, size, device, shadows)
        self._renderer: Renderer | None = None
        self._gather()
        self.state = initial_state(self._first_positions(), self.openable_count.max(initial=1))

    def __len__(self) -> int:
        return len(self.room_of)

    @property
    def renderer(self) -> Renderer:
        """Made when first looked through: acting needs no pixels."""
        if self._renderer is None:
            self._renderer = self._make_renderer()
        return self._renderer

    def replace(self, number: int, room: str | Room | Compiled) -> None:
        """Puts another room in one's place, while the others play on; its copies start anew."""
        self.rooms[number] = _compiled(room)
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
        x, y = map(float, self.state.position[world])
        return Place(x, y, float(self.state.rotation[world]), bool(self.state.standing[world]))

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
        most = self.openable_count[self.room_of]
        openable = np.asarray(openable)
        if openable.shape != (len(self),) or (openable < NOTHING).any() or (openable >= np.maximum(most, 1)).any():
            last = int(most.max()) - 1
            raise ValueError(f"openables are numbers from -1 to {last}, one for each of {len(self)} worlds")
        worlds = (openable != NOTHING) & (most > 0)
        worlds &= ~self.state.open[np.arange(len(self)), openable]
        worlds &= ~self._walking.swept_by(self.room_of, self.state.position, openable)
        alone = worlds & (self.state.goal == NOTHING)
        self.state.open[alone, openable[alone]] = True
        return alone | self._simulate(
            worlds & ~alone, lambda world, physics, now: physics.swing(now, int(openable[world]), True)
        )

    def open_at(self, row: np.ndarray, column: np.ndarray, view: View | None = None) -> np.ndarray:
        """Opens what is at or near the centre of an image cell, if it is within reach; rows and columns 0 to 6.

        A view with ids and depth of the worlds as they are saves taking one.
        """
        row, column = (self._checked(index, range(cells.CELLS)) for index in (row, column))
        view = view or self.view(("ids", "depth"))
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
        some = np.flatnonzero(near.any(1))
        near[some] &= self._walking.reach(self.room_of[some], self.state.position[some]) <= REACH

        def closed(world: int, physics: Physics, now: Situation) -> Situation | None:
            start = now
            for number in np.flatnonzero(near[world]):
                if not self._walking.swept_by(self.room_of[[world]], now.position[None], np.array([number]))[0]:
                    now = physics.swing(now, int(number), False) or now
            return now if now is not start else None

        return self._simulate(near.any(1), closed)

    # The hand.

    def hold(self, goal: np.ndarray) -> np.ndarray:
        """Takes a goal object, by its number in GOALS, into the hand at its default position, or near it."""
        goal = self._checked(goal, GOALS)
        s, worlds = self.state, goal != NOTHING
        eye, _ = cameras(s.position, s.rotation, s.standing)
        pose = np.concatenate([eye, about(np.array([0.0, 0, 1]), -s.rotation)], 1)
        pose[:, :2] += HAND_AHEAD * ahead(s.rotation)
        pose[:, 2] -= HAND_BELOW
        free = self._clear(worlds, goal, pose[:, :3], pose[:, :3])
        s.goal, s.held = np.where(free, goal, s.goal), s.held | free
        s.pose = np.where(free[:, None], pose, s.pose)
        return free | self._simulate(worlds & ~free, lambda world, physics, now: physics.hold(now), goal)

    def move_hand(self, direction: np.ndarray) -> np.ndarray:
        """Moves the held object by 0.1 m: ahead, left, right, back, up, down (0 to 5), as the agent faces."""
        direction = self._checked(direction, HAND_MOVES)
        s, worlds = self.state, (direction != NOTHING) & self.state.held
        if not worlds.any():
            return worlds
        facing = ahead(s.rotation)
        right = np.stack([facing[:, 1], -facing[:, 0]], 1)
        vectors = np.zeros((6, len(self), 3))
        vectors[:4, :, :2], vectors[4, :, 2], vectors[5, :, 2] = np.stack([facing, -right, right, -facing]), 1, -1
        way = vectors[direction, np.arange(len(self))]
        # In clear space it goes as far as arm and view allow, in steps; else the engine says how far.
        steps = np.arange(1, round(HAND_STEP / SWEPT_STEP) + 1) * SWEPT_STEP
        points = s.pose[:, None, :3] + steps[:, None] * way[:, None]
        eye, matrix = cameras(s.position, s.rotation, s.standing)
        allowed = reach(s.position[:, None], points) <= REACH
        allowed &= in_view(eye[:, None], matrix[:, None], points)
        reached = np.minimum.accumulate(allowed, 1).sum(1)
        free = self._clear(worlds, s.goal, s.pose[:, :3], points[:, -1])
        done = free & (reached > 0)
        s.pose[done, :3] = points[done, reached[done] - 1]
        return done | self._simulate(worlds & ~free, lambda world, physics, now: physics.move_hand(now, way[world]))

    def rotate_hand(self, turn: np.ndarray) -> np.ndarray:
        """Turns the held object by 30 degrees about -X, +X, -Y, +Y, -Z, +Z (0 to 5): right, up and ahead of the agent.

        As in the paper's left-handed axes, -Y turns it counter-clockwise seen from above.
        """
        turn = self._checked(turn, HAND_TURNS)
        s, worlds = self.state, (turn != NOTHING) & self.state.held
        if not worlds.any():
            return worlds
        facing = np.concatenate([ahead(s.rotation), np.zeros((len(self), 1))], 1)
        up = np.tile([0.0, 0.0, 1.0], (len(self), 1))
        axis = np.stack([np.cross(facing, up), up, facing])[turn // 2, np.arange(len(self))]
        degrees = np.where(turn % 2, -HAND_TURN, HAND_TURN)
        free = self._clear(worlds, s.goal, s.pose[:, :3], s.pose[:, :3])
        s.pose[free, 3:] = multiplied(about(axis, degrees), s.pose[:, 3:])[free]
        return free | self._simulate(
            worlds & ~free, lambda world, physics, now: physics.rotate_hand(now, axis[world], float(degrees[world]))
        )

    def drop(self, worlds: np.ndarray) -> np.ndarray:
        """Lets go of the held object and waits until it rests."""
        return self._simulate(np.asarray(worlds, bool) & self.state.held, lambda _, physics, now: physics.drop(now))

    def remove(self, worlds: np.ndarray) -> None:
        """Takes the goal object out of the room."""
        worlds = np.asarray(worlds, bool)
        self.state.goal[worlds], self.state.held[worlds] = NOTHING, False

    def contained(self, worlds: np.ndarray | bool = True) -> np.ndarray:
        """The id of the thing that contains the goal object, (B,); -1 where none does, or where it is not asked for."""
        found = np.full(len(self), NOTHING)

        def look(world: int, physics: Physics, now: Situation) -> None:
            found[world] = physics.contains(now)

        self._simulate((self.state.goal != NOTHING) & worlds, look)
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
        return self.goal_mask(self.view(("ids",))), self.goal_mask(self.view(("ids",), GOAL_ALONE))

    def goal_mask(self, view: View) -> torch.Tensor:
        """Where in a view with ids the goal objects are, (B, size, size)."""
        things = np.array([len(room.room.things) for room in self.rooms])[self.room_of]
        goal = np.where(self.state.goal == NOTHING, -2, things + self.state.goal)
        return torch.eq(view.ids, torch.as_tensor(goal, device=view.ids.device)[:, None, None])

    # Inside.

    def _gather(self) -> None:
        """What is looked up for all worlds together, from the rooms as they are now."""
        self.openable_count = np.array([len(room.openables) for room in self.rooms])
        self.reachable = [room.floor.reachable() for room in self.rooms]
        self._walking = Floors([room.floor for room in self.rooms])
        self._clearings = Clearings(self.rooms)
        self._physics: list[SimpleQueue[Physics]] = [SimpleQueue() for _ in self.rooms]
        self.openable_of_thing = self._openable_table()

    def _first_positions(self) -> np.ndarray:
        return np.stack([self.reachable[room].positions[0] for room in self.room_of])

    def _clear(self, worlds: np.ndarray, goal: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """In which of some worlds objects on their ways meet nothing."""
        some, free = np.flatnonzero(worlds), np.zeros(len(self), bool)
        if len(some):
            free[some] = self._clearings.clear(
                self.room_of[some], self.state.open[some], goal[some], start[some], end[some]
            )
        return free

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
            given = f"{action.dtype} {action.shape}"
            raise ValueError(f"one whole number for each of {len(self)} worlds is needed, not {given}")
        if (action < NOTHING).any() or (action >= len(names)).any():
            wrong = action[(action < NOTHING) | (action >= len(names))][0]
            allowed = f"-1 for nothing, or 0 to {len(names) - 1} for {', '.join(map(str, names))}"
            raise ValueError(f"action {wrong} is out of range: {allowed}")
        return action

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


def _compiled(room: str | Room | Compiled) -> Compiled:
    if isinstance(room, Compiled):
        return room
    return compile_room(make_room(room) if isinstance(room, str) else room)
