"""Pixels from our ray caster in NVIDIA Warp: all worlds in one launch, on a GPU or, without any OpenGL, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
import warp as wp

from scrubjay.world import raycast
from scrubjay.world.mjcf import FIXED, GOAL, MOVING, Compiled
from scrubjay.world.room import GOALS
from scrubjay.world.triangles import Triangles, joined, triangles_of
from scrubjay.world.view import EVERYTHING, KINDS, Shot, View

BITS = dict(zip(KINDS, (raycast.RGB, raycast.DEPTH, raycast.IDS, raycast.NORMALS), strict=True))
AT_ONCE = 512
"""Worlds whose hits are kept at a time, so that their memory does not grow with the batch."""
CONSTRUCTOR = "sah"
LEAF = None
SHAPES = {"rgb": (3,), "depth": (), "ids": (), "normals": (3,)}
TYPES = {"rgb": torch.uint8, "depth": torch.float32, "ids": torch.int16, "normals": torch.float32}


class Warp:
    """Renders any number of copies of rooms. A room's place in it can be taken by another room at any time."""

    def __init__(
        self, rooms: Sequence[Compiled], copies: int, size: int = 224, device: str = "cpu", culled: bool = False
    ) -> None:
        wp.config.quiet = True
        wp.init()
        self.name, self.size, self.copies, self.device, self.culled = f"Warp ({device})", size, copies, device, culled
        self._faces = _Faces(device)
        self._rooms = [_Loaded(room, self._faces) for room in rooms]
        self._goals = [self._goal(rooms[0], kind) for kind in GOALS]
        self._room_of = torch.arange(len(rooms), device=device, dtype=torch.int32).repeat_interleave(copies)
        self._ready = False
        self._hits: list[wp.array] = []

    def _goal(self, room: Compiled, kind: str) -> _Tree:
        """A goal object's tree: the objects are the same in every room."""
        triangles = triangles_of(room, room.goals[kind].body)
        return _Tree(triangles, np.full(len(triangles.faces), -1), room, self._faces)

    def replace(self, number: int, room: Compiled) -> None:
        """Puts another room in one's place; all its copies are in the new room from the next picture on."""
        self._rooms[number].free(self._faces)
        self._rooms[number] = _Loaded(room, self._faces)
        self._ready = False

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View:
        if not self._ready:
            self._gather()
        count, size = len(shot.eye), self.size
        made = {
            kind: torch.empty((count, size, size, *SHAPES[kind]), dtype=TYPES[kind], device=self.device) for kind in kinds
        }
        none = {
            kind: torch.empty((0,) * (3 + len(SHAPES[kind])), dtype=TYPES[kind], device=self.device)
            for kind in KINDS
            if kind not in kinds
        }
        out = {**made, **none}
        head = self._rooms[0].compiled.model.vis.headlight
        room_of = wp.from_torch(self._room_of, wp.int32)
        eyes, turns = self._sent(shot.eye, wp.vec3), self._sent(shot.matrix, wp.mat33)
        is_open, goal = self._sent(shot.open, wp.uint8), self._sent(shot.goal, wp.int32)
        goal_position = self._sent(shot.pose[:, :3], wp.vec3)
        goal_turn = self._sent(_matrices(shot.pose[:, 3:]), wp.mat33)
        tables = (self._room_table, self._part_table, self._goal_table)
        openable, *look = self._faces.arrays()
        edge = float(np.tan(np.radians(shot.field_of_view / 2)))
        pictures = [wp.from_torch(out[kind]) for kind in KINDS]
        for first in range(0, count, AT_ONCE):
            rays = min(AT_ONCE, count - first) * size * size
            hits = self._hit_buffers(min(AT_ONCE, count) * size * size)
            launch = dict(dim=rays, device=self.device, stream=self._stream(), block_dim=64)
            wp.launch(raycast.trace, inputs=[
                size, edge, first, FIXED in groups, MOVING in groups, GOAL in groups, self.culled,
                room_of, eyes, turns, is_open, goal, goal_position, goal_turn, *tables, openable,
            ], outputs=hits, **launch)  # fmt: skip
            wp.launch(raycast.shade, inputs=[
                size, edge, first, sum(BITS[kind] for kind in kinds), wp.vec3(*head.ambient), wp.vec3(*head.diffuse),
                room_of, turns, is_open, goal, goal_turn, *tables, *look, *hits,
            ], outputs=pictures, **launch)  # fmt: skip
        return View(**{kind: made[kind] for kind in kinds})

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
        self._goal_table = wp.array([goal.record for goal in self._goals], dtype=raycast.Tree, device=self.device)
        self._ready = True

    def _hit_buffers(self, rays: int) -> list[wp.array]:
        """Room for what rays hit, kept from picture to picture."""
        if not self._hits or len(self._hits[0]) < rays:
            kinds = (wp.int32, wp.int16, wp.float32, wp.vec2)
            self._hits = [wp.empty(rays, dtype=kind, device=self.device) for kind in kinds]
        return self._hits

    def _stream(self):
        """Torch's own stream, so that pictures are ready when torch reads them."""
        return wp.stream_from_torch(torch.cuda.current_stream(self.device)) if self.device.startswith("cuda") else None

    def _sent(self, values: np.ndarray, dtype) -> wp.array:
        kind = {wp.uint8: np.uint8, wp.int32: np.int32}.get(dtype, np.float32)
        return wp.from_torch(torch.from_numpy(np.ascontiguousarray(values, kind)).to(self.device), dtype)


