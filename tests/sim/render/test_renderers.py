"""One contract for every renderer, and the renderers against each other."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import drawn, hut, renderers

from scrubjay.errors import RendererError
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS, Thing
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import CAMERA_STANDING, AgentPose, cameras, in_view, reach
from scrubjay.sim.render import warp
from scrubjay.sim.render.base import GOAL_ALONE, KINDS, WITHOUT_OPENABLES, Shot
from scrubjay.sim.render.make import make_renderer
from scrubjay.sim.render.opengl import RoomContext
from scrubjay.sim.world import World

HOWS = renderers()


@pytest.fixture(params=HOWS)
def how(request) -> dict:
    """A renderer and its device, as arguments of World."""
    return request.param


def test_shapes_and_types(how, chest):
    with World([chest], copies=2, **how, size=112) as world:
        view = world.view(KINDS)
    assert view.rgb.shape == (2, 112, 112, 3) and view.rgb.dtype == torch.uint8
    assert view.depth.shape == (2, 112, 112) and view.depth.dtype == torch.float32
    assert view.ids.shape == (2, 112, 112) and view.ids.dtype == torch.int16
    assert view.normals.shape == (2, 112, 112, 3) and view.normals.dtype == torch.float32


def test_reading_an_image_that_was_not_rendered_is_an_error(how, chest):
    with World([chest], **how, size=56) as world:
        view = world.view(("ids",))
    with pytest.raises(ValueError, match="this view has no rgb, only ids"):
        _ = view.rgb


def test_the_floor_is_as_deep_as_geometry_says(how, empty):
    """The image's middle ray goes 30 degrees down from 1.5765 m: the floor is 3.153 m along it."""
    with World([empty], **how, size=112) as world:
        world.set_agent_pose(0, AgentPose(0.0, -1.5, 0.0, True))
        view = world.view(("depth", "ids", "normals"))
    middle = view.depth[0, 55:57, 55:57]
    assert middle.cpu().numpy() == pytest.approx(CAMERA_STANDING / np.sin(np.radians(30)), abs=0.05)
    assert view.ids[0, 56, 56] == 0
    assert view.normals[0, 56, 56].cpu().numpy() == pytest.approx([0, 0, 1], abs=1e-3)
    assert view.normals[0, 8, 56].cpu().numpy() == pytest.approx([0, -1, 0], abs=1e-3)


def test_depth_is_the_distance_to_a_known_wall(how, empty):
    """Every pixel's depth unprojects to a point on the floor, the walls or the ceiling of a room of 4 x 4 x 2.5 m."""
    with World([empty], **how, size=56) as world:
        world.set_agent_pose(0, AgentPose(0.5, -1.0, 90.0, True))
        depth = world.view(("depth",)).depth[0].cpu().numpy().reshape(-1)
        points = np.concatenate([world._point(np.array([pixel]), depth[[pixel]]) for pixel in range(0, 56 * 56, 37)])
    gaps = np.abs(np.concatenate([np.abs(points[:, :2]) - 2, points[:, 2:], points[:, 2:] - 2.5], 1)).min(1)
    assert gaps.max() < 0.01


def test_east_is_on_the_right_when_looking_north(how):
    room = hut(Thing("Box_0", "Box", (0.6, 0.5, 0), 0, (0.4, 0.4, 0.4)))
    with World([compile_room(room)], **how, size=56) as world:
        world.set_agent_pose(0, AgentPose(0.0, -1.0, 0.0, True))
        box = (world.view(("ids",)).ids[0] == 3).nonzero()
    assert box[:, 1].float().mean() > 28


def test_the_goal_object_is_seen_and_alone(how, chest):
    with World([chest], **how) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.0, 0.0, True))
        world.hold(np.array([GOALS.index("Tomato")]))
        seen, alone = world.goal_pixels()
        assert 200 < seen.sum() < 20000
        assert (seen == alone).float().mean() > 0.999
        alone_ids = world.view(("ids",), GOAL_ALONE).ids
        assert set(alone_ids.unique().tolist()) == {-1, len(chest.room.things) + GOALS.index("Tomato")}


def test_what_is_in_a_closed_drawer_is_seen_only_without_everything_else(how, chest):
    with World([chest], **how) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.5, 0.0, True))
        world.open(np.array([0]))
        world.hold(np.array([GOALS.index("Tomato")]))
        world.state.pose[0, :3] = (0.0, 1.25, 0.95)
        world.drop(np.ones(1, bool))
        seen, alone = world.goal_pixels()
        assert seen.sum() > 50
        assert world.close_near(np.ones(1, bool))[0]
        seen, alone = world.goal_pixels()
        assert seen.sum() == 0 and alone.sum() > 25


