"""Images and labels of the static experiments: on rooms worked out by hand, and as files."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import hut

from scrubjay.errors import DataError
from scrubjay.rooms.generate import split, type_of
from scrubjay.rooms.room import Thing
from scrubjay.sim.compile import compile_room
from scrubjay.sim.pose import CAMERA_STANDING, AgentPose, cameras
from scrubjay.sim.world import World
from scrubjay.study import static_labels as labels
from scrubjay.study.static_data import MASK, MIN_PIXELS, SIZE, TASKS, TYPE_NAMES, StaticData
from scrubjay.study.static_generate import SCALES, StaticScene, all_places, make_static_data
from scrubjay.viz.static_samples import write_samples_page
from scrubjay.workers.pool import ProcessWorkers

COUNTS = {"FloorPlan401": 6, "FloorPlan402": 4, "FloorPlan421": 2, "FloorPlan426": 2}


def looking_north(room, y: float):
    """The view of an agent that stands at (0, y), and its camera."""
    with World([room], renderer="warp") as world:
        world.set_agent_pose(0, AgentPose(0.0, y, 0.0, True))
        view = world.view(("depth", "ids", "normals"))
    eye, matrix = cameras(np.array([[0.0, y]]), np.zeros(1), np.ones(1, bool))
    return view, torch.from_numpy(eye).float(), torch.from_numpy(matrix).float()


def test_normals_are_in_the_cameras_axes(empty):
    """Looking 30 degrees down, the floor's normal is (0, cos 30, sin 30), that of the wall ahead (0, -1/2, cos 30)."""
    view, _, matrix = looking_north(empty, -1.5)
    normals = labels.camera_normals(view.normals, matrix)[0]
    assert normals[112, 112].numpy() == pytest.approx([0, np.sqrt(3) / 2, 0.5], abs=1e-3)
    assert normals[16, 112].numpy() == pytest.approx([0, -0.5, np.sqrt(3) / 2], abs=1e-3)
    left, right = normals[20, 3].numpy(), normals[20, 220].numpy()
    assert left == pytest.approx([1, 0, 0], abs=1e-3) and right == pytest.approx([-1, 0, 0], abs=1e-3)


def test_pixels_are_points_of_the_room(empty):
    """The middle of the image is where a ray 30 degrees down from 1.5765 m meets the floor, 2.73 m ahead."""
    view, eye, matrix = looking_north(empty, -1.5)
    points = labels.surface_points(view.depth, eye, matrix)[0]
    middle = points[111:113, 111:113].mean((0, 1)).numpy()
    assert middle == pytest.approx([0, -1.5 + CAMERA_STANDING / np.tan(np.radians(30)), 0], abs=0.01)
    wall = view.ids[0] == 1
    assert wall.any() and (points[wall][:, :2].abs().amax(-1) - 2).abs().max() < 0.01


def test_the_floor_is_traversable_where_a_body_gets(empty):
    """A body of radius 0.2 stands up to 1.8: it covers (1.9, -1.9), 0.14 from its axis, but not the corner."""
    floor = labels.walkable_floor(empty)

    def at(x, y):
        return floor[tuple(np.rint((np.array([x, y]) - empty.floor.origin) / 0.025).astype(int))]

    assert at(0, 0) and at(1.975, 0) and at(1.9, -1.9) and not at(1.975, 1.975)
    view, eye, matrix = looking_north(empty, -1.5)
    points = labels.surface_points(view.depth, eye, matrix)
    seen = labels.traversable(points, view.normals, view.depth, empty)
    inner = (view.ids == 0) & (points[..., :2].abs().amax(-1) < 1.9)
    assert inner.sum() > 10000 and seen[inner].all()
    assert not seen[view.ids != 0].any()


def test_a_gap_too_narrow_for_a_body_is_not_traversable():
    """Between a block from wall to wall and the north wall 0.3 m are left; a rug before it can be walked on."""
    room = compile_room(hut(
        Thing("Box_0", "Box", (0.0, 1.4, 0.0), 0, (3.98, 0.6, 0.5)),
        Thing("Rug_0", "Rug", (0.0, 0.0, 0.0), 0, (1.0, 0.8, 0.01)),
    ))  # fmt: skip
    view, eye, matrix = looking_north(room, -1.5)
    points = labels.surface_points(view.depth, eye, matrix)
    seen = labels.traversable(points, view.normals, view.depth, room)
    rug = (view.ids == 4) & (view.normals[..., 2] > 0.9)
    assert rug.sum() > 500 and seen[rug].all()
    assert (view.ids == 3).sum() > 500 and not seen[view.ids == 3].any()
    beyond = (view.ids == 0) & (points[..., 1] > 1.72)
    assert not seen[beyond].any()
    table = labels.walkable_floor(room)
    gap = np.rint((np.array([0.0, 1.85]) - room.floor.origin) / 0.025).astype(int)
    assert not table[tuple(gap)]


