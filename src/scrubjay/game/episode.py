"""Episode specs: the object to hide, the start, and which of the five stages are played.

A whole game runs from EM to S. Other episodes begin later or end earlier, to train, test or play a single stage; their
spec also holds where the hider stands, the manipulation's target, or where the object already lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter

from scrubjay.game.actions import MODALITIES, Stage
from scrubjay.rooms.room import GOALS
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.cells import CELLS
from scrubjay.sim.pose import AgentPose

ROTATED_SHARE = 0.5
"""The share of games whose grid is rotated, where grids are rotated, as in the paper."""


def _stage_of(name: Any) -> Any:
    """A stage by its name, as files have it."""
    if isinstance(name, str) and name in Stage.__members__:
        return Stage[name]
    if isinstance(name, Stage):
        return name
    raise ValueError(f"stages are {', '.join(Stage.__members__)}, not {name!r}")


def _finite(pose: AgentPose) -> AgentPose:
    if not np.isfinite(pose).all():
        raise ValueError(f"x, y and rotation are finite, not {list(pose)}")
    return pose


StageName = Annotated[Stage, BeforeValidator(_stage_of), PlainSerializer(lambda stage: stage.name)]
FinitePose = Annotated[AgentPose, AfterValidator(_finite)]
Pose = Annotated[tuple[float, ...], Field(min_length=7, max_length=7)]
"""An object's center and quaternion."""
Openables = tuple[Annotated[int, Field(ge=0)], ...]
"""Numbers of openables."""


@dataclass(frozen=True)
class EpisodeSpec:
    """An episode: the object to hide, where hider and seeker start, and the stages from the first to the last.

    Creating one checks it only as far as is cheap, since samplers do so all the time; `from_dict` checks every field.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    goal: str
    start: FinitePose
    first: StageName = Stage.EM
    last: StageName = Stage.S
    place: FinitePose | None = None
    """Where the hider stands if the episode begins with OH or OM; the start if None."""
    target: tuple[int, int, int] | None = None
    """Modality, row and column, if the episode begins with OM."""
    pose: Pose | None = None
    """Where the object rests, if the episode begins with S."""
    open: Openables = ()
    """The openables that are open at the beginning."""
    anywhere: bool = False
    """A drop anywhere is a placement. People point at things and need not foresee cells."""

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise ValueError(f"unknown goal object {self.goal!r}; there are {', '.join(GOALS)}")
        if (self.first, self.last) not in STAGE_RANGES:
            raise ValueError(f"no game goes from {self.first.name} to {self.last.name}")
        if (self.target is None) == (self.first == Stage.OM):
            raise ValueError("a game that begins with OM has a target, no other has")
        if (self.pose is None) == (self.first == Stage.S):
            raise ValueError("a game that begins with S has a pose of the object, no other has")
        if self.pose is not None and (len(self.pose) != 7 or not np.isfinite(self.pose).all()):
            raise ValueError(f"a pose is a center and a quaternion, seven numbers, not {self.pose}")
        if self.target is not None and not all(
            0 <= n < m for n, m in zip(self.target, (len(MODALITIES), CELLS, CELLS), strict=True)
        ):
            raise ValueError(f"a target is a modality to 2 and a row and column to 6, not {self.target}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, stages by name."""
        return _adapter().dump_python(self, mode="json")

    @staticmethod
    def from_dict(data: Any) -> EpisodeSpec:
        """The inverse, every field checked; pydantic's ValidationError, a ValueError, says what is wrong."""
        return _adapter().validate_python(data)


@cache
def _adapter() -> TypeAdapter[EpisodeSpec]:
    return TypeAdapter(EpisodeSpec)


STAGE_RANGES = {
    (Stage.EM, Stage.EM), (Stage.EM, Stage.PS), (Stage.EM, Stage.OH), (Stage.EM, Stage.S), (Stage.PS, Stage.S),
    (Stage.OH, Stage.OH), (Stage.OH, Stage.S), (Stage.OM, Stage.OM), (Stage.S, Stage.S),
}  # fmt: skip
"""First and last stages that games can have. A manipulation alone ends with the drop."""


class EpisodeSampler(Protocol):
    """Samples a world's next episode."""

    def __call__(self, world: BaseWorld, number: int) -> EpisodeSpec:
        """The next episode in world `number`."""
        ...


class RandomEpisodes:
    """Samples episodes uniformly; the same ones for the same seed."""

    def __init__(
        self,
        seed: int = 0,
        goals: tuple[str, ...] = GOALS,
        turned: bool = False,
        first: Stage = Stage.EM,
        last: Stage = Stage.S,
    ) -> None:
        """`turned` rotates every other game's grid by a random angle, the paper's data augmentation.

        Episodes that begin with OH or OM have their hider at a random place, and OM a random target.
        """
        unknown = set(goals) - set(GOALS)
        if unknown or not goals:
            raise ValueError(f"unknown goal objects {sorted(unknown)}; there are {', '.join(GOALS)}")
        if (first, last) not in STAGE_RANGES or first == Stage.S:
            raise ValueError(f"episodes from {first.name} to {last.name} cannot be sampled at random")
        self.goals, self.turned, self.first, self.last = goals, turned, first, last
        self.rng = np.random.default_rng(seed)

    def __call__(self, world: BaseWorld, number: int) -> EpisodeSpec:
        rng, floor = self.rng, world.rooms[world.room_of[number]].floor
        positions = floor.reachable().positions
        x, y = positions[rng.integers(len(positions))]
        turn = float(rng.integers(360)) if self.turned and rng.random() < ROTATED_SHARE else 90.0 * rng.integers(4)
        start = AgentPose(float(x), float(y), float(turn), True)
        goal = self.goals[rng.integers(len(self.goals))]
        if self.first not in (Stage.OH, Stage.OM):
            return EpisodeSpec(goal, start, self.first, self.last)
        if turn % 90:
            positions = floor.positions((x, y), turn % 90)
        position = positions[rng.integers(len(positions))]
        place = AgentPose(
            float(position[0]), float(position[1]), float(turn + 90 * rng.integers(4)) % 360, bool(rng.integers(2))
        )
        target = None
        if self.first == Stage.OM:
            target = (int(rng.integers(len(MODALITIES))), int(rng.integers(CELLS)), int(rng.integers(CELLS)))
        return EpisodeSpec(goal, start, self.first, self.last, place, target)


class MixedEpisodes:
    """Samples from one of several samplers, from each with the probability that is its share."""

    def __init__(self, samplers: Sequence[EpisodeSampler], shares: Sequence[float], seed: int = 0) -> None:
        self.samplers, self._ends = list(samplers), np.cumsum(shares)
        if len(self.samplers) != len(shares) or abs(self._ends[-1] - 1) > 1e-6:
            raise ValueError(f"shares: one for each of {len(self.samplers)} samplers, 1 in all, not {list(shares)}")
        self.rng = np.random.default_rng(seed)

    def __call__(self, world: BaseWorld, number: int) -> EpisodeSpec:
        which = int(np.searchsorted(self._ends[:-1], self.rng.random(), side="right"))
        return self.samplers[which](world, number)
