"""Hands, states, poses, cameras and pictures, as a client drives them."""

import numpy as np
import pytest

from scrubjay.rooms import ithor
from scrubjay.thor.session import starts

BOTTLE, APPLE = "SoapBottle", "Apple"


def near(point, other, within=1e-3):
    assert point == pytest.approx(other, abs=within)


def test_opening(kitchen):
    kitchen.face("Fridge")
    fridge = kitchen.object("Fridge")
    closed, name = fridge["axisAlignedBoundingBox"]["size"], fridge["objectId"]
    for openness in (0.5, 0.7):
        kitchen.must("OpenObject", objectId=name, openness=openness, forceAction=True)
        assert kitchen.object(name)["openness"] == pytest.approx(openness)
        assert kitchen.object(name)["isOpen"]
    assert kitchen.object(name)["axisAlignedBoundingBox"]["size"] != closed
    kitchen.must("CloseObject", objectId=name, forceAction=True)
    assert not kitchen.object(name)["isOpen"] and kitchen.object(name)["openness"] == 0
    assert kitchen.object(name)["axisAlignedBoundingBox"]["size"] == closed
    assert "already closed" in kitchen.fails("CloseObject", objectId=name)
    for wrong in (-0.5, 1.5):
        kitchen.fails("OpenObject", objectId=name, openness=wrong, forceAction=True)
    kitchen.must("OpenObject", objectId=name, moveMagnitude=0, forceAction=True)
    assert kitchen.object(name)["openness"] == 1
    kitchen.must("OpenObject", objectId=name, moveMagnitude=0.65, forceAction=True)
    assert kitchen.object(name)["openness"] == pytest.approx(0.65)
    kitchen.fails("OpenObject", x=1.5, y=0.5)
    kitchen.fails("OpenObject", objectId=kitchen.id(APPLE), forceAction=True)
    kitchen.fails("OpenObject", objectId="Fridge|1|2|3")
    kitchen.must("Teleport", rotation=270)
    kitchen.must("CloseObject", objectId=name, forceAction=True)
    assert "not visible" in kitchen.fails("OpenObject", objectId=name)


def test_opening_what_is_at_a_place_of_the_frame(kitchen):
    kitchen.face("Fridge", horizons=[0], rotations=[90])
    found = [
        (x, y)
        for x in (0.3, 0.5, 0.7)
        for y in (0.4, 0.5, 0.6)
        if kitchen.step("GetObjectInFrame", x=x, y=y)["actionReturn"] == kitchen.id("Fridge")
    ]
    kitchen.must("OpenObject", x=found[0][0], y=found[0][1], openness=0.5)
    assert kitchen.object("Fridge")["isOpen"]


