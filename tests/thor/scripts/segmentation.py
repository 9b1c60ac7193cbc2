"""Depth, segmentation, normals, masks and boxes, in the style of AI2-THOR's guide to image modalities."""

import json

import numpy as np
from ai2thor.controller import Controller

controller = Controller(
    scene="FloorPlan1",
    width=320,
    height=240,
    fieldOfView=75,
    renderDepthImage=True,
    renderInstanceSegmentation=True,
    renderSemanticSegmentation=True,
    renderNormalsImage=True,
)
for _ in range(4):
    event = controller.step("RotateRight")
    if len(event.instance_masks) > 8:
        break

sizes, boxes = {}, {}
for identity, mask in event.instance_masks.items():
    sizes[identity] = int(mask.sum())
    left, top, right, bottom = event.instance_detections2D[identity]
    rows, columns = np.nonzero(mask)
    boxes[identity] = [left, top, right, bottom] == [columns.min(), rows.min(), columns.max(), rows.max()]
classes = {name: int(mask.sum()) for name, mask in event.class_masks.items()}
some = max(sizes, key=sizes.get)
color = event.object_id_to_color[some]
by_color = int((event.instance_segmentation_frame == np.array(color)).all(2).sum())
kind = some.split("|")[0]
kind_color = event.object_id_to_color[kind]
by_class = int((event.semantic_segmentation_frame == np.array(kind_color)).all(2).sum())
visible = [thing["objectId"] for thing in event.metadata["objects"] if thing["visible"]]

print(
    json.dumps(
        {
            "frame": list(event.frame.shape),
            "depth": [*event.depth_frame.shape, str(event.depth_frame.dtype)],
            "range": [float(event.depth_frame.min()), float(event.depth_frame.max())],
            "instances": [*event.instance_segmentation_frame.shape],
            "semantics": [*event.semantic_segmentation_frame.shape],
            "normals": [*event.normals_frame.shape],
            "sizes": sizes,
            "boxes": all(boxes.values()),
            "classes": classes,
            "colors": [by_color == sizes[some], by_class, classes[kind]],
            "visible": [len(visible), sum(identity in sizes for identity in visible)],
        }
    )
)
controller.stop()
