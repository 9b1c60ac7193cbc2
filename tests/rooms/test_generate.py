"""Generated rooms: names, determinism, and soundness: nothing overlaps, openables can be reached and opened."""

from collections import Counter
from functools import cache

import mujoco
import numpy as np
import pytest

from scrubjay.errors import RoomError
from scrubjay.rooms.generate import SCENES, expand_scenes, foyer, generate, make_room, priors, split
from scrubjay.rooms.generate.layout import box_of
from scrubjay.rooms.room import GOALS, ROOM_TYPES
from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.compile import SOLID, compile_room

SCENE_SAMPLE = (
    "FloorPlan1",
    "FloorPlan21",
    "FloorPlan204",
    "FloorPlan310",
    "FloorPlan407",
    "FloorPlan502",
    "kitchen-81723",
    "bathroom-5",
)
OPENABLES = {"kitchen": 12, "living_room": 3, "bedroom": 7, "bathroom": 6, "foyer": 0}
POSITIONS = {"kitchen": 60, "living_room": 60, "bedroom": 60, "bathroom": 30, "foyer": 30}
HUNG = ("Towel", "HandTowel", "ToiletPaper")
"""They hang around a bar or ring, so the boxes overlap."""
TUCKED = ("Chair", "Stool")
"""They stand under tables: their boxes overlap, their solids do not."""


@cache
def built(scene):
    return compile_room(make_room(scene))


def nested(room, a, b):
    """Whether one of two things stands on or lies in the other."""
    inside = {thing.name: thing.inside for thing in room.things}

    def chain(name):
        return [name, *chain(inside[name])] if inside.get(name) else [name]

    return a in chain(b) or b in chain(a)


def overlapping_boxes(room, tolerance=0.005):
    things = room.things[3:]
    boxes = np.array([box_of(thing.position, thing.size, thing.yaw) for thing in things])
    low, high = boxes[:, :3], boxes[:, 3:]
    depth = (np.minimum(high[:, None], high) - np.maximum(low[:, None], low)).min(-1)
    pairs = [(things[i], things[j]) for i, j in np.argwhere(depth > tolerance) if i < j]
    return [
        (a.name, b.name) for a, b in pairs if not nested(room, a.name, b.name) and not {a.type, b.type} & set(TUCKED)
    ]


def overlapping_solids(compiled, tolerance=0.01):
    """Pairs of things whose solids penetrate by more than `tolerance` meters."""
    model, room = compiled.model, compiled.room
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    solids = np.flatnonzero((model.geom_group == SOLID) & (compiled.geom_thing < len(room.things)))
    owner = compiled.geom_thing[solids]
    size = model.geom_size[solids].copy()
    capsule = model.geom_type[solids] == mujoco.mjtGeom.mjGEOM_CAPSULE
    size[capsule] = np.column_stack([size[capsule, 0], size[capsule, 0], size[capsule, :2].sum(1)])
    half = np.einsum("nij,nj->ni", np.abs(data.geom_xmat[solids].reshape(-1, 3, 3)), size)
    low, high = data.geom_xpos[solids] - half, data.geom_xpos[solids] + half
    near = (np.minimum(high[:, None], high) - np.maximum(low[:, None], low) > tolerance).all(-1) & (
        owner[:, None] < owner
    )
    overlaps, line = [], np.zeros(6)
    for i, j in np.argwhere(near):
        a, b = room.things[owner[i]], room.things[owner[j]]
        if b.type in HUNG and b.inside == a.name:
            continue
        gap = mujoco.mj_geomDistance(model, data, int(solids[i]), int(solids[j]), 0.1, line)
        if gap < -tolerance:
            overlaps.append((a.name, b.name, round(gap, 3)))
    return overlaps


def assert_sound(scene):
    """Asserts all guarantees of a generated room."""
    compiled = built(scene)
    room = compiled.room
    kinds = Counter(thing.type for thing in room.things)
    assert [thing.name for thing in room.things[:3]] == ["Floor", "Wall", "Ceiling"]
    assert not set(kinds) & set(GOALS)
    assert len(room.lamps) == 3
    assert kinds["Doorway"] >= 1
    assert overlapping_boxes(room) == []
    assert overlapping_solids(compiled) == []
    assert compiled.visual_geoms <= 400
    assert len(compiled.openables) >= OPENABLES[room.type]
    grid = compiled.floor.reachable()
    assert len(grid) >= POSITIONS[room.type]
    opening_poses = find_opening_poses(compiled, grid)
    assert sum(map(bool, opening_poses)) >= 0.8 * len(opening_poses)