def test_a_hand_takes_moves_turns_and_drops(kitchen):
    kitchen.must("TeleportFull", x=-1.5, z=-1.5, rotation=180, horizon=0)
    name = kitchen.id(BOTTLE)
    assert "holds nothing" in kitchen.fails("DropHeldObject")
    assert "not visible" in kitchen.fails("PickupObject", objectId=name)
    assert "cannot be picked up" in kitchen.fails("PickupObject", objectId=kitchen.id("Fridge"), forceAction=True)
    meta = kitchen.must("PickupObject", objectId=name, forceAction=True)
    assert meta["inventoryObjects"] == [{"objectId": name, "objectType": BOTTLE}]
    assert kitchen.object(name)["isPickedUp"] and kitchen.object(name)["visible"]
    assert kitchen.object(name)["parentReceptacles"] is None
    assert "already holds" in kitchen.fails("PickupObject", objectId=kitchen.id(APPLE), forceAction=True)
    first = meta["heldObjectPose"]
    near(first["rotation"], {"x": 0, "y": 180, "z": 0})
    near(kitchen.object(name)["rotation"], first["rotation"])
    moved = kitchen.must("MoveHeldObject", ahead=0.1, right=0.05, up=-0.1)["heldObjectPose"]["localPosition"]
    change = {axis: moved[axis] - first["localPosition"][axis] for axis in "xyz"}
    near(change, {"x": 0.05, "y": -0.1, "z": 0.1})
    back = kitchen.must("MoveHandForce", x=-0.05, y=0.1, z=-0.1)["heldObjectPose"]["localPosition"]
    near(back, first["localPosition"])
    kitchen.must("MoveHeldObjectAhead", moveMagnitude=0.1)
    kitchen.must("MoveHandBack", moveMagnitude=0.1)
    kitchen.fails("MoveHeldObject", ahead=1e9)
    turned = kitchen.must("RotateHeldObject", pitch=90)["heldObjectPose"]
    near(turned["rotation"], {"x": 90, "y": 180, "z": 0})
    near(
        kitchen.must("RotateHeldObject", rotation={"x": 0})["heldObjectPose"]["localRotation"], dict.fromkeys("xyz", 0)
    )
    near(kitchen.must("RotateHeldObject", yaw=90)["heldObjectPose"]["rotation"], {"x": 0, "y": 270, "z": 0})
    near(kitchen.must("RotateHandRelative", y=-90)["heldObjectPose"]["rotation"], {"x": 0, "y": 180, "z": 0})
    # Positive roll is clockwise as the agent sees it; Unity's z runs the other way.
    near(kitchen.must("RotateHeldObject", roll=90)["heldObjectPose"]["rotation"], {"x": 0, "y": 180, "z": 270})
    near(kitchen.must("RotateHand", x=90, y=180)["heldObjectPose"]["localRotation"], {"x": 90, "y": 180, "z": 0})
    before = kitchen.object(name)["position"]
    kitchen.must("MoveBack")
    after = kitchen.object(name)["position"]
    assert after["z"] - before["z"] == pytest.approx(0.25, abs=1e-3)
    meta = kitchen.must("DropHandObject")
    assert meta["inventoryObjects"] == []
    assert kitchen.object(name)["position"]["y"] < 0.3
    assert kitchen.object(name)["parentReceptacles"] == [kitchen.id("Floor")]
    assert name in kitchen.object("Floor")["receptacleObjectIds"]


def test_putting_and_throwing(kitchen):
    kitchen.must("PickupObject", objectId=kitchen.id(APPLE), forceAction=True)
    kitchen.fails("PutObject", objectId=kitchen.id("Floor") + "?")
    assert "no receptacle" in kitchen.fails("PutObject", objectId=kitchen.id("Knife"), forceAction=True)
    kitchen.fails("PutObject", code="InvalidArgument", x=0.0, y=0.0, z=1.0)
    table = next(one for one in kitchen.meta["objects"] if one["objectType"] == "DiningTable")
    kitchen.must("PutObject", objectId=table["objectId"], forceAction=True)
    assert table["objectId"] in kitchen.object(APPLE)["parentReceptacles"]
    assert kitchen.id(APPLE) in kitchen.object(table["objectId"])["receptacleObjectIds"]
    kitchen.must("PickupObject", objectId=kitchen.id(APPLE), forceAction=True)
    kitchen.must("ThrowObject", moveMagnitude=10)
    assert kitchen.meta["inventoryObjects"] == []
    kitchen.fails("ThrowObject", moveMagnitude=10)


