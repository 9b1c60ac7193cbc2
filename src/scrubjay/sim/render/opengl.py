"""Pixels from OpenGL: MuJoCo's own renderer, on any machine with EGL or OSMesa, one world after another."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch

from scrubjay.errors import RendererError
from scrubjay.sim.compile import SOLID, CompiledRoom
from scrubjay.sim.render.base import EVERYTHING, Shot, View


def _context(size: int):
    """An off-screen OpenGL context, hardware or software. Imported here: the import itself opens the display."""
    reasons = []
    for backend in ("egl", "osmesa"):
        try:
            if backend == "egl":
                from mujoco.egl import GLContext
            else:
                from mujoco.osmesa import GLContext
            context = GLContext(size, size)
            context.make_current()
            return backend, context
        # A missing library shows as any of ImportError, AttributeError, RuntimeError, OSError.
        except Exception as error:
            reasons.append(f"{backend}: {error}")
    raise RendererError(
        "no OpenGL library works here (" + "; ".join(reasons) + "); on Debian and Ubuntu "
        "`apt-get install libegl1 libgl1-mesa-dri` brings one, or use the renderer 'warp'"
    )


class OpenGLRenderer:
    """Renders with one OpenGL context, into which each room's meshes and textures are loaded."""

    def __init__(self, rooms: Sequence[CompiledRoom], copies: int, size: int = 224, culled: bool = False) -> None:
        self.rooms, self.copies, self.size = rooms, copies, size
        backend, self._gl = _context(size)
        self.name = f"OpenGL ({backend})"
        self._loaded: list[_Loaded | None] = [None] * len(rooms)
        self._culled = culled
        self._rays = pixel_rays(size)

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View:
        room_of = shot.room_of(len(self.rooms), self.copies)
        self._gl.make_current()
        count, size = len(room_of), self.size
        # Filled as arrays and handed over whole: torch would start its threads for every copy of a picture.
        rgb = np.empty((count, size, size, 3), np.uint8)
        depth = np.empty((count, size, size), np.float32)
        ids = np.empty((count, size, size), np.int16)
        normals = np.empty((count, size, size, 3), np.float32)
        for world in range(count):
            room = self._room(room_of[world])
            room.aim(shot, world, groups)
            if "rgb" in kinds:
                rgb[world] = room.colors()
            if "depth" in kinds or "ids" in kinds:
                ids[world], depth[world] = room.things()
            if "normals" in kinds:
                normals[world] = room.normals(self._rays, shot.eye[world], shot.matrix[world], groups)
        made = {"rgb": rgb, "depth": depth, "ids": ids, "normals": normals}
        return View(**{kind: torch.from_numpy(made[kind]) for kind in kinds})

    def replace(self, number: int, room: CompiledRoom) -> None:
        """Puts another room in one's place."""
        self._gl.make_current()
        loaded = self._loaded[number]
        if loaded is not None:
            loaded.context.free()
        self.rooms = [*self.rooms[:number], room, *self.rooms[number + 1 :]]
        self._loaded[number] = None

    def close(self) -> None:
        self._gl.make_current()
        for room in self._loaded:
            if room is not None:
                room.context.free()
        self._loaded = []
        self._gl.free()

    def _room(self, number: int) -> _Loaded:
        """Loads a room when it is first looked at."""
        loaded = self._loaded[number]
        if loaded is None:
            loaded = self._loaded[number] = _Loaded(self.rooms[number], self.size, self._culled)
        return loaded


