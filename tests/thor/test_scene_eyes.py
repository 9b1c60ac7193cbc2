"""What agents and free cameras see of a scene."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import drawer_chest, drawn, hut

from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import Thing
from scrubjay.sim.pose import CAMERA_STANDING
from scrubjay.thor.cameras import agent_camera
from scrubjay.thor.scene import Scene, SceneCamera

pytestmark = pytest.mark.skipif(not drawn("opengl"), reason="OpenGL does not work here")


def pillar(name: str, x: float, y: float, size=(0.4, 0.4, 1.0)) -> Thing:
    """A box-like thing."""
    return Thing(name, "Box", (x, y, 0.0), 0, size)


@pytest.fixture
def bare():
    scene = Scene(hut(), width=120, height=80)
    scene.teleport(0, np.zeros(2), 0, 0, True)
    yield scene
    scene.close()


def test_depth_follows_the_field_of_view_and_the_aspect(bare):
    """The north wall is 2 m ahead; with 60 degrees the floor comes into view 1.5765 / tan 30 m ahead, beyond it."""
    depth = bare.see(0, ("depth",)).depth
    assert depth.shape == (80, 120)
    assert depth[40, 60] == pytest.approx(2.0, abs=1e-3)
    ids = bare.see(0, ("ids",)).ids
    wall, floor = bare.things.index("Wall"), bare.things.index("Floor")
    assert ids[79, 60] == floor
    # The floor begins at the wall's foot: atan(1.5765 / 2) below the horizon, of 45 degrees to the lower edge.
    edge = 40 + 40 * CAMERA_STANDING / 2
    assert ids[int(edge) - 1, 60] == wall and ids[int(edge) + 1, 60] == floor
    bare.set_field_of_view(0, 60.0)
    assert bare.see(0, ("ids",)).ids[79, 60] == wall


def test_the_horizon_tilts_the_view(bare):
    bare.turn(0, 0, 90.0, True)
    picture = bare.see(0, ("depth", "normals"))
    assert picture.depth[40, 60] == pytest.approx(CAMERA_STANDING, abs=1e-3)
    assert picture.normals[40, 60] == pytest.approx([0, 0, 1], abs=1e-6)


def test_a_resized_scene_draws_other_sizes(bare):
    assert bare.see(0, ()).rgb.shape == (80, 120, 3)
    bare.resize(64, 100)
    assert bare.see(0, ("depth",)).depth.shape == (100, 64)
    assert bare.see(0, ()).rgb.max() > 0


def test_a_free_camera_turns_as_unity_does(bare):
    """Yaw 90 looks east; a roll of 90 degrees lifts the right side, so that the room's south is up in the picture."""
    bare.cameras.append(SceneCamera(np.array([0.5, 0.0, 1.0]), np.array([0.0, 90.0, 0.0])))
    assert bare.look_through(0, ("depth",)).depth[40, 60] == pytest.approx(1.5, abs=1e-3)
    bare.cameras.append(SceneCamera(np.array([0.5, 0.0, 1.0]), np.array([0.0, 90.0, 90.0])))
    ids, floor = bare.look_through(1, ("ids",)).ids, bare.things.index("Floor")
    # The picture's right is the room's up, so its left shows the floor.
    assert ids[40, 2] == floor and ids[40, 117] != floor


def test_an_orthographic_camera_sees_a_map_from_above_the_ceiling():
    """4 m of 80 rows: a thing of 0.4 m has 8 x 8 pixels, wherever it is; heights are depths."""
    scene = Scene(hut(pillar("Box_0", 1.0, 1.0)), width=120, height=80)
    down = np.array([90.0, 0.0, 0.0])
    scene.cameras.append(SceneCamera(np.array([0.0, 0.0, 5.0]), down, orthographic_size=2.0))
    picture = scene.look_through(0, ("ids", "depth", "normals"))
    rows, columns = np.nonzero(picture.ids == scene.things.index("Box_0"))
    assert rows.mean() == pytest.approx(80 / 2 - 20 - 0.5, abs=0.6)
    assert columns.mean() == pytest.approx(60 + 20 - 0.5, abs=0.6)
    assert len(rows) == pytest.approx(64, abs=10)
    assert picture.depth[40, 60] == pytest.approx(5.0, abs=2e-3)
    assert picture.normals[40, 60] == pytest.approx([0, 0, 1], abs=1e-3)
    scene.close()