def test_states_are_flags(kitchen):
    def flag(kind, key):
        return kitchen.object(kind)[key]

    force = {"forceAction": True}
    kitchen.must("ToggleObjectOn", objectId=kitchen.id("StoveKnob"), **force)
    assert flag("StoveKnob", "isToggled")
    burner = kitchen.object("StoveKnob")["controlledObjects"][0]
    assert kitchen.object(burner)["isToggled"]
    kitchen.fails("ToggleObjectOn", objectId=kitchen.id("StoveKnob"), **force)
    kitchen.must("ToggleObjectOff", objectId=kitchen.id("StoveKnob"), **force)
    kitchen.fails("ToggleObjectOff", objectId=kitchen.id(APPLE), **force)
    for action, kind, key in [
        ("SliceObject", APPLE, "isSliced"), ("BreakObject", "Plate", "isBroken"), ("DirtyObject", "Mug", "isDirty"),
        ("CookObject", "Potato", "isCooked"),
    ]:  # fmt: skip
        kitchen.must(action, objectId=kitchen.id(kind), **force)
        assert flag(kind, key)
        kitchen.fails(action, objectId=kitchen.id(kind), **force)
        kitchen.fails(action, objectId=kitchen.id("Floor"), **force)
    kitchen.must("CleanObject", objectId=kitchen.id("Mug"), **force)
    assert not flag("Mug", "isDirty")
    kitchen.fails("UseUpObject", objectId=kitchen.id("Mug"), **force)
    kitchen.fails("FillObjectWithLiquid", objectId=kitchen.id("Pot"), fillLiquid="lava", **force)
    kitchen.fails("FillObjectWithLiquid", code="MissingArguments", objectId=kitchen.id("Pot"))
    kitchen.must("FillObjectWithLiquid", objectId=kitchen.id("Pot"), fillLiquid="wine", **force)
    assert flag("Pot", "fillLiquid") == "wine" and flag("Pot", "isFilledWithLiquid")
    kitchen.must("EmptyLiquidFromObject", objectId=kitchen.id("Pot"), **force)
    assert flag("Pot", "fillLiquid") is None and not flag("Pot", "isFilledWithLiquid")
    kitchen.fails("EmptyLiquidFromObject", objectId=kitchen.id("Pot"), **force)
    kitchen.must("OpenObject", objectId=kitchen.id("Microwave"), **force)
    kitchen.fails("ToggleObjectOn", objectId=kitchen.id("Microwave"), **force)


def test_objects_go_where_they_are_put(kitchen):
    name, place = kitchen.id(APPLE), {"x": -1.5, "y": 1.4, "z": -2.0}
    angles = {"x": 30.0, "y": 40.0, "z": 50.0}
    kitchen.must(
        "TeleportObject", objectId=name, position=place, rotation=angles, forceAction=True, forceKinematic=True
    )
    near(kitchen.object(name)["position"], place)
    near(kitchen.object(name)["rotation"], angles)
    box = kitchen.object(name)["axisAlignedBoundingBox"]
    corners = np.array(kitchen.object(name)["objectOrientedBoundingBox"]["cornerPoints"])
    assert corners.min(0) == pytest.approx(np.min(box["cornerPoints"], 0))
    kitchen.must("TeleportObject", objectId=name, position=place, rotation={"x": 0, "y": 0, "z": 0})
    assert kitchen.object(name)["position"]["y"] < 0.2
    kitchen.fails("TeleportObject", objectId=name, position={"x": 1e7})
    kitchen.fails("TeleportObject", objectId=kitchen.id("Fridge"), position=place)
    kitchen.must("PlaceObjectAtPoint", objectId=name, position={"x": -2.0, "y": 0.0, "z": -2.0})
    near(kitchen.object(name)["position"], {"x": -2.0, "y": 0.05, "z": -2.0}, within=0.03)
    kitchen.fails("PlaceObjectAtPoint", objectId=name, position={"x": -0.3, "y": 0.5, "z": -0.65})


