"""Reachable positions, interactable poses and shortest paths, in the style of AI2-THOR's guide to queries."""

import json

from ai2thor.controller import Controller
from ai2thor.util.metrics import get_shortest_path_to_point

controller = Controller(scene="FloorPlan28")
positions = controller.step(action="GetReachablePositions").metadata["actionReturn"]

visited = 0
for position in positions[::10]:
    event = controller.step(action="Teleport", position=position)
    here = event.metadata["agent"]["position"]
    visited += bool(event) and abs(here["x"] - position["x"]) < 1e-3 and abs(here["z"] - position["z"]) < 1e-3

fridge = next(thing for thing in event.metadata["objects"] if thing["objectType"] == "Fridge")
poses = controller.step(action="GetInteractablePoses", objectId=fridge["objectId"]).metadata["actionReturn"]
controller.step("TeleportFull", **poses[0])
seen = next(
    thing for thing in controller.last_event.metadata["objects"] if thing["objectId"] == fridge["objectId"]
)  # fmt: skip

path = get_shortest_path_to_point(controller, positions[0], positions[-1])
bounds = controller.last_event.metadata["sceneBounds"]

print(
    json.dumps(
        {
            "positions": positions,
            "visited": [visited, len(positions[::10])],
            "poses": len(poses),
            "visible": seen["visible"],
            "distance": seen["distance"],
            "path": path,
            "bounds": bounds["size"],
        }
    )
)
controller.stop()
