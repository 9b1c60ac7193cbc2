"""Pixels from MuJoCo Warp: ray casting for all copies of a room at once, on a GPU or, without any OpenGL, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp

from scrubjay.world.mjcf import Compiled
from scrubjay.world.view import EVERYTHING, Shot, View, pixel_rays

wp.config.quiet = True
EVERY_GROUP = wp.types.vector(length=6, dtype=float)(*[-1.0] * 6)


class Warp:
    """Renders the copies of each room as the worlds of one Warp batch."""

    def __init__(self, rooms: Sequence[Compiled], copies: int, size: int = 224, device: str = "cpu") -> None:
        self.name = f"MuJoCo Warp ({device})"
        self.size, self.copies, self.device = size, copies, device
        self._rooms = [_Loaded(compiled, copies, size, device) for compiled in rooms]

    def draw(self, shot: Shot, kinds: Sequence[str], groups: Sequence[int] = EVERYTHING) -> View:
        views = []
        for number, room in enumerate(self._rooms):
            mine = slice(number * self.copies, (number + 1) * self.copies)
            room.aim(shot.qpos[number], shot.eye[mine], shot.matrix[mine])
            views.append(room.draw(kinds, tuple(groups)))

        return View(**{kind: torch.cat([view.pictures[kind] for view in views]) for kind in kinds})

    def close(self) -> None:
        self._rooms = []


class _Loaded:
    """One room on the device, with a render context for each set of groups that has been asked for."""

    def __init__(self, compiled: Compiled, copies: int, size: int, device: str) -> None:
        self.compiled, self.copies, self.size, self.device = compiled, copies, size, device
        with wp.ScopedDevice(device):
            self.model = mjw.put_model(compiled.model)
            data = mujoco.MjData(compiled.model)
            mujoco.mj_forward(compiled.model, data)
            self.data = mjw.put_data(compiled.model, data, nworld=copies)
        self.contexts: dict[tuple[int, ...], mjw.RenderContext] = {}
        self.thing_of_geom = torch.as_tensor(np.append(compiled.geom_thing, -1).astype(np.int16), device=device)

    def aim(self, qpos: np.ndarray, eye: np.ndarray, matrix: np.ndarray) -> None:
        with wp.ScopedDevice(self.device):
            self.data.qpos.assign(qpos.astype(np.float32))
            mjw.kinematics(self.model, self.data)
            self.data.cam_xpos.assign(eye[:, None].astype(np.float32))
            self.data.cam_xmat.assign(matrix[:, None].astype(np.float32))
        self.eye, self.matrix = eye, matrix

    def draw(self, kinds: Sequence[str], groups: tuple[int, ...]) -> View:
        context = self._context(groups)
        shape = (self.copies, self.size, self.size)
        with wp.ScopedDevice(self.device):
            mjw.refit_bvh(self.model, self.data, context)
            mjw.render(self.model, self.data, context)
            made = {}
            if "rgb" in kinds:
                packed = wp.to_torch(context.rgb_data).view(torch.uint8).reshape(*shape, 4)
                made["rgb"] = packed[..., [2, 1, 0]]
            if "depth" in kinds:
                made["depth"] = wp.to_torch(context.depth_data).reshape(shape).clone()
            if "ids" in kinds:
                geoms = wp.to_torch(context.seg_data).reshape(*shape, 2)[..., 0]
                made["ids"] = self.thing_of_geom[geoms.long()]
            if "normals" in kinds:
                made["normals"] = self._normals(context).reshape(*shape, 3)
        return View(**made)

    def _normals(self, context: mjw.RenderContext) -> torch.Tensor:
        directions = np.einsum("nij,pj->npi", self.matrix, pixel_rays(self.size))
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        count = directions.shape[1]
        eyes = np.repeat(self.eye[:, None], count, axis=1)
        normal = wp.zeros((self.copies, count), dtype=wp.vec3)
        # The context holds these groups only, so its tree needs no mask.
        mjw.rays(
            self.model, self.data, wp.array(eyes, dtype=wp.vec3), wp.array(directions, dtype=wp.vec3), EVERY_GROUP, True,
            wp.full(count, -1, dtype=int), wp.zeros((self.copies, count), dtype=float),
            wp.zeros((self.copies, count), dtype=int), normal, context,
        )  # fmt: skip
        return wp.to_torch(normal)

    def _context(self, groups: tuple[int, ...]) -> mjw.RenderContext:
        """A context whose switches leave out what our rooms do not use; all rooms share one kernel."""
        if groups not in self.contexts:
            self.contexts[groups] = mjw.create_render_context(
                self.compiled.model, self.copies, (self.size, self.size), render_rgb=True, render_depth=True,
                render_seg=True, enabled_geom_groups=list(groups), enable_specular=False, enable_per_light_ambient=False,
            )  # fmt: skip
        return self.contexts[groups]
