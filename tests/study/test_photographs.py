"""Depth in photographs: what packages carry, what a study's decoders predict, and what is refused."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image
from study.natural_folders import noise

from scrubjay.cli.main import main
from scrubjay.errors import DataError, EncoderError
from scrubjay.study import photographs
from scrubjay.study.encoders import load_encoder
from scrubjay.study.photographs import (
    MOST,
    center,
    depth_decoders,
    own_photographs,
    packaged_photographs,
    predict_depth,
    rank_correlation,
)
from scrubjay.study.probe import Examples, ProbeConfig, predict
from scrubjay.study.probe_files import load_probe
from scrubjay.study.static import PLAIN, WITH_SKIPS, StaticScale, StaticStudy
from scrubjay.study.static_data import StaticData
from scrubjay.study.static_generate import make_static_data
from scrubjay.viz.photographs import write_photographs_page

COUNTS = {"FloorPlan401": 2, "FloorPlan421": 1, "FloorPlan426": 2}
needs_skimage = pytest.mark.skipif(find_spec("skimage") is None, reason="scikit-image is not installed")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A study of depth on five images."""
    folder = tmp_path_factory.mktemp("photographs")
    make_static_data(folder / "data", COUNTS)
    scale = StaticScale(ProbeConfig(size=14, max_epochs=1), training_images=2)
    StaticStudy(StaticData(folder / "data"), [load_encoder("random")], folder, scale, tasks=("depth",)).run()
    return folder


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(noise(number, 30 + 10 * number, 40)).save(folder / f"{number}.png")
    (folder / "notes.txt").write_text("not a picture")
    return folder


def write_opencv(folder):
    """OpenCV's stereo pair, with disparities 10, 20 and, for a column, none."""
    disparity = np.full((60, 80), 20, np.uint8)
    disparity[:, 40:] = 10
    disparity[:, 12] = 0
    Image.fromarray(noise(1, 60, 80)).save(folder / "aloeL.jpg")
    Image.fromarray(disparity).save(folder / "aloeGT.png")
    return folder


@needs_skimage
def test_the_motorcycle_has_its_measured_depth(tmp_path):
    found = {photograph.name: photograph for photograph in packaged_photographs(tmp_path)}
    assert list(found) == ["motorcycle", "coffee", "chelsea", "astronaut"]
    assert all(each.image.shape == (224, 224, 3) and each.licence for each in found.values())
    assert found["coffee"].depth is None
    depth = found["motorcycle"].depth
    # The engine is about two and a half meters away, the far wall less than six.
    assert 0.9 < (depth > 0).mean() < 0.95
    assert 2 < depth[120, 110] < 3 and depth[depth > 0].min() > 1.9 and depth.max() < 6
    with np.load(photographs._skimage_data() / "motorcycle_disp.npz") as file:
        disparity = center(file["arr_0"])
    row, column = (int((place + 0.5) * 500 / 224) for place in (120, 110))
    assert depth[120, 110] == pytest.approx(994.978 * 0.193001 / (disparity[row, column] + 31.086), rel=1e-5)


def test_depth_without_a_calibration_is_inverse_disparity(tmp_path, monkeypatch):
    monkeypatch.setattr(photographs, "_skimage_data", lambda: None)
    (aloe,) = packaged_photographs(write_opencv(tmp_path))
    values = sorted(set(np.round(aloe.depth.ravel(), 4).tolist()))
    # The left half, less its unknown column, is the smaller half: the median is the right half's.
    assert values == pytest.approx([0, 1.5, 3])
    assert "scale is unknown" in aloe.note


def test_without_packages_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(photographs, "_skimage_data", lambda: None)
    with pytest.raises(DataError, match=r"pip install scrubjay\[natural\]"):
        packaged_photographs(tmp_path)


