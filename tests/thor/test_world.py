"""AI2-THOR's words in ours: colors, normals, positions, objects; and what a world on AI2-THOR refuses."""

import sys

import numpy as np
import pytest

from scrubjay.errors import RoomError, ThorError
from scrubjay.rooms import ithor
from scrubjay.rooms.catalog import shape_of
from scrubjay.rooms.floor import GRID
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import cameras
from scrubjay.thor.remote import ids_of_colors, normals_in_room
from scrubjay.thor.remote_room import RemoteFloor, remote_room
from scrubjay.thor.world import ThorWorld

BOUNDS = {"center": {"x": 0.0, "y": 1.25, "z": 0.0}, "size": {"x": 6.0, "y": 2.5, "z": 6.0}}
SQUARE = np.array([[0.0, 0.0], [0.25, 0.0], [0.0, 0.25], [0.25, 0.25]])


def make_floor(points: np.ndarray = SQUARE) -> tuple[RemoteFloor, list]:
    """A floor of these positions, and what it asked for."""
    asked: list = []

    def positions(start: np.ndarray, angle: float) -> np.ndarray:
        asked.append((start.tolist(), angle))
        return points

    return RemoteFloor(positions), asked


def make_kitchen():
    records = ithor.objects("FloorPlan28")
    return records, remote_room("FloorPlan28", records, BOUNDS, lambda start, angle: SQUARE)


def test_colors_become_ids_and_unknown_colors_walls():
    frame = np.array([[[0, 0, 7], [255, 0, 0]], [[1, 2, 3], [9, 9, 9]]], np.uint8)
    ids = ids_of_colors(frame, [(255, 0, 0), (1, 2, 3), (0, 0, 7)], np.array([4, 5, 6]))
    assert ids.tolist() == [[6, 4], [5, 1]] and ids.dtype == np.int16


def test_normals_turn_from_the_cameras_axes_to_the_rooms():
    """Seen by an agent that looks east and 30 degrees down: what faces the camera faces west and 30 degrees up."""
    _, matrix = cameras(np.zeros(2), np.array(90.0), np.array(True))
    frame = np.array([[[128, 128, 255], [255, 128, 128]]], np.uint8)
    facing, right = normals_in_room(frame, matrix)[0]
    assert facing == pytest.approx([-np.cos(np.pi / 6), 0, np.sin(np.pi / 6)], abs=0.01)
    assert right == pytest.approx([0, -1, 0], abs=0.01), "the camera's right is south"


def test_reachable_positions_become_a_grid_whose_neighbors_are_connected():
    floor, asked = make_floor(np.array([[0.5, 1.0], [0.75, 1.0], [0.75, 1.25], [1.25, 1.25]]))
    grid = floor.reachable()
    assert grid.positions.tolist() == [[0.5, 1.0], [0.75, 1.0], [0.75, 1.25], [1.25, 1.25]]
    assert grid.neighbors().max(1).tolist() == [1, 2, 1, -1] and grid.graph.nnz == 2, "the last has no neighbor"
    assert np.isnan(asked[0][0]).all(), "from where the agent is"


def test_positions_that_are_a_little_off_the_grid_are_on_it():
    floor, _ = make_floor(SQUARE + 1e-5)
    assert floor.reachable().positions.tolist() == [[0.0, 0.0], [0.0, 0.25], [0.25, 0.0], [0.25, 0.25]]


def test_a_grid_with_another_start_is_not_asked_for_again():
    floor, asked = make_floor()
    again = floor.grid((0.25, 0.25))
    assert len(again) == 4 and again.positions[again.index((0.0, 0.0))].tolist() == [0.0, 0.0]
    assert len(asked) == 1


def test_a_turned_grid_is_asked_for_once():
    """Turned by 90 - 30 degrees, one step north is half a step east and 0.87 steps north."""
    step = GRID * np.array([np.sin(np.radians(30)), np.cos(np.radians(30))])
    floor, asked = make_floor(np.array([[1.0, 1.0], [1.0, 1.0] + step]))
    for _ in range(2):
        grid = floor.grid((1.0, 1.0), 30.0)
    assert grid.cells.tolist() == [[0, 0], [0, 1]] and grid.positions[1] == pytest.approx([1, 1] + step)
    assert asked == [([1.0, 1.0], 30.0)]


