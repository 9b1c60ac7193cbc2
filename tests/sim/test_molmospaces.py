"""Rooms in MolmoSpaces' form, against the miniature's numbers (see `molmospaces_miniature.py`)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest
from helpers import renderers, run_command
from hypothesis import given, settings
from hypothesis import strategies as st
from molmospaces_miniature import (
    DOOR,
    DOOR_ANGLE,
    DRAWER,
    DRAWER_TRAVEL,
    FRIDGE,
    LID_ANGLE,
    TABLE,
    collider,
    miniature,
    visual,
    write_miniature,
)

import scrubjay
from scrubjay.errors import RoomError
from scrubjay.rooms.floor import BODY_RADIUS
from scrubjay.rooms.generate import check_scene, make_room, type_of
from scrubjay.sim.access import find_opening_poses
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import SOLID, CompiledRoom
from scrubjay.sim.molmospaces import MAX_OPENABLES, geometry, load_molmospaces
from scrubjay.sim.physics import Physics, PhysicsState
from scrubjay.sim.pose import AgentPose, cameras
from scrubjay.sim.render.opengl import pixel_rays
from scrubjay.sim.world import World
from scrubjay.spots.areas import areas_of
from scrubjay.spots.spots import make_spots, spots_path

FRIDGE_NAME, DRAWER_NAME, LAPTOP_NAME = "fridge_ij_1_0_0", "drawer_kl_1_0_0", "laptop_gh_1_0_0"
TABLE_NAME, MUG_NAME, SPOON_NAME = "table_ab_1_0_0", "mug_cd_1_0_0", "spoon_mn_1_0_0"
CLOSED = np.zeros(3, bool)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return write_miniature(tmp_path_factory.mktemp("assets"))


@pytest.fixture(scope="module")
def room(path) -> CompiledRoom:
    return load_molmospaces(path)


def number(room: CompiledRoom, name: str) -> int:
    """The openable of a thing."""
    return [room.things[openable.thing] for openable in room.openables].index(name)


def test_things_are_the_metadatas_with_their_boxes_but_for_types_of_goal_objects(room):
    boxes = {thing.name: (*thing.position, *thing.size) for thing in room.room.things}
    assert boxes[TABLE_NAME] == pytest.approx((1.0, 0.53, 0.0, 0.8, 0.6, 0.75), abs=2e-4)
    assert boxes[MUG_NAME] == pytest.approx((0.75, 0.3, 0.75, 0.08, 0.08, 0.1), abs=2e-4)
    assert boxes[FRIDGE_NAME] == pytest.approx((-1.6, 1.1, 0.0, 0.7, 0.7, 1.6), abs=2e-4)
    assert boxes[DRAWER_NAME] == pytest.approx((0.22, 1.25, 0.6, 0.5, 0.4, 0.2), abs=2e-4)
    types = {thing.name: thing.type for thing in room.room.things}
    assert types[TABLE_NAME] == "DiningTable" and types["wall_0_2"] == "Wall" and "Tomato" not in types.values()
    inside = {thing.name: thing.inside for thing in room.room.things}
    assert inside[MUG_NAME] == inside[LAPTOP_NAME] == TABLE_NAME and inside[TABLE_NAME] == ""


def test_a_room_is_as_large_as_its_floor_and_as_high_as_its_walls(room, path):
    assert room.room.bounds == (-2, -1.5, 2, 1.5) and room.room.height == 2.4
    assert (room.room.scene, room.room.type) == (f"molmospaces:{path}", "kitchen")
    assert room.model.nlight == 3 and not (room.model.jnt_limited).any()


def test_a_body_can_stand_wherever_it_is_clear_of_the_furniture(room):
    """Every multiple of 0.25 m, 0.2 m from walls and from the rectangles of table, fridge with door, and drawer."""

    def away(x: float, y: float, west: float, south: float, east: float, north: float) -> float:
        return float(np.hypot(max(west - x, x - east, 0), max(south - y, y - north, 0)))

    obstacles = (TABLE, FRIDGE, DOOR, DRAWER)
    places = [(i / 4, j / 4) for i in range(-8, 9) for j in range(-6, 7)]
    inside = [(x, y) for x, y in places if abs(x) <= 1.8 and abs(y) <= 1.3]
    free = {(x, y) for x, y in inside if all(away(x, y, *box) >= BODY_RADIUS for box in obstacles)}
    assert {tuple(position) for position in room.floor.reachable().positions.tolist()} == free
    assert 80 < len(free) < 165


def test_openables_open_by_their_joints_ranges_and_laptops_the_other_way(room):
    travel = {room.things[openable.thing]: openable.travel.tolist() for openable in room.openables}
    assert travel == {FRIDGE_NAME: [DOOR_ANGLE], DRAWER_NAME: [-DRAWER_TRAVEL], LAPTOP_NAME: [-LID_ANGLE]}


def test_a_laptop_is_flat_when_closed_and_its_lid_upright_when_open(room):
    laptop = room.openables[number(room, LAPTOP_NAME)]
    assert room.room.things[laptop.thing].size[2] == pytest.approx(0.03, abs=2e-4)
    data = mujoco.MjData(room.model)
    lid = np.flatnonzero((room.model.geom_bodyid == laptop.bodies[0]) & (room.model.geom_group == SOLID))
    heights = []
    for is_open in (0, 1):
        data.qpos[laptop.qpos] = laptop.travel * is_open
        mujoco.mj_kinematics(room.model, data)
        turn = np.abs(data.geom_xmat[lid[0]].reshape(3, 3))
        heights.append(data.geom_xpos[lid[0], 2] + (turn @ room.model.geom_size[lid[0]])[2])
    assert heights == pytest.approx([0.78, 0.97], abs=1e-3)


def test_a_door_opens_unless_it_would_hit_the_agent_and_is_in_the_way_then(room):
    """Hung at (-1.95, 0.8), 0.7 m wide, it sweeps a quarter of a circle and ends at the west wall."""
    with World([room], size=28) as world:
        door = np.array([number(room, FRIDGE_NAME)])
        world.set_agent_pose(0, AgentPose(-1.5, 0.5, 0.0, True))
        assert not world.open(door)[0]
        world.set_agent_pose(0, AgentPose(-1.75, 0.25, 0.0, True))
        assert not world.open(door)[0]
        world.set_agent_pose(0, AgentPose(-1.0, 0.25, 0.0, True))
        assert world.open(door)[0]
        with pytest.raises(ValueError, match="no body can stand"):
            world.set_agent_pose(0, AgentPose(-1.79, 0.25, 0.0, True))
        world.set_agent_pose(0, AgentPose(-1.5, 0.25, 0.0, True))
        assert not world.close_near(np.array([True]))[0]


def dropped(room: CompiledRoom, goal: str, point, is_open: np.ndarray) -> PhysicsState:
    held = PhysicsState(np.array([0.5, -0.5]), 0.0, True, is_open, goal, np.array([*point, 1.0, 0, 0, 0]), True)
    return Physics(room).drop(held)


def test_an_object_dropped_onto_the_table_rests_there(room):
    """A cup is 14 cm high; where it falls, the room's own tomato would have been."""
    now = dropped(room, "Cup", (1.3, 0.33, 0.9), CLOSED)
    assert now.pose[:3] == pytest.approx([1.3, 0.33, 0.82], abs=3e-3)
    assert Physics(room).rests(now) and room.things[Physics(room).contains(now)] == TABLE_NAME


