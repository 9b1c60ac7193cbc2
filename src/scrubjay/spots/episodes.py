"""Episodes of S alone in hiding spots, which measure a seeker without a hider.

World b's k-th episode depends on the seed, b and k alone, so every seeker gets the same ones, however long it searches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from scrubjay.errors import SpotError
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.rooms.directions import facing_vector
from scrubjay.rooms.floor import BODY_RADIUS, distance
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import REACH, AgentPose
from scrubjay.spots.spots import DIFFICULTIES, FILES, Spot, Spots


class SpotEpisodes:
    """Samples a goal object, a difficulty and a spot in this order, each uniformly."""

    def __init__(
        self,
        spots: Iterable[Spots],
        goals: Sequence[str] = GOALS,
        difficulties: Sequence[str] = DIFFICULTIES,
        seed: int = 0,
    ) -> None:
        """Takes the spots of these goals and difficulties; every room that is played in must have some."""
        for what, names, known in (("goal objects", goals, GOALS), ("difficulties", difficulties, DIFFICULTIES)):
            unknown = [name for name in names if name not in known]
            if unknown or not names:
                raise SpotError(f"unknown {what} {unknown}; there are {', '.join(known)}")
        self.goals, self.difficulties, self.seed = tuple(goals), tuple(difficulties), seed
        self.near = 0.0
        """The share of searches that begin in front of the object."""
        self._spots: dict[str, list[list[tuple[Spot, ...]]]] = {}
        """Nonempty spots by scene, goal object and difficulty."""
        self._count: Counter[int] = Counter()
        """Episodes sampled so far in each world."""
        self._unchecked: dict[str, list[Spots]] = {}
        """By scene, until a room of it is played in."""
        seen: set[tuple[str, str]] = set()
        for of_room in spots:
            if (of_room.scene, of_room.goal) in seen:
                raise SpotError(f"spots of a {of_room.goal} in {of_room.scene} are given twice")
            seen.add((of_room.scene, of_room.goal))
            by_difficulty = [of_room.spots[name] for name in self.difficulties if of_room.spots[name]]
            if of_room.goal in self.goals and by_difficulty:
                self._spots.setdefault(of_room.scene, []).append(by_difficulty)
                self._unchecked.setdefault(of_room.scene, []).append(of_room)

    def __call__(self, world: BaseWorld, number: int) -> EpisodeSpec:
        """The next episode in world `number`; SpotError if its room has none, or is another."""
        room = world.rooms[world.room_of[number]]
        if room.room.scene not in self._spots:
            what = f"{' or '.join(self.difficulties)} hiding spots of a {' or '.join(self.goals)}"
            raise SpotError(f"there are no {what} in {room.room.scene}")
        for of_room in self._unchecked.pop(room.room.scene, []):
            FILES.check_room(of_room, room.room)
        rng = np.random.default_rng([self.seed, number, self._count[number]])
        by_goal = self._spots[room.room.scene]
        by_difficulty = by_goal[rng.integers(len(by_goal))]
        spots = by_difficulty[rng.integers(len(by_difficulty))]
        spot = spots[rng.integers(len(spots))]
        self._count[number] += 1
        near = self.near > 0 and rng.random() < self.near
        return (near_episode if near else search_episode)(room, spot, rng)


def search_episode(room: CompiledRoom, spot: Spot, rng: np.random.Generator) -> EpisodeSpec:
    """A search for a spot's object from a random start."""
    x, y = rng.choice(free_positions(room, spot))
    start = AgentPose(float(x), float(y), 90.0 * int(rng.integers(4)), True)
    return EpisodeSpec(spot.goal, start, Stage.S, Stage.S, pose=spot.pose, open=spot.open)


def near_episode(room: CompiledRoom, spot: Spot, rng: np.random.Generator) -> EpisodeSpec:
    """A search that begins within reach of the object, facing it."""
    positions = free_positions(room, spot)
    away = np.array(spot.pose[:2]) - positions
    meters = np.linalg.norm(away, axis=1)
    near = np.flatnonzero((meters < REACH - 0.1) & (meters > 0.4))
    one = rng.choice(near) if len(near) else int(meters.argmin())
    turns = 90.0 * np.arange(4)
    rotation = float(turns[(facing_vector(turns) @ away[one]).argmax()])
    start = AgentPose(float(positions[one, 0]), float(positions[one, 1]), rotation, True)
    return EpisodeSpec(spot.goal, start, Stage.S, Stage.S, pose=spot.pose, open=spot.open)


def free_positions(room: CompiledRoom, spot: Spot) -> np.ndarray:
    """The reachable positions of a room, (n, 2), that are clear of the parts which a spot has open."""
    positions = room.floor.reachable().positions
    parts = room.floor.open_parts[spot.is_open(room)].reshape(-1, 6)
    free = positions[(distance(positions[:, None], parts) >= BODY_RADIUS).all(1)]
    if not len(free):
        raise SpotError(f"{room.room.scene}: no free position with openables {list(spot.open)} open")
    return free