def test_poses_of_all_objects(kitchen):
    def pose(one):
        return {"objectName": one["name"], "position": one["position"], "rotation": one["rotation"]}

    loose = [one for one in kitchen.meta["objects"] if one["pickupable"]]
    moved = {**loose[0], "position": {"x": -1.5, "y": 1.0, "z": -2.0}}
    meta = kitchen.must("SetObjectPoses", objectPoses=[pose(one) for one in [moved, *loose[1:-1]]])
    there = {one["objectId"]: one for one in meta["objects"]}
    assert loose[-1]["objectId"] not in there
    near(there[loose[0]["objectId"]]["position"], moved["position"])
    near(there[loose[1]["objectId"]]["position"], loose[1]["position"])
    kitchen.must("SetObjectPoses", objectPoses=[pose(one) for one in loose])
    near(kitchen.object(loose[-1]["objectId"])["position"], loose[-1]["position"])
    kitchen.fails("SetObjectPoses", objectPoses=[{"objectName": "Unicorn"}])
    kitchen.fails("SetObjectPoses", objectPoses=[{"objectName": loose[0]["name"], "position": 3}])


def test_removing_hiding_and_filtering(kitchen):
    count, name = len(kitchen.meta["objects"]), kitchen.id(APPLE)
    assert len(kitchen.must("DisableObject", objectId=name)["objects"]) == count - 1
    kitchen.fails("PickupObject", objectId=name, forceAction=True)
    kitchen.must("EnableObject", objectId=name)
    assert len(kitchen.must("RemoveFromScene", objectIds=[name, kitchen.id("Mug")])["objects"]) == count - 2
    kitchen.fails("RemoveFromScene", objectId=name)
    kitchen.fails("EnableObject", objectId="Unicorn")
    kitchen.must("SetObjectFilter", objectIds=[kitchen.id("Fridge"), "Unicorn"])
    assert [one["objectType"] for one in kitchen.meta["objects"]] == ["Fridge"]
    assert kitchen.must("SetObjectFilter", objectIds=[])["objects"] == []
    assert len(kitchen.must("ResetObjectFilter")["objects"]) == count - 2


def test_pictures_of_all_kinds(kitchen):
    kitchen.face("Fridge", horizons=[0], rotations=[90])
    asked = dict.fromkeys(("renderDepthImage", "renderObjectImage", "renderClassImage", "renderNormalsImage"), True)
    kitchen.must("Pass", **asked)
    images = {kind: pictures[0] for kind, pictures in kitchen.event.images.items()}
    assert {kind: (one.shape, one.dtype.name) for kind, one in images.items()} == {
        "rgb": ((64, 64, 3), "uint8"), "depth": ((64, 64), "float32"), "normals": ((64, 64, 3), "uint8"),
        "ids": ((64, 64, 4), "uint8"), "classes": ((64, 64, 4), "uint8"),
    }  # fmt: skip
    colors = {row["name"]: row["color"] for row in kitchen.meta["colors"]}
    fridge = (images["ids"][..., :3] == colors[kitchen.id("Fridge")]).all(-1)
    assert fridge.sum() > 50
    assert ((images["classes"][..., :3] == colors["Fridge"]).all(-1) == fridge).all()
    # What faces the camera has a normal towards it, (0, 0, 1).
    assert (np.abs(images["normals"][fridge].astype(int) - [128, 128, 255]).max(1) < 12).mean() > 0.3
    assert 0.1 < images["depth"][fridge].min() < 2
    kitchen.must("MaskObject", objectId=kitchen.id("Fridge"))
    magenta = (kitchen.event.images["rgb"][0] == [255, 0, 255]).all(-1)
    assert (magenta == fridge).mean() > 0.99
    kitchen.must("UnmaskObject", objectId=kitchen.id("Fridge"))
    assert not (kitchen.event.images["rgb"][0] == [255, 0, 255]).all(-1).any()
    kitchen.must("EmphasizeObject", objectId=kitchen.id("Fridge"))
    assert (kitchen.event.images["rgb"][0] == [255, 0, 255]).all(-1).sum() >= fridge.sum()
    kitchen.must("UnemphasizeAll")
    kitchen.must("HideObject", objectId=kitchen.id("Fridge"))
    kitchen.must("Pass", renderInstanceSegmentation=True)
    assert not (kitchen.event.images["ids"][0][..., :3] == colors[kitchen.id("Fridge")]).all(-1).any()
    kitchen.must("UnhideObject", objectId=kitchen.id("Fridge"))
    kitchen.must("HideAllObjectsExcept", objectIds=[kitchen.id("Fridge")])
    kitchen.must("HideAllObjects")
    kitchen.must("UnhideAllObjects")
    kitchen.must("Pass", renderImage=False)
    assert kitchen.event.images == {}


