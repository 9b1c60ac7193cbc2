"""What a client may get wrong: each is a ValueError or a failed action, and the next action works."""

import json

from ai2thor.controller import Controller

controller = Controller(scene="FloorPlan1")
report = {}


def step(name, **action):
    try:
        event = controller.step(**action)
        report[name] = [bool(event), event.metadata["errorMessage"], event.metadata["errorCode"]]
    except ValueError as error:
        report[name] = ["ValueError", str(error)]
    assert controller.step("Pass")


step("unknown action", action="Levitate")
step("unknown argument", action="MoveAhead", speed=3)
step("wrong type", action="MoveAhead", moveMagnitude="far")
step("missing argument", action="OpenObject")
step("unknown object", action="PickupObject", objectId="Apple|+99.00|+99.00|+99.00")
step(
    "out of the room",
    action="TeleportFull",
    x=100,
    y=0.9,
    z=100,
    rotation=dict(x=0, y=0, z=0),
    horizon=0,
    standing=True,
)
step("not a number", action="RotateRight", degrees=float("nan"))
step("nothing held", action="DropHeldObject")
step("unknown camera", action="UpdateThirdPartyCamera", thirdPartyCameraId=7, rotation=dict(x=0, y=0, z=0))
step("no agent", action="MoveAhead", agentId=5)
try:
    controller.reset("FloorPlan999")
except ValueError as error:
    report["unknown scene"] = ["ValueError", str(error).strip().splitlines()[0]]
report["after"] = bool(controller.step("RotateRight"))
print(json.dumps(report))
controller.stop()
