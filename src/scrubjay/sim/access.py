"""Agent poses from which openables can be opened: visible, within reach, the body clear of the moving part."""

from __future__ import annotations

import mujoco
import numpy as np

from scrubjay.rooms.floor import BODY_RADIUS, Grid, distance, frame
from scrubjay.sim.compile import SOLID, CompiledRoom
from scrubjay.sim.pose import REACH, AgentPose, cameras, in_view

MAX_POINTS = 16
"""Points sampled on each openable's moving parts to test visibility."""
VISIBLE_GROUPS = np.array([group != SOLID for group in range(6)], np.uint8)


def find_opening_poses(compiled: CompiledRoom, grid: Grid) -> list[list[AgentPose]]:
    """Per openable, the poses on a grid from which it can be opened with everything closed, nearest first."""
    owner, points = _sample_points(compiled)
    poses: list[list[tuple[float, AgentPose]]] = [[] for _ in compiled.openables]
    data = mujoco.MjData(compiled.model)
    mujoco.mj_forward(compiled.model, data)
    things = np.array([openable.thing for openable in compiled.openables])[owner]
    for position in grid.positions:
        x, y = map(float, position)
        in_the_way = distance(position, compiled.floor.swept).min(1) < BODY_RADIUS
        away = np.linalg.norm(points[:, :2] - position, axis=1)
        near = np.flatnonzero((away <= REACH) & ~in_the_way[owner])
        if not len(near):
            continue
        for standing in (True, False):
            eye, _ = cameras(position, np.array(0.0), np.array(standing))
            visible = near[_first_hits(compiled, data, eye, points[near]) == things[near]]
            for quarter in range(4):
                rotation = (grid.angle + 90.0 * quarter) % 360
                _, matrix = cameras(position, np.array(rotation), np.array(standing))
                in_frame = visible[in_view(eye, matrix, points[visible])]
                for number in np.unique(owner[in_frame]):
                    nearest = away[in_frame[owner[in_frame] == number]].min()
                    poses[number].append((float(nearest), AgentPose(x, y, rotation, standing)))
    return [[pose for _, pose in sorted(candidates, key=lambda entry: entry[0])] for candidates in poses]


def _sample_points(compiled: CompiledRoom) -> tuple[np.ndarray, np.ndarray]:
    """The openable (n,) of each point, and points (n, 3) spread over the closed openables' moving surfaces."""
    owners, points = [], []
    for number, openable in enumerate(compiled.openables):
        position, rotation = frame(compiled.room.things[openable.thing])
        parts = compiled.shapes[openable.thing].moving
        meshes = [mesh for part in parts for surface in part.surfaces.values() for mesh in surface]
        middles = np.concatenate([mesh.vertices[mesh.faces].mean(1) for mesh in meshes])
        sampled = middles[np.linspace(0, len(middles) - 1, min(MAX_POINTS, len(middles))).astype(int)]
        points.append(sampled @ rotation.T + position)
        owners += [number] * len(sampled)
    return np.array(owners, int), np.concatenate(points) if points else np.zeros((0, 3))


def _first_hits(compiled: CompiledRoom, data: mujoco.MjData, eye: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Ids (n,) of the things that rays from an eye towards points hit first, -1 for none."""
    count = len(points)
    geom, distances = np.empty(count, np.int32), np.empty(count)
    rays = np.ascontiguousarray(points - eye)
    mujoco.mj_multiRay(
        compiled.model, data, eye, rays.ravel(), VISIBLE_GROUPS, True, -1, geom, distances, None, count, 1e3
    )
    return np.where(geom >= 0, compiled.geom_thing[geom], -1)
