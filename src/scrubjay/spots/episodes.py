"""Searches for objects in hiding spots: how good a seeker is, whoever hides.

The spots are those of `spots.py`. The k-th game in a world is drawn from the seed, the world's number and k alone, so
that every seeker meets the same games, however long it takes over each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from scrubjay.errors import SpotError
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.rooms.floor import BODY_RADIUS, distance
from scrubjay.rooms.room import GOALS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World
from scrubjay.spots.spots import DIFFICULTIES, Spot, Spots, load_spots, spots_file


class SpotEpisodes:
    """Deals searches: goal objects, difficulties and spots are drawn in this order, each as likely as the others."""

    def __init__(
        self,
        spots: Iterable[Spots],
        goals: Sequence[str] = GOALS,
        difficulties: Sequence[str] = DIFFICULTIES,
        seed: int = 0,
    ) -> None:
        """`goals` and `difficulties` say which of the spots are used; there must be some for every room played in."""
        for what, names, known in (("goal objects", goals, GOALS), ("difficulties", difficulties, DIFFICULTIES)):
            unknown = [name for name in names if name not in known]
            if unknown or not names:
                raise SpotError(f"unknown {what} {unknown}; there are {', '.join(known)}")
        self.goals, self.difficulties, self.seed = tuple(goals), tuple(difficulties), seed
        self._spots: dict[str, list[list[tuple[Spot, ...]]]] = {}
        """For each scene, goal objects with their difficulties that have spots."""
        self._dealt: Counter[int] = Counter()
        seen: set[tuple[str, str]] = set()
        for some in spots:
            if (some.scene, some.goal) in seen:
                raise SpotError(f"spots of a {some.goal} in {some.scene} are given twice")
            seen.add((some.scene, some.goal))
            chosen = [some.spots[name] for name in self.difficulties if some.spots[name]]
            if some.goal in self.goals and chosen:
                self._spots.setdefault(some.scene, []).append(chosen)

    def __call__(self, world: World, number: int) -> EpisodeSpec:
        """The next search in the world of that number; SpotError if its room has no spots, or other openables."""
        room = world.rooms[world.room_of[number]]
        if room.room.scene not in self._spots:
            what = f"{' or '.join(self.difficulties)} hiding spots of a {' or '.join(self.goals)}"
            raise SpotError(f"there are no {what} in {room.room.scene}")
        rng = np.random.default_rng([self.seed, number, self._dealt[number]])
        by_goal = self._spots[room.room.scene]
        by_difficulty = by_goal[rng.integers(len(by_goal))]
        spots = by_difficulty[rng.integers(len(by_difficulty))]
        spot = spots[rng.integers(len(spots))]
        x, y = rng.choice(free_positions(room, spot))
        start = AgentPose(float(x), float(y), 90.0 * int(rng.integers(4)), True)
        self._dealt[number] += 1
        return EpisodeSpec(spot.goal, start, Stage.S, Stage.S, pose=spot.pose, open=spot.open)


def load_all(folder: str | os.PathLike[str], scenes: Sequence[str], goals: Sequence[str] = GOALS) -> list[Spots]:
    """The spots of rooms and goal objects from a folder; SpotError names a file that is missing or broken."""
    return [load_spots(spots_file(folder, scene, goal), scene, goal) for scene in scenes for goal in goals]


def free_positions(room: CompiledRoom, spot: Spot) -> np.ndarray:
    """The reachable positions of a room, (n, 2), at which no part that is open for a spot is in the way."""
    positions = room.floor.reachable().positions
    parts = room.floor.open_parts[spot.is_open(room)].reshape(-1, 6)
    free = positions[(distance(positions[:, None], parts) >= BODY_RADIUS).all(1)]
    if not len(free):
        raise SpotError(f"{room.room.scene}: nobody can stand anywhere with {spot.open} open")
    return free
