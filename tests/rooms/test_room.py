"""Rooms as data: what is saved is what is loaded, and what is wrong is said."""

import json

import pytest

from scrubjay.errors import RoomError
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Room, Thing, load_room, save_room


def small_room(**changes) -> Room:
    given = dict(
        scene="hut", type="foyer", outline=((-2, -2), (2, -2), (2, 2), (-2, 2)), height=2.5, things=(), lamps=()
    )
    return Room(**{**given, **changes})


def test_a_saved_room_is_the_same_room(tmp_path):
    room = make_room("FloorPlan501")
    save_room(room, tmp_path / "room.json")
    assert load_room(tmp_path / "room.json") == room


def test_bounds_and_types():
    room = small_room(outline=((0, 0), (4, 0), (4, 3), (0, 3)), things=(Thing("a", "Box", (1, 1, 0), 0, (1, 1, 1)),))
    assert room.bounds == (0, 0, 4, 3)
    assert [thing.name for thing in room.of_type("Box")] == ["a"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (dict(type="garage"), "unknown room type 'garage'"),
        (dict(outline=((0, 0), (1, 1))), "at least four corners"),
        (dict(things=(Thing("a", "Box", (0, 0, 0), 0, (1, 1, 1)),) * 2), "two things have one name"),
        (dict(things=(Thing("a", "Box", (0, 0, 0), 0, (1, 0, 1)),)), "sizes above 0"),
        (dict(things=(Thing("a", "Box", (0, 0, 0), 0, (1, 1, 1), inside="b"),)), "which is not in the room"),
    ],
)
def test_a_room_that_contradicts_itself_is_refused(change, said):
    with pytest.raises(RoomError, match=said):
        small_room(**change)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "not a room file"),
        ("[]", "not a room file of format 1"),
        ('{"format": 99}', "not a room file of format 1"),
        ('{"format": 1, "scene": "x"}', "broken room file"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, content, said):
    path = tmp_path / "room.json"
    path.write_text(content)
    with pytest.raises(RoomError, match=said):
        load_room(path)


def test_unknown_fields_in_a_file_are_named(tmp_path):
    path = tmp_path / "room.json"
    save_room(make_room("FloorPlan502"), path)
    data = json.loads(path.read_text())
    data["things"][3]["color"] = "red"
    path.write_text(json.dumps(data))
    with pytest.raises(RoomError, match=r"unknown thing fields \['color'\]"):
        load_room(path)


def test_a_missing_file_is_a_room_error(tmp_path):
    with pytest.raises(RoomError, match="not a room file"):
        load_room(tmp_path / "nowhere.json")
