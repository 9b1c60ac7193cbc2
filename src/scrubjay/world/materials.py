"""Materials: `texture#rrggbb`, a procedural texture and a tint that multiplies it.

`wood#a5713f` is wood grain in that brown, `plain#ffffff` plain white. Textures are light, so that the tint is the colour.
A number behind a dash varies a texture: `picture-12#ffffff` is the twelfth painting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True)
class Texture:
    """How a texture is made and how it lies on things."""

    make: Callable[[np.random.Generator], np.ndarray]
    """Draws an image, (n, n, 3) floats from 0 to 1 that repeat seamlessly."""
    metres: float = 1.0
    """The edge of one repetition; 0 for pictures, which are stretched over a face once."""
    glow: float = 0.0
    """How much of its colour it emits: lamps, screens, the sky behind a window."""


def plain(rng: np.random.Generator) -> np.ndarray:
    return np.ones((4, 4, 3))


def _speckle(rng):
    return 0.8 + 0.2 * rng.random((64, 64, 1)) * np.ones(3)


TEXTURES = {"plain": Texture(plain), **{n: Texture(_speckle) for n in "wood metal tiles marble".split()}}


@lru_cache(maxsize=None)
def image(texture: str) -> np.ndarray:
    """A texture's pixels, (n, n, 3) uint8."""
    name, _, variant = texture.partition("-")
    seed = sum(ord(letter) * 31**i for i, letter in enumerate(name)) % 2**31
    return np.uint8(np.clip(TEXTURES[name].make(np.random.default_rng([seed, int(variant or 0)])), 0, 1) * 255)


def texture_of(texture: str) -> Texture:
    """The texture of a name with or without a variant."""
    return TEXTURES[texture.partition("-")[0]]


def parse(material: str) -> tuple[str, tuple[float, float, float]]:
    """Splits a material into its texture's name (with its variant) and its tint."""
    texture, _, tint = material.partition("#")
    if texture.partition("-")[0] not in TEXTURES or len(tint) != 6:
        raise ValueError(f"unknown material {material!r}; write texture#rrggbb with one of {', '.join(sorted(TEXTURES))}")
    return texture, tuple(int(tint[i : i + 2], 16) / 255 for i in (0, 2, 4))
