"""An engine without a world, for tests of the protocols: pictures whose rows can be told apart, and odd actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from scrubjay.thor.engine import Event


class ConstantEngine:
    """Answers every action with the same pictures; `Fail`, `Crash` and `Query` fail, raise and answer with a patch."""

    def __init__(self, width: int = 300, height: int = 300) -> None:
        self.size, self.kinds = (width, height), {"rgb"}

    def first(self) -> Event:
        return self._event({"action": "Initialize", "sequenceId": 0})

    def step(self, action: dict[str, Any]) -> Event:
        name = action["action"]
        if name == "Crash":
            raise KeyError("a mistake of ours")
        if name == "ChangeResolution":
            self.size = (action["x"], action["y"])
        if name == "Initialize":
            wanted = {"depth": "renderDepthImage", "ids": "renderInstanceSegmentation"}
            self.kinds = {"rgb"} | {kind for kind, option in wanted.items() if action.get(option)}
        if name == "Query":
            patch = {"agentId": 0, "lastAction": name, "lastActionSuccess": True, "actionReturn": [1, 2]}
            return Event(patch | {"errorMessage": "", "errorCode": ""}, patch=True)
        if name == "GetScenesInBuild":
            return self._event(action, actionReturn=["FloorPlan1_physics", "FloorPlan28_physics"])
        if name == "Fail":
            return self._event(action, lastActionSuccess=False, errorMessage="it failed")
        if name == "Unknown":
            return self._event(
                action, lastActionSuccess=False, errorMessage="no such action", errorCode="InvalidAction"
            )
        return self._event(action)

    def close(self) -> None: ...

    def _event(self, action: dict[str, Any], **changes: Any) -> Event:
        width, height = self.size
        agent = {
            "agentId": 0, "screenWidth": width, "screenHeight": height, "sceneName": "FloorPlan1_physics",
            "lastAction": action["action"], "lastActionSuccess": True, "errorMessage": "", "errorCode": "",
            "actionReturn": None, "objects": [], "colors": [{"name": "Cup|+01.00|+01.00|+01.00", "color": [7, 8, 9]}],
            "thirdPartyCameras": [], "depthFormat": "Meters", "agent": {"position": {"x": np.float32(0.25)}},
        } | changes  # fmt: skip
        message = {"agents": [agent], "thirdPartyCameras": [], "activeAgentId": 0, "sequenceId": action["sequenceId"]}
        return Event(message, {kind: [picture(kind, width, height)] for kind in sorted(self.kinds)})


def picture(kind: str, width: int, height: int) -> np.ndarray:
    """A picture whose top left pixel is unlike its bottom right one."""
    rows, columns = np.mgrid[:height, :width]
    if kind == "depth":
        return (rows + columns / 1000).astype(np.float32)
    if kind == "ids":
        cup = (rows < 2)[..., None]
        return np.where(cup, np.array([7, 8, 9, 255]), np.array([0, 0, 0, 255])).astype(np.uint8)
    return np.stack([rows % 256, columns % 256, 0 * rows], 2).astype(np.uint8)
