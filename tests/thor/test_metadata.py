"""An event's metadata has every key of AI2-THOR's, with the values that its own tests want."""

import numpy as np
import pytest

from scrubjay.rooms import ithor

AGENT_KEYS = {
    "actionFloatReturn": float, "actionFloatsReturn": list, "actionIntReturn": int, "actionReturn": None,
    "actionStringsReturn": list, "actionVector3sReturn": list, "agent": dict, "agentId": int, "cameraOrthSize": float,
    "cameraPosition": dict, "collided": bool, "collidedObjects": list, "colorBounds": None, "colors": None,
    "currentTime": float, "distances": list, "errorCode": None, "errorMessage": str, "flatSurfacesOnGrid": list,
    "fov": float, "heldObjectPose": dict, "inventoryObjects": list, "isOpenableGrid": list, "isSceneAtRest": bool,
    "lastAction": str, "lastActionSuccess": bool, "normals": list, "objectIdsInBox": list, "objects": list,
    "sceneBounds": dict, "sceneName": str, "screenHeight": int, "screenWidth": int, "segmentedObjectIds": list,
    "thirdPartyCameras": list, "visibleRange": None, "depthFormat": str,
}  # fmt: skip
OBJECT_KEYS = {
    "name": str, "objectId": str, "objectType": str, "assetId": str, "position": dict, "rotation": dict,
    "visible": bool, "isInteractable": bool, "distance": float, "openable": bool, "isOpen": bool, "openness": float,
    "pickupable": bool,
    "isPickedUp": bool, "moveable": bool, "receptacle": bool, "toggleable": bool, "isToggled": bool, "breakable": bool,
    "isBroken": bool, "sliceable": bool, "isSliced": bool, "cookable": bool, "isCooked": bool, "dirtyable": bool,
    "isDirty": bool, "canFillWithLiquid": bool, "isFilledWithLiquid": bool, "canBeUsedUp": bool, "isUsedUp": bool,
    "temperature": str, "isHeatSource": bool, "isColdSource": bool, "mass": float, "isMoving": bool,
    "axisAlignedBoundingBox": dict, "fillLiquid": None,
}  # fmt: skip
LIST_OR_NULL = ("salientMaterials", "receptacleObjectIds", "parentReceptacles", "controlledObjects")


def is_vector(value):
    return list(value) == ["x", "y", "z"] and all(type(number) is float for number in value.values())


def check_box(box):
    assert set(box) == {"cornerPoints", "center", "size"}
    assert is_vector(box["center"]) or set(box["center"]) == set("xyz")
    assert np.array(box["cornerPoints"]).shape == (8, 3)


def test_every_key_is_there_with_its_type(walker):
    meta = walker.must("Pass")
    assert set(meta) == set(AGENT_KEYS)
    for key, kind in AGENT_KEYS.items():
        assert meta[key] is None if kind is None else type(meta[key]) is kind, key
    assert meta["lastAction"] == "Pass"
    assert meta["errorMessage"] == ""
    check_box(meta["sceneBounds"])
    assert set(meta["agent"]) == {
        "name", "position", "rotation", "cameraHorizon", "isStanding", "inHighFrictionArea",
    }  # fmt: skip
    assert set(meta["heldObjectPose"]) == {"position", "rotation", "localPosition", "localRotation"}
    assert all(map(is_vector, meta["heldObjectPose"].values()))
    assert is_vector(meta["cameraPosition"]) and is_vector(meta["agent"]["rotation"])
    assert set(walker.event.message) == {"agents", "thirdPartyCameras", "activeAgentId", "sequenceId"}


def test_every_object_has_every_key(walker):
    for one in walker.must("Pass")["objects"]:
        assert set(one) == {*OBJECT_KEYS, *LIST_OR_NULL, "objectOrientedBoundingBox"}
        for key, kind in OBJECT_KEYS.items():
            assert one[key] is None if kind is None else type(one[key]) is kind, (one["objectId"], key)
        for key in LIST_OR_NULL:
            assert one[key] is None or all(type(name) is str for name in one[key])
        check_box(one["axisAlignedBoundingBox"])
        oriented = one["objectOrientedBoundingBox"]
        assert (oriented is not None) == (one["pickupable"] or one["moveable"])
        assert oriented is None or np.array(oriented["cornerPoints"]).shape == (8, 3)


def test_at_first_objects_are_as_the_table_has_them(kitchen):
    table = {record["objectId"]: record for record in ithor.objects("FloorPlan28")}
    assert [one["objectId"] for one in kitchen.meta["objects"]] == list(table)
    for one in kitchen.meta["objects"]:
        record = table[one["objectId"]]
        for key in set(record) - {"isOpen", "openness"}:
            if key == "receptacleObjectIds" or key == "parentReceptacles":
                assert sorted(one[key] or ()) == sorted(record[key] or ()), (one["objectId"], key)
            else:
                assert one[key] == record[key], (one["objectId"], key)


def test_distance_is_from_the_agents_position(walker):
    meta = walker.must("Pass")
    fridge = walker.object("Fridge")
    here, there = ([point[axis] for axis in "xyz"] for point in (meta["agent"]["position"], fridge["position"]))
    assert fridge["distance"] == pytest.approx(float(np.linalg.norm(np.subtract(here, there))))


def test_visible_is_what_is_near_and_in_the_frame(walker):
    walker.face("Fridge")
    assert walker.object("Fridge")["isInteractable"]
    walker.must("RotateRight", degrees=180)
    assert not walker.object("Fridge")["visible"]
    walker.must("Initialize", visibilityDistance=0.01)
    assert not any(one["visible"] for one in walker.meta["objects"])


def test_an_empty_hand_is_in_front_of_the_camera(walker):
    """At x = -1.5, z = -1.5, facing east: 0.38 m ahead is x = -1.12."""
    hand = walker.must("TeleportFull", x=-1.5, z=-1.5, rotation=90, horizon=0)["heldObjectPose"]
    assert hand["position"] == pytest.approx({"x": -1.12, "y": 1.5765 - 0.16, "z": -1.5})
    assert hand["localPosition"] == pytest.approx({"x": 0.0, "y": -0.16, "z": 0.38})
    assert hand["rotation"] == {"x": 0.0, "y": 90.0, "z": 0.0}
    assert hand["localRotation"] == {"x": 0.0, "y": 0.0, "z": 0.0}


def test_colors_come_with_segmentation(walker):
    assert walker.must("Pass")["colors"] is None
    meta = walker.must("Pass", renderInstanceSegmentation=True)
    names = {row["name"] for row in meta["colors"]}
    assert {one["objectId"] for one in meta["objects"]} <= names
    assert {one["objectType"] for one in meta["objects"]} <= names
    assert walker.must("Pass")["colors"] is None


def test_events_are_snapshots(walker):
    walker.face("Fridge")
    before = walker.event.message["agents"][0]
    fridge = walker.object("Fridge")
    walker.must("RotateRight", degrees=180)
    assert fridge["visible"]
    assert before["agent"]["rotation"] != walker.meta["agent"]["rotation"]
