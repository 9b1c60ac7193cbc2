"""What lies behind one client: a scene, its objects, the settings of Initialize, and what was asked to be drawn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from scrubjay.errors import RoomError
from scrubjay.rooms import ithor
from scrubjay.thor.colors import Colors
from scrubjay.thor.coordinates import to_unity
from scrubjay.thor.objects import Objects, type_of
from scrubjay.thor.scene import ActionFailed, Scene, SceneAgent

SUFFIX = "_physics"
"""AI2-THOR's names of scenes end with it; users write them without."""
SCENES = tuple(name + SUFFIX for name in ithor.FLOOR_PLANS)
AGENT_HEIGHT = 0.900999
"""Meters of an agent's position above the floor, as AI2-THOR has it."""
MODES = ("default", "locobot")
MAX_AGENTS = 8
MAX_SIDE = 4096
"""Pixels."""
SEARCH = 2.0
"""Meters around a position within which a point of the grid is looked for."""


@dataclass(frozen=True)
class Settings:
    """What Initialize sets."""

    grid_size: float = 0.25
    visibility_distance: float = 1.5
    field_of_view: float = 90.0
    snap_to_grid: bool = True
    rotate_step: float = 90.0
    mode: str = "default"
    fast: bool = True
    """Whether queries are answered without objects and images."""
    kinds: frozenset[str] = frozenset({"rgb"})
    """Pictures of each event: rgb, depth, ids, classes, normals."""

    @property
    def stands(self) -> bool:
        """Whether agents crouch and stand."""
        return self.mode == "default"


@dataclass
class Outcome:
    """How an agent's last action ended."""

    action: str = ""
    success: bool = True
    message: str = ""
    code: str | None = None
    returned: Any = None


