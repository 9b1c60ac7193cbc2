"""Drives the engine as a client does, without a connection."""

from __future__ import annotations

from typing import Any

from scrubjay.thor.engine import Engine, Event

SCENE = "FloorPlan28_physics"
BASE = {"x": -1.5, "y": 0.901, "z": -1.5}
"""Where AI2-THOR's own tests stand in it."""


class Client:
    """Sends actions, and shows the active agent's metadata."""

    def __init__(self) -> None:
        self.engine = Engine(64, 64)
        self.sequence = 0
        self.event: Event = self.engine.first()
        self.meta: dict[str, Any] = self.event.message["agents"][0]

    def step(self, action: str, **arguments: Any) -> dict[str, Any]:
        """An action; the agent's metadata after it."""
        self.sequence += 1
        self.event = self.engine.step({"action": action, "sequenceId": self.sequence, **arguments})
        if self.event.patch:
            self.meta = {**self.meta, **self.event.message}
        else:
            self.meta = self.event.message["agents"][self.event.message["activeAgentId"]]
        return self.meta

    def must(self, action: str, **arguments: Any) -> dict[str, Any]:
        """An action that succeeds."""
        meta = self.step(action, **arguments)
        assert meta["lastActionSuccess"], meta["errorMessage"]
        assert meta["errorMessage"] == ""
        assert meta["errorCode"] is None
        return meta

    def fails(self, action: str, code: str | None = None, **arguments: Any) -> str:
        """An action that fails; its message."""
        meta = self.step(action, **arguments)
        assert not meta["lastActionSuccess"]
        assert meta["errorCode"] == code
        assert meta["errorMessage"]
        assert "in the engine" not in meta["errorMessage"]
        return meta["errorMessage"]

    def reset(self, scene: str = SCENE, **initialize: Any) -> dict[str, Any]:
        self.sequence = -1  # A client counts from 0 again.
        self.must("Reset", sceneName=scene)
        return self.must("Initialize", **initialize)

    def object(self, kind: str) -> dict[str, Any]:
        """The first object of a type, or with an id."""
        return next(one for one in self.meta["objects"] if kind in (one["objectType"], one["objectId"]))

    def id(self, kind: str) -> str:
        return self.object(kind)["objectId"]

    def face(self, kind: str, **arguments: Any) -> None:
        """Goes where an object is visible."""
        poses = self.must("GetInteractablePoses", objectId=self.id(kind), maxPoses=1, **arguments)["actionReturn"]
        self.must("TeleportFull", **poses[0])
        assert self.object(kind)["visible"]