def test_an_object_dropped_into_the_drawer_is_contained_and_moves_with_it(room):
    physics, drawer = Physics(room), number(room, DRAWER_NAME)
    is_open = CLOSED.copy()
    is_open[drawer] = True
    now = dropped(room, "Tomato", (0.3, 0.8, 0.75), is_open)
    assert room.things[physics.contains(now)] == DRAWER_NAME and now.pose[2] < 0.7
    shut = physics.move_openable(now, drawer, False)
    assert shut is not None and room.things[physics.contains(shut)] == DRAWER_NAME
    assert shut.pose[1] - now.pose[1] == pytest.approx(DRAWER_TRAVEL, abs=0.1)


def test_what_lies_in_a_drawer_moves_with_it(room):
    drawer, spoon = room.openables[number(room, DRAWER_NAME)], room.things.index(SPOON_NAME)
    assert set(room.model.geom_bodyid[room.geom_thing == spoon]) == set(drawer.bodies)
    assert set(room.model.geom_bodyid[room.geom_thing == room.things.index(MUG_NAME)]) == {0}


def test_solids_stop_objects_where_the_colliders_are(room):
    """A knife, 3.5 cm wide, beside a table leg: 0.6 to 0.65 by 0.23 to 0.28 is leg, and 0.7 is free."""
    physics = Physics(room)
    state = PhysicsState(np.array([0.5, -0.5]), 0.0, True, CLOSED, "Knife", np.zeros(7), True)
    goal = physics.load(PhysicsState(**{**vars(state), "pose": np.array([0, 0, 1, 1.0, 0, 0, 0])}))
    hits = [physics.collides(goal, np.array([x, 0.25, 0.4, 1.0, 0, 0, 0])) for x in (0.62, 0.72)]
    assert hits == [True, False]


