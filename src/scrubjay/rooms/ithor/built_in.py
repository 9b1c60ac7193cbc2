"""What the table leaves to us: boards of furniture with drawers, counters with their bases, ovens under burners.

Bases and ovens are in no record of the table: in AI2-THOR they belong to the room's walls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.rooms.catalog.boards import Board, as_options
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.ithor.boxes import Box
from scrubjay.rooms.ithor.carpentry import cells_of, furniture_boards, legs
from scrubjay.rooms.ithor.counters import SLAB, base, slabs
from scrubjay.rooms.ithor.facing import Surroundings, best_front
from scrubjay.rooms.ithor.layout import FLAT, FURNITURE, PARTS, STANDING, Layout

STEP = 0.06
"""Meters under a piece's top at which something may stand for the top to be meant."""
NEAR = 0.8
"""Meters between the burners of one stove."""
RIM, KNOBS, BEHIND = 0.05, 0.12, 0.4
"""Meters of a stove around its burners, before them at most, and to the wall behind them at most."""
IN_FRONT = 0.02
"""Meters by which knobs are sunk into a stove's front."""
LOW_STOVE = 0.5
"""Meters; no oven fits under lower burners."""
AHEAD = 0.3
"""Meters before a door or drawer that no base covers."""
IN_COUNTER = 0.12
"""Meters between a counter's surface and the upper end of a sink in it, at most."""
CORNER_DESK = 1.1
"""Meters; a desk with no shorter side goes around a corner."""
BOARD = 0.15
"""A piece of furniture that is lower than this is one board."""


@dataclass(frozen=True)
class Piece:
    """A thing that is drawn otherwise than its record says, or that has no record."""

    name: str
    kind: str
    box: Box
    options: dict[str, float]


def furniture(layout: Layout) -> dict[int, Piece]:
    """Furniture around its drawers, cabinets and shelves, by number; and flat boxes, which are boards themselves."""
    pieces = {}
    for k in layout.of_type(*FURNITURE):
        box = layout.boxes[k]
        cells = cells_of(box, [layout.boxes[i] for i in layout.parts(k)])
        if layout.kinds[k] == "Desk" and box.size[:2].min() > CORNER_DESK:
            pieces[k] = _corner_desk(layout, k)
            continue
        if box.size[2] < BOARD:
            boards = [(np.array([*-box.size[:2] / 2, 0.0]), np.array([*box.size[:2] / 2, box.size[2]]))]
        elif cells:
            boards = furniture_boards(box.size, cells, _surface(layout, k))
        else:
            continue
        pieces[k] = Piece(layout.records[k]["name"], layout.kinds[k], box, as_options(boards))
    return pieces


def _corner_desk(layout: Layout, k: int) -> Piece:
    """A desk around a corner: its top is cut out of its box as a counter's is, and stands on legs."""
    counter, parts = layout.cut(k), [(layout.boxes[i].low, layout.boxes[i].high) for i in layout.parts(k)]
    boards = slabs(counter.strips, counter.height, [])
    for strip in counter.strips:
        middle, size = (strip[:2] + strip[2:]) / 2, strip[2:] - strip[:2]
        for low, high in legs(np.array([*size, counter.height]), [], counter.height - SLAB):
            leg = low + [*middle, 0.0], high + [*middle, 0.0]
            if not any((leg[0] < end).all() and (leg[1] > start).all() for start, end in parts):
                boards.append(leg)
    return _piece(layout.records[k]["name"], "Desk", boards)


def _surface(layout: Layout, k: int) -> float:
    """The height of a piece of furniture's top above its bottom: where most things on it stand, or its upper end."""
    box = layout.boxes[k]
    heights = [other.position[2] - box.position[2] for other in layout.resting_on(k)]
    height = float(np.median(heights)) if heights else float(box.size[2])
    return float(box.size[2]) if not 0.3 < height < box.size[2] - STEP else height


def counters(layout: Layout, ovens: Sequence[Piece]) -> tuple[dict[int, Piece], list[Piece]]:
    """Counters by number, cut into strips; and their bases."""
    tops, bases = {}, []
    room = np.array([*layout.low, *layout.high])
    taken: list[Board] = [(oven.box.low, np.array([*oven.box.high[:2], 9.0])) for oven in ovens]
    for k, counter in layout.counters.items():
        surface, strips = counter.height, counter.strips
        basins = [(layout.boxes[i].low, layout.boxes[i].high) for i in layout.of_type("SinkBasin")]
        basins = [basin for basin in basins if abs(basin[1][2] - surface) < IN_COUNTER]
        name, boards = layout.records[k]["name"], slabs(strips, surface, [*basins, *taken])
        tops[k] = _piece(name, "CounterTop", boards)
        parts = [layout.boxes[i] for i in layout.of_type(*PARTS) if layout.boxes[i].low[2] < surface - SLAB]
        under = base(strips, surface, [*_built_in(layout, surface, strips), *taken], parts, room)
        if under:
            bases.append(_piece(name.replace("CounterTop", "CounterBase"), "CounterBase", under))
        taken += [*boards, *under]
    return tops, bases


