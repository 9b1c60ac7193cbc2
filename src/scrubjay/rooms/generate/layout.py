"""A room's layout while it is generated: walls, things, and floor that must stay free.

Everything is an axis-aligned box, (west, south, bottom, east, north, top). Things occupy boxes; passages through
doorways and the floor in front of doors and drawers are kept clear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import BODY_HEIGHT, BODY_RADIUS, GRID, STEP_OVER
from scrubjay.rooms.generate.palettes import style_of
from scrubjay.rooms.room import Lamp, Room, Thing

GAP = 0.004
"""Meters between a thing and the wall or thing it abuts, so that no two faces are coplanar."""
FRONT = 0.85
"""Meters of free floor in front of an openable: for its moving part and for a body."""


class LayoutError(Exception):
    """Required furniture does not fit; the generator tries again."""


Box = tuple[float, float, float, float, float, float]
Size = tuple[float, float, float]
Fitting = dict[str, float]
"""Options that all drawers and cabinets of a room share."""


@dataclass(frozen=True)
class Wall:
    """A straight wall segment, with the room on the left of its direction."""

    start: tuple[float, float]
    along: tuple[float, float]
    length: float

    @property
    def inward(self) -> tuple[float, float]:
        return (-self.along[1], self.along[0])

    @property
    def yaw(self) -> float:
        """The yaw of a thing with its back to the wall."""
        return float(np.degrees(np.arctan2(self.inward[0], self.inward[1])) % 360)

    def at(self, s: float, away: float) -> tuple[float, float]:
        """The point `s` along the wall and `away` from it."""
        (x, y), (ax, ay), (ix, iy) = self.start, self.along, self.inward
        return (x + ax * s + ix * away, y + ay * s + iy * away)


def walls_of(outline: tuple[tuple[float, float], ...]) -> list[Wall]:
    """The walls of an outline, in its order."""
    walls = []
    for (ax, ay), (bx, by) in zip(outline, outline[1:] + outline[:1], strict=True):
        length = abs(bx - ax) + abs(by - ay)
        walls.append(Wall((ax, ay), ((bx - ax) / length, (by - ay) / length), length))
    return walls


def right_of(yaw: float) -> tuple[float, float]:
    """The direction to the right of a thing whose yaw is a multiple of 90 degrees."""
    return ((1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0))[round(yaw / 90) % 4]


def rotated_extent(size: Sequence[float], yaw: float) -> tuple[float, float]:
    """The extent along x and y of a box at a yaw."""
    c, s = abs(np.cos(np.radians(yaw))), abs(np.sin(np.radians(yaw)))
    return (float(size[0] * c + size[1] * s), float(size[0] * s + size[1] * c))


def box_of(position: Sequence[float], size: Sequence[float], yaw: float) -> Box:
    """The axis-aligned bounding box of a thing."""
    (x, y, z), (w, d) = position, rotated_extent(size, yaw)
    return (x - w / 2, y - d / 2, z, x + w / 2, y + d / 2, z + size[2])


class Plan:
    """A room under construction."""

    def __init__(
        self, room_type: str, seed: int, rng: np.random.Generator, outline, height: float, style: dict[str, str]
    ) -> None:
        self.type, self.seed, self.rng, self.height, self.style = room_type, seed, rng, _round(height), style
        self.outline = tuple((_round(x), _round(y)) for x, y in outline)
        self.walls = walls_of(self.outline)
        xs, ys = zip(*self.outline, strict=True)
        self.bounds = (min(xs), min(ys), max(xs), max(ys))
        self.things: list[Thing] = []
        self.occupied: list[Box] = []
        self.owners: list[str] = []
        self.clear: list[Box] = []
        self.fronts: list[Box] = []
        """The floor in front of each openable, which a body must be able to reach."""
        self.counts: Counter[str] = Counter()
        west, south, east, north = self.bounds
        for kind in ("Floor", "Wall", "Ceiling"):
            self.things.append(
                Thing(
                    kind, kind, (0.0, 0.0, 0.0), 0.0, (east - west, north - south, height), style=style_of(kind, style)
                )
            )
        if len(self.outline) == 6:
            self._occupy(_notch(self.outline, self.bounds), "")

    def _occupy(self, box: Box, owner: str) -> None:
        self.occupied.append(box)
        self.owners.append(owner)

    def add(
        self, kind: str, position: Sequence[float], yaw: float, size: Sequence[float], inside: str = "",
        options: Mapping[str, float] | None = None, style: dict[str, str] | None = None, seed: int | None = None,
    ) -> Thing:  # fmt: skip
        """Adds a thing without any check."""
        self.counts[kind] += 1
        thing = Thing(
            f"{kind}_{self.counts[kind]}", kind, triple(position), _round(float(yaw) % 360),
            triple(size), int(self.rng.integers(2**31)) if seed is None else seed,
            {**style_of(kind, self.style), **(style or {})}, inside,
            {key: float(value) for key, value in (options or {}).items()},
        )  # fmt: skip
        self.things.append(thing)
        self._occupy(box_of(thing.position, thing.size, thing.yaw), thing.name)
        return thing

    def fits(self, box: Box, slack: float = 0.002, besides: tuple[str, ...] = (), clear: bool = True) -> bool:
        """Whether a box is inside the room, clear of things (except `besides`) and, if `clear`, of reserved floor."""
        west, south, east, north = self.bounds
        if box[0] < west or box[1] < south or box[3] > east or box[4] > north or box[2] < -1e-6 or box[5] > self.height:
            return False
        others = [b for b, owner in zip(self.occupied, self.owners, strict=True) if not owner or owner not in besides]
        return not _overlaps(box, others + (self.clear if clear else []), slack)

    def keep_clear(self, box: Box) -> None:
        self.clear.append(box)

    def front_of(self, box: Box, yaw: float, reach: float) -> Box:
        """The space in front of a box, of body height."""
        forward = facing_vector(yaw).round()
        west, south, _, east, north, _ = box
        if forward[0] > 0:
            west, east = east, east + reach
        elif forward[0] < 0:
            west, east = west - reach, west
        elif forward[1] > 0:
            south, north = north, north + reach
        else:
            south, north = south - reach, south
        return (west, south, STEP_OVER, east, north, BODY_HEIGHT)

    def position_at_wall(
        self, wall: Wall, s: float, size: Size, z: float = 0.0, away: float = GAP
    ) -> tuple[float, float, float]:
        """The position of a thing with its back to a wall."""
        return (*wall.at(s, size[1] / 2 + away), z)

    def fits_at_wall(
        self, wall: Wall, s: float, size: Size, z: float = 0.0, front: float = 0.0, away: float = GAP
    ) -> bool:
        """Whether a thing with its back to a wall fits, and the free floor in front of it."""
        box = box_of(self.position_at_wall(wall, s, size, z, away), size, wall.yaw)
        if s - size[0] / 2 < 0.001 or s + size[0] / 2 > wall.length - 0.001 or not self.fits(box):
            return False
        return not front or self.fits(self.front_of(box, wall.yaw, front), clear=False)

    def place_at_wall(
        self, kind: str, size: Size, walls: list[Wall] | None = None, z: float = 0.0, front: float = 0.0,
        away: float = GAP, where: str = "any", tries: int = 24, opens: bool = False, beside: float = 0.0, **thing_args,
    ) -> Thing | None:  # fmt: skip
        """Adds a thing with its back to a random wall, where it and the space `beside` it fit; None if nowhere."""
        walls = [w for w in (walls or self.walls) if w.length > size[0] + 0.02]
        for _ in range(tries if walls else 0):
            wall = walls[int(self.rng.integers(len(walls)))]
            lowest, highest = size[0] / 2 + 0.01, wall.length - size[0] / 2 - 0.01
            s = float(self.rng.uniform(lowest, highest))
            if where == "corner":
                s = lowest if self.rng.random() < 0.5 else highest
            elif where == "middle":
                s = wall.length / 2 + float(self.rng.normal(0, 0.15))
            if not self.fits_at_wall(wall, s, (size[0] + 2 * beside, *size[1:]), z, front, away):
                continue
            return self.add_at_wall(kind, wall, s, size, z, front, away, opens, **thing_args)
        return None

    def add_at_wall(
        self, kind: str, wall: Wall, s: float, size: Size, z: float = 0.0, front: float = 0.0, away: float = GAP,
        opens: bool = False, **thing_args,
    ) -> Thing:  # fmt: skip
        """Adds a thing with its back to a wall and keeps the floor in front of it clear."""
        thing = self.add(kind, self.position_at_wall(wall, s, size, z, away), wall.yaw, size, **thing_args)
        if front:
            self.keep_front(thing, front, opens)
        return thing

    def keep_front(self, thing: Thing, reach: float = FRONT, opens: bool = True) -> None:
        """Keeps the floor in front of a thing clear; if the thing opens, a body must be able to reach it."""
        front = self.front_of(box_of(thing.position, thing.size, thing.yaw), thing.yaw, reach)
        self.keep_clear(front)
        if opens:
            self.fronts.append(front)

    def checkpoint(self) -> tuple:
        """The plan's current state, for `revert`."""
        lists = (self.things, self.occupied, self.owners, self.clear, self.fronts)
        return tuple(len(items) for items in lists), self.counts.copy()

    def revert(self, checkpoint: tuple) -> None:
        """Removes everything added since a checkpoint."""
        for items, length in zip(
            (self.things, self.occupied, self.owners, self.clear, self.fronts), checkpoint[0], strict=True
        ):
            del items[length:]
        self.counts = checkpoint[1].copy()

    def furnish(self, kind: str, size: Size, tries: int = 3, **place_args) -> Thing | None:
        """As `place_at_wall`, if the floor stays passable."""
        for _ in range(tries):
            checkpoint = self.checkpoint()
            thing = self.place_at_wall(kind, size, **place_args)
            if thing is None or self.passable():
                return thing
            self.revert(checkpoint)
        return None

    def walkable(self) -> tuple[np.ndarray, np.ndarray]:
        """Grid positions (n, 2) where a body fits, and whether they are in the largest connected region (n,)."""
        west, south, east, north = self.bounds
        xs, ys = (
            GRID * np.arange(np.ceil(a / GRID), np.floor(b / GRID) + 1) for a, b in ((west, east), (south, north))
        )
        points = np.stack(np.meshgrid(xs, ys, indexing="ij"), -1)
        inner = np.minimum(points - [west, south], [east, north] - points).min(-1) >= BODY_RADIUS
        solid = np.array([b for b in self.occupied if b[2] < BODY_HEIGHT and b[5] > STEP_OVER]).reshape(-1, 6)
        away = np.maximum(solid[:, :2] - points[..., None, :], points[..., None, :] - solid[:, 3:5])
        free = inner & (np.hypot(*np.maximum(away, 0).transpose(3, 0, 1, 2)).min(-1, initial=9.0) >= BODY_RADIUS + 0.01)
        labels, count = ndimage.label(free)
        sizes = ndimage.sum(free, labels, range(1, count + 1)) if count else []
        largest = labels == (int(np.argmax(sizes)) + 1 if count else -1)
        return points[free], largest[free]

    def passable(self, allowed: int = 3) -> bool:
        """Whether the free floor is one region, up to `allowed` positions, that reaches every openable."""
        points, largest = self.walkable()
        if not len(points) or (~largest).sum() > allowed:
            return False
        here = points[largest]
        return all(
            ((here > [f[0] - 0.25, f[1] - 0.25]) & (here < [f[3] + 0.25, f[4] + 0.25])).all(1).any()
            for f in self.fronts
        )

    def room(self, scene: str) -> Room:
        """The finished room."""
        return Room(scene, self.type, self.outline, self.height, tuple(self.things), make_lamps(self.rng))


