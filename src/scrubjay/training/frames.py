"""Frames: what images were rendered from, so that they can be rendered again.

A frame is a row of a structured array: the room, what an image shows of the world's state, and the game's augmentation.
That is about 200 bytes, where an image of 224 x 224 pixels has 150,000. The same renderer on the same machine draws the
same bytes again; another one, nearly the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import torch

from scrubjay.game.actions import NOTHING
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.pose import cameras
from scrubjay.sim.render.base import Shot
from scrubjay.sim.world import World
from scrubjay.training.augmentation import Augmentation

STATE = ("position", "rotation", "standing", "open", "goal", "pose")
"""Fields of the world's state that an image depends on."""
AUGMENTATION = ("crop", "color", "degrees")


@cache
def frame_type(openables: int) -> np.dtype:
    """The fields of a frame, in rooms of at most so many openables."""
    return np.dtype([
        ("room", np.int32), ("position", np.float64, 2), ("rotation", np.float64), ("standing", np.bool_),
        ("open", np.bool_, openables), ("goal", np.int32), ("pose", np.float64, 7),
        ("crop", np.float64, 4), ("color", np.float64, 4), ("degrees", np.float64),
    ])  # fmt: skip


def record_frames(world: BaseWorld, augmentation: Augmentation | None, hidden: np.ndarray | None = None) -> np.ndarray:
    """The frames (B,) of the images that a world would render now, without the objects that are `hidden` (B,) bool."""
    frames = np.zeros(len(world), frame_type(world.state.open.shape[1]))
    frames["room"] = world.room_of
    for name in STATE:
        frames[name] = getattr(world.state, name)
    if hidden is not None:
        frames["goal"][hidden] = NOTHING
    if augmentation is not None:
        for name in AUGMENTATION:
            frames[name] = getattr(augmentation, name)
    return frames


def render_frames(world: World, frames: np.ndarray, augmented: bool) -> torch.Tensor:
    """Images (N, size, size, 3) uint8 of frames (N,) that were recorded in worlds of the same rooms."""
    # Contiguous, as when the images were first rendered: NumPy may round strided arrays differently.
    columns = {name: frames[name].copy() for name in frames.dtype.names or ()}
    eye, matrix = cameras(columns["position"], columns["rotation"], columns["standing"])
    # A room's first copy serves all its frames.
    worlds = columns["room"].astype(int) * world.copies
    shot = Shot(eye, matrix, columns["open"], columns["goal"].astype(int), columns["pose"], worlds=worlds)
    images = world.renderer.draw(shot, ("rgb",)).rgb
    if not augmented:
        return images
    augmentation = Augmentation(len(frames), device=images.device)
    for name in AUGMENTATION:
        setattr(augmentation, name, columns[name])
    augmentation.upload()
    return augmentation(images)


def to_tensors(frames: np.ndarray) -> dict[str, torch.Tensor]:
    """Frames as tensors by field, to be written into a file."""
    return {name: torch.from_numpy(frames[name].copy()) for name in frames.dtype.names or ()}


def from_tensors(tensors: Mapping[str, torch.Tensor], shape: tuple[int, ...], world: World) -> np.ndarray:
    """Frames of a shape from `to_tensors`; ValueError unless this world can render them."""
    frames = np.zeros(shape, frame_type(world.state.open.shape[1]))
    for name in frames.dtype.names or ():
        frames[name] = read_array(tensors, name, frames[name].shape, frames[name].dtype)
        if not np.isfinite(frames[name]).all():
            raise ValueError(f"{name} is not finite")
    for name, least, most in (("room", 0, len(world.rooms) - 1), ("goal", -1, len(GOALS) - 1)):
        if frames.size and not least <= frames[name].min() <= frames[name].max() <= most:
            raise ValueError(f"{name} is not from {least} to {most}")
    return frames


def read_array(
    tensors: Mapping[str, torch.Tensor], name: str, shape: tuple[int, ...], dtype: np.dtype | type
) -> np.ndarray:
    """A copy of a tensor that was read from a file; ValueError unless it has this shape and type."""
    if name not in tensors:
        raise ValueError(f"{name} is missing")
    array = tensors[name].numpy()
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} is {array.dtype} {array.shape}, not {np.dtype(dtype)} {shape}")
    return array.copy()
