"""Renders with our ray caster in NVIDIA Warp: all worlds in one launch, on a GPU, or on a CPU without OpenGL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
import torch
import warp as wp

from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import FIXED, GOAL, MOVING, CompiledRoom
from scrubjay.sim.quaternion import matrix_from_quat
from scrubjay.sim.render import raycast, shading
from scrubjay.sim.render.base import EVERYTHING, KINDS, Shot, View
from scrubjay.sim.render.buffers import Store
from scrubjay.sim.render.bvh import BVH, build_bvh
from scrubjay.sim.render.triangles import Triangles, concatenate, triangles_of

BITS = dict(zip(KINDS, (shading.RGB, shading.DEPTH, shading.IDS, shading.NORMALS), strict=True))
AT_ONCE = 512
"""Worlds per launch, which bounds the memory for hits."""
SHAPES = {"rgb": (3,), "depth": (), "ids": (), "normals": (3,)}
TYPES = {"rgb": torch.uint8, "depth": torch.float32, "ids": torch.int16, "normals": torch.float32}
_bvhs: WeakKeyDictionary[CompiledRoom, BVH] = WeakKeyDictionary()
"""Of rooms in use: training has two renderers of the same rooms, and a room takes a quarter of a second."""


class WarpRenderer:
    """Renders any number of copies of rooms. Any room can be replaced at any time."""

    def __init__(
        self,
        rooms: Sequence[CompiledRoom],
        copies: int,
        size: int = 224,
        device: str = "cpu",
        shadows: bool = False,
        cull_backfaces: bool = False,
    ) -> None:
        wp.init()
        self.name, self.size, self.copies, self.device = f"Warp ({device})", size, copies, device
        self.shadows, self.cull_backfaces = shadows, cull_backfaces
        self._store = Store(device)
        self._rooms = [_Room(room, self._store) for room in rooms]
        objects = [triangles_of(rooms[0], rooms[0].goals[kind].body) for kind in GOALS]
        nobody = [np.full(len(thing.faces), -1) for thing in objects]
        # Their ids depend on the room: no room's thing is meant where its things are left out.
        objects = [replace(triangles, thing=none) for triangles, none in zip(objects, nobody, strict=True)]
        self._goals = _Loaded(rooms[0], objects, nobody, self._store).trees
        self._ready = False
        self._hits: raycast.Hits | None = None

    def replace(self, number: int, room: CompiledRoom) -> None:
        """Replaces a room in all its copies, from the next picture on."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)  # Kernels may still read what is about to be freed.
        self._store.free(self._rooms[number])
        self._rooms[number] = _Room(room, self._store)
        self._ready = False

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View:
        rooms = shot.room_of(len(self._rooms), self.copies)
        if not self._ready:
            self._gather()
        count, size = len(rooms), self.size
        made = {
            kind: torch.empty((count, size, size, *SHAPES[kind]), dtype=TYPES[kind], device=self.device)
            for kind in kinds
        }
        if not count:
            return View(**made)
        none = {
            kind: torch.empty((0,) * (3 + len(SHAPES[kind])), dtype=TYPES[kind], device=self.device)
            for kind in KINDS
            if kind not in kinds
        }
        images = shading.Images()
        for kind, image in (made | none).items():
            setattr(images, kind, wp.from_torch(image))
        head = self._rooms[0].compiled.model.vis.headlight
        scene, hits = self._scene_of(rooms, shot), self._hit_buffers(min(AT_ONCE, count) * size * size)
        edge = float(np.tan(np.radians(shot.field_of_view / 2)))
        casts_shadows = self.shadows and "rgb" in kinds
        kernels = _kernels(shot)
        for first in range(0, count, AT_ONCE):
            rays = min(AT_ONCE, count - first) * size * size
            launch = dict(dim=rays, device=self.device, stream=self._stream(), block_dim=raycast.BLOCK)
            wp.launch(kernels.trace, inputs=[
                size, edge, first, FIXED in groups, MOVING in groups, GOAL in groups, self.cull_backfaces, scene, hits,
            ], **launch)  # fmt: skip
            if casts_shadows:
                wp.launch(kernels.shadow, inputs=[size, edge, first, scene, hits], **launch)
            wp.launch(shading.shade, inputs=[
                size, edge, first, sum(BITS[kind] for kind in kinds), casts_shadows, wp.vec3(*head.ambient),
                wp.vec3(*head.diffuse), scene, self._surfaces, self._textures, hits, images,
            ], **launch)  # fmt: skip
        return View(**made)

    def close(self) -> None:
        self._rooms = []

    def _gather(self) -> None:
        """Collects what kernels read and no step changes: rooms, their moving parts, the goal objects, surfaces."""
        parts: list = []
        rooms = []
        for room in self._rooms:
            rooms.append(room.record(len(parts)))
            parts += room.parts
        self._tables = {
            "rooms": wp.array(rooms, dtype=raycast.Room, device=self.device),
            "parts": wp.array(parts or [raycast.Part()], dtype=raycast.Part, device=self.device),
            "goals": wp.array(self._goals, dtype=raycast.Tree, device=self.device),
            **self._store.trees(),
        }
        self._surfaces, self._textures = self._store.surfaces(), self._store.texture_array()
        self._ready = True

    def _scene_of(self, rooms: np.ndarray, shot: Shot) -> raycast.Scene:
        """The kernels' scene of a shot in rooms (B,)."""
        scene = raycast.Scene()
        scene.room_of = self._sent(rooms, wp.int32)
        scene.eyes, scene.turns = self._sent(shot.eye, wp.vec3), self._sent(shot.matrix, wp.mat33)
        scene.is_open, scene.goal = self._sent(shot.open, wp.uint8), self._sent(shot.goal, wp.int32)
        scene.goal_position = self._sent(shot.pose[:, :3], wp.vec3)
        scene.goal_turn = self._sent(matrix_from_quat(shot.pose[:, 3:]), wp.mat33)
        scene.left_out = self._sent(np.zeros((0, 0)) if shot.left_out is None else shot.left_out, wp.uint8)
        for name, table in self._tables.items():
            setattr(scene, name, table)
        return scene

    def _hit_buffers(self, rays: int) -> raycast.Hits:
        """Buffers for what rays hit, reused between shots."""
        if self._hits is None or len(self._hits.face) < rays:
            self._hits = raycast.Hits()
            for name, kind in (("face", wp.int32), ("owner", wp.int16), ("far", wp.float32), ("uv", wp.vec2)):
                setattr(self._hits, name, wp.empty(rays, dtype=kind, device=self.device))
            self._hits.lit = wp.empty(rays if self.shadows else 1, dtype=wp.float32, device=self.device)
        return self._hits

    def _stream(self):
        """Torch's current stream, so that images are ready when torch reads them."""
        return wp.stream_from_torch(torch.cuda.current_stream(self.device)) if self.device.startswith("cuda") else None

    def _sent(self, values: np.ndarray, dtype) -> wp.array:
        kind = {wp.uint8: np.uint8, wp.int32: np.int32}.get(dtype, np.float32)
        # Does not wait for the device: unpinned memory is copied before the call returns.
        sent = torch.from_numpy(np.ascontiguousarray(values, kind)).to(self.device, non_blocking=True)
        return wp.from_torch(sent, dtype)


