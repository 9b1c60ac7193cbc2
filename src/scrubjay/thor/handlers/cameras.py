"""Actions of cameras that belong to nobody, and of the size of pictures."""

from __future__ import annotations

import numpy as np

from scrubjay.thor.coordinates import Vector, numbers, to_room, to_unity, vector
from scrubjay.thor.scene import ActionFailed, SceneCamera
from scrubjay.thor.session import MAX_SIDE, Session

MAX_CAMERAS = 16
MAX_DISTANCE = 1000.0
"""Meters from the origin."""


def add_camera(
    session: Session,
    agent: int,
    position: Vector,
    rotation: Vector,
    field_of_view: float,
    skybox_color: str | None,
    orthographic: bool,
    orthographic_size: float | None,
    near_clipping_plane: float | None,
    far_clipping_plane: float | None,
    anti_aliasing: str | None,
) -> None:
    """Adds a camera."""
    if len(session.scene.cameras) >= MAX_CAMERAS:
        raise ActionFailed(f"there are {MAX_CAMERAS} cameras already")
    degrees = {"x": 0.0, "y": 0.0, "z": 0.0} | rotation
    size = _size(orthographic, orthographic_size, None)
    session.scene.cameras.append(_camera(session, position, degrees, field_of_view, size))


def update_camera(
    session: Session,
    agent: int,
    third_party_camera_id: int,
    position: Vector | None,
    rotation: Vector | None,
    field_of_view: float | None,
    skybox_color: str | None,
    orthographic: bool | None,
    orthographic_size: float | None,
    near_clipping_plane: float | None,
    far_clipping_plane: float | None,
    anti_aliasing: str | None,
) -> None:
    """Changes a camera; what is not given stays."""
    cameras = session.scene.cameras
    if not 0 <= third_party_camera_id < len(cameras):
        raise ActionFailed(f"there is no third-party camera {third_party_camera_id}; there are {len(cameras)}")
    now = cameras[third_party_camera_id]
    cameras[third_party_camera_id] = _camera(
        session,
        vector(to_unity(now.position, session.objects.floor)) | (position or {}),
        vector(now.rotation) | (rotation or {}),
        now.field_of_view if field_of_view is None else field_of_view,
        _size(orthographic, orthographic_size, now.orthographic_size),
    )


def toggle_map_view(session: Session, agent: int) -> None:
    """Shows the scene from above in place of what agents see, or ends that."""
    session.map_view = not session.map_view


def change_resolution(session: Session, agent: int, x: int, y: int) -> None:
    """Changes the size of pictures."""
    if not (1 <= x <= MAX_SIDE and 1 <= y <= MAX_SIDE):
        raise ActionFailed(f"pictures have 1 to {MAX_SIDE} pixels a side, not {x} x {y}")
    if session.has_scene:
        session.scene.resize(x, y)
    session.width, session.height = x, y


def _camera(
    session: Session, position: Vector, rotation: Vector, field_of_view: float, orthographic_size: float | None
) -> SceneCamera:
    if not 0 < field_of_view < 180:
        raise ActionFailed(f"fieldOfView is between 0 and 180 degrees, not {field_of_view:g}")
    if max(map(abs, position.values())) > MAX_DISTANCE:
        raise ActionFailed(f"cameras are within {MAX_DISTANCE:g} m of the origin")
    place = to_room(numbers(position), session.objects.floor)
    return SceneCamera(place, np.mod(numbers(rotation), 360.0), field_of_view, orthographic_size)


def _size(orthographic: bool | None, size: float | None, now: float | None) -> float | None:
    """Half the height of an orthographic picture in meters; None for perspective."""
    if orthographic is False or (orthographic is None and now is None):
        return None
    size = size if size is not None else 5.0 if now is None else now
    if not 0 < size <= MAX_DISTANCE:
        raise ActionFailed(f"orthographicSize is between 0 and {MAX_DISTANCE:g} m, not {size:g}")
    return size
