"""Actions that only ask. A client gets their answers without objects and images."""

from __future__ import annotations

from typing import Any

import numpy as np

from scrubjay.rooms.directions import facing_vector
from scrubjay.thor.coordinates import Vector, numbers, to_room, to_unity, vector
from scrubjay.thor.handlers.bodies import DOWN, UP
from scrubjay.thor.metadata import map_camera
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.session import AGENT_HEIGHT, SCENES, Session

HORIZONS = (-30.0, 0.0, 30.0, 60.0)
MIN_GRID, MAX_POSITIONS = 0.05, 10_000
MAX_TRIES = 50_000
"""Poses that one query looks from, at about a millisecond each: a client waits for 100 seconds."""


def scenes(session: Session, agent: int) -> list[str]:
    """Names of the rooms."""
    return list(SCENES)


def reachable_positions(
    session: Session, agent: int, grid_size: float | None, max_step_count: int, directions_relative_agent: bool
) -> list[Vector]:
    """Positions on a grid that the agent can walk to."""
    step = session.settings.grid_size if grid_size is None else grid_size
    if not MIN_GRID <= step <= 10:
        raise ActionFailed(f"gridSize is from {MIN_GRID:g} to 10 m, not {step:g}")
    if max_step_count < 1:
        raise ActionFailed(f"maxStepCount must be positive, but it is {max_step_count}")
    limit = min(max_step_count, MAX_POSITIONS)
    found = session.scene.reachable(agent, step, limit, directions_relative_agent)
    return [_at_height(session, point) for point in found]


def object_in_frame(session: Session, agent: int, x: float, y: float, check_visible: bool) -> str:
    """The id of the object at a place of the frame."""
    return session.object_id(session.target(agent, None, x, y, force=not check_visible))


def coordinate_from_raycast(session: Session, agent: int, x: float, y: float) -> Vector:
    """The point that is seen at a place of the frame."""
    _, point = session.at(agent, x, y)
    return vector(to_unity(point, session.objects.floor))


def visible_objects(
    session: Session,
    agent: int,
    max_distance: float | None,
    visibility_scheme: str | None,
    object_ids: list[str] | None,
) -> list[str]:
    """Ids of the objects that the agent sees."""
    seen = session.visible(agent, max_distance)
    wanted = None if object_ids is None else set(object_ids)
    names = [record["objectId"] for thing, record in session.objects.records.items() if thing in seen]
    return [name for name in names if wanted is None or name in wanted]


def scene_bounds(session: Session, agent: int) -> dict[str, Any]:
    """The box around everything."""
    return session.objects.bounds


def map_view_camera(session: Session, agent: int) -> dict[str, Any]:
    """A third-party camera's arguments for a map of the scene."""
    camera = map_camera(session)
    return {
        "position": vector(to_unity(camera.position, session.objects.floor)),
        "rotation": vector(camera.rotation),
        "orthographicSize": camera.orthographic_size,
        "orthographic": True,
    }


def interactable_poses(
    session: Session,
    agent: int,
    object_id: str,
    positions: list[Vector] | None,
    rotations: list[float] | None,
    horizons: list[float] | None,
    standings: list[bool] | None,
    max_distance: float | None,
    max_poses: int,
) -> list[dict[str, Any]]:
    """Poses from which the agent sees an object within reach; tried by standing there."""
    thing, body = session.thing(object_id), session.agent(agent)
    if max_poses < 1:
        raise ActionFailed(f"maxPoses must be positive, but it is {max_poses}")
    settings = session.settings
    distance = settings.visibility_distance if max_distance is None else max_distance
    if positions is None:
        places = session.scene.reachable(agent, settings.grid_size)
    else:
        places = np.array([to_room(numbers(point))[:2] for point in positions]).reshape(-1, 2)
    if rotations is None:
        rotations = np.arange(0.0, 360.0, settings.rotate_step).tolist()
    pitches = [horizon for horizon in horizons or HORIZONS if UP <= horizon <= DOWN]
    postures = (standings or [True, False]) if settings.stands else [body.standing]
    corners = session.scene.corners(thing)
    places = places[_distance_to_box(corners, places) <= distance]
    tries = len(places) * len(rotations) * len(pitches) * len(postures)
    if tries > MAX_TRIES:
        raise ActionFailed(
            f"{tries} poses are too many to try, more than {MAX_TRIES}; pass positions, rotations or horizons"
        )
    before = (body.position.copy(), body.rotation, body.horizon, body.standing)
    found: list[dict[str, Any]] = []
    try:
        for place in places:
            for rotation in rotations:
                if not _may_face(corners, place, rotation, settings.field_of_view * session.width / session.height):
                    continue
                for horizon in pitches:
                    for standing in postures:
                        try:
                            session.scene.teleport(
                                agent, place, rotation % 360, horizon, standing, body.held is not None
                            )
                        except ActionFailed:
                            continue
                        if thing in session.scene.visible(agent, distance):
                            found.append(
                                {
                                    **_at_height(session, place), "rotation": float(rotation) % 360,
                                    "horizon": float(horizon), "standing": standing if settings.stands else None,
                                }
                            )  # fmt: skip
                            if len(found) >= max_poses:
                                return found
    finally:
        session.scene.teleport(agent, *before, force=True)
    return found


