"""What lies in or on what, and where something can be put down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scrubjay.rooms.catalog.shape import Drawn
from scrubjay.sim.quaternion import compose, matrix_from_quat, quat_from_axis_angle
from scrubjay.thor.things import UP, Things

SINKS, FLOATS = 0.025, 0.04
"""Meters by which the lowest corner of what stands on a level may be below and above it."""
OVERHANG = 0.02
"""Meters by which the center of what stands on a level may be outside of it."""
PUT_ABOVE = 0.01
"""Meters above a level from which something is put down."""
SPACING = 0.08
"""Meters between the places where that is tried."""


@dataclass(frozen=True)
class Region:
    """A level on a thing, or a volume in it, about the center of its box."""

    thing: int
    body: int
    """The moving part that it belongs to; 0 for the fixed part."""
    center: np.ndarray
    """(3,): of a level, or of a volume."""
    half: np.ndarray
    """(3,): half its sides; 0 high for a level."""


class Receptacles:
    """The levels and volumes of a scene's things."""

    def __init__(self, things: Things) -> None:
        self.things = things
        self.regions = [region for thing in range(len(things.room.things)) for region in self._regions(thing)]
        self._owner = np.array([region.thing for region in self.regions], int)
        self._half = np.array([region.half for region in self.regions]).reshape(-1, 3)
        self._floor = next((k for k, kind in enumerate(things.types) if kind == "Floor"), -1)
        # In which body each is, as long as its thing is at home, and where, as long as that body is closed.
        self._body = np.array([region.body or things.body_of(region.thing) for region in self.regions], int)
        homes = things.home[self._owner]
        self._home = homes.copy()
        self._home[:, :3] += np.einsum(
            "nij,nj->ni", matrix_from_quat(homes[:, 3:]), np.array([r.center for r in self.regions]).reshape(-1, 3)
        )
        self._layout: object = None
        self._holders: dict[int, list[int]] = {}

    def containers(self, thing: int) -> list[int]:
        """What a thing lies in, the smallest volume first, and then what it stands on."""
        self._update()
        if thing not in self._holders:
            self._holders[thing] = self._find(thing)
        return list(self._holders[thing])

    def enclosed(self, thing: int) -> bool:
        """Is it inside something that is closed?"""
        if thing in self.things.held or thing in self.things.absent:
            return False
        self._update()
        around = self._owner[self._inside(self.things.pose(thing)) & (self._half[:, 2] > 0)]
        numbers = [self.things.openables.get(owner, -1) for owner in around.tolist() if owner != thing]
        return any(number >= 0 and self.things.open[number] == 0 for number in numbers)

    def contents(self, receptacle: int) -> list[int]:
        """The loose things that lie in or on a thing."""
        return [thing for thing in self.things.mass if thing != receptacle and receptacle in self.containers(thing)]

    def on_top_of(self, thing: int) -> list[int]:
        """The loose things that stand on a thing's box, though it may have no level for them; the lowest first."""
        things, low, high = self.things, *_bounds(self.things.corners(thing))
        found = []
        for other in things.mass.keys() - things.held - things.absent - {thing}:
            start, end = _bounds(things.corners(other))
            overlaps = (start[:2] < high[:2]).all() and (end[:2] > low[:2]).all()
            if overlaps and abs(start[2] - high[2]) < FLOATS / 2:
                found.append(other)
        return sorted(found, key=lambda other: (float(things.pose(other)[2]), other))

    def holds(self, receptacle: int, thing: int, pose: np.ndarray) -> bool:
        """Would a thing lie in or on a receptacle in a pose?"""
        if receptacle == self._floor:
            return bool(self._lowest(thing, pose) < FLOATS)
        self._update()
        return bool(self._around(pose, self._lowest(thing, pose))[self._owner == receptacle].any())

    def body_around(self, pose: np.ndarray) -> int:
        """The moving part whose volume contains a thing's center; 0 for none."""
        self._update()
        volumes = np.flatnonzero(self._inside(pose) & (self._half[:, 2] > 0))
        smallest = min(volumes, key=lambda k: float(self._half[k].prod()), default=None)
        if smallest is None:
            return 0
        owner = int(self._owner[smallest])
        return self.things.body_of(owner) if owner in self.things.moved else int(self._body[smallest])

    def places(self, receptacle: int, thing: int, near: np.ndarray) -> Iterator[np.ndarray]:
        """Poses (7,) just above a receptacle's levels and the bottoms of its volumes, nearest to a point (2,) first."""
        self._update()
        centers, turns = self._centers, self._turns
        size, candidates = self.things.size[thing], []
        for k in np.flatnonzero(self._owner == receptacle):
            if turns[k][2, 2] < 0.99:
                continue  # Tilted: nothing stays on it.
            bottom = centers[k] - turns[k] @ [0, 0, self._half[k, 2]]
            yaw = np.degrees(np.arctan2(turns[k][1, 0], turns[k][0, 0]))
            for quarter in (0, 90):
                width, depth = size[:2] if quarter == 0 else size[1::-1]
                slack = np.maximum(self._half[k, :2] - np.array([width, depth]) / 2, 0)
                quaternion = quat_from_axis_angle(UP, np.array(yaw + quarter))
                for offset in _lattice(slack):
                    point = bottom + turns[k] @ [*offset, 0] + UP * (size[2] / 2 + PUT_ABOVE)
                    away = float(np.linalg.norm(point[:2] - near))
                    candidates.append(
                        (round(away, 3), -round(point[2], 3), quarter, np.concatenate([point, quaternion]))
                    )
        candidates.sort(key=lambda candidate: candidate[:3])
        yield from (pose for *_, pose in candidates)

    def _find(self, thing: int) -> list[int]:
        things = self.things
        if thing in things.absent or thing in things.held:
            return []
        inside = (
            things.room.things[thing].inside if thing < len(things.room.things) and thing not in things.moved else ""
        )
        found = [things.names.index(inside)] if inside else []
        if thing in things.mass:
            pose = things.pose(thing)
            around = np.flatnonzero(self._around(pose, self._lowest(thing, pose)))
            order = sorted(around, key=lambda k: (self._half[k, 2] == 0, float(np.maximum(self._half[k], 0.01).prod())))
            ineligible = {thing, *things.riders(thing), *things.absent}
            found += [int(self._owner[k]) for k in order if int(self._owner[k]) not in ineligible]
            if not found and self._lowest(thing, pose) < FLOATS:
                found.append(self._floor)
        return list(dict.fromkeys(found))

    def _around(self, pose: np.ndarray, lowest: float) -> np.ndarray:
        """Which regions a thing lies in or stands on, (n,) bool, given its pose and its lowest height."""
        level = self._half[:, 2] == 0
        above = lowest - self._centers[:, 2]
        stands = level & (above > -SINKS) & (above < FLOATS)
        return self._inside(pose) & (stands | ~level)

    def _inside(self, pose: np.ndarray) -> np.ndarray:
        """Whether a thing's center is in each volume, or over each level."""
        local = np.abs(np.einsum("nji,nj->ni", self._turns, pose[:3] - self._centers))
        level = self._half[:, 2] == 0
        flat = (local[:, :2] <= self._half[:, :2] + OVERHANG * level[:, None]).all(1)
        return flat & (level | (local[:, 2] <= self._half[:, 2]))

    def _lowest(self, thing: int, pose: np.ndarray) -> float:
        """The height of the lowest corner of its box in a pose."""
        turn = matrix_from_quat(pose[3:])
        return float(pose[2] - np.abs(turn[2]) @ self.things.size[thing] / 2)

    def _update(self) -> None:
        """Brings the regions' centers (n, 3) and rotation matrices (n, 3, 3) up to date."""
        things = self.things
        if things.layout == self._layout:
            return
        self._layout, self._holders = things.layout, {}
        poses = compose(things.body_frames(self._body), self._home)
        for k, region in enumerate(self.regions):
            if region.thing in things.moved:
                poses[k] = compose(things.pose(region.thing), np.array([*region.center, 1, 0, 0, 0]))
        self._centers, self._turns = poses[:, :3], matrix_from_quat(poses[:, 3:])

    def _regions(self, thing: int) -> Iterator[Region]:
        things = self.things
        if things.types[thing] in ("Floor", "Wall", "Ceiling"):
            return
        shape, found = things.compiled.shapes[thing], False
        bodies = things.openable(thing).bodies if thing in things.openables else ()
        for part, body in ((shape, 0), *zip(shape.moving, map(int, bodies), strict=True)):
            for region in self._of_part(thing, part, body):
                found = True
                yield region
        if not found and thing not in things.mass:
            # Such as a stove's burner: its top.
            width, depth, height = things.size[thing]
            yield Region(thing, 0, np.array([0, 0, height / 2]), np.array([width / 2, depth / 2, 0]))

    def _of_part(self, thing: int, part: Drawn, body: int) -> Iterator[Region]:
        middle = np.array([0, 0, self.things.size[thing, 2] / 2])
        for support in part.supports:
            yield Region(thing, body, support.position - middle, np.array([*support.size, 0.0]) / 2)
        for space in part.spaces:
            yield Region(thing, body, space.position - middle, space.half)


def _bounds(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return corners.min(0), corners.max(0)


def _lattice(slack: np.ndarray) -> np.ndarray:
    """Points (n, 2) over a rectangle of half sides `slack`, its middle among them."""
    ticks = []
    for half in slack:
        count = int(half / SPACING)
        ticks.append(np.linspace(-half, half, 2 * count + 1) if count else np.zeros(1))
    return np.stack(np.meshgrid(*ticks, indexing="ij"), -1).reshape(-1, 2)
