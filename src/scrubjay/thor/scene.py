"""One room with agents, loose things and cameras: what AI2-THOR's actions change and its metadata tells.

Everything is in the room's frame (x east, y north, z up; yaws clockwise from north), in meters and degrees;
`coordinates.py` converts from and to Unity's. An action either succeeds or raises ActionFailed and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from scrubjay.rooms.generate import TYPES, make_room
from scrubjay.rooms.generate.palettes import palette, style_of
from scrubjay.rooms.ithor.room import ithor_room
from scrubjay.rooms.ithor.table import FLOOR_PLANS
from scrubjay.rooms.room import GOALS, Room, Thing
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.pose import REACH
from scrubjay.thor.cameras import SceneRenderer, agent_camera
from scrubjay.thor.ground import Ground
from scrubjay.thor.hands import UNBOUNDED, Hands
from scrubjay.thor.loose_types import PICKUPABLE
from scrubjay.thor.receptacles import Receptacles
from scrubjay.thor.scene_state import ActionFailed, Pictures, SceneAgent, SceneCamera
from scrubjay.thor.sight import Sight
from scrubjay.thor.things import Things

PREFIX = "Scrubjay:"
"""Before the name of a room of ours that iTHOR has, too."""
__all__ = ["ActionFailed", "Pictures", "Scene", "SceneAgent", "SceneCamera"]


class Scene:
    """A room by name (`FloorPlan28` is iTHOR's, by its table) or as data, with agents in it.

    Things are numbered; numbers stay until the scene is made anew. Things of the five goal types have the shapes and
    masses of the game's. The last five are the game's own, named by their types and absent until they are picked up.
    """

    reach: float = REACH
    """Meters from an agent's vertical axis within which it can act on things."""

    def __init__(self, name: str | Room, agents: int = 1, width: int = 300, height: int = 300) -> None:
        self.room = _with_goals(name if isinstance(name, Room) else _room(name))
        self._things = Things(self.room)
        self._receptacles, self._ground = Receptacles(self._things), Ground(self._things)
        self._hands = Hands(self._things, self._receptacles, self._ground)
        self._sight = Sight(self._things, self._receptacles)
        self.width, self.height = width, height
        self._hands.aspect = width / height
        self._renderer: SceneRenderer | None = None
        self.things: tuple[str, ...] = self._things.names
        self.types: tuple[str, ...] = self._things.types
        self.pickupable = {k for k, kind in enumerate(self.types) if kind in PICKUPABLE}
        self.cameras: list[SceneCamera] = []
        self._restyled = False
        self._at_first = self._things.save()
        self.reset(agents)

    def reset(self, agents: int) -> None:
        """Makes everything as it was at first, with so many agents; a new scene takes a second, this a millisecond."""
        positions = self._ground.start(agents)
        self._at_first()
        self._at_first = self._things.save()
        self._hands.free = None
        self.reach = REACH
        self.hidden.clear()
        self.cameras.clear()
        self.agents = [SceneAgent(position, 0.0, 0.0, True) for position in positions]
        if self._restyled:
            self.retexture(None)

    @property
    def hidden(self) -> set[int]:
        """Ids of things that are not drawn, nor seen."""
        return self._things.hidden

    @property
    def absent(self) -> set[int]:
        """Ids of things that were taken out of the scene."""
        return self._things.absent

    @property
    def version(self) -> int:
        """Changes whenever a thing has moved: what depends on things alone can be kept as long as it is the same."""
        return self._things.version

    # What there is.

    def pose(self, thing: int) -> np.ndarray:
        """Center and quaternion, (7,)."""
        return self._things.pose(thing)

    def corners(self, thing: int) -> np.ndarray:
        """The corners of its oriented box where it is now, (8, 3)."""
        return self._things.corners(thing)

    def mass(self, thing: int) -> float:
        """Kilograms; 0 for what cannot be moved."""
        return self._things.mass.get(thing, 0.0)

    def openness(self, thing: int) -> float | None:
        """0 closed to 1 open; None for what does not open."""
        number = self._things.openables.get(thing)
        return None if number is None else float(self._things.open[number])

    def containers(self, thing: int) -> list[int]:
        """What it lies in or on, the nearest first."""
        return self._receptacles.containers(thing)

    # Bodies.

    def move(self, agent: int, offset: np.ndarray, force: bool = False) -> None:
        """Walks along (2,), swept in steps; a held thing goes along."""
        body, offset = self.agents[agent], np.asarray(offset, float)
        position = body.position + offset if force else self._ground.walk(body, offset, self._others(agent))
        if body.held is not None:
            with self._undone_on_failure():
                if force:
                    self._hands.carry(body, position, body.rotation, body.horizon, body.standing, True)
                else:
                    self._hands.walk(body, offset)
        body.position = position

    def turn(self, agent: int, rotation: float, horizon: float, standing: bool, force: bool = False) -> None:
        """Changes rotation, horizon or posture; a held thing goes along and may be in the way."""
        self._set_pose(agent, self.agents[agent].position, rotation, horizon, standing, force)

    def teleport(
        self, agent: int, position: np.ndarray, rotation: float, horizon: float, standing: bool, force: bool = False
    ) -> None:
        """Sets an agent's pose; with `force` also where its body does not fit."""
        position = np.array(position, float)
        if not force and not self._ground.free(position[None], self._others(agent))[0]:
            raise ActionFailed(f"no body can stand at ({position[0]:.2f}, {position[1]:.2f})")
        self._set_pose(agent, position, rotation, horizon, standing, force)

    def reachable(self, agent: int, step: float, limit: int = 10_000, turned: bool = False) -> np.ndarray:
        """Positions (n, 2) on a grid through the agent's own that it can walk to."""
        return self._ground.reachable(self.agents[agent], self._others(agent), step, limit, turned)

    def path(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Corners (n, 2) of a shortest walk; raises ActionFailed if there is none."""
        return self._ground.path(start, end)

    # Hands and things. `force` ignores reach and sight.

    def set_openness(self, agent: int, thing: int, openness: float, force: bool = False) -> None:
        """Opens a thing to a fraction, or closes it (0)."""
        if thing not in self._things.openables:
            raise ActionFailed(f"{self.things[thing]} does not open")
        self._must_see(agent, thing, force)
        with self._undone_on_failure():
            self._hands.set_openness(self.agents, self.agents[agent], thing, float(openness))

    def pick_up(self, agent: int, thing: int, force: bool = False) -> None:
        """Takes a thing into the hand, with what is in it; `force` also takes what is absent."""
        body = self.agents[agent]
        if body.held is not None:
            raise ActionFailed(f"the agent already holds {self.things[body.held]}")
        if thing not in self.pickupable:
            raise ActionFailed(f"{self.things[thing]} cannot be picked up")
        if thing in self._things.held:
            raise ActionFailed(f"{self.things[thing]} is in another hand")
        self._must_see(agent, thing, force)
        with self._undone_on_failure():
            self._hands.pick_up(body, thing)

    def drop(self, agent: int, force: bool = False) -> None:
        """Lets go; the thing falls until it rests."""
        self.throw(agent, 0.0)

    def throw(self, agent: int, newtons: float) -> None:
        """Lets go with a push along the view; simulated until the thing rests."""
        with self._undone_on_failure():
            self._hands.throw(self.agents[agent], newtons)

    def put(self, agent: int, receptacle: int, force: bool = False, stationary: bool = True) -> None:
        """Puts the held thing into or onto a receptacle, where it fits and rests; it is stationary in any case."""
        if self.openness(receptacle) == 0:
            raise ActionFailed(f"{self.things[receptacle]} is closed")
        self._must_see(agent, receptacle, force)
        with self._undone_on_failure():
            self._hands.put(self.agents[agent], receptacle)

    def move_held(self, agent: int, offset: np.ndarray, force: bool = False) -> None:
        """Moves the held thing by (3,): ahead, right and up of the agent; as far as it gets, within reach and view."""
        with self._undone_on_failure():
            self._hands.move_held(self.agents[agent], np.asarray(offset, float), UNBOUNDED if force else self.reach)

    def turn_held(self, agent: int, quaternion: np.ndarray) -> None:
        """Turns the held thing by a quaternion in the room's frame."""
        with self._undone_on_failure():
            self._hands.turn_held(self.agents[agent], np.asarray(quaternion, float))

    def place(self, thing: int, pose: np.ndarray, settle: bool = False, force: bool = False) -> None:
        """Moves a loose thing to a pose (7,), with what is in it; with `settle` it falls from there until it rests."""
        if thing not in self._things.mass:
            raise ActionFailed(f"{self.things[thing]} cannot be moved")
        if thing in self._things.held:
            raise ActionFailed(f"{self.things[thing]} is in a hand")
        pose, here = np.array(pose, float), self.pose(thing)
        if not settle and np.abs(pose[:3] - here[:3]).max() < 1e-4 and abs(pose[3:] @ here[3:]) > 1 - 1e-6:
            return  # Clients set the poses of all things, of which they changed a few.
        parts = [k for k, other in enumerate(self.room.things) if other.inside == self.things[thing]]
        if fixed := [k for k in parts if k not in self._things.mass]:
            raise ActionFailed(
                f"{self.things[thing]} cannot be moved with {self.things[fixed[0]]}, which is a part of it"
            )
        with self._undone_on_failure():
            self._hands.place(self.agents[0], thing, pose, settle, force)

    def remove(self, thing: int) -> None:
        """Takes a thing out of the scene, also out of a hand; what lies on it stays."""
        for agent in self.agents:
            if agent.held == thing:
                agent.held = None
        self._hands.release(thing)
        self.absent.add(thing)

    def restore(self, thing: int) -> None:
        """Brings a thing back to where it was."""
        self.absent.discard(thing)

    # Eyes.

    def see(self, agent: int, kinds: Collection[str]) -> Pictures:
        """An agent's pictures: rgb, and depth, ids, normals if among the kinds."""
        others = [other for number, other in enumerate(self.agents) if number != agent]
        return self._draws().see(self.agents[agent], kinds, others)

    def look_through(self, camera: int, kinds: Collection[str]) -> Pictures:
        """A free camera's pictures; walls and ceiling do not hide the room from outside."""
        return self._draws().look_through(self.cameras[camera], kinds, self.agents)

    def visible(self, agent: int, distance: float) -> set[int]:
        """Things in an agent's frame, within the distance of its vertical axis, and not covered by others."""
        return self._sight.visible(self.agents[agent], distance, self._draws())

    def ray(self, agent: int, x: float, y: float) -> tuple[int, np.ndarray] | None:
        """The thing (floor, walls and ceiling are things) and the point seen at a place of the frame.

        From 0 to 1, from the top left.
        """
        body = self.agents[agent]
        eye, matrix = agent_camera(body)
        edge = np.tan(np.radians(body.field_of_view / 2))
        local = np.array([(2 * x - 1) * edge * self.width / self.height, (1 - 2 * y) * edge, -1.0])
        return self._sight.ray(eye, matrix @ local)

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._hands.aspect = width / height
        if self._renderer is not None:
            self._renderer.resize(width, height)

    def set_field_of_view(self, agent: int, degrees: float) -> None:
        self.agents[agent].field_of_view = degrees

    def retexture(self, seed: int | None, kinds: Sequence[str] | None = None) -> None:
        """Other materials from the catalog, the same for the same seed, for all types or some; None: its own."""
        self._redraw(self.room if seed is None else _restyled(self.room, seed, kinds))
        self._restyled = seed is not None

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    # Inside.

    def _draws(self) -> SceneRenderer:
        """Created on first use, since acting needs no pixels."""
        if self._renderer is None:
            self._renderer = SceneRenderer(self._things, self.width, self.height)
        return self._renderer

    def _redraw(self, room: Room) -> None:
        """Draws the same things in another style."""
        self.close()
        self._things.recompile(room)
        self._sight = Sight(self._things, self._receptacles)

    def _others(self, agent: int) -> list[np.ndarray]:
        return [other.position for number, other in enumerate(self.agents) if number != agent]

    def _set_pose(
        self, agent: int, position: np.ndarray, rotation: float, horizon: float, standing: bool, force: bool
    ) -> None:
        body, rotation = self.agents[agent], float(rotation) % 360
        if body.held is not None:
            with self._undone_on_failure():
                self._hands.carry(body, position, rotation, horizon, standing, force)
        body.position, body.rotation, body.horizon, body.standing = position, rotation, float(horizon), standing

    def _must_see(self, agent: int, thing: int, force: bool) -> None:
        if not force and thing not in self.visible(agent, self.reach):
            raise ActionFailed(f"{self.things[thing]} is not visible within reach of the agent")

    @contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        restore, free, held = self._things.save(), self._hands.free, [agent.held for agent in self.agents]
        try:
            yield
        except ActionFailed:
            restore()
            self._hands.free = free
            for agent, thing in zip(self.agents, held, strict=True):
                agent.held = thing
            raise


def _room(name: str) -> Room:
    """A floor plan of iTHOR with all that is in it, or any room of ours: `kitchen-81723`, `Scrubjay:FloorPlan28`."""
    if name in FLOOR_PLANS:
        return ithor_room(name, goals=True)
    return make_room(name.removeprefix(PREFIX))


def _with_goals(room: Room) -> Room:
    """A room in which things of the goal types have the shapes of the game's."""

    def replaced(thing: Thing) -> Thing:
        if thing.type not in GOALS:
            return thing
        size = GOAL_BOXES[thing.type][:3]
        return replace(thing, size=size, seed=GOALS.index(thing.type), style={}, options={})

    return replace(room, things=tuple(replaced(thing) for thing in room.things))


def _restyled(room: Room, seed: int, kinds: Sequence[str] | None) -> Room:
    """A room with another palette of its type on all its things, or on those of some types."""
    look = TYPES[room.type]
    style = palette(np.random.default_rng(seed), look.floors, look.walls, look.fronts)
    things = tuple(
        replace(thing, style=style_of(thing.type, style)) if kinds is None or thing.type in kinds else thing
        for thing in room.things
    )
    return replace(room, things=things)
