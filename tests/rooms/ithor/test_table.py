"""The table has AI2-THOR's own names, ids and numbers."""

import re

import numpy as np
import pytest

from scrubjay.errors import RoomError
from scrubjay.rooms.ithor import FLOOR_PLANS, ITHOR_SCENES, objects, room_type

ID = re.compile(r"[A-Za-z]+(\|[-+]?\d+\.\d\d){3}(\|[A-Za-z]+)?")


def test_an_object_as_ai2thor_reports_it():
    """The cup of FloorPlan28, as its wheel has it, digit by digit."""
    (cup,) = (record for record in objects("iTHOR:FloorPlan28") if record["objectType"] == "Cup")
    assert cup["objectId"] == "Cup|-03.82|+00.82|-03.11"
    assert (cup["name"], cup["assetId"]) == ("Cup_b3f7c833", "Cup_28")
    assert (cup["pickupable"], cup["moveable"], cup["openable"], cup["canFillWithLiquid"]) == (True, False, False, True)
    assert cup["parentReceptacles"] == ["DiningTable|-03.59|+00.00|-03.26"]
    corners = cup["objectOrientedBoundingBox"]["cornerPoints"]
    assert corners[0] == [-3.7551498413085938, 0.8249555826187134, -3.042064666748047]
    assert np.allclose(corners[6], [-3.884823799133301, 0.9613938927650452, -3.1717939376831055], atol=2e-6)


@pytest.mark.parametrize("scene", FLOOR_PLANS[::17])
def test_records_agree_with_themselves(scene):
    records = objects(scene)
    ids = [record["objectId"] for record in records]
    assert len(set(ids)) == len(ids) and len({record["name"] for record in records}) == len(ids)
    assert sum(record["objectType"] == "Floor" for record in records) == 1
    for record in records:
        assert ID.fullmatch(record["objectId"])
        for field in ("parentReceptacles", "receptacleObjectIds", "controlledObjects"):
            assert set(record[field] or ()) <= set(ids)
        assert (record["receptacleObjectIds"] is not None) == record["receptacle"]
        box = record["axisAlignedBoundingBox"]
        corners, center, size = np.array(box["cornerPoints"]), *(list(box[k].values()) for k in ("center", "size"))
        assert np.allclose(corners.max(0) - corners.min(0), size, atol=1e-5)
        assert np.allclose(corners.mean(0), center, atol=1e-5)
        if record["pickupable"] or record["moveable"]:
            oriented = np.array(record["objectOrientedBoundingBox"]["cornerPoints"])
            sides = np.linalg.norm(oriented[[1, 3, 4]] - oriented[0], axis=1)
            assert np.allclose(np.linalg.norm(oriented[6] - oriented[0]), np.linalg.norm(sides), rtol=1e-3)


def test_all_rooms_are_there_by_both_names():
    assert len(FLOOR_PLANS) == 120 and ITHOR_SCENES[27] == "iTHOR:FloorPlan28"
    assert objects("FloorPlan28") == objects("iTHOR:FloorPlan28")
    types = {room_type(f"FloorPlan{n}") for n in (1, 30)}, room_type("FloorPlan230"), room_type("FloorPlan301")
    assert types == ({"kitchen"}, "living_room", "bedroom") and room_type("iTHOR:FloorPlan430") == "bathroom"


def test_a_caller_may_change_what_it_got():
    objects("FloorPlan401")[0]["position"]["x"] = 99.0
    assert objects("FloorPlan401")[0]["position"]["x"] != 99.0


@pytest.mark.parametrize("name", ["iTHOR:FloorPlan999", "FloorPlan31", "iTHOR:", "kitchen-3", "iTHOR:../FloorPlan1"])
def test_an_unknown_name_is_one_sentence(name):
    with pytest.raises(RoomError, match=r"unknown scene .*; iTHOR's rooms are iTHOR:FloorPlan1 to 30") as error:
        objects(name)
    assert "\n" not in str(error.value)
