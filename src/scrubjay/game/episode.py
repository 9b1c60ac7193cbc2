"""What games are dealt: an object, a start, and which of the five stages are played.

A whole game begins with exploring and ends with seeking. Others begin later or end sooner, to train, test or play one
stage alone: then the deal also says where the hider stands, what it is to do, or where the object already lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import AgentPose
from scrubjay.sim.world import World

TURNED = 0.5
"""How often a game's grid is turned where grids are, as the paper does."""


@dataclass(frozen=True)
class EpisodeSpec:
    """A game: the object to hide, where hider and seeker begin, and the stages from the first to the last."""

    goal: str
    start: AgentPose
    first: Stage = Stage.EM
    last: Stage = Stage.S
    place: AgentPose | None = None
    """Where the hider stands if the game begins with hiding or manipulating; the start if there is none."""
    target: tuple[int, int, int] | None = None
    """Modality, row and column, if the game begins with manipulating."""
    pose: tuple[float, ...] | None = None
    """Where the object rests, center and quaternion, if the game begins with seeking."""
    open: tuple[int, ...] = ()
    """Numbers of the openables that are open at the beginning."""
    anywhere: bool = False
    """Does an object count as placed wherever it is dropped? People point at things and need not foresee cells."""

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise ValueError(f"unknown goal object {self.goal!r}; there are {', '.join(GOALS)}")
        if (self.first, self.last) not in ENDS:
            raise ValueError(f"no game goes from {self.first.name} to {self.last.name}")
        if (self.target is None) == (self.first == Stage.OM):
            raise ValueError("a game that begins with manipulating has a target, no other has")
        if (self.pose is None) == (self.first == Stage.S):
            raise ValueError("a game that begins with seeking has a pose of the object, no other has")
        if self.pose is not None and (len(self.pose) != 7 or not np.isfinite(self.pose).all()):
            raise ValueError(f"a pose is a center and a quaternion, seven numbers, not {self.pose}")
        if self.target is not None and not all(
            0 <= n < m for n, m in zip(self.target, (len(MODALITIES), CELLS, CELLS), strict=True)
        ):
            raise ValueError(f"a target is a modality to 2 and a row and column to 6, not {self.target}")


ENDS = {
    (Stage.EM, Stage.EM), (Stage.EM, Stage.PS), (Stage.EM, Stage.OH), (Stage.EM, Stage.S), (Stage.PS, Stage.S),
    (Stage.OH, Stage.OH), (Stage.OH, Stage.S), (Stage.OM, Stage.OM), (Stage.S, Stage.S),
}  # fmt: skip
"""First and last stages that games can have. A manipulation alone ends with the drop."""


class EpisodeSampler(Protocol):
    """Whoever deals."""

    def __call__(self, world: World, number: int) -> EpisodeSpec:
        """The next game in the world of that number."""
        ...


class RandomEpisodes:
    """Deals games at random, the same ones for the same seed."""

    def __init__(
        self,
        seed: int = 0,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
        first: Stage = Stage.EM,
        last: Stage = Stage.S,
    ) -> None:
        """`goals` are hidden; `turned` turns every other game's grid by a random angle, as the paper augments its data.

        Games that begin with hiding or manipulating have their hider anywhere, and a target drawn at random.
        """
        unknown = set(goals) - set(GOALS)
        if unknown or not goals:
            raise ValueError(f"unknown goal objects {sorted(unknown)}; there are {', '.join(GOALS)}")
        if (first, last) not in ENDS or first == Stage.S:
            raise ValueError(f"games from {first.name} to {last.name} cannot be dealt at random")
        self.goals, self.turned, self.first, self.last = goals, turned, first, last
        self.rng = np.random.default_rng(seed)

    def __call__(self, world: World, number: int) -> EpisodeSpec:
        rng, floor = self.rng, world.rooms[world.room_of[number]].floor
        positions = floor.reachable().positions
        x, y = positions[rng.integers(len(positions))]
        turn = float(rng.integers(360)) if self.turned and rng.random() < TURNED else 90.0 * rng.integers(4)
        start = AgentPose(float(x), float(y), float(turn), True)
        goal = self.goals[rng.integers(len(self.goals))]
        if self.first not in (Stage.OH, Stage.OM):
            return EpisodeSpec(goal, start, self.first, self.last)
        if turn % 90:
            positions = floor.positions((x, y), turn % 90)
        there = positions[rng.integers(len(positions))]
        place = AgentPose(
            float(there[0]), float(there[1]), float(turn + 90 * rng.integers(4)) % 360, bool(rng.integers(2))
        )
        target = None
        if self.first == Stage.OM:
            target = (int(rng.integers(len(MODALITIES))), int(rng.integers(CELLS)), int(rng.integers(CELLS)))
        return EpisodeSpec(goal, start, self.first, self.last, place, target)
