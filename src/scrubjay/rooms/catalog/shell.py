"""The room's shell, drawn from its outline: floor, walls, ceiling."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from scrubjay.rooms.catalog.mesh import Mesh
from scrubjay.rooms.catalog.shape import Shape
from scrubjay.rooms.room import Room, Thing

TYPES = ("Floor", "Wall", "Ceiling")
BAKED = "floor"
"""The floor's material: one texture for the whole floor, with the shade of things baked in."""
THICKNESS = 2.0
"""Meters of solid behind each wall, so that nothing fits there."""


def draw(thing: Thing, room: Room) -> Shape:
    """Draws one of the three; its position is the room's origin, its size that of the outline's bounding box."""
    shape = Shape(thing.size, thing.style)
    {"Floor": _floor, "Wall": _wall, "Ceiling": _ceiling}[thing.type](shape, room)
    return shape


def _floor(s: Shape, room: Room) -> None:
    west, south, east, north = room.bounds
    for rectangle in rectangles(room.outline):
        level = _level(*rectangle, 0.0, up=True)
        uv = (level.vertices[:, :2] - [west, north]) / [east - west, south - north]
        s.surface(BAKED, replace(level, uv=uv))
    s.solid_box(((west + east) / 2, (south + north) / 2, -0.5), (east - west + 2, north - south + 2, 1.0))


def _ceiling(s: Shape, room: Room) -> None:
    west, south, east, north = room.bounds
    for x0, y0, x1, y1 in rectangles(room.outline):
        s.surface(s.material("ceiling", "plain#f4f2ee"), _level(x0, y0, x1, y1, room.height, up=False))
    s.solid_box(((west + east) / 2, (south + north) / 2, room.height + 0.25), (east - west + 2, north - south + 2, 0.5))


def _wall(s: Shape, room: Room) -> None:
    """Walls are visible from inside only; everything around the room is solid."""
    corners = np.asarray(room.outline)
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (b - a) / np.hypot(*(b - a))
        inward = np.array([-along[1], along[0]])
        length = float(np.hypot(*(b - a)))
        vertices = np.array([[*b, 0], [*a, 0], [*a, room.height], [*b, room.height]])
        # v fits the height, u is in meters: the texture's darker foot and top meet floor and ceiling.
        uv = np.array([[length, 1], [0, 1], [0, 0], [length, 0]])
        normals = np.tile([*inward, 0.0], (4, 1))
        faces = np.array([[0, 1, 2], [0, 2, 3]])
        s.surface(s.material("wall", "plain#d8d4c8"), Mesh(vertices, normals, uv, faces))
    for x0, y0, x1, y1 in rectangles(room.outline, outside=THICKNESS):
        s.solid_box(((x0 + x1) / 2, (y0 + y1) / 2, room.height / 2), (x1 - x0, y1 - y0, room.height))


def _level(x0, y0, x1, y1, z, up: bool) -> Mesh:
    vertices = np.array([[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z]], float)
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    normal = [0.0, 0.0, 1.0 if up else -1.0]
    return Mesh(vertices, np.tile(normal, (4, 1)), vertices[:, :2] * [1, -1], faces if up else faces[:, ::-1])


def rectangles(outline, outside: float = 0.0) -> list[tuple[float, float, float, float]]:
    """Cuts an axis-aligned outline into rectangles (west, south, east, north).

    With `outside`, cuts the margin of so many meters around the outline instead.
    """
    corners = np.asarray(outline, float)
    xs, ys = (np.unique(corners[:, axis]) for axis in (0, 1))
    if outside:
        xs, ys = (np.concatenate([[ticks[0] - outside], ticks, [ticks[-1] + outside]]) for ticks in (xs, ys))
    cut = []
    for x0, x1 in pairwise(xs):
        columns = [((x0 + x1) / 2, (y0 + y1) / 2) for y0, y1 in pairwise(ys)]
        inside = [_within(middle, corners) != bool(outside) for middle in columns]
        start = None
        for j, selected in enumerate([*inside, False]):
            if selected and start is None:
                start = j
            if not selected and start is not None:
                cut.append((float(x0), float(ys[start]), float(x1), float(ys[j])))
                start = None
    return cut


def _within(point, corners) -> bool:
    """Whether a point is inside the outline: a ray to the east crosses it an odd number of times."""
    x, y = point
    crossings = 0
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            crossings += 1
    return crossings % 2 == 1
