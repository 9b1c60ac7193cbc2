"""The table of actions agrees with its handlers and with the documentation."""

import inspect
from pathlib import Path

import pytest

from scrubjay.thor.actions import ACTIONS, SECTIONS, document, find
from scrubjay.thor.arguments import REQUIRED, InvalidRequest

DOCS = Path(__file__).parents[2] / "docs" / "thor_actions.md"
TIERS = [
    "MoveAhead", "MoveBack", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "RotateLook", "LookUp",
    "LookDown", "Crouch", "Stand", "Teleport", "TeleportFull", "GetReachablePositions", "OpenObject", "CloseObject",
    "PickupObject", "DropHeldObject", "DropHandObject", "ThrowObject", "PutObject", "MoveHeldObject",
    "MoveHeldObjectAhead", "MoveHeldObjectBack", "MoveHeldObjectLeft", "MoveHeldObjectRight", "MoveHeldObjectUp",
    "MoveHeldObjectDown", "MoveHandForce", "RotateHeldObject", "RotateHandRelative", "Pass", "Done", "Initialize",
    "Reset", "GetScenesInBuild", "ChangeResolution", "ChangeQuality", "ChangeOpenSpeed", "GetObjectInFrame",
    "GetCoordinateFromRaycast", "GetInteractablePoses", "GetVisibleObjects", "GetMapViewCameraProperties",
    "GetShortestPath", "GetShortestPathToPoint", "GetSceneBounds", "AddThirdPartyCamera", "UpdateThirdPartyCamera",
    "ToggleMapView", "SetObjectFilter", "ResetObjectFilter", "SetObjectPoses", "TeleportObject",
    "PlaceObjectAtPoint", "RemoveFromScene", "DisableObject", "EnableObject", "HideAllObjectsExcept",
    "UnhideAllObjects", "EmphasizeObject", "ToggleObjectOn", "ToggleObjectOff", "SliceObject", "BreakObject",
    "DirtyObject", "CookObject", "FillObjectWithLiquid", "EmptyLiquidFromObject", "SetRandomSeed",
    "RandomizeMaterials", "ResetMaterials", "RandomizeLighting", "RandomizeColors", "InitialRandomSpawn",
]  # fmt: skip


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda action: action.name)
def test_a_handler_takes_the_arguments_of_its_row(action):
    names = list(inspect.signature(action.handler).parameters)
    assert names[:2] == ["session", "agent"]
    assert sorted(names[2:]) == sorted(argument.parameter for argument in action.arguments)
    assert len({argument.name for argument in action.arguments}) == len(action.arguments)


def test_all_actions_of_the_first_two_tiers_are_there():
    assert set(TIERS) <= set(ACTIONS)


def test_no_action_is_there_twice():
    assert sum(map(len, SECTIONS.values())) == len(ACTIONS)


def test_the_documentation_is_the_table():
    assert DOCS.read_text() == document(), "run: python -m scrubjay.thor.actions > docs/thor_actions.md"


def test_every_row_says_what_it_does():
    for action in ACTIONS.values():
        assert action.text.endswith(".")


def test_an_unknown_action():
    for name in ("Fly", None, 3, ["MoveAhead"]):
        with pytest.raises(InvalidRequest) as caught:
            find(name)
        assert caught.value.code == "InvalidAction"


def test_an_object_is_named_in_one_way():
    pick = ACTIONS["PickupObject"]
    with pytest.raises(InvalidRequest) as both:
        pick.parameters({"objectId": "Apple", "x": 0.5, "y": 0.5})
    assert both.value.code == "AmbiguousAction"
    for given, missing in [({}, "objectId"), ({"x": 0.5}, "y")]:
        with pytest.raises(InvalidRequest) as neither:
            pick.parameters(given)
        assert neither.value.code == "MissingArguments"
        assert str(neither.value).endswith(missing)
    assert ACTIONS["PutObject"].parameters({"receptacleObjectId": "Fridge"})["receptacle_object_id"] == "Fridge"


def test_required_arguments():
    required = {
        action.name: [argument.name for argument in action.arguments if argument.default is REQUIRED]
        for action in ACTIONS.values()
    }
    assert required["AddThirdPartyCamera"] == ["position", "rotation"]
    assert required["MoveAhead"] == []
    assert required["ChangeResolution"] == ["x", "y"]
