"""Pixels from our ray caster in NVIDIA Warp: all worlds in one launch, on a GPU or, without any OpenGL, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
import warp as wp

from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import FIXED, GOAL, MOVING, CompiledRoom
from scrubjay.sim.quaternion import matrices
from scrubjay.sim.render import raycast, shading
from scrubjay.sim.render.base import EVERYTHING, KINDS, Shot, View
from scrubjay.sim.render.buffers import Store
from scrubjay.sim.render.bvh import build
from scrubjay.sim.render.triangles import Triangles, joined, triangles_of

BITS = dict(zip(KINDS, (shading.RGB, shading.DEPTH, shading.IDS, shading.NORMALS), strict=True))
AT_ONCE = 512
"""Worlds whose hits are kept at a time, so that their memory does not grow with the batch."""
SHAPES = {"rgb": (3,), "depth": (), "ids": (), "normals": (3,)}
TYPES = {"rgb": torch.uint8, "depth": torch.float32, "ids": torch.int16, "normals": torch.float32}


class WarpRenderer:
    """Renders any number of copies of rooms. A room's place in it can be taken by another room at any time."""

    def __init__(
        self,
        rooms: Sequence[CompiledRoom],
        copies: int,
        size: int = 224,
        device: str = "cpu",
        shadows: bool = False,
        culled: bool = False,
    ) -> None:
        wp.init()
        self.name, self.size, self.copies, self.device = f"Warp ({device})", size, copies, device
        self.shadows, self.culled = shadows, culled
        self._store = Store(device)
        self._rooms = [_Room(room, self._store) for room in rooms]
        objects = [triangles_of(rooms[0], rooms[0].goals[kind].body) for kind in GOALS]
        nobody = [np.full(len(thing.faces), -1) for thing in objects]
        self._goals = _Loaded(rooms[0], objects, nobody, self._store).trees
        self._ready = False
        self._hits: list[wp.array] = []

    def replace(self, number: int, room: CompiledRoom) -> None:
        """Puts another room in one's place; all its copies are in the new room from the next picture on."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)  # A picture under way may still read what is about to go.
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
        out = {**made, **none}
        head = self._rooms[0].compiled.model.vis.headlight
        room_of = self._sent(rooms, wp.int32)
        eyes, turns = self._sent(shot.eye, wp.vec3), self._sent(shot.matrix, wp.mat33)
        is_open, goal = self._sent(shot.open, wp.uint8), self._sent(shot.goal, wp.int32)
        goal_position = self._sent(shot.pose[:, :3], wp.vec3)
        goal_turn = self._sent(matrices(shot.pose[:, 3:]), wp.mat33)
        tables = (self._room_table, self._part_table, self._goal_table)
        nodes, triangles, openable, *look = self._store.arrays()
        edge = float(np.tan(np.radians(shot.field_of_view / 2)))
        pictures = [wp.from_torch(out[kind]) for kind in KINDS]
        for first in range(0, count, AT_ONCE):
            rays = min(AT_ONCE, count - first) * size * size
            *hits, lit = self._hit_buffers(min(AT_ONCE, count) * size * size)
            launch = dict(dim=rays, device=self.device, stream=self._stream(), block_dim=raycast.BLOCK)
            moving = (is_open, goal, goal_position, goal_turn, *tables, nodes, triangles, openable)
            wp.launch(raycast.trace, inputs=[
                size, edge, first, FIXED in groups, MOVING in groups, GOAL in groups, self.culled,
                room_of, eyes, turns, *moving,
            ], outputs=hits, **launch)  # fmt: skip
            shaded = self.shadows and "rgb" in kinds
            if shaded:
                inputs = [size, edge, first, room_of, eyes, turns, *moving, hits[0], hits[2]]
                wp.launch(raycast.shadow, inputs=inputs, outputs=[lit], **launch)
            wp.launch(shading.shade, inputs=[
                size, edge, first, sum(BITS[kind] for kind in kinds), shaded, wp.vec3(*head.ambient),
                wp.vec3(*head.diffuse), room_of, turns, is_open, goal, goal_turn, *tables[:2], triangles, *look,
                *hits, lit,
            ], outputs=pictures, **launch)  # fmt: skip
        return View(**made)

    def close(self) -> None:
        self._rooms = []

    def _gather(self) -> None:
        """Tables of what the kernel reads: rooms, their moving parts, the goal objects."""
        parts: list = []
        rooms = []
        for room in self._rooms:
            rooms.append(room.record(len(parts)))
            parts += room.parts
        self._room_table = wp.array(rooms, dtype=raycast.Room, device=self.device)
        self._part_table = wp.array(parts or [raycast.Part()], dtype=raycast.Part, device=self.device)
        self._goal_table = wp.array(self._goals, dtype=raycast.Tree, device=self.device)
        self._ready = True

    def _hit_buffers(self, rays: int) -> list[wp.array]:
        """Room for what rays hit, kept from picture to picture."""
        if not self._hits or len(self._hits[0]) < rays:
            kinds = (wp.int32, wp.int16, wp.float32, wp.vec2)
            self._hits = [wp.empty(rays, dtype=kind, device=self.device) for kind in kinds]
            self._hits.append(wp.empty(rays if self.shadows else 1, dtype=wp.float32, device=self.device))
        return self._hits

    def _stream(self):
        """Torch's own stream, so that pictures are ready when torch reads them."""
        return wp.stream_from_torch(torch.cuda.current_stream(self.device)) if self.device.startswith("cuda") else None

    def _sent(self, values: np.ndarray, dtype) -> wp.array:
        kind = {wp.uint8: np.uint8, wp.int32: np.int32}.get(dtype, np.float32)
        # Without waiting for what the device is at: what is not pinned is copied before the call returns.
        sent = torch.from_numpy(np.ascontiguousarray(values, kind)).to(self.device, non_blocking=True)
        return wp.from_torch(sent, dtype)


class _Loaded:
    """Trees on the device: of a room and its parts, or of the goal objects."""

    def __init__(self, compiled: CompiledRoom, groups: list[Triangles], owners: list[np.ndarray], store: Store) -> None:
        everything = joined(groups)
        trees = build(everything.points[everything.faces], [len(group.faces) for group in groups])
        self.rows = store.faces.lend(len(trees.order))
        self.nodes = store.nodes.lend(len(trees.nodes))
        store.write(self, trees, everything.reordered(trees.order), np.concatenate(owners)[trees.order], compiled)
        self.trees = []
        for root, group in zip(trees.roots + self.nodes.start, groups, strict=True):
            tree = raycast.Tree()
            tree.root = int(root)
            tree.low, tree.high = wp.vec3(*(group.points.min(0) - 1e-4)), wp.vec3(*(group.points.max(0) + 1e-4))
            self.trees.append(tree)


class _Room(_Loaded):
    """One room: the whole of it closed, what never moves, and each moving part."""

    def __init__(self, compiled: CompiledRoom, store: Store) -> None:
        self.compiled = compiled
        bodies = [(number, body) for number, openable in enumerate(compiled.openables) for body in openable.bodies]
        fixed, *moving = [triangles_of(compiled, body) for body in (0, *(body for _, body in bodies))]
        nobody = [np.full(len(part.faces), -1) for part in (fixed, *moving)]
        owned = [np.full(len(part.faces), number) for (number, _), part in zip(bodies, moving, strict=True)]
        whole = np.concatenate([nobody[0], *owned])
        super().__init__(compiled, [joined([fixed, *moving]), fixed, *moving], [whole, *nobody], store)
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

    def record(self, first_part: int):
        """The kernel's row of this room."""
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
