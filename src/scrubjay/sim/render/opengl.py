"""MuJoCo's OpenGL renderer, on any machine with EGL or OSMesa, one world after another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import mujoco
import numpy as np

from scrubjay.errors import RendererError
from scrubjay.sim.compile import SOLID, CompiledRoom
from scrubjay.sim.pose import FIELD_OF_VIEW
from scrubjay.sim.render.base import EVERYTHING, Shot, View

BODY_COLOR = (0.55, 0.6, 0.66, 1.0)
FARTHEST = 1e5
"""Meters; rays end there."""
LEFT_OUT = 5
"""The group of geoms that are left out; no view asks for it."""


_process: int | None = None
"""The process that opened the display. A fork has the display, but not the threads behind it, and waits for them for
ever."""


def check_fork() -> None:
    """RendererError in a fork of a process that has used OpenGL."""
    if _process not in (None, os.getpid()):
        raise RendererError(
            "this process was forked from one that had used OpenGL, which does not survive that: start processes with "
            "'spawn' or 'forkserver' (`AsyncVectorEnv(..., context='spawn')`), or use the renderer 'warp'"
        )


def make_context(width: int, height: int):
    """An off-screen OpenGL context, hardware or software. Imports late: the import itself opens the display."""
    global _process
    check_fork()
    failures = []
    for backend in ("egl", "osmesa"):
        try:
            if backend == "egl":
                from mujoco.egl import GLContext
            else:
                from mujoco.osmesa import GLContext
            context = GLContext(width, height)
            context.make_current()
            _process = os.getpid()
            return backend, context
        # A missing library raises any of ImportError, AttributeError, RuntimeError, OSError.
        except Exception as error:
            failures.append(f"{backend}: {error}")
    raise RendererError(
        "no OpenGL library works (" + "; ".join(failures) + "); on Debian and Ubuntu "
        "run `apt-get install libegl1 libgl1-mesa-dri`, or use the renderer 'warp'"
    )


class OpenGLRenderer:
    """Renders with one OpenGL context that holds every room's meshes and textures."""

    def __init__(
        self, rooms: Sequence[CompiledRoom], copies: int, size: int = 224, cull_backfaces: bool = False
    ) -> None:
        self.rooms, self.copies, self.size = rooms, copies, size
        backend, self._gl = make_context(size, size)
        self.name = f"OpenGL ({backend})"
        self._loaded: list[RoomContext | None] = [None] * len(rooms)
        self._cull_backfaces = cull_backfaces
        self._rays = pixel_rays(size, size)

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View:
        check_fork()
        import torch  # Late: AI2-THOR's clients wait for an engine, which renders without it.

        room_of = shot.room_of(len(self.rooms), self.copies)
        self._gl.make_current()
        count, size = len(room_of), self.size
        # Filled as NumPy arrays and converted whole: torch would start its threads for every image copied.
        rgb = np.empty((count, size, size, 3), np.uint8)
        depth = np.empty((count, size, size), np.float32)
        ids = np.empty((count, size, size), np.int16)
        normals = np.empty((count, size, size, 3), np.float32)
        for world in range(count):
            room = self._room(room_of[world])
            with room.without(None if shot.left_out is None else shot.left_out[world]):
                room.aim(shot, world, groups)
                if "rgb" in kinds:
                    rgb[world] = room.colors()
                if "depth" in kinds or "ids" in kinds:
                    ids[world], depth[world] = room.ids_and_depth()
                if "normals" in kinds:
                    normals[world] = room.normals(self._rays, shot.eye[world], shot.matrix[world], groups)
        images = {"rgb": rgb, "depth": depth, "ids": ids, "normals": normals}
        return View(**{kind: torch.from_numpy(images[kind]) for kind in kinds})

    def replace(self, number: int, room: CompiledRoom) -> None:
        """Replaces a room; the new one is loaded when it is first rendered."""
        check_fork()
        self._gl.make_current()
        loaded = self._loaded[number]
        if loaded is not None:
            loaded.context.free()
        self.rooms = [*self.rooms[:number], room, *self.rooms[number + 1 :]]
        self._loaded[number] = None

    def close(self) -> None:
        if os.getpid() != _process:
            return  # A fork: the context is its parent's.
        self._gl.make_current()
        for room in self._loaded:
            if room is not None:
                room.context.free()
        self._loaded = []
        self._gl.free()

    def _room(self, number: int) -> RoomContext:
        """Loads a room when it is first rendered."""
        loaded = self._loaded[number]
        if loaded is None:
            loaded = self._loaded[number] = RoomContext(self.rooms[number], self.size, self.size, self._cull_backfaces)
        return loaded