class _Loaded:
    """One room in the OpenGL context."""

    def __init__(self, compiled: CompiledRoom, size: int, culled: bool) -> None:
        self.compiled, self.model = compiled, compiled.model
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self.scene = mujoco.MjvScene(self.model, maxgeom=self.model.ngeom + 8)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self.scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = culled
        self.model.vis.global_.offwidth = self.model.vis.global_.offheight = size
        self.model.vis.quality.shadowsize = 0  # The map of the default size weighs 64 MiB a room.
        self.context = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_50)
        self.context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self.option = mujoco.MjvOption()
        self.camera = mujoco.MjvCamera()
        self.camera.type, self.camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        self.rect = mujoco.MjrRect(0, 0, size, size)
        self.pixels = np.empty((size, size, 3), np.uint8)
        self.z = np.empty((size, size), np.float32)
        self._thing_of_segment: dict[tuple[int, ...], np.ndarray] = {}

    def aim(self, shot: Shot, world: int, groups: Sequence[int]) -> None:
        data, here = self.data, slice(world, world + 1)
        data.qpos[:] = self.compiled.qpos(shot.open[here], shot.goal[here], shot.pose[here])[0]
        mujoco.mj_kinematics(self.model, data)
        data.cam_xpos[0], data.cam_xmat[0] = shot.eye[world], shot.matrix[world].ravel()
        self.model.cam_fovy[0] = shot.field_of_view
        self.groups = tuple(groups)
        self.option.geomgroup[:] = [group in self.groups for group in range(6)]
        mujoco.mjv_updateScene(
            self.model, data, self.option, None, self.camera, mujoco.mjtCatBit.mjCAT_ALL.value, self.scene
        )
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.context)

    def colors(self) -> np.ndarray:
        mujoco.mjr_render(self.rect, self.scene, self.context)
        mujoco.mjr_readPixels(self.pixels, None, self.rect, self.context)
        return self.pixels[::-1]

    def things(self) -> tuple[np.ndarray, np.ndarray]:
        """Ids and depth, from one pass in which each geom has its number for a color."""
        flags = self.scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = True
        mujoco.mjr_render(self.rect, self.scene, self.context)
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = False
        mujoco.mjr_readPixels(self.pixels, self.z, self.rect, self.context)
        number = self.pixels[..., 0].astype(np.int32) | self.pixels[..., 1].astype(np.int32) << 8
        near, far = (self.model.stat.extent * z for z in (self.model.vis.map.znear, self.model.vis.map.zfar))
        # The depth buffer is reversed: z = near (far - d) / (d (far - near)), so 1 is near and 0 is far.
        meters = near * far / (near + self.z.astype(np.float64) * (far - near))
        seen = self._things_by_segment()[number]
        return seen[::-1], np.where(seen < 0, 0, meters)[::-1]

    def normals(self, rays: np.ndarray, eye: np.ndarray, matrix: np.ndarray, groups: Sequence[int]) -> np.ndarray:
        """The normals of the surfaces that the pixels' rays hit, in the room's axes and turned towards the camera."""
        count = len(rays)
        directions = rays @ matrix.T
        geom, far, normal = np.empty(count, np.int32), np.empty(count), np.zeros((count, 3))
        visible = np.array([group in groups and group != SOLID for group in range(6)], np.uint8)
        mujoco.mj_multiRay(
            self.model, self.data, eye, directions.ravel(), visible, True, -1, geom, far, normal.ravel(), count, 100.0
        )
        normal[geom < 0] = 0
        normal[(normal * directions).sum(1) > 0] *= -1
        size = self.pixels.shape[0]
        return normal.reshape(size, size, 3)

    def _things_by_segment(self) -> np.ndarray:
        """Thing ids by the scene's geom numbers. A set of groups always gives the same list of geoms."""
        if self.groups not in self._thing_of_segment:
            table = np.full(self.scene.ngeom + 1, -1, np.int16)
            for geom in self.scene.geoms[: self.scene.ngeom]:
                if geom.segid >= 0:
                    table[geom.segid + 1] = self.compiled.geom_thing[geom.objid]
            self._thing_of_segment[self.groups] = table
        return self._thing_of_segment[self.groups]


def pixel_rays(size: int) -> np.ndarray:
    """Directions (size * size, 3) of the pixels' centers in a camera's axes, for a field of view of 90 degrees."""
    ticks = (np.arange(size) + 0.5) / size * 2 - 1
    x, y = np.meshgrid(ticks, -ticks)
    return np.stack([x, y, -np.ones_like(x)], -1).reshape(-1, 3)
