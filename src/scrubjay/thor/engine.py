"""AI2-THOR's actions on our engine: an action in, an event out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Event:
    """What an action leads to, as the client reads it."""

    message: dict[str, Any]
    """`agents`, `thirdPartyCameras`, `activeAgentId`, `sequenceId`; or, if `patch`, the fast answer to a query."""
    images: dict[str, list[np.ndarray]] = field(default_factory=dict)
    """Per kind (rgb, depth, normals, classes, ids, third_party_rgb, third_party_depth, ...) one picture for each agent
    or camera, rows from the top; ids and classes as colors (height, width, 4) uint8."""
    patch: bool = False


class Engine:
    """Everything behind one client: the scene, the agents, what is rendered."""

    def __init__(self, width: int = 300, height: int = 300) -> None:
        raise NotImplementedError

    def first(self) -> Event:
        """The event that is sent before the first action."""
        raise NotImplementedError

    def step(self, action: dict[str, Any]) -> Event:
        """Carries out an action; never raises for what a client can send."""
        raise NotImplementedError

    def close(self) -> None: ...
