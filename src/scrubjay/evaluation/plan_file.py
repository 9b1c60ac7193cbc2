"""Evaluation plans: files that say who hides and who seeks, where, how often, and what the paper prints about it.

A plan is TOML. Ready ones are in the folder `plans`; `docs/evaluation.md` explains the fields.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from scrubjay.errors import PlanError, RoomError, explain
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.rooms.generate import check_scene, expand_scenes
from scrubjay.spots.spots import DIFFICULTIES

VERSION = 1
READY = {path.stem: path for path in sorted((Path(__file__).parent / "plans").glob("*.toml"))}
"""Files of the plans that come with the package, by name."""
PEOPLE = "people"
"""Hides in the records of people, and seeks in their searches."""
MATCHED = "-matched"
"""Ends the results' name of a hider that starts where people started."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
"""As in studies, so that a plan's hiders can be their sources."""
Games = Annotated[int, Field(ge=1, le=1000)]


def _expand(names: tuple[str, ...]) -> tuple[str, ...]:
    scenes = expand_scenes(names)
    for scene in scenes:
        check_scene(scene)
    if len(set(scenes)) < len(scenes):
        raise ValueError("rooms: name every room once")
    return scenes


class _Table(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentSource(_Table):
    """Where a trained agent is: exactly one of these."""

    milestone: NonNegativeInt | None = None
    """Of the run that is given when the plan is played: its agent after so many games."""
    checkpoint: Literal["newest", "best"] | None = None
    """Of that run."""
    folder: str | None = None
    """Another run, or a folder of weights, relative to the plan file; or a released agent's name."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(value is not None for value in (self.milestone, self.checkpoint, self.folder)) != 1:
            raise ValueError("an agent has a milestone, a checkpoint or a folder")
        return self


class HidingSet(_Table):
    """Objects that some hiders hide in some rooms."""

    hiders: tuple[str, ...] = Field(min_length=1)
    """Agents of the plan, scripted players, `easy`, `medium` and `hard` for spots, or `people`."""
    rooms: Annotated[tuple[str, ...], AfterValidator(_expand)] = ()
    """Scenes, splits (`test`) or a split's rooms of one type (`test:kitchen`); with people's starts, all if empty."""
    count: Games = 1
    """Hidings of each hider for each room and object, or for each of people's starts."""
    starts: Literal["random", "people"] = "random"
    """Where hiders start: at random, or in the rooms, with the objects and at the starts of people's records."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.starts == "random" and not self.rooms:
            raise ValueError("rooms: name at least one, unless starts are those of people")
        if PEOPLE in self.hiders and (self.starts != PEOPLE or self.count != 1):
            raise ValueError("people hid once from their own starts: starts is people, and count 1")
        if self.starts == PEOPLE and (spots := set(self.hiders) & set(DIFFICULTIES)):
            raise ValueError(f"spots ({', '.join(sorted(spots))}) have random starts")
        return self

    def label(self, hider: str) -> str:
        """The hider's name in the results."""
        return hider + MATCHED if self.starts == PEOPLE and hider != PEOPLE else hider


class Printed(_Table):
    """Numbers that the paper prints."""

    split: Literal["train", "validation", "test", "all"]
    hider: str
    """A name as in the results."""
    seeker: str = ""
    hidings: int | None = None
    found: float | None = Field(default=None, ge=0, le=1)


class EvaluationPlan(_Table):
    """A plan file."""

    version: Literal[1]
    title: str
    about: str = ""
    seed: NonNegativeInt = 0
    size: Annotated[int, Field(ge=28, le=896, multiple_of=28)] = 224
    """Of images, in pixels; agents get them resized to their own size."""
    seekers: tuple[str, ...] = ()
    """Agents of the plan and scripted players. All of them search for every object."""
    agents: dict[Name, AgentSource] = {}
    hidings: tuple[HidingSet, ...] = Field(min_length=1)
    paper: tuple[Printed, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        reserved = {*HIDERS, *SEEKERS, *DIFFICULTIES, PEOPLE}
        for name in self.agents:
            if name in reserved or name.endswith(MATCHED):
                raise ValueError(f"agents: {name} is the name of somebody else")
        known = (*self.agents, *HIDERS, *DIFFICULTIES, PEOPLE)
        for number, hidings in enumerate(self.hidings):
            _check_names(f"hidings.{number}.hiders", hidings.hiders, known)
        _check_names("seekers", self.seekers, (*self.agents, *SEEKERS))
        labels = [hidings.label(hider) for hidings in self.hidings for hider in hidings.hiders]
        for printed in self.paper:
            if printed.hider not in labels or printed.seeker not in ("", PEOPLE, *self.seekers):
                raise ValueError(f"paper: {printed.hider} {printed.seeker} is nobody of the plan")
        return self

    @property
    def needs_people(self) -> bool:
        """Whether a part of the plan needs the records of people."""
        return any(hidings.starts == PEOPLE for hidings in self.hidings)


def _check_names(where: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{where}: unknown {', '.join(unknown)}; choose from {', '.join(dict.fromkeys(known))}")
    if len(set(names)) < len(names):
        raise ValueError(f"{where}: name everybody once")


def plan_path(name: str) -> Path:
    """The file of a ready plan, or any other file; PlanError if there is none."""
    path = READY.get(name, Path(name))
    if not path.is_file():
        raise PlanError(f"there is no plan {name!r}: choose {', '.join(READY)}, or a file")
    return path


def load_plan(path: Path) -> EvaluationPlan:
    """Reads a plan; PlanError says what to change."""
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: not a plan: {error}") from error
    if data.get("version") != VERSION:
        raise PlanError(f"{path}: a plan of version {data.get('version')}; this program plays version {VERSION}")
    try:
        return EvaluationPlan(**data)
    except ValidationError as error:
        raise PlanError(f"{path}: {explain(error)}") from error
    except RoomError as error:
        raise PlanError(f"{path}: {error}") from error


def ready_plans() -> Iterator[tuple[str, EvaluationPlan]]:
    """The plans that come with the package, by name."""
    for name, path in READY.items():
        yield name, load_plan(path)