def test_openables_are_closed_or_open_and_objects_count_with_what_they_hold(chest):
    ids = torch.full((2, 4, 4), -1, dtype=torch.int16)
    ids[:, 0], ids[:, 1], ids[:, 2] = 3, 4, 0
    flags = labels.openability(ids, torch.tensor([[True, False], [False, False]]), chest)
    assert flags[:, :, 0].tolist() == [[2, 1, 0, 0], [1, 1, 0, 0]]
    counts = labels.pixel_counts(ids, chest)
    assert counts.tolist() == [[4, 0, 0, 4, 4]] * 2
    types = labels.type_counts(counts, chest)
    assert types[0, TYPE_NAMES.index("Drawer")] == 4 and types[0].sum() == 8
    room = compile_room(hut(Thing("Dresser_0", "Dresser", (0, 1, 0), 0, (1, 0.5, 0.6)),
                            Thing("Box_0", "Box", (0, 1, 0.6), 0, (0.2, 0.2, 0.2), inside="Dresser_0")))  # fmt: skip
    counts = np.array([[60, 0, 0, 30, 10], [60, 0, 0, 31, 10], [91, 0, 0, 0, 9]])
    assert labels.removable(counts, room, 10, 100).tolist() == [
        [False, False, False, True, True],
        [False, False, False, False, True],
        [False] * 5,
    ]
    ids = torch.tensor([[[3, 4], [0, -1]]] * 3, dtype=torch.int16)
    assert labels.mask_of(ids, np.array([3, 4, -1]), room).flatten(1).tolist() == [
        [True, True, False, False], [False, True, False, False], [False] * 4,
    ]  # fmt: skip


def test_places_are_used_once_and_doors_do_not_hit_the_agent(chest):
    places = all_places(chest, np.random.default_rng(0))
    rows = np.column_stack([places.position, places.rotation, places.standing])
    assert len(np.unique(rows, axis=0)) == len(rows) == 8 * len(chest.floor.reachable())
    assert not places.open[::2].any() and 0.45 < places.open[1::2].mean() < 0.55
    with World([chest], threads=1) as world:
        for row in np.flatnonzero(places.open.any(1)):
            world.state.open[0] = places.open[row]
            world.set_agent_pose(0, AgentPose(*places.position[row], 0.0, True))


def test_an_empty_room_has_the_depths_of_its_walls_and_no_objects(empty):
    with World([empty], 3, "warp", threads=1) as world:
        arrays = StaticScene(world, 0).make(5)
    index = arrays["index"]
    assert (
        (index["object"] == -1).all() and len(arrays["object_depth"]) == 0 and arrays["object_end"].tolist() == [0] * 5
    )
    ticks = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    rays = np.stack(np.broadcast_arrays(ticks[None], -ticks[:, None], -1.0), -1)
    for row, depth in zip(index, arrays["depth"], strict=True):
        place = np.array([[row["x"], row["y"]]])
        eye, matrix = cameras(place, np.array([float(row["rotation"])]), np.array([row["standing"]]))
        assert eye[0, 2] == pytest.approx(row["z"])
        way = rays @ matrix[0].T
        with np.errstate(divide="ignore"):
            ends = np.where(way > 0, (np.array([2, 2, 2.5]) - eye[0]) / way, (np.array([-2, -2, 0]) - eye[0]) / way)
        assert np.abs(ends.min(-1) - depth * 0.00025).max() < 0.02


