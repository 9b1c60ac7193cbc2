"""A compiled MolmoSpaces scene as a room: its things from the metadata, their shapes from the model's geoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import mujoco
import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms.catalog import shell
from scrubjay.rooms.catalog.mesh import Mesh
from scrubjay.rooms.catalog.shape import Drawn, Moving, Shape, Solid, Space
from scrubjay.rooms.generate.layout import make_lamps
from scrubjay.rooms.molmospaces import room_type
from scrubjay.rooms.room import GOALS, Room, Thing
from scrubjay.sim.compile import Carriers
from scrubjay.sim.looks import Look, Looks
from scrubjay.sim.molmospaces import geometry
from scrubjay.sim.molmospaces.files import SceneFiles

FLOOR, WALL, CEILING = shell.TYPES
REVERSED = ("Laptop", "Box")
"""Categories that are open at their joints' zero."""
OTHER = "Structure"
"""The type of root bodies without a category."""
HEIGHT = 2.5
"""Meters of a room whose walls and ceiling do not tell."""
FIXED = 0
"""The number of a thing's part that does not move; any other part has its body's number."""
DRAWN_GROUPS = 3
"""MuJoCo shows geoms of the groups below this one, and of MolmoSpaces' colliders none."""
UNSET = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
"""The color of geoms that have none of their own."""


@dataclass
class _Part:
    """One rigid part of a thing, in the room's frame with everything closed."""

    surfaces: list[tuple[str, Mesh]] = field(default_factory=list)
    """Materials and meshes."""
    solids: list[Solid] = field(default_factory=list)
    spaces: list[Space] = field(default_factory=list)

    def add(self, other: _Part) -> None:
        self.surfaces += other.surfaces
        self.solids += other.solids
        self.spaces += other.spaces

    def points(self) -> list[np.ndarray]:
        return [*(surface.vertices for _, surface in self.surfaces), *map(geometry.corners, self.solids)]

    def draw(self, into: Drawn, position: np.ndarray) -> None:
        """Draws it into a shape whose origin is at a position."""
        for material, surface in self.surfaces:
            into.surface(material, surface, -position)
        for solid in self.solids:
            at = solid.position - position
            into.solids.append(Solid(solid.kind, at, solid.size, solid.rotation, solid.points))
        for space in self.spaces:
            into.spaces.append(Space(space.position - position, space.half, space.rotation))


