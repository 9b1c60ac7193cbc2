"""Image augmentation: on small pictures worked out by hand, against colorsys, and against three steps one by one;
and the GPU's kernels, run on the CPU, against all that."""

import colorsys

import numpy as np
import pytest
import torch
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from scrubjay.training import augmentation_warp
from scrubjay.training.augmentation import BATCH, SIZE, Augmentation, Jitter, color_matrices

NONE = Jitter(0, 0, 0, 0)
PLAIN = (1.0, 1.0, 1.0, 0.0)


def augmentation(crop=(0, 0, 0, 0), color=PLAIN, degrees=0.0, count: int = 1) -> Augmentation:
    """One that does what is said to every image, in pixels of SIZE."""
    made = Augmentation(count)
    made.crop[:], made.color[:], made.degrees[:] = crop, color, degrees
    made.upload()
    return made


def in_warp(made: Augmentation, images: torch.Tensor) -> torch.Tensor:
    """What the kernels for GPUs make of images."""
    return augmentation_warp.augment(images, made._geometry, made._colors, made._gray)


def assert_almost_equal(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """One grey level apart, where another order of rounding makes it so: in one of a thousand pixels, or two in all."""
    apart = (ours.int() - theirs.int()).abs()
    assert apart.max() <= 1
    assert apart.sum() <= 2 + apart.numel() / 1000


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, shape, np.uint8))


def smooth(size: int) -> torch.Tensor:
    """A picture without edges, (1, size, size, 3), in the middle of the range of colors."""
    y, x = np.mgrid[:size, :size] / size
    waves = np.stack([np.sin(5 * x + 2 * y), np.cos(4 * y), np.sin(3 * x - 4 * y)], -1)
    return torch.from_numpy((128 + 70 * waves).round().astype(np.uint8))[None]


@pytest.mark.parametrize("shape", [(224, 224), (56, 56), (5, 8)])
def test_draws_that_change_nothing_leave_images_as_they_are(shape):
    images = noise(3, *shape, 3)
    assert torch.equal(augmentation(count=3)(images), images)


def test_without_jitter_two_in_seven_games_are_unchanged():
    """Half have no crop; half, and a seventh of the others, have a rotation of 0."""
    made = Augmentation(400, seed=1, jitter=NONE)
    images = noise(400, 14, 14, 3)
    same = (made(images) == images).flatten(1).all(1).numpy()
    assert (same == ((made.crop == 0).all(1) & (made.degrees == 0))).all()
    assert same.mean() == pytest.approx(2 / 7, abs=0.07)


