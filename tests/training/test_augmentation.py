"""Image augmentation: on small images worked out by hand, against colorsys, and against its three steps one by one.

The GPU's kernels run on the CPU here and are compared with the torch implementation.
"""

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


def fixed_transform(crop=(0, 0, 0, 0), color=PLAIN, degrees=0.0, count: int = 1) -> Augmentation:
    """The same given transform for every image, in pixels of SIZE."""
    transform = Augmentation(count)
    transform.crop[:], transform.color[:], transform.degrees[:] = crop, color, degrees
    transform.upload()
    return transform


def augment_in_warp(transform: Augmentation, images: torch.Tensor) -> torch.Tensor:
    """Augments images with the GPU kernels."""
    return augmentation_warp.augment(images, transform._geometry, transform._colors, transform._gray)


def assert_almost_equal(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Equal up to rounding: one level apart in at most one of a thousand values, or two in all."""
    apart = (ours.int() - theirs.int()).abs()
    assert apart.max() <= 1
    assert apart.sum() <= 2 + apart.numel() / 1000


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, shape, np.uint8))


def smooth(size: int) -> torch.Tensor:
    """An image (1, size, size, 3) without edges and far from black and white."""
    y, x = np.mgrid[:size, :size] / size
    waves = np.stack([np.sin(5 * x + 2 * y), np.cos(4 * y), np.sin(3 * x - 4 * y)], -1)
    return torch.from_numpy((128 + 70 * waves).round().astype(np.uint8))[None]


@pytest.mark.parametrize("shape", [(224, 224), (56, 56), (5, 8)])
def test_the_identity_leaves_images_unchanged(shape):
    images = noise(3, *shape, 3)
    assert torch.equal(fixed_transform(count=3)(images), images)


def test_without_jitter_two_in_seven_games_are_unchanged():
    """Half have no crop; half, and a seventh of the others, have a rotation of 0."""
    transform = Augmentation(400, seed=1, jitter=NONE)
    images = noise(400, 14, 14, 3)
    same = (transform(images) == images).flatten(1).all(1).numpy()
    assert (same == ((transform.crop == 0).all(1) & (transform.degrees == 0))).all()
    assert same.mean() == pytest.approx(2 / 7, abs=0.07)


def test_transforms_are_sampled_as_in_the_paper():
    transform = Augmentation(20000, seed=3)
    cropped = transform.crop.any(1)
    assert cropped.mean() == pytest.approx(0.5, abs=0.02)
    values, counts = np.unique(transform.crop[cropped], return_counts=True)
    assert values.tolist() == list(range(1, 11)) and counts.min() > 0.09 * counts.sum()
    assert np.corrcoef(transform.crop[cropped].T) == pytest.approx(np.eye(4), abs=0.05)
    values, counts = np.unique(transform.degrees, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert counts / 20000 == pytest.approx([1 / 14] * 3 + [8 / 14] + [1 / 14] * 3, abs=0.01)
    assert np.corrcoef(cropped, transform.degrees != 0)[0, 1] == pytest.approx(0, abs=0.03)
    low, high = transform.color.min(0), transform.color.max(0)
    assert low == pytest.approx([0.9, 0.9, 0.9, -0.02], abs=0.001) and (low >= [0.9, 0.9, 0.9, -0.02]).all()
    assert high == pytest.approx([1.1, 1.1, 1.1, 0.02], abs=0.001) and (high <= [1.1, 1.1, 1.1, 0.02]).all()


def test_a_game_keeps_its_transform_until_it_is_resampled():
    """Other games keep theirs; the same seed samples the same."""
    transform, twin, other = Augmentation(6, 5), Augmentation(6, 5), Augmentation(6, 6)
    images = noise(6, 28, 28, 3)
    first = transform(images)
    assert torch.equal(transform(images), first) and torch.equal(twin(images), first)
    assert not torch.equal(other(images), first)
    resampled = np.array([False, True, False, False, True, False])
    transform.resample(resampled)
    transform.resample(np.zeros(6, bool))
    assert ((transform(images) == first).flatten(1).all(1).numpy() == ~resampled).all()


def test_images_are_augmented_independently():
    """Whatever the batch: each image as if alone."""
    count = BATCH + 3
    images, transform = noise(count, 7, 7, 3), Augmentation(count, 2)
    changed = transform(images)
    for game in (0, BATCH - 1, BATCH, count - 1):
        alone = fixed_transform(transform.crop[game], transform.color[game], transform.degrees[game])
        assert torch.equal(alone(images[game : game + 1])[0], changed[game])


def test_a_crop_is_cut_and_resized():
    """As torch resizes what is left, at the full size; half as many pixels at half the size."""
    for size, (left, right, top, bottom) in ((SIZE, (3, 10, 1, 7)), (SIZE // 2, (2, 5, 1, 4))):
        image = noise(1, size, size, 3)
        rest = image[:, top : size - bottom, left : size - right].permute(0, 3, 1, 2).float()
        resized = functional.interpolate(rest, (size, size), mode="bilinear", align_corners=False)
        crop = np.array([left, right, top, bottom]) * SIZE // size
        ours = fixed_transform(crop)(image).permute(0, 3, 1, 2)
        assert (ours - resized).abs().max() <= 0.6


def test_each_side_is_cropped_by_its_own_amount():
    """One of four columns is cut off, and the other three are resized to four."""
    image = torch.tensor([[0.0, 40, 80, 120]]).expand(4, 4)[None, :, :, None].expand(1, 4, 4, 3).to(torch.uint8)
    # The new columns' middles are at 3/8, 9/8, 15/8 and 21/8, those of the remaining three at 1/2, 3/2 and 5/2.
    row = [40, 40 + 5 / 8 * 40, 80 + 3 / 8 * 40, 120]
    left = fixed_transform((SIZE / 4, 0, 0, 0))(image)[0, :, :, 0]
    assert left.tolist() == [[round(value) for value in row]] * 4
    top = fixed_transform((0, 0, SIZE / 4, 0))(image.transpose(1, 2))[0, :, :, 0]
    assert torch.equal(top, left.T)
    right = fixed_transform((0, SIZE / 4, 0, 0))(image.flip(2))[0, :, :, 0]
    assert torch.equal(right, left.flip(1))
    bottom = fixed_transform((0, 0, 0, SIZE / 4))(image.transpose(1, 2).flip(1))[0, :, :, 0]
    assert torch.equal(bottom, left.T.flip(0))


def test_a_quarter_turn_is_counter_clockwise():
    image = noise(1, 8, 8, 3)
    assert torch.equal(fixed_transform(degrees=90)(image)[0], image[0].rot90(1))
    assert torch.equal(fixed_transform(degrees=-90)(image)[0], image[0].rot90(-1))


def test_a_wide_image_turns_about_its_center():
    """The middle four of eight columns are rotated within the image; the rest is black."""
    image = noise(1, 4, 8, 3)
    changed = fixed_transform(degrees=90)(image)[0]
    assert torch.equal(changed[:, 2:6], image[0, :, 2:6].rot90(1))
    assert not changed[:, :2].any() and not changed[:, 6:].any()


def test_pixels_from_beyond_the_edges_are_black():
    """At 3 degrees that is the corners; the rotated image ends where it was cropped."""
    size = 112
    white = torch.full((1, size, size, 3), 255, dtype=torch.uint8)
    changed = fixed_transform((10, 10, 10, 10), degrees=3)(white)[0]
    turn = np.radians(3)
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    beyond = (np.abs(x * np.cos(turn) - y * np.sin(turn)) > size / 2) | (
        np.abs(x * np.sin(turn) + y * np.cos(turn)) > size / 2
    )
    assert 0.02 < beyond.mean() < 0.04
    assert (changed.numpy() == np.where(beyond, 0, 255)[:, :, None]).all()


PIXELS = [(200, 40, 60), (30, 180, 90), (60, 70, 190), (220, 200, 40), (120, 120, 120), (10, 20, 30)]


def colored(pixel, *color: float) -> np.ndarray:
    """The color of a uniform image after color jitter."""
    image = torch.tensor(pixel, dtype=torch.uint8).expand(1, 7, 7, 3)
    changed = fixed_transform(color=color)(image)
    assert (changed == changed[0, 0, 0]).all()
    return changed[0, 0, 0].numpy()


@pytest.mark.parametrize("pixel", PIXELS)
def test_brightness_is_the_value_of_hsv(pixel):
    hue, saturation, value = colorsys.rgb_to_hsv(*np.array(pixel) / 255)
    for factor in (0.9, 1.1):
        expected = 255 * np.array(colorsys.hsv_to_rgb(hue, saturation, factor * value))
        assert np.abs(colored(pixel, factor, 1, 1, 0) - expected).max() <= 0.51


@pytest.mark.parametrize("pixel", PIXELS)
def test_saturation_and_hue_scale_and_rotate_chroma(pixel):
    """In YIQ, luma stays; the chroma plane is scaled and rotated."""
    y, i, q = colorsys.rgb_to_yiq(*np.array(pixel) / 255)
    for factor, hue in ((0.9, 0), (1.1, 0), (1, 0.02), (0.95, -0.02)):
        turned = complex(i, q) * factor * np.exp(-2j * np.pi * hue)
        expected = 255 * np.array(colorsys.yiq_to_rgb(y, turned.real, turned.imag))
        assert np.abs(colored(pixel, 1, 1, factor, hue) - expected).max() <= 0.51


def test_hue_shifts_in_the_direction_of_hsv():
    """A positive change goes from red towards yellow, by about as much as in HSV; grays stay."""
    for pixel in PIXELS[:4]:
        before = colorsys.rgb_to_hsv(*np.array(pixel) / 255)
        for hue in (-0.02, 0.02):
            after = colorsys.rgb_to_hsv(*colored(pixel, 1, 1, 1, hue) / 255)
            assert 0.3 < ((after[0] - before[0] + 0.5) % 1 - 0.5) / hue < 2
    assert colored((120, 120, 120), 1, 1, 1.1, 0.02).tolist() == [120, 120, 120]


def test_contrast_is_about_the_mean_gray():
    """Half black, half (200, 100, 0): the mean gray is (0.3 200 + 0.59 100) / 2 = 59.5; values move 10 % towards it."""
    image = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
    image[:, :, 4:] = torch.tensor([200, 100, 0], dtype=torch.uint8)
    changed = fixed_transform(color=(1, 0.9, 1, 0))(image)[0]
    assert (changed[:, :4] == 6).all()
    assert (changed[:, 4:] == torch.tensor([186, 96, 6])).all()


def test_colors_are_clipped_to_black_and_white():
    image = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
    image[:, :, 4:] = 250
    changed = fixed_transform(color=(1.1, 1.1, 1, 0))(image)[0]
    assert not changed[:, :4].any() and (changed[:, 4:] == 255).all()


@pytest.mark.parametrize("degrees", [-3, 2])
def test_the_transform_equals_its_steps_one_after_another(degrees):
    """Crop, jitter and rotation one after another, each rounded to uint8."""
    image, crop, color = smooth(SIZE), (4, 9, 2, 7), (1.05, 0.92, 1.08, 0.015)
    at_once = fixed_transform(crop, color, degrees)(image)
    steps = image
    for step in (fixed_transform(crop), fixed_transform(color=color), fixed_transform(degrees=degrees)):
        steps = step(steps)
    assert (at_once.int() - steps.int()).abs().max() <= 3
    assert (at_once.int() - steps.int()).abs().float().mean() < 0.6
    wrong = fixed_transform(crop)(fixed_transform(degrees=degrees)(fixed_transform(color=color)(image)))
    assert (at_once.int() - wrong.int()).abs().max() > 20


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_gray_stays_gray(seed, gray):
    """Whatever is sampled, a uniform gray only gets brighter or darker, except for black corners."""
    transform = Augmentation(3, seed)
    changed = transform(torch.full((3, 28, 28, 3), gray, dtype=torch.uint8)).numpy()
    expected = np.minimum(255, transform.color[:, 0] * gray)[:, None, None, None]
    black = (changed == 0).all(-1, keepdims=True)
    assert (black | (np.abs(changed - expected) <= 0.51)).all()
    assert black[transform.degrees == 0].sum() == 0 or gray == 0


def test_only_brightness_and_contrast_change_luma():
    color = np.array([[1.1, 0.9, 0.8, 0.3], [0.7, 1.0, 1.3, -0.1]])
    gray = np.array([0.30, 0.59, 0.11]) @ color_matrices(color)
    assert gray == pytest.approx(np.array([0.99, 0.7])[:, None] * [0.30, 0.59, 0.11], abs=1e-9)


@pytest.mark.parametrize("size", [112, 224])
def test_kernels_agree_with_torch(size):
    """With transforms sampled as in training."""
    transform, images = Augmentation(32, 8), noise(32, size, size, 3)
    assert transform.crop.any(1).sum() > 8 and (transform.degrees != 0).sum() > 8
    assert_almost_equal(augment_in_warp(transform, images), transform(images))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(112, 112), (224, 224), (5, 8), (61, 37), (1, 300)]),
    st.tuples(*[st.integers(0, 60)] * 4),
    st.tuples(st.floats(0.1, 1.9), st.floats(0.1, 1.9), st.floats(0.1, 1.9), st.floats(-0.5, 0.5)),
    st.integers(-180, 180),
    st.integers(0, 99),
)
def test_kernels_agree_with_torch_for_extreme_transforms(shape, crop, color, degrees, seed):
    transform, images = fixed_transform(crop, color, degrees, 2), noise(2, *shape, 3, seed=seed)
    images[1] = smooth(max(shape))[0, : shape[0], : shape[1]]
    assert_almost_equal(augment_in_warp(transform, images), transform(images))


@pytest.mark.parametrize("shape", [(224, 224), (112, 112), (5, 8)])
def test_kernels_leave_images_unchanged_under_the_identity(shape):
    images = noise(3, *shape, 3)
    assert torch.equal(augment_in_warp(fixed_transform(count=3), images), images)


def test_kernels_augment_images_independently():
    """Each image bit-exactly as if alone, and as the second time; any strides work."""
    transform, images = Augmentation(5, 2), noise(5, 90, 80, 3)
    changed = augment_in_warp(transform, images)
    assert torch.equal(augment_in_warp(transform, images), changed)
    for game in range(5):
        alone = fixed_transform(transform.crop[game], transform.color[game], transform.degrees[game])
        assert torch.equal(augment_in_warp(alone, images[game : game + 1])[0], changed[game])
    flipped = images.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    assert not flipped.is_contiguous() and torch.equal(augment_in_warp(transform, flipped), changed)


def test_kernels_sum_in_blocks_of_threads(monkeypatch):
    """As on a GPU, where many threads share a band; the CPU uses one thread unless blocks are enabled."""
    transform, images = Augmentation(6, 7), noise(6, 112, 100, 3)
    expected = augment_in_warp(transform, images)
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)
    assert torch.equal(augment_in_warp(transform, images), expected)


def test_kernels_take_the_mean_over_visible_pixels():
    """A square of (200, 100, 0), rotated by 45 degrees, loses its corners; its mean gray stays 119, 10 % nearer."""
    image = torch.tensor([200, 100, 0], dtype=torch.uint8).expand(1, 96, 96, 3)
    changed = augment_in_warp(fixed_transform(color=(1, 0.9, 1, 0), degrees=45), image)[0]
    seen = changed.sum(-1) > 0
    assert 0.8 < seen.float().mean() < 0.85
    assert (changed[seen] == torch.tensor([192, 102, 12])).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("size", [56, 112, 224])
def test_a_gpu_gives_the_same_images(size):
    images, transform = noise(40, size, size, 3), Augmentation(40, 4, "cuda")
    theirs = transform(images.cuda())
    assert theirs.device.type == "cuda"
    assert_almost_equal(Augmentation(40, 4)(images), theirs.cpu())
    assert all(torch.equal(transform(images.cuda()), theirs) for _ in range(5))
    transform.color[:], transform.crop[:], transform.degrees[:] = PLAIN, 0, 0
    transform.upload()
    assert torch.equal(transform(images.cuda()).cpu(), images)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_augmentation_can_be_captured_as_a_cuda_graph():
    """Without warm-up; replays read new images and new transforms, and leave no state behind."""
    transform, images = Augmentation(40, 4, "cuda"), noise(40, 112, 112, 3).cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = transform(images)
    for seed in range(3):
        images.copy_(noise(40, 112, 112, 3, seed=seed))
        transform.resample(np.arange(40) % 3 == seed)
        graph.replay()
        assert torch.equal(captured, transform(images))


def test_invalid_arguments_are_refused():
    transform = Augmentation(2)
    for images in (noise(3, 7, 7, 3), noise(2, 7, 7, 4), noise(2, 7, 7), noise(2, 7, 7, 3).float()):
        with pytest.raises(ValueError, match=r"uint8 \(2, height, width, 3\)"):
            transform(images)
    with pytest.raises(ValueError, match="images are on meta, the augmentation is on cpu"):
        transform(noise(2, 7, 7, 3).to("meta"))
    for games in (np.ones(3, bool), np.ones(2, int)):
        with pytest.raises(ValueError, match=r"games: must be bool \(2,\)"):
            transform.resample(games)
    with pytest.raises(ValueError, match="count: must be at least 1"):
        Augmentation(0)
    with pytest.raises(ValueError, match=r"contrast: must be in \[0, 1\)"):
        Jitter(contrast=1.5)