def _built_in(layout: Layout, surface: float, strips: Sequence[np.ndarray]) -> list[Board]:
    """The holes in a counter's base: what is built in, and niches for what stands under the counter."""
    holes = []
    for kind, box in zip(layout.kinds, layout.boxes, strict=True):
        low, high = box.low, box.high
        if kind in ("Floor", "CounterTop") or low[2] > surface - SLAB:
            continue
        if kind == "Shelf" and high[2] - low[2] < FLAT:
            high = np.array([*high[:2], surface])  # An open shelf whose box is only its surface.
        if kind in PARTS:
            ahead = np.array([*facing_vector(box.yaw), 0.0]) * AHEAD
            low, high = np.minimum(low, low + ahead), np.maximum(high, high + ahead)
        if kind in PARTS or low[2] > STANDING:
            holes.append((low, high))
            continue
        low, high = np.array([*low[:2], 0.0]), np.array([*high[:2], surface])
        holes.append((low, high))
        for strip in strips:
            if (low[:2] < strip[2:]).all() and (high[:2] > strip[:2]).all():
                axis = int(np.argmin(strip[2:] - strip[:2]))  # Open to the strip's front, and to its back.
                start, end = low.copy(), high.copy()
                start[axis], end[axis] = min(low[axis], strip[axis]), max(high[axis], strip[axis + 2])
                holes.append((start, end))
    return holes


def stoves(layout: Layout) -> list[Piece]:
    """An oven under each group of burners, unless drawers or cabinets are there."""
    around = Surroundings.of(layout.records, layout.boxes, layout.low, layout.high)
    knobs = [layout.boxes[k] for k in layout.of_type("StoveKnob")]
    pieces = []
    for number, group in enumerate(_groups([layout.boxes[k] for k in layout.of_type("StoveBurner")])):
        low, high = np.min([box.low for box in group], 0)[:2] - RIM, np.max([box.high for box in group], 0)[:2] + RIM
        top = min(box.low[2] for box in group)
        flat = Box(np.array([*(low + high) / 2, 0.0]), 0.0, np.array([*(high - low), top]))
        box = _to_wall(best_front(flat, around), knobs, around)
        others = [layout.boxes[k] for k in range(len(layout.boxes)) if layout.kinds[k] in PARTS]
        if top > LOW_STOVE and not any(_overlap(box, other) for other in others):
            pieces.append(Piece(f"Oven_{number + 1}", "Oven", box, {"shut": 1.0}))
    return pieces


def _groups(boxes: list[Box]) -> list[list[Box]]:
    groups: list[list[Box]] = []
    for box in boxes:
        near = [group for group in groups if any(_distance(box, other) < NEAR for other in group)]
        groups = [group for group in groups if not any(group is other for other in near)]
        groups.append([box, *(other for group in near for other in group)])
    return groups


def _distance(a: Box, b: Box) -> float:
    return float(np.linalg.norm((a.position - b.position)[:2]))


def _to_wall(box: Box, knobs: Sequence[Box], around: Surroundings) -> Box:
    """A stove's box, extended back to a wall that is near, and to the front up to the knobs."""
    width, depth, height = box.size
    gap = around.behind(box)
    back = gap if gap < BEHIND else 0.0
    before = [box.local(knob.position)[1] - knob.turned(box.yaw).size[1] / 2 - depth / 2 for knob in knobs]
    front = min([KNOBS, *(reach + IN_FRONT for reach in before if -RIM < reach + IN_FRONT < KNOBS)])
    forward = np.array([*facing_vector(box.yaw), 0.0])
    return Box(box.position + forward * (front - back) / 2, box.yaw, np.array([width, depth + front + back, height]))


def _overlap(a: Box, b: Box) -> bool:
    return bool((a.low < b.high - 0.01).all() and (a.high > b.low + 0.01).all())


def _piece(name: str, kind: str, boards: list[Board]) -> Piece:
    """A thing of boards in the room's coordinates; its box is the boards'."""
    low, high = np.min([board[0] for board in boards], 0), np.max([board[1] for board in boards], 0)
    box = Box(np.array([*(low + high)[:2] / 2, low[2]]), 0.0, high - low)
    return Piece(name, kind, box, as_options([(a - box.position, b - box.position) for a, b in boards]))