def test_openables_can_be_left_out(how, chest):
    with World([chest], **how, size=112) as world:
        world.set_agent_pose(0, AgentPose(0.75, 0.25, 0.0, True))
        drawers, without = world.view(("depth",)), world.view(("depth",), WITHOUT_OPENABLES)
    assert (without.depth >= drawers.depth - 1e-3).all()
    assert ((without.depth - drawers.depth) > 0.1).sum() > 100


def test_an_open_drawer_is_seen_open(how, chest):
    with World([chest], **how, size=112) as world:
        world.set_agent_pose(0, AgentPose(0.0, 0.25, 0.0, True))
        before = world.view(("ids",)).ids
        assert world.open(np.array([0]))[0]
        after = world.view(("ids",)).ids
    assert (after == 3).sum() > 1.3 * (before == 3).sum()


def test_a_copy_looks_like_the_room_alone(how, chest):
    """The same pose gives the same image in any batch."""
    with World([chest], **how, size=56) as one, World([chest, chest], 2, **how, size=56) as many:
        for world in (one, many):
            for b in range(len(world)):
                world.set_agent_pose(b, AgentPose(0.0, 0.25, 90.0 * b, True))
        alone, together = one.view(("rgb", "ids")), many.view(("rgb", "ids"))
    assert (together.ids[0] == alone.ids[0]).all()
    assert (together.rgb[0] == alone.rgb[0]).all()
    assert (together.ids[1] != alone.ids[0]).any()


