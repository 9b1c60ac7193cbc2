"""Every one of iTHOR's rooms behind the engine."""

import numpy as np
import pytest
from thor.driver import Client

from scrubjay.rooms import ithor
from scrubjay.thor.session import starts

CROWDED = ("FloorPlan16", "FloorPlan413")
"""Rooms of ours in which no body fits where AI2-THOR's agent starts: it stands beside."""


@pytest.fixture(scope="module")
def visitor():
    client = Client()
    yield client
    client.engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("scene", ithor.FLOOR_PLANS)
def test_a_room_starts_as_ai2thors(visitor, scene):
    meta = visitor.reset(scene)
    table = {record["objectId"]: record for record in ithor.objects(scene)}
    assert [one["objectId"] for one in meta["objects"]] == list(table)
    for one in meta["objects"]:
        assert one["position"] == table[one["objectId"]]["position"]
        assert one["axisAlignedBoundingBox"] == table[one["objectId"]]["axisAlignedBoundingBox"]
    x, z, rotation, horizon = starts()[scene]
    agent = meta["agent"]
    assert (agent["rotation"]["y"], agent["cameraHorizon"]) == (rotation, horizon)
    assert np.hypot(agent["position"]["x"] - x, agent["position"]["z"] - z) < (1.0 if scene in CROWDED else 0.01)
    height = ithor.floor_height(scene) + 0.901
    assert agent["position"]["y"] == pytest.approx(height, abs=1e-3)
    positions = visitor.must("GetReachablePositions")["actionReturn"]
    assert len(positions) > 5
    visitor.must("TeleportFull", **positions[-1], rotation=90, horizon=30)
    loose = next(one for one in meta["objects"] if one["pickupable"])
    if visitor.step("PickupObject", objectId=loose["objectId"], forceAction=True)["lastActionSuccess"]:
        visitor.must("DropHeldObject")
        assert visitor.object(loose["objectId"])["axisAlignedBoundingBox"]["center"]["y"] > ithor.floor_height(scene)
