"""Losses, scores, augmentation and decoders of the natural tasks, on numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from study.natural_folders import noise
from torch import nn

from scrubjay.study.natural_augmentation import (
    crop,
    crop_randomly,
    jitter_randomly,
    set_brightness,
    set_contrast,
    set_saturation,
    turn_hue,
)
from scrubjay.study.natural_decoders import PyramidDecoder, SceneHead, fit_norms
from scrubjay.study.natural_probe import class_weights, mean_score
from scrubjay.study.natural_tasks import TASKS

SKIPS = (16, 32, 64, 192)


def test_scenes_are_judged_by_cross_entropy_and_by_their_most_probable_class():
    logits = torch.tensor([[math.log(3), 0.0], [0.0, 0.0], [0.0, 2.0]])
    target = torch.tensor([0, 1, 0])
    expected = (-math.log(3 / 4) + math.log(2) + math.log(1 + math.exp(2))) / 3
    assert float(TASKS["scenes"].loss(logits, target)) == pytest.approx(expected, rel=1e-6)
    assert TASKS["scenes"].scores(logits, target).tolist() == [1, 0, 0]


def test_accuracy_is_the_mean_over_classes():
    target, scores = torch.tensor([0, 0, 0, 2]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    # Class 0 has 2 of 3, class 2 none of 1; class 1 does not occur.
    assert float(mean_score(TASKS["scenes"], scores, target)) == pytest.approx((2 / 3 + 0) / 2, rel=1e-6)
    assert class_weights(torch.tensor([0, 1, 1, 0])).tolist() == [1, 1, 1, 1]


def test_depth_is_judged_where_it_is_known():
    predicted = torch.tensor([[[[0.3, 0.1], [0.9, 5.0]]]])  # In units of 10 m.
    target = torch.tensor([[[2.0, 1.0], [4.0, 0.0]]])
    errors = [0.1, 0.0, 0.5]
    assert float(TASKS["depth"].loss(predicted, target)) == pytest.approx(sum(e * e / 2 for e in errors) / 3, rel=1e-5)
    expected = (1 / 2 + 0 / 1 + 5 / 4) / 3
    assert TASKS["depth"].scores(predicted, target).tolist() == pytest.approx([expected], rel=1e-5)


def test_the_huber_loss_is_linear_beyond_one():
    loss = TASKS["depth"].loss(torch.tensor([[[[3.1]]]]), torch.tensor([[[1.0]]]))
    assert float(loss) == pytest.approx(3.0 - 0.5)


def test_walkable_surfaces_are_judged_by_weighted_cross_entropy_and_intersection_over_union():
    # Logits of (other, walkable); three pixels are walkable for the decoder, two in truth, one in both.
    logits = torch.tensor([[[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, -1.0]]]])
    target = torch.tensor([[[True, False], [False, True]]])
    assert TASKS["walkable"].scores(logits, target).tolist() == [0.25]
    low, high = math.log(1 + math.exp(-1)), math.log(1 + math.exp(1))
    weights = 1 / 0.893, 2 / 0.107
    expected = (weights[1] * (low + high) + weights[0] * 2 * high) / (2 * sum(weights))
    assert float(TASKS["walkable"].loss(logits, target)) == pytest.approx(expected, rel=1e-5)


def test_images_without_a_union_do_not_count():
    logits = torch.stack([torch.ones(2, 4, 4), torch.zeros(2, 4, 4)], 1)
    target = torch.zeros(2, 4, 4, dtype=torch.bool)
    target[1, 0] = True
    scores = TASKS["walkable"].scores(logits, target)
    assert math.isnan(scores[0]) and scores[1] == 0
    assert float(mean_score(TASKS["walkable"], scores, target)) == 0


@pytest.mark.parametrize("name", TASKS)
def test_losses_lead_to_their_own_best_score(name):
    """Plain gradient descent on the predictions themselves reaches a perfect score."""
    task, generator = TASKS[name], torch.Generator().manual_seed(0)
    if name == "scenes":
        target, predicted = torch.arange(5) % 3, torch.zeros(5, 3)
    else:
        target = 1 + 4 * torch.rand(2, 6, 6, generator=generator)
        target = target if name == "depth" else target > 3
        predicted = torch.zeros(2, task.outputs, 6, 6)
    predicted.requires_grad_()
    optimizer = torch.optim.Adam([predicted], 0.05)
    for _ in range(200):
        optimizer.zero_grad()
        task.loss(predicted, target).backward()
        optimizer.step()
    best, scores = 1 if task.higher else 0, task.scores(predicted.detach(), target)
    assert float(mean_score(task, scores, target)) == pytest.approx(best, abs=1e-3)


def picture() -> torch.Tensor:
    return torch.from_numpy(noise(1, 40, 40))[None]


def test_a_crop_of_everything_is_the_picture_and_a_quarter_is_a_quarter():
    image, whole, straight = picture(), torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.tensor([False])
    assert torch.equal(crop(image, 40, whole, straight), image)
    assert torch.equal(crop(image, 40, whole, ~straight), image.flip(2))
    quarter = torch.tensor([[0.5, 0.25, 0.5, 0.5]])
    assert torch.equal(crop(image, 20, quarter, straight), image[:, 10:30, 20:40])


def test_random_crops_have_the_area_and_the_shape_that_they_should():
    # The picture's value is its column: a crop's width is the range of values, up to the pixels' size.
    row = torch.arange(256, dtype=torch.uint8)
    image = row[None, None, :, None].expand(500, 256, 256, 3)
    cut = crop_randomly(image, 32, torch.Generator().manual_seed(0))
    assert cut.shape == (500, 32, 32, 3) and cut.dtype == torch.uint8
    edges = cut[:, 0, [0, -1], 0].float()
    width = (edges[:, 1] - edges[:, 0]).abs() / 255 * 32 / 31
    assert 0.2 < float(width.min()) < 0.4 and 0.95 < float(width.max()) < 1.05
    mirrored = (edges[:, 1] < edges[:, 0]).float().mean()
    assert 0.4 < float(mirrored) < 0.6


def test_colors_change_as_they_should():
    red, gray = torch.tensor([1.0, 0, 0])[None, :, None, None], torch.full((1, 3, 1, 1), 0.5)
    pixels, one = torch.cat([red, gray], 3), torch.ones(1, 1, 1, 1)
    turned = turn_hue(pixels, one / 3)
    np.testing.assert_allclose(turned[0, :, 0].T, [[0, 1, 0], [0.5, 0.5, 0.5]], atol=1e-6)
    np.testing.assert_allclose(turn_hue(pixels, -one / 6)[0, :, 0, 0], [1, 0, 1], atol=1e-6)
    assert set_brightness(pixels, 1.4 * one)[0, :, 0].T.tolist() == pytest.approx(
        [pytest.approx([1, 0, 0]), pytest.approx([0.7] * 3)]
    )
    np.testing.assert_allclose(set_saturation(pixels, 0 * one)[0, :, 0].T, [[0.299] * 3, [0.5] * 3], atol=1e-6)
    mean = (0.299 + 0.5) / 2
    np.testing.assert_allclose(set_contrast(pixels, 0 * one), np.full((1, 3, 1, 2), mean), atol=1e-6)
    random = torch.rand(2, 3, 5, 5)
    same = torch.ones(2, 1, 1, 1)
    for change, factor in ((set_brightness, 1), (set_contrast, 1), (set_saturation, 1), (turn_hue, 0), (turn_hue, 1)):
        np.testing.assert_allclose(change(random, factor * same), random, atol=1e-5)


def test_a_fifth_of_the_pictures_becomes_gray_and_all_change_alike_for_a_seed():
    images = torch.from_numpy(np.stack([noise(seed, 10, 10) for seed in range(400)]))
    changed = jitter_randomly(images, torch.Generator().manual_seed(0))
    assert changed.shape == images.shape and changed.dtype == torch.uint8
    gray = (changed.float().std(3).amax((1, 2)) == 0).float().mean()
    assert 0.14 < float(gray) < 0.26
    assert torch.equal(changed, jitter_randomly(images, torch.Generator().manual_seed(0)))
    assert not torch.equal(changed, jitter_randomly(images, torch.Generator().manual_seed(1)))


def test_the_scene_head_has_the_papers_sizes():
    head = SceneHead(128, 397)
    sizes = {name: tuple(value.shape) for name, value in head.named_parameters()}
    assert sizes == {
        "reduce.weight": (64, 128, 1, 1), "reduce.bias": (64,), "hidden.weight": (512, 3136), "hidden.bias": (512,),
        "classify.weight": (397, 512), "classify.bias": (397,),
    }  # fmt: skip
    assert head(torch.rand(2, 128, 7, 7)).shape == (2, 397)


def test_the_pyramid_has_the_published_sizes():
    decoder = PyramidDecoder(128, 2, SKIPS)
    convolutions = [(each.conv.in_channels, each.conv.out_channels) for each in decoder.up]
    assert convolutions == [(64, 1024), (256, 512), (128, 256), (64, 256)]
    assert (decoder.last.conv.in_channels, decoder.last.conv.out_channels) == (64, 8)
    assert [(each.in_channels, each.out_channels) for each in decoder.lateral] == [
        (192, 256), (64, 128), (32, 64), (16, 64),
    ]  # fmt: skip
    skips = [torch.rand(1, channels, size, size) for channels, size in zip(SKIPS, (112, 56, 28, 14), strict=True)]
    with torch.no_grad():
        assert decoder(torch.rand(1, 128, 7, 7), skips).shape == (1, 2, 224, 224)
        assert PyramidDecoder(1280, 1)(torch.rand(1, 1280, 7, 7)).shape == (1, 1, 224, 224)


@pytest.mark.parametrize("size", [14, 28, 56])
def test_smaller_pyramids_predict_fewer_pixels(size):
    skips = [torch.rand(1, channels, 4, 4) for channels in SKIPS]
    assert PyramidDecoder(8, 1, SKIPS, size)(torch.rand(1, 8, 7, 7), skips).shape == (1, 1, size, size)
    with pytest.raises(ValueError, match="size: 14, 28"):
        PyramidDecoder(8, 1, size=32)


def test_every_scale_reaches_the_prediction():
    decoder = PyramidDecoder(4, 1, SKIPS)
    skips = [torch.rand(1, c, s, s, requires_grad=True) for c, s in zip(SKIPS, (112, 56, 28, 14), strict=True)]
    sir = torch.rand(1, 4, 7, 7, requires_grad=True)
    decoder(sir, skips).square().sum().backward()
    assert all(float(each.grad.abs().sum()) > 0 for each in (sir, *skips))


def test_features_are_standardized_by_channel():
    decoder = PyramidDecoder(2, 1, (3, 3, 3, 3), 28)
    sir = torch.stack([torch.randn(9, 7, 7), 1000 + 5 * torch.randn(9, 7, 7)], 1)
    skips = [3 + torch.randn(9, 3, 14, 14) for _ in range(4)]
    fit_norms(decoder, [(sir[:4], [skip[:4] for skip in skips]), (sir[4:], [skip[4:] for skip in skips])])
    for norm, values in ((decoder.sir_norm, sir), *zip(decoder.skip_norms, skips, strict=True)):
        assert isinstance(norm, nn.Module)
        np.testing.assert_allclose(norm(values).mean((0, 2, 3)), 0, atol=1e-3)
        np.testing.assert_allclose(norm(values).std((0, 2, 3)), 1, atol=0.02)
