"""The same random actions twice: metadata and pictures must be the same, byte by byte."""

import hashlib
import json
import random
import sys

from ai2thor.controller import Controller
from random_actions import random_action

digests, refused = [], 0
for _ in range(2):
    controller = Controller(local_executable_path=sys.argv[1], x_display="0", scene="FloorPlan3", width=120, height=120)
    rng, digest = random.Random(5), hashlib.sha256()
    for _ in range(150):
        try:
            controller.step(**random_action(rng, controller.last_event.metadata))
        except ValueError:  # What the client raises for actions and arguments that there are not.
            refused += 1
        event = controller.last_event
        assert "in the engine" not in event.metadata["errorMessage"], event
        digest.update(json.dumps(event.metadata, sort_keys=True).encode() + event.frame.tobytes())
    digests.append(digest.hexdigest())
    controller.stop()
print(json.dumps([*digests, refused]))
