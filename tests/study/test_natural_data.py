"""Readers of natural images: what they give, and what they refuse before anything is computed."""

import numpy as np
import pytest
from PIL import Image
from study.natural_folders import CLASSES, noise, room, write_nyu, write_sun, write_virb

from scrubjay.errors import DataError
from scrubjay.study import natural_nyu, natural_sun
from scrubjay.study.natural_data import SPLITS, halve
from scrubjay.study.natural_nyu import NyuFolders, NyuMat, nyu_source
from scrubjay.study.natural_sun import Sun
from scrubjay.study.pictures import read_picture, resize_labels


def test_the_scenes_of_sun397_are_read_whatever_their_format(tmp_path):
    data = Sun(write_sun(tmp_path / "sun")).load(tmp_path / "store")
    assert data.classes == CLASSES and data.broken == ()
    assert [data[split].images.shape[:2] for split in SPLITS] == [(3, 256), (3, 224), (6, 224)]
    assert data["test"].target.tolist() == [0, 0, 1, 1, 2, 2]
    for split in ("train", "validation"):
        assert data[split].target.tolist() == [0, 1, 2], "one of each class validates"
    # The picture is a GIF and a BMP behind the name .jpg.
    first = read_picture(tmp_path / "sun" / CLASSES[0] / "sun_2.jpg")
    assert first.shape == (40, 40, 3)
    np.testing.assert_array_equal(
        data["test"].images[0], read_picture(tmp_path / "sun" / CLASSES[0] / "sun_2.jpg", 224)
    )


def test_pictures_are_decoded_once(tmp_path):
    source = Sun(write_sun(tmp_path / "sun"))
    first = source.load(tmp_path / "store")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.npy")}
    seen = []
    again = Sun(tmp_path / "sun").load(tmp_path / "store", lambda *numbers: seen.append(numbers))
    assert again.digest == first.digest and not seen
    assert {path: path.stat().st_mtime_ns for path in before} == before
    next(iter(before)).write_bytes(b"no array")
    with pytest.raises(DataError, match="damaged; delete the folder"):
        source.load(tmp_path / "store")


def test_an_interrupted_decoding_starts_again(tmp_path):
    source = Sun(write_sun(tmp_path / "sun"))

    def interrupt(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        source.load(tmp_path / "store", interrupt)
    assert len(source.load(tmp_path / "store")["test"]) == 6


def test_trials_read_a_few_classes_and_pictures(tmp_path):
    data = Sun(write_sun(tmp_path / "sun", train=5, test=3), classes=2, per_class=3).load(tmp_path / "store")
    assert data.classes == CLASSES[:2]
    assert [len(data[split]) for split in SPLITS] == [4, 2, 6]


def test_a_tenth_of_each_class_validates(tmp_path):
    source = Sun(write_sun(tmp_path / "sun", train=20, test=1))
    assert [len(source.lines[split]) for split in SPLITS] == [54, 6, 3]
    assert sorted(name for name, _ in source.lines["validation"]) == sorted(2 * CLASSES)
    assert not set(source.lines["train"]) & set(source.lines["validation"])


def test_undecodable_pictures_are_left_out_up_to_a_limit(tmp_path, monkeypatch):
    folder = write_sun(tmp_path / "sun")
    (folder / CLASSES[1] / "sun_3.jpg").write_bytes(b"no picture")
    data = Sun(folder).load(tmp_path / "store")
    assert data.broken == (f"{CLASSES[1]}/sun_3.jpg",)
    assert data["test"].target.tolist() == [0, 0, 1, 2, 2]
    monkeypatch.setattr(natural_sun, "BROKEN_LIMIT", 0)
    with pytest.raises(DataError, match=r"more than 0 pictures cannot be decoded, as k/kitchen/sun_3\.jpg"):
        Sun(folder).load(tmp_path / "other")
    assert not list((tmp_path / "other").iterdir())


def test_a_truncated_picture_is_undecodable(tmp_path):
    path = write_sun(tmp_path / "sun") / CLASSES[0] / "sun_1.jpg"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"sun_1\.jpg: not a picture, or a broken one"):
        read_picture(path)


