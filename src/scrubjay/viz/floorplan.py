"""A room from above: furniture, the reachable grid, numbered openables, and paths and markers on top."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFont

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import Grid, frame
from scrubjay.rooms.room import Thing
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.palette import FURNITURE, GREEN, INK, OPENABLE, OUTLINE, PAPER, RED, UNREACHABLE

MARGIN = 0.2
"""Meters around the room; `web/static/plan.js` knows it too."""
SUPERSAMPLING = 3
NOT_DRAWN = ("Floor", "Wall", "Ceiling", "Rug", "CeilingLamp")
LABEL_SIZE = 10
"""Font size of the openables' numbers, in pixels of the picture."""

Box = tuple[float, float, float, float]


class FloorPlan:
    """A drawing of a room, north up. Coordinates are the room's, in meters; sizes are in pixels of the picture."""

    def __init__(
        self,
        compiled: CompiledRoom,
        grid: Grid,
        size: int = 560,
        reachable: Sequence[bool] | None = None,
        numbered: bool = True,
    ) -> None:
        """`size` is the longer edge in pixels. Openables that are not `reachable` are red."""
        self.compiled = compiled
        self.labels: list[Box] = []
        """Where the openables' numbers are, in pixels of the supersampled picture."""
        west, south, east, north = compiled.room.bounds
        self._scale = SUPERSAMPLING * size / (max(east - west, north - south) + 2 * MARGIN)
        self._origin = west - MARGIN, north + MARGIN
        width, height = (int(self._scale * (length + 2 * MARGIN)) for length in (east - west, north - south))
        self._image = Image.new("RGB", (width, height), PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self._draw.polygon(self._pixels(compiled.room.outline), outline=INK, fill="white", width=3 * SUPERSAMPLING)
        self._draw_things(reachable)
        for x, y in self._pixels(grid.positions):
            self._disc(x, y, 1.8, GREEN)
        if numbered:
            self._draw_numbers()

    @property
    def picture(self) -> np.ndarray:
        """(H, W, 3) uint8."""
        return self.picture_at(1)

    def picture_at(self, ratio: float) -> np.ndarray:
        """The picture, sharper: `ratio` times as wide and high."""
        width, height = (int(length * ratio / SUPERSAMPLING) for length in self._image.size)
        return np.asarray(self._image.resize((width, height), Image.Resampling.LANCZOS))

    def path(self, poses: Sequence[AgentPose], color: str = RED) -> None:
        """Draws the line through poses, and the agent at its end."""
        if len(poses) > 1:
            line = self._pixels([pose[:2] for pose in poses])
            self._draw.line(line, fill=color, width=2 * SUPERSAMPLING, joint="curve")
        if len(poses):
            here = np.array(poses[-1][:2])
            facing = self._pixels([here, here + 0.3 * facing_vector(poses[-1].rotation)])
            self._draw.line(facing, fill=color, width=3 * SUPERSAMPLING)
            self._disc(*facing[0], 5, color)

    def dotted(self, start: AgentPose, end: AgentPose, color: str) -> None:
        """Draws a dotted straight line, for a jump."""
        ends = np.array(self._pixels([start[:2], end[:2]]))
        count = max(2, int(np.linalg.norm(ends[1] - ends[0]) / (9 * SUPERSAMPLING)))
        for x, y in np.linspace(ends[0], ends[1], count):
            self._disc(x, y, 1.2, color)

    def ring(self, pose: AgentPose, color: str) -> None:
        """Marks a pose with a ring and a line where it faces."""
        here, unit = np.array(pose[:2]), SUPERSAMPLING
        (x, y), (ahead_x, ahead_y) = self._pixels([here, here + 0.3 * facing_vector(pose.rotation)])
        self._draw.ellipse([x - 6 * unit, y - 6 * unit, x + 6 * unit, y + 6 * unit], outline=color, width=2 * unit)
        self._draw.line([(x, y), (ahead_x, ahead_y)], fill=color, width=2 * unit)

    def square(self, pose: AgentPose, color: str = INK) -> None:
        """Marks where a player started."""
        (x, y), unit = self._pixels([pose[:2]])[0], SUPERSAMPLING
        self._draw.rectangle([x - 6 * unit, y - 6 * unit, x + 6 * unit, y + 6 * unit], outline=color, width=2 * unit)

    def shade(self, values: np.ndarray, color: str) -> None:
        """Colors the room: `values` (h, w) from 0 to 1, north up, cover the picture; 1 is the full color."""
        size = self._image.size
        alpha = Image.fromarray((255 * values.clip(0, 1)).astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)
        inside = Image.new("L", size)
        ImageDraw.Draw(inside).polygon(self._pixels(self.compiled.room.outline), fill=255)
        self._image.paste(color, (0, 0, *size), ImageChops.multiply(alpha, inside))

    def dot(self, pose: AgentPose, color: str) -> None:
        """Marks a position."""
        self._disc(*self._pixels([pose[:2]])[0], 3, color)

    def diamond(self, x: float, y: float, color: str, half: int = 8, outline: str = "white") -> None:
        """Marks where an object lies."""
        (x, y), half = self._pixels([(x, y)])[0], half * SUPERSAMPLING
        corners = [(x, y - half), (x + half, y), (x, y + half), (x - half, y)]
        self._draw.polygon(corners, fill=color, outline=outline, width=SUPERSAMPLING)

    def _pixels(self, points) -> list[tuple[float, float]]:
        west, north = self._origin
        return [((x - west) * self._scale, (north - y) * self._scale) for x, y in points]

    def _disc(self, x: float, y: float, radius: float, color: str) -> None:
        radius *= SUPERSAMPLING
        self._draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=color)

    def _draw_things(self, reachable: Sequence[bool] | None) -> None:
        numbers = {openable.thing: number for number, openable in enumerate(self.compiled.openables)}
        things = self.compiled.room.things
        # Low things first: what stands on a table is drawn over it.
        for index in sorted(range(len(things)), key=lambda i: things[i].position[2]):
            if things[index].type in NOT_DRAWN:
                continue
            fill = FURNITURE
            if index in numbers:
                fill = OPENABLE if reachable is None or reachable[numbers[index]] else UNREACHABLE
            corners = self._pixels(footprint(things[index])[:, :2])
            self._draw.polygon(corners, fill=fill, outline=OUTLINE, width=SUPERSAMPLING)

    def _draw_numbers(self) -> None:
        """Numbers the openables. Drawers and cabinets are stacked: a number moves aside where another one stands."""
        font = ImageFont.load_default(size=LABEL_SIZE * SUPERSAMPLING)
        taken: list[Box] = []
        for number, openable in enumerate(self.compiled.openables):
            (x, y) = self._pixels([self.compiled.room.things[openable.thing].position[:2]])[0]
            left, top, right, bottom = font.getbbox(str(number))
            width, height = right - left + 6 * SUPERSAMPLING, bottom - top + 6 * SUPERSAMPLING
            x, y = self._free_position(x, y, width, height, taken)
            taken.append(_box(x, y, width, height))
            self._draw.text(
                (x, y), str(number), fill=INK, font=font, anchor="mm", stroke_width=2 * SUPERSAMPLING, stroke_fill=PAPER
            )
        self.labels = taken

    def _free_position(self, x: float, y: float, width: float, height: float, taken: list[Box]) -> tuple[float, float]:
        """The nearest of the label's positions around (x, y) that overlaps no other label and is in the picture."""
        shifts = [(i * width * 0.55, j * height * 0.55) for i in range(-9, 10) for j in range(-9, 10)]
        for dx, dy in sorted(shifts, key=lambda shift: np.hypot(*shift)):
            box = _box(x + dx, y + dy, width, height)
            inside = min(box) >= 0 and box[2] <= self._image.width and box[3] <= self._image.height
            if inside and not any(_overlap(box, other) for other in taken):
                return x + dx, y + dy
        return x, y


def draw_floorplan(
    compiled: CompiledRoom,
    grid: Grid,
    path: Sequence[AgentPose] = (),
    reachable: Sequence[bool] | None = None,
    size: int = 560,
) -> np.ndarray:
    """The plan (H, W, 3) uint8 with one path on it."""
    plan = FloorPlan(compiled, grid, size, reachable)
    plan.path(path)
    return plan.picture


def plan_fraction(compiled: CompiledRoom, x: float, y: float) -> tuple[float, float]:
    """Where on a room's plan a point is: fractions of its width from the left, and of its height from the top."""
    west, south, east, north = compiled.room.bounds
    return (x - west + MARGIN) / (east - west + 2 * MARGIN), (north + MARGIN - y) / (north - south + 2 * MARGIN)


def footprint(thing: Thing) -> np.ndarray:
    """The corners (4, 3) of a thing's underside, in the room."""
    position, turn = frame(thing)
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * np.array(thing.size) / 2
    return corners @ turn.T + position


def _box(x: float, y: float, width: float, height: float) -> Box:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
