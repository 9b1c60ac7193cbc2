"""A room on paper: its walls, what stands where, and what must stay free.

Everything is a box along the room's axes, (west, south, bottom, east, north, top). Things take boxes; ways through
doorways and the ground in front of doors and drawers are kept clear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.generate.palettes import style_of
from scrubjay.rooms.room import Lamp, Room, Thing

GAP = 0.004
"""Between a thing and the wall or the thing it abuts, so that no two faces lie in one plane."""
GRID, BODY_RADIUS, BODY_HEIGHT, STEP_OVER = 0.25, 0.2, 1.8, 0.05
FRONT = 0.85
"""Free ground before something that opens: the part's own way and a place to stand."""


class NoRoom(Exception):
    """What a room needs does not fit into this one; another seed may do."""


Box = tuple[float, float, float, float, float, float]
Size = tuple[float, float, float]
Fitting = dict[str, float]
"""Options of drawers and cabinets that a room's have in common."""


@dataclass(frozen=True)
class Wall:
    """A straight piece of wall, walked with the room on the left."""

    start: tuple[float, float]
    along: tuple[float, float]
    length: float

    @property
    def inward(self) -> tuple[float, float]:
        return (-self.along[1], self.along[0])

    @property
    def yaw(self) -> float:
        """Of a thing that has its back to the wall."""
        return float(np.degrees(np.arctan2(self.inward[0], self.inward[1])) % 360)

    def at(self, s: float, away: float) -> tuple[float, float]:
        """The point `s` along the wall and `away` from it."""
        (x, y), (ax, ay), (ix, iy) = self.start, self.along, self.inward
        return (x + ax * s + ix * away, y + ay * s + iy * away)


def walls_of(outline: tuple[tuple[float, float], ...]) -> list[Wall]:
    """The walls of an outline, in its order."""
    found = []
    for (ax, ay), (bx, by) in zip(outline, outline[1:] + outline[:1], strict=True):
        length = abs(bx - ax) + abs(by - ay)
        found.append(Wall((ax, ay), ((bx - ax) / length, (by - ay) / length), length))
    return found


def right_of(yaw: float) -> tuple[float, float]:
    """The direction to the right of a thing that is turned by a multiple of 90 degrees."""
    return ((1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0))[round(yaw / 90) % 4]


def turned(size: Sequence[float], yaw: float) -> tuple[float, float]:
    """Width along x and y of a box of a size after turning."""
    c, s = abs(np.cos(np.radians(yaw))), abs(np.sin(np.radians(yaw)))
    return (float(size[0] * c + size[1] * s), float(size[0] * s + size[1] * c))


def box_of(position: Sequence[float], size: Sequence[float], yaw: float) -> Box:
    """The room-aligned box of a thing."""
    (x, y, z), (w, d) = position, turned(size, yaw)
    return (x - w / 2, y - d / 2, z, x + w / 2, y + d / 2, z + size[2])


