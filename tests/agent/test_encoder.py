"""The encoder: shapes and sizes, its arithmetic against a slow reference, and errors."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from scrubjay.agent.config import PRESETS, SMALL
from scrubjay.agent.encoder import Encoder, initialize


def images(count: int, size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, size, size, 3), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize(
    ("preset", "parameters", "million_multiply_adds", "sir", "skips"),
    [
        ("paper", 1_408_432, 343, (128, 7, 7), [(16, 112, 112), (32, 56, 56), (64, 28, 28), (192, 14, 14)]),
        ("small", 159_128, 18, (32, 7, 7), [(8, 56, 56), (16, 28, 28), (32, 14, 14), (64, 7, 7)]),
    ],
)
def test_shapes_and_sizes(preset, parameters, million_multiply_adds, sir, skips):
    config = PRESETS[preset]
    encoder = Encoder(config)
    assert sum(part.numel() for part in encoder.parameters()) == parameters
    assert sum(isinstance(part, nn.Conv2d) for part in encoder.modules()) == 13
    with FlopCounterMode(display=False) as flops, torch.no_grad():
        encoded = encoder(images(2, config.image_size))
    assert round(flops.get_total_flops() / 2 / 2 / 1e6) == million_multiply_adds
    assert encoded.sir.shape == (2, *sir)
    assert encoded.pooled.shape == (2, sir[0])
    assert [skip.shape[1:] for skip in encoded.skips] == skips


def test_images_are_normalized_by_imagenet_statistics():
    image = torch.zeros(1, 2, 2, 3, dtype=torch.uint8)
    image[0, 1, 0] = torch.tensor([255, 51, 102])
    normalized = Encoder(SMALL).normalize(image)
    assert normalized.shape == (1, 12, 1, 1), "the square's four pixels, row by row"
    # (color / 255 - mean) / deviation, by hand.
    black, other = [-2.117904, -2.035714, -1.804444], [2.248908, -1.142857, -0.026667]
    assert normalized.flatten().tolist() == pytest.approx([*black, *black, *other, *black], abs=1e-5)


def test_the_encoder_equals_a_plain_reference():
    """Against a reference without our layout, dataclasses or loops over scales."""
    torch.manual_seed(0)
    encoder, image = Encoder(SMALL), images(2, 112)
    for layer in encoder.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.bias)
    relu = torch.relu

    def conv(x: torch.Tensor, layer: nn.Conv2d, stride: int = 1) -> torch.Tensor:
        """With each filter's mean subtracted."""
        filters = torch.stack([one - one.sum() / one.numel() for one in layer.weight])
        return nn.functional.conv2d(x, filters, layer.bias, stride, padding=1)

    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = ((image.float() / 255 - mean) / deviation).permute(0, 3, 1, 2).contiguous()
    # Channels of the stem are the pixels of a square: row, column, color. Unfolded, its kernel is 6 x 6.
    kernel = encoder.stem.weight.reshape(-1, 2, 2, 3, 3, 3).permute(0, 3, 4, 1, 5, 2).reshape(-1, 3, 6, 6)
    x = relu(nn.functional.conv2d(x, kernel, encoder.stem.bias, stride=2, padding=2))
    for scale, stride in zip(encoder.scales, (2, 2, 2, 1), strict=True):
        x = relu(conv(x, scale.down, stride))
        x = relu(x + conv(relu(conv(x, scale.first)), scale.second))
    encoded = encoder(image)
    torch.testing.assert_close(encoded.sir, x, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(encoded.pooled, x.flatten(2).mean(2), rtol=1e-4, atol=1e-4)


def test_an_image_in_a_batch_is_encoded_as_if_alone():
    encoder, image = Encoder(SMALL), images(5, 112)
    torch.testing.assert_close(encoder(image).sir[3:4], encoder(image[3:4]).sir, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_activations_keep_their_scale_at_initialization(preset):
    torch.manual_seed(1)
    config = PRESETS[preset]
    with torch.no_grad():
        encoded = Encoder(config)(images(2, config.image_size))
    for features in (*encoded.skips, encoded.sir):
        assert 0.4 < float(features.std()) < 3


def test_transposed_convolutions_keep_their_inputs_scale():
    torch.manual_seed(0)
    larger = nn.ConvTranspose2d(64, 64, 4, 2, padding=1)
    initialize(larger)
    with torch.no_grad():
        # Half of a ReLU's outputs are 0: their mean square is half of their inputs' variance.
        out = larger(torch.relu(torch.randn(4, 64, 16, 16)))[..., 2:-2, 2:-2]
    assert float(out.std()) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("preset", PRESETS)
def test_gradients_reach_every_parameter(preset):
    config = PRESETS[preset]
    encoder = Encoder(config)
    encoded = encoder(images(2, config.image_size))
    (encoded.pooled * torch.randn_like(encoded.pooled)).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_bfloat16_is_close_to_float32():
    torch.manual_seed(0)
    encoder, image = Encoder(SMALL), images(2, 112)
    with torch.no_grad():
        exact = encoder(image)
        with torch.autocast("cpu", torch.bfloat16):
            near = encoder(image)
    assert near.sir.dtype == torch.bfloat16
    assert float((near.sir.float() - exact.sir).abs().mean() / exact.sir.abs().mean()) < 0.05


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (torch.zeros(1, 112, 112, 3), "image: expected torch.uint8, got torch.float32"),
        (torch.zeros(1, 224, 224, 3, dtype=torch.uint8), r"image: expected shape .*, got \(1, 224, 224, 3\)"),
        (torch.zeros(1, 3, 112, 112, dtype=torch.uint8), r"expected shape \(N, 112, 112, 3\)"),
        (torch.zeros(112, 112, 3, dtype=torch.uint8), "image: expected shape"),
    ],
)
def test_images_of_the_wrong_size_or_type_are_refused(image, message):
    with pytest.raises(ValueError, match=message):
        Encoder(SMALL)(image)
