"""Draws a scene from agents' eyes and free cameras, with OpenGL."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import mujoco
import numpy as np

from scrubjay.rooms.floor import BODY_RADIUS, axis_rotation
from scrubjay.sim.pose import cameras
from scrubjay.sim.render.base import EVERYTHING
from scrubjay.sim.render.opengl import LEFT_OUT, RoomContext, check_fork, make_context, pixel_rays
from scrubjay.thor.scene_state import Pictures, SceneAgent, SceneCamera
from scrubjay.thor.things import Things

ABOVE_EYES = 0.12
"""Meters from an agent's camera to the top of its body, as others see it."""


def agent_camera(agent: SceneAgent) -> tuple[np.ndarray, np.ndarray]:
    """An agent's eye (3,), and its camera's right, up and backward axes as columns (3, 3)."""
    return cameras(agent.position, np.asarray(agent.rotation), np.asarray(agent.standing), agent.horizon)


def view_of(agent: SceneAgent) -> tuple[object, ...]:
    """What decides what an agent's camera shows of a scene."""
    return agent.position.tobytes(), agent.rotation, agent.horizon, agent.standing, agent.field_of_view


def free_camera(camera: SceneCamera) -> tuple[np.ndarray, np.ndarray]:
    """As `agent_camera`. Unity rolls first, then pitches, then yaws; a positive roll lifts the right side."""
    pitch, yaw, roll = camera.rotation
    _, matrix = cameras(camera.position[:2], np.asarray(yaw), np.asarray(True), float(pitch))
    return camera.position, axis_rotation(matrix[:, 2], np.radians(roll)) @ matrix


class SceneRenderer:
    """One scene's meshes and textures in an OpenGL context of its own."""

    def __init__(self, things: Things, width: int, height: int) -> None:
        self.things, self.width, self.height = things, width, height
        _, self._gl = make_context(width, height)
        self._room = RoomContext(things.compiled, width, height, data=things.data)
        self._aimed: object = None
        """What the camera points at, and the state that the room was in."""
        self._last: tuple[object, Pictures | None] = None, None
        """What an agent saw last. Many actions fail, and change nothing."""

    def resize(self, width: int, height: int) -> None:
        check_fork()
        self._gl.make_current()
        self._room.resize(width, height)
        self.width, self.height = width, height
        self._aimed, self._last = None, (None, None)

    def see(self, agent: SceneAgent, kinds: Collection[str], others: Sequence[SceneAgent] = ()) -> Pictures:
        """An agent's pictures, in which it sees others; they are no things, so their pixels have no ids."""
        self.things.update()
        bodies = [view_of(other) for other in others]
        state = self.things.version, self.things.left_out, view_of(agent), bodies, frozenset(kinds)
        if state != self._last[0]:
            self._last = state, self._draw(*agent_camera(agent), agent.field_of_view, kinds, others)
        assert self._last[1] is not None
        return self._last[1]

    def see_coarsely(self, agent: SceneAgent, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and depth in a picture of a size of its own, at most that of the scene's."""
        room = self._aim(*agent_camera(agent), agent.field_of_view)
        return room.ids_and_depth(width, height)

    def look_through(self, camera: SceneCamera, kinds: Collection[str], agents: Sequence[SceneAgent] = ()) -> Pictures:
        """As `see`; walls and ceiling do not hide the room from a camera outside of it."""
        orthographic = camera.orthographic_size is not None
        extent = 2 * camera.orthographic_size if camera.orthographic_size is not None else camera.field_of_view
        return self._draw(*free_camera(camera), extent, kinds, agents, orthographic, cull_backfaces=True)

    def _draw(
        self,
        eye: np.ndarray,
        matrix: np.ndarray,
        extent: float,
        kinds: Collection[str],
        agents: Sequence[SceneAgent],
        orthographic: bool = False,
        cull_backfaces: bool = False,
    ) -> Pictures:
        room = self._aim(eye, matrix, extent, orthographic, cull_backfaces)
        if agents:
            self._aimed = None
        for agent in agents:
            room.add_body(agent.position, BODY_RADIUS, agent_camera(agent)[0][2] + ABOVE_EYES)
        rgb = room.colors().copy()
        ids = depth = normals = None
        if "ids" in kinds or "depth" in kinds:
            ids, depth = room.ids_and_depth()
            depth = depth.astype(np.float32)
        if "normals" in kinds:
            normals = self._normals(eye, matrix, extent, orthographic)
        return Pictures(rgb, depth if "depth" in kinds else None, ids if "ids" in kinds else None, normals)

    def _aim(
        self,
        eye: np.ndarray,
        matrix: np.ndarray,
        extent: float,
        orthographic: bool = False,
        cull_backfaces: bool = False,
    ) -> RoomContext:
        """Brings the scene up to date and points the camera."""
        check_fork()
        self._gl.make_current()
        self.things.update()
        state = self.things.version, self.things.left_out, eye.tobytes(), matrix.tobytes(), extent, orthographic
        self._room.scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = cull_backfaces
        if state != self._aimed:
            self._room.point(eye, matrix, extent, orthographic=orthographic)
            self._aimed = state
        return self._room

    def _normals(self, eye: np.ndarray, matrix: np.ndarray, extent: float, orthographic: bool) -> np.ndarray:
        groups = self.things.model.geom_group
        before = groups.copy()
        groups[self._in_front(eye)] = LEFT_OUT
        if orthographic:
            # Rays of one origin cannot be parallel: from so far away they are, to a hundredth of a degree.
            eye = eye + matrix[:, 2] * 1e4
            extent = 2 * np.degrees(np.arctan(extent / 2e4))
        rays = pixel_rays(self.width, self.height, extent)
        normals = self._room.normals(rays, eye, matrix, EVERYTHING).astype(np.float32)
        groups[:] = before
        return normals

    def _in_front(self, eye: np.ndarray) -> np.ndarray:
        """The geoms of walls or ceiling that are between a camera outside and the room; rays know no front and back."""
        west, south, east, north = self.things.room.bounds
        beside = not (west <= eye[0] <= east and south <= eye[1] <= north)
        gone = [kind for kind, outside in (("Wall", beside), ("Ceiling", eye[2] > self.things.room.height)) if outside]
        things = [k for k, kind in enumerate(self.things.types) if kind in gone]
        return np.concatenate([np.zeros(0, int), *(self.things.geoms(thing) for thing in things)])

    def close(self) -> None:
        self._gl.make_current()
        self._room.context.free()
        self._gl.free()