def test_a_start_that_cannot_be_reached_is_refused():
    floor, _ = make_floor()
    with pytest.raises(ValueError, match=r"no body can stand at \(9.00, 9.00\)"):
        floor.grid((9.0, 9.0))


def test_a_room_has_the_objects_and_openables_of_its_metadata_but_for_the_goals():
    records, room = make_kitchen()
    listed = {record["name"] for record in records if record["objectType"] not in GOALS}
    assert set(room.things) == {*listed, "Wall", "Ceiling", *GOALS}
    assert room.things[-len(GOALS) :] == GOALS and len(room.objects) == len(room.things) - len(GOALS)
    opening = {record["name"] for record in records if record["openable"]}
    assert {room.things[openable.thing] for openable in room.openables} == opening
    assert len(room.parts) == len(opening) and all(part.shape[1] == 6 for part in room.parts)


@pytest.mark.parametrize("scene", ["FloorPlan3", "FloorPlan203", "FloorPlan312", "FloorPlan425"])
def test_what_opens_in_our_room_is_what_opens_in_ai2thors(scene):
    """In the same order, so that numbers of openables mean the same."""
    remote = remote_room(scene, ithor.objects(scene), BOUNDS, lambda start, angle: SQUARE)
    room = make_room(f"iTHOR:{scene}")
    own = [thing.name for thing in room.things if shape_of(thing, room).moving]
    assert [remote.things[openable.thing] for openable in remote.openables] == own


def test_ids_are_the_places_in_the_list_of_things():
    records, room = make_kitchen()
    apple = next(record for record in records if record["objectType"] == "Apple")
    tomato = room.goals["Tomato"]
    apple_id, wall, tomato_id, unknown = room.id_of([apple["objectId"], "Wall", tomato, "SomeMesh"]).tolist()
    assert room.things[apple_id] == apple["name"] and room.things[wall] == "Wall" and unknown == wall
    assert room.things[tomato_id] == "Tomato"


def test_a_goal_that_the_room_does_not_have_is_named():
    _, room = make_kitchen()
    assert room.goal("Cup").startswith("Cup|")
    with pytest.raises(ThorError, match="iTHOR:FloorPlan28 has no Plunger on AI2-THOR; it has Bread, Cup, Knife, Tom"):
        room.goal("Plunger")


def test_things_lie_in_what_has_space_inside():
    """A fridge's space ends below its top; a counter has things on it."""
    records, room = make_kitchen()
    tops = {record["objectType"]: room.tops.get(record["objectId"]) for record in records}
    boxes = {record["objectType"]: record["axisAlignedBoundingBox"] for record in records}
    fridge = boxes["Fridge"]["center"]["y"] + boxes["Fridge"]["size"]["y"] / 2
    assert fridge - 0.3 < tops["Fridge"] < fridge and tops["Drawer"] and tops["CounterTop"] is None


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(rooms=["FloorPlan501"]), RoomError, "unknown scene 'FloorPlan501'; iTHOR's rooms are"),
        (dict(rooms=[]), ValueError, "at least one room"),
        (dict(rooms=["FloorPlan28"], size=100), ValueError, "multiple of 7"),
    ],
)
def test_what_makes_no_world_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        ThorWorld(**arguments)


def test_without_the_client_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ai2thor.controller", None)
    with pytest.raises(ThorError, match=r"pip install 'scrubjay\[thor-client\]'"):
        ThorWorld(["FloorPlan28"])


@pytest.mark.slow  # The client is installed first.
def test_an_engine_that_does_not_start_is_one_sentence(real_client, tmp_path):
    missing = tmp_path / "nothing"
    with pytest.raises(ThorError, match="AI2-THOR did not start"):
        ThorWorld(["FloorPlan28"], executable=str(missing))
