"""From where things can be opened: seen, in reach, and with the body out of the opening part's way."""

from __future__ import annotations

import mujoco
import numpy as np

from scrubjay.rooms.floor import BODY_RADIUS, Grid, distance, frame
from scrubjay.sim.compile import SOLID, CompiledRoom
from scrubjay.sim.pose import REACH, AgentPose, cameras, in_view

POINTS = 16
"""Points on each openable's moving parts at which it is looked at."""
SEEN = np.array([group != SOLID for group in range(6)], np.uint8)


def ways_to_open(compiled: CompiledRoom, grid: Grid) -> list[list[AgentPose]]:
    """For each openable the places on a grid from which it can be opened, everything closed, nearest first."""
    owner, points = _points(compiled)
    found: list[list[tuple[float, AgentPose]]] = [[] for _ in compiled.openables]
    data = mujoco.MjData(compiled.model)
    mujoco.mj_forward(compiled.model, data)
    things = np.array([openable.thing for openable in compiled.openables])[owner]
    for position in grid.positions:
        x, y = map(float, position)
        hit = distance(position, compiled.floor.swept).min(1) < BODY_RADIUS
        away = np.linalg.norm(points[:, :2] - position, axis=1)
        near = np.flatnonzero((away <= REACH) & ~hit[owner])
        if not len(near):
            continue
        for standing in (True, False):
            eye, _ = cameras(position, np.array(0.0), np.array(standing))
            seen = near[_first_hits(compiled, data, eye, points[near]) == things[near]]
            for quarter in range(4):
                rotation = (grid.angle + 90.0 * quarter) % 360
                _, matrix = cameras(position, np.array(rotation), np.array(standing))
                shown = seen[in_view(eye, matrix, points[seen])]
                for number in np.unique(owner[shown]):
                    nearest = away[shown[owner[shown] == number]].min()
                    found[number].append((float(nearest), AgentPose(x, y, rotation, standing)))
    return [[place for _, place in sorted(ways, key=lambda way: way[0])] for ways in found]


def _points(compiled: CompiledRoom) -> tuple[np.ndarray, np.ndarray]:
    """Points spread over the closed openables' moving surfaces, (n, 3), and the openable that each belongs to."""
    owners, points = [], []
    for number, openable in enumerate(compiled.openables):
        position, turn = frame(compiled.room.things[openable.thing])
        parts = compiled.shapes[openable.thing].moving
        meshes = [mesh for part in parts for surface in part.surfaces.values() for mesh in surface]
        middles = np.concatenate([mesh.vertices[mesh.faces].mean(1) for mesh in meshes])
        chosen = middles[np.linspace(0, len(middles) - 1, min(POINTS, len(middles))).astype(int)]
        points.append(chosen @ turn.T + position)
        owners += [number] * len(chosen)
    return np.array(owners, int), np.concatenate(points) if points else np.zeros((0, 3))


def _first_hits(compiled: CompiledRoom, data: mujoco.MjData, eye: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The things that rays from an eye towards points meet first, (n,)."""
    count = len(points)
    geom, far = np.empty(count, np.int32), np.empty(count)
    rays = np.ascontiguousarray(points - eye)
    mujoco.mj_multiRay(compiled.model, data, eye, rays.ravel(), SEEN, True, -1, geom, far, None, count, 1e3)
    return np.where(geom >= 0, compiled.geom_thing[geom], -1)