class Plan:
    """A room in the making."""

    def __init__(
        self, room_type: str, seed: int, rng: np.random.Generator, outline, height: float, style: dict[str, str]
    ) -> None:
        self.type, self.seed, self.rng, self.height, self.style = room_type, seed, rng, _round(height), style
        self.outline = tuple((_round(x), _round(y)) for x, y in outline)
        self.walls = walls_of(self.outline)
        xs, ys = zip(*self.outline, strict=True)
        self.bounds = (min(xs), min(ys), max(xs), max(ys))
        self.things: list[Thing] = []
        self.taken: list[Box] = []
        self.owners: list[str] = []
        self.clear: list[Box] = []
        self.fronts: list[Box] = []
        """The ground before each thing that opens, from where a body must be able to open it."""
        self.counts: Counter[str] = Counter()
        west, south, east, north = self.bounds
        for kind in ("Floor", "Wall", "Ceiling"):
            self.things.append(
                Thing(
                    kind, kind, (0.0, 0.0, 0.0), 0.0, (east - west, north - south, height), style=style_of(kind, style)
                )
            )
        if len(self.outline) == 6:
            self._take(_notch(self.outline, self.bounds), "")

    def _take(self, box: Box, owner: str) -> None:
        self.taken.append(box)
        self.owners.append(owner)

    def add(
        self, kind: str, position: Sequence[float], yaw: float, size: Sequence[float], inside: str = "",
        options: Mapping[str, float] | None = None, style: dict[str, str] | None = None, seed: int | None = None,
    ) -> Thing:  # fmt: skip
        """Puts a thing into the room, whatever is there."""
        self.counts[kind] += 1
        thing = Thing(
            f"{kind}_{self.counts[kind]}", kind, _triple(position), _round(float(yaw) % 360),
            _triple(size), int(self.rng.integers(2**31)) if seed is None else seed,
            {**style_of(kind, self.style), **(style or {})}, inside,
            {key: float(value) for key, value in (options or {}).items()},
        )  # fmt: skip
        self.things.append(thing)
        self._take(box_of(thing.position, thing.size, thing.yaw), thing.name)
        return thing

    def fits(self, box: Box, slack: float = 0.002, besides: tuple[str, ...] = (), clear: bool = True) -> bool:
        """Is a box inside the room and free of things (but those named) and, if asked, of kept-clear ground."""
        west, south, east, north = self.bounds
        if box[0] < west or box[1] < south or box[3] > east or box[4] > north or box[2] < -1e-6 or box[5] > self.height:
            return False
        others = [b for b, owner in zip(self.taken, self.owners, strict=True) if not owner or owner not in besides]
        return not _overlaps(box, others + (self.clear if clear else []), slack)

    def keep_clear(self, box: Box) -> None:
        self.clear.append(box)

    def front_of(self, box: Box, yaw: float, reach: float) -> Box:
        """The ground before a box, as high as a body."""
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

    def back_to(
        self, wall: Wall, s: float, size: Size, z: float = 0.0, away: float = GAP
    ) -> tuple[float, float, float]:
        """The position of a thing with its back to a wall."""
        return (*wall.at(s, size[1] / 2 + away), z)

    def spot(self, wall: Wall, s: float, size: Size, z: float = 0.0, front: float = 0.0, away: float = GAP) -> bool:
        """Is there room for a thing with its back to a wall, and before it."""
        box = box_of(self.back_to(wall, s, size, z, away), size, wall.yaw)
        if s - size[0] / 2 < 0.001 or s + size[0] / 2 > wall.length - 0.001 or not self.fits(box):
            return False
        return not front or self.fits(self.front_of(box, wall.yaw, front), clear=False)

    def stand(
        self, kind: str, size: Size, walls: list[Wall] | None = None, z: float = 0.0, front: float = 0.0,
        away: float = GAP, where: str = "any", tries: int = 24, opens: bool = False, beside: float = 0.0, **kept,
    ) -> Thing | None:  # fmt: skip
        """Puts a thing with its back to a wall where there is room for it and for what opens `beside` it; or None."""
        walls = [w for w in (walls or self.walls) if w.length > size[0] + 0.02]
        for _ in range(tries if walls else 0):
            wall = walls[int(self.rng.integers(len(walls)))]
            lowest, highest = size[0] / 2 + 0.01, wall.length - size[0] / 2 - 0.01
            s = float(self.rng.uniform(lowest, highest))
            if where == "corner":
                s = lowest if self.rng.random() < 0.5 else highest
            elif where == "middle":
                s = wall.length / 2 + float(self.rng.normal(0, 0.15))
            if not self.spot(wall, s, (size[0] + 2 * beside, *size[1:]), z, front, away):
                continue
            return self.put_back(kind, wall, s, size, z, front, away, opens, **kept)
        return None

    def put_back(
        self, kind: str, wall: Wall, s: float, size: Size, z: float = 0.0, front: float = 0.0, away: float = GAP,
        opens: bool = False, **kept,
    ) -> Thing:  # fmt: skip
        """Puts a thing with its back to a wall and keeps the ground before it clear."""
        thing = self.add(kind, self.back_to(wall, s, size, z, away), wall.yaw, size, **kept)
        if front:
            self.keep_front(thing, front, opens)
        return thing

    def keep_front(self, thing: Thing, reach: float = FRONT, opens: bool = True) -> None:
        """Keeps the ground before a thing clear; a body must get there if the thing opens."""
        front = self.front_of(box_of(thing.position, thing.size, thing.yaw), thing.yaw, reach)
        self.keep_clear(front)
        if opens:
            self.fronts.append(front)

    def mark(self) -> tuple:
        """The plan as it is now, to come back to."""
        lists = (self.things, self.taken, self.owners, self.clear, self.fronts)
        return tuple(len(items) for items in lists), self.counts.copy()

    def revert(self, mark: tuple) -> None:
        """Takes away everything since a mark."""
        for items, length in zip((self.things, self.taken, self.owners, self.clear, self.fronts), mark[0], strict=True):
            del items[length:]
        self.counts = mark[1].copy()

    def furnish(self, kind: str, size: Size, tries: int = 3, **how) -> Thing | None:
        """Stands a thing at a wall if bodies can still walk everywhere; see `stand`."""
        for _ in range(tries):
            mark = self.mark()
            thing = self.stand(kind, size, **how)
            if thing is None or self.passable():
                return thing
            self.revert(mark)
        return None

    def walkable(self) -> tuple[np.ndarray, np.ndarray]:
        """Grid positions (n, 2) on which a body fits, and which of them belong to the largest connected part (n,)."""
        west, south, east, north = self.bounds
        xs, ys = (
            GRID * np.arange(np.ceil(a / GRID), np.floor(b / GRID) + 1) for a, b in ((west, east), (south, north))
        )
        points = np.stack(np.meshgrid(xs, ys, indexing="ij"), -1)
        inner = np.minimum(points - [west, south], [east, north] - points).min(-1) >= BODY_RADIUS
        solid = np.array([b for b in self.taken if b[2] < BODY_HEIGHT and b[5] > STEP_OVER]).reshape(-1, 6)
        away = np.maximum(solid[:, :2] - points[..., None, :], points[..., None, :] - solid[:, 3:5])
        free = inner & (np.hypot(*np.maximum(away, 0).transpose(3, 0, 1, 2)).min(-1, initial=9.0) >= BODY_RADIUS + 0.01)
        labels, count = ndimage.label(free)
        sizes = ndimage.sum(free, labels, range(1, count + 1)) if count else []
        largest = labels == (int(np.argmax(sizes)) + 1 if count else -1)
        return points[free], largest[free]

    def passable(self, allowed: int = 3) -> bool:
        """Is the free floor one region, but for a few positions, that reaches what opens."""
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
        return Room(scene, self.type, self.outline, self.height, tuple(self.things), _lamps(self.rng))