def test_hidden_and_absent_things_are_not_drawn_and_come_back():
    scene = Scene(hut(pillar("Box_0", 0.0, 1.0)), width=60, height=60)
    box = scene.things.index("Box_0")
    scene.teleport(0, np.zeros(2), 0, 30, True)
    before = scene.see(0, ("ids",))
    assert (before.ids == box).any() and box in scene.visible(0, 1.5)
    scene.hidden.add(box)
    without = scene.see(0, ("ids",))
    assert not (without.ids == box).any() and box not in scene.visible(0, 1.5)
    assert set(np.unique(without.ids)) == {scene.things.index("Wall"), scene.things.index("Floor")}
    scene.hidden.clear()
    scene.remove(box)
    assert (scene.see(0, ("ids",)).ids == without.ids).all()
    scene.restore(box)
    assert (scene.see(0, ()).rgb == before.rgb).all()
    scene.close()


def test_other_materials_by_a_seed_change_how_things_look_and_nothing_else():
    scene = Scene(hut(*drawer_chest()), width=60, height=60)
    scene.set_openness(0, scene.things.index("Drawer_0"), 1.0, force=True)
    first, poses = scene.see(0, ("ids",)), [scene.pose(thing) for thing in range(len(scene.things))]
    looks = []
    for seed in (1, 2, 1):
        scene.retexture(seed)
        looks.append(scene.see(0, ("ids",)))
        assert (looks[-1].ids == first.ids).all()
    assert (looks[0].rgb != first.rgb).any() and (looks[0].rgb != looks[1].rgb).any()
    assert (looks[0].rgb == looks[2].rgb).all()
    scene.retexture(1, ["Wall"])
    walls = scene.see(0, ())
    same = first.ids != scene.things.index("Wall")
    assert (walls.rgb[same] == first.rgb[same]).all() and (walls.rgb == looks[0].rgb)[~same].all()
    assert (np.array([scene.pose(thing) for thing in range(len(scene.things))]) == poses).all()
    scene.retexture(None)
    assert (scene.see(0, ()).rgb == first.rgb).all()
    scene.close()


def test_agents_see_each_other():
    """A body of 0.2 m radius a meter ahead, standing up to the camera's height."""
    scene = Scene(hut(), agents=2, width=60, height=60)
    scene.teleport(0, np.array([0.0, -0.5]), 0, 0, True)
    scene.teleport(1, np.array([1.5, 1.5]), 0, 0, True)
    empty = scene.see(0, ("depth", "ids"))
    scene.teleport(1, np.array([0.0, 0.5]), 0, 0, True)
    picture = scene.see(0, ("depth", "ids"))
    assert (picture.rgb[45, 30] != empty.rgb[45, 30]).any()
    assert picture.depth[45, 30] == pytest.approx(0.8, abs=0.05) and picture.ids[45, 30] == -1
    assert (picture.rgb[:, 0] == empty.rgb[:, 0]).all()
    scene.close()


def test_a_ray_meets_what_the_picture_shows():
    scene = Scene(make_room("FloorPlan1"), width=90, height=60)
    picture = scene.see(0, ("ids", "depth"))
    eye, matrix = agent_camera(scene.agents[0])
    agreed = 0
    for row in range(3, 60, 9):
        for column in range(3, 90, 9):
            thing, point = scene.ray(0, (column + 0.5) / 90, (row + 0.5) / 60)
            agreed += thing == picture.ids[row, column]
            if thing == picture.ids[row, column]:
                assert -(matrix[:, 2] @ (point - eye)) == pytest.approx(picture.depth[row, column], abs=0.01)
    assert agreed >= 68


