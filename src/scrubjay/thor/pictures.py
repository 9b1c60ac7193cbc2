"""An event's pictures: what agents and third-party cameras see, as a client reads it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from scrubjay.sim.quaternion import matrix_from_quat
from scrubjay.thor.coordinates import quat_from_euler
from scrubjay.thor.metadata import map_camera
from scrubjay.thor.scene import Pictures
from scrubjay.thor.session import Session

MAGENTA = (255, 0, 255)
SHAPES = {
    "rgb": (3, np.uint8),
    "depth": (0, np.float32),
    "normals": (3, np.uint8),
    "ids": (4, np.uint8),
    "classes": (4, np.uint8),
}
"""Channels and types of pictures."""
THIRD_PARTY = "third_party_"


def render(session: Session, kinds: Collection[str]) -> dict[str, list[np.ndarray]]:
    """Pictures of these kinds, one for each agent, and one for each third-party camera."""
    if not session.has_scene or not kinds:
        return {kind: [_blank(session, kind)] for kind in kinds}
    images: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
    needed = _needed(session, kinds)
    for number, agent in enumerate(session.scene.agents):
        if session.map_view:
            camera = map_camera(session)
            pictures, rotation = _look_down(session, needed), camera.rotation
        else:
            pictures, rotation = session.scene.see(number, needed), np.array([agent.horizon, agent.rotation, 0.0])
        for kind in kinds:
            images[kind].append(_image(session, kind, pictures, rotation))
    if session.scene.cameras:
        images |= {THIRD_PARTY + kind: [] for kind in kinds}
    for number, camera in enumerate(session.scene.cameras):
        pictures = session.scene.look_through(number, needed)
        for kind in kinds:
            images[THIRD_PARTY + kind].append(_image(session, kind, pictures, camera.rotation))
    return images


def _needed(session: Session, kinds: Collection[str]) -> set[str]:
    """The kinds of picture that a scene must draw."""
    needed = {"ids" if kind == "classes" else kind for kind in kinds}
    return needed | {"ids"} if session.painted and "rgb" in kinds else needed


def _look_down(session: Session, kinds: Collection[str]) -> Pictures:
    """The map, through a camera that exists only for it."""
    cameras = session.scene.cameras
    cameras.append(map_camera(session))
    try:
        return session.scene.look_through(len(cameras) - 1, kinds)
    finally:
        cameras.pop()


def _image(session: Session, kind: str, pictures: Pictures, rotation: np.ndarray) -> np.ndarray:
    if kind == "depth":
        assert pictures.depth is not None
        return pictures.depth
    if kind == "normals":
        assert pictures.normals is not None
        return encode_normals(pictures.normals, rotation)
    if kind == "rgb" and not session.painted:
        return pictures.rgb
    assert pictures.ids is not None
    if kind == "rgb":
        painted = pictures.rgb.copy()
        painted[np.isin(pictures.ids, list(session.painted))] = MAGENTA
        return painted
    return session.colors.ids(pictures.ids) if kind == "ids" else session.colors.classes(pictures.ids)


def encode_normals(normals: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Normals (..., 3) of a room as bytes: right, up and towards the camera, from -1 at 0 to 1 at 255.

    `rotation` (3,) is the camera's pitch, yaw and roll.
    """
    matrix = matrix_from_quat(quat_from_euler(rotation)).astype(np.float32)
    right, ahead, up = matrix.T
    local = normals @ np.stack([right, up, -ahead], -1)
    return np.round((local + 1) * 127.5).clip(0, 255).astype(np.uint8)


def _blank(session: Session, kind: str) -> np.ndarray:
    channels, dtype = SHAPES[kind]
    return np.zeros((session.height, session.width, *([channels] if channels else [])), dtype)