def shortest_path(
    session: Session,
    agent: int,
    object_type: str | None,
    object_id: str | None,
    position: Vector | None,
    allowed_error: float | None,
) -> dict[str, Any]:
    """The corners of a shortest walk to the nearest place beside an object."""
    if object_id is not None:
        thing = session.thing(object_id)
    else:
        thing = _nearest_of_type(session, agent, object_type)
    places = session.scene.reachable(agent, session.settings.grid_size)
    if not len(places):
        raise ActionFailed("the agent can reach no position")
    nearest = places[_distance_to_box(session.scene.corners(thing), places).argmin()]
    return _path(session, _start(session, agent, position), nearest)


def shortest_path_to_point(
    session: Session,
    agent: int,
    position: Vector | None,
    target: Vector | None,
    x: float | None,
    y: float | None,
    z: float | None,
    allowed_error: float | None,
) -> dict[str, Any]:
    """The corners of a shortest walk to a point."""
    if target is None:
        if x is None or z is None:
            raise ActionFailed("target, or x and z, must say where to go")
        target = {"x": x, "y": y or 0.0, "z": z}
    return _path(session, _start(session, agent, position), to_room(numbers(target))[:2])


def reflect(session: Session, agent: int, rvalue: Any) -> Any:
    """Gives back what it got."""
    return rvalue


def _nearest_of_type(session: Session, agent: int, kind: str | None) -> int:
    things = [
        thing
        for thing, record in session.objects.records.items()
        if record["objectType"] == kind and thing not in session.scene.absent
    ]
    if not things:
        raise ActionFailed(f"there is no object of type {kind!r} in {session.scene_name}")
    here = session.agent(agent).position
    return min(things, key=lambda thing: float(np.linalg.norm(session.scene.pose(thing)[:2] - here)))


def _start(session: Session, agent: int, position: Vector | None) -> np.ndarray:
    return session.agent(agent).position if position is None else to_room(numbers(position))[:2]


def _path(session: Session, start: np.ndarray, end: np.ndarray) -> dict[str, Any]:
    corners = session.scene.path(np.array(start, float), np.array(end, float))
    floor = session.objects.floor
    return {"corners": [vector(to_unity(np.array([*corner, 0.0]), floor)) for corner in corners]}


def _at_height(session: Session, point: np.ndarray) -> Vector:
    return vector(to_unity(np.array([*point, AGENT_HEIGHT]), session.objects.floor))


def _distance_to_box(corners: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Horizontal distances of places (n, 2) from the box around corners (8, 3)."""
    low, high = corners[:, :2].min(0), corners[:, :2].max(0)
    return np.linalg.norm(places - np.clip(places, low, high), axis=1)


def _may_face(corners: np.ndarray, place: np.ndarray, rotation: float, degrees: float) -> bool:
    """Whether any of a box can be in a frame that spans so many degrees; looking up or down widens it."""
    low, high = corners[:, :2].min(0), corners[:, :2].max(0)
    steps = np.linspace(0, 1, 5)
    grid = np.stack(np.meshgrid(*(low[k] + steps * (high[k] - low[k]) for k in (0, 1))), -1).reshape(-1, 2)
    away = grid - place
    if (np.linalg.norm(away, axis=1) < 0.3).any():
        return True
    cosine = away @ facing_vector(rotation) / np.linalg.norm(away, axis=1)
    return bool(cosine.max() >= np.cos(np.radians(min(degrees, 170) / 2 + 25)))
