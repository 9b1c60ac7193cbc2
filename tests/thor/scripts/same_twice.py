"""The same random actions twice: metadata and pictures must be the same, byte by byte."""

import hashlib
import json
import random
import sys

from ai2thor.controller import Controller

WITH_OBJECT = ["OpenObject", "CloseObject", "PickupObject", "PutObject", "ToggleObjectOn", "ToggleObjectOff"]
OTHERS = ["MoveAhead", "MoveLeft", "RotateRight", "LookDown", "LookUp", "DropHeldObject", "Crouch", "Stand", "Pass"]
digests = []
for _ in range(2):
    controller = Controller(local_executable_path=sys.argv[1], x_display="0", scene="FloorPlan3", width=120, height=120)
    rng, digest = random.Random(5), hashlib.sha256()
    for _ in range(150):
        things = [thing for thing in controller.last_event.metadata["objects"] if thing["visible"]]
        if things and rng.random() < 0.4:
            event = controller.step(rng.choice(WITH_OBJECT), objectId=rng.choice(things)["objectId"])
        else:
            event = controller.step(rng.choice(OTHERS))
        digest.update(json.dumps(event.metadata, sort_keys=True).encode() + event.frame.tobytes())
    digests.append(digest.hexdigest())
    controller.stop()
print(json.dumps(digests))