class _Tree:
    """Triangles on the device, and their rows in the face arrays."""

    def __init__(self, triangles: Triangles, openable: np.ndarray, compiled: Compiled, faces: _Faces) -> None:
        self.rows = faces.add(triangles, openable, compiled)
        self.mesh = wp.Mesh(
            wp.array(triangles.points.astype(np.float32), dtype=wp.vec3, device=faces.device),
            wp.array(triangles.faces.astype(np.int32).ravel(), dtype=wp.int32, device=faces.device),
            bvh_constructor=CONSTRUCTOR,
            bvh_leaf_size=LEAF,
        )
        self.record = raycast.Tree()
        self.record.mesh, self.record.face = self.mesh.id, self.rows.start
        self.record.low = wp.vec3(*(triangles.points.min(0) - 1e-4))
        self.record.high = wp.vec3(*(triangles.points.max(0) + 1e-4))


class _Loaded:
    """One room on the device."""

    def __init__(self, compiled: Compiled, faces: _Faces) -> None:
        self.compiled = compiled
        data = mujoco.MjData(compiled.model)
        for openable in compiled.openables:
            data.qpos[openable.qpos] = openable.travel
        mujoco.mj_kinematics(compiled.model, data)
        self.moving: list[_Tree] = []
        self.parts: list = []
        fixed = triangles_of(compiled, 0)
        closed, owner = [fixed], [np.full(len(fixed.faces), -1)]
        for number, openable in enumerate(compiled.openables):
            for body in openable.bodies:
                triangles = triangles_of(compiled, body)
                closed.append(triangles)
                owner.append(np.full(len(triangles.faces), number))
                tree = _Tree(triangles, np.full(len(triangles.faces), -1), compiled, faces)
                part = raycast.Part()
                part.tree, part.openable = tree.record, number
                part.turn, part.shift = wp.mat33(*data.xmat[body]), wp.vec3(*data.xpos[body])
                self.moving.append(tree)
                self.parts.append(part)
        self.whole = _Tree(joined(closed), np.concatenate(owner), compiled, faces)
        self.fixed = _Tree(fixed, owner[0], compiled, faces)

    def record(self, first_part: int):
        model = self.compiled.model
        if model.nlight > raycast.LAMPS:
            raise ValueError(f"{self.compiled.room.scene} has {model.nlight} lamps; the ray caster draws {raycast.LAMPS}")
        direction, colour = np.zeros((2, raycast.LAMPS, 3))
        direction[: model.nlight], colour[: model.nlight] = model.light_dir, model.light_diffuse
        room = raycast.Room()
        room.whole, room.fixed = self.whole.record, self.fixed.record
        room.first_part, room.parts = first_part, len(self.parts)
        room.things = len(self.compiled.room.things)
        room.lamp_direction, room.lamp_colour = wp.mat33(*direction.ravel()), wp.mat33(*colour.ravel())
        return room

    def free(self, faces: _Faces) -> None:
        for tree in (self.whole, self.fixed, *self.moving):
            faces.remove(tree.rows)