def test_images_do_not_depend_on_how_many_are_rendered_at_once(chest):
    made = []
    for copies in (2, 5):
        with World([chest], copies, "warp", threads=1) as world:
            made.append(StaticScene(world, 3).make(7))
    assert (made[0]["index"]["object"] >= 0).any()
    assert all(np.array_equal(made[0][name], made[1][name]) for name in made[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of four bathrooms."""
    path = tmp_path_factory.mktemp("data") / "static"
    make_static_data(path, COUNTS)
    return path


@pytest.fixture(scope="module")
def data(folder):
    return StaticData(folder)


def test_every_task_has_its_labels(data):
    assert len(data) == 14 and data.split("train").tolist() == list(range(10))
    assert data.split("validation").tolist() == [10, 11] and data.split("test").tolist() == [12, 13]
    assert data.index["opened"].sum() == 7 and set(data.index["scene_type"]) == {"bathroom"}
    rows = np.array([11, 0, 5])
    assert data.images(rows).shape == (3, SIZE, SIZE, 3) and data.images(rows).dtype == np.uint8
    assert np.array_equal(data.images(rows)[1], data.images([0])[0])
    for task in TASKS:
        found = data.labels(task, data.usable(task, np.arange(14))[:3])
        shape = {"class": (3, 90), "normals": (3, SIZE, SIZE, 3), "object_normals": (3, SIZE, SIZE, 3)}
        assert found["target"].shape == shape.get(task, (3, SIZE, SIZE))
        assert all(found[name].dtype == bool for name in set(found) - {"target"})
        assert set(found) == {"target"} | ({"valid"} if "depth" in task or "normals" in task else set()) | (
            {"mask"} if "object" in task else set()
        )
    lengths = np.linalg.norm(data.labels("normals", rows)["target"], axis=-1)
    assert lengths == pytest.approx(1, abs=1e-5)
    assert set(np.unique(data.labels("openability", np.arange(14))["target"])) == {0, 1, 2}
    assert 0.02 < data.labels("traversable", np.arange(14))["target"].mean() < 0.6


def test_an_object_is_taken_out_of_its_mask_alone(data):
    rows = data.usable("object_depth", np.arange(14))
    assert len(rows) >= 7 and (data.index["object_type"][rows] != "").all()
    whole, without = data.labels("depth", rows), data.labels("object_depth", rows)
    normals, bare = data.labels("normals", rows), data.labels("object_normals", rows)
    mask = without["mask"]
    assert np.array_equal(mask, bare["mask"])
    share = mask.mean((1, 2))
    assert (share * SIZE**2 >= MIN_PIXELS).all() and (share <= 0.4).all()
    assert np.array_equal(whole["target"][~mask], without["target"][~mask])
    assert np.array_equal(normals["target"][~mask], bare["target"][~mask])
    behind = without["valid"] & mask
    assert (without["target"][behind] >= whole["target"][behind] - 0.001).all()
    assert (without["target"][behind] - whole["target"][behind]).mean() > 0.03
    ids = data.read("ids", rows)
    for i, row in enumerate(rows):
        assert mask[i][ids[i] == data.index["object"][row]].all()
    left = np.setdiff1d(np.arange(14), rows)
    assert not (data.read("flags", left) & MASK).any()
    if len(left):
        with pytest.raises(ValueError, match="choose rows with `usable`"):
            data.labels("object_depth", left)


def test_classes_are_what_covers_a_hundredth_of_the_image(data):
    rows = np.arange(14)
    assert len(data.classes) == len(set(data.classes)) == 90
    target, pixels = data.labels("class", rows)["target"], data.read("types", rows)
    often = (pixels[data.split("train")] >= MIN_PIXELS).sum(0)
    assert often[TYPE_NAMES.index(data.classes[0])] == often.max()
    for column, name in enumerate(data.classes):
        assert np.array_equal(target[:, column], pixels[:, TYPE_NAMES.index(name)] >= MIN_PIXELS)


def test_training_rows_come_equally_from_all_scenes_and_are_nested(data):
    rows = data.training_rows("depth", 6)
    assert np.array_equal(rows, data.training_rows("normals", 6))
    assert np.unique(data.index["scene"][rows], return_counts=True)[1].tolist() == [3, 3]
    assert set(data.training_rows("depth", 3)) < set(rows) < set(data.training_rows("depth", 9))
    assert data.training_rows("depth").tolist() == data.split("train").tolist()
    objects = data.training_rows("object_depth", 4)
    assert (data.index["object"][objects] >= 0).all()


def test_a_run_that_was_killed_continues_and_equals_an_unbroken_one(folder, tmp_path):
    """It is killed after the first scene, in the middle of the second."""

    def killed(done, total):
        if done:
            raise KeyboardInterrupt

    again = tmp_path / "again"
    with pytest.raises(KeyboardInterrupt):
        make_static_data(again, COUNTS, progress=killed)
    (again / ".FloorPlan402.partial").mkdir()
    (again / ".FloorPlan402.partial" / "rgb.npy").write_bytes(b"half")
    with pytest.raises(DataError, match="incomplete; run `scrubjay study data static` again"):
        StaticData(again)
    before = (again / "FloorPlan401" / "rgb.npy").stat().st_mtime_ns
    done = []
    with ProcessWorkers(1) as workers:
        make_static_data(again, COUNTS, progress=lambda *numbers: done.append(numbers), workers=workers)
    assert done == [(6, 14), (10, 14), (12, 14), (14, 14)]
    assert (again / "FloorPlan401" / "rgb.npy").stat().st_mtime_ns == before
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((folder / name).read_bytes() == (again / name).read_bytes() for name in files)


def test_a_disk_that_is_too_small_is_refused_before_anything_is_rendered(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=3e9))
    with pytest.raises(DataError, match=r"38,055 images need about 20\.5 GB, but only 3\.0 GB are free"):
        make_static_data(tmp_path / "static", SCALES["paper"].counts())


def test_the_page_of_samples_shows_all_labels(data, tmp_path):
    write_samples_page(data, tmp_path / "samples.html")
    page = (tmp_path / "samples.html").read_text()
    with_objects = sum(data.index["object"][[0, 1, 3, 5, 7, 9, 10, 11, 12, 13]] >= 0)
    assert page.count("<h2>") == 10 and page.count("<img") == 10 * 5 + 3 * with_objects
    for words in (
        "10 train, 2 validation, 2 test",
        "FloorPlan426, test",
        "depth without it",
        "traversable",
        "taken out: ",
    ):
        assert words in page


def test_wrong_folders_are_refused_in_a_sentence(folder, tmp_path):
    with pytest.raises(DataError, match="no data here; make it with `scrubjay study data static"):
        StaticData(tmp_path / "nowhere")
    with pytest.raises(DataError, match="made with other scenes, another seed or renderer"):
        make_static_data(folder, COUNTS, seed=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(DataError, match="neither empty nor a folder of data"):
        make_static_data(tmp_path / "full", COUNTS)
    with pytest.raises(ValueError, match="FloorPlan501: 3 images; foyers are for other experiments"):
        make_static_data(tmp_path / "foyer", {"FloorPlan501": 3})
    assert not (tmp_path / "foyer").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("data.json", '{"version": 0}', "data of version 0, not 1"),
        ("data.json", "[", "not a description of data"),
        ("data.json", '{"version": 1, "scenes": {"a": 0}}', "scenes must be numbers of images"),
        ("index.csv", "a,b\n", "the columns must be scene, scene_type"),
        ("FloorPlan402/depth.npy", "", "not a readable array"),
    ],
)
def test_broken_files_are_refused_in_a_sentence(folder, tmp_path, name, text, message):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / name).write_text(text)
    with pytest.raises(DataError, match=message):
        StaticData(copy)


def test_arrays_and_rows_that_do_not_fit_are_refused(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    lines = (copy / "index.csv").read_text().splitlines(keepends=True)
    (copy / "index.csv").write_text("".join(lines[:-1]))
    with pytest.raises(DataError, match=r"does not have the 14 images that data\.json lists"):
        StaticData(copy)
    (copy / "index.csv").write_text("".join(lines).replace(",True,", ",perhaps,", 1))
    with pytest.raises(DataError, match="not a row of an index"):
        StaticData(copy)
    (copy / "index.csv").write_text("".join(lines))
    np.save(copy / "FloorPlan402" / "flags.npy", np.zeros((3, SIZE, SIZE), np.uint8))
    with pytest.raises(DataError, match=r"uint8 \(3, 224, 224\) where uint8 \(4, 224, 224\) is expected"):
        StaticData(copy)


def test_wrong_rows_and_tasks_are_refused(data):
    for rows, message in (([14], "from 0 to 13"), ([-1], "from 0 to 13"), ([0.5], "whole number")):
        with pytest.raises(ValueError, match=message):
            data.images(rows)
    assert data.images([]).shape == (0, SIZE, SIZE, 3)
    with pytest.raises(ValueError, match="unknown task 'smell'"):
        data.labels("smell", [0])
    with pytest.raises(ValueError, match="unknown split 'exam'"):
        data.split("exam")


def test_the_papers_counts():
    counts = SCALES["paper"].counts()
    by_split = {
        name: [n for scene, n in counts.items() if split(scene) == name] for name in ("train", "validation", "test")
    }
    assert [(len(n), sum(n), min(n), max(n)) for n in by_split.values()] == [
        (80, 35855, 448, 449), (20, 1200, 60, 60), (20, 1000, 50, 50),
    ]  # fmt: skip
    mini = SCALES["mini"].counts()
    assert len(mini) == 16 and sum(mini.values()) == 120 and set(mini) < set(counts)
    assert (
        {type_of(scene) for scene in mini}
        == {type_of(scene) for scene in counts}
        == {"kitchen", "living_room", "bedroom", "bathroom"}
    )