def test_third_party_cameras(kitchen):
    position, rotation = {"x": -1.2, "y": 2.3, "z": -1.4}, {"x": 30.0, "y": 40.0, "z": 50.0}
    kitchen.must("AddThirdPartyCamera", position=position, rotation=rotation, fieldOfView=45)
    (camera,) = kitchen.meta["thirdPartyCameras"]
    assert camera["thirdPartyCameraId"] == 0 and camera["fieldOfView"] == 45
    near(camera["position"], position)
    near(camera["rotation"], rotation)
    assert kitchen.event.message["thirdPartyCameras"] == [camera]
    assert kitchen.event.images["third_party_rgb"][0].shape == (64, 64, 3)
    kitchen.fails("AddThirdPartyCamera", position=5, rotation=rotation)
    wrong = kitchen.fails(
        "AddThirdPartyCamera", code="InvalidArgument", position=position, rotation=rotation, orthographicSize=position
    )
    assert wrong.startswith("action: AddThirdPartyCamera has an invalid argument: orthographicSize")
    kitchen.must(
        "UpdateThirdPartyCamera", thirdPartyCameraId=0, position={"x": 3.2}, rotation={"y": 90}, fieldOfView=55
    )
    (camera,) = kitchen.meta["thirdPartyCameras"]
    near(camera["position"], position | {"x": 3.2})
    near(camera["rotation"], rotation | {"y": 90})
    for degrees in (-1, 181, 0):
        kitchen.fails("UpdateThirdPartyCamera", fieldOfView=degrees)
    kitchen.fails("UpdateThirdPartyCamera", thirdPartyCameraId=1)
    properties = kitchen.must("GetMapViewCameraProperties")["actionReturn"]
    kitchen.must("AddThirdPartyCamera", **properties)
    above = kitchen.event.images["third_party_rgb"][1]
    kitchen.must("ToggleMapView")
    assert (kitchen.event.images["rgb"][0] == above).all()
    assert kitchen.meta["cameraOrthSize"] == properties["orthographicSize"]
    kitchen.must("ToggleMapView")
    assert kitchen.meta["cameraOrthSize"] == 0


def test_a_camera_where_an_agent_is_sees_the_same(kitchen):
    kitchen.must("TeleportFull", x=-2.75, z=-1.75, rotation=90, horizon=0)
    eye = kitchen.meta["cameraPosition"]
    kitchen.must("AddThirdPartyCamera", position=eye, rotation={"x": 0, "y": 90, "z": 0}, renderDepthImage=True)
    mine, others = kitchen.event.images["depth"][0], kitchen.event.images["third_party_depth"][0]
    assert np.square(mine - others).mean() < 1e-4


def test_several_agents(kitchen):
    kitchen.must("Initialize", agentCount=2)
    agents = kitchen.event.message["agents"]
    assert [agent["agentId"] for agent in agents] == [0, 1]
    assert agents[0]["agent"]["position"] != agents[1]["agent"]["position"]
    assert len(kitchen.event.images["rgb"]) == 2
    kitchen.must("RotateRight", agentId=1)
    message = kitchen.event.message
    assert message["activeAgentId"] == 1
    assert message["agents"][1]["agent"]["rotation"]["y"] == (agents[1]["agent"]["rotation"]["y"] + 90) % 360
    assert message["agents"][0]["agent"] == agents[0]["agent"]
    assert message["agents"][0]["lastAction"] == "Initialize"
    kitchen.must("GetReachablePositions", agentId=1)
    assert kitchen.event.message["agentId"] == 1
    kitchen.must("PickupObject", agentId=1, objectId=kitchen.id(APPLE), forceAction=True)
    kitchen.fails("PickupObject", agentId=0, objectId=kitchen.id(APPLE), forceAction=True)


