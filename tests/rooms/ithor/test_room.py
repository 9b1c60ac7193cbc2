"""Rooms from the table: every object is there, where the table has it."""

import numpy as np
import pytest

from scrubjay.rooms.generate import check_scene, make_room, split_of, type_of
from scrubjay.rooms.ithor import floor_height, ithor_room, objects
from scrubjay.rooms.ithor.boxes import bounds
from scrubjay.rooms.room import GOALS

SOME = ("iTHOR:FloorPlan3", "iTHOR:FloorPlan28", "iTHOR:FloorPlan210", "iTHOR:FloorPlan301", "iTHOR:FloorPlan423")


@pytest.mark.parametrize("scene", SOME)
def test_every_object_is_a_thing_of_its_name(scene):
    records = {record["name"]: record for record in objects(scene)}
    things = {thing.name: thing for thing in ithor_room(scene, goals=True).things}
    assert set(records) <= set(things)
    for name, record in records.items():
        assert things[name].type == record["objectType"]


def test_goals_are_left_out_of_the_game():
    with_goals, without = ithor_room("FloorPlan28", goals=True), make_room("iTHOR:FloorPlan28")
    assert {thing.type for thing in with_goals.of_type(*GOALS)} == {"Bread", "Cup", "Knife", "Tomato"}
    assert not without.of_type(*GOALS)
    assert {thing.name for thing in with_goals.things} - {thing.name for thing in without.things} == {
        thing.name for thing in with_goals.of_type(*GOALS)
    }


def test_a_room_is_the_same_each_time():
    assert make_room(SOME[1]).digest == make_room(SOME[1]).digest
    assert ithor_room(SOME[1], goals=True).digest != make_room(SOME[1]).digest


def test_names_are_scenes_like_others():
    check_scene(SOME[1])
    assert type_of(SOME[1]) == "kitchen" and type_of("iTHOR:FloorPlan423") == "bathroom"
    assert split_of(SOME[1]) == "other" and make_room(SOME[1]).scene == SOME[1]


@pytest.mark.parametrize("scene", SOME)
def test_openables_keep_their_order_and_come_before_what_they_hold(scene):
    """Compiling attaches what lies in a drawer to the drawer, which must be there by then."""
    openables = {record["name"] for record in objects(scene) if record["openable"]}
    room = ithor_room(scene, goals=True)
    names = [thing.name for thing in room.things]
    assert [name for name in names if name in openables] == [r["name"] for r in objects(scene) if r["openable"]]
    for thing in room.things:
        if thing.inside and thing.name not in openables:
            assert names.index(thing.inside) < names.index(thing.name)


@pytest.mark.parametrize("scene", SOME)
def test_small_things_are_where_the_table_has_them(scene):
    """The axis-aligned box of each thing that can be picked up is the table's, to the centimeter."""
    records = objects(scene)
    things = {thing.name: thing for thing in ithor_room(scene, goals=True).things}
    floor = np.array([0, 0, floor_height(scene)])
    for record in records:
        if record["pickupable"] and record["objectType"] not in ("Laptop", "Box", "Book"):
            low, high = bounds(record)
            thing = things[record["name"]]
            middle = np.array(thing.position) + [0, 0, thing.size[2] / 2] + floor
            assert np.abs(middle - (low + high) / 2).max() < 0.02, record["name"]
