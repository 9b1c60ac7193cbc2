"""The study file that a researcher writes: its tables, their fields and checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qs, quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scrubjay.errors import StudyError
from scrubjay.rooms.room import GOALS
from scrubjay.web.platforms import PlatformName
from scrubjay.web.questions import Question
from scrubjay.web.schemas import Goal
from scrubjay.web.trial import HIDE, SEEK

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
CODE_IN_LINK = "{code}"
"""In `return_to`, stands for the participant's completion code."""
CODE_PARAMETERS = ("cc", "code")
"""Query parameters of completion links that carry the code; Prolific's is cc."""


class Table(BaseModel):
    """A table of the study file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Practice(Table):
    """The room and object of practice games."""

    scene: str = "FloorPlan1"
    goal: Goal = "Tomato"


class Source(Table):
    """Hiding places of one origin."""

    source: Name
    """Its name in the results."""
    records: str = ""
    """A record file, relative to the study file."""
    spots: str = ""
    """Or a folder of exhaustive spots, relative to the study file."""
    difficulty: Literal["easy", "medium", "hard"] = "medium"
    """Of the spots."""
    matched: str = ""
    """The source to whose hiding places these are matched."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.records) == bool(self.spots):
            raise ValueError(f"source {self.source} needs either records or spots")
        return self


class Bonus(Table):
    """What seekers earn beside their reward."""

    found: float = Field(gt=0, le=1000, allow_inf_nan=False)
    """For each object found."""
    within_steps: int = Field(default=0, ge=0)
    """Only for those found in at most so many steps; 0: in any number."""
    at_most: float = Field(default=0, ge=0, le=10_000, allow_inf_nan=False)
    """In all; 0: no limit."""
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    """Such as GBP or USD."""

    def earned(self, found: list[int]) -> float:
        """The bonus of a participant who found objects in these numbers of steps."""
        counted = sum(not self.within_steps or steps <= self.within_steps for steps in found)
        amount = round(counted * self.found, 2)
        return min(amount, self.at_most) if self.at_most else amount


class Study(Table):
    """A study file."""

    name: Name
    title: str
    kind: Literal["seek", "hide"]
    consent: str
    instructions: str
    trials: int = Field(ge=1, le=1000)
    """Per participant."""
    repeats: int = Field(default=1, ge=1, le=1000)
    """Seeking: trials per hiding place. Hiding: trials per room and object, each with its own start."""
    give_up_seconds: float = Field(default=100.0, ge=0)
    """How long a participant must search before giving up."""
    code: str = ""
    """The completion code; if empty, each participant gets their own."""
    return_to: str = Field(default="", pattern=r"^(https://\S+)?$")
    """Where participants are sent at the end; {code} in it is replaced by the completion code."""
    seed: int = Field(default=0, ge=0)
    scenes: tuple[str, ...] = ()
    """Hiding: the rooms. Seeking: restricts the sources to these rooms."""
    goals: tuple[Goal, ...] = GOALS  # type: ignore[assignment]
    practice: Practice = Practice()
    places: tuple[Source, ...] = ()
    platform: PlatformName | Literal[""] = ""
    """Only people whom this platform sends take part."""
    before: tuple[Question, ...] = Field(default=(), max_length=50)
    """Asked after consent."""
    after: tuple[Question, ...] = Field(default=(), max_length=50)
    """Asked after the last trial."""
    bonus: Bonus | None = None
    pilot: bool = False
    """The study may still change: what its participants did is set aside when it does."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for part, questions in (("before", self.before), ("after", self.after)):
            if len({question.name for question in questions}) < len(questions):
                raise ValueError(f"{part}: two questions have the same name")
        if self.kind == HIDE:
            if self.places or not self.scenes:
                raise ValueError("a hiding study needs scenes and must not have places")
            if self.bonus:
                raise ValueError("bonus: only seekers can earn one")
            return self
        names = [source.source for source in self.places]
        if not names or len(set(names)) != len(names):
            raise ValueError("a seeking study needs places from at least one source, each source with its own name")
        for number, source in enumerate(self.places):
            if source.matched and source.matched not in names[:number]:
                raise ValueError(f"source {source.source} is matched to {source.matched!r}, not a source before it")
            if source.spots and not source.matched and not self.scenes:
                raise ValueError(f"source {source.source} has spots, so name the scenes or a source to match")
        return self

    @property
    def trials_per_location(self) -> int:
        """A hiding study has a location for each repeat."""
        return self.repeats if self.kind == SEEK else 1

    def questions(self, part: str) -> tuple[Question, ...]:
        """Those of a participant's status; empty if it is no questionnaire."""
        return {"before": self.before, "after": self.after}.get(part, ())

    def completion_link(self, code: str) -> str:
        """Where a participant with this code is sent at the end; empty if nowhere."""
        return self.return_to.replace(CODE_IN_LINK, quote(code, safe=""))

    def stored(self) -> dict[str, Any]:
        """As databases contain it: fields that older databases lack are left out while they have no effect."""
        added = ("platform", "before", "after", "bonus", "pilot")
        fields = self.model_dump()
        return {name: value for name, value in fields.items() if name not in added or value}


def check_completion_code(study: Study) -> None:
    """StudyError if the completion link carries another code than participants see.

    Not one of `Study`'s own checks, since databases may contain such studies, whose data can still be exported.
    """
    query = parse_qs(urlsplit(study.return_to).query, keep_blank_values=True)
    for carried in (value for key in CODE_PARAMETERS for value in query.get(key, ())):
        if carried not in (study.code, CODE_IN_LINK):
            shown = f"code {study.code}" if study.code else "a code of each participant's own: set code"
            raise StudyError(f"return_to carries the code {carried!r}, but the page shows {shown}")
