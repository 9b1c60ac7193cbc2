"""Worlds on AI2-THOR: our game, its players and agents in AI2-THOR's scenes, through its own client.

One controller for each world, each in a thread of its own. The state is what the game reads and writes; before an
action or a view, what was written to it is carried over to AI2-THOR, and afterwards it holds what AI2-THOR tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from scrubjay.errors import ThorError
from scrubjay.game.record import REMOTE
from scrubjay.rooms.floor import Grid
from scrubjay.rooms.room import GOALS
from scrubjay.sim import cells
from scrubjay.sim.base_world import HAND_MOVES, HAND_TURNS, MOVES, NOTHING, BaseWorld
from scrubjay.sim.physics import HAND_STEP, HAND_TURN
from scrubjay.sim.pose import REACH, AgentPose, cameras
from scrubjay.sim.render.base import EVERYTHING, GOAL_ALONE, KINDS, View
from scrubjay.sim.state import State, initial_state
from scrubjay.thor.remote import RemoteScene
from scrubjay.thor.remote_room import RemoteRoom

WALKS = ("MoveAhead", "MoveLeft", "MoveRight")
SAME = 1e-6
"""Meters, degrees or units of a quaternion that make no difference."""
HAND_OFFSETS = {
    "ahead": {"ahead": HAND_STEP}, "left": {"right": -HAND_STEP}, "right": {"right": HAND_STEP},
    "back": {"ahead": -HAND_STEP}, "up": {"up": HAND_STEP}, "down": {"up": -HAND_STEP},
}  # fmt: skip
HAND_ANGLES = {
    "-X": {"pitch": -HAND_TURN}, "+X": {"pitch": HAND_TURN}, "-Y": {"yaw": -HAND_TURN}, "+Y": {"yaw": HAND_TURN},
    "-Z": {"roll": HAND_TURN}, "+Z": {"roll": -HAND_TURN},
}  # fmt: skip
"""AI2-THOR's roll is clockwise from behind, Z's turns are not."""


class ThorWorld(BaseWorld):
    """A batch of AI2-THOR's rooms to act in. World b is copy `b % copies` of room `b // copies`."""

    rooms: list[RemoteRoom]

    def __init__(
        self,
        rooms: Sequence[str],
        copies: int = 1,
        size: int = 224,
        executable: str | None = None,
        normals: bool = False,
    ) -> None:
        """Takes iTHOR's rooms by name, `iTHOR:FloorPlan28` or `FloorPlan28`.

        `executable` is started in place of AI2-THOR's own build; with `normals` views can have them.
        """
        if not rooms or copies < 1:
            raise ValueError("a world needs at least one room and one copy of it")
        if size < 7 or size % cells.CELLS:
            raise ValueError(f"the image size {size} is not a multiple of {cells.CELLS}, the cells of a side")
        self.closed, self.copies, self.size, self.normals = False, copies, size, normals
        self.room_of = np.repeat(np.arange(len(rooms)), copies)
        self._scenes: list[RemoteScene] = []
        self._threads = ThreadPoolExecutor(len(self.room_of), "ai2thor")
        try:
            for number in self.room_of:
                self._scenes.append(RemoteScene(rooms[number], size, normals, executable))
            self.rooms = [self._scenes[number * copies].room for number in range(len(rooms))]
            self.reachable = [room.floor.reachable() for room in self.rooms]
        except BaseException:
            self.close()
            raise
        self.openable_count = np.array([len(room.openables) for room in self.rooms])
        self._thing_count = np.array([len(room.room.things) for room in self.rooms])
        self.openable_of_thing = torch.from_numpy(cells.openable_table(self.rooms)[self.room_of])
        self._openables = self.openable_of_thing
        positions = np.stack([self.reachable[number].positions[0] for number in self.room_of])
        self.state = initial_state(positions, self.openable_count.max(initial=1))
        self._told = self.state.copy()
        """What AI2-THOR was told or has told itself last."""
        for b in range(len(self)):
            self._read(b, self._told)

    @property
    def renderer_name(self) -> str:
        return REMOTE

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._threads.shutdown()
        for scene in self._scenes:
            scene.close()

    def __reduce__(self) -> tuple:
        raise ThorError("a world on AI2-THOR cannot be copied: AI2-THOR does not give its state away")

    # Where agents are.

    def set_agent_pose(self, world: int, pose: AgentPose) -> None:
        self._tell(world)
        if not self._scenes[world].teleport(pose, force=False):
            scene = self.rooms[self.room_of[world]].room.scene
            raise ValueError(f"no body can stand at ({pose.x:.2f}, {pose.y:.2f}) in {scene}")
        self._listen(world)

    def grid(self, world: int) -> Grid:
        angle = self.state.rotation[world] % 90
        return self.rooms[self.room_of[world]].floor.grid(self.state.position[world], angle)

    def move(self, direction: np.ndarray) -> np.ndarray:
        direction = self._checked(direction, MOVES)
        return self._each(
            (direction != NOTHING) & ~self.state.held, lambda b: self._act(b, WALKS[direction[b]])
        )  # A body with an object in its hand does not walk in the game.

    def rotate(self, direction: np.ndarray) -> np.ndarray:
        direction = self._checked(direction, ("left", "right"))
        names = ("RotateLeft", "RotateRight")
        return self._each(direction != NOTHING, lambda b: self._act(b, names[direction[b]], degrees=90.0))

    def stand(self, upright: np.ndarray) -> np.ndarray:
        upright = self._checked(upright, ("crouch", "stand"))
        changes = (upright != NOTHING) & ((upright == 1) != self.state.standing)
        return self._each(changes, lambda b: self._act(b, ("Crouch", "Stand")[upright[b]]))

    # Openables.

    def open(self, openable: np.ndarray) -> np.ndarray:
        most, openable = self.openable_count[self.room_of], np.asarray(openable)
        if openable.shape != (len(self),) or (openable < NOTHING).any() or (openable >= np.maximum(most, 1)).any():
            last = int(most.max()) - 1
            raise ValueError(f"openables are numbers from -1 to {last}, one for each of {len(self)} worlds")
        worlds = (openable != NOTHING) & (most > 0) & ~self.state.open[np.arange(len(self)), openable]

        def act(b: int) -> bool:
            self._tell(b)
            done = self._scenes[b].open(int(openable[b]))
            self._listen(b)
            return done

        return self._each(worlds, act)

    def close_near(self, worlds: np.ndarray) -> np.ndarray:
        def act(b: int) -> bool:
            self._tell(b)
            scene = self._scenes[b]
            near = np.flatnonzero(scene.is_open() & (scene.distances() <= REACH)).tolist()
            done = [scene.open(number, False) for number in near]
            self._listen(b)
            return any(done)

        return self._each(np.asarray(worlds, bool) & self.state.open.any(1), act)

    # The hand.

    def hold(self, goal: np.ndarray) -> np.ndarray:
        goal = self._checked(goal, GOALS)

        def act(b: int) -> bool:
            if self.state.goal[b] != goal[b]:
                self.state.goal[b], self.state.held[b] = NOTHING, False
            self._tell(b)
            scene, kind = self._scenes[b], GOALS[goal[b]]
            done = scene.pick_up(kind)
            if done:
                self.state.goal[b] = goal[b]
            elif self.state.goal[b] == NOTHING:
                scene.remove(kind)
            self.state.held[b] = done
            self._listen(b)
            return done

        return self._each(goal != NOTHING, act)

    def move_hand(self, direction: np.ndarray) -> np.ndarray:
        direction = self._checked(direction, HAND_MOVES)
        return self._each(
            (direction != NOTHING) & self.state.held,
            lambda b: self._act(
                b, "MoveHeldObject", **{"ahead": 0.0, "right": 0.0, "up": 0.0} | HAND_OFFSETS[HAND_MOVES[direction[b]]]
            ),
        )

    def rotate_hand(self, turn: np.ndarray) -> np.ndarray:
        turn = self._checked(turn, HAND_TURNS)
        return self._each(
            (turn != NOTHING) & self.state.held,
            lambda b: self._act(b, "RotateHeldObject", **HAND_ANGLES[HAND_TURNS[turn[b]]]),
        )

    def drop(self, worlds: np.ndarray) -> np.ndarray:
        def act(b: int) -> bool:
            self._tell(b)
            done = self._scenes[b].drop()
            self.state.held[b] &= not done
            self._listen(b)
            return done

        return self._each(np.asarray(worlds, bool) & self.state.held, act)

    def remove(self, worlds: np.ndarray) -> None:
        worlds = np.asarray(worlds, bool)
        self.state.goal[worlds], self.state.held[worlds] = NOTHING, False

    def contained(self, worlds: np.ndarray | bool = True) -> np.ndarray:
        thing = np.full(len(self), NOTHING)
        for b in np.flatnonzero((self.state.goal != NOTHING) & ~self.state.held & worlds).tolist():
            self._tell(b)
            thing[b] = self._scenes[b].containing(GOALS[self.state.goal[b]])
        return thing

    # AI2-THOR finishes each action before it answers.

    def defer_physics(self) -> None: ...

    @property
    def awaits_physics(self) -> bool:
        return False

    def receive_physics(self) -> np.ndarray:
        return np.zeros(len(self), bool)

    # Pictures.

    def view(
        self,
        kinds: Sequence[str] = ("rgb",),
        groups: Sequence[int] = EVERYTHING,
        worlds: np.ndarray | None = None,
        without: np.ndarray | None = None,
    ) -> View:
        if unknown := set(kinds) - set(KINDS):
            raise ValueError(f"unknown kinds of picture {sorted(unknown)}; there are {', '.join(KINDS)}")
        if "normals" in kinds and not self.normals:
            raise ValueError("this world draws no normals: make it with normals=True")
        if without is not None and (np.asarray(without) != NOTHING).any():
            raise ThorError("AI2-THOR draws nothing without a single thing; studies that do stay on our own worlds")
        if tuple(groups) not in (EVERYTHING, GOAL_ALONE):
            raise ThorError("AI2-THOR draws openables whole; views through their moving parts need our own worlds")
        some = self._some(worlds)
        images = list(self._threads.map(lambda b: self._pictures(b, tuple(kinds), tuple(groups)), some.tolist()))
        stacked = {kind: np.stack([image[kind] for image in images]) if images else None for kind in kinds}
        return View(**{kind: torch.from_numpy(image) for kind, image in stacked.items() if image is not None})

    def _pictures(self, b: int, kinds: tuple[str, ...], groups: tuple[int, ...]) -> dict[str, np.ndarray]:
        self._tell(b)
        scene, s = self._scenes[b], self.state
        _, matrix = cameras(s.position[b], s.rotation[b], s.standing[b])
        if groups == EVERYTHING:
            return scene.pictures(kinds, matrix)
        if s.goal[b] == NOTHING:
            return {"ids": np.full((self.size, self.size), NOTHING, np.int16)}
        scene.only(GOALS[s.goal[b]])
        images = scene.pictures(kinds, matrix)
        scene.everything()
        return images

    # Inside.

    def _each(self, worlds: np.ndarray, act: Callable[[int], bool]) -> np.ndarray:
        """Acts in worlds (B,) bool, each in a thread of its own; which succeeded, (B,) bool."""
        numbers, success = np.flatnonzero(worlds), np.zeros(len(self), bool)
        success[numbers] = list(self._threads.map(act, numbers.tolist()))
        return success

    def _act(self, b: int, action: str, **arguments: float) -> bool:
        """Takes one of AI2-THOR's actions, and takes over where it led."""
        self._tell(b)
        done = self._scenes[b].attempt(action, **arguments)
        self._listen(b)
        return done

    def _listen(self, b: int) -> None:
        """Takes over what AI2-THOR tells of a world."""
        self._read(b, self.state)
        self._read(b, self._told)

    def _read(self, b: int, state: State) -> None:
        """Reads a world's part of a state; which goal object there is, is ours to know."""
        scene = self._scenes[b]
        x, y, state.rotation[b], state.standing[b] = scene.pose
        state.position[b] = x, y
        state.open[b] = False
        state.open[b, : len(scene.room.openables)] = scene.is_open()
        state.goal[b], state.held[b] = self.state.goal[b], self.state.held[b]
        if state.goal[b] != NOTHING:
            state.pose[b] = scene.object_pose(GOALS[state.goal[b]])

    def _tell(self, b: int) -> None:
        """Brings AI2-THOR to what was written into the state since it was read."""
        wanted, told, scene = self.state, self._told, self._scenes[b]
        if told.goal[b] != NOTHING and wanted.goal[b] != told.goal[b]:
            scene.remove(GOALS[told.goal[b]])
        for number in np.flatnonzero(wanted.open[b] != told.open[b]).tolist():
            scene.set_open(number, bool(wanted.open[b, number]))
        pose, before = self.agent_pose(b), np.array([*told.position[b], told.rotation[b], told.standing[b]])
        if np.abs(np.array(pose, float) - before).max() > SAME and not scene.teleport(pose):
            raise ThorError(f"AI2-THOR refused to put the agent to ({pose.x:.2f}, {pose.y:.2f}): {scene.error}")
        if wanted.goal[b] != NOTHING:
            self._tell_goal(b)
        for name, values in vars(told).items():
            values[b] = getattr(wanted, name)[b]

    def _tell_goal(self, b: int) -> None:
        wanted, told, kind = self.state, self._told, GOALS[self.state.goal[b]]
        same = wanted.goal[b] == told.goal[b] and wanted.held[b] == told.held[b]
        if same and np.abs(wanted.pose[b] - told.pose[b]).max() <= SAME:
            return
        if wanted.held[b]:
            raise ThorError("AI2-THOR's hand cannot be set to a state: use hold and the hand's actions")
        self._scenes[b].place(kind, wanted.pose[b])
