"""Opening, picking up, putting, dropping and toggling, in the style of AI2-THOR's guide to interaction."""

import json

from ai2thor.controller import Controller

controller = Controller(scene="FloorPlan28", visibilityDistance=1.5)


def of_type(name):
    return [thing for thing in controller.last_event.metadata["objects"] if thing["objectType"] == name]


def get(identity):
    return controller.last_event.get_object(identity)


def go_to(identity):
    poses = controller.step("GetInteractablePoses", objectId=identity).metadata["actionReturn"]
    return any(controller.step("TeleportFull", **pose) for pose in poses)


report = {}
fridge = of_type("Fridge")[0]["objectId"]
report["there"] = go_to(fridge)
for openness in (0.5, 1.0):
    event = controller.step(action="OpenObject", objectId=fridge, openness=openness)
    report[f"open {openness}"] = [bool(event), get(fridge)["isOpen"], round(get(fridge)["openness"], 3)]
event = controller.step(action="CloseObject", objectId=fridge)
report["close"] = [bool(event), get(fridge)["isOpen"], get(fridge)["openness"]]

controller.reset("FloorPlan28")
for name in ("Apple", "Tomato", "Bread", "Cup", "Mug", "Pan"):
    for thing in of_type(name):
        if go_to(thing["objectId"]):
            event = controller.step(action="PickupObject", objectId=thing["objectId"])
            if event:
                break
    if event:
        break
held = thing["objectId"]
report["pick up"] = [bool(event), get(held)["isPickedUp"], event.metadata["inventoryObjects"], name, held]
again = controller.step(action="PickupObject", objectId=of_type("Plate")[0]["objectId"], forceAction=True)
report["second"] = [bool(again), again.metadata["errorMessage"]]
moved = controller.step(action="MoveHeldObject", ahead=0.05, right=0.0, up=0.05)
report["move"] = [bool(moved), moved.metadata["errorMessage"]]

for receptacle in [thing for kind in ("CounterTop", "DiningTable") for thing in of_type(kind)]:
    if go_to(receptacle["objectId"]):
        event = controller.step(action="PutObject", objectId=receptacle["objectId"])
        if event:
            break
report["put"] = [bool(event), event.metadata["errorMessage"], get(held)["parentReceptacles"], receptacle["objectId"]]
report["empty"] = event.metadata["inventoryObjects"]
event = controller.step(action="PickupObject", objectId=held, forceAction=True)
dropped = controller.step(action="DropHeldObject", forceAction=True)
report["drop"] = [bool(event), bool(dropped), get(held)["isPickedUp"], dropped.metadata["isSceneAtRest"]]

lamp = next(thing for thing in controller.last_event.metadata["objects"] if thing["toggleable"])
for action in ("ToggleObjectOff", "ToggleObjectOn"):
    controller.step(action=action, objectId=lamp["objectId"], forceAction=True)
report["toggled"] = [get(lamp["objectId"])["isToggled"], lamp["objectType"]]

print(json.dumps(report))
controller.stop()