def outline_of(rng: np.random.Generator, width: float, depth: float, bent: float = 0.25) -> list[tuple[float, float]]:
    """A rectangle about the origin or, with probability `bent`, an L with one corner cut out; counter-clockwise."""
    w, d = width / 2, depth / 2
    corners = [(-w, -d), (w, -d), (w, d), (-w, d)]
    if rng.random() >= bent:
        return corners
    a, b = rng.uniform(0.24, 0.36) * width, rng.uniform(0.24, 0.36) * depth
    cut = int(rng.integers(4))
    x, y = corners[cut]
    inner_x, inner_y = x - np.sign(x) * a, y - np.sign(y) * b
    new = [(x, inner_y), (inner_x, inner_y), (inner_x, y)]
    return corners[:cut] + (new[::-1] if cut % 2 else new) + corners[cut + 1 :]


def _notch(outline: tuple[tuple[float, float], ...], bounds: tuple[float, float, float, float]) -> Box:
    """The box cut out of an L."""
    west, south, east, north = bounds
    x = next(x for x, _ in outline if x not in (west, east))
    y = next(y for _, y in outline if y not in (south, north))
    corner = next((cx, cy) for cx in (west, east) for cy in (south, north) if (cx, cy) not in outline)
    return (min(x, corner[0]), min(y, corner[1]), -1.0, max(x, corner[0]), max(y, corner[1]), 9.0)