def test_pictures_of_ones_own_are_central_squares_and_upright(pictures):
    path = pictures / "held.jpg"
    sideways = Image.fromarray(np.repeat(np.array([[[0] * 3], [[250] * 3]], np.uint8), 40, 1).repeat(20, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # Turn by 90 degrees clockwise to see it upright.
    sideways.save(path, exif=exif)
    found = own_photographs(pictures)
    assert [each.name for each in found] == ["0.png", "1.png", "2.png", "held.jpg"]
    assert all(each.image.shape == (224, 224, 3) and each.depth is None for each in found)
    assert found[3].image[:, :100].mean() > 200 > 50 > found[3].image[:, 124:].mean()
    square = noise(0, 30, 40)[:, 5:35]
    np.testing.assert_array_equal(found[0].image[::112, ::112][0, 0], square[0, 0])


def test_a_folder_of_too_many_pictures_is_cut_and_a_wrong_one_is_refused(pictures, tmp_path):
    for number in range(MOST):
        Image.new("RGB", (8, 8)).save(pictures / f"more-{number:03d}.png")
    assert len(own_photographs(pictures)) == MOST
    (pictures / "0.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"0\.png: not a picture, or a broken one"):
        own_photographs(pictures)
    (tmp_path / "empty").mkdir()
    for folder, message in (("empty", "no pictures in it"), ("none", "no such folder")):
        with pytest.raises(DataError, match=message):
            own_photographs(tmp_path / folder)


def test_the_decoders_of_a_study_predict_depth(results, pictures):
    encoder, found = load_encoder("random"), own_photographs(pictures)
    decoders = depth_decoders(results, [encoder])
    assert list(decoders) == [PLAIN, WITH_SKIPS] and all("random" in files for files in decoders.values())
    images = StaticData(results / "data").images(np.arange(3))
    rendered = [photographs.Photograph("", image, "") for image in images]
    for files in decoders.values():
        assert predict_depth(files["random"], encoder, found).shape == (3, 14, 14)
    # On a rendered image it is what the study's own decoder says.
    sir = load_encoder("random")(photographs.to_device(images, "cpu")).sir.bfloat16()
    labels = {"target": np.zeros((3, 14, 14), np.float32)}
    expected = predict(load_probe(decoders[PLAIN]["random"]), Examples(sir, labels))
    np.testing.assert_allclose(predict_depth(decoders[PLAIN]["random"], encoder, rendered), expected, atol=1e-5)


def test_encoders_without_a_decoder_are_refused(results, tmp_path):
    with pytest.raises(DataError, match="no depth decoder of random:1, but of random"):
        depth_decoders(results, [load_encoder("random:1")])
    with pytest.raises(DataError, match=r"no probes\.json"):
        depth_decoders(tmp_path, [load_encoder("random")])
    other = load_encoder("random:1")
    object.__setattr__(other.description, "name", "random")
    with pytest.raises(EncoderError, match="random has other weights now"):
        depth_decoders(results, [other])


def test_correlation_is_that_of_ranks_where_depth_is_known():
    depth = np.array([[1.0, 2.0], [0.0, 9.0]], np.float32)
    assert rank_correlation(np.array([[1, 10], [1000, 100]], np.float32), depth) == 1
    assert rank_correlation(np.array([[3, 2], [-5, 1]], np.float32), depth) == -1
    # Ranks 1, 2, 3 and 2, 1, 3: 1 - 6 * 2 / (3 * 8).
    assert rank_correlation(np.array([[2, 1], [0, 3]], np.float32), depth) == pytest.approx(0.5)
    assert np.isnan(rank_correlation(np.ones((2, 2), np.float32), depth))


def test_the_page_shows_every_prediction_with_its_licence(pictures, tmp_path):
    found = own_photographs(pictures)
    depth = np.linspace(1, 5, 224 * 224, dtype=np.float32).reshape(224, 224)
    found.append(photographs.Photograph("wall", found[0].image, "CC0", depth, "by hand"))
    maps = np.tile(depth[::16, ::16], (4, 1, 1))
    depths = {PLAIN: {"one": maps, "two": -maps}, WITH_SKIPS: {"two": 0 * maps}}
    write_photographs_page(tmp_path / "page.html", found, depths, "four photographs")
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/png;base64,") == 1 + 4 * 4 + 1
    for words in ("four photographs", "Licence: CC0.", "Licence: yours.", "one: +1.00", "two: -1.00", "two: constant"):
        assert words in page
    assert page.count("<td>wall</td>") == 3


def test_the_command_writes_a_page(results, pictures, tmp_path, monkeypatch, capsys):
    words = ["--results", results, "--encoders", "random", "--images", pictures, "--out", tmp_path / "page.html"]
    monkeypatch.setattr(sys, "argv", ["scrubjay", "study", "photographs", *map(str, words)])
    main()
    assert capsys.readouterr().out.strip() == str(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("data:image/png;base64,") == 1 + 3 * 3