def test_a_class_whose_pictures_are_all_broken_is_refused(tmp_path):
    folder = write_sun(tmp_path / "sun")
    for number in (2, 3):
        (folder / CLASSES[0] / f"sun_{number}.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="no picture of a/abbey to test can be decoded"):
        Sun(folder).load(tmp_path / "store")


def edit(path, change):
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: edit(f / "Testing_01.txt", lambda t: t.replace("/k/kitchen/sun_2.jpg\n/k/kitchen/sun_3.jpg\n", "")),
         r"Testing_01\.txt lacks 1 of 3 classes, as k/kitchen"),
        (lambda f: (f / "a/abbey/sun_0.jpg").unlink(), r"names 1 pictures that are not there, as a/abbey/sun_0"),
        (lambda f: (f / "Training_01.txt").unlink(), r"no Training_01\.txt, which is in SUN397's Partitions\.zip"),
        (lambda f: edit(f / "Testing_01.txt", lambda t: t + "/a/abbey/sun_0.jpg\n"), "is in both lists"),
        (lambda f: edit(f / "Testing_01.txt", lambda t: t + t), "listed twice"),
        (lambda f: (f / "Testing_01.txt").write_text("\n"), "the list is empty"),
        (lambda f: (f / "Testing_01.txt").write_text("abbey.jpg\n"), "'abbey.jpg' is not a path as /a/abbey/sun_x.jpg"),
        (lambda f: edit(f / "Testing_01.txt", lambda t: t + "/../../secret.jpg\n"), "is not a path as"),
        (lambda f: edit(f / "Training_01.txt", lambda t: t.replace("/a/abbey/sun_1.jpg\n", "")),
         "a/abbey needs two training pictures or more"),
        (lambda f: (f / "ClassName.txt").write_text("/a/abbey\n/k/kitchen\n"),
         "has the class o/outhouse/outdoor, which is not in ClassName.txt"),
        (lambda f: (f / "ClassName.txt").write_text("/a/abbey\n/k/kitchen\n/o/outhouse/outdoor\n/z/zoo\n"),
         "lacks 1 of 4 classes, as z/zoo"),
    ],
)  # fmt: skip
def test_wrong_folders_of_sun397_are_one_sentence(tmp_path, change, message):
    folder = write_sun(tmp_path / "sun")
    change(folder)
    with pytest.raises(DataError, match=message):
        Sun(folder)


def test_lists_may_be_beside_the_folder(tmp_path):
    folder = write_sun(tmp_path / "sun")
    (tmp_path / "Partitions").mkdir()
    for name in ("Training_01.txt", "Testing_01.txt"):
        (folder / name).rename(tmp_path / "Partitions" / name)
    assert len(Sun(folder).lines["test"]) == 6
    with pytest.raises(DataError, match="no such folder"):
        Sun(tmp_path / "nothing")


def test_test_images_are_halved_as_in_the_published_lists():
    validation, test = halve(654)
    # NYUv2's first test pictures are 1, 2, 9, 14 to 18 and 21; of these 1, 2, 9, 15, 16, 18, 21 validate.
    assert validation[:7] == [0, 1, 2, 4, 5, 7, 8] and test[:2] == [3, 6]
    assert len(validation) == len(test) == 327 and not set(validation) & set(test)
    assert [len(part) for part in halve(3)] == [1, 2]


def depths(count: int = 4) -> np.ndarray:
    """Depths (n, 30, 40): the picture's number from 1, a meter more in the lower half, none in the first column."""
    depth = np.arange(1, count + 1, dtype=np.float32)[:, None, None] + np.zeros((1, 30, 40), np.float32)
    depth[:, 15:] += 1
    depth[:, :, 0] = 0
    return depth


def test_the_labelled_mat_file_of_nyu_has_its_axes_reversed(tmp_path):
    pytest.importorskip("h5py")
    source = nyu_source(write_nyu(tmp_path / "nyu", depths()), "depth")
    assert isinstance(source, NyuMat)
    data = source.load(tmp_path)
    assert [len(data[split]) for split in SPLITS] == [1, 1, 2]
    # Of the test pictures 2, 3, 4 one validates: the draw of `halve`.
    (validation,), test = halve(3)
    assert data["validation"].target[0, 0, 100] == 2 + validation
    assert data["test"].target[:, 0, 100].tolist() == [2.0 + place for place in test]
    target = data["train"].target[0]
    assert target.shape == (224, 224) and not target[:, :5].any() and target[0, 6] == 1 and target[-1, 6] == 2
    # Rows are rows: the upper left pixels are those of the picture.
    np.testing.assert_allclose(data["train"].images[0, :10, :10].mean((0, 1)), noise(0, 30, 40)[0, 0], atol=1)
    assert nyu_source(tmp_path / "nyu" / "nyu_depth_v2_labeled.mat", "depth").load(tmp_path).digest == data.digest


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ((1,), (2, 3, 5), "testNdxs names picture 5, but there are 1 to 4"),
        ((0,), (2, 3, 4), "trainNdxs names picture 0"),
        ((1, 2), (2, 3, 4), "listed twice"),
        ((1, 2), (3, 4), "2 test pictures; three or more are needed"),
    ],
)
def test_wrong_splits_of_nyu_are_one_sentence(tmp_path, train, test, message):
    pytest.importorskip("h5py")
    folder = write_nyu(tmp_path / "nyu", depths(), train, test)
    with pytest.raises(DataError, match=message):
        nyu_source(folder, "depth")


