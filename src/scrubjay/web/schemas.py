"""Schemas of every request body and socket message. Anything else is rejected before it has an effect."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from scrubjay.rooms.room import ROOM_TYPES

SEEDED_SCENE = re.compile(rf"({'|'.join(ROOM_TYPES)})-(0|[1-9][0-9]{{0,8}})")
"""Rooms generated from a seed, such as kitchen-81723."""
MAX_MESSAGE_BYTES = 4096
"""Of a socket message or request body; records may be longer."""
MAX_RECORD_BYTES = 2_000_000
MAX_ANSWER_LENGTH, MAX_ANSWER_BYTES = 2000, 500_000
"""Of one answer in a questionnaire, in characters, and of all answers of a page."""

Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
MessageId = Annotated[int, Field(ge=0, le=2**53)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=200)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
ClientTime = Annotated[int, Field(ge=0, le=2**53)]
"""The client's clock, in milliseconds since 1970."""
Answer = Annotated[str, Field(max_length=MAX_ANSWER_LENGTH)] | int | None
Goal = Literal["Bread", "Cup", "Knife", "Plunger", "Tomato"]


class BadInputError(ValueError):
    """Input that does not match its schema; the message is sent to the client."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Hello(_Strict):
    type: Literal["hello"]
    trial: Token


class Act(_Strict):
    type: Literal["act"]
    id: MessageId
    do: Annotated[str, Field(max_length=40)]
    at: ClientTime | None = None


class Point(_Strict):
    """A click at (x, y) in fractions of the image's sides, from the top left."""

    type: Literal["point"]
    id: MessageId
    x: Fraction
    y: Fraction
    to: Literal["open", "place"]
    at: ClientTime | None = None


class Ping(_Strict):
    type: Literal["ping"]
    id: MessageId


class Focus(_Strict):
    """The player's window has lost the focus, or has it again."""

    type: Literal["focus"]
    id: MessageId
    focused: bool
    at: ClientTime


Message = Annotated[Act | Point | Ping | Focus, Field(discriminator="type")]


class Play(_Strict):
    """A person's game against a scripted or trained player."""

    role: Literal["seek", "hide"]
    scene: Text
    goal: Goal
    opponent: Text
    seed: Seed | None = None


class Game(_Strict):
    """A game between two scripted or trained players."""

    scene: Text
    goal: Goal
    hider: Text
    seeker: Text
    seed: Seed | None = None


class Join(_Strict):
    """The query parameters that a crowdsourcing platform adds to a study's link."""

    parameters: Annotated[dict[Text, Text], Field(max_length=20)] = {}


class ParticipantAction(_Strict):
    do: Literal["agree", "decline", "answer", "practise", "begin", "next"]
    answers: Annotated[dict[Text, Answer], Field(max_length=50)] = {}
    """To the questionnaire, by question."""
    at: ClientTime | None = None


hello = TypeAdapter(Hello)
message = TypeAdapter[Act | Point | Ping | Focus](Message)
play = TypeAdapter(Play)
game = TypeAdapter(Game)
join = TypeAdapter(Join)
participant_action = TypeAdapter(ParticipantAction)

T = TypeVar("T")


def seconds(time: int | None) -> float | None:
    """A client's time as databases store it."""
    return None if time is None else time / 1000


def parse(schema: TypeAdapter[T], text: str | bytes) -> T:
    """Validates JSON; BadInputError names the first field that is wrong."""
    try:
        return schema.validate_json(text)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"][:3])
        raise BadInputError(f"{field + ': ' if field else ''}{first['msg']}"[:300]) from None
