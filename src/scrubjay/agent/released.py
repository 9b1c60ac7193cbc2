"""Released agents: weights that come with the package, loaded by name and checked against their cards.

    NAME/card.json    how the agent was trained, on what, how good it is, its licence, and the SHA-256 of every file
    NAME/card.md      the same, to read
    NAME/agent/       the agent's weights, as `weights.save` writes them, in bfloat16
    NAME/encoder/     its encoder's alone

`training/release.py` writes such a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, field_validator, model_validator

from scrubjay.errors import WeightsError, explain

VERSION = 1
"""Of cards."""
DEFAULT = "scrubjay-paper"
"""The agent that comes with the package: `agent`, where a player is named."""
PACKAGE_FOLDER = Path(__file__).parents[1] / "released"
VARIABLE = "SCRUBJAY_RELEASED"
"""An environment variable: another folder of released agents than the package's."""
CARD, CARD_TEXT = "card.json", "card.md"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
Part = Literal["agent", "encoder"]
PARTS: tuple[Part, ...] = ("agent", "encoder")
Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrainingRun(_Table):
    """One run of those that trained the agent, each from the weights of the one before it."""

    command: Text
    steps: NonNegativeInt
    games: NonNegativeInt = 0
    gpu_minutes: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    device: str = ""
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]
    """Of the program."""


class ResultTable(_Table):
    """Measurements of the agent."""

    title: Text
    command: str = ""
    """What measured them."""
    columns: tuple[Text, ...] = Field(min_length=1)
    rows: tuple[tuple[str | int | float, ...], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"rows: {self.title}: every row has {len(self.columns)} values, as there are columns")
        return self


class CardText(_Table):
    """What the author of a release writes, as TOML."""

    title: Text
    about: Text
    trained_on: Text
    """Rooms, objects, stages."""
    training: tuple[TrainingRun, ...] = Field(min_length=1)
    results: tuple[ResultTable, ...] = Field(min_length=1)
    limits: str = ""
    """What it cannot do, and was not tested on."""
    licence: Text


class ReleasedFile(_Table):
    bytes: NonNegativeInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Card(CardText):
    """The card of a release."""

    version: Literal[1]
    name: str
    package: str
    """The version of Scrubjay that wrote it."""
    parameters: NonNegativeInt
    files: dict[str, ReleasedFile]
    """By path within the release's folder."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        check_name(name)
        return name

    @property
    def steps(self) -> int:
        return sum(run.steps for run in self.training)

    @property
    def gpu_minutes(self) -> float:
        return sum(run.gpu_minutes for run in self.training)


def check_name(name: str) -> None:
    """ValueError unless it can be a release's name."""
    if not NAME.fullmatch(name):
        raise ValueError(f"name: {name!r}: lower-case letters, digits, '-', '_' and '.', at most 40")


def folder() -> Path:
    """Where released agents are."""
    return Path(os.environ.get(VARIABLE) or PACKAGE_FOLDER)


def names() -> list[str]:
    """The released agents that are here."""
    return sorted(path.parent.name for path in folder().glob(f"*/{CARD}") if NAME.fullmatch(path.parent.name))


def is_name(name: str | os.PathLike[str]) -> bool:
    """Whether it names a released agent, here or not: a folder of that name counts only if none is here."""
    word = os.fspath(name)
    return word in names() or (word == DEFAULT and not Path(word).is_dir())


def locate(name: str | os.PathLike[str], part: Part = "agent") -> Path:
    """The folder of a released agent's weights, by its name; any other path is returned unchanged.

    WeightsError if it is not here, or a folder has the same name.
    """
    word = os.fspath(name)
    if not is_name(word):
        return Path(name)
    if word not in names():
        raise WeightsError(
            f"{word} is not here: released agents come with the package, in {folder()}; install a release of Scrubjay "
            f"that has it, or make it with: scrubjay release RUN --name {word} --card CARD"
        )
    if Path(word).is_dir():
        raise WeightsError(
            f"{word} is a released agent and also a folder here: write the folder's whole path, {Path(word).resolve()}"
        )
    return folder() / word / part


