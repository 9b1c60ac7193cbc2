"""Rooms as data: saved and loaded unchanged; inconsistent rooms and broken files are refused."""

import json

import pytest

from scrubjay.errors import RoomError
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Room, Thing, load_room, save_room


def small_room(**changes) -> Room:
    defaults = dict(
        scene="hut", type="foyer", outline=((-2, -2), (2, -2), (2, 2), (-2, 2)), height=2.5, things=(), lamps=()
    )
    return Room(**{**defaults, **changes})


def test_a_saved_room_is_the_same_room(tmp_path):
    room = make_room("FloorPlan501")
    save_room(room, tmp_path / "room.json")
    assert load_room(tmp_path / "room.json") == room


def test_bounds_and_types():
    room = small_room(outline=((0, 0), (4, 0), (4, 3), (0, 3)), things=(Thing("a", "Box", (1, 1, 0), 0, (1, 1, 1)),))
    assert room.bounds == (0, 0, 4, 3)
    assert [thing.name for thing in room.of_type("Box")] == ["a"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(type="garage"), "unknown room type 'garage'"),
        (dict(outline=((0, 0), (1, 1))), "at least four corners"),
        (dict(things=(Thing("a", "Box", (0, 0, 0), 0, (1, 1, 1)),) * 2), "two things have the same name"),
        (dict(things=(Thing("a", "Box", (0, 0, 0), 0, (1, 0, 1)),)), "a positive size"),
        (dict(things=(Thing("a", "Box", (0, 0, 0), 0, (1, 1, 1), inside="b"),)), "which is not in the room"),
    ],
)
def test_a_room_that_contradicts_itself_is_refused(change, message):
    with pytest.raises(RoomError, match=message):
        small_room(**change)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "not a room file"),
        ("[]", "not a room file of format 1"),
        ('{"format": 99}', "not a room file of format 1"),
        ('{"format": 1, "scene": "x"}', "broken room file"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, content, message):
    path = tmp_path / "room.json"
    path.write_text(content)
    with pytest.raises(RoomError, match=message):
        load_room(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["things"][3].update(color="red"), r"things\.3\.color: unexpected"),
        (lambda data: data["things"][3].update(size=[1, 0, 1]), r"things\.3\.size\.1: .* greater than 0"),
        (lambda data: data["things"][3].update(size=[1, 1]), r"things\.3\.size\.2: field required"),
        (lambda data: data["things"][3].update(yaw="north"), r"things\.3\.yaw: .* number"),
        (lambda data: data["things"][3].update(yaw=float("nan")), r"things\.3\.yaw: .* finite"),
        (lambda data: data["things"][3].update(inside="Attic"), "inside 'Attic', which is not in the room"),
        (lambda data: data["lamps"][0].pop("color"), r"lamps\.0\.color: field required"),
        (lambda data: data.update(height=-1), "height: .* greater than 0"),
        (lambda data: data.update(type="garage"), "unknown room type 'garage'"),
        (lambda data: data.pop("things"), "things: field required"),
        (lambda data: data.update(outline=[[0, 0]]), "outline: .* at least 4 items"),
        (lambda data: data.update(owner="me"), "owner: unexpected"),
    ],
)
def test_a_wrong_field_in_a_file_is_named_in_one_sentence(tmp_path, change, message):
    path = tmp_path / "room.json"
    save_room(make_room("FloorPlan502"), path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(RoomError, match=f"a broken room file: .*{message}") as error:
        load_room(path)
    assert "\n" not in str(error.value)


def test_files_that_spell_color_the_old_way_are_read(tmp_path):
    room, path = make_room("FloorPlan502"), tmp_path / "room.json"
    save_room(room, path)
    assert '"colour"' not in path.read_text()
    path.write_text(path.read_text().replace('"color"', '"colour"'))
    assert load_room(path) == room


def test_a_missing_file_is_a_room_error(tmp_path):
    with pytest.raises(RoomError, match="not a room file"):
        load_room(tmp_path / "nowhere.json")