def _overlaps(box: Box, others: list[Box], slack: float) -> bool:
    a, b, c, d, e, f = (v + slack * (1 if i < 3 else -1) for i, v in enumerate(box))
    return any(a < o[3] and d > o[0] and b < o[4] and e > o[1] and c < o[5] and f > o[2] for o in others)


def make_lamps(rng: np.random.Generator) -> tuple[Lamp, Lamp, Lamp]:
    """Three lights without shadows: a key light, a fill light from the other side, and one for the ceiling."""
    turn = float(rng.uniform(0, 2 * np.pi))
    warmth = float(rng.uniform(-0.03, 0.03))
    lamps = []
    for angle, down, strength, tint in ((0.0, 0.72, 0.42, 1.0), (2.6, 0.42, 0.28, -1.0), (4.4, -0.5, 0.3, 0.5)):
        flat = np.sqrt(1 - down**2)
        direction = (flat * np.cos(turn + angle), flat * np.sin(turn + angle), -down)
        color = (strength * (1 + tint * (0.04 + warmth)), strength, strength * (1 - tint * (0.06 + warmth)))
        lamps.append(Lamp(triple(direction), triple(color)))
    key, fill, ceiling = lamps
    return key, fill, ceiling


def triple(values: Iterable[float]) -> Size:
    """Three lengths, rounded to 0.1 mm."""
    x, y, z = (_round(value) for value in values)
    return x, y, z


def _round(value: float) -> float:
    """Rounds to 0.1 mm, so that rooms are the same on every machine."""
    return round(float(value), 4) + 0.0
