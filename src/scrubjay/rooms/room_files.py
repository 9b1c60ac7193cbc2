"""JSON files of one kind, such as hiding spots: one for each room and goal object."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from scrubjay.errors import ScrubjayError, explain, reason
from scrubjay.files import write_atomically
from scrubjay.rooms.room import GOALS, Room, file_stem


class OfRoom(Protocol):
    """A dataclass that belongs to a room and a goal object."""

    @property
    def scene(self) -> str: ...
    @property
    def goal(self) -> str: ...
    @property
    def room(self) -> str: ...


T = TypeVar("T", bound=OfRoom)


class RoomFiles(Generic[T]):
    """Reads and writes files of one kind."""

    def __init__(
        self, what: str, version: int, of: Any, error: type[ScrubjayError], signed: bool = False, remedy: str = ""
    ) -> None:
        """`of` is the dataclass, perhaps annotated with validators; a `signed` file has a digest that detects edits.

        `what` and `remedy` are words of error messages: what the files hold, and what to do about one that is broken.
        """
        self.what, self.version, self.error, self.signed = what, version, error, signed
        self._of, self._remedy = of, remedy and f"; {remedy}"

    def path(self, folder: str | os.PathLike[str], scene: str, goal: str) -> Path:
        """The file of a room and a goal object."""
        return Path(folder) / f"{file_stem(scene)}-{goal}.json"

    def save(self, content: T, path: str | os.PathLike[str]) -> None:
        """Writes a file."""
        data = asdict(content)  # type: ignore[call-overload]
        digest = {"sha256": _digest(data)} if self.signed else {}
        write_atomically(path, json.dumps({"version": self.version, **digest, **data}) + "\n")

    def load(self, path: str | os.PathLike[str], scene: str = "", goal: str = "") -> T:
        """Reads a file; an error if it is broken, edited, or of another scene or goal object than those given."""
        try:
            data = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise self.error(f"{path}: not a file of {self.what}: {reason(error)}") from error
        if not isinstance(data, dict) or data.pop("version", None) != self.version:
            raise self.error(f"{path}: not a file of {self.what} of version {self.version}{self._remedy}")
        digest = data.pop("sha256", None) if self.signed else None
        try:
            content = self._adapter.validate_python(data)
        except ValidationError as error:
            raise self.error(f"{path}: a broken file of {self.what}: {explain(error)}") from error
        if self.signed and digest != _digest(data):
            raise self.error(f"{path}: {self.what} that were edited{self._remedy}")
        wanted = goal or content.goal, scene or content.scene
        if wanted != (content.goal, content.scene):
            given = f"{self.what} of a {content.goal} in {content.scene}"
            raise self.error(f"{path}: {given}, not of a {wanted[0]} in {wanted[1]}")
        return content

    def load_all(self, folder: str | os.PathLike[str], scenes: Sequence[str], goals: Sequence[str] = GOALS) -> list[T]:
        """Reads the files of rooms and goal objects; the error names a missing or broken one."""
        return [self.load(self.path(folder, scene, goal), scene, goal) for scene in scenes for goal in goals]

    def check_room(self, content: T, room: Room) -> None:
        """Raises an error if a file's content was made in another version of its room."""
        if content.room and content.room != room.digest:
            what = f"{self.what} of a {content.goal} in {content.scene}"
            raise self.error(f"{what} were made when that room was another: make the file again")

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._of)


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
