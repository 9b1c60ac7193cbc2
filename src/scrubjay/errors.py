"""Errors that a user can cause. A message says in one sentence what to change; the command line prints just that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class ScrubjayError(Exception):
    """Base class of the package's errors."""


class RoomError(ScrubjayError, ValueError):
    """An invalid scene name, thing or room file."""


class RendererError(ScrubjayError, RuntimeError):
    """A renderer that does not work on this machine."""


class ProcessError(ScrubjayError, RuntimeError):
    """A child process that died, or whose work failed."""


class ClusterError(ScrubjayError, RuntimeError):
    """A cluster that cannot be reached or used: other versions, no common folder."""


class PhysicsError(ProcessError):
    """A physics process that died, or whose physics failed."""


class RecordError(ScrubjayError, ValueError):
    """An invalid record, or one that does not replay."""


class SpotError(ScrubjayError, ValueError):
    """An invalid file of hiding spots, or spots of another room."""


class PlacementError(ScrubjayError, ValueError):
    """An invalid file of placements, or placements of another room."""


class PlanError(ScrubjayError, ValueError):
    """An invalid evaluation plan, or one that lacks what it needs."""


class WeightsError(ScrubjayError, ValueError):
    """Weights of another version or config, or a damaged file."""


class EncoderError(ScrubjayError, ValueError):
    """An image encoder that cannot be made, or whose features cannot be used."""


class ProbeError(ScrubjayError, ValueError):
    """Examples or labels that a probe cannot be trained on."""


class RunError(ScrubjayError, ValueError):
    """A training run's folder that cannot be used."""


class TrainingError(ScrubjayError, RuntimeError):
    """Training that cannot continue."""


class NotFiniteError(TrainingError):
    """A loss or gradient that is NaN or infinite, with the batch that caused it."""

    def __init__(self, names: list[str], batch: object) -> None:
        super().__init__(f"not finite: {', '.join(names)}")
        self.names, self.batch = names, batch


class StudyError(ScrubjayError, ValueError):
    """A human study that cannot be run."""


class StatisticsError(ScrubjayError, ValueError):
    """Losses that a statistical model cannot be fitted to."""


class DataError(ScrubjayError, ValueError):
    """A folder of data for the experiments that is broken, incomplete or of another version."""


class DatabaseError(ScrubjayError, ValueError):
    """A file that is not a study database of this version."""


class ThorError(ScrubjayError, RuntimeError):
    """An installation for AI2-THOR's client that cannot be made, or a client that cannot be served."""


def explain(error: ValidationError) -> str:
    """The first problem of a failed pydantic validation as one sentence, with the field's path."""
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "value_error":  # Our own validators name the field themselves where it helps.
        words = str(problem["ctx"]["error"])
        return words if not where or words.startswith(where) else f"{where}: {words}"
    words = problem["msg"][0].lower() + problem["msg"][1:]
    complete = ("missing", "extra_forbidden", "unexpected_keyword_argument", "too_short", "too_long")
    given = "" if problem["type"] in complete else f", not {problem['input']!r}"
    return f"{where}: {words}{given}" if where else f"{words}{given}"


def reason(error: Exception) -> str:
    """Why a file could not be used, for a message that names the file already."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)