@pytest.mark.parametrize("at_once", [2, 512])
def test_some_worlds_are_drawn_as_they_are_among_all(how, chest, empty, at_once, monkeypatch):
    """Any subset of the worlds of two rooms, also if it takes several kernel launches."""
    monkeypatch.setattr(warp, "AT_ONCE", at_once)
    with World([chest, empty], copies=3, **how, size=56) as world:
        for b in range(6):
            world.set_agent_pose(b, AgentPose(0.0, 0.25, 90.0 * (b // 2), b % 2 == 0))
        world.open(np.array([0, -1, 1, -1, -1, -1]))
        world.hold(np.array([0, 1, -1, 2, 3, 4]))
        whole, pixels = world.view(KINDS), world.goal_pixels()
        assert [int(mask.sum()) > 0 for mask in pixels[0]] == [True, True, False, True, True, True]
        for chosen in ([], [0], [4], [1, 5], [0, 2, 4], [3, 4, 5], list(range(6))):
            mask = np.isin(np.arange(6), chosen)
            part = world.view(KINDS, worlds=mask)
            for kind in KINDS:
                assert torch.equal(part.images[kind], whole.images[kind][chosen])
            for few, all_of_them in zip(world.goal_pixels(mask), pixels, strict=True):
                assert torch.equal(few, all_of_them[chosen])


def test_worlds_that_are_not_there_are_refused(how, chest):
    with World([chest], copies=2, **how, size=56) as world:
        for wrong in (np.ones(3, bool), np.array([0, 1]), True):
            with pytest.raises(ValueError, match=r"worlds must be a bool array \(2,\)"):
                world.goal_pixels(wrong)
        with pytest.raises(ValueError, match="expected one thing for each of 2 images, not 1"):
            world.goal_mask(world.view(("ids",)), np.array([True, False]))
        shot = Shot.from_state(world.state, np.array([0, 1]))
        for numbers, message in (
            ([0, 2], "from 0 to 1, not"),
            ([-1, 0], "from 0 to 1"),
            ([0], r"eye has shape \(2, 3\)"),
        ):
            with pytest.raises(ValueError, match=message):
                world.renderer.draw(replace(shot, worlds=np.array(numbers)), ("ids",))
        with pytest.raises(ValueError, match=r"eye has shape \(1, 3\), for 2 worlds"):
            world.renderer.draw(replace(Shot.from_state(world.state, np.array([1])), worlds=None), ("ids",))


def render_room(compiled, without=None, **how):
    """Images of four agents in one room, with objects in their hands and half of the openables open."""
    rng = np.random.default_rng(5)
    with World([compiled], copies=4, **how) as world:
        for b in range(4):
            x, y = world.reachable[0].positions[rng.integers(len(world.reachable[0]))]
            world.set_agent_pose(b, AgentPose(x, y, 90.0 * rng.integers(4), b % 2 == 0))
        world.hold(np.arange(4) % len(GOALS))
        world.state.open[:, : len(compiled.openables)] = rng.random((4, len(compiled.openables))) < 0.5
        view = world.view(KINDS, without=without)
    return {kind: image.cpu() for kind, image in view.images.items()}


@pytest.mark.skipif(not drawn("opengl"), reason="there is no OpenGL here to compare with")
@pytest.mark.parametrize("how", HOWS[1:])
@pytest.mark.parametrize("scene", ["FloorPlan3", "FloorPlan203", "FloorPlan303", "FloorPlan403", "FloorPlan503"])
def test_the_renderers_agree(scene, how):
    """Ids on 99 % of pixels, depth within 1 cm on 99.5 % of those, colors within 0.03 on average, in every view."""
    compiled = compile_room(make_room(scene))
    check_agreement(render_room(compiled, renderer="opengl"), render_room(compiled, **how))


def check_agreement(one, other):
    same = one["ids"] == other["ids"]
    assert same.float().mean((1, 2)).min() >= 0.99
    near = (one["depth"] - other["depth"]).abs() <= 0.01
    assert min((near[b] & same[b]).sum() / same[b].sum() for b in range(4)) >= 0.995
    assert (one["rgb"].float() - other["rgb"].float()).abs().mean((1, 2, 3)).max() / 255 < 0.03
    aligned = (one["normals"] * other["normals"]).sum(-1) > 0.99
    assert (aligned | ~same).float().mean((1, 2)).min() > 0.97


def laden_room():
    """A dresser (3) with a box (4) on it, a bowl in the box (5), and another box (6) behind them."""
    return compile_room(hut(
        Thing("Dresser_0", "Dresser", (0.0, 0.5, 0.0), 180, (0.9, 0.4, 0.6)),
        Thing("Box_0", "Box", (0.0, 0.5, 0.6), 0, (0.3, 0.3, 0.2), inside="Dresser_0"),
        Thing("Bowl_0", "Bowl", (0.0, 0.5, 0.62), 0, (0.15, 0.15, 0.3), inside="Box_0"),
        Thing("Box_1", "Box", (0.0, 1.5, 0.0), 0, (0.6, 0.4, 0.7)),
    ))  # fmt: skip


def test_a_thing_is_left_out_with_all_that_is_in_or_on_it(how):
    """Each of five worlds is drawn without another thing; elsewhere no pixel changes, and nothing comes nearer."""
    gone = {-1: set(), 3: {3, 4, 5}, 4: {4, 5}, 5: {5}, 6: {6}}
    with World([laden_room()], copies=5, **how, size=112) as world:
        for b in range(5):
            world.set_agent_pose(b, AgentPose(0.0, -0.75, 0.0, True))
        before = world.state.copy()
        whole = world.view(KINDS)
        assert {3, 4, 5, 6} <= set(whole.ids[0].unique().tolist())
        view = world.view(KINDS, without=np.array(list(gone)))
        for b, things in enumerate(gone.values()):
            seen = set(view.ids[b].unique().tolist())
            assert seen == set(whole.ids[b].unique().tolist()) - things
            was = torch.isin(
                whole.ids[b].long(), torch.tensor(sorted(things), device=whole.ids.device, dtype=torch.long)
            )
            assert was.any() == bool(things)
            for kind in KINDS:
                assert torch.equal(view.images[kind][b][~was], whole.images[kind][b][~was]), (b, kind)
            assert (view.depth[b][was] > whole.depth[b][was] - 1e-3).all()
        part = world.view(KINDS, worlds=np.array([False, True, False, False, True]), without=np.array(list(gone)))
        again = world.view(KINDS, without=np.full(5, -1))
        for kind in KINDS:
            assert torch.equal(part.images[kind], view.images[kind][[1, 4]])
            assert torch.equal(again.images[kind], whole.images[kind])
        assert all(np.array_equal(getattr(before, name), value) for name, value in vars(world.state).items())


def test_behind_a_box_that_is_left_out_the_floor_and_the_wall_are_where_they_are(how, empty):
    """A room without its only box looks like the empty room, ids and all; only the floor's baked shade stays."""
    boxed = compile_room(hut(Thing("Box_0", "Box", (0.2, 1.0, 0), 30, (0.5, 0.5, 0.5))))
    with World([boxed, empty], **how, size=112) as world:
        for b in range(2):
            world.set_agent_pose(b, AgentPose(0.0, -1.0, 0.0, True))
        view = world.view(("depth", "ids", "normals"), without=np.array([3, -1]))
    assert torch.equal(view.ids[0], view.ids[1])
    assert (view.depth[0] - view.depth[1]).abs().max() < 1e-4
    assert (view.normals[0] - view.normals[1]).abs().max() < 1e-4


def test_an_open_drawer_is_left_out_with_the_goal_object_in_it(how, chest):
    """A goal object is also left out by its own id; one that nothing contains stays."""
    with World([chest], copies=3, **how, size=112) as world:
        goal = len(chest.room.things) + GOALS.index("Tomato")
        for b in range(3):
            world.set_agent_pose(b, AgentPose(0.0, 0.5, 0.0, True))
        world.open(np.zeros(3, int))
        world.hold(np.full(3, GOALS.index("Tomato")))
        world.state.pose[:2, :3] = (0.0, 1.25, 0.95)
        world.drop(np.array([True, True, False]))
        assert world.contained().tolist() == [3, 3, -1]
        assert (world.view(("ids",)).ids == goal).flatten(1).any(1).all()
        ids = world.view(("ids",), without=np.array([3, goal, 3])).ids
    assert [{3, goal} & set(image.unique().tolist()) for image in ids] == [set(), {3}, {goal}]


def test_wrong_things_to_leave_out_are_refused(how, chest):
    with World([chest], copies=2, **how, size=56) as world:
        for wrong in (np.array([3]), np.array([True, False]), 3):
            with pytest.raises(ValueError, match="without needs one thing for each of 2 worlds"):
                world.view(without=wrong)
        with pytest.raises(ValueError, match="world 1 has things 0 to 9, so it cannot be drawn without 10"):
            world.view(without=np.array([3, 10]))


@pytest.mark.skipif(not drawn("opengl"), reason="there is no OpenGL here to compare with")
@pytest.mark.parametrize("how", HOWS[1:])
@pytest.mark.parametrize("scene", ["FloorPlan5", "FloorPlan305"])
def test_the_renderers_agree_without_the_largest_thing(scene, how):
    """In each view, without the largest thing that is not part of the room's shell; open doors included."""
    compiled = compile_room(make_room(scene))
    shell = [i for i, thing in enumerate(compiled.room.things) if thing.type in ("Floor", "Wall", "Ceiling")]
    counts = render_room(compiled, renderer="opengl")["ids"].flatten(1)
    largest = []
    for ids in counts.numpy():
        number = np.bincount(ids[ids >= 0], minlength=len(compiled.room.things))[: len(compiled.room.things)]
        number[shell] = 0
        largest.append(int(number.argmax()))
    one = render_room(compiled, np.array(largest), renderer="opengl")
    other = render_room(compiled, np.array(largest), **how)
    for b, thing in enumerate(largest):
        assert not (one["ids"][b] == thing).any() and not (other["ids"][b] == thing).any()
    check_agreement(one, other)


@pytest.mark.parametrize("scene", ["FloorPlan4", "FloorPlan204"])
def test_pictures_are_neither_black_nor_flat(how, scene):
    with World([scene], copies=4, **how, size=112) as world:
        rng = np.random.default_rng(1)
        for b in range(4):
            x, y = world.reachable[0].positions[rng.integers(len(world.reachable[0]))]
            world.set_agent_pose(b, AgentPose(x, y, 90.0 * b, True))
        rgb = world.view(("rgb",)).rgb.float()
    assert 60 < rgb.mean() < 200
    assert rgb.std((1, 2)).mean(1).min() > 8
    assert (rgb.amax(-1) < 8).float().mean() < 0.1


@pytest.mark.skipif(not drawn("opengl"), reason="no OpenGL here")
def test_what_is_out_of_the_picture_is_not_drawn_and_not_missed(monkeypatch):
    """From many poses: fewer geoms than there are, and the same pixels as with all of them."""
    rng = np.random.default_rng(0)
    with World([compile_room(make_room("FloorPlan7"))], renderer="opengl", size=56) as world:

        def views():
            for place, angle in zip(places, angles, strict=True):
                world.state.position[0], world.state.rotation[0] = place, angle
                view = world.view(("rgb", "ids"))
                yield view.rgb.numpy(), view.ids.numpy()

        grid = world.reachable[0].positions
        places, angles = grid[rng.integers(len(grid), size=12)], 30.0 * rng.integers(12, size=12)
        fewer = list(views())
        drawn_geoms = world.renderer._loaded[0].scene.ngeom
        monkeypatch.setattr(RoomContext, "_outside", lambda *_: np.zeros(0, int))
        complete = list(views())
        assert drawn_geoms < world.renderer._loaded[0].scene.ngeom
    for few, every in zip(fewer, complete, strict=True):
        assert all((one == other).all() for one, other in zip(few, every, strict=True))


def test_cameras_by_hand():
    eye, matrix = cameras(np.array([[1.0, 2.0]]), np.array([90.0]), np.array([False]))
    assert eye[0] == pytest.approx([1, 2, 0.9015])
    right, _, back = matrix[0].T
    assert right == pytest.approx([0, -1, 0], abs=1e-9)
    assert -back == pytest.approx([np.cos(np.radians(30)), 0, -0.5])
    assert in_view(eye[0], matrix[0], np.array([3.0, 2.0, 0.0]))
    assert not in_view(eye[0], matrix[0], np.array([0.0, 2.0, 0.0]))
    assert reach(np.array([0.0, 0.0]), np.array([0.9, 1.2, 7.0])) == pytest.approx(1.5)


def test_unknown_names_are_refused(chest):
    with World([chest]) as world, pytest.raises(ValueError, match="unknown kinds of picture"):
        world.view(("smell",))
    with pytest.raises(ValueError, match="unknown renderer 'crayons'"):
        World([chest], renderer="crayons")


def test_a_room_is_swapped_while_another_stays(how, chest, empty):
    with World([chest, empty], copies=2, **how, size=56) as world:
        for b in range(4):
            world.set_agent_pose(b, AgentPose(0.0, 0.25, 0.0, True))
        world.hold(np.array([-1, -1, 4, 4]))
        before = world.view(("ids", "rgb"))
        world.replace(0, hut(Thing("Box_0", "Box", (0.0, 1.0, 0), 0, (0.5, 0.5, 0.5))))
        assert world.state.held.tolist() == [False, False, True, True]
        for b in range(2):
            world.set_agent_pose(b, AgentPose(0.0, 0.0, 0.0, True))
        after = world.view(("ids", "rgb"))
        assert (after.rgb[2:] == before.rgb[2:]).all()
        assert (after.ids[:2] == 3).any() and (after.ids[:2] != before.ids[:2]).any()
        world.replace(0, chest)
        for b in range(2):
            world.set_agent_pose(b, AgentPose(0.0, 0.25, 0.0, True))
        again = world.view(("ids", "rgb"))
        assert (again.rgb == before.rgb).all() and (again.ids == before.ids).all()


@pytest.mark.parametrize(
    ("device", "message"),
    [("gpu", "unknown device 'gpu'"), ("cuda:x", "unknown device"), ("cuda:99", "CUDA|there is no cuda:99")],
)
def test_a_device_that_is_not_there_is_refused_before_anything_is_built(device, message):
    with pytest.raises(RendererError, match=message):
        World(["FloorPlan1"], device=device)


def test_opengl_is_not_for_cuda():
    """On any machine, with or without a GPU."""
    with pytest.raises(RendererError, match="CUDA"):
        make_renderer("opengl", [], 1, 56, "cuda")


@pytest.mark.parametrize("how", [how for how in HOWS if "warp" in str(how.id)])
def test_shadows_only_darken(how, empty):
    """A dresser in the middle of a room shades the floor beside it, and nothing becomes brighter.

    Left out, it casts no shadow: only those of the walls are left, as in an empty room.
    """
    room = compile_room(hut(Thing("Dresser", "Dresser", (0.0, 0.5, 0), 0, (0.8, 0.5, 0.9))))
    views = []
    for shadows in (False, True):
        with World([room, room, empty], **how, size=112, shadows=shadows) as world:
            for b in range(3):
                world.set_agent_pose(b, AgentPose(0.0, -1.0, 0.0, True))
            views.append(world.view(("rgb",), without=np.array([-1, 3, -1])).rgb.cpu().int())
    bright, dark = views
    assert (dark <= bright).all()
    assert 100 < ((bright[0] - dark[0]).amax(-1) > 15).sum() < 112 * 112 / 2
    with_it, without, alone = ((bright - dark).amax(-1) > 3).float()
    assert (without - alone).abs().mean() < 0.001 < (with_it - alone).abs().mean()
