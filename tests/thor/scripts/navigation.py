"""Walking, turning, looking, crouching and teleporting, in the style of AI2-THOR's guide to navigation."""

import json

from ai2thor.controller import Controller

controller = Controller(scene="FloorPlan10", gridSize=0.25, rotateStepDegrees=90, snapToGrid=True)
agent = controller.last_event.metadata["agent"]
start = agent["position"], agent["rotation"]["y"], agent["cameraHorizon"]

steps = {}
for action in ("MoveAhead", "MoveBack", "MoveLeft", "MoveRight"):
    controller.step("Teleport", position=start[0], rotation=start[1])
    event = controller.step(action)
    steps[action] = bool(event), event.metadata["agent"]["position"]
controller.step("Teleport", position=start[0], rotation=dict(x=0, y=start[1], z=0))

turns = [controller.step(action="RotateRight").metadata["agent"]["rotation"]["y"]]
turns += [controller.step(action="RotateLeft", degrees=30).metadata["agent"]["rotation"]["y"]]
looks = [controller.step("LookDown").metadata["agent"]["cameraHorizon"]]
looks += [controller.step("LookUp", degrees=10).metadata["agent"]["cameraHorizon"]]
refused = [controller.step("LookDown", degrees=80)]

standing = [controller.last_event.metadata["agent"]["isStanding"]]
heights = [controller.last_event.metadata["cameraPosition"]["y"]]
for action in ("Crouch", "Stand"):
    event = controller.step(action)
    standing.append(event.metadata["agent"]["isStanding"])
    heights.append(event.metadata["cameraPosition"]["y"])

event = controller.step(
    action="TeleportFull", **start[0], rotation=dict(x=0, y=180, z=0), horizon=30, standing=False
)  # fmt: skip
there = event.metadata["agent"]
outside = controller.step("Teleport", position=dict(x=50, y=0.9, z=50))
done = controller.step("Done")

print(
    json.dumps(
        {
            "scene": event.metadata["sceneName"],
            "start": start,
            "steps": steps,
            "turns": turns,
            "looks": looks,
            "refused": [[bool(event), event.metadata["errorMessage"]] for event in refused],
            "standing": standing,
            "heights": heights,
            "there": there,
            "outside": [bool(outside), outside.metadata["errorMessage"]],
            "done": bool(done),
            "frame": list(event.frame.shape),
            "colors": len({tuple(pixel) for pixel in event.frame[::10, ::10].reshape(-1, 3).tolist()}),
        }
    )
)
controller.stop()