def test_what_is_random_follows_its_seed(kitchen):
    def places(seed):
        kitchen.reset()
        meta = kitchen.must("InitialRandomSpawn", randomSeed=seed, excludedObjectIds=[kitchen.id("Mug")])
        return {one["objectId"]: one["position"] for one in meta["objects"] if one["pickupable"]}

    mug, start = kitchen.id("Mug"), {one["objectId"]: one["position"] for one in kitchen.meta["objects"]}
    first, again, other = places(1), places(1), places(2)
    assert first == again
    assert first[mug] == start[mug]
    assert sum(first[name] != start[name] for name in first) > len(first) / 2
    assert sum(first[name] != other[name] for name in first) > len(first) / 2
    kitchen.fails("InitialRandomSpawn", numPlacementAttempts=0)


def test_materials(kitchen):
    own = kitchen.event.images["rgb"][0].astype(int)

    def randomized(seed):
        kitchen.must("SetRandomSeed", seed=seed)
        kitchen.must("RandomizeMaterials")
        return kitchen.event.images["rgb"][0].astype(int)

    first, other, again = randomized(41), randomized(42), randomized(41)
    assert (first == again).all()
    assert np.abs(first - own).mean() > 1 and np.abs(first - other).mean() > 1
    kitchen.must("RandomizeLighting", brightness=[0.5, 1.5])
    kitchen.must("ResetMaterials")
    assert (kitchen.event.images["rgb"][0] == own).all()


def test_agents_start_where_ai2thors_do(kitchen):
    """AI2-THOR's own tests have FloorPlan28's start; distances in its metadata have those of all 120 rooms."""
    agent = kitchen.meta["agent"]
    near(agent["position"], {"x": -1.5, "y": 0.901, "z": -1.5})
    assert agent["rotation"]["y"] == 180
    assert set(starts()) == set(ithor.FLOOR_PLANS)
    places = np.array(list(starts().values()))
    assert np.abs(places[:, :2] - np.round(places[:, :2] * 4) / 4).max() < 2e-3
    assert set(places[:, 2]) == {0, 90, 180, 270} and set(places[:, 3]) == {0, 30}


def test_rooms_of_ours(kitchen):
    meta = kitchen.reset("kitchen-7")
    assert meta["sceneName"] == "kitchen-7"
    assert set(kitchen.object("Fridge")) == set(kitchen.object("Floor"))
    kitchen.must("OpenObject", objectId=kitchen.id("Fridge"), forceAction=True)
    assert kitchen.object("Fridge")["isOpen"]
    kitchen.must("GetReachablePositions")


def test_things_in_each_other_are_taken_together(kitchen):
    """Forced to one place, a bowl and a pot contain each other's centers."""
    place = {"x": -1.5, "y": 1.2, "z": -2.0}
    for kind in ("Pot", "Bowl"):
        kitchen.must("TeleportObject", objectId=kitchen.id(kind), position=place, forceAction=True, forceKinematic=True)
    kitchen.must("PickupObject", objectId=kitchen.id("Bowl"), forceAction=True)
    kitchen.must("DropHeldObject")


def test_hands_reach_as_far_as_visibility_does(kitchen):
    kitchen.must("Initialize", visibilityDistance=6.0)
    for rotation in (0, 90, 180, 270):
        kitchen.must("Teleport", rotation=rotation, horizon=30)
        seen = [
            one for one in kitchen.meta["objects"] if one["visible"] and one["pickupable"] and one["distance"] > 2.5
        ]
        if seen:
            break
    kitchen.must("PickupObject", objectId=seen[0]["objectId"])
    kitchen.reset()
    kitchen.must("Teleport", rotation=rotation, horizon=30)
    assert "not visible" in kitchen.fails("PickupObject", objectId=seen[0]["objectId"])
