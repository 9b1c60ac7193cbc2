"""A room's plan from above: things, the reachable grid, openables, and the way somebody went."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import Grid, frame
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.viz.picture import INK, PAPER

THING, OPENABLE, FREE, WAY, CANNOT = (214, 207, 194), (240, 196, 128), (120, 170, 140), (200, 70, 60), (228, 130, 120)
SMOOTH = 2


def plan(
    compiled: CompiledRoom,
    grid: Grid,
    way: Sequence[AgentPose] = (),
    reachable: Sequence[bool] | None = None,
    size: int = 560,
) -> np.ndarray:
    """Draws the plan, north up. Openables are numbered; those marked not reachable are red."""
    west, south, east, north = compiled.room.bounds
    scale = SMOOTH * size / (max(east - west, north - south) + 0.4)
    width, height = (int(scale * (length + 0.4)) for length in (east - west, north - south))
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=11 * SMOOTH)

    def at(points) -> list[tuple[float, float]]:
        return [((x - west + 0.2) * scale, (north + 0.2 - y) * scale) for x, y in np.atleast_2d(points)]

    draw.polygon(at(compiled.room.outline), outline=INK, fill="white", width=3 * SMOOTH)
    numbers = {openable.thing: number for number, openable in enumerate(compiled.openables)}
    order = sorted(range(len(compiled.room.things)), key=lambda i: compiled.room.things[i].position[2])
    for index in order:
        thing = compiled.room.things[index]
        if thing.type in ("Floor", "Wall", "Ceiling", "Rug", "CeilingLamp"):
            continue
        position, turn = frame(thing)
        corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * np.array(thing.size) / 2
        fill = THING
        if index in numbers:
            fill = OPENABLE if reachable is None or reachable[numbers[index]] else CANNOT
        draw.polygon(at((corners @ turn.T + position)[:, :2]), fill=fill, outline=(150, 142, 128), width=SMOOTH)
    for x, y in at(grid.positions):
        draw.ellipse([x - 2 * SMOOTH, y - 2 * SMOOTH, x + 2 * SMOOTH, y + 2 * SMOOTH], fill=FREE)
    for index, number in numbers.items():
        x, y = at(compiled.room.things[index].position[:2])[0]
        draw.text((x, y), str(number), fill=INK, font=font, anchor="mm")
    if len(way) > 1:
        draw.line(at([(place.x, place.y) for place in way]), fill=WAY, width=2 * SMOOTH, joint="curve")
    for place in way[-1:]:
        here = np.array([place.x, place.y])
        draw.line(at([here, here + 0.3 * facing_vector(place.rotation)]), fill=WAY, width=3 * SMOOTH)
        x, y = at(here)[0]
        draw.ellipse([x - 5 * SMOOTH, y - 5 * SMOOTH, x + 5 * SMOOTH, y + 5 * SMOOTH], fill=WAY)
    return np.asarray(image.resize((width // SMOOTH, height // SMOOTH), Image.Resampling.LANCZOS))