def test_wrong_mat_files_are_one_sentence(tmp_path):
    h5py = pytest.importorskip("h5py")
    folder = write_nyu(tmp_path / "nyu", depths())
    (folder / "splits.mat").rename(folder / "away.mat")
    with pytest.raises(DataError, match=r"no splits\.mat beside it"):
        nyu_source(folder, "depth")
    (folder / "splits.mat").write_bytes(b"no lists")
    with pytest.raises(DataError, match=r"splits\.mat: not a \.mat file, or damaged"):
        nyu_source(folder, "depth")
    path = folder / "nyu_depth_v2_labeled.mat"
    with h5py.File(path, "a") as file:
        del file["depths"]
        file["depths"] = np.zeros((4, 40, 29))
    with pytest.raises(DataError, match="do not fit together"):
        NyuMat(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="or damaged"):
        NyuMat(path)


def test_a_picture_without_any_depth_is_refused(tmp_path):
    pytest.importorskip("h5py")
    depth = depths()
    depth[2] = np.nan
    with pytest.raises(DataError, match="3 has no depth at all"):
        nyu_source(write_nyu(tmp_path / "nyu", depth), "depth").load(tmp_path)


def test_without_h5py_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(DataError, match=r"pip install scrubjay\[natural\]"):
        natural_nyu.NyuMat(tmp_path / "nyu_depth_v2_labeled.mat")


def test_virb_folders_give_depth_and_walkable_surfaces(tmp_path):
    folder = write_virb(tmp_path / "virb" / "nyu")
    (folder / "test" / "walkable" / "000002.png").unlink()
    depth = nyu_source(folder, "depth").load(tmp_path)
    walkable = nyu_source(tmp_path / "virb", "walkable").load(tmp_path)
    assert [len(depth[split]) for split in SPLITS] == [2, 2, 2]
    assert [len(walkable[split]) for split in SPLITS] == [2, 1, 2], "pictures without a label are left out"
    assert walkable["test"].target.dtype == bool
    assert not walkable["test"].target[:, :128].any() and walkable["test"].target[:, 128:].all()
    expected = resize_labels(1 + room(0)[..., 0] / 255, 224)
    np.testing.assert_allclose(depth["train"].target[0], expected, rtol=1e-6)


def test_depths_in_16_bits_are_millimeters(tmp_path):
    folder = write_virb(tmp_path / "nyu")
    for path in (folder / "train" / "depths").iterdir():
        Image.fromarray(np.full((28, 28), 2500, np.uint16)).save(path.with_suffix(".png"))
        path.unlink()
    assert (NyuFolders(folder, "depth").load(tmp_path)["train"].target == 2.5).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "train/images/000001.png").unlink(), r"1 labels have no picture, as 000001\.png"),
        (lambda f: (f / "test/walkable").rename(f / "away"), "test: needs the folders images and walkable"),
        (lambda f: [path.unlink() for path in (f / "train/walkable").iterdir()], "walkable: no pictures in it"),
        (lambda f: (f / "test/images/000000.png").write_bytes(b"?"), r"000000\.png: not a picture, or a broken one"),
        (lambda f: (f / "test/walkable/000000.png").write_bytes(b"?"), r"000000\.png: not a picture, or a broken one"),
        (lambda f: Image.new("L", (20, 10)).save(f / "test/walkable/000003.png"),
         r"000003\.png: 20 x 10 pixels, but its picture has 28 x 28"),
        (lambda f: [(f / f"test/walkable/00000{number}.png").unlink() for number in (0, 1)], "2 test pictures; three"),
    ],
)  # fmt: skip
def test_wrong_folders_of_walkable_surfaces_are_one_sentence(tmp_path, change, message):
    folder = write_virb(tmp_path / "nyu")
    change(folder)
    with pytest.raises(DataError, match=message):
        NyuFolders(folder, "walkable").load(tmp_path)


def test_depths_in_8_bits_are_refused(tmp_path):
    folder = write_virb(tmp_path / "nyu")
    Image.new("L", (28, 28), 7).save(folder / "train" / "depths" / "000000.tiff")
    with pytest.raises(DataError, match="floating point numbers in meters or 16 bits in millimeters"):
        NyuFolders(folder, "depth").load(tmp_path)
