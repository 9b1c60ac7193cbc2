"""What may come from outside: the schema of every request and message. All else is refused before anything is done."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from scrubjay.rooms.room import ROOM_TYPES

SEEDED_SCENE = re.compile(rf"({'|'.join(ROOM_TYPES)})-(0|[1-9][0-9]{{0,8}})")
"""Scenes from a seed."""
MAX_MESSAGE_BYTES = 4096
"""Bytes of a message or a request; records are longer."""
MAX_RECORD_BYTES = 2_000_000

Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Number = Annotated[int, Field(ge=0, le=2**53)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=200)]
Goal = Literal["Bread", "Cup", "Knife", "Plunger", "Tomato"]


class BadInputError(ValueError):
    """Something from outside that is not what it should be; the message is for whoever sent it."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Hello(_Strict):
    type: Literal["hello"]
    trial: Token


class Act(_Strict):
    type: Literal["act"]
    id: Number
    do: Annotated[str, Field(max_length=40)]


class Point(_Strict):
    type: Literal["point"]
    id: Number
    x: Share
    y: Share
    to: Literal["open", "place"]


class Ping(_Strict):
    type: Literal["ping"]
    id: Number


Message = Annotated[Act | Point | Ping, Field(discriminator="type")]


class Play(_Strict):
    role: Literal["seek", "hide"]
    scene: Text
    goal: Goal
    opponent: Text
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class Game(_Strict):
    scene: Text
    goal: Goal
    hider: Text
    seeker: Text
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class Join(_Strict):
    parameters: Annotated[dict[Text, Text], Field(max_length=20)] = {}


class ParticipantAction(_Strict):
    do: Literal["agree", "decline", "practise", "begin", "next"]


hello = TypeAdapter(Hello)
message = TypeAdapter[Act | Point | Ping](Message)
play = TypeAdapter(Play)
game = TypeAdapter(Game)
join = TypeAdapter(Join)
participant_action = TypeAdapter(ParticipantAction)

T = TypeVar("T")


def parsed(schema: TypeAdapter[T], text: str | bytes) -> T:
    """JSON as what it should be; BadInputError says what is wrong with it."""
    try:
        return schema.validate_json(text)
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:3])
        raise BadInputError(f"{where + ': ' if where else ''}{first['msg']}"[:300]) from None
