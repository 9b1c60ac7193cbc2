"""Foyers by request: every table takes every receptacle and rows of books, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from scrubjay.errors import RoomError
from scrubjay.rooms import catalog
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.generate.foyer import BOOK, RECEPTACLES, TABLES, support_of, table_of
from scrubjay.rooms.generate.foyer_scene import (
    FOYERS,
    MIN_DEPTH,
    BookRow,
    FoyerRequest,
    Receptacle,
    free_range,
    make_foyer,
    with_table,
)
from scrubjay.sim.compile import compile_room
from tests.rooms.test_generate import overlapping_boxes, overlapping_solids


def of_table(room):
    """Names of the table and what is in or on it."""
    table = table_of(room).name
    return {thing.name for thing in room.things if table in (thing.name, thing.inside)}


@pytest.mark.parametrize("foyer", FOYERS)
def test_a_foyer_takes_every_table_and_nothing_else_changes(foyer):
    room = make_room(foyer)
    for number, table in enumerate(TABLES):
        request = FoyerRequest(foyer, table, Receptacle(list(RECEPTACLES)[number], yaw=20.0 * number))
        made = make_foyer(request)
        assert table_of(made).type == table and table_of(made).size[1] >= MIN_DEPTH
        assert [t for t in made.things if t.name not in of_table(made)] == [
            t for t in room.things if t.name not in of_table(room)
        ]
        assert make_foyer(request) == made, "the same request is the same room"
        assert overlapping_boxes(made) == []
        # Its back stays where the foyer's own table has it.
        back = [np.dot(t.position[:2], facing_vector(t.yaw)) - t.size[1] / 2 for t in map(table_of, (room, made))]
        assert back[0] == pytest.approx(back[1], abs=0.001)


def test_every_receptacle_fits_on_every_table():
    for table in TABLES:
        for kind in RECEPTACLES:
            assert overlapping_boxes(make_foyer(FoyerRequest("FloorPlan502", table, Receptacle(kind)))) == []


@pytest.mark.parametrize("foyer, table, kind", list(zip(FOYERS, TABLES, RECEPTACLES, strict=True)))
def test_a_receptacle_stands_on_the_table_where_one_in_front_of_it_wants_it(foyer, table, kind):
    room = make_foyer(FoyerRequest(foyer, table, Receptacle(kind, aside=0.1, toward=0.03, yaw=15.0)))
    compiled = compile_room(room)
    assert overlapping_solids(compiled) == []
    thing, top = room.things[-1], table_of(room)
    middle = np.asarray(top.position) + [0, 0, support_of(top).position[2]]
    facing = top.yaw + 180
    away = np.asarray(thing.position) - middle
    assert away[:2] @ right_vector(facing) == pytest.approx(0.1, abs=0.001)
    assert away[:2] @ facing_vector(facing) == pytest.approx(-0.03, abs=0.001)
    assert away[2] == pytest.approx(0.0005, abs=1e-4), "nothing has to settle"
    assert catalog.shape_of(thing, room).spaces and not catalog.shape_of(thing, room).moving, "it has no lid"


def test_books_stand_in_a_row_that_is_turned_about_its_middle():
    row = BookRow(4, front=0.1, yaw=12.0)
    room = make_foyer(FoyerRequest("FloorPlan503", "DiningTable", row))
    assert overlapping_solids(compile_room(room)) == []
    table, books = table_of(room), room.things[-4:]
    ahead, right = facing_vector(table.yaw + 180), right_vector(table.yaw + 180)
    front = np.dot(table.position[:2], ahead) - support_of(table).size[1] / 2
    along = np.array([np.dot(book.position[:2], right) for book in books])
    deep = np.array([np.dot(book.position[:2], ahead) for book in books])
    assert (np.diff(along) > 0).all()
    # Clockwise from above: the right end is nearer, by the tangent of the angle.
    assert np.diff(deep) == pytest.approx(-np.tan(np.radians(12)) * np.diff(along), abs=0.001)
    turn = np.radians(12)
    reach = (BOOK[1] * np.sin(turn) + BOOK[0] * np.cos(turn)) / 2
    assert deep.min() - reach - front == pytest.approx(0.1, abs=0.002)


def test_the_range_of_a_receptacle_ends_where_it_no_longer_fits():
    for table in TABLES:
        base = with_table(make_room("FloorPlan501"), table)
        low, high = free_range(base, "Box", 30.0)
        for aside, toward in (low, high):
            make_foyer(FoyerRequest("FloorPlan501", table, Receptacle("Box", aside, toward, 30.0)))
        with pytest.raises(RoomError, match="does not fit on the"):
            make_foyer(FoyerRequest("FloorPlan501", table, Receptacle("Box", high[0] + 0.01, 0.0, 30.0)))
    with pytest.raises(RoomError, match="Book_occluder_1 does not fit on the SideTable"):
        make_foyer(FoyerRequest("FloorPlan501", "SideTable", BookRow(6)))


def test_what_does_not_exist_is_one_sentence():
    for request, words in (
        (lambda: FoyerRequest("FloorPlan1", "Desk"), "FloorPlan1 is no foyer; choose one of FloorPlan501"),
        (lambda: FoyerRequest("FloorPlan999", "Desk"), "unknown scene 'FloorPlan999'"),
        (lambda: FoyerRequest("FloorPlan501", "Bench"), "unknown table 'Bench'; choose one of DiningTable"),
        (lambda: Receptacle("Bath"), "unknown receptacle 'Bath'; choose one of Bowl"),
        (lambda: make_foyer(FoyerRequest("FloorPlan501", "Desk", BookRow(0))), "at least one book, not 0"),
        (lambda: with_table(make_room("FloorPlan1"), "Desk"), "not a foyer"),
    ):
        with pytest.raises(RoomError, match=words):
            request()
