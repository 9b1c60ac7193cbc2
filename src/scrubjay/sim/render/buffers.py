"""The ray caster's geometry and materials: a few large device arrays whose rows are allocated to rooms."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import mujoco
import numpy as np
import torch
import warp as wp

from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.render import shading
from scrubjay.sim.render.bvh import BVH
from scrubjay.sim.render.triangles import Triangles


class Rows:
    """Columns of equal, growing length; rows are allocated in contiguous runs (first fit)."""

    def __init__(self, device: str, **columns: tuple[int, torch.dtype]) -> None:
        self.columns = {
            name: torch.zeros((0, width), dtype=kind, device=device) for name, (width, kind) in columns.items()
        }
        self.free: list[range] = []

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def allocate(self, count: int) -> range:
        """Allocates the first free run that is long enough; doubles the arrays if there is none."""
        for i, span in enumerate(self.free):
            if len(span) >= count:
                self.free[i] = range(span.start + count, span.stop)
                return range(span.start, span.start + count)
        size, growth = len(self), max(len(self), count, 1 << 14)
        for name, column in self.columns.items():
            self.columns[name] = torch.cat([column, column.new_zeros((growth, column.shape[1]))])
        self.release(range(size, size + growth))
        return self.allocate(count)

    def release(self, rows: range) -> None:
        """Frees a run and merges it with its free neighbors."""
        spans = sorted([*self.free, rows], key=lambda span: span.start)
        self.free = spans[:1]
        for span in spans[1:]:
            if span.start == self.free[-1].stop:
                self.free[-1] = range(self.free[-1].start, span.stop)
            else:
                self.free.append(span)

    def write(self, rows: range, **values: np.ndarray) -> None:
        for name, array in values.items():
            column = self.columns[name]
            kind = {torch.int32: np.int32, torch.float32: np.float32}[column.dtype]
            rows_on_host = torch.from_numpy(np.ascontiguousarray(array, kind).reshape(-1, column.shape[1]))
            column[rows.start : rows.stop] = rows_on_host.to(column.device)


class SharedPool:
    """Reference-counted objects shared by key. Indices of freed objects are reused."""

    def __init__(self) -> None:
        self.items: list = []
        self._indices: dict[tuple, int] = {}
        self._references: list[int] = []

    def index(self, key: tuple, make: Callable[[], object]) -> int:
        """The index of a key's object, which is made on first use."""
        if key not in self._indices:
            used = set(self._indices.values())
            index = next((n for n in range(len(self.items)) if n not in used), len(self.items))
            if index == len(self.items):
                self.items.append(None)
                self._references.append(0)
            self.items[index], self._indices[key] = make(), index
        return self._indices[key]

    def acquire(self, indices: set[int]) -> None:
        for index in indices:
            self._references[index] += 1

    def release(self, indices: set[int]) -> None:
        for index in indices:
            self._references[index] -= 1
        self._indices = {key: index for key, index in self._indices.items() if self._references[index]}


class Store:
    """Faces and BVH nodes of all rooms, and the materials and textures that they share."""

    def __init__(self, device: str) -> None:
        self.device = device
        one, real = (1, torch.int32), torch.float32
        self.faces = Rows(device, openable=one, material=one, thing=one, detail=(1, real), corners=(12, real),
                          normals=(9, real), uv=(6, real))  # fmt: skip
        self.nodes = Rows(device, boxes=(16, real))
        self.materials, self.textures = SharedPool(), SharedPool()

    def write(self, loaded, bvh: BVH, triangles: Triangles, openable: np.ndarray, compiled: CompiledRoom) -> None:
        """Writes a BVH and its triangles, in leaf order, into the rows allocated for them."""
        indices = {int(m): self._material(compiled, int(m)) for m in np.unique(triangles.material)}
        loaded.materials = set(indices.values())
        loaded.textures = {int(self.materials.items[index].texture) for index in loaded.materials} - {-1}
        self.materials.acquire(loaded.materials)
        self.textures.acquire(loaded.textures)
        corner = triangles.points[triangles.faces]
        edges = np.zeros((len(corner), 3, 4), np.float32)
        edges[:, 0, :3], edges[:, 1:, :3] = corner[:, 0], corner[:, 1:] - corner[:, :1]
        self.faces.write(
            loaded.rows, openable=openable, material=np.vectorize(indices.__getitem__)(triangles.material),
            thing=triangles.thing, detail=triangles.detail, corners=edges, normals=triangles.normals, uv=triangles.uv,
        )  # fmt: skip
        self.nodes.write(loaded.nodes, boxes=bvh.nodes_at(loaded.nodes.start, loaded.rows.start))

    def free(self, loaded) -> None:
        """Frees a room's rows, and the materials and textures that no other room uses."""
        self.faces.release(loaded.rows)
        self.nodes.release(loaded.nodes)
        self.materials.release(loaded.materials)
        self.textures.release(loaded.textures)

    def surfaces(self) -> shading.Surfaces:
        """The faces' columns for shading."""
        faces, surfaces = self.faces.columns, shading.Surfaces()
        surfaces.material, surfaces.thing, surfaces.detail = (
            wp.from_torch(faces[name].reshape(-1)) for name in ("material", "thing", "detail")
        )
        surfaces.normal = wp.from_torch(faces["normals"].reshape(-1, 3), wp.vec3)
        surfaces.uv = wp.from_torch(faces["uv"].reshape(-1, 2), wp.vec2)
        surfaces.materials = wp.array(self.materials.items, dtype=shading.Material, device=self.device)
        return surfaces

    def trees(self) -> dict[str, wp.array]:
        """Nodes, triangles, and the faces' openables and things, as tracing names them."""
        faces = self.faces.columns
        columns = {"nodes": self.nodes.columns["boxes"], "triangles": faces["corners"],
                   "face_openable": faces["openable"], "face_thing": faces["thing"]}  # fmt: skip
        return {name: wp.from_torch(column.reshape(-1)) for name, column in columns.items()}

    def texture_array(self) -> wp.array:
        return wp.array(self.textures.items, dtype=wp.Texture2D, device=self.device)

    def _material(self, compiled: CompiledRoom, number: int) -> int:
        """A material's index in the pool. Rooms share all materials and textures but those of their floors."""
        model = compiled.model
        texture = int(model.mat_texid[number, mujoco.mjtTextureRole.mjTEXROLE_RGB])
        image = self._texture(compiled, texture) if texture >= 0 else -1
        tint, repeat, glow = model.mat_rgba[number, :3], model.mat_texrepeat[number], float(model.mat_emission[number])

        def make() -> object:
            record = shading.Material()
            record.tint, record.glow, record.texture, record.repeat = wp.vec3(*tint), glow, image, wp.vec2(*repeat)
            return record

        return self.materials.index((*tint, *repeat, glow, image), make)

    def _texture(self, compiled: CompiledRoom, texture: int) -> int:
        model = compiled.model
        shape = (model.tex_height[texture], model.tex_width[texture], 3)
        pixels = model.tex_data[model.tex_adr[texture] :][: int(np.prod(shape))].reshape(shape)
        return self.textures.index((shape, blake2b(pixels.tobytes()).digest()), lambda: self._upload(pixels))

    def _upload(self, pixels: np.ndarray) -> wp.Texture2D:
        """A texture on the device, with all mip levels."""
        opaque = np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, np.uint8)], -1)
        return wp.Texture2D(opaque, filter_mode=wp.TextureFilterMode.LINEAR, address_mode=wp.TextureAddressMode.WRAP,
                            num_mip_levels=0, device=self.device)  # fmt: skip
