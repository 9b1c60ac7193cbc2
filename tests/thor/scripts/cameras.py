"""A third-party camera and a map from above, in the style of AI2-THOR's guide to cameras."""

import copy
import json

import numpy as np
from ai2thor.controller import Controller

controller = Controller(scene="FloorPlan201", renderDepthImage=True, renderInstanceSegmentation=True)
event = controller.step(
    action="AddThirdPartyCamera",
    position=dict(x=-1.25, y=1.5, z=1.0),
    rotation=dict(x=20, y=90, z=0),
    fieldOfView=90,
)
report = {"frames": len(event.third_party_camera_frames), "shape": list(event.third_party_camera_frames[0].shape)}
report["camera"] = event.metadata["thirdPartyCameras"][0]
first = event.third_party_camera_frames[0]

event = controller.step(action="UpdateThirdPartyCamera", thirdPartyCameraId=0, rotation=dict(x=20, y=180, z=0))
report["turned"] = float(np.abs(first.astype(int) - event.third_party_camera_frames[0]).mean())

view = copy.deepcopy(
    controller.step(action="GetMapViewCameraProperties", raise_for_failure=True).metadata["actionReturn"]
)
event = controller.step(action="AddThirdPartyCamera", **view)
report["map"] = [len(event.third_party_camera_frames), view["orthographic"], view["orthographicSize"]]
report["contrast"] = float(event.third_party_camera_frames[1].std())
report["others"] = [
    len(event.third_party_depth_frames),
    len(event.third_party_instance_segmentation_frames),
    len(event.third_party_instance_masks[1]),
]
event = controller.step("MoveAhead")
report["after"] = len(event.third_party_camera_frames)
try:
    controller.step(
        action="AddThirdPartyCamera", position=dict(x=0, y=1, z=0), rotation=dict(x=0, y=0, z=0), lens="wide"
    )
except ValueError as error:
    report["words"] = str(error)
print(json.dumps(report))
controller.stop()