@pytest.mark.parametrize("scene", SCENE_SAMPLE)
def test_a_room_is_sound(scene):
    assert_sound(scene)


@pytest.mark.parametrize("scene", SCENES)
def test_every_fixed_room_is_sound(scene):
    assert_sound(scene)


def test_scenes_and_splits():
    assert len(SCENES) == len(set(SCENES)) == 150
    assert Counter(map(split, SCENES)) == {"train": 80, "validation": 20, "test": 20, "dynamic": 30}
    assert split("FloorPlan20") == "train"
    assert split("FloorPlan221") == "validation"
    assert split("FloorPlan430") == "test"


def test_splits_and_their_types_are_expanded_in_order():
    assert expand_scenes(["train"]) == tuple(scene for scene in SCENES if split(scene) == "train")
    assert expand_scenes(["test:living_room", "kitchen-5", "FloorPlan1"]) == (
        *(f"FloorPlan{number}" for number in range(226, 231)), "kitchen-5", "FloorPlan1",
    )  # fmt: skip
    assert len(expand_scenes(["dynamic"])) == len(expand_scenes(["dynamic:foyer"])) == 30
    assert expand_scenes(["train:foyer", "attic"]) == ("train:foyer", "attic"), "not a room: whoever makes it says so"


@pytest.mark.parametrize(
    "scene", ["FloorPlan31", "FloorPlan0", "attic-3", "kitchen", "kitchen--1", "kitchen-01", "kitchen-1.5", ""]
)
def test_unknown_scenes_say_what_is_allowed(scene):
    with pytest.raises(RoomError, match=r"FloorPlan1-30.*kitchen-81723"):
        make_room(scene)


def test_wrong_types_and_seeds_are_refused():
    with pytest.raises(RoomError, match="living_room"):
        generate("attic", 1)
    with pytest.raises(RoomError, match="negative"):
        generate("kitchen", -1)
    with pytest.raises(RoomError, match="allowed"):
        split("kitchen-1")


@pytest.mark.parametrize("kind", ROOM_TYPES)
def test_a_room_is_the_same_every_time(kind):
    assert make_room(f"{kind}-7") == make_room(f"{kind}-7") == generate(kind, 7)
    assert make_room(f"{kind}-7") != make_room(f"{kind}-8")


def test_fixed_rooms_are_apart_from_seeds():
    assert make_room("FloorPlan7").things != make_room("kitchen-7").things


def test_numbers_are_rounded():
    room = make_room("FloorPlan3")
    numbers = [value for thing in room.things for value in (*thing.position, *thing.size)]
    assert np.allclose(numbers, np.round(numbers, 4), atol=1e-12)


def test_rooms_vary():
    rooms = [make_room(f"FloorPlan{i}") for i in range(1, 13)]
    assert len({room.outline for room in rooms}) == 12
    assert any(len(room.outline) == 6 for room in map(make_room, SCENES[::4]))


@pytest.mark.parametrize("scene", SCENE_SAMPLE)
def test_contents_stay_in_their_drawer_and_leave_space(scene):
    room = built(scene).room
    by_name = {thing.name: thing for thing in room.things}
    covered = Counter()
    for thing in room.things:
        parent = by_name.get(thing.inside)
        if parent is not None and parent.type == "Drawer":
            inner, outer = (box_of(t.position, t.size, t.yaw) for t in (thing, parent))
            assert np.all(np.array(inner[:3]) > outer[:3]) and np.all(np.array(inner[3:]) < outer[3:])
            covered[parent.name] += thing.size[0] * thing.size[1]
    for name, area in covered.items():
        assert area <= 0.5 * by_name[name].size[0] * by_name[name].size[1]


def test_foyers_have_five_kinds_of_table():
    for number in range(5):
        table = foyer.table_of(make_room(f"FloorPlan{501 + number}"))
        assert table.type == list(foyer.TABLES)[(number + 1) % 5]
    with pytest.raises(RoomError, match="not a foyer"):
        foyer.table_of(make_room("FloorPlan1"))


def test_priors_are_facts_of_real_rooms():
    assert priors.share("kitchen", "Fridge") == 1.0
    assert priors.share("kitchen", "Toilet") == 0.0
    width, depth, height = priors.size(np.random.default_rng(0), "bedroom", "Bed")
    assert 0.8 < width < 2.2 and 1.8 < depth < 2.7 and 0.4 < height < 1.6
    assert priors.of("bathroom", "Fork").share == priors.of("kitchen", "Fork").share
    with pytest.raises(KeyError):
        priors.of("kitchen", "Unicorn")
