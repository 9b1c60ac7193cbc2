"""The engine as a client drives it: start, walking, looking, teleporting, queries."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thor.driver import BASE, SCENE, Client

from scrubjay.thor.actions import ACTIONS
from scrubjay.thor.engine import Engine


def near(point, **expected):
    assert {axis: point[axis] for axis in expected} == pytest.approx(expected, abs=1e-3)


def test_a_client_starts():
    client = Client()
    first = client.event
    assert first.message["sequenceId"] == 0
    assert client.meta["screenWidth"] == client.meta["screenHeight"] == 64
    assert first.images["rgb"][0].shape == (64, 64, 3)
    client.must("ChangeResolution", x=48, y=32)
    scenes = client.must("GetScenesInBuild")["actionReturn"]
    assert client.event.patch
    assert len(scenes) == 120
    assert {"FloorPlan1_physics", "FloorPlan230_physics", "FloorPlan430_physics"} <= set(scenes)
    assert "there is no scene" in client.fails("MoveAhead")
    assert "FloorPlan31" in client.fails("Reset", sceneName="FloorPlan31_physics")
    assert client.must("Reset", sceneName="FloorPlan28", sequenceId=0)["sceneName"] == SCENE
    assert client.event.message["sequenceId"] == 0
    assert client.must("ChangeQuality", quality="Very Low")
    planes = client.must("Initialize", gridSize=0.25, unheard=1)["actionReturn"]
    assert planes == {"cameraNearPlane": 0.1, "cameraFarPlane": 20.0}
    assert client.event.images["rgb"][0].shape == (32, 48, 3)
    assert client.event.images["rgb"][0].std() > 0
    client.engine.close()


def test_what_initialize_refuses(walker):
    for wrong in (
        dict(gridSize=0), dict(fieldOfView=180), dict(agentCount=0), dict(agentCount=99), dict(agentMode="submarine"),
        dict(visibilityDistance=-1), dict(rotateStepDegrees=45), dict(rotateStepDegrees=1e-9, snapToGrid=False),
        dict(width=0),
    ):  # fmt: skip
        walker.fails("Initialize", **wrong)
    walker.must("Initialize", rotateStepDegrees=45, snapToGrid=False)
    before = walker.meta["agent"]["rotation"]["y"]
    assert walker.must("RotateRight")["agent"]["rotation"]["y"] == pytest.approx((before + 45) % 360)


@pytest.mark.parametrize(
    ("action", "x", "z"),
    [("MoveAhead", -1.5, -1.25), ("MoveBack", -1.5, -1.75), ("MoveLeft", -1.75, -1.5), ("MoveRight", -1.25, -1.5)],
)
def test_a_step_is_a_quarter_of_a_meter(walker, action, x, z):
    near(walker.must(action)["agent"]["position"], x=x, y=0.901, z=z)


def test_steps_of_other_lengths(walker):
    near(walker.must("MoveAhead", moveMagnitude=0.5)["agent"]["position"], x=-1.5, z=-1.0)
    walker.fails("MoveAhead", moveMagnitude=5)
    near(walker.meta["agent"]["position"], x=-1.5, z=-1.0)
    walker.fails("MoveAhead", moveMagnitude=1e30)


def test_steps_snap_to_the_grid(walker):
    walker.must("Teleport", x=-1.4, z=-1.6)
    near(walker.meta["agent"]["position"], x=-1.4, z=-1.6)
    near(walker.must("MoveAhead")["agent"]["position"], x=-1.5, z=-1.25)
    walker.must("Initialize", snapToGrid=False)
    walker.must("Teleport", x=-1.4, z=-1.6)
    near(walker.must("MoveAhead")["agent"]["position"], x=-1.4, z=-1.35)


def test_turning(walker):
    assert walker.must("RotateRight")["agent"]["rotation"] == {"x": 0, "y": 90, "z": 0}
    assert walker.must("RotateLeft", degrees=100)["agent"]["rotation"] == {"x": 0, "y": 350, "z": 0}
    near(walker.must("RotateLook", rotation={"y": 90}, horizon=31)["agent"]["position"], x=-1.5, z=-1.5)
    assert walker.meta["agent"]["cameraHorizon"] == 31
    near(walker.must("MoveAhead")["agent"]["position"], x=-1.25, z=-1.5)


def test_looking_ends_at_60_and_minus_30(walker):
    horizons = [walker.must("LookDown")["agent"]["cameraHorizon"] for _ in range(2)]
    assert horizons == [30, 60]
    assert "60" in walker.fails("LookDown")
    assert walker.meta["agent"]["cameraHorizon"] == 60
    for _ in range(3):
        walker.must("LookUp")
    assert walker.meta["agent"]["cameraHorizon"] == -30
    walker.fails("LookUp")
    walker.must("LookDown", degrees=7)
    assert walker.meta["agent"]["cameraHorizon"] == pytest.approx(-23)
    walker.fails("LookDown", degrees=-1)


def test_crouching(walker):
    walker.fails("Stand")
    high = walker.meta["cameraPosition"]["y"]
    assert walker.must("Crouch")["agent"]["isStanding"] is False
    assert high - walker.meta["cameraPosition"]["y"] == pytest.approx(0.675)
    walker.fails("Crouch")
    assert walker.must("Stand")["agent"]["isStanding"] is True


def test_teleporting(walker):
    meta = walker.must("TeleportFull", x=-2.0, y=0.95, z=-2.5, rotation={"x": 0, "y": 45, "z": 0}, horizon=330)
    near(meta["agent"]["position"], x=-2.0, y=0.901, z=-2.5)
    assert meta["agent"]["cameraHorizon"] == -30
    assert meta["agent"]["rotation"]["y"] == 45
    before = meta["agent"]
    for wrong in (
        dict(y=1.0),
        dict(z=-3.5),
        dict(z=0.0),
        dict(x=2000.0, z=9000.0),
        dict(horizon=61),
        dict(horizon=200),
    ):
        walker.fails("Teleport", **wrong)
        assert walker.meta["agent"] == before
    walker.fails("Teleport", code="InvalidArgument", position={"x": "left"})
    after = walker.must("Teleport", horizon=10)["agent"]
    assert after == before | {"cameraHorizon": 10.0}
    near(
        walker.must("Teleport", position={"x": 5.0, "y": 0.9, "z": 5.0}, forceAction=True)["agent"]["position"],
        x=5,
        z=5,
    )
    walker.must("TeleportFull", **BASE, standing=False, rotation=25)
    assert walker.meta["agent"]["isStanding"] is False
    assert walker.meta["agent"]["rotation"]["y"] == 25


def test_a_locobot_does_not_stand(walker):
    assert walker.must("Initialize", agentMode="locobot")["agent"]["isStanding"] is None
    walker.fails("Crouch", code="InvalidAction")
    walker.must("Teleport", **BASE, horizon=30)
    walker.fails("Teleport", code="InvalidArgument", **BASE, standing=True)
    assert walker.meta["fov"] == 60


def test_reachable_positions(walker):
    found = walker.must("GetReachablePositions")["actionReturn"]
    assert walker.event.patch
    assert {"agentId", "lastAction", "lastActionSuccess", "actionReturn", "errorMessage", "errorCode"} == set(
        walker.event.message
    )
    assert len(found) > 50
    assert {point["y"] for point in found} == {0.900999}
    for point in found[:: len(found) // 5]:
        assert (point["x"] / 0.25) % 1 == pytest.approx(0, abs=1e-6)
        walker.must("Teleport", **point)
    coarse = walker.must("GetReachablePositions", gridSize=0.5)["actionReturn"]
    assert len(coarse) < len(found) / 2
    walker.fails("GetReachablePositions", gridSize=0)
    walker.fails("GetReachablePositions", maxStepCount=0)
    walker.must("Teleport", rotation=30)
    turned = walker.must("GetReachablePositions", directionsRelativeAgent=True)["actionReturn"]
    assert len(turned) > 50 and turned[1] not in found


def test_queries_come_whole_without_fast_emit(walker):
    walker.must("Initialize", fastActionEmit=False)
    walker.must("TestFastEmit", rvalue="foo")
    assert not walker.event.patch
    assert walker.meta["actionReturn"] == "foo"
    walker.must("Initialize")
    assert walker.must("TestActionReflectParam", rvalue="x" * 20_000)["actionReturn"] == "x" * 20_000
    assert walker.event.patch


def test_shortest_paths(walker):
    corners = walker.must("GetShortestPath", objectType="Fridge")["actionReturn"]["corners"]
    near(corners[0], x=-1.5, z=-1.5)
    fridge = walker.object("Fridge")["position"]
    end = corners[-1]
    assert np.hypot(end["x"] - fridge["x"], end["z"] - fridge["z"]) < 1.2
    path = walker.must("GetShortestPathToPoint", target={"x": -2.0, "y": 0, "z": -2.5})["actionReturn"]["corners"]
    near(path[-1], x=-2.0, z=-2.5)
    assert walker.must("GetShortestPathToPoint", x=-2.0, y=0, z=-2.5)["actionReturn"]["corners"] == path
    walker.fails("GetShortestPath", objectType="Elephant")
    walker.fails("GetShortestPath", objectId="Elephant|1|2|3")
    walker.fails("GetShortestPathToPoint")
    walker.fails("GetShortestPathToPoint", x=99.0, z=99.0)


def test_rays(walker):
    """A level camera 1.5765 m high at x = -1.5 that looks east meets what is ahead at its own height."""
    walker.must("TeleportFull", **BASE, rotation=90, horizon=0)
    point = walker.must("GetCoordinateFromRaycast", x=0.5, y=0.5)["actionReturn"]
    near(point, y=1.5765, z=-1.5)
    assert point["x"] > -1.0
    for x, y in [(1.5, 0.5), (1.1, 0.3), (-0.1, 0.8), (-0.5, -0.3)]:
        walker.fails("GetCoordinateFromRaycast", x=x, y=y)
    walker.fails("GetObjectInFrame", code="MissingArguments", x=0.5)
    walker.must("RotateLook", rotation=90, horizon=60)
    assert walker.must("GetObjectInFrame", x=0.5, y=0.95)["actionReturn"].startswith("Floor|")


def test_visible_objects(walker):
    walker.face("Fridge")
    seen = walker.must("GetVisibleObjects")["actionReturn"]
    assert seen == [one["objectId"] for one in walker.meta["objects"] if one["visible"]]
    assert walker.must("GetVisibleObjects", maxDistance=20.0)["actionReturn"] >= seen
    assert walker.must("GetVisibleObjects", objectIds=[])["actionReturn"] == []


def test_interactable_poses(walker):
    fridge = walker.id("Fridge")
    here = walker.meta["agent"]
    poses = walker.must("GetInteractablePoses", objectId=fridge, horizons=[0, 30], rotations=[0, 90])["actionReturn"]
    assert poses and {pose["horizon"] for pose in poses} <= {0, 30} and {pose["rotation"] for pose in poses} <= {0, 90}
    assert walker.must("Pass")["agent"] == here
    pose = poses[len(poses) // 2]
    meta = walker.must("TeleportFull", **pose)
    assert walker.object("Fridge")["visible"]
    near(meta["agent"]["position"], x=pose["x"], z=pose["z"])
    assert meta["agent"]["isStanding"] == pose["standing"]
    assert len(walker.must("GetInteractablePoses", objectId=fridge, maxPoses=3)["actionReturn"]) == 3
    assert walker.must("GetInteractablePoses", objectId=fridge, rotations=[270])["actionReturn"] == []
    assert walker.must("GetInteractablePoses", objectId=fridge, positions=[])["actionReturn"] == []
    walker.fails("GetInteractablePoses", objectId=fridge, maxPoses=0)
    walker.fails("GetInteractablePoses", objectId="Unicorn")
    assert "too many" in walker.fails("GetInteractablePoses", objectId=fridge, rotations=list(range(3000)))


def test_unknown_actions_and_arguments(walker):
    assert walker.fails("Levitate", code="InvalidAction") == "Invalid action: Levitate"
    walker.fails("MoveAhead", code="InvalidArgument", speed=3)
    walker.fails("MoveAhead", code="InvalidArgument", moveMagnitude=float("nan"))
    walker.fails("ChangeResolution", code="MissingArguments", x=3)
    walker.fails("ChangeResolution", x=0, y=3)
    walker.fails("Pass", code="InvalidArgument", agentId=7)
    walker.fails("Pass", code="InvalidArgument", agentId="me")
    assert walker.event.message["sequenceId"] == walker.sequence


def test_what_an_event_has_can_be_packed(walker):
    json.dumps(walker.must("Pass"))
    json.dumps(walker.must("GetReachablePositions"))
    json.dumps(walker.must("GetInteractablePoses", objectId=walker.id("Fridge"), maxPoses=1))


words = st.sampled_from(["", "Fridge", "Apple|-00.40|+00.98|-01.58", "MoveAhead", "x"])
value = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.floats(allow_nan=True), words,
    st.dictionaries(st.sampled_from(["x", "y", "z"]), st.floats(allow_nan=True)), st.lists(words, max_size=2),
)  # fmt: skip
QUICK = sorted(set(ACTIONS) - {"Reset", "Initialize", "InitialRandomSpawn", "ChangeResolution", "RandomizeMaterials",
                               "RandomizeColors", "ResetMaterials", "ResetColors", "GetInteractablePoses"})  # fmt: skip


@settings(max_examples=150)
@given(st.data())
def test_nothing_a_client_sends_raises(_walker, data):
    action = ACTIONS[data.draw(st.sampled_from(QUICK))]
    names = [argument.name for argument in action.arguments]
    sent = data.draw(st.dictionaries(st.sampled_from([*names, "agentId", "nonsense"]), value, max_size=4))
    meta = _walker.step(action.name, **sent)
    assert isinstance(meta["lastActionSuccess"], bool)
    assert "in the engine" not in meta["errorMessage"]
    assert meta["lastActionSuccess"] == (meta["errorMessage"] == "")


def test_an_action_without_a_name():
    engine = Engine(8, 8)
    for action in ({}, {"action": None}, {"action": 3}, {"action": {"a": 1}, "agentId": [1]}):
        event = engine.step(action)
        assert event.message["agents"][0]["errorCode"] in ("InvalidAction", "InvalidArgument")


def test_pictures_that_nobody_looked_at_show_their_own_moment():
    client = Client()
    client.reset()
    looked, blind = [], []
    for action in ("RotateRight", "LookDown", "RotateLeft"):
        client.step(action)
        looked.append(client.event.images["rgb"][0])
    client.reset()
    for action in ("RotateRight", "LookDown", "RotateLeft"):
        client.step(action)
        blind.append(client.event)
    assert all((event.images["rgb"][0] == image).all() for event, image in zip(blind, looked, strict=True))
    assert (looked[0] != looked[1]).any()
