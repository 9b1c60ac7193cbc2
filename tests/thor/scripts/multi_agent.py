"""Two agents in one room, in the style of AI2-THOR's guide to several agents."""

import json

from ai2thor.controller import Controller

controller = Controller(agentCount=2, scene="FloorPlan28")
event = controller.last_event
report = {"events": len(event.events), "start": [one.metadata["agent"]["position"] for one in event.events]}
before = event.events[1].metadata["agent"]
for action in ("RotateRight", "MoveAhead"):
    event = controller.step(dict(action=action, agentId=1))
report["active"] = event.metadata["agentId"]
report["turned"] = (event.events[1].metadata["agent"]["rotation"]["y"] - before["rotation"]["y"]) % 360
report["still"] = event.events[0].metadata["agent"]["position"] == report["start"][0]
report["frames"] = [list(one.frame.shape) for one in event.events]
report["differ"] = bool((event.events[0].frame != event.events[1].frame).any())
event = controller.step(action="RotateLeft", agentId=0)
report["back"] = event.metadata["agentId"]
print(json.dumps(report))
controller.stop()