@pytest.mark.parametrize("how", renderers())
def test_pictures_name_things_and_textures_are_the_right_way_up(room, how):
    with World([room], **how, size=112) as world:
        world.set_agent_pose(0, AgentPose(0.25, 0.5, 0.0, False))
        view = world.view(("rgb", "ids", "depth"))
        ids, rgb = view.ids[0].cpu().numpy(), view.rgb[0].cpu().numpy().astype(int)
        seen = {room.things[index] for index in np.unique(ids) if index >= 0}
        assert {DRAWER_NAME, "Floor", "wall_0_0"} <= seen and MUG_NAME not in seen
        rows, columns = np.nonzero(ids == room.things.index(DRAWER_NAME))
        front = rgb[rows.max() - 4 : rows.max() - 1, columns.mean().astype(int)]
        assert (front[:, 2] > front[:, 0] + 30).all()  # The lower half of its front is blue.
        red = rgb[rows, columns][:, 0] > rgb[rows, columns][:, 2] + 30
        assert rows[red].mean() < rows[~red].mean()
        world.set_agent_pose(0, AgentPose(-1.0, 0.25, 270.0, True))
        before = (world.view(("ids",)).ids[0] == room.things.index(FRIDGE_NAME)).sum()
        world.open(np.array([number(room, FRIDGE_NAME)]))
        assert (world.view(("ids",)).ids[0] == room.things.index(FRIDGE_NAME)).sum() != before


def test_both_renderers_draw_the_same(room):
    views = []
    for name in ("opengl", "warp"):
        with World([room], renderer=name, size=112) as world:
            drawn = []
            for pose in (AgentPose(0, -1, 0, True), AgentPose(1.0, -0.75, 0, True), AgentPose(-0.5, 0.25, 90, False)):
                world.set_agent_pose(0, pose)
                for is_open in (False, True):
                    world.state.open[:] = is_open
                    drawn.append(world.view(("rgb", "ids", "depth")))
            views.append(drawn)
    for one, other in zip(*views, strict=True):
        assert (one.ids == other.ids).float().mean() > 0.99
        assert (one.rgb.float() - other.rgb.float()).abs().mean() < 3
        same = one.ids == other.ids
        assert (one.depth - other.depth)[same].abs().median() < 1e-3


@pytest.mark.parametrize("how", renderers())
def test_pictures_are_as_deep_as_rays_through_the_file_as_mujoco_reads_it(room, path, how):
    source = mujoco.MjModel.from_xml_path(str(path))
    source.geom_rgba[source.geom_bodyid == source.body("tomato_ef_1_0_0").id] = 0
    data = mujoco.MjData(source)
    data.joint("lid").qpos = LID_ANGLE
    mujoco.mj_forward(source, data)
    groups = np.array([1, 1, 1, 0, 0, 0], np.uint8)
    with World([room], **how, size=28) as world:
        for pose in (AgentPose(0, -1, 0, True), AgentPose(1, -0.75, 0, False), AgentPose(-0.75, 0, 315, True)):
            world.set_agent_pose(0, pose)
            eye, matrix = cameras(*(np.array(value) for value in ((pose.x, pose.y), pose.rotation, pose.standing)))
            rays = np.ascontiguousarray(pixel_rays(28, 28) @ matrix.T)
            geom, depth = np.empty(len(rays), np.int32), np.empty(len(rays))
            mujoco.mj_multiRay(
                source, data, eye, rays.ravel(), groups, True, -1, geom, depth, None, len(rays), mujoco.mjMAXVAL
            )
            drawn = world.view(("depth",)).depth[0].cpu().numpy().ravel()
            seen = depth > 0  # Rays of the file pass above the walls, where there is no ceiling.
            assert seen.mean() > 0.8 and (np.abs(drawn - depth)[seen] < 1e-3).mean() > 0.98


