"""What agents see: by a small picture, which shows all but what is small, and rays to points on the rest."""

from __future__ import annotations

from functools import lru_cache

import mujoco
import numpy as np

from scrubjay.sim.compile import SOLID
from scrubjay.sim.pose import in_view, reach
from scrubjay.sim.render.opengl import LEFT_OUT, pixel_rays
from scrubjay.thor.cameras import SceneRenderer, agent_camera, view_of
from scrubjay.thor.receptacles import Receptacles
from scrubjay.thor.scene_state import SceneAgent
from scrubjay.thor.things import Things

PICTURE = 96
"""Rows of the picture."""
POINTS = 48
"""Points on each thing."""
ROUNDS = (2, 8, 24)
"""So many points of each thing are tried; only things that were not seen yet go on to the next round."""
TOLERANCE = 1e-3
"""Meters; a ray that ends so near to a point has met it."""
GROUPS = np.array([group not in (SOLID, LEFT_OUT) for group in range(6)], np.uint8)


class Sight:
    """Points on the surfaces of a scene's things, in an order in which each part of the list covers the thing."""

    def __init__(self, things: Things, receptacles: Receptacles) -> None:
        self.things, self.receptacles = things, receptacles
        geom, local, thing = [], [], []
        for index in range(len(things.names)):
            of_thing, points = _sample(things.model, things.geoms(index), np.random.default_rng(index))
            geom.append(of_thing)
            local.append(points)
            thing.append(np.full(len(points), index))
        self._geom, self._local = np.concatenate(geom), np.concatenate(local)
        self._thing = np.concatenate(thing)
        self._version, self._points = -1, np.zeros_like(self._local)
        self._last: tuple[object, set[int]] = None, set()
        """What was visible last, and from where."""
        self._layout: object = None
        self._in_closed: list[int] = []

    def visible(self, agent: SceneAgent, distance: float, renderer: SceneRenderer) -> set[int]:
        """Things of which an agent sees a point within a distance of its vertical axis."""
        self.things.update()
        where = (*view_of(agent), distance, renderer.width, renderer.height)
        state = self.things.version, self.things.layout, self.things.left_out, where
        if state != self._last[0]:
            aspect = renderer.width / renderer.height
            height = min(PICTURE, renderer.height)
            seen = self._in_picture(agent, distance, renderer, max(int(height * aspect), 1), height)
            self._last = state, seen | self._by_rays(agent, distance, aspect, seen)
        return self._last[1].copy()

    def _in_picture(
        self, agent: SceneAgent, distance: float, renderer: SceneRenderer, width: int, height: int
    ) -> set[int]:
        _, matrix = agent_camera(agent)
        ids, depth = renderer.see_coarsely(agent, width, height)
        # The camera is on the agent's axis, so a point's way from the camera is its way from the axis.
        x, y = matrix[:2] @ _rays(width, height, agent.field_of_view)
        near = (x**2 + y**2) * depth.reshape(-1) ** 2 <= distance**2
        return set((np.flatnonzero(np.bincount(ids.reshape(-1)[near] + 1)) - 1).tolist()) - {-1}

    def _by_rays(self, agent: SceneAgent, distance: float, aspect: float, found: set[int]) -> set[int]:
        """What else is visible than what was found already."""
        things = self.things
        self._update()
        eye, matrix = agent_camera(agent)
        points = self._points
        near = np.flatnonzero(reach(agent.position, points) <= distance)
        near = near[in_view(eye, matrix, points[near], agent.field_of_view, aspect)]
        near = near[~np.isin(self._thing[near], [*found, *things.left_out, *self._enclosed()])]
        seen: set[int] = set()
        tried = 0
        # The order of a point among those of its thing that are near, so that small and large things take turns.
        rank = _ranks(self._thing[near])
        for until in ROUNDS:
            now = near[(rank >= tried) & (rank < until)]
            if tried:
                now = now[~np.isin(self._thing[now], list(seen))]
            if not len(now):
                break
            seen |= self._hits(eye, now)
            tried = until
        return seen

    def ray(self, eye: np.ndarray, direction: np.ndarray) -> tuple[int, np.ndarray] | None:
        """The first thing that a ray meets, and where."""
        self.things.update()
        geom = np.full(1, -1, np.int32)
        distance = mujoco.mj_ray(self.things.model, self.things.data, eye, direction, GROUPS, 1, -1, geom)
        if geom[0] < 0:
            return None
        return int(self.things.compiled.geom_thing[geom[0]]), eye + distance * direction

    def _hits(self, eye: np.ndarray, chosen: np.ndarray) -> set[int]:
        """The things whose points (n,), by number, no other thing hides."""
        count = len(chosen)
        rays = self._points[chosen] - eye
        geom, distance = np.empty(count, np.int32), np.empty(count)
        mujoco.mj_multiRay(
            self.things.model, self.things.data, eye, rays.ravel(), GROUPS, True, -1, geom, distance, None, count, 1e3
        )
        of_ray = self.things.compiled.geom_thing[geom]
        beyond = distance >= 1 - TOLERANCE / np.maximum(np.linalg.norm(rays, axis=1), TOLERANCE)
        met = (geom < 0) | beyond | (of_ray == self._thing[chosen])
        return set(self._thing[chosen[met]].tolist())

    def _enclosed(self) -> list[int]:
        """Things in closed ones, which nobody needs to look for."""
        if self._layout != self.things.layout:
            self._layout = self.things.layout
            self._in_closed = [thing for thing in self.things.mass if self.receptacles.enclosed(thing)]
        return self._in_closed

    def _update(self) -> None:
        """Moves the points with the geoms that they are on."""
        if self._version == self.things.version:
            return
        self._version = self.things.version
        data = self.things.data
        turn = data.geom_xmat[self._geom].reshape(-1, 3, 3)
        self._points = data.geom_xpos[self._geom] + np.einsum("nij,nj->ni", turn, self._local)


@lru_cache(maxsize=8)
def _rays(width: int, height: int, field_of_view: float) -> np.ndarray:
    """Ray directions (3, height * width), in an order that makes turning them fast."""
    return np.ascontiguousarray(pixel_rays(width, height, field_of_view).T)


def _ranks(groups: np.ndarray) -> np.ndarray:
    """How many of the same group come before each element of a sorted array (n,)."""
    first = np.searchsorted(groups, groups)
    return np.arange(len(groups)) - first


def _sample(model: mujoco.MjModel, geoms: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Geoms (k,) and points (k, 3) in their frames, spread evenly over the geoms' triangles and shuffled."""
    triangles, owners = [], []
    for geom in geoms:
        mesh = model.geom_dataid[geom]
        vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
        faces = model.mesh_face[model.mesh_faceadr[mesh] :][: model.mesh_facenum[mesh]]
        triangles.append(vertices[faces].astype(float))
        owners.append(np.full(len(faces), geom))
    if not triangles:
        return np.zeros(0, int), np.zeros((0, 3))
    corners, owner = np.concatenate(triangles), np.concatenate(owners)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    ends = np.cumsum(area)
    at = np.minimum(np.searchsorted(ends, (np.arange(POINTS) + rng.random(POINTS)) / POINTS * ends[-1]), len(area) - 1)
    u, v = np.sqrt(rng.random(POINTS)), rng.random(POINTS)
    weights = np.stack([1 - u, u * (1 - v), u * v], 1)
    shuffled = rng.permutation(POINTS)
    return owner[at][shuffled], np.einsum("nk,nkj->nj", weights, corners[at])[shuffled]
