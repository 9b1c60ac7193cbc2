"""Random actions of AI2-THOR's, as clumsy scripts send them; needs nothing but the standard library.

Most name objects that exist and arguments that make sense; some do not, and must fail politely.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

WALKS = ("MoveAhead", "MoveBack", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "LookUp", "LookDown")
POSTURES = ("Crouch", "Stand", "Pass", "Done")
ON_OBJECTS = (
    "OpenObject", "CloseObject", "PickupObject", "PutObject", "ToggleObjectOn", "ToggleObjectOff", "SliceObject",
    "BreakObject", "DirtyObject", "CleanObject", "CookObject", "EmptyLiquidFromObject",
)  # fmt: skip
ON_HELD = (
    "DropHeldObject", "DropHandObject", "ThrowObject", "MoveHeldObject", "MoveHeldObjectAhead", "MoveHeldObjectUp",
    "MoveHandForce", "RotateHeldObject", "RotateHandRelative",
)  # fmt: skip
QUERIES = (
    "GetReachablePositions", "GetObjectInFrame", "GetCoordinateFromRaycast", "GetVisibleObjects", "GetShortestPath",
    "GetSceneBounds", "GetMapViewCameraProperties",
)  # fmt: skip
DRAWING = ("HideObject", "UnhideAllObjects", "EmphasizeObject", "UnemphasizeAll", "MaskObject", "UnmaskObject")
RARE = (
    "AddThirdPartyCamera", "UpdateThirdPartyCamera", "ToggleMapView", "SetObjectFilter", "ResetObjectFilter",
    "TeleportObject", "PlaceObjectAtPoint", "DisableObject", "EnableObject", "InitialRandomSpawn", "SetObjectPoses",
    "RandomizeMaterials", "ResetMaterials",
)  # fmt: skip


def random_action(rng: random.Random, metadata: dict[str, Any]) -> dict[str, Any]:
    """An action from the last event's metadata."""
    kind = rng.choices((WALKS, POSTURES, ON_OBJECTS, ON_HELD, QUERIES, DRAWING, RARE, ("TeleportFull",), ("Nonsense",)),
                       weights=(30, 4, 26, 14, 6, 2, 4, 6, 1))[0]  # fmt: skip
    name = rng.choice(kind)
    return {"action": name, **ARGUMENTS.get(name, lambda *_: {})(rng, metadata)}


def _object(rng: random.Random, metadata: dict[str, Any], test: str = "") -> str:
    """The id of an object, likely a visible one, that has a flag."""
    objects = [one for one in metadata["objects"] if not test or one[test]]
    seen = [one for one in objects if one["visible"]]
    if not objects or rng.random() < 0.02:
        return "Unicorn|+00.00|+00.00|+00.00"
    return rng.choice(seen if seen and rng.random() < 0.5 else objects)["objectId"]


def _on(test: str) -> Callable[[random.Random, dict[str, Any]], dict[str, Any]]:
    """Arguments of an action on an object with a flag: by id, or by a place of the frame."""

    def arguments(rng: random.Random, metadata: dict[str, Any]) -> dict[str, Any]:
        if rng.random() < 0.15:
            return {"x": rng.uniform(-0.05, 1), "y": rng.random(), "forceAction": rng.random() < 0.5}
        return {"objectId": _object(rng, metadata, test), "forceAction": rng.random() < 0.5}

    return arguments


def _id(rng: random.Random, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"objectId": _object(rng, metadata)}


def _point(rng: random.Random, metadata: dict[str, Any], height: float = 2.0) -> dict[str, float]:
    """A point of the scene, or a little outside."""
    box = metadata["sceneBounds"]
    low = {axis: box["center"][axis] - 0.55 * box["size"][axis] for axis in "xz"}
    x, z = (round(low[axis] + 1.1 * rng.random() * box["size"][axis], 2) for axis in "xz")
    return {"x": x, "y": round(rng.uniform(0, height), 2), "z": z}


