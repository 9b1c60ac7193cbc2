"""The guides "add an object type" and "add a room type", followed."""

import shutil

import pytest
from guides import ROOT, follow, run_in

pytestmark = pytest.mark.slow

JEWELRY_BOXES = """
from scrubjay import World, make_room
from scrubjay.rooms.catalog import shape_of

rooms = [make_room(f"bedroom-{seed}") for seed in range(6)]
boxes = [(room, thing) for room in rooms for thing in room.of_type("JewelryBox")]
assert boxes, "no bedroom has one"
room, thing = boxes[0]
shape = shape_of(thing, room)
assert shape.openable and shape.spaces and thing.style["wood"]
with World([room.scene], size=56) as world:
    compiled = world.rooms[0]
    number = [compiled.room.things[openable.thing].type for openable in compiled.openables].index("JewelryBox")
    closed = world.view(("rgb",)).rgb.clone()
    world.state.open[0, number] = True
    assert world.view(("rgb",)).rgb.shape == closed.shape == (1, 56, 56, 3)
print(len(boxes))
"""
CELLARS = """
import numpy as np
from scrubjay import World, make_room
from scrubjay.rooms.generate import type_of
from scrubjay.web.schemas import SEEDED_SCENE

rooms = [make_room(f"cellar-{seed}") for seed in range(4)]
assert len({room.outline for room in rooms}) == 4 and make_room("cellar-2") == rooms[2]
assert all(len(room.of_type("Drawer")) >= 3 and room.of_type("ShelvingUnit") for room in rooms)
assert type_of("cellar-7") == "cellar" and SEEDED_SCENE.fullmatch("cellar-7")
with World(["cellar-0", "cellar-1"], size=56) as world:
    assert (world.view(("ids",)).ids >= 0).any() and world.move(np.array([0, 0])).shape == (2,)
"""


def test_an_object_type_is_added_as_the_guide_says(tmp_path):
    assert len(follow("add_an_object_type.md", tmp_path)) == 2
    assert int(run_in(tmp_path, "-c", JEWELRY_BOXES)) >= 1
    run_in(tmp_path, "-m", "scrubjay", "room", "bedroom-0", "--out", str(tmp_path / "room.html"))
    assert "JewelryBox" in (tmp_path / "room.html").read_text()


def test_a_new_object_type_passes_the_tests_of_the_catalog(tmp_path):
    """The tests that the guide names."""
    follow("add_an_object_type.md", tmp_path)
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    output = run_in(
        tmp_path,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/rooms/test_catalog.py",
        "-k",
        "JewelryBox or marked",
    )
    assert "7 passed" in output


def test_a_room_type_is_added_as_the_guide_says(tmp_path):
    assert len(follow("add_a_room_type.md", tmp_path)) == 2
    run_in(tmp_path, "-c", CELLARS)
    sheet = tmp_path / "cellars.png"
    run_in(tmp_path, "-m", "scrubjay", "rooms", "cellar-1", "cellar-2", "--out", str(sheet), "--size", "64")
    assert sheet.stat().st_size > 1000