def test_draws_follow_the_paper():
    made = Augmentation(20000, seed=3)
    cropped = made.crop.any(1)
    assert cropped.mean() == pytest.approx(0.5, abs=0.02)
    values, counts = np.unique(made.crop[cropped], return_counts=True)
    assert values.tolist() == list(range(1, 11)) and counts.min() > 0.09 * counts.sum()
    assert np.corrcoef(made.crop[cropped].T) == pytest.approx(np.eye(4), abs=0.05)
    values, counts = np.unique(made.degrees, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert counts / 20000 == pytest.approx([1 / 14] * 3 + [8 / 14] + [1 / 14] * 3, abs=0.01)
    assert np.corrcoef(cropped, made.degrees != 0)[0, 1] == pytest.approx(0, abs=0.03)
    low, high = made.color.min(0), made.color.max(0)
    assert low == pytest.approx([0.9, 0.9, 0.9, -0.02], abs=0.001) and (low >= [0.9, 0.9, 0.9, -0.02]).all()
    assert high == pytest.approx([1.1, 1.1, 1.1, 0.02], abs=0.001) and (high <= [1.1, 1.1, 1.1, 0.02]).all()


def test_a_game_keeps_its_transform_until_it_is_resampled():
    """And others keep theirs when it is; the same seed draws the same."""
    made, twin, other = Augmentation(6, 5), Augmentation(6, 5), Augmentation(6, 6)
    images = noise(6, 28, 28, 3)
    first = made(images)
    assert torch.equal(made(images), first) and torch.equal(twin(images), first)
    assert not torch.equal(other(images), first)
    begun = np.array([False, True, False, False, True, False])
    made.resample(begun)
    made.resample(np.zeros(6, bool))
    assert ((made(images) == first).flatten(1).all(1).numpy() == ~begun).all()


def test_many_games_are_changed_one_by_one():
    """Whatever the chunk: each image as it would be alone."""
    count = BATCH + 3
    images, made = noise(count, 7, 7, 3), Augmentation(count, 2)
    changed = made(images)
    for game in (0, BATCH - 1, BATCH, count - 1):
        alone = augmentation(made.crop[game], made.color[game], made.degrees[game])
        assert torch.equal(alone(images[game : game + 1])[0], changed[game])


def test_a_crop_is_cut_and_resized():
    """As torch resizes what is left, at the full size; half as many pixels at half the size."""
    for size, (left, right, top, bottom) in ((SIZE, (3, 10, 1, 7)), (SIZE // 2, (2, 5, 1, 4))):
        image = noise(1, size, size, 3)
        rest = image[:, top : size - bottom, left : size - right].permute(0, 3, 1, 2).float()
        resized = functional.interpolate(rest, (size, size), mode="bilinear", align_corners=False)
        crop = np.array([left, right, top, bottom]) * SIZE // size
        ours = augmentation(crop)(image).permute(0, 3, 1, 2)
        assert (ours - resized).abs().max() <= 0.6


def test_sides_are_cut_where_they_should_be():
    """Of four columns one is cut off, and the three others are made four again."""
    image = torch.tensor([[0.0, 40, 80, 120]]).expand(4, 4)[None, :, :, None].expand(1, 4, 4, 3).to(torch.uint8)
    # The new columns' middles are at 3/8, 9/8, 15/8 and 21/8, those of the three that are left at 1/2, 3/2 and 5/2.
    row = [40, 40 + 5 / 8 * 40, 80 + 3 / 8 * 40, 120]
    left = augmentation((SIZE / 4, 0, 0, 0))(image)[0, :, :, 0]
    assert left.tolist() == [[round(value) for value in row]] * 4
    top = augmentation((0, 0, SIZE / 4, 0))(image.transpose(1, 2))[0, :, :, 0]
    assert torch.equal(top, left.T)
    right = augmentation((0, SIZE / 4, 0, 0))(image.flip(2))[0, :, :, 0]
    assert torch.equal(right, left.flip(1))
    bottom = augmentation((0, 0, 0, SIZE / 4))(image.transpose(1, 2).flip(1))[0, :, :, 0]
    assert torch.equal(bottom, left.T.flip(0))


def test_a_quarter_turn_is_counter_clockwise():
    image = noise(1, 8, 8, 3)
    assert torch.equal(augmentation(degrees=90)(image)[0], image[0].rot90(1))
    assert torch.equal(augmentation(degrees=-90)(image)[0], image[0].rot90(-1))


def test_a_wide_image_turns_about_its_center():
    """Of eight columns the middle four are turned into the picture; beside them it is black."""
    image = noise(1, 4, 8, 3)
    changed = augmentation(degrees=90)(image)[0]
    assert torch.equal(changed[:, 2:6], image[0, :, 2:6].rot90(1))
    assert not changed[:, :2].any() and not changed[:, 6:].any()


def test_what_comes_from_beyond_the_edges_is_black():
    """At 3 degrees the corners are, by arithmetic; the picture that is turned ends where it was cropped."""
    size = 112
    white = torch.full((1, size, size, 3), 255, dtype=torch.uint8)
    changed = augmentation((10, 10, 10, 10), degrees=3)(white)[0]
    turn = np.radians(3)
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    beyond = (np.abs(x * np.cos(turn) - y * np.sin(turn)) > size / 2) | (
        np.abs(x * np.sin(turn) + y * np.cos(turn)) > size / 2
    )
    assert 0.02 < beyond.mean() < 0.04
    assert (changed.numpy() == np.where(beyond, 0, 255)[:, :, None]).all()


PIXELS = [(200, 40, 60), (30, 180, 90), (60, 70, 190), (220, 200, 40), (120, 120, 120), (10, 20, 30)]


def colored(pixel, *color: float) -> np.ndarray:
    """A picture of one pixel's color alone, changed."""
    image = torch.tensor(pixel, dtype=torch.uint8).expand(1, 7, 7, 3)
    changed = augmentation(color=color)(image)
    assert (changed == changed[0, 0, 0]).all()
    return changed[0, 0, 0].numpy()


@pytest.mark.parametrize("pixel", PIXELS)
def test_brightness_is_the_value_of_hsv(pixel):
    hue, saturation, value = colorsys.rgb_to_hsv(*np.array(pixel) / 255)
    for factor in (0.9, 1.1):
        expected = 255 * np.array(colorsys.hsv_to_rgb(hue, saturation, factor * value))
        assert np.abs(colored(pixel, factor, 1, 1, 0) - expected).max() <= 0.51


@pytest.mark.parametrize("pixel", PIXELS)
def test_saturation_and_hue_change_the_plane_of_colors(pixel):
    """In yiq, brightness stays; the plane is stretched and turned."""
    y, i, q = colorsys.rgb_to_yiq(*np.array(pixel) / 255)
    for factor, hue in ((0.9, 0), (1.1, 0), (1, 0.02), (0.95, -0.02)):
        turned = complex(i, q) * factor * np.exp(-2j * np.pi * hue)
        expected = 255 * np.array(colorsys.yiq_to_rgb(y, turned.real, turned.imag))
        assert np.abs(colored(pixel, 1, 1, factor, hue) - expected).max() <= 0.51


def test_hue_goes_the_way_of_hsv():
    """A positive change goes from red towards yellow, by about as much as in HSV; greys stay."""
    for pixel in PIXELS[:4]:
        before = colorsys.rgb_to_hsv(*np.array(pixel) / 255)
        for hue in (-0.02, 0.02):
            after = colorsys.rgb_to_hsv(*colored(pixel, 1, 1, 1, hue) / 255)
            assert 0.3 < ((after[0] - before[0] + 0.5) % 1 - 0.5) / hue < 2
    assert colored((120, 120, 120), 1, 1, 1.1, 0.02).tolist() == [120, 120, 120]


def test_contrast_is_about_the_mean_grey():
    """Half black, half (200, 100, 0): the mean grey is (0.3 200 + 0.59 100) / 2 = 59.5; 10 % nearer to it."""
    image = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
    image[:, :, 4:] = torch.tensor([200, 100, 0], dtype=torch.uint8)
    changed = augmentation(color=(1, 0.9, 1, 0))(image)[0]
    assert (changed[:, :4] == 6).all()
    assert (changed[:, 4:] == torch.tensor([186, 96, 6])).all()


def test_colors_end_at_black_and_white():
    image = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
    image[:, :, 4:] = 250
    changed = augmentation(color=(1.1, 1.1, 1, 0))(image)[0]
    assert not changed[:, :4].any() and (changed[:, 4:] == 255).all()


@pytest.mark.parametrize("degrees", [-3, 2])
def test_it_is_one_step_after_another(degrees):
    """R after J after C, each alone, with a picture of whole numbers between them."""
    image, crop, color = smooth(SIZE), (4, 9, 2, 7), (1.05, 0.92, 1.08, 0.015)
    at_once = augmentation(crop, color, degrees)(image)
    steps = image
    for step in (augmentation(crop), augmentation(color=color), augmentation(degrees=degrees)):
        steps = step(steps)
    assert (at_once.int() - steps.int()).abs().max() <= 3
    assert (at_once.int() - steps.int()).abs().float().mean() < 0.6
    wrong = augmentation(crop)(augmentation(degrees=degrees)(augmentation(color=color)(image)))
    assert (at_once.int() - wrong.int()).abs().max() > 20


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_grey_stays_grey(seed, grey):
    """Whatever is drawn: an even grey is made brighter or darker and nothing else, but for black corners."""
    made = Augmentation(3, seed)
    changed = made(torch.full((3, 28, 28, 3), grey, dtype=torch.uint8)).numpy()
    expected = np.minimum(255, made.color[:, 0] * grey)[:, None, None, None]
    black = (changed == 0).all(-1, keepdims=True)
    assert (black | (np.abs(changed - expected) <= 0.51)).all()
    assert black[made.degrees == 0].sum() == 0 or grey == 0


def test_matrices_leave_the_brightness_to_the_first_two():
    color = np.array([[1.1, 0.9, 0.8, 0.3], [0.7, 1.0, 1.3, -0.1]])
    grey = np.array([0.30, 0.59, 0.11]) @ color_matrices(color)
    assert grey == pytest.approx(np.array([0.99, 0.7])[:, None] * [0.30, 0.59, 0.11], abs=1e-9)


@pytest.mark.parametrize("size", [112, 224])
def test_kernels_do_what_torch_does(size):
    """Games drawn as they are drawn in training."""
    made, images = Augmentation(32, 8), noise(32, size, size, 3)
    assert made.crop.any(1).sum() > 8 and (made.degrees != 0).sum() > 8
    assert_almost_equal(in_warp(made, images), made(images))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(112, 112), (224, 224), (5, 8), (61, 37), (1, 300)]),
    st.tuples(*[st.integers(0, 60)] * 4),
    st.tuples(st.floats(0.1, 1.9), st.floats(0.1, 1.9), st.floats(0.1, 1.9), st.floats(-0.5, 0.5)),
    st.integers(-180, 180),
    st.integers(0, 99),
)
def test_kernels_do_what_torch_does_however_far_it_goes(shape, crop, color, degrees, seed):
    made, images = augmentation(crop, color, degrees, 2), noise(2, *shape, 3, seed=seed)
    images[1] = smooth(max(shape))[0, : shape[0], : shape[1]]
    assert_almost_equal(in_warp(made, images), made(images))