def _kernels(shot: Shot) -> raycast.Kernels:
    """The kernels for a shot: the faster ones if nothing is left out."""
    if shot.left_out is None:
        return raycast.EVERYTHING
    from scrubjay.sim.render.raycast_without import WITHOUT_THINGS  # Imported late: few programs need them.

    return WITHOUT_THINGS


class _Loaded:
    """Trees on the device: of a room and its parts, or of the goal objects."""

    def __init__(self, compiled: CompiledRoom, groups: list[Triangles], owners: list[np.ndarray], store: Store) -> None:
        everything = concatenate(groups)
        bvh = self._bvh(compiled, everything, groups)
        self.rows = store.faces.allocate(len(bvh.order))
        self.nodes = store.nodes.allocate(len(bvh.nodes))
        store.write(self, bvh, everything.take(bvh.order), np.concatenate(owners)[bvh.order], compiled)
        self.trees = []
        for root, group in zip(bvh.roots + self.nodes.start, groups, strict=True):
            tree = raycast.Tree()
            tree.root = int(root)
            tree.low, tree.high = wp.vec3(*(group.points.min(0) - 1e-4)), wp.vec3(*(group.points.max(0) + 1e-4))
            self.trees.append(tree)

    def _bvh(self, compiled: CompiledRoom, everything: Triangles, groups: list[Triangles]) -> BVH:
        return build_bvh(everything.points[everything.faces], [len(group.faces) for group in groups])


class _Room(_Loaded):
    """A room's trees: all of it closed, what never moves, and each moving part."""

    def __init__(self, compiled: CompiledRoom, store: Store) -> None:
        self.compiled = compiled
        bodies = [(number, body) for number, openable in enumerate(compiled.openables) for body in openable.bodies]
        fixed, *moving = [triangles_of(compiled, body) for body in (0, *(body for _, body in bodies))]
        nobody = [np.full(len(part.faces), -1) for part in (fixed, *moving)]
        owned = [np.full(len(part.faces), number) for (number, _), part in zip(bodies, moving, strict=True)]
        whole = np.concatenate([nobody[0], *owned])
        super().__init__(compiled, [concatenate([fixed, *moving]), fixed, *moving], [whole, *nobody], store)
        data = mujoco.MjData(compiled.model)
        for openable in compiled.openables:
            data.qpos[openable.qpos] = openable.travel
        mujoco.mj_kinematics(compiled.model, data)
        self.parts = []
        for (number, body), tree in zip(bodies, self.trees[2:], strict=True):
            part = raycast.Part()
            part.tree, part.openable = tree, number
            part.turn, part.shift = wp.mat33(*data.xmat[body]), wp.vec3(*data.xpos[body])
            self.parts.append(part)

    def _bvh(self, compiled: CompiledRoom, everything: Triangles, groups: list[Triangles]) -> BVH:
        if compiled not in _bvhs:
            _bvhs[compiled] = super()._bvh(compiled, everything, groups)
        return _bvhs[compiled]

    def record(self, first_part: int):
        """This room's row for the kernels."""
        model = self.compiled.model
        if model.nlight > raycast.LAMPS:
            raise ValueError(
                f"{self.compiled.room.scene} has {model.nlight} lamps; the ray caster draws {raycast.LAMPS}"
            )
        direction, color = np.zeros((2, raycast.LAMPS, 3))
        direction[: model.nlight], color[: model.nlight] = model.light_dir, model.light_diffuse
        room = raycast.Room()
        room.whole, room.fixed = self.trees[:2]
        room.first_part, room.parts = first_part, len(self.parts)
        room.things = len(self.compiled.room.things)
        room.lamp_direction, room.lamp_color = wp.mat33(*direction.ravel()), wp.mat33(*color.ravel())
        return room