def seen_in_pictures(scene: Scene, distance: float, enlarged: int = 3) -> tuple[set[int], set[int]]:
    """Things with any and with many pixels within a distance of the agent's axis, by a large picture."""
    agent, size = scene.agents[0], (scene.width, scene.height)
    scene.resize(enlarged * size[0], enlarged * size[1])
    picture = scene.see(0, ("ids", "depth"))
    eye, matrix = agent_camera(agent)
    edge = np.tan(np.radians(agent.field_of_view / 2))
    x, y = np.meshgrid((np.arange(scene.width) + 0.5) / scene.width * 2 - 1,
                       1 - (np.arange(scene.height) + 0.5) / scene.height * 2)  # fmt: skip
    rays = np.stack([x * edge * scene.width / scene.height, y * edge, -np.ones_like(x)], -1)
    points = eye + (rays * picture.depth[..., None]) @ matrix.T
    near = np.linalg.norm(points[..., :2] - agent.position, axis=-1) <= distance
    ids, counts = np.unique(picture.ids[near], return_counts=True)
    scene.resize(*size)
    return set(ids.tolist()) - {-1}, set(ids[counts >= 0.002 * picture.ids.size].tolist()) - {-1}


def check_visible(name: str, poses: int, seed: int) -> None:
    """Nothing is visible that no pixel shows, nothing that many pixels show is missing."""
    scene, rng = Scene(make_room(name), width=150, height=100), np.random.default_rng(seed)
    positions = scene.reachable(0, 0.25)
    for openable in list(scene._things.openables)[::3]:
        scene._things.set_open(openable, 1.0)
    for _ in range(poses):
        position = positions[rng.integers(len(positions))]
        scene.teleport(
            0, position, float(rng.uniform(0, 360)), float(rng.uniform(-30, 60)), bool(rng.integers(2)), True
        )
        visible = scene.visible(0, 1.5)
        some, many = seen_in_pictures(scene, 1.5)
        if visible - some:  # Rays see what is smaller than a pixel.
            some, _ = seen_in_pictures(scene, 1.5, 16)
        assert visible <= some, [scene.things[thing] for thing in visible - some]
        assert many <= visible, [scene.things[thing] for thing in many - visible]
    scene.close()


def test_what_is_visible_is_what_a_large_picture_shows():
    check_visible("FloorPlan1", 12, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FloorPlan5", "FloorPlan205", "FloorPlan305", "FloorPlan405"])
def test_what_is_visible_is_what_a_large_picture_shows_everywhere(name):
    check_visible(name, 100, 1)


def test_what_is_covered_or_too_far_or_outside_the_frame_is_not_visible():
    scene = Scene(hut(pillar("Box_0", 0, 0.8), pillar("Box_1", 0, 1.4, (0.3, 0.3, 0.5)), pillar("Box_2", -1.5, 0)))
    front, behind, left = (scene.things.index(f"Box_{k}") for k in range(3))
    scene.teleport(0, np.zeros(2), 0, 0, False)
    visible = scene.visible(0, 1.5)
    assert front in visible and behind not in visible and left not in visible
    assert front not in scene.visible(0, 0.55)
    scene.hidden.add(front)
    assert behind in scene.visible(0, 1.5)


def test_what_lies_in_a_closed_drawer_is_not_visible():
    fork = Thing("Fork_0", "Fork", (0.0, 1.7, 0.66), 0, (0.03, 0.18, 0.02), inside="Drawer_0")
    scene = Scene(hut(*drawer_chest(), fork))
    drawer, thing = scene.things.index("Drawer_0"), scene.things.index("Fork_0")
    scene.teleport(0, np.array([0.0, 0.5]), 0, 30, True)
    assert drawer in scene.visible(0, 1.5) and thing not in scene.visible(0, 1.5)
    scene.set_openness(0, drawer, 1.0)
    assert thing in scene.visible(0, 1.5)
    assert scene.containers(thing) == [drawer]
    travel = float(scene._things.openable(drawer).travel[0])
    assert scene.pose(thing)[:3] == pytest.approx([0, 1.7 - travel, 0.67])
