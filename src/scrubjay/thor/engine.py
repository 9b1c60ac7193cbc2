"""AI2-THOR's actions on our engine: an action in, an event out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from scrubjay.thor.actions import Action, Effect, find
from scrubjay.thor.arguments import BOOL, INT, InvalidRequest
from scrubjay.thor.metadata import cameras, fields, metadata
from scrubjay.thor.pictures import render
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.session import Outcome, Session

PER_STEP = {
    "renderImage": "rgb", "renderDepthImage": "depth", "renderNormalsImage": "normals",
    "renderInstanceSegmentation": "ids", "renderObjectImage": "ids", "renderSemanticSegmentation": "classes",
    "renderClassImage": "classes",
}  # fmt: skip
"""Arguments by which any action asks for a picture of its own event."""


@dataclass(frozen=True)
class Event:
    """What an action leads to, as the client reads it."""

    message: dict[str, Any]
    """`agents`, `thirdPartyCameras`, `activeAgentId`, `sequenceId`; or, if `patch`, the fast answer to a query."""
    images: Mapping[str, list[np.ndarray]] = field(default_factory=dict)
    """Per kind (rgb, depth, normals, classes, ids, third_party_rgb, third_party_depth, ...) one picture for each agent
    or camera, rows from the top; ids and classes as colors (height, width, 4) uint8."""
    patch: bool = False


class Drawing(Mapping[str, list[np.ndarray]]):
    """Pictures that are drawn when they are first looked at: a client reads the metadata meanwhile."""

    def __init__(self, draw: Callable[[], dict[str, list[np.ndarray]]]) -> None:
        self._draw = draw

    @cached_property
    def images(self) -> dict[str, list[np.ndarray]]:
        """The pictures."""
        return self._draw()

    def __getitem__(self, kind: str) -> list[np.ndarray]:
        return self.images[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.images)

    def __len__(self) -> int:
        return len(self.images)


class Engine:
    """Everything behind one client: the scene, the agents, what is rendered."""

    def __init__(self, width: int = 300, height: int = 300) -> None:
        self._session = Session(width, height)
        self._drawing: Drawing | None = None

    def first(self) -> Event:
        """The event that is sent before the first action: black, since there is no scene yet."""
        return self._event(0, 0, self._session.settings.kinds)

    def step(self, action: dict[str, Any]) -> Event:
        """Carries out an action; never raises for what a client can send."""
        if self._drawing is not None:
            _ = self._drawing.images  # What nobody has looked at yet is drawn before the scene changes.
        session = self._session
        name, sequence = action.get("action"), action.get("sequenceId", 0)
        entry: Action | None = None
        agent, outcome = 0, Outcome(str(name))
        try:
            agent = self._agent(action)
            entry = find(name)
            outcome.returned = entry.handler(session, agent, **entry.parameters(action))
        except InvalidRequest as error:
            outcome.success, outcome.message, outcome.code = False, str(error), error.code
        except ActionFailed as error:
            outcome.success, outcome.message = False, str(error)
        except Exception as error:  # A client whose engine is silent waits for minutes: it gets the reason instead.
            traceback.print_exc()
            outcome.success, outcome.message = False, f"{name} failed in the engine: {type(error).__name__}: {error}"
        if session.has_scene and entry is not None and (entry.effect is Effect.THINGS or session.holds):
            session.objects.refresh()
        agent = min(agent, len(session.outcomes) - 1)
        session.outcomes[agent] = outcome
        session.steps += 1
        if entry is not None and entry.effect is Effect.NOTHING and session.settings.fast:
            return Event({"agentId": agent, **fields(outcome)}, patch=True)
        return self._event(agent, sequence, self._kinds(action))

    def close(self) -> None:
        """Ends the scene."""
        self._session.close()

    def _event(self, agent: int, sequence: Any, kinds: frozenset[str]) -> Event:
        session = self._session
        colors = bool(kinds & {"ids", "classes"})
        message = {
            "agents": [metadata(session, one, colors) for one in range(len(session.outcomes))],
            "thirdPartyCameras": cameras(session),
            "activeAgentId": agent,
            "sequenceId": sequence,
        }
        self._drawing = Drawing(partial(render, session, kinds))
        return Event(message, self._drawing)

    def _agent(self, action: Mapping[str, Any]) -> int:
        """The agent that acts."""
        try:
            agent = INT.read(action.get("agentId") or 0)
        except (ValueError, TypeError, OverflowError):
            agent = -1
        if not 0 <= agent < len(self._session.outcomes):
            raise InvalidRequest(
                f"there is no agent {action.get('agentId')}; there are {len(self._session.outcomes)}", "InvalidArgument"
            )
        return agent

    def _kinds(self, action: Mapping[str, Any]) -> frozenset[str]:
        """The pictures of an action's own event."""
        kinds = set(self._session.settings.kinds)
        for name, kind in PER_STEP.items():
            try:
                wanted = BOOL.read(action[name])
            except (KeyError, ValueError, TypeError):
                continue
            kinds = kinds | {kind} if wanted else kinds - {kind}
        return frozenset(kinds)
