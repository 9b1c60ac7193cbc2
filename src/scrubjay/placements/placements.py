"""Plausible placements: manipulations of a goal object that are known to succeed, in files by room and object.

Each has the actions that lead to it, so that it can be checked by playing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from scrubjay.errors import PlacementError
from scrubjay.game.actions import ALLOWED, DROP, MODALITIES, Stage
from scrubjay.game.episode import EpisodeSpec, FinitePose, Openables, Pose
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.room import GOALS
from scrubjay.rooms.room_files import RoomFiles
from scrubjay.sim.cells import CELLS

VERSION = 2
MAX_ACTIONS = int(LIMITS[Stage.OM])
Cell = Annotated[int, Field(ge=0, lt=CELLS)]
Target = tuple[Annotated[int, Field(ge=0, lt=len(MODALITIES))], Cell, Cell]


def _check_actions(actions: tuple[int, ...]) -> tuple[int, ...]:
    if any(not 0 <= action < ALLOWED.shape[1] or not ALLOWED[Stage.OM, action] for action in actions):
        raise ValueError("actions: all are actions of OM")
    if [DROP[action] >= 0 for action in actions] != [False] * (len(actions) - 1) + [True]:
        raise ValueError("actions: the last one, and only that, is DropObject")
    return actions


@dataclass(frozen=True)
class Placement:
    """A manipulation that hits its target. Constraints at the fields are checked when a file is read."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    start: FinitePose
    """Where the game began: the agent's grid goes through it."""
    place: FinitePose
    """Where the agent stands."""
    target: Target
    """Modality, row and column."""
    open: Openables
    """Numbers of the openables that are open in the end; the agent opened them itself."""
    pose: Pose
    """Where the object rests."""
    actions: Annotated[tuple[int, ...], Field(min_length=1, max_length=MAX_ACTIONS), AfterValidator(_check_actions)]
    """Lead there from a room with everything closed."""
    detour: tuple[int, int] = (0, 0)
    """The actions from the first number on, and before the second, are a detour: played, but not to be imitated."""

    def __post_init__(self) -> None:
        if not 0 <= self.detour[0] <= self.detour[1] < len(self.actions):
            raise ValueError(f"detour: a part of the actions before the last, not {list(self.detour)}")

    def episode(self, goal: str, is_open: bool = False) -> EpisodeSpec:
        """The manipulation as an episode, from everything closed, or with what must be open already open."""
        opened = self.open if is_open else ()
        return EpisodeSpec(goal, self.start, Stage.OM, Stage.OM, self.place, self.target, open=opened)


@dataclass(frozen=True)
class Placements:
    """A room's placements of one goal object."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    scene: str
    goal: str
    drops: Annotated[int, Field(gt=0)]
    """How many drops these were chosen from."""
    placements: tuple[Placement, ...]
    room: str = ""
    """The digest of the room that they were made in, if it is known."""

    def by_modality(self) -> tuple[tuple[Placement, ...], ...]:
        """Those on top, contained and behind."""
        return tuple(
            tuple(placement for placement in self.placements if placement.target[0] == modality)
            for modality in range(len(MODALITIES))
        )


def _check_goal(placements: Placements) -> Placements:
    if placements.goal not in GOALS:
        raise ValueError(f"goal: one of {', '.join(GOALS)}, not {placements.goal!r}")
    return placements


FILES: RoomFiles[Placements] = RoomFiles(
    "placements", VERSION, Annotated[Placements, AfterValidator(_check_goal)], PlacementError, signed=True,
    remedy="make the file again",
)  # fmt: skip
save_placements, load_placements, placements_path, load_placement_files = (
    FILES.save, FILES.load, FILES.path, FILES.load_all,
)  # fmt: skip