def test_poses_and_areas_for_hiding_are_found(room):
    poses = find_opening_poses(room, room.floor.reachable())
    assert all(poses[number(room, name)] for name in (FRIDGE_NAME, DRAWER_NAME))
    areas = areas_of(room)
    assert [area.position.tolist() for area in areas["on"]] == [pytest.approx([1.0, 0.53, 0.75], abs=1e-6)]
    needed = {tuple(room.things[room.openables[n].thing] for n in area.open) for area in areas["in"]}
    assert needed == {(FRIDGE_NAME,), (DRAWER_NAME,)}
    drawer = next(area for area in areas["in"] if area.open == (number(room, DRAWER_NAME),))
    assert drawer.position == pytest.approx([0.22, 1.25 - DRAWER_TRAVEL, 0.62], abs=1e-6)
    assert drawer.half == pytest.approx([0.23, 0.18], abs=1e-6) or drawer.half == pytest.approx([0.18, 0.23], abs=1e-6)


def test_a_whole_game_is_played_in_it_and_its_record_replays(path):
    record = scrubjay.play("heuristic", "frontier", f"molmospaces:{path}", size=56, limits=(40, 1, 6, 12, 60))
    assert record.hidden is not None and record.scene == f"molmospaces:{path}"
    assert len(list(scrubjay.replay(record))) == len(record.actions)


@pytest.mark.slow
def test_hiding_spots_are_made_on_in_and_beside_things(room, tmp_path):
    spots = make_spots(room, "Tomato", 60)
    kinds = {spot.kind for group in spots.spots.values() for spot in group}
    assert kinds == {"on", "in", "floor"} or kinds == {"in", "floor"}
    assert spots_path(tmp_path, room.room.scene, "Tomato").parent == tmp_path


def test_names_are_accepted_wherever_rooms_are_named(path, room, monkeypatch, capsys, tmp_path):
    scene = f"molmospaces:{path}"
    check_scene(scene)
    assert type_of(scene) == "kitchen" and type_of(scene.replace("n1_", "n412_")) == "bathroom"
    assert type_of("molmospaces:/data/scenes/procthor/train_3.xml") == "living_room"
    assert build_room(scene).room == room.room
    with pytest.raises(RoomError, match="use its name"):
        make_room(scene)
    with pytest.raises(RoomError, match="there is no such file"):
        check_scene("molmospaces:/nowhere/FloorPlan1_physics.xml")
    code, _, err = run_command(monkeypatch, capsys, "room", scene, "--out", str(tmp_path / "room.html"))
    assert code == 0 and "Kitchen with 13 objects of 9 types" in (tmp_path / "room.html").read_text(), err
    code, _, err = run_command(monkeypatch, capsys, "room", scene, "--save", str(tmp_path / "room.json"))
    assert code != 0 and "cannot be saved" in err


# What is refused, each with one sentence.


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ('<include file="other.xml"/>', "element <include>"),
        ('<extension><plugin plugin="mujoco.elasticity.cable"/></extension>', "element <extension>"),
        ('<worldbody><body><plugin instance="x"/></body></worldbody>', "element <plugin>"),
        ('<asset><model name="m" file="m.xml"/></asset>', "element <model>"),
        ('<asset><mesh file="/etc/passwd.obj"/></asset>', "by an absolute path"),
        ('<asset><mesh file="C:\\\\m.obj"/></asset>', "by an absolute path"),
        ('<asset><mesh file="../../../m.obj"/></asset>', "which is outside"),
        ('<asset><texture type="2d" file="../../../../x.png"/></asset>', "which is outside"),
        ('<asset><mesh file="gone.obj"/></asset>', "gone.obj is missing"),
        ('<compiler meshdir="/tmp"/>', "by an absolute path"),
        ('<worldbody><geom type="mesh" mesh="gone"/></worldbody>', "MuJoCo cannot compile it"),
    ],
)
def test_scenes_that_reach_outside_or_run_code_are_refused(tmp_path, extra, words):
    path = write_miniature(tmp_path / "assets", extra)
    if "<compiler" in extra:
        path.write_text(path.read_text().replace(extra, "").replace("<compiler ", '<compiler meshdir="/tmp" '))
    with pytest.raises(RoomError, match=words):
        load_molmospaces(path)


