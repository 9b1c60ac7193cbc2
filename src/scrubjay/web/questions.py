"""Questionnaires of a study: their questions, and what answers are valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scrubjay.web.schemas import Answer, BadInputError


class Question(BaseModel):
    """A question before or after the trials."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
    """Its name in the results."""
    ask: str = Field(min_length=1, max_length=2000)
    """Its text."""
    kind: Literal["text", "choice", "scale"]
    choices: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), max_length=50)
    """Of a choice; one is chosen."""
    points: int = Field(default=7, ge=2, le=11)
    """Of a scale, which starts at 1."""
    low: str = ""
    high: str = ""
    """What a scale's ends mean."""
    long: bool = False
    """Text of several lines."""
    required: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.kind == "choice") != bool(self.choices):
            raise ValueError(f"question {self.name}: a choice needs choices, and only a choice has them")
        if len(set(self.choices)) < len(self.choices):
            raise ValueError(f"question {self.name}: two choices are the same")
        return self

    def check(self, answer: Answer) -> None:
        """BadInputError if this is no answer."""
        if answer is None or (isinstance(answer, str) and not answer.strip()):
            if self.required:
                raise BadInputError(f"{self.name}: this question needs an answer")
        elif self.kind == "scale":
            if not isinstance(answer, int) or not 1 <= answer <= self.points:
                raise BadInputError(f"{self.name}: must be a number from 1 to {self.points}")
        elif not isinstance(answer, str) or (self.kind == "choice" and answer not in self.choices):
            raise BadInputError(f"{self.name}: must be {'one of the choices' if self.choices else 'text'}")


def check_answers(questions: Sequence[Question], answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """A valid answer to each question, None where there is none; BadInputError names the first that is not valid."""
    names = [question.name for question in questions]
    if unknown := [name for name in answers if name not in names]:
        raise BadInputError(f"{unknown[0][:60]}: there is no such question")
    for question in questions:
        question.check(answers.get(question.name))
    return {name: answers.get(name) for name in names}
