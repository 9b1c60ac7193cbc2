"""Pictures of rooms from above: nothing floats, and labels do not overlap."""

import itertools

import numpy as np
from helpers import hut

from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Thing
from scrubjay.sim.compile import compile_room
from scrubjay.viz.floorplan import FloorPlan
from scrubjay.viz.picture import _in_the_way
from scrubjay.viz.rooms import draw_tile

SOUTH_WEST = np.array([-0.6, -0.8])


def test_a_room_from_above_has_nothing_that_floats():
    """Seen from the south-west, what hangs on the south and west walls would float, and so would ceiling lamps."""
    things = (
        Thing("Window_0", "Window", (0.0, -1.97, 1.0), 0, (1.0, 0.06, 1.0)),
        Thing("Window_1", "Window", (0.0, 1.97, 1.0), 180, (1.0, 0.06, 1.0)),
        Thing("Painting_0", "Painting", (-1.97, 0.0, 1.4), 90, (0.5, 0.04, 0.5)),
        Thing("Cabinet_0", "Cabinet", (1.0, -1.8, 1.5), 0, (0.6, 0.35, 0.7)),
        Thing("Mug_0", "Mug", (1.0, -1.8, 1.52), 0, (0.1, 0.1, 0.1), inside="Cabinet_0"),
        Thing("Cabinet_1", "Cabinet", (1.0, -1.7, 0.0), 0, (0.6, 0.55, 0.85)),
        Thing("ShelvingUnit_0", "ShelvingUnit", (-1.0, -1.8, 0.0), 0, (0.9, 0.3, 1.6)),
        Thing("Shelf_0", "Shelf", (-1.0, -1.8, 0.4), 0, (0.86, 0.28, 0.3), inside="ShelvingUnit_0"),
        Thing("CeilingLamp_0", "CeilingLamp", (0.0, 0.0, 2.1), 0, (0.4, 0.4, 0.4)),
    )
    room = hut(*things)
    hidden = _in_the_way(room, SOUTH_WEST)
    left = [thing.name for thing, gone in zip(room.things, hidden, strict=True) if not gone]
    assert left == ["Floor", "Wall", "Window_1", "Cabinet_1", "ShelvingUnit_0", "Shelf_0"]


def test_walls_that_are_things_of_their_own_are_left_out_where_they_are_near():
    walls = [
        Thing(name, "Wall", (x, y, 0.0), 0, (abs(y) + 0.1, abs(x) + 0.1, 2.5))
        for name, x, y in (("south", 0.0, -2.0), ("west", -2.0, 0.0), ("north", 0.0, 2.0), ("east", 2.0, 0.0))
    ]
    room = hut(*walls)
    hidden = _in_the_way(room, SOUTH_WEST)
    assert {thing.name for thing, gone in zip(room.things, hidden, strict=True) if gone} == {"Ceiling", "south", "west"}


def test_a_tile_of_the_contact_sheet_is_a_labelled_picture():
    tile = draw_tile(compile_room(hut()), 64, "auto")
    assert tile.shape == (84, 64, 3)


def test_the_numbers_of_openables_do_not_overlap():
    """Not even where many drawers are stacked, on a plan of the size that pages have."""
    compiled = compile_room(make_room("FloorPlan1"))
    plan = FloorPlan(compiled, compiled.floor.reachable(), 500)
    assert len(plan.labels) == len(compiled.openables) > 12
    for a, b in itertools.combinations(plan.labels, 2):
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
