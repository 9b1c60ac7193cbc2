"""How surfaces look in a compiled room: materials and textures, the catalog's and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from scrubjay.rooms.catalog import shell
from scrubjay.rooms.floor import MAP_PITCH, Floor
from scrubjay.rooms.materials import materials
from scrubjay.rooms.room import Room

MAX_LIGHT = 1.25
"""Upper bound of the light on any surface."""
FLOOR_TEXEL = 0.0125
"""Meters per pixel of the floor's texture."""
FLOOR_SHADE, FLOOR_SHADE_DISTANCE = 0.4, 0.12
"""Strength of the shade baked into the floor beside things, and the meters over which it fades."""


@dataclass(frozen=True)
class Look:
    """A material: its color, and a texture's name and repetitions along u and v."""

    color: tuple[float, float, float]
    texture: str = ""
    repeat: tuple[float, float] = (1.0, 1.0)
    emission: float = 0.0


@dataclass(frozen=True)
class Looks:
    """Materials that are not the catalog's, by name, and their textures: pixels (height, width, 3) uint8."""

    materials: Mapping[str, Look] = field(default_factory=dict)
    textures: Mapping[str, np.ndarray] = field(default_factory=dict)


class Painter:
    """Adds materials to a model, each when it is first needed."""

    def __init__(self, spec: mujoco.MjSpec, room: Room, floor: Floor, looks: Looks) -> None:
        self.spec, self.room, self.floor, self.looks = spec, room, floor, looks
        self.added: set[str] = set()

    def add(self, material: str) -> None:
        """Adds a material by name, with its texture."""
        if material in self.added:
            return
        self.added.add(material)
        if material == shell.BAKED:
            return self._floor()
        look = self.looks.materials.get(material) or _catalog_look(material)
        # OpenGL clamps light to 1 before multiplying by the texture, Warp after: below 1 they agree.
        dimmed = np.array(look.color) * (1 / (look.emission + MAX_LIGHT) if look.emission else 1)
        new = self.spec.add_material(name=material, rgba=[*dimmed, 1], specular=0, shininess=0, emission=look.emission)
        new.texrepeat = look.repeat
        if not look.texture:
            return
        if look.texture not in self.added:
            self.added.add(look.texture)
            pixels = self.looks.textures.get(look.texture)
            self._texture(look.texture, materials.image(look.texture) if pixels is None else pixels)
        new.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = look.texture

    def _floor(self) -> None:
        """The floor's material: one texture for the whole room, darker under and near things."""
        style = next(thing for thing in self.room.things if thing.type == "Floor").style
        texture, tint = materials.parse(style.get("floor", "plain#c8b89a"))
        self._texture(shell.BAKED, floor_texture(self.floor, texture))
        new = self.spec.add_material(name=shell.BAKED, rgba=[*tint, 1], specular=0, shininess=0)
        new.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = shell.BAKED

    def _texture(self, name: str, pixels: np.ndarray) -> None:
        height, width, _ = pixels.shape
        kind = mujoco.mjtTexture.mjTEXTURE_2D
        self.spec.add_texture(name=name, type=kind, width=width, height=height, nchannel=3).data = pixels.tobytes()


def _catalog_look(material: str) -> Look:
    """How a material of the catalog looks, such as `wood#c79a63`."""
    texture, tint = materials.parse(material)
    properties = materials.texture_of(texture)
    repeat = 1 / properties.meters if properties.meters else 1.0
    emission = MAX_LIGHT * properties.glow / (1 - properties.glow)
    return Look(tint, "" if texture == "plain" else texture, (repeat, repeat), emission)


def floor_texture(floor: Floor, texture: str) -> np.ndarray:
    """The whole floor, row 0 in the north, shaded near things: (height, width, 3) uint8."""
    size = (np.array(floor.map.shape) - 1) * MAP_PITCH
    counts = np.ceil(size / FLOOR_TEXEL).astype(int)
    xs, ys = ((np.arange(counts[k]) + 0.5) * size[k] / counts[k] for k in (0, 1))
    points = np.stack(np.meshgrid(xs, ys[::-1], indexing="xy"), -1) + floor.origin
    shade = 1 - FLOOR_SHADE * np.exp(-floor.clearance(points) / FLOOR_SHADE_DISTANCE)
    pixels = materials.image(texture)
    repeat = materials.texture_of(texture).meters
    rows = (-points[:, 0, 1] / repeat % 1 * pixels.shape[0]).astype(int)
    columns = (points[0, :, 0] / repeat % 1 * pixels.shape[1]).astype(int)
    return (pixels[rows][:, columns] * shade[..., None]).astype(np.uint8)
