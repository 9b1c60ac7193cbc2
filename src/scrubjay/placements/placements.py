"""Plausible placements: manipulations of a goal object that are known to succeed, in files by room and object.

Each has the actions that lead to it, so that it can be checked by playing it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from scrubjay.errors import PlacementError, explain
from scrubjay.files import write_atomically
from scrubjay.game.actions import ALLOWED, DROP, MODALITIES, Stage
from scrubjay.game.episode import EpisodeSpec, FinitePose, Openables, Pose
from scrubjay.game.stages import LIMITS
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS

VERSION = 1
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

    def by_modality(self) -> tuple[tuple[Placement, ...], ...]:
        """Those on top, contained and behind."""
        return tuple(
            tuple(placement for placement in self.placements if placement.target[0] == modality)
            for modality in range(len(MODALITIES))
        )


def save_placements(placements: Placements, path: str | os.PathLike[str]) -> None:
    """Writes placements as JSON, with a digest that detects edits."""
    content = asdict(placements)
    write_atomically(path, json.dumps({"version": VERSION, "sha256": _digest(content), **content}) + "\n")


def load_placements(path: str | os.PathLike[str], scene: str = "", goal: str = "") -> Placements:
    """Reads placements; PlacementError if the file is broken, edited, or not of the scene and goal object given."""
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise PlacementError(f"{path}: not a file of placements: {error}") from error
    if not isinstance(data, dict) or data.pop("version", None) != VERSION:
        raise PlacementError(f"{path}: not a file of placements of version {VERSION}; make it again")
    digest = data.pop("sha256", None)
    try:
        placements = _adapter().validate_python(data)
    except ValidationError as error:
        raise PlacementError(f"{path}: a broken file of placements: {explain(error)}") from error
    if digest != _digest(data):
        raise PlacementError(f"{path}: placements that were edited; make the file again")
    given = placements.goal, placements.scene
    if (goal or given[0], scene or given[1]) != given:
        raise PlacementError(
            f"{path}: placements of a {given[0]} in {given[1]}, not of a {goal or given[0]} in {scene or given[1]}"
        )
    return placements


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_goal(placements: Placements) -> Placements:
    if placements.goal not in GOALS:
        raise ValueError(f"goal: one of {', '.join(GOALS)}, not {placements.goal!r}")
    return placements


@cache
def _adapter() -> TypeAdapter[Placements]:
    return TypeAdapter(Annotated[Placements, AfterValidator(_check_goal)])


def placements_path(folder: str | os.PathLike[str], scene: str, goal: str) -> Path:
    """The file of a room's placements of a goal object."""
    return Path(folder) / f"{scene}-{goal}.json"


def load_placement_files(
    folder: str | os.PathLike[str], scenes: Sequence[str], goals: Sequence[str] = GOALS
) -> list[Placements]:
    """Reads the placements of rooms and goal objects; PlacementError names a missing or broken file."""
    return [load_placements(placements_path(folder, scene, goal), scene, goal) for scene in scenes for goal in goals]