@dataclass(frozen=True)
class Release:
    """A release's folder and its card."""

    folder: Path
    card: Card

    def check(self, path: Path, data: bytes) -> None:
        """WeightsError unless a file's contents are those that the card describes."""
        name = path.relative_to(self.folder).as_posix()
        its = self.card.files.get(name)
        if its is None:
            raise WeightsError(f"{self.card.name}: {path} is none of the files that its card lists")
        if len(data) < its.bytes:
            raise WeightsError(
                f"{self.card.name}: {path} is cut off: it has {len(data):,} of {its.bytes:,} bytes; install it again"
            )
        if hashlib.sha256(data).hexdigest() != its.sha256:
            raise WeightsError(
                f"{self.card.name}: {path} was changed, or belongs to another version: its SHA-256 is not the card's; "
                "install it again"
            )


def release_of(weights: Path) -> Release | None:
    """The release that a folder of weights is part of; None if it is of none."""
    if weights.name not in PARTS or not (weights.parent / CARD).is_file():
        return None
    return Release(weights.parent, read_card(weights.parent))


def read_card(release: Path) -> Card:
    """The card in a release's folder; WeightsError says what is wrong with it."""
    path = release / CARD
    try:
        about = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise WeightsError(f"{release.name}: {path} is not a card: {error}") from error
    version = about.get("version") if isinstance(about, dict) else None
    if version != VERSION:
        raise WeightsError(f"{release.name}: {path} is a card of version {version!r}; this program reads {VERSION}")
    try:
        card = Card.model_validate_json(json.dumps(about))
    except ValidationError as error:
        raise WeightsError(f"{release.name}: {path}: {explain(error)}") from error
    if card.name != release.name:
        raise WeightsError(f"{release.name}: {path} is the card of {card.name}")
    return card


def load_card(name: str = DEFAULT) -> Card:
    """A released agent's card; WeightsError if there is none of this name."""
    if not is_name(name):
        raise WeightsError(f"{name} is not a released agent; there are {', '.join(names()) or 'none'}")
    return read_card(locate(name).parent)


def markdown(card: Card) -> str:
    """The card, to read."""
    lines = [f"# {card.title}", "", card.about.strip(), ""]
    lines += ["```python", "import scrubjay", "", f'agent = scrubjay.load_agent("{card.name}")']
    lines += [f'encoder = scrubjay.load_encoder("{card.name}")', "```", ""]
    lines += ["## Training", "", card.trained_on.strip(), ""]
    lines += [
        f"{card.steps:,} steps in {card.gpu_minutes:,.0f} GPU minutes; each run starts from the one before it.",
        "",
    ]
    runs = [
        (f"`{r.command}`", f"{r.steps:,}", f"{r.games:,}", f"{r.gpu_minutes:g}", r.device, r.commit[:12])
        for r in card.training
    ]
    lines += _table(("command", "steps", "games", "GPU minutes", "device", "commit"), runs)
    lines += ["", "## Results", ""]
    for table in card.results:
        lines += [f"**{table.title}**" + (f" (`{table.command}`)" if table.command else ""), ""]
        lines += [*_table(table.columns, table.rows), ""]
    if card.limits:
        lines += ["## Limits", "", card.limits.strip(), ""]
    lines += ["## Licence", "", card.licence.strip(), "", "## Files", ""]
    lines += [f"{card.parameters:,} parameters in bfloat16, written by Scrubjay {card.package}.", ""]
    files = [(f"`{name}`", f"{file.bytes:,}", f"`{file.sha256}`") for name, file in card.files.items()]
    return "\n".join(lines + _table(("file", "bytes", "SHA-256"), files)) + "\n"


def _table(columns: tuple[str, ...], rows: object) -> list[str]:
    """A Markdown table's lines."""
    assert isinstance(rows, list | tuple)
    cells = [[str(value).replace("|", "\\|") for value in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in [list(columns), ["---"] * len(columns), *cells]]
