"""Materials: `texture#rrggbb`, a procedural texture and a tint that multiplies it.

`wood#a5713f` is wood grain in that brown, `plain#ffffff` plain white. Textures are light, so that the tint is the
color; pictures, screens and other prints have their own colors and take the tint ffffff. A number after a dash, from 0,
selects a variant: `picture-12#ffffff` is a painting, `wall-3#d8e4e8` a wall half in tiles.

Grain, floor boards, pleats and brushed metal run along v, an image's columns: up a door, along a tube.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from scrubjay.rooms.materials import pictures, textures


@dataclass(frozen=True)
class Texture:
    """A procedural texture and how it maps onto surfaces."""

    make: Callable[[np.random.Generator, int], np.ndarray]
    """Draws a variant: (h, w, 3) floats from 0 to 1, first row on top; tiles seamlessly unless fitted."""
    meters: float = 1.0
    """Size of one tile; 0 for pictures, which are stretched once over a face."""
    glow: float = 0.0
    """Emissive share of its light, in [0, 1): lamps, screens, the sky behind a window."""
    variants: int = 4
    """Number of variants; `wood` is `wood-0`."""


TEXTURES = {
    "plain": Texture(textures.plain, 1.0, variants=1),
    "wood": Texture(textures.wood, 0.5, variants=8),
    "planks": Texture(textures.planks, 2.0),
    "tiles": Texture(textures.tiles, 0.6),
    "marble": Texture(textures.marble, 1.2),
    "granite": Texture(textures.granite, 0.6),
    "brick": Texture(textures.brick, 1.0),
    "plaster": Texture(textures.plaster, 1.0),
    "carpet": Texture(textures.carpet, 0.5),
    "woven": Texture(textures.woven, 0.1),
    "printed": Texture(textures.printed, 0.4, variants=32),
    "metal": Texture(textures.metal, 0.3),
    "leather": Texture(textures.leather, 0.3),
    "paper": Texture(textures.paper, 0.3),
    "leaf": Texture(textures.leaf, 0.2),
    "bread": Texture(textures.bread, 0.15),
    "skin": Texture(textures.skin, 0.2),
    "shade": Texture(textures.shade, 0.3, glow=0.5),
    # One meter of wall from the floor to the ceiling: v runs from 0 to 1, so that a texrepeat of 1 suits both axes.
    "wall": Texture(textures.wall, 1.0, variants=6),
    "sky": Texture(pictures.sky, 0.0, glow=0.75, variants=8),
    "picture": Texture(pictures.picture, 0.0, variants=32),
    "screen": Texture(pictures.screen, 0.0, glow=0.7, variants=8),
    "label": Texture(pictures.label, 0.0, variants=32),
    "print": Texture(pictures.printed_page, 0.0, variants=8),
    "cover": Texture(pictures.cover, 0.0, variants=32),
    "dial": Texture(pictures.dial, 0.0, variants=8),
    "keys": Texture(pictures.keys, 0.0),
}


@cache
def image(texture: str) -> np.ndarray:
    """A texture's pixels, (h, w, 3) uint8, read-only; the same on every machine."""
    name, variant = _split(texture)
    drawn = TEXTURES[name].make(np.random.default_rng([variant, *name.encode()]), variant)
    pixels = (np.clip(drawn, 0, 1) * 255 + 0.5).astype(np.uint8)
    pixels.setflags(write=False)
    return pixels


def texture_of(texture: str) -> Texture:
    """The texture of a name, with or without a variant."""
    return TEXTURES[_split(texture)[0]]


def parse(material: str) -> tuple[str, tuple[float, float, float]]:
    """Splits a material into its texture's name (with its variant) and its tint."""
    texture, _, tint = material.partition("#")
    _split(texture)
    if len(tint) != 6 or not set(tint) <= set(string.hexdigits):
        raise ValueError(f"bad tint in material {material!r}; write texture#rrggbb with six hexadecimal digits")
    red, green, blue = (int(tint[i : i + 2], 16) / 255 for i in (0, 2, 4))
    return texture, (red, green, blue)


def _split(texture: str) -> tuple[str, int]:
    """A texture's name and the number of its variant."""
    name, dash, variant = texture.partition("-")
    if name not in TEXTURES:
        raise ValueError(f"unknown texture {name!r}; write texture#rrggbb with one of {', '.join(sorted(TEXTURES))}")
    last = TEXTURES[name].variants - 1
    if not dash:
        return name, 0
    if not (variant.isascii() and variant.isdigit() and int(variant) <= last):
        raise ValueError(f"bad variant in texture {texture!r}; {name} has the variants 0 to {last}")
    return name, int(variant)
