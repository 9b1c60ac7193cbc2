"""Where the things of a scene are: at home, moved, on a moving part, or in a hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from scrubjay.rooms.floor import CORNERS, frame, part_frame
from scrubjay.rooms.room import GOALS, Room
from scrubjay.sim.compile import GOAL_BOXES, SOLID, CompiledRoom, Openable, Placement, compile_room
from scrubjay.sim.quaternion import compose, inverse, matrix_from_quat, quat_from_axis_angle
from scrubjay.sim.render.opengl import LEFT_OUT
from scrubjay.thor.loose_types import MOVEABLE, PICKUPABLE

WORLD = 0
"""The body of everything that is fixed."""
UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Place:
    """Where a moved thing is: a pose in the frame of a body, or of the thing that carries it."""

    pose: np.ndarray
    """Center and quaternion, (7,)."""
    body: int = WORLD
    carrier: int | None = None
    put: tuple[np.ndarray, np.ndarray] | None = None
    """The pose in the room in which it came to the body, and the body's then: exact as long as that has not moved."""


class Things:
    """A room's things and the engine's data that follow from where they are.

    Ids are those of the compiled room: its things, and then the five goal objects, which are absent at first.
    """

    def __init__(self, room: Room) -> None:
        self._compile(room)
        self.names = self.compiled.things
        self.types = (*(thing.type for thing in room.things), *GOALS)
        self.size = np.array([thing.size for thing in room.things] + [GOAL_BOXES[kind][:3] for kind in GOALS])
        self.home = np.stack([*(self._home(k) for k in range(len(room.things))), *self._parked()])
        self.mass = {
            k: GOAL_BOXES[kind][3] if kind in GOALS else PICKUPABLE.get(kind) or MOVEABLE[kind]
            for k, kind in enumerate(self.types)
            if kind in PICKUPABLE or kind in MOVEABLE
        }
        """Of what can be moved."""
        self.openables = {openable.thing: number for number, openable in enumerate(self.compiled.openables)}
        self.open = np.zeros(len(self.compiled.openables))
        """The openables' openness."""
        self.moved: dict[int, Place] = {}
        self.absent = set(range(len(room.things), len(self.names)))
        self.hidden: set[int] = set()
        self.held: set[int] = set()
        """What is in agents' hands."""
        self.version = 0
        """Changes when a thing moves."""
        self.stamps: dict[int, int] = {}
        """The version in which each thing was changed last."""
        self._layout, self._kept_layout = 0, -1
        self._poses: dict[int, np.ndarray] = {}
        self._corners: dict[int, np.ndarray] = {}
        self._home_body = self._bodies_at_home()

    def _compile(self, room: Room) -> None:
        self.room = room
        self.compiled: CompiledRoom = compile_room(room)
        self.model = self.compiled.model
        self.data = mujoco.MjData(self.model)
        of_thing = np.where(self.model.geom_group != SOLID, self.compiled.geom_thing, -1)
        self._geoms = [np.flatnonzero(of_thing == thing) for thing in range(len(self.compiled.things))]
        self._groups, self.left_out = self.model.geom_group.copy(), frozenset[int]()
        self._updated = -1

    def recompile(self, room: Room) -> None:
        """Takes over how the things of the same room look in another style."""
        self._compile(room)
        self.version += 1

    def openable(self, thing: int) -> Openable:
        return self.compiled.openables[self.openables[thing]]

    def pose(self, thing: int) -> np.ndarray:
        """Center and quaternion, (7,)."""
        return self._kept(self._poses, self._pose, thing).copy()

    def _kept(self, kept: dict[int, np.ndarray], compute: Callable[[int], np.ndarray], thing: int) -> np.ndarray:
        """A value that changes with the layout, or all the time for what is in a hand."""
        if thing in self.held:
            return compute(thing)
        if self._kept_layout != self._layout:
            self._kept_layout = self._layout
            self._poses.clear()
            self._corners.clear()
        if thing not in kept:
            kept[thing] = compute(thing)
        return kept[thing]

    def _pose(self, thing: int) -> np.ndarray:
        place = self.moved.get(thing)
        if place is None:
            return self._at(self._home_body[thing], self.home[thing])
        if place.carrier is not None:
            return compose(self.pose(place.carrier), place.pose)
        if place.put is not None and (self.body_frame(place.body) == place.put[1]).all():
            return place.put[0]
        return self._at(place.body, place.pose)

    def corners(self, thing: int) -> np.ndarray:
        """The corners of its oriented box, (8, 3); that of an open thing includes its open parts."""
        return self._kept(self._corners, self._box_corners, thing).copy()

    def _box_corners(self, thing: int) -> np.ndarray:
        pose = self.pose(thing)
        low, high = -self.size[thing] / 2, self.size[thing] / 2
        if thing in self.openables and self.open[self.openables[thing]] > 0:
            low, high = self._open_box(thing, low, high)
        corners = (low + high) / 2 + CORNERS * (high - low) / 2
        return corners @ matrix_from_quat(pose[3:]).T + pose[:3]

    def bottom(self, thing: int) -> tuple[np.ndarray, np.ndarray]:
        """The middle of its box's bottom and its rotation matrix: the frame of its shape."""
        pose = self.pose(thing)
        turn = matrix_from_quat(pose[3:])
        return pose[:3] - turn @ [0, 0, self.size[thing, 2] / 2], turn

    def body_of(self, thing: int) -> int:
        """The body that its fixed part belongs to."""
        place = self.moved.get(thing)
        if place is None:
            return int(self._engine_body[thing])
        return place.body if place.carrier is None else self.body_of(place.carrier)

    def body_frames(self, bodies: np.ndarray) -> np.ndarray:
        """Bodies' poses, (n, 7)."""
        self.update()
        return np.concatenate([self.data.xpos[bodies], self.data.xquat[bodies]], 1)

    @property
    def layout(self) -> tuple[int, frozenset[int], frozenset[int]]:
        """Changes when a thing that is in nobody's hand moves, appears or disappears."""
        return self._layout, frozenset(self.held), frozenset(self.absent)

    def riders(self, thing: int) -> list[int]:
        """What it carries, over any chain."""
        direct = [other for other, place in self.moved.items() if place.carrier == thing]
        return direct + [rider for other in direct for rider in self.riders(other)]

    def move(self, thing: int, pose: np.ndarray, body: int = WORLD) -> None:
        """Moves a thing to a pose in the room, from now on fixed to a body."""
        body_frame = self.body_frame(body)
        relative = pose if body == WORLD else compose(inverse(body_frame), pose)
        self.moved[thing] = Place(relative.copy(), body, put=(pose.copy(), body_frame))
        self._changed(thing, thing not in self.held)

    def attach(self, rider: int, carrier: int) -> None:
        """Lets a thing be carried by another from now on, where it is."""
        relative = compose(inverse(self.pose(carrier)), self.pose(rider))
        self.moved[rider] = Place(relative, carrier=carrier)
        self._changed(rider)

    def let_go(self, thing: int) -> None:
        """Takes a thing, with all that it carries, out of a hand."""
        self.held -= {thing, *self.riders(thing)}
        self._changed(thing)

    def set_open(self, thing: int, openness: float) -> None:
        self.open[self.openables[thing]] = openness
        self._changed(thing)

    def _changed(self, thing: int, layout: bool = True) -> None:
        self.version += 1
        self.stamps[thing] = self.version
        self._layout += layout

    def save(self) -> Callable[[], None]:
        """A function that brings everything back to where it is now."""
        moved, held, absent = dict(self.moved), set(self.held), set(self.absent)
        is_open, stamps, layout = self.open.copy(), dict(self.stamps), self._layout

        def restore() -> None:
            if stamps == self.stamps and (held, absent) == (self.held, self.absent):
                return
            self.moved, self.open, self.stamps = moved, is_open, stamps
            for kept, now in ((held, self.held), (absent, self.absent)):
                now.clear()
                now.update(kept)
            self.version, self._layout = self.version + 1, max(layout, self._layout) + 1

        return restore

    def placement(self, thing: int) -> Placement:
        """Where a moved thing is for the compiler: with everything closed."""
        place = self.moved[thing]
        pose = self.pose(thing) if place.carrier is not None else place.pose
        turn = matrix_from_quat(pose[3:])
        openness = self.open[self.openables[thing]] if thing in self.openables else 0.0
        bottom = pose[:3] - turn @ [0, 0, self.size[thing, 2] / 2]
        return Placement(bottom, turn, self.model.body(place.body).name, float(openness))

    def body_frame(self, body: int) -> np.ndarray:
        """A body's pose, (7,)."""
        return self.body_frames(np.array([body]))[0]

    def geoms(self, thing: int) -> np.ndarray:
        """The geoms of its surfaces."""
        return self._geoms[thing]

    def update(self) -> None:
        """Brings the engine's data up to date: all geoms where they are, left out or not."""
        left_out = frozenset(self.absent | self.hidden)
        if left_out != self.left_out:
            self.left_out = left_out
            self.model.geom_group[:] = self._groups
            for thing in left_out:
                self.model.geom_group[self._geoms[thing]] = LEFT_OUT
        if self._updated == self.version:
            return
        self._updated = self.version
        model, data = self.model, self.data
        for number, openable in enumerate(self.compiled.openables):
            data.qpos[openable.qpos] = openable.travel * self.open[number]
        mujoco.mj_kinematics(model, data)
        for thing in self.moved:
            geoms = self._geoms[thing]
            change = compose(self.pose(thing), inverse(self._at(self._engine_body[thing], self.home[thing])))
            turn = matrix_from_quat(change[3:])
            data.geom_xpos[geoms] = data.geom_xpos[geoms] @ turn.T + change[:3]
            data.geom_xmat[geoms] = (turn @ data.geom_xmat[geoms].reshape(-1, 3, 3)).reshape(-1, 9)
        mujoco.mj_camlight(model, data)

    def _at(self, body: int, pose: np.ndarray) -> np.ndarray:
        return pose.copy() if body == WORLD else compose(self.body_frame(body), pose)

    def _home(self, index: int) -> np.ndarray:
        thing = self.room.things[index]
        if thing.type in ("Floor", "Wall", "Ceiling"):  # Drawn from the outline, about the room's middle.
            west, south, east, north = self.room.bounds
            height = {"Floor": 0.0, "Wall": thing.size[2] / 2, "Ceiling": thing.size[2]}[thing.type]
            return np.array([(west + east) / 2, (south + north) / 2, height, 1, 0, 0, 0])
        position, _ = frame(thing)
        return np.concatenate([position + [0, 0, thing.size[2] / 2], quat_from_axis_angle(UP, np.array(-thing.yaw))])

    def _parked(self) -> list[np.ndarray]:
        starts = [self.compiled.goals[kind].qpos for kind in GOALS]
        return [self.model.qpos0[start : start + 7].copy() for start in starts]

    def _bodies_at_home(self) -> np.ndarray:
        """The body with which each thing moves while it is at home."""
        carriers = {self.names[thing]: self._slide(thing) for thing in self.openables}
        self._engine_body = np.array(
            [carriers.get(thing.inside, WORLD) for thing in self.room.things] + [WORLD] * len(GOALS)
        )
        """The body that the engine's data has each thing's fixed part on."""
        body = self._engine_body.copy()
        for thing in self.openables:
            if body[thing] == WORLD:
                body[thing] = self._slide(thing)  # A drawer is where its box is.
        return body

    def _slide(self, thing: int) -> int:
        """The body of an openable's first sliding part, or the world's."""
        parts = zip(self.compiled.shapes[thing].moving, self.openable(thing).bodies, strict=True)
        return next((int(body) for part, body in parts if part.joint == "slide"), WORLD)

    def _open_box(self, thing: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The box around an open thing, about the center of its closed one and in its axes."""
        bottom, points = np.array([0, 0, -self.size[thing, 2] / 2]), []
        openness = self.open[self.openables[thing]]
        slid = self._home_body[thing] != WORLD and thing not in self.moved
        for part in self.compiled.shapes[thing].moving:
            meshes = [mesh.vertices for surface in part.surfaces.values() for mesh in surface]
            if not meshes or slid:
                continue
            position, turn = part_frame(part, openness, bottom, np.eye(3))
            points.append(np.concatenate(meshes) @ turn.T + position)
        if not points:
            return low, high
        around = np.concatenate(points)
        return np.minimum(low, around.min(0)), np.maximum(high, around.max(0))