@pytest.mark.parametrize("shape", [(224, 224), (112, 112), (5, 8)])
def test_kernels_leave_what_does_not_change(shape):
    images = noise(3, *shape, 3)
    assert torch.equal(in_warp(augmentation(count=3), images), images)


def test_kernels_change_images_one_by_one():
    """Each as it would be alone and as it would be a second time, to the last bit; other strides are as good."""
    made, images = Augmentation(5, 2), noise(5, 90, 80, 3)
    changed = in_warp(made, images)
    assert torch.equal(in_warp(made, images), changed)
    for game in range(5):
        alone = augmentation(made.crop[game], made.color[game], made.degrees[game])
        assert torch.equal(in_warp(alone, images[game : game + 1])[0], changed[game])
    flipped = images.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    assert not flipped.is_contiguous() and torch.equal(in_warp(made, flipped), changed)


def test_kernels_add_up_in_blocks_of_threads(monkeypatch):
    """As on a GPU, where many threads share a band; on a CPU it is one thread, unless it is asked for more."""
    made, images = Augmentation(6, 7), noise(6, 112, 100, 3)
    expected = in_warp(made, images)
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)
    assert torch.equal(in_warp(made, images), expected)


def test_kernels_take_the_mean_of_what_is_seen():
    """Turned by 45 degrees a square of (200, 100, 0) loses its corners, but its mean grey stays 119: 10 % nearer."""
    image = torch.tensor([200, 100, 0], dtype=torch.uint8).expand(1, 96, 96, 3)
    changed = in_warp(augmentation(color=(1, 0.9, 1, 0), degrees=45), image)[0]
    seen = changed.sum(-1) > 0
    assert 0.8 < seen.float().mean() < 0.85
    assert (changed[seen] == torch.tensor([192, 102, 12])).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("size", [56, 112, 224])
