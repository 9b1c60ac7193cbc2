"""allenact's iTHOR environment: made, reset, stepped and asked, as its tasks do."""

import json
import sys

from allenact_plugins.ithor_plugin.ithor_environment import IThorEnvironment

environment = IThorEnvironment(
    x_display="0", local_thor_build=sys.argv[1], player_screen_width=224, player_screen_height=224
)  # fmt: skip
environment.reset("FloorPlan1")
report = {"scene": environment.scene_name, "frame": list(environment.current_frame.shape)}
report["reachable"] = len(environment.currently_reachable_points)
environment.randomize_agent_location(seed=1)
report["placed"] = environment.last_action_success
steps = []
for action in ["MoveAhead", "RotateRight", "MoveAhead", "RotateLeft", "LookDown", "LookUp", "MoveAhead"] * 3:
    environment.step({"action": action})
    steps.append([action, environment.last_action_success, environment.get_agent_location()])
report["steps"] = steps
report["visible"] = len(environment.visible_objects())
report["pickupable"] = len(environment.all_objects_with_properties({"pickupable": True}))
report["closest"] = environment.closest_object_of_type("Fridge")["objectType"]
environment.reset("FloorPlan2")
report["second"] = environment.scene_name
environment.stop()
print(json.dumps(report))
