"""Arguments of AI2-THOR's actions: their types, how a client's values are read, and the errors that it expects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REQUIRED: Any = object()
"""The default of an argument that must be given."""
MAX_INT = 2**31 - 1
EVERYWHERE = frozenset({
    "action", "agentId", "sequenceId", "renderImage", "renderDepthImage", "renderFlowImage", "renderNormalsImage",
    "renderInstanceSegmentation", "renderSemanticSegmentation", "renderObjectImage", "renderClassImage",
    "visibilityDistance",
})  # fmt: skip
"""What a client may send with every action."""


class InvalidRequest(Exception):
    """A request that no action can be made from; the client raises ValueError for those with a code."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Kind:
    """A type of argument."""

    name: str
    read: Callable[[Any], Any]
    """Converts a value of a message; raises ValueError or TypeError if it cannot."""


@dataclass(frozen=True)
class Argument:
    """An argument of an action."""

    name: str
    kind: Kind
    default: Any = REQUIRED

    @property
    def parameter(self) -> str:
        """The name of the handler's parameter: `objectId` is `object_id`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _int(value: Any) -> int:
    if _float(value) != int(value) or abs(value) > MAX_INT:
        raise ValueError
    return int(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _vector(value: Any) -> dict[str, float]:
    if set(_partial(value)) != {"x", "y", "z"}:
        raise ValueError
    return _partial(value)


def _partial(value: Any) -> dict[str, float]:
    """Any of x, y and z."""
    if not isinstance(value, Mapping) or set(value) - {"x", "y", "z"}:
        raise ValueError
    return {axis: _float(number) for axis, number in value.items() if number is not None}


def _rotation(value: Any) -> dict[str, float]:
    """Euler angles; a number is a yaw."""
    return _partial(value) if isinstance(value, Mapping) else {"y": _float(value)}


def _record(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError
    return dict(value)


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def read_list(value: Any) -> list[Any]:
        if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
            raise ValueError
        return [read(one) for one in value]

    return read_list


FLOAT, INT, BOOL, STRING = Kind("float", _float), Kind("int", _int), Kind("bool", _bool), Kind("string", _string)
VECTOR, PARTIAL, ROTATION = Kind("Vector3", _vector), Kind("partial Vector3", _partial), Kind("rotation", _rotation)
FLOATS, BOOLS, STRINGS = (Kind(f"{kind.name}[]", _list_of(kind.read)) for kind in (FLOAT, BOOL, STRING))
VECTORS, RECORDS = Kind("Vector3[]", _list_of(_vector)), Kind("object[]", _list_of(_record))
ANY = Kind("any", lambda value: value)


def read(action: str, arguments: Sequence[Argument], given: Mapping[str, Any], ignore_unknown: bool) -> dict[str, Any]:
    """The handler's parameters from a client's action; null means that an argument was not given.

    Raises InvalidRequest with the code of what is wrong.
    """
    known = {argument.name: argument for argument in arguments}
    given = {name: value for name, value in given.items() if value is not None}
    if not ignore_unknown and (unknown := [name for name in given if name not in known and name not in EVERYWHERE]):
        raise InvalidRequest(
            f"action: {action} has an invalid argument: {', '.join(unknown)}. It takes: {', '.join(known) or 'none'}",
            "InvalidArgument",
        )
    missing = [name for name, argument in known.items() if argument.default is REQUIRED and name not in given]
    if missing:
        raise InvalidRequest(
            f"action: {action} is missing the following arguments: {','.join(missing)}", "MissingArguments"
        )
    return {
        argument.parameter: _converted(action, argument, given[name]) if name in given else argument.default
        for name, argument in known.items()
    }


def _converted(action: str, argument: Argument, value: Any) -> Any:
    try:
        return argument.kind.read(value)
    except (ValueError, TypeError, OverflowError):
        words = str(value) if len(str(value)) <= 80 else f"{str(value)[:77]}..."
        # Unity's reader fails before its dispatcher does if a vector is no object, so that case has no code.
        code = None if argument.kind is VECTOR and not isinstance(value, Mapping) else "InvalidArgument"
        raise InvalidRequest(
            f"action: {action} has an invalid argument: {argument.name} (=={words}). "
            f"Cannot convert to: {argument.kind.name}",
            code,
        ) from None