def test_broken_scenes_are_refused(tmp_path):
    path = write_miniature(tmp_path)
    whole, metadata = path.read_text(), path.with_name(f"{path.stem}_metadata.json")

    def refused(words: str, text: str = whole) -> None:
        path.write_text(text)
        with pytest.raises(RoomError, match=words) as caught:
            load_molmospaces(path)
        assert "\n" not in str(caught.value)

    refused("declares a document type", '<!DOCTYPE mujoco [<!ENTITY a "b">]>' + whole)
    refused("not an MJCF file", whole[:500])
    refused("not an MJCF file: it begins with <robot>", "<robot/>")
    refused("no floor", "<mujoco><worldbody><body><geom size='1'/></body></worldbody></mujoco>")
    full = '<geom type="plane" size="1 1 1"/><body name="wall_0"><geom type="box" size="1 1 1"/></body>'
    refused("the room has no free floor", f"<mujoco><worldbody>{full}</worldbody></mujoco>")
    (tmp_path / "objects/thor/Textures/stripes.png").write_bytes(b"no picture")
    refused("stripes.png cannot be read")
    write_miniature(tmp_path)
    metadata.write_text(json.dumps({"objects": {TABLE_NAME: {"category": 3}}}))
    refused("broken metadata: table_ab_1_0_0.category")
    metadata.write_text("[]")
    refused("it has no `objects`")
    metadata.unlink()
    refused("no metadata of the scene")


def test_rooms_with_too_many_openables_are_refused(tmp_path):
    room = miniature(tmp_path)
    room.mesh("flap", (0, 0, 0, 0.1, 0.1, 0.01))
    for k in range(MAX_OPENABLES - 2):
        hinge = f'<body><joint type="hinge" range="0 1"/>{visual("flap", "White")}</body>'
        room.add(f"flap_{k}", "Cabinet", f'<body name="flap_{k}" pos="0 0 2">{hinge}</body>')
    with pytest.raises(RoomError, match=f"{MAX_OPENABLES + 1} of its things open"):
        load_molmospaces(room.write())


def test_a_turned_mesh_collider_takes_its_own_rectangle_of_the_floor(tmp_path):
    """A wedge of 2 m by 0.2 m turned by 30 degrees: 0.3 m beside its middle one can stand, and 0.05 m not."""
    room = miniature(tmp_path)
    room.world[2:] = [line for line in room.world[2:] if "wall" in line]
    room.objects.clear()
    room.mesh("wedge", (-1, -0.1, 0, 1, 0.1, 0.5), (-0.2, -0.05, 0.5, 0.2, 0.05, 0.9))
    solid = '<geom class="__DYNAMIC_MJT__" type="mesh" mesh="wedge" quat="0.70710678 0.70710678 0 0"/>'
    turned = f'<body name="bench" euler="0 0 0.5235987756">{visual("wedge", "White")}{solid}</body>'
    room.add("bench", "Bench", turned)
    floor = load_molmospaces(room.write()).floor
    normal, along = np.array([-0.5, np.sqrt(0.75)]), np.array([np.sqrt(0.75), 0.5])
    points = np.array([0.4 * normal, 0.15 * normal, 0.9 * along + 0.4 * normal, 1.3 * along])
    assert floor.clearance(points) == pytest.approx([0.3, 0.05, 0.3, 0.3], abs=0.013)


def test_a_scene_outside_a_collection_may_name_only_what_is_in_its_own_folder(tmp_path):
    path = write_miniature(tmp_path / "assets")
    alone = tmp_path / "alone"
    shutil.copytree(path.parent, alone)
    with pytest.raises(RoomError, match="which is outside"):
        load_molmospaces(alone / path.name)


def test_colliders_without_visuals_and_visuals_without_colliders(tmp_path):
    """What only collides is in the way and unseen, what is only seen is not in the way."""
    room = miniature(tmp_path)
    room.mesh("pillar", (-0.1, -0.1, 0, 0.1, 0.1, 1))
    room.add("ghost", "Statue", f'<body name="ghost" pos="-1 -1 0">{visual("pillar", "White")}</body>')
    unseen = collider("__DYNAMIC_MJT__", -0.1, -0.1, 0, 0.1, 0.1, 1)
    room.add("wall_unseen", "", f'<body name="wall_unseen" pos="0.5 -1 0">{unseen}</body>')
    room.world += [f'<body pos="{x} -1 1.9">{visual("pillar", "White")}</body>' for x in (1, 1.5)]  # Without names.
    compiled = load_molmospaces(room.write())
    assert sum(thing.type == "Structure" for thing in compiled.room.things) == 2
    assert compiled.floor.clearance(np.array([[-1.0, -1.0], [0.5, -1.0]])) == pytest.approx([0.5, 0.0], abs=1e-6)
    unseen_geoms = compiled.model.geom_group[compiled.geom_thing == compiled.things.index("wall_unseen")]
    assert set(unseen_geoms) == {SOLID}


