"""No two things share space, unless AI2-THOR's own boxes do."""

from itertools import combinations

import mujoco
import numpy as np
import pytest

from scrubjay.rooms.ithor import ITHOR_SCENES, ithor_room, objects
from scrubjay.rooms.ithor.boxes import bounds
from scrubjay.sim.compile import SOLID, CompiledRoom, compile_room

DEEP = 0.025
"""Meters by which solids may share space: a shelf's board lies under its box, a window protrudes from its wall."""
SHELL = ("Floor", "Wall", "Ceiling")
SOME = (1, 28, 210, 305, 407)


def depths(compiled: CompiledRoom) -> dict[tuple[int, int], float]:
    """How deep the solids of two things are in each other, for those that are."""
    model = compiled.model
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    solid = np.flatnonzero((model.geom_group == SOLID) & (compiled.geom_thing < len(compiled.room.things)))
    half = np.einsum("nij,nj->ni", np.abs(data.geom_xmat[solid].reshape(-1, 3, 3)), model.geom_aabb[solid, 3:])
    low, high = data.geom_xpos[solid] - half, data.geom_xpos[solid] + half
    found: dict[tuple[int, int], float] = {}
    near = ((low[:, None] < high - DEEP) & (high[:, None] > low + DEEP)).all(-1)
    for a, b in np.argwhere(np.triu(near, 1)):
        pair = tuple(sorted((int(compiled.geom_thing[solid[a]]), int(compiled.geom_thing[solid[b]]))))
        if pair[0] != pair[1]:
            deep = -mujoco.mj_geomDistance(model, data, solid[a], solid[b], 0.0, None)
            found[pair] = max(found.get(pair, 0.0), deep)
    return {pair: deep for pair, deep in found.items() if deep > DEEP}


def overlapping(scene: str) -> list[tuple[str, str, float]]:
    """Pairs of things that share space although their boxes in the table do not."""
    compiled = compile_room(ithor_room(scene, goals=True))
    boxes = {record["name"]: bounds(record) for record in objects(scene)}
    allowed = {
        frozenset((a, b))
        for a, b in combinations(boxes, 2)
        if (boxes[a][0] < boxes[b][1]).all() and (boxes[a][1] > boxes[b][0]).all()
    }
    things, wrong = compiled.room.things, []
    for (i, j), deep in depths(compiled).items():
        a, b = things[i], things[j]
        if a.type not in SHELL and b.type not in SHELL and frozenset((a.name, b.name)) not in allowed:
            wrong.append((a.name, b.name, round(deep, 3)))
    return wrong


@pytest.mark.parametrize("number", SOME)
def test_things_overlap_only_where_the_table_lets_them(number):
    assert overlapping(f"iTHOR:FloorPlan{number}") == []


@pytest.mark.slow
@pytest.mark.parametrize("scene", ITHOR_SCENES)
def test_nothing_overlaps_in_any_room(scene):
    assert overlapping(scene) == []