class _Faces:
    """What is known of every face on the device: material, thing, normals, texture. Rows are lent to trees and come back."""

    COLUMNS = {"openable": (1, np.int32), "material": (1, np.int32), "thing": (1, np.int32), "detail": (1, np.float32), "normals": (9, np.float32), "uv": (6, np.float32)}  # fmt: skip

    def __init__(self, device: str, room_for: int = 1 << 16) -> None:
        self.device = device
        self.free = [range(0, room_for)]
        self.columns = {
            name: torch.zeros((room_for, width), dtype=getattr(torch, np.dtype(kind).name), device=device)
            for name, (width, kind) in self.COLUMNS.items()
        }
        self.materials: dict[tuple, int] = {}
        self.textures: dict[object, int] = {}
        self._material_records: list = []
        self._texture_handles: list[wp.Texture2D] = []
        self._arrays: list | None = None

    def add(self, triangles: Triangles, openable: np.ndarray, compiled: Compiled) -> range:
        """Writes triangles into free rows, making more of them where there are none."""
        rows = self._lend(len(triangles.faces))
        names = {int(m): self._material(compiled, int(m)) for m in np.unique(triangles.material)}
        numbers = np.vectorize(names.__getitem__)(triangles.material)
        values = {"openable": openable, "material": numbers, "thing": triangles.thing, "detail": triangles.detail,
                  "normals": triangles.normals, "uv": triangles.uv}  # fmt: skip
        for name, (width, kind) in self.COLUMNS.items():
            made = torch.from_numpy(np.ascontiguousarray(values[name], kind).reshape(-1, width))
            self.columns[name][rows.start : rows.stop] = made.to(self.device)
        self._arrays = None
        return rows

    def remove(self, rows: range) -> None:
        """Takes rows back, joined with free neighbours."""
        spans = sorted([*self.free, rows], key=lambda span: span.start)
        self.free = spans[:1]
        for span in spans[1:]:
            if span.start == self.free[-1].stop:
                self.free[-1] = range(self.free[-1].start, span.stop)
            else:
                self.free.append(span)

    def arrays(self) -> list:
        """The kernel's arguments."""
        if self._arrays is None:
            columns = {name: column.reshape(-1) for name, column in self.columns.items()}
            self._arrays = [
                wp.from_torch(columns["openable"], wp.int32), wp.from_torch(columns["material"], wp.int32), wp.from_torch(columns["thing"], wp.int32),
                wp.from_torch(columns["detail"], wp.float32), wp.from_torch(columns["normals"].reshape(-1, 3), wp.vec3),
                wp.from_torch(columns["uv"].reshape(-1, 2), wp.vec2),
                wp.array(self._material_records, dtype=raycast.Material, device=self.device),
                wp.array(self._texture_handles, dtype=wp.Texture2D, device=self.device),
            ]  # fmt: skip
        return self._arrays

    def _lend(self, count: int) -> range:
        for i, span in enumerate(self.free):
            if len(span) >= count:
                self.free[i] = range(span.start + count, span.stop)
                return range(span.start, span.start + count)
        size = len(self.columns["thing"])
        more = max(size, count)
        for name, column in self.columns.items():
            self.columns[name] = torch.cat([column, torch.zeros((more, column.shape[1]), dtype=column.dtype, device=self.device)])
        self.remove(range(size, size + more))
        return self._lend(count)

    def _material(self, compiled: Compiled, number: int) -> int:
        """A material's number here; rooms share materials and textures, all but the pictures of their floors."""
        model = compiled.model
        texture = int(model.mat_texid[number, mujoco.mjtTextureRole.mjTEXROLE_RGB])
        image = self._texture(compiled, texture) if texture >= 0 else -1
        tint, repeat = model.mat_rgba[number, :3], model.mat_texrepeat[number]
        key = (*tint, *repeat, float(model.mat_emission[number]), image)
        if key not in self.materials:
            record = raycast.Material()
            record.tint, record.glow = wp.vec3(*tint), float(model.mat_emission[number])
            record.texture, record.repeat = image, wp.vec2(*repeat)
            self.materials[key] = len(self._material_records)
            self._material_records.append(record)
        return self.materials[key]

    def _texture(self, compiled: Compiled, texture: int) -> int:
        model = compiled.model
        shape = (model.tex_height[texture], model.tex_width[texture], 3)
        pixels = model.tex_data[model.tex_adr[texture] :][: int(np.prod(shape))].reshape(shape)
        key = (shape, pixels.tobytes())
        if key not in self.textures:
            self.textures[key] = len(self._texture_handles)
            opaque = np.concatenate([pixels, np.full((*shape[:2], 1), 255, np.uint8)], -1)
            self._texture_handles.append(
                wp.Texture2D(opaque, filter_mode=wp.TextureFilterMode.LINEAR, address_mode=wp.TextureAddressMode.WRAP,
                             num_mip_levels=0, device=self.device)
            )  # fmt: skip
        return self.textures[key]


def _matrices(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (B, 3, 3) of quaternions (B, 4), scalar first."""
    w, x, y, z = quaternions.T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )
