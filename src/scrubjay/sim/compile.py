"""Compiles a room into one MuJoCo model.

Visual and collision geometry are separate: surfaces are meshes without contacts, one geom per part and material; solids
are invisible boxes and capsules. Everything fixed belongs to the world body. Each moving part of an openable is a body
on a joint too heavy for contacts to move. The five goal objects are free bodies, parked far above the room until one is
held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from scrubjay.rooms import catalog
from scrubjay.rooms.catalog import mesh
from scrubjay.rooms.catalog.shape import Drawn, Moving, Shape, Solid
from scrubjay.rooms.floor import Floor, frame, part_frame
from scrubjay.rooms.room import GOALS, Room, Thing
from scrubjay.sim.looks import Looks, Painter

FIXED, MOVING, GOAL, SOLID = 0, 1, 2, 3
"""Geom groups, by which renderers leave out openables' moving parts, or all but the goal object."""

PARKED_HEIGHT = 100.0
"""Meters; unused goal objects are kept there, outside every camera's view."""

TIMESTEP = 0.004
OPENABLE_ARMATURE = 1e6
"""Joint inertia of moving parts, which makes them immovable by contacts."""
MIN_GYRATION_RADIUS = 0.04
GOAL_BOXES = {
    "Bread": (0.15, 0.28, 0.13, 0.5),
    "Cup": (0.10, 0.10, 0.14, 0.3),
    "Knife": (0.035, 0.28, 0.03, 0.15),
    "Plunger": (0.15, 0.15, 0.50, 0.4),
    "Tomato": (0.10, 0.10, 0.09, 0.2),
}
"""Width, depth, height and mass of the goal objects: medians of the priors' table, rotated objects set upright."""


@dataclass(frozen=True)
class Openable:
    """A thing with moving parts, and their joints and bodies in the model."""

    thing: int
    qpos: np.ndarray
    """qpos addresses of its joints, (k,)."""
    travel: np.ndarray
    """The joints' open values, (k,); closed is 0."""
    bodies: np.ndarray


@dataclass(frozen=True)
class Placement:
    """Where a thing that was moved is now fixed, with everything closed."""

    position: np.ndarray
    """Of the middle of its box's bottom, (3,)."""
    turn: np.ndarray
    """Its rotation matrix, (3, 3)."""
    body: str = "world"
    """The name of the moving part that it lies in."""
    openness: float = 0.0
    """The fraction by which it is open itself."""


@dataclass(frozen=True)
class Goal:
    """The free body of a goal object, or of another thing that is loose."""

    thing: int
    body: int
    qpos: int
    dof: int
    mass: float
    geoms: np.ndarray
    """Its collision geoms."""
    middle: float
    """Height of its center above its bottom, in meters."""


@dataclass(frozen=True)
class Volumes:
    """Boxes that contain things: centers, axes and half sizes in the frame of a body."""

    thing: np.ndarray
    body: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    half: np.ndarray


Carriers = Mapping[int, tuple[int, int]]
"""By thing that moves with another one's part: that thing, and the part's number."""


@dataclass(frozen=True, eq=False)
class CompiledRoom:
    """A room's MuJoCo model, and what its parts mean. Compared and hashed by identity."""

    room: Room
    model: mujoco.MjModel
    shapes: tuple[Shape, ...]
    things: tuple[str, ...]
    """Names by id: the room's things and then the five goal objects."""
    geom_thing: np.ndarray
    """Each geom's thing, (ngeom,)."""
    openables: tuple[Openable, ...]
    goals: dict[str, Goal]
    """The free bodies by the type of the goal object, or the name of another thing."""
    volumes: Volumes
    floor: Floor
    carriers: Carriers

    def qpos(self, is_open: np.ndarray, goal: np.ndarray, pose: np.ndarray) -> np.ndarray:
        """Joint positions (B, nq) from is_open (B, openables or more), goal indices (B,) and poses (B, 7)."""
        qpos = np.tile(self.model.qpos0, (len(goal), 1))
        for number, openable in enumerate(self.openables):
            qpos[:, openable.qpos] = is_open[:, number, None] * openable.travel
        for number, kind in enumerate(GOALS):
            present = goal == number
            start = self.goals[kind].qpos
            qpos[present, start : start + 7] = pose[present]
        return qpos

    @property
    def visual_geoms(self) -> int:
        return int((self.model.geom_group != SOLID).sum())


Derived = TypeVar("Derived")


def cached_per_room(function: Callable[[CompiledRoom], Derived]) -> Callable[[CompiledRoom], Derived]:
    """Caches a function of a room for the room's lifetime, so that replacing one of many recomputes only one."""
    cache: WeakKeyDictionary[CompiledRoom, Derived] = WeakKeyDictionary()

    @wraps(function)
    def cached(room: CompiledRoom) -> Derived:
        if room not in cache:
            cache[room] = function(room)
        return cache[room]

    return cached


def compile_room(room: Room) -> CompiledRoom:
    """Draws every thing's shape and compiles the room."""
    shapes = tuple(catalog.shape_of(thing, room) for thing in room.things)
    return compile_shapes(room, shapes, _drawer_contents(room, shapes))


def compile_shapes(
    room: Room, shapes: tuple[Shape, ...], carriers: Carriers, looks: Looks | None = None
) -> CompiledRoom:
    """Compiles a room from its things' shapes; `looks` are of materials that are not the catalog's."""
    floor = Floor(room, shapes)
    return _Compiler(room, shapes, carriers, floor, looks or Looks()).compile()


def _drawer_contents(room: Room, shapes: tuple[Shape, ...]) -> Carriers:
    """Things in a drawer move with it; a drawer's first sliding part is its box."""
    boxes = {}
    for index, (thing, shape) in enumerate(zip(room.things, shapes, strict=True)):
        if slides := [number for number, part in enumerate(shape.moving) if part.joint == "slide"]:
            boxes[thing.name] = (index, slides[0])
    return {index: boxes[thing.inside] for index, thing in enumerate(room.things) if thing.inside in boxes}


def compile_moved(
    compiled: CompiledRoom,
    placements: Mapping[int, Placement],
    left_out: Collection[int] = (),
    free: int | None = None,
    mass: float = 0.5,
    openness: float = 0.0,
    riders: Mapping[int, Placement] = MappingProxyType({}),
) -> CompiledRoom:
    """The physics of a room, without surfaces, in which things by id were moved or left out, and one may be free.

    That one is a body like a goal object's, under its own name, with `riders` on it, placed relative to its center.
    What was moved has no joints of its own, so the openables are those that were not.
    """
    compiler = _Compiler(compiled.room, compiled.shapes, compiled.carriers, compiled.floor)
    compiler.placements, compiler.left_out = placements, {*left_out, *placements, *riders}
    if free is None:
        return compiler.compile()
    compiler.left_out.add(free)
    return compiler.compile(lambda: compiler.loose(free, mass, openness, riders))


class _Loose(NamedTuple):
    """A free body before it has ids: as in `Goal`."""

    name: str
    thing: int
    mass: float
    middle: float


