"""An event's metadata: every key of AI2-THOR's, null where it has null."""

from __future__ import annotations

from typing import Any

import numpy as np

from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.sim.pose import CAMERA_CROUCHING, CAMERA_STANDING
from scrubjay.sim.quaternion import matrix_from_quat, quat_mul
from scrubjay.thor.coordinates import euler_from_quat, quat_from_euler, to_room, to_unity, vector, wrap
from scrubjay.thor.objects import axis_aligned_box
from scrubjay.thor.scene import SceneCamera
from scrubjay.thor.session import Outcome, Session

HAND = np.array([0.0, -0.16, 0.38])
"""Where an empty hand is: right, up and ahead of the camera, in meters."""
LISTS = (
    "actionFloatsReturn", "actionStringsReturn", "actionVector3sReturn", "collidedObjects", "distances",
    "flatSurfacesOnGrid", "isOpenableGrid", "normals", "objectIdsInBox", "segmentedObjectIds",
)  # fmt: skip
"""Fields that no current action fills."""
STEP_SECONDS = 0.02
"""By which an event's clock advances with each action."""


def metadata(session: Session, agent: int, colors: bool) -> dict[str, Any]:
    """An agent's metadata; with `colors` if segmentation pictures come with it."""
    outcome = session.outcomes[agent]
    return {
        "sceneName": session.scene_name, "agentId": agent, "screenWidth": session.width,
        "screenHeight": session.height, "depthFormat": "Meters", "currentTime": session.steps * STEP_SECONDS,
        "fov": session.settings.field_of_view, "isSceneAtRest": True, "collided": False,
        "colors": session.colors.listing if colors and session.has_scene else None, "colorBounds": None,
        "visibleRange": None, "actionIntReturn": 0, "actionFloatReturn": 0.0, **{name: [] for name in LISTS},
        **(_in_scene(session, agent) if session.has_scene else _nowhere()), **fields(outcome),
    }  # fmt: skip


def fields(outcome: Outcome) -> dict[str, Any]:
    """What an action's end changes; all that the fast answer to a query has."""
    return {
        "lastAction": outcome.action, "lastActionSuccess": outcome.success, "errorMessage": outcome.message,
        "errorCode": outcome.code, "actionReturn": outcome.returned,
    }  # fmt: skip


def cameras(session: Session) -> list[dict[str, Any]]:
    """Third-party cameras."""
    if not session.has_scene:
        return []
    return [
        {
            "thirdPartyCameraId": number,
            "position": vector(to_unity(camera.position, session.objects.floor)),
            "rotation": vector(wrap(camera.rotation)),
            "fieldOfView": camera.field_of_view,
        }
        for number, camera in enumerate(session.scene.cameras)
    ]


def map_camera(session: Session) -> SceneCamera:
    """A camera that sees the whole scene from above, without perspective."""
    bounds = session.objects.bounds
    center, size = (np.array([bounds[key][axis] for axis in "xyz"]) for key in ("center", "size"))
    above = center + [0.0, size[1], 0.0]
    return SceneCamera(
        to_room(above, session.objects.floor), np.array([90.0, 0.0, 0.0]), 90.0, float(max(size[0], size[2])) / 2
    )


def _in_scene(session: Session, agent: int) -> dict[str, Any]:
    body, settings = session.agent(agent), session.settings
    seen = session.visible(agent)
    held = body.held
    record = None if held is None else session.objects.records[held]
    return {
        "agent": {
            "name": "agent", "position": vector(session.position(agent)),
            "rotation": vector([0.0, wrap(body.rotation), 0.0]), "cameraHorizon": float(body.horizon),
            "isStanding": body.standing if settings.stands else None, "inHighFrictionArea": False,
        },
        "cameraPosition": vector(to_unity(eye(session, agent), session.objects.floor)),
        "cameraOrthSize": map_camera(session).orthographic_size if session.map_view else 0.0,
        "heldObjectPose": _hand(session, agent),
        "inventoryObjects": [{key: record[key] for key in ("objectId", "objectType")}] if record else [],
        "objects": session.objects.listing(session.position(agent), seen, session.only),
        "sceneBounds": session.objects.bounds,
        "thirdPartyCameras": cameras(session),
    }  # fmt: skip


def eye(session: Session, agent: int) -> np.ndarray:
    """Where an agent's camera is in the room, (3,)."""
    body = session.agent(agent)
    return np.array([*body.position, CAMERA_STANDING if body.standing else CAMERA_CROUCHING])


def _hand(session: Session, agent: int) -> dict[str, Any]:
    """The pose of a held object, or of the empty hand, in Unity's frame and in that of the agent's body."""
    body, at = session.agent(agent), eye(session, agent)
    if body.held is None:
        right, up, ahead = HAND
        offset = right * right_vector(body.rotation) + ahead * facing_vector(body.rotation)
        return {
            "position": vector(to_unity(at + [*offset, up], session.objects.floor)),
            "rotation": vector([0.0, wrap(body.rotation), 0.0]),
            "localPosition": vector(HAND),
            "localRotation": vector([0.0, 0.0, 0.0]),
        }
    facing = quat_from_euler([0.0, body.rotation, 0.0])
    pose = session.scene.pose(body.held)
    position, quaternion = pose[:3], pose[3:]
    local = matrix_from_quat(facing).T @ (position - at)
    return {
        "position": vector(to_unity(position, session.objects.floor)),
        "rotation": vector(euler_from_quat(quaternion)),
        "localPosition": vector(to_unity(local)),
        "localRotation": vector(euler_from_quat(quat_mul(facing * [1, -1, -1, -1], quaternion))),
    }


def _nowhere() -> dict[str, Any]:
    """The fields of an event before there is a scene."""
    zero = vector([0, 0, 0])
    return {
        "agent": {
            "name": "agent", "position": zero, "rotation": zero, "cameraHorizon": 0.0, "isStanding": True,
            "inHighFrictionArea": False,
        },
        "cameraPosition": zero, "cameraOrthSize": 0.0, "inventoryObjects": [], "objects": [],
        "heldObjectPose": dict.fromkeys(("position", "rotation", "localPosition", "localRotation"), zero),
        "sceneBounds": axis_aligned_box(np.zeros((1, 3))), "thirdPartyCameras": [],
    }  # fmt: skip