def outline_of(rng: np.random.Generator, width: float, depth: float, bent: float = 0.25) -> list[tuple[float, float]]:
    """A rectangle about the origin, or with a probability an L: one corner cut out. Counter-clockwise."""
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


def _lamps(rng: np.random.Generator) -> tuple[Lamp, Lamp, Lamp]:
    """Three lights without shadows: one leads, one fills from the other side, one lifts the ceiling."""
    turn = float(rng.uniform(0, 2 * np.pi))
    warmth = float(rng.uniform(-0.03, 0.03))
    lamps = []
    for angle, down, strength, tint in ((0.0, 0.72, 0.42, 1.0), (2.6, 0.42, 0.28, -1.0), (4.4, -0.5, 0.3, 0.5)):
        flat = np.sqrt(1 - down**2)
        direction = (flat * np.cos(turn + angle), flat * np.sin(turn + angle), -down)
        color = (strength * (1 + tint * (0.04 + warmth)), strength, strength * (1 - tint * (0.06 + warmth)))
        lamps.append(Lamp(_triple(direction), _triple(color)))
    lead, fill, lift = lamps
    return lead, fill, lift


def _triple(values: Sequence[float]) -> Size:
    x, y, z = (_round(value) for value in values)
    return x, y, z


def _round(value: float) -> float:
    """To 0.1 mm, so that rooms are the same on every machine."""
    return round(float(value), 4) + 0.0
