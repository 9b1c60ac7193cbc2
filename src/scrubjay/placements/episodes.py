"""Episodes of OM alone whose targets are plausible placements.

World b's k-th episode depends on the seed, b and k alone, so every player gets the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.errors import PlacementError
from scrubjay.game.episode import EpisodeSpec
from scrubjay.placements.placements import FILES, Placement, Placements
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld

OPEN_SHARE = 0.5
"""How often what a placement needs open is open from the beginning, as after OH's own OpenAt."""


@dataclass(frozen=True)
class Demonstration(EpisodeSpec):
    """A manipulation to be played with the actions that are known to hit its target."""

    actions: tuple[int, ...] = ()
    detour: tuple[int, int] = (0, 0)
    """From which one on, and before which one, actions are not to be imitated."""


class PlacementEpisodes:
    """Samples a goal object, a modality and a placement in this order, each uniformly."""

    def __init__(
        self, placements: Iterable[Placements], goals: Sequence[str] = GOALS, turned: bool = False, seed: int = 0
    ) -> None:
        """Takes the placements of these goals; without `turned` only those whose grid is not rotated."""
        unknown = [name for name in goals if name not in GOALS]
        if unknown or not goals:
            raise PlacementError(f"unknown goal objects {unknown}; there are {', '.join(GOALS)}")
        self.goals, self.turned, self.seed = tuple(goals), turned, seed
        self.demonstrated = 0.0
        """The share of episodes that are a `Demonstration`."""
        self._placements: dict[str, list[tuple[str, list[tuple[Placement, ...]]]]] = {}
        """By scene: goal objects, and their nonempty placements by modality."""
        self._count: Counter[int] = Counter()
        """Episodes sampled so far in each world."""
        self._unchecked: dict[str, list[Placements]] = {}
        """By scene, until a room of it is played in."""
        seen: set[tuple[str, str]] = set()
        for of_room in placements:
            if (of_room.scene, of_room.goal) in seen:
                raise PlacementError(f"placements of a {of_room.goal} in {of_room.scene} are given twice")
            seen.add((of_room.scene, of_room.goal))
            usable = (tuple(p for p in some if turned or p.place.rotation % 90 == 0) for some in of_room.by_modality())
            by_modality = [some for some in usable if some]
            if of_room.goal in self.goals and by_modality:
                self._placements.setdefault(of_room.scene, []).append((of_room.goal, by_modality))
                self._unchecked.setdefault(of_room.scene, []).append(of_room)

    def __call__(self, world: BaseWorld, number: int) -> EpisodeSpec:
        """The next episode in world `number`; PlacementError if its room has none, or is another."""
        room = world.rooms[world.room_of[number]]
        scene = room.room.scene
        if scene not in self._placements:
            raise PlacementError(f"there are no placements of a {' or '.join(self.goals)} in {scene}")
        for of_room in self._unchecked.pop(scene, []):
            FILES.check_room(of_room, room.room)
        rng = np.random.default_rng([self.seed, number, self._count[number]])
        by_goal = self._placements[scene]
        goal, by_modality = by_goal[rng.integers(len(by_goal))]
        some = by_modality[rng.integers(len(by_modality))]
        placement = some[rng.integers(len(some))]
        self._count[number] += 1
        if any(openable >= len(room.openables) for openable in placement.open):
            most = max(placement.open)
            raise PlacementError(f"{scene} has {len(room.openables)} openables, the placement asks for {most}")
        episode = placement.episode(goal, is_open=bool(rng.random() < OPEN_SHARE))
        if rng.random() >= self.demonstrated:
            return episode
        # Its actions begin with everything closed.
        return Demonstration(**{**vars(episode), "open": ()}, actions=placement.actions, detour=placement.detour)