def test_on_a_gpu_it_is_the_same(size):
    images, made = noise(40, size, size, 3), Augmentation(40, 4, "cuda")
    theirs = made(images.cuda())
    assert theirs.device.type == "cuda"
    assert_almost_equal(Augmentation(40, 4)(images), theirs.cpu())
    assert all(torch.equal(made(images.cuda()), theirs) for _ in range(5))
    made.color[:], made.crop[:], made.degrees[:] = PLAIN, 0, 0
    made.upload()
    assert torch.equal(made(images.cuda()).cpu(), images)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="recording needs a GPU")
def test_on_a_gpu_it_can_be_recorded():
    """Without a try before; what is recorded reads new images and new draws, and leaves nothing for the next time."""
    made, images = Augmentation(40, 4, "cuda"), noise(40, 112, 112, 3).cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = made(images)
    for seed in range(3):
        images.copy_(noise(40, 112, 112, 3, seed=seed))
        made.resample(np.arange(40) % 3 == seed)
        graph.replay()
        assert torch.equal(recorded, made(images))


def test_bad_arguments():
    made = Augmentation(2)
    for images in (noise(3, 7, 7, 3), noise(2, 7, 7, 4), noise(2, 7, 7), noise(2, 7, 7, 3).float()):
        with pytest.raises(ValueError, match=r"uint8 \(2, height, width, 3\)"):
            made(images)
    with pytest.raises(ValueError, match="images are on meta, the augmentation is on cpu"):
        made(noise(2, 7, 7, 3).to("meta"))
    for games in (np.ones(3, bool), np.ones(2, int)):
        with pytest.raises(ValueError, match=r"games: must be bool \(2,\)"):
            made.resample(games)
    with pytest.raises(ValueError, match="count: must be at least 1"):
        Augmentation(0)
    with pytest.raises(ValueError, match=r"contrast: must be in \[0, 1\)"):
        Jitter(contrast=1.5)