def _angles(rng: random.Random) -> dict[str, float]:
    return {"x": rng.choice([0, 0, 30]), "y": rng.randrange(0, 360, 15), "z": rng.choice([0, 0, 90])}


def _small(rng: random.Random) -> float:
    return round(rng.uniform(-0.3, 0.3), 2)


def _teleport(rng: random.Random, metadata: dict[str, Any]) -> dict[str, Any]:
    place = {**_point(rng, metadata), "y": metadata["agent"]["position"]["y"]}
    place = {axis: round(value * 4) / 4 if axis != "y" else value for axis, value in place.items()}
    return {"position": place, "rotation": {"y": rng.randrange(0, 360, 30)}, "horizon": rng.choice([-30, 0, 30, 60])}


def _poses(rng: random.Random, metadata: dict[str, Any]) -> dict[str, Any]:
    loose = [one for one in metadata["objects"] if one["pickupable"]]
    keep = [one for one in loose if rng.random() < 0.9]
    return {
        "objectPoses": [{"objectName": o["name"], "position": o["position"], "rotation": o["rotation"]} for o in keep]
    }


ARGUMENTS: dict[str, Callable[[random.Random, dict[str, Any]], dict[str, Any]]] = {
    **{name: _on(test) for name, test in {
        "CloseObject": "openable", "PickupObject": "pickupable", "PutObject": "receptacle",
        "ToggleObjectOn": "toggleable", "ToggleObjectOff": "toggleable", "SliceObject": "sliceable",
        "BreakObject": "breakable", "DirtyObject": "dirtyable", "CleanObject": "dirtyable", "CookObject": "cookable",
        "EmptyLiquidFromObject": "canFillWithLiquid",
    }.items()},
    **dict.fromkeys(
        ("HideObject", "EmphasizeObject", "MaskObject", "UnmaskObject", "DisableObject", "EnableObject"), _id
    ),
    "OpenObject": lambda r, m: {**_on("openable")(r, m), "openness": r.choice([0.25, 0.5, 1.0, 1.0, 1.0, 2.0])},
    "MoveAhead": lambda r, m: {"moveMagnitude": r.choice([0.25, 0.5, 0.1, -0.25, 7.0])} if r.random() < 0.2 else {},
    "ThrowObject": lambda r, m: {"moveMagnitude": r.choice([0.0, 10.0, 100.0])},
    "MoveHeldObject": lambda r, m: {"ahead": _small(r), "right": _small(r), "up": _small(r)},
    "MoveHandForce": lambda r, m: {"x": _small(r), "y": _small(r), "z": _small(r)},
    "RotateHeldObject": lambda r, m: {"pitch": r.choice([0, 30]), "yaw": r.choice([0, 45]), "roll": r.choice([0, 90])},
    "RotateHandRelative": lambda r, m: {"x": 0, "y": 30, "z": 0},
    "GetObjectInFrame": lambda r, m: {"x": r.random(), "y": r.random()},
    "GetCoordinateFromRaycast": lambda r, m: {"x": r.random(), "y": r.random()},
    "GetShortestPath": lambda r, m: {"objectId": _object(r, m)},
    "AddThirdPartyCamera": lambda r, m: {"position": _point(r, m), "rotation": _angles(r), "fieldOfView": 60.0},
    "UpdateThirdPartyCamera": lambda r, m: {"thirdPartyCameraId": r.randrange(3), "rotation": {"y": r.random() * 360}},
    "SetObjectFilter": lambda r, m: {"objectIds": [_object(r, m) for _ in range(5)]},
    "TeleportObject": lambda r, m: {
        "objectId": _object(r, m, "pickupable"), "position": _point(r, m), "rotation": _angles(r),
        "forceAction": r.random() < 0.3,
    },
    "PlaceObjectAtPoint": lambda r, m: {"objectId": _object(r, m, "pickupable"), "position": _point(r, m)},
    "InitialRandomSpawn": lambda r, m: {"randomSeed": r.randrange(100), "numPlacementAttempts": 2},
    "SetObjectPoses": _poses,
    "TeleportFull": _teleport,
}  # fmt: skip