class RoomContext:
    """One room's scene in the OpenGL context that is current."""

    def __init__(
        self,
        compiled: CompiledRoom,
        width: int,
        height: int,
        cull_backfaces: bool = False,
        data: mujoco.MjData | None = None,
    ) -> None:
        """Draws `data` as it is, or data of its own."""
        self.compiled, self.model = compiled, compiled.model
        self.data = data or mujoco.MjData(self.model)
        if data is None:
            mujoco.mj_forward(self.model, self.data)
        self.scene = mujoco.MjvScene(self.model, maxgeom=self.model.ngeom + 8)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self.scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = cull_backfaces
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = width, height
        self.model.vis.quality.shadowsize = 0  # A shadow map of the default size takes 64 MiB per room.
        self.context = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_50)
        self.context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self.option = mujoco.MjvOption()
        self.camera = mujoco.MjvCamera()
        self.camera.type, self.camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        self._set_size(width, height)

    def _set_size(self, width: int, height: int) -> None:
        self.rect = mujoco.MjrRect(0, 0, width, height)
        self.pixels = np.empty((height, width, 3), np.uint8)
        self.z = np.empty((height, width), np.float32)

    def resize(self, width: int, height: int) -> None:
        mujoco.mjr_resizeOffscreen(width, height, self.context)
        self._set_size(width, height)

    @contextmanager
    def without(self, left_out: np.ndarray | None) -> Iterator[None]:
        """Draws no surface of things (n,) bool within; their solids, which physics needs, stay what they are."""
        if left_out is None or not left_out.any():
            yield
            return
        geoms = np.flatnonzero(self.model.geom_group != SOLID)
        things = self.compiled.geom_thing[geoms]
        geoms = geoms[(things < len(left_out)) & left_out[np.minimum(things, len(left_out) - 1)]]
        groups = self.model.geom_group[geoms]
        self.model.geom_group[geoms] = LEFT_OUT
        try:
            yield
        finally:
            self.model.geom_group[geoms] = groups

    def aim(self, shot: Shot, world: int, groups: Sequence[int]) -> None:
        """Sets the scene to one world of a shot."""
        data, one = self.data, slice(world, world + 1)
        data.qpos[:] = self.compiled.qpos(shot.open[one], shot.goal[one], shot.pose[one])[0]
        mujoco.mj_kinematics(self.model, data)
        self.point(shot.eye[world], shot.matrix[world], shot.field_of_view, groups)

    def point(
        self,
        eye: np.ndarray,
        matrix: np.ndarray,
        field_of_view: float,
        groups: Sequence[int] = EVERYTHING,
        orthographic: bool = False,
    ) -> None:
        """Points the camera at the data as it is. An orthographic camera's field of view is its height in meters."""
        data, self.orthographic = self.data, orthographic
        data.cam_xpos[0], data.cam_xmat[0] = eye, matrix.ravel()
        projection = mujoco.mjtProjection
        self.model.cam_projection[0] = projection.mjPROJ_ORTHOGRAPHIC if orthographic else projection.mjPROJ_PERSPECTIVE
        self.model.cam_fovy[0] = field_of_view
        self.groups = tuple(groups)
        self.option.geomgroup[:] = [group in self.groups for group in range(6)]
        outside = self._outside(eye, matrix, field_of_view)
        before = self.model.geom_group[outside]
        self.model.geom_group[outside] = LEFT_OUT
        mujoco.mjv_updateScene(
            self.model, data, self.option, None, self.camera, mujoco.mjtCatBit.mjCAT_ALL.value, self.scene
        )
        self.model.geom_group[outside] = before
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.context)

    def add_body(self, position: np.ndarray, radius: float, height: float) -> None:
        """Adds an upright capsule on the floor at (2,), which is no thing, to the picture that the camera points at."""
        if self.scene.ngeom == self.scene.maxgeom:
            return
        geom = self.scene.geoms[self.scene.ngeom]
        size, center = np.array([radius, radius, height / 2 - radius]), np.array([*position, height / 2])
        capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
        mujoco.mjv_initGeom(geom, capsule, size, center, np.eye(3).ravel(), np.array(BODY_COLOR, np.float32))
        geom.segid, geom.objid, geom.specular = self.scene.ngeom, -1, 0.0
        self.scene.ngeom += 1

    def colors(self) -> np.ndarray:
        mujoco.mjr_render(self.rect, self.scene, self.context)
        mujoco.mjr_readPixels(self.pixels, None, self.rect, self.context)
        return self.pixels[::-1]

    def ids_and_depth(self, width: int | None = None, height: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Ids and depth from one segmentation pass, which colors each geom by its number; smaller if asked."""
        rect = mujoco.MjrRect(0, 0, width or self.rect.width, height or self.rect.height)
        pixels, depths = self.pixels, self.z
        if pixels.shape[:2] != (rect.height, rect.width):
            pixels, depths = np.empty((rect.height, rect.width, 3), np.uint8), np.empty((rect.height, rect.width), "f4")
        flags = self.scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = True
        mujoco.mjr_render(rect, self.scene, self.context)
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = False
        mujoco.mjr_readPixels(pixels, depths, rect, self.context)
        number = pixels[..., 0].astype(np.int32) | pixels[..., 1].astype(np.int32) << 8
        near, far = (self.model.stat.extent * z for z in (self.model.vis.map.znear, self.model.vis.map.zfar))
        z = depths.astype(np.float64)
        if self.orthographic:
            meters = far - z * (far - near)
        else:
            # The depth buffer is reversed: z = near (far - d) / (d (far - near)), so 1 is near and 0 is far.
            meters = near * far / (near + z * (far - near))
        ids = self._things_by_segment()[number]
        return ids[::-1], np.where(number == 0, 0, meters)[::-1]

    def normals(self, rays: np.ndarray, eye: np.ndarray, matrix: np.ndarray, groups: Sequence[int]) -> np.ndarray:
        """Normals of the surfaces that the pixels' rays hit, in the room's frame, facing the camera."""
        count = len(rays)
        directions = rays @ matrix.T
        geom, distance, normal = np.empty(count, np.int32), np.empty(count), np.zeros((count, 3))
        visible = np.array([group in groups and group != SOLID for group in range(6)], np.uint8)
        mujoco.mj_multiRay(
            self.model,
            self.data,
            eye,
            directions.ravel(),
            visible,
            True,
            -1,
            geom,
            distance,
            normal.ravel(),
            count,
            FARTHEST,
        )
        normal[geom < 0] = 0
        normal[(normal * directions).sum(1) > 0] *= -1
        return normal.reshape(self.pixels.shape)

    def _outside(self, eye: np.ndarray, matrix: np.ndarray, field_of_view: float) -> np.ndarray:
        """Geoms whose bounding spheres are out of the picture: MuJoCo would draw them, at half of a picture's cost."""
        place, radius = (self.data.geom_xpos - eye) @ matrix, self.model.geom_rbound
        aspect = np.array([self.rect.width / self.rect.height, 1.0])
        if self.orthographic:
            edge, margin = aspect * field_of_view / 2, radius[:, None]
        else:
            slope = aspect * np.tan(np.radians(field_of_view / 2))
            edge, margin = -place[:, 2:] * slope, radius[:, None] * np.sqrt(1 + slope**2)
        beside = (np.abs(place[:, :2]) > edge + margin).any(1) | (place[:, 2] > radius)
        return np.flatnonzero(beside & (radius > 0))  # A plane has no sphere.

    def _things_by_segment(self) -> np.ndarray:
        """Thing ids by the scene's geom numbers."""
        table = np.full(self.scene.ngeom + 1, -1, np.int16)
        for geom in self.scene.geoms[: self.scene.ngeom]:
            if geom.segid >= 0 and geom.objid >= 0:
                table[geom.segid + 1] = self.compiled.geom_thing[geom.objid]
        return table


def pixel_rays(width: int, height: int, field_of_view: float = FIELD_OF_VIEW) -> np.ndarray:
    """Ray directions (height * width, 3) through the pixels' centers, in the camera's frame: a meter along its axis."""
    edge = np.tan(np.radians(field_of_view / 2))
    ticks = [(np.arange(count) + 0.5) / count * 2 - 1 for count in (width, height)]
    x, y = np.meshgrid(ticks[0] * edge * width / height, -ticks[1] * edge)
    return np.stack([x, y, -np.ones_like(x)], -1).reshape(-1, 3)