class Scene:
    """What a scene's model holds, with everything closed and the floor at height 0."""

    def __init__(self, model: mujoco.MjModel, files: SceneFiles, name: str) -> None:
        self.model, self.files, self.name = model, files, name
        self.data = mujoco.MjData(model)
        self.types = {body: self._type(body) for body in range(1, model.nbody) if model.body_parentid[body] == 0}
        """The type of each root body."""
        self.materials: dict[str, Look] = {}
        self._close()
        self._lower_to_floor()
        self.parts = self._read_parts()

    def room_and_shapes(self) -> tuple[Room, tuple[Shape, ...], Carriers, Looks]:
        """The room, and what it is compiled from."""
        kept = self._parents_first()
        carried = self._carried(kept)
        bare = Room(
            self.name, room_type(self.name), self._outline(), self._height(), (), make_lamps(np.random.default_rng(0))
        )
        things, shapes = [], []
        for kind in shell.TYPES:
            thing, shape = self._shell(kind, bare)
            things.append(thing)
            shapes.append(shape)
        index = {root: len(things) + number for number, root in enumerate(kept)}
        for root in kept:
            thing, shape = self._thing(root, root in carried)
            things.append(thing)
            shapes.append(shape)
        carriers = {index[root]: (index[holder], part) for root, (holder, part) in carried.items()}
        room = Room(bare.scene, bare.type, bare.outline, bare.height, tuple(things), bare.lamps)
        return room, tuple(shapes), carriers, Looks(self.materials, self.files.textures)

    # Reading the model.

    def _body_name(self, body: int) -> str:
        return self.model.body(body).name or f"body_{body}"

    def _type(self, root: int) -> str:
        """A root body's category; the shell's parts may have none, but names that tell."""
        name = self._body_name(root)
        known = self.files.objects.get(name)
        if known and known.category:
            return known.category
        named = {"room": FLOOR, "floor": FLOOR, "wall": WALL, "ceiling": CEILING}
        return named.get(name.lower().split("_")[0], OTHER)

    def _ends(self, joint: int) -> tuple[float, float] | None:
        """A joint's positions when closed and open; None if it opens nothing."""
        model = self.model
        if int(model.jnt_type[joint]) not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            return None
        low, high = model.jnt_range[joint].tolist()
        end = high or low
        if not model.jnt_limited[joint] or not end:
            return None
        reverse = self.types[model.body_rootid[model.jnt_bodyid[joint]]] in REVERSED
        return (end, 0.0) if reverse else (0.0, end)

    def _close(self) -> None:
        """Closes everything, and finds the moving parts: bodies that open, with all that hangs on them."""
        model = self.model
        self.part_of = np.zeros(model.nbody, int)
        """Each body's part: the outermost body that opens, or FIXED."""
        self.joint_of: dict[int, tuple[int, float]] = {}
        """Each part's joint, and how far it moves."""
        for joint in range(model.njnt):
            if ends := self._ends(joint):
                closed, is_open = ends
                self.data.qpos[model.jnt_qposadr[joint]] = closed
                self.joint_of.setdefault(int(model.jnt_bodyid[joint]), (joint, is_open - closed))
        for body in range(1, model.nbody):
            opens = body if body in self.joint_of else FIXED
            self.part_of[body] = self.part_of[model.body_parentid[body]] or opens
        mujoco.mj_kinematics(model, self.data)

    def _lower_to_floor(self) -> None:
        """Moves everything so that the floor is at height 0: the plane in the world, or else the floor's mesh."""
        model, data = self.model, self.data
        roots = model.body_rootid[model.geom_bodyid]
        flat = (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE) & (roots == 0)
        laid = np.array([self.types.get(root) == FLOOR for root in roots.tolist()], bool)
        if flat.any():
            ground = data.geom_xpos[flat, 2].max()
        elif laid.any():
            meshes = (geometry.visible_mesh(model, data, int(geom)) for geom in np.flatnonzero(laid))
            ground = max(mesh.vertices[:, 2].max() for mesh in meshes)
        else:
            raise RoomError(f"{self.name}: it has no floor: neither a plane nor an object of the category {FLOOR}")
        for positions in (data.geom_xpos, data.site_xpos, data.xanchor):
            positions[:, 2] -= ground

    def _read_parts(self) -> dict[int, dict[int, _Part]]:
        """The parts of root bodies; floors and the world's geoms are the room's own, number 0.

        A floor's colliders are left out: it is level, and a mesh's convex hull need not be.
        """
        model, data = self.model, self.data
        parts: dict[int, dict[int, _Part]] = defaultdict(lambda: defaultdict(_Part))
        for geom in range(model.ngeom):
            if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
                continue
            part = self._part(parts, int(model.geom_bodyid[geom]))
            collides = model.geom_contype[geom] or model.geom_conaffinity[geom]
            drawn = not collides or model.geom_group[geom] < DRAWN_GROUPS
            if drawn and (material := self._material(geom)):
                part.surfaces.append((material, geometry.visible_mesh(model, data, geom)))
            if collides and self.types.get(model.body_rootid[model.geom_bodyid[geom]]) != FLOOR:
                part.solids.append(geometry.solid_of(model, data, geom))
        for site in np.flatnonzero(model.site_type == mujoco.mjtGeom.mjGEOM_BOX):
            part = self._part(parts, int(model.site_bodyid[site]))
            axes = data.site_xmat[site].reshape(3, 3)
            part.spaces.append(geometry.upright_space(data.site_xpos[site].copy(), axes, model.site_size[site].copy()))
        for moving in parts.values():
            for body in [body for body, part in moving.items() if body != FIXED and not part.surfaces]:
                moving[FIXED].add(moving.pop(body))  # Nobody could see it open.
        return parts

    def _part(self, parts: dict[int, dict[int, _Part]], body: int) -> _Part:
        root = int(self.model.body_rootid[body])
        if self.types.get(root, FLOOR) == FLOOR:
            return parts[0][FIXED]
        return parts[root][int(self.part_of[body])]

    def _material(self, geom: int) -> str:
        """The name of a geom's material; empty if it is invisible. Glass is opaque here."""
        model, number = self.model, int(self.model.geom_matid[geom])
        own = model.geom_rgba[geom]
        color = own if number < 0 or (own != UNSET).any() else model.mat_rgba[number]
        if color[3] == 0:
            return ""
        look = Look(tuple(np.round(color[:3], 4).tolist()))
        if number >= 0:
            texture = int(model.mat_texid[number, mujoco.mjtTextureRole.mjTEXROLE_RGB])
            name = model.texture(texture).name if texture >= 0 else ""
            if name and not geometry.has_texture_coordinates(model, geom):
                mean = self.files.textures[name].mean((0, 1)) / 255
                look, name = Look(tuple((np.array(look.color) * mean).tolist())), ""
            repeat = tuple(model.mat_texrepeat[number].tolist())
            look = Look(look.color, name, repeat, float(model.mat_emission[number]))
        material = f"molmospaces {look}"
        self.materials[material] = look
        return material

    # Making the room.

    def _parents_first(self) -> list[int]:
        """Root bodies that become things, those that hold others before them."""
        by_name = {self._body_name(root): root for root, kind in self.types.items() if self._is_thing(root, kind)}
        self.holder = {root: self._holder(root, by_name) for root in by_name.values()}
        ordered: dict[int, None] = {}
        for root in by_name.values():
            chain = [root]
            while (above := self.holder[chain[-1]]) and above not in chain:
                chain.append(above)
            ordered.update(dict.fromkeys(reversed(chain)))
        return list(ordered)

    def _is_thing(self, root: int, kind: str) -> bool:
        return kind not in GOALS and kind != FLOOR and any(part.points() for part in self.parts[root].values())

    def _holder(self, root: int, by_name: dict[str, int]) -> int:
        """The thing that a root body stands on or lies in, 0 for none; goal objects that are left out hold nothing."""
        name, passed = self._body_name(root), set()
        while (known := self.files.objects.get(name)) and known.parent and name not in passed:
            passed.add(name)
            name = known.parent
            if name in by_name and by_name[name] != root:
                return by_name[name]
        return 0

    def _carried(self, kept: list[int]) -> dict[int, tuple[int, int]]:
        """Things that move with a part of what holds them: that thing, and the part's number among its moving ones."""
        carried: dict[int, tuple[int, int]] = {}
        for root in kept:
            holder = self.holder[root]
            if holder in carried:
                carried[root] = carried[holder]
            elif holder:
                low, high = _bounds(self.parts[root].values())
                moving = [part for body, part in self.parts[holder].items() if body != FIXED]
                inside = [n for n, part in enumerate(moving) if any(_within(s, (low + high) / 2) for s in part.spaces)]
                if inside:
                    carried[root] = (holder, inside[0])
        return carried

    def _thing(self, root: int, rigid: bool) -> tuple[Thing, Shape]:
        """A thing and its shape; what is carried does not open."""
        low, high = _bounds(self.parts[root].values())
        size = np.maximum(high - low, 1e-3)
        position = np.round([*((low + high) / 2)[:2], low[2]], 4) + 0.0
        holder = self.holder[root]
        thing = Thing(
            self._body_name(root), self.types[root], _triple(position), 0.0, _triple(np.round(size, 4)),
            inside=self._body_name(holder) if holder else "",
        )  # fmt: skip
        shape = Shape(thing.size, {})
        for body, part in self.parts[root].items():
            into: Drawn = shape
            if body != FIXED and not rigid:
                joint, travel = self.joint_of[body]
                slides = self.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE
                anchor = self.data.xanchor[joint] - position
                into = Moving(thing.size, {}, joint="slide" if slides else "hinge", axis=self.data.xaxis[joint].copy(),
                              anchor=anchor, travel=travel)  # fmt: skip
                shape.moving.append(into)
            part.draw(into, position)
        return thing, shape

    def _shell(self, kind: str, bare: Room) -> tuple[Thing, Shape]:
        """Floor, walls and ceiling around the room: solid everywhere, and drawn where the scene has none."""
        west, south, east, north = bare.bounds
        thing = Thing(kind, kind, (0.0, 0.0, 0.0), 0.0, (east - west, north - south, bare.height))
        shape = shell.draw(thing, bare)
        own = self.parts[0][FIXED]
        if own.surfaces if kind == FLOOR else kind in self.types.values():
            shape.surfaces.clear()
        if kind == FLOOR:
            own.draw(shape, np.zeros(3))
        return thing, shape

    def _outline(self) -> tuple[tuple[float, float], ...]:
        """The rectangle around the floor's surface, or around the walls, or around everything."""
        own = _Part(surfaces=self.parts[0][FIXED].surfaces)
        walls = [part for root in self.parts if self.types.get(root) == WALL for part in self.parts[root].values()]
        everything = [part for parts in self.parts.values() for part in parts.values()]
        choices = (some for some in ([own], walls, everything) if any(part.points() for part in some))
        low, high = _bounds(next(choices, []))
        (west, south), (east, north) = np.round(low[:2], 4).tolist(), np.round(high[:2], 4).tolist()
        return (west, south), (east, south), (east, north), (west, north)

    def _height(self) -> float:
        """Where the ceiling begins, or where the walls end."""
        of_type = {kind: [p for root, k in self.types.items() if k == kind for p in self.parts[root].values()]
                   for kind in (WALL, CEILING)}  # fmt: skip
        if any(part.points() for part in of_type[CEILING]):
            height = _bounds(of_type[CEILING])[0][2]
        elif any(part.points() for part in of_type[WALL]):
            height = _bounds(of_type[WALL])[1][2]
        else:
            return HEIGHT
        return round(float(height), 4) if height > 0 else HEIGHT


def _bounds(parts: Iterable[_Part]) -> tuple[np.ndarray, np.ndarray]:
    """Low and high corners of the box around parts."""
    points = np.concatenate([np.zeros((0, 3)), *(some for part in parts for some in part.points())])
    if not len(points):
        return np.zeros(3), np.zeros(3)
    return points.min(0), points.max(0)


def _within(space: Space, point: np.ndarray) -> bool:
    return bool((np.abs((point - space.position) @ space.rotation) <= space.half).all())


def _triple(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z
