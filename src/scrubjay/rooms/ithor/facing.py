"""Which way AI2-THOR's objects face, which the table does not say.

Models of appliances, seats and the like face where their rotation points. What was modeled with the room (cabinets,
drawers, pictures, windows) has any rotation: it turns its back to the wall and its front to free space, and its pivot
is at the hinge or on the front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.rooms.catalog.mesh import rotation
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.ithor.boxes import Box, point
from scrubjay.rooms.ithor.table import Record

HUNG = ("Blinds", "Curtains", "Mirror", "Painting", "Poster", "Window")
"""Flat things on walls: their depth is their thinner side."""
BUILT_IN = ("Cabinet", "Drawer", "Shelf", "ShelvingUnit", "SideTable", "Sink", "StoveKnob", "TVStand")
"""Types whose rotation is only a hint."""
TURNED = {"Bed": 180.0}
"""Degrees from an object's rotation to the front of our type: a bed's front is its foot."""
TRANSPARENT = ("CounterTop", "Floor")
"""Boxes that say nothing about free space: a counter's is the hull of an L."""
REACH = 0.45
"""Meters of free space that a door or a drawer needs in front."""
ON_FACE = 0.04
"""Meters from a face within which a pivot is on it."""
FAR = 0.5
"""Meters from a wall at which it is no longer behind a thing."""
SAMPLES = np.array([
    [x, y, z] for x in (-0.8, -0.4, 0, 0.4, 0.8) for y in (0.15, 0.5, 1) for z in (0.15, 0.5, 0.85)
])  # fmt: skip
"""Points in front of a box: in half widths, in REACH, and in heights."""


@dataclass(frozen=True)
class Surroundings:
    """What is around the objects of a room."""

    low: np.ndarray
    """The floor's south-west corner."""
    high: np.ndarray
    lows: np.ndarray
    """The lowest corners (n, 3) of the objects that could be in the way."""
    highs: np.ndarray

    @classmethod
    def of(cls, records: Sequence[Record], boxes: Sequence[Box], low: np.ndarray, high: np.ndarray) -> Surroundings:
        large = [
            box
            for record, box in zip(records, boxes, strict=True)
            if not record["pickupable"] and record["objectType"] not in (*HUNG, *TRANSPARENT)
        ]
        lows, highs = (np.array([getattr(box, end) for box in large]).reshape(-1, 3) for end in ("low", "high"))
        return cls(low, high, lows, highs)

    def blocked(self, box: Box) -> float:
        """The share of the space in front of a box that something fills, or that is outside the room."""
        width, depth, height = box.size
        samples = SAMPLES * [width / 2, REACH, height] + [0, depth / 2, 0]
        points = samples @ rotation("z", -box.yaw).T + box.position
        middle = box.position + [0, 0, height / 2]
        around = ((self.lows < middle) & (self.highs > middle)).all(1)
        lows, highs = self.lows[~around], self.highs[~around]
        filled = ((points[:, None] > lows) & (points[:, None] < highs)).all(-1).any(1)
        outside = ((points[:, :2] < self.low) | (points[:, :2] > self.high)).any(1)
        return float((filled | outside).mean())

    def behind(self, box: Box) -> float:
        """Meters from a box's back to the wall that it turns its back to."""
        back = -facing_vector(box.yaw)
        at = box.position[:2] + back * box.size[1] / 2
        room = np.where(back > 0, self.high - at, at - self.low) / np.maximum(np.abs(back), 1e-6)
        return float(max(room.min(), 0.0))

    def openness(self, box: Box) -> float:
        """Higher for a box with free space in front and a wall behind."""
        return round(max(1 - self.behind(box) / FAR, 0.0) - 2 * self.blocked(box), 6)


def face(record: Record, box: Box, around: Surroundings, fronts: Sequence[float] = ()) -> Box:
    """A box turned so that its front is the object's; what it is built into may leave only some yaws for its front."""
    kind = record["objectType"]
    if kind in HUNG:
        return _hang(box, around)
    if kind in BUILT_IN:
        allowed = [yaw for yaw in fronts if abs((yaw - box.yaw + 45) % 90 - 45) < 1]
        sides = [box.turned(yaw) for yaw in allowed or (box.yaw + turn for turn in (0, 90, 180, 270))]
        return max(sides, key=_likelihood(record, around))
    return box.turned(box.yaw + TURNED.get(kind, 0.0))


def _hang(box: Box, around: Surroundings) -> Box:
    """Turns a flat box so that its depth is its thinner side and the nearest wall is behind it."""
    sides = [box.turned(box.yaw + turn) for turn in (0, 90, 180, 270)]
    thin = [side for side in sides if side.size[1] <= side.size[0]]
    return min(thin, key=lambda side: round(around.behind(side), 4))


def best_front(box: Box, around: Surroundings) -> Box:
    """A box turned to free space, with its back to a wall."""
    return max((box.turned(box.yaw + turn) for turn in (0, 90, 180, 270)), key=around.openness)


def _likelihood(record: Record, around: Surroundings) -> Callable[[Box], float]:
    """How well a box's front fits what is known: free space, the wall behind, the pivot, and the rotation."""
    pivot, yaw = point(record["position"]), record["rotation"]["y"]

    def score(box: Box) -> float:
        x, y, _ = box.local(pivot)
        on_face = abs(y - box.size[1] / 2) < ON_FACE and abs(x) < box.size[0] / 2 + ON_FACE
        straight = abs((box.yaw - yaw + 180) % 360 - 180) < 1
        return around.openness(box) + 0.6 * on_face + 0.3 * straight

    return score
