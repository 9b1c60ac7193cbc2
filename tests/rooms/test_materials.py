"""Textures are deterministic, tile seamlessly and stay light; bad names are refused."""

import numpy as np
import pytest

from scrubjay.rooms.materials import materials
from scrubjay.rooms.materials.materials import TEXTURES, image, parse, texture_of

NAMES = [f"{name}-{variant}" for name, texture in TEXTURES.items() for variant in range(texture.variants)]
COLORED = {"picture", "screen", "sky", "cover", "label", "print", "dial", "keys"}
TILING = [name for name in NAMES if texture_of(name).meters > 0]


@pytest.mark.parametrize("name", NAMES)
def test_images_are_small_and_deterministic(name: str) -> None:
    first = image(name)
    image.cache_clear()
    assert np.array_equal(first, image(name))
    assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
    assert max(first.shape) <= 256
    assert not first.flags.writeable


def test_no_variant_is_variant_zero() -> None:
    assert np.array_equal(image("wood"), image("wood-0"))
    assert texture_of("picture-12") is TEXTURES["picture"]


@pytest.mark.parametrize("name", TILING)
def test_tiling_textures_join(name: str) -> None:
    """The step across the seam is no larger than the largest step inside."""
    pixels = image(name).astype(float)
    for axis in (1,) if name.startswith("wall") else (0, 1):
        along = np.abs(np.diff(pixels, axis=axis)).mean(axis=(1 - axis, 2))
        seam = np.abs(pixels.take(0, axis) - pixels.take(-1, axis)).mean()
        assert seam <= max(along.max(), 1) * 1.05


@pytest.mark.parametrize("name", sorted(TEXTURES))
def test_tinted_textures_are_light_and_not_flat(name: str) -> None:
    brightness = np.mean([image(f"{name}-{variant}").mean() for variant in range(TEXTURES[name].variants)]) / 255
    if name in COLORED:
        assert 0.3 < brightness < 0.9
    else:
        assert 0.74 < brightness <= 1
    if name != "plain":
        assert image(name).std() > 1


@pytest.mark.parametrize("name", [name for name in TEXTURES if TEXTURES[name].variants > 1])
def test_variants_differ(name: str) -> None:
    variants = {image(f"{name}-{variant}").tobytes() for variant in range(TEXTURES[name].variants)}
    assert len(variants) == TEXTURES[name].variants


def test_fine_contrast_is_low() -> None:
    """Averaged over 4 x 4 pixels, tiling textures change little: renderers without mipmaps would make them flicker."""
    for name in TILING:
        pixels = image(name).astype(float) / 255
        height, width = (size // 4 * 4 for size in pixels.shape[:2])
        cropped = pixels[:height, :width]
        blocks = cropped.reshape(height // 4, 4, width // 4, 4, 3).mean(axis=(1, 3))
        change = np.abs(cropped - np.repeat(np.repeat(blocks, 4, 0), 4, 1))
        assert change.mean() < 0.055, name


def test_walls_darken_towards_floor_and_ceiling() -> None:
    for variant in range(TEXTURES["wall"].variants):
        rows = image(f"wall-{variant}").mean(axis=(1, 2))
        assert rows[:8].mean() < rows[40:90].mean()
    rows = image("wall").mean(axis=(1, 2))
    assert rows[225:240].mean() < rows[100:160].mean() < rows[248:251].mean(), "shade above a bright skirting board"


def test_parse() -> None:
    assert parse("wood#ff8000") == ("wood", (1.0, 128 / 255, 0.0))
    assert parse("picture-31#FFFFFF") == ("picture-31", (1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("material", "allowed"),
    [
        ("velvet#ffffff", "marble"),
        ("#ffffff", "marble"),
        ("wood", "rrggbb"),
        ("wood#fff", "rrggbb"),
        ("wood#gggggg", "hexadecimal"),
        ("wood#+1+1+1", "hexadecimal"),
        ("wall-6#ffffff", "0 to 5"),
        ("wall-x#ffffff", "0 to 5"),
        ("wall-#ffffff", "0 to 5"),
        ("picture--1#ffffff", "0 to 31"),
        ("picture-²#ffffff", "0 to 31"),
    ],
)
def test_bad_materials_are_refused(material: str, allowed: str) -> None:
    with pytest.raises(ValueError, match=allowed):
        parse(material)


def test_unknown_textures_are_refused_everywhere() -> None:
    for function in (materials.image, materials.texture_of):
        with pytest.raises(ValueError, match="velvet"):
            function("velvet")