@dataclass
class Session:
    """Everything that actions change."""

    width: int
    height: int
    settings: Settings = Settings()
    scene_name: str = ""
    """AI2-THOR's, with its suffix."""
    outcomes: list[Outcome] = field(default_factory=lambda: [Outcome()])
    steps: int = 0
    """Actions since the scene was made."""
    seed: int = 0
    only: set[int] | None = None
    """Things that metadata lists; all if None."""
    painted: set[int] = field(default_factory=set)
    """Things drawn in magenta."""
    map_view: bool = False
    _scene: Scene | None = None
    _objects: Objects | None = None
    _colors: Colors | None = None

    @property
    def has_scene(self) -> bool:
        return self._scene is not None

    @property
    def scene(self) -> Scene:
        """The scene; ActionFailed before there is one."""
        if self._scene is None:
            raise ActionFailed("there is no scene yet: Reset loads one")
        return self._scene

    @property
    def objects(self) -> Objects:
        """The scene's objects."""
        if self._objects is None:
            raise ActionFailed("there is no scene yet: Reset loads one")
        return self._objects

    @property
    def colors(self) -> Colors:
        """The colors of segmentation pictures, made when first asked for."""
        if self._colors is None:
            names = self.scene.things
            records = [self.objects.records.get(thing) for thing in range(len(names))]
            self._colors = Colors(
                [record["objectId"] if record else type_of(name) for record, name in zip(records, names, strict=True)],
                [
                    record["objectType"] if record else type_of(name)
                    for record, name in zip(records, names, strict=True)
                ],
            )
        return self._colors

    def load(self, name: str, agents: int = 1) -> None:
        """Replaces the scene by a new one; the name with or without its suffix."""
        plain = name.removesuffix(SUFFIX)
        if self._scene is not None and plain == self.scene_name.removesuffix(SUFFIX):
            self._scene.reset(agents)
        else:
            scene = self._new_scene(plain, agents)
            self.close()
            self._scene = scene
            self.scene_name = plain + SUFFIX if plain in ithor.FLOOR_PLANS else plain
        self._objects = Objects(self._scene, plain)
        self.outcomes = [Outcome() for _ in range(agents)]
        self.settings = Settings()
        if plain in starts():
            x, z, rotation, horizon = starts()[plain]
            body = self.agent(0)
            body.rotation, body.horizon = rotation, horizon
            self.stand_near(0, np.array([x, z]))
        self.steps, self.seed, self.only, self.painted, self.map_view = 0, 0, None, set(), False

    def _new_scene(self, name: str, agents: int) -> Scene:
        try:
            room = ithor.ithor_room(name, goals=True) if name in ithor.FLOOR_PLANS else name
            return Scene(room, agents, self.width, self.height)
        except RoomError as error:
            raise ActionFailed(f"scene {name!r} cannot be loaded: {error}") from error

    def close(self) -> None:
        """Ends the scene."""
        if self._scene is not None:
            self._scene.close()
        self._scene = self._objects = self._colors = None

    # Agents.

    def agent(self, agent: int) -> SceneAgent:
        """An agent's body."""
        return self.scene.agents[agent]

    def position(self, agent: int) -> np.ndarray:
        """Unity's position (3,) of an agent."""
        x, y = self.agent(agent).position
        return to_unity(np.array([x, y, AGENT_HEIGHT]), self.objects.floor)

    def stand_near(self, agent: int, position: np.ndarray) -> None:
        """Moves an agent to the free point of the grid that is nearest to a position (2,), if there is one nearby."""
        body, step = self.agent(agent), self.settings.grid_size
        count = min(int(SEARCH / step), 20)
        offsets = np.stack(np.meshgrid(*2 * [np.arange(-count, count + 1)]), -1).reshape(-1, 2) * step
        points = snapped(position, step) + offsets
        for point in points[np.linalg.norm(points - position, axis=1).argsort(kind="stable")]:
            try:
                return self.scene.teleport(agent, point, body.rotation, body.horizon, body.standing)
            except ActionFailed:
                continue

    def visible(self, agent: int, distance: float | None = None) -> set[int]:
        """Things that an agent sees within a distance; what it holds is among them."""
        seen = set(self.scene.visible(agent, self.settings.visibility_distance if distance is None else distance))
        held = self.agent(agent).held
        return seen if held is None else seen | {held}

    # Things, as actions name them.

    def thing(self, object_id: str) -> int:
        """The thing of an object's id; ActionFailed if there is none."""
        thing = self.objects.thing_of.get(object_id)
        if thing is None or thing in self.scene.absent:
            raise ActionFailed(f"there is no object {object_id!r} in {self.scene_name}")
        return thing

    def object_id(self, thing: int) -> str:
        """The id of a thing."""
        return self.objects.records[thing]["objectId"]

    def at(self, agent: int, x: float, y: float) -> tuple[int, np.ndarray]:
        """The thing and the point (3,) at a place of an agent's frame, from 0 to 1 from the top left."""
        if not (0 <= x <= 1 and 0 <= y <= 1):
            raise ActionFailed(f"x and y are from 0 to 1, but they are {x:g} and {y:g}")
        found = self.scene.ray(agent, x, y)
        if found is None:
            raise ActionFailed(f"nothing is at x={x:g}, y={y:g} of the frame")
        return found

    def target(self, agent: int, object_id: str | None, x: float | None, y: float | None, force: bool) -> int:
        """The thing that an action names by id or by a place of the frame; it must be visible, unless forced."""
        if object_id is not None:
            thing = self.thing(object_id)
        else:
            assert x is not None and y is not None
            thing, _ = self.at(agent, x, y)
            if thing not in self.objects.records:
                raise ActionFailed(f"no object is at x={x:g}, y={y:g} of the frame")
        if not force and thing not in self.visible(agent):
            near = f"within {self.settings.visibility_distance:g} m of agent {agent}"
            raise ActionFailed(f"{self.object_id(thing)} is not visible {near}")
        return thing

    @property
    def holds(self) -> bool:
        """Whether any agent holds something."""
        return any(agent.held is not None for agent in self.scene.agents)

    def held(self, agent: int) -> int:
        """The thing in an agent's hand; ActionFailed if there is none."""
        held = self.agent(agent).held
        if held is None:
            raise ActionFailed(f"agent {agent} holds nothing")
        return held


def snapped(position: np.ndarray, grid_size: float) -> np.ndarray:
    """The point of the grid nearest to a position (2,)."""
    return np.round(position / grid_size) * grid_size


@cache
def starts() -> dict[str, tuple[float, float, float, float]]:
    """Unity's x and z, rotation and horizon of AI2-THOR's agents at the start; `scripts/ithor_starts.py` finds them."""
    return {name: tuple(start) for name, start in json.loads((files(__package__) / "starts.json").read_text()).items()}