def test_what_is_open_in_the_file_is_closed_and_parts_on_parts_are_rigid(tmp_path):
    """A door of 0.4 m that the file has open by 1.5 rad, to the south, with a handle that turns on it."""
    room = miniature(tmp_path)
    room.mesh("leaf", (0, 0, 0, 0.4, 0.02, 0.5))
    room.mesh("handle", (0.3, -0.03, 0.2, 0.35, 0, 0.3))
    handle = f'<body><joint type="hinge" axis="0 1 0" range="0 1"/>{visual("handle", "Steel")}</body>'
    door = f"""<body euler="0 0 -1.5"><joint type="hinge" axis="0 0 -1" range="0 1.5" ref="1.5"/>
      {visual("leaf", "White")}{collider("__DYNAMIC_MJT__", 0, 0, 0, 0.4, 0.02, 0.5)}{handle}</body>"""
    room.add("cabinet", "Cabinet", f'<body name="cabinet" pos="1.2 -1 0.5">{door}</body>')
    compiled = load_molmospaces(room.write())
    thing = next(thing for thing in compiled.room.things if thing.name == "cabinet")
    assert (*thing.position, *thing.size) == pytest.approx((1.4, -1.005, 0.5, 0.4, 0.05, 0.5), abs=2e-4)
    openable = compiled.openables[number(compiled, "cabinet")]
    assert openable.travel.tolist() == [1.5]
    assert set(compiled.model.geom_bodyid[compiled.geom_thing == openable.thing]) == set(openable.bodies)


def test_a_floor_and_walls_are_drawn_where_the_file_has_none(tmp_path):
    """Without the floor's mesh, the room is as large as its walls; without walls as all that is in it."""
    room = miniature(tmp_path)
    room.world = [line for line in room.world if "room_0" not in line]
    compiled = load_molmospaces(room.write())
    assert compiled.room.bounds == pytest.approx((-2.1, -1.6, 2.1, 1.6))
    room.world = [line for line in room.world if "wall" not in line]
    bare = load_molmospaces(room.write())
    assert bare.room.bounds == pytest.approx((-1.95, 0.23, 1.4, 1.45)) and bare.room.height == 2.5
    with World([bare], size=56) as world:
        seen = {bare.things[index] for index in np.unique(world.view(("ids",)).ids) if index >= 0}
    assert {"Floor", "Wall"} <= seen


coordinates = st.floats(-3, 3, allow_nan=False, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(coordinates, coordinates, coordinates), min_size=4, max_size=20))
def test_a_hulls_box_holds_all_its_points(points):
    cloud = np.array(points)
    solid = geometry.hull(cloud)
    local = (cloud - solid.position) @ solid.rotation
    assert (np.abs(local) <= np.array(solid.size) + 1e-6).all()
    assert solid.rotation @ solid.rotation.T == pytest.approx(np.eye(3)) and solid.rotation[2, 2] == 1
    if solid.kind == "hull":
        assert np.sort(solid.points @ solid.rotation.T + solid.position, 0) == pytest.approx(
            np.sort(cloud, 0), abs=1e-6
        )


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(range(3)), st.tuples(*[st.sampled_from((-1.0, 1.0))] * 3), st.floats(-3, 3), st.floats(-0.3, 0.3)
)
def test_an_upright_space_is_the_same_box_with_an_axis_up(order, signs, yaw, tilt):
    turns = [np.zeros(9), np.zeros(9)]
    for matrix, (axis, angle) in zip(turns, (((0, 0, 1.0), yaw), ((1.0, 0, 0), tilt)), strict=True):
        quat = np.zeros(4)
        mujoco.mju_axisAngle2Quat(quat, np.array(axis), angle)
        mujoco.mju_quat2Mat(matrix, quat)
    upright = turns[0].reshape(3, 3) @ turns[1].reshape(3, 3)
    rotation, half = (upright * np.array(signs))[:, order], np.array([0.1, 0.2, 0.3])[list(order)]
    space = geometry.upright_space(np.zeros(3), rotation, half)
    assert np.abs(space.rotation * space.half).sum(1) == pytest.approx(np.abs(rotation * half).sum(1))
    assert space.rotation[2, 2] > 0.9 and space.half[2] == pytest.approx(0.3)
    assert np.abs(np.linalg.det(space.rotation)) == pytest.approx(1)
