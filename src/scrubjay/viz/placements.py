"""A page of placements: what the agent sees before and after, with the target's cell framed."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from scrubjay.game.actions import MODALITIES
from scrubjay.placements.placements import Placement, Placements
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.world import World
from scrubjay.viz.page import Figure, Section, write_page
from scrubjay.viz.picture import tile_pictures

SAMPLES = 6
"""Placements drawn of each modality."""
FRAME = (255, 0, 160)


def write_placements_page(
    placements: Sequence[Placements], path: str | os.PathLike[str], renderer: str = "auto"
) -> None:
    """Draws some placements of each room, goal object and modality."""
    sections = []
    for of_room in placements:
        room = build_room(of_room.scene)
        with World([room], renderer=renderer) as world:
            for name, some in zip(MODALITIES, of_room.by_modality(), strict=True):
                drawn = [some[index] for index in np.linspace(0, len(some) - 1, min(SAMPLES, len(some))).astype(int)]
                figures = [Figure(_draw(world, of_room.goal, one), _describe(room, one)) for one in drawn]
                text = f"{len(some)} placements. Before, after, and the object alone; the target's cell is framed."
                sections.append(Section(f"{of_room.goal} in {of_room.scene}, {name}", text, figures))
    count = sum(len(of_room.placements) for of_room in placements)
    write_page(path, "Plausible placements", f"{count} placements in {len(placements)} files.", sections)


def _draw(world: World, goal: str, placement: Placement) -> np.ndarray:
    """Three views side by side."""
    state = world.state
    place = placement.place
    state.position[0], state.rotation[0], state.standing[0] = place[:2], place.rotation, place.standing
    state.open[0] = False
    state.goal[0], state.held[0] = -1, False
    world.hold(np.array([GOALS.index(goal)]))
    before = world.view().rgb[0].cpu().numpy()
    state.open[0, list(placement.open)] = True
    state.pose[0], state.held[0] = placement.pose, False
    after = world.view().rgb[0].cpu().numpy()
    _, alone = world.goal_pixels()
    mask = np.repeat(alone[0].cpu().numpy()[..., None], 3, 2)
    return tile_pictures([_frame(p, placement.target) for p in (before, after, np.where(mask, 220, after // 3))], 3)


def _frame(picture: np.ndarray, target: tuple[int, int, int]) -> np.ndarray:
    """A copy with the target's cell framed."""
    framed, side = picture.astype(np.uint8).copy(), len(picture) // CELLS
    top, left = target[1] * side, target[2] * side
    inner = framed[top + 2 : top + side - 2, left + 2 : left + side - 2].copy()
    framed[top : top + side, left : left + side] = FRAME
    framed[top + 2 : top + side - 2, left + 2 : left + side - 2] = inner
    return framed


def _describe(room: CompiledRoom, placement: Placement) -> str:
    opened = [room.things[room.openables[number].thing] for number in placement.open]
    words = f"row {placement.target[1] + 1}, column {placement.target[2] + 1}, {len(placement.actions)} actions"
    return words + (f", opens {', '.join(opened)}" if opened else "")
