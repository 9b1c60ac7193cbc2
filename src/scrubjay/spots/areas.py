"""Areas of a room onto which objects can be dropped: supports, the insides of containers, the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.rooms.catalog.shape import IDENTITY, Drawn
from scrubjay.rooms.floor import frame, part_frame
from scrubjay.sim.compile import CompiledRoom

DROP = (0.01, 0.04)
"""Meters above a support from which an object is dropped."""


@dataclass(frozen=True)
class Area:
    """A level rectangle above which an object is dropped, where it is with everything open that must be."""

    position: np.ndarray
    """(3,): the rectangle's center."""
    turn: np.ndarray
    """(3, 3): its rotation matrix."""
    half: np.ndarray
    """(2,): half its width and depth."""
    height: float
    """How far above it an object may be dropped; 0 stands for a few centimeters."""
    open: tuple[int, ...] = ()
    """Numbers of the openables that must be open to get there."""


def areas_of(compiled: CompiledRoom) -> dict[str, list[Area]]:
    """A room's areas by kind: "on" things in the open, "in" what must be opened, "floor"."""
    room = compiled.room
    west, south, east, north = room.bounds
    middle = np.array([(west + east) / 2, (south + north) / 2, 0])
    floor = Area(middle, np.eye(3), np.array([east - west, north - south]) / 2, 0.0)
    areas = []
    for index, shape in enumerate(compiled.shapes):
        areas += _areas_on(compiled, index, shape, compiled.carriers.get(index))
        for number, part in enumerate(shape.moving):
            areas += _areas_on(compiled, index, part, (index, number))
    shut = [area for area in areas if area.open]
    return {"on": [area for area in areas if not area.open], "in": shut, "floor": [floor]}


def _areas_on(compiled: CompiledRoom, index: int, part: Drawn, riding: tuple[int, int] | None) -> list[Area]:
    """The supports and the bottoms of the spaces of a thing's part, which may ride on a thing's part of a number."""
    numbers = {openable.thing: number for number, openable in enumerate(compiled.openables)}
    position, turn = frame(compiled.room.things[index])
    now_position, now_turn, needed = position, turn, set()
    if riding:
        carrier, number = riding
        at, about = frame(compiled.room.things[carrier])
        now_at, now_about = part_frame(compiled.shapes[carrier].moving[number], 1.0, at, about)
        swing = now_about @ about.T
        now_position, now_turn = swing @ (position - at) + now_at, swing @ turn
        needed.add(numbers[carrier])
    level = [(support.position, IDENTITY, np.array(support.size) / 2, 0.0) for support in part.supports]
    level += [
        (s.position - s.rotation @ [0, 0, s.half[2]], s.rotation, s.half[:2], 2 * float(s.half[2])) for s in part.spaces
    ]
    areas = []
    for local, rotation, half, height in level:
        if (now_turn @ rotation)[2, 2] < 0.999:
            continue  # Tilted when open: nothing stays on it.
        around = _openables_around(compiled, turn @ local + position + [0, 0, DROP[0]], numbers)
        needs = tuple(sorted(needed | around))
        areas.append(Area(now_turn @ local + now_position, now_turn @ rotation, half, height, needs))
    return areas


def _openables_around(compiled: CompiledRoom, point: np.ndarray, numbers: dict[int, int]) -> set[int]:
    """The openables that contain a point when all are closed."""
    volumes = compiled.volumes
    local = np.einsum("nji,nj->ni", volumes.rotation, point - volumes.position)
    inside = volumes.thing[(np.abs(local) <= volumes.half).all(1)]
    return {numbers[thing] for thing in inside.tolist() if thing in numbers}


def within(outline: Sequence[tuple[float, float]], point: np.ndarray) -> bool:
    """Is a point (2,) inside a closed polygon?"""
    corners = np.asarray(outline)
    after = np.roll(corners, -1, axis=0)
    crosses = (corners[:, 1] > point[1]) != (after[:, 1] > point[1])
    a, b = corners[crosses], after[crosses]
    at = a[:, 0] + (point[1] - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
    return bool((at > point[0]).sum() % 2)