class _Compiler:
    def __init__(
        self, room: Room, shapes: tuple[Shape, ...], carriers: Carriers, floor: Floor, looks: Looks | None = None
    ) -> None:
        """Without `looks`, compiles solids alone."""
        self.room, self.shapes, self.carriers, self.floor = room, shapes, carriers, floor
        self.spec = _empty_spec(room)
        self.painter = Painter(self.spec, room, floor, looks) if looks else None
        self.thing_of_geom: dict[str, int] = {}
        self.surfaces: list[tuple[str, mujoco.MjsBody, dict[str, Any]]] = []
        """Materials, bodies, and the geoms to add to them."""
        self.moving: dict[tuple[int, int], tuple[mujoco.MjsBody, str]] = {}
        """Bodies of the moving parts and their names, by thing and number."""
        self.volumes: list[tuple[int, str, np.ndarray, np.ndarray, np.ndarray]] = []
        self.placements: Mapping[int, Placement] = {}
        self.left_out: set[int] = set()
        """Ids of things that are not drawn where the room has them."""

    def compile(self, add_loose: Callable[[], _Loose] | None = None) -> CompiledRoom:
        world = self.spec.worldbody
        drawn = [index for index in range(len(self.shapes)) if index not in self.left_out]
        for index in drawn:
            for number, part in enumerate(self.shapes[index].moving):
                self.moving[index, number] = self._moving(f"moving{index}.{number}", part, self.room.things[index])
        for index in drawn:
            at, shape = frame(self.room.things[index]), self.shapes[index]
            # What carried it may have been moved itself.
            body, name = self.moving.get(self.carriers.get(index, (-1, -1)), (world, "world"))
            self._draw(body, name, index, shape, *at, MOVING if name != "world" else FIXED)
            for number, part in enumerate(shape.moving):
                self._draw(*self.moving[index, number], index, part, *at, MOVING)
        for index, placement in self.placements.items():
            body = world if placement.body == "world" else self.spec.body(placement.body)
            self._draw_rigid(body, placement.body, index, placement, FIXED if placement.body == "world" else MOVING)
        loose = [self._goal(len(self.room.things) + i, kind) for i, kind in enumerate(GOALS)]
        if add_loose:
            loose.append(add_loose())
        # OpenGL draws geoms in their order, and takes its time to change textures.
        for _, body, geom in sorted(self.surfaces, key=lambda surface: surface[0]):
            body.add_geom(**geom)
        model = self.spec.compile()
        return self._read(model, loose)

    def _draw(
        self, body, body_name: str, index: int, part: Drawn, position, turn, group: int, contains: bool = True
    ) -> None:
        """Adds a part's surfaces, solids and spaces to a body in the room's frame."""
        if self.painter:
            self._draw_surfaces(self.painter, body, f"{body_name}/{index}", index, part, position, turn, group)
        contype, conaffinity = {FIXED: (1, 0), MOVING: (2, 0), GOAL: (4, 3)}[group]
        for number, solid in enumerate(part.solids):
            name = f"{body_name}/{index}/solid{number}"
            geom = body.add_geom(
                name=name, pos=turn @ solid.position + position, quat=_quaternion(turn @ solid.rotation), group=SOLID,
                contype=contype, conaffinity=conaffinity, mass=0, **self._solid(name, solid),
            )  # fmt: skip
            self.thing_of_geom[name] = index
            if group == GOAL:
                # Rolling and torsional friction, or a tomato never stops; stiff contacts, or a knife sinks in.
                geom.condim, geom.priority, geom.friction, geom.solref = 6, 1, [0.8, 0.01, 0.002], [0.01, 1.0]
        for space in part.spaces if contains else ():
            middle, rotation = turn @ space.position + position, turn @ space.rotation
            self.volumes.append((index, body_name, middle, rotation, space.half))

    def _solid(self, name: str, solid: Solid) -> dict[str, Any]:
        """A solid's type and size, as a geom's arguments."""
        if solid.kind == "hull":
            thin = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # Thin solids have next to no volume.
            self.spec.add_mesh(name=name, inertia=thin, uservert=solid.points.ravel())
            return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": name}
        kind = mujoco.mjtGeom.mjGEOM_BOX if solid.kind == "box" else mujoco.mjtGeom.mjGEOM_CAPSULE
        return {"type": kind, "size": [*solid.size, 0][:3]}

    def _draw_surfaces(
        self, painter: Painter, body, prefix: str, index: int, part: Drawn, position, turn, group: int
    ) -> None:
        for number, (material, meshes) in enumerate(part.surfaces.items()):
            painter.add(material)
            whole = mesh.concatenate(meshes)
            name = f"{prefix}/{number}"
            self.spec.add_mesh(
                name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
                uservert=(whole.vertices @ turn.T + position).ravel(), usernormal=(whole.normals @ turn.T).ravel(),
                usertexcoord=whole.uv.ravel(), userface=whole.faces.ravel(),
            )  # fmt: skip
            geom = {"name": name, "type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": name, "material": material}
            self.surfaces.append((material, body, {**geom, "group": group, "contype": 0, "conaffinity": 0, "mass": 0}))
            self.thing_of_geom[name] = index

    def _draw_rigid(self, body, body_name: str, index: int, placement: Placement, group: int) -> None:
        """Adds a thing with its moving parts as they are."""
        things = len(self.room.things)
        shape = self.shapes[index] if index < things else _goal_shape(GOALS[index - things])
        self._draw(body, body_name, index, shape, placement.position, placement.turn, group)
        for number, part in enumerate(shape.moving):
            at = part_frame(part, placement.openness, placement.position, placement.turn)
            self._draw(body, f"{body_name}/part{number}", index, part, *at, group, contains=False)

    def _moving(self, name: str, part: Moving, thing: Thing) -> tuple[mujoco.MjsBody, str]:
        """A moving part's empty body on its joint, and its name."""
        position, turn = frame(thing)
        body = self.spec.worldbody.add_body(name=name, gravcomp=1)
        body.explicitinertial = True
        body.mass, body.inertia, body.ipos = 1.0, [1, 1, 1], position
        kind = mujoco.mjtJoint.mjJNT_HINGE if part.joint == "hinge" else mujoco.mjtJoint.mjJNT_SLIDE
        body.add_joint(
            name=name, type=kind, axis=turn @ part.axis, pos=turn @ part.anchor + position, armature=OPENABLE_ARMATURE,
            limited=mujoco.mjtLimited.mjLIMITED_FALSE,
        )  # fmt: skip
        return body, name

    def _goal(self, index: int, kind: str) -> _Loose:
        *size, mass = GOAL_BOXES[kind]
        body = self._free_body(kind, np.array(size), mass, GOALS.index(kind))
        self._draw(body, kind, index, _goal_shape(kind), np.array([0, 0, -size[2] / 2]), np.eye(3), GOAL)
        return _Loose(kind, index, mass, size[2] / 2)

    def loose(self, index: int, mass: float, openness: float, riders: Mapping[int, Placement]) -> _Loose:
        thing = self.room.things[index]
        body = self._free_body(thing.name, np.array(thing.size), mass, len(GOALS))
        middle = Placement(np.array([0, 0, -thing.size[2] / 2]), np.eye(3), openness=openness)
        self._draw_rigid(body, thing.name, index, middle, GOAL)
        for rider, placement in riders.items():
            self._draw_rigid(body, thing.name, rider, placement, GOAL)
        return _Loose(thing.name, index, mass, thing.size[2] / 2)

    def _free_body(self, name: str, sides: np.ndarray, mass: float, number: int) -> mujoco.MjsBody:
        """An empty body with a free joint about the center of a box, parked above the room."""
        body = self.spec.worldbody.add_body(name=name, pos=[2.0 * number, 0, PARKED_HEIGHT])
        body.add_freejoint(name=name).damping = [0.002] * 3
        body.explicitinertial = True
        body.mass, body.ipos = mass, [0, 0, 0]
        # A knife's true inertia about its blade is so small that contacts would spin it forever.
        body.inertia = np.maximum(mass / 12 * (sides @ sides - sides**2), mass * MIN_GYRATION_RADIUS**2)
        return body

    def _read(self, model: mujoco.MjModel, loose: list[_Loose]) -> CompiledRoom:
        """Looks up ids and addresses in the compiled model."""
        geom_thing = np.array([self.thing_of_geom[model.geom(i).name] for i in range(model.ngeom)], np.int32)
        openables = []
        for index in sorted({index for index, _ in self.moving}):
            names = [self.moving[index, number][1] for number in range(len(self.shapes[index].moving))]
            joints = [model.joint(name).id for name in names]
            travel = [part.travel for part in self.shapes[index].moving]
            bodies = [model.body(name).id for name in names]
            openables.append(Openable(index, model.jnt_qposadr[joints], np.array(travel), np.array(bodies)))
        goals = {}
        for one in loose:
            body, joint = model.body(one.name).id, model.joint(one.name).id
            geoms = np.flatnonzero((model.geom_bodyid == body) & (model.geom_group == SOLID))
            qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            goals[one.name] = Goal(one.thing, body, qpos, dof, one.mass, geoms, one.middle)
        free = {one.thing for one in loose}
        of_room = [v for v in self.volumes if v[0] not in free]
        volumes = Volumes(
            np.array([v[0] for v in of_room], int), np.array([model.body(v[1]).id for v in of_room], int),
            np.array([v[2] for v in of_room]).reshape(-1, 3), np.array([v[3] for v in of_room]).reshape(-1, 3, 3),
            np.array([v[4] for v in of_room]).reshape(-1, 3),
        )  # fmt: skip
        things = (*(thing.name for thing in self.room.things), *GOALS)
        return CompiledRoom(
            self.room, model, self.shapes, things, geom_thing, tuple(openables), goals, volumes, self.floor,
            self.carriers,
        )  # fmt: skip


@cache
def _goal_shape(kind: str) -> Shape:
    return catalog.draw(kind, GOAL_BOXES[kind][:3], np.random.default_rng(GOALS.index(kind)), {}, {})


def _empty_spec(room: Room) -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    spec.modelname = room.scene
    option = spec.option
    option.timestep, option.integrator = TIMESTEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10
    # Set explicitly: unused goal objects far above would inflate the computed extent and thereby the near plane.
    west, south, east, north = room.bounds
    spec.stat.center, spec.stat.extent = [(west + east) / 2, (south + north) / 2, 1], 1.0
    spec.visual.map.znear, spec.visual.map.zfar = 0.02, 60
    spec.visual.quality.offsamples = 0
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.43] * 3, [0.18] * 3
    spec.visual.headlight.specular = [0] * 3
    for lamp in room.lamps:
        spec.worldbody.add_light(
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, dir=lamp.direction, diffuse=lamp.color,
            ambient=[0] * 3, specular=[0] * 3, castshadow=False,
        )  # fmt: skip
    spec.worldbody.add_camera(name="eye", fovy=90)
    return spec


def _quaternion(matrix: np.ndarray) -> np.ndarray:
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(matrix, float).ravel())
    return quat
