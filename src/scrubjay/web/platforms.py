"""Prolific and Mechanical Turk: what they add to a study's link, who a participant is, and where work is submitted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""Mechanical Turk's assignment id for workers who have not accepted the task."""
PlatformName = Literal["prolific", "mturk"]


class Platform(NamedTuple):
    """A crowdsourcing platform."""

    title: str
    person: str
    """The query parameter that names the person."""
    session: tuple[str, str]
    """Those that name the study or task, and the person's submission."""

    @property
    def parameters(self) -> tuple[str, str, str]:
        return self.person, *self.session

    def missing(self, parameters: Mapping[str, str]) -> list[str]:
        """Names of parameters that are not there, or still placeholders such as {{%PROLIFIC_PID%}}."""
        return [key for key in self.parameters if not parameters.get(key) or parameters[key].startswith("{{")]


PLATFORMS: dict[str, Platform] = {
    "prolific": Platform("Prolific", "PROLIFIC_PID", ("STUDY_ID", "SESSION_ID")),
    "mturk": Platform("Mechanical Turk", "workerId", ("hitId", "assignmentId")),
}
PARAMETERS = tuple(key for platform in PLATFORMS.values() for key in platform.parameters)
MTURK_SITES = "https://*.mturk.com"
"""Show external questions in a frame, and take the work."""
MTURK_SITE = re.compile(r"https://[a-z0-9-]+\.mturk\.com/?")


def platform_of(parameters: Mapping[str, str]) -> str:
    """The platform whose parameters are all there; empty if none is."""
    return next((name for name, platform in PLATFORMS.items() if not platform.missing(parameters)), "")


def identity(study: str, parameters: Mapping[str, str], platform: str = "") -> str | None:
    """Who a participant of a study is; None without a platform's parameters. Databases contain it."""
    platform = platform or platform_of(parameters)
    return json.dumps([study, platform, parameters[PLATFORMS[platform].person]]) if platform else None


def same_session(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two links of one person belong to the same submission."""
    return all(one.get(key) == other.get(key) for key in PARAMETERS)


def worker_id(parameters: Mapping[str, str]) -> str:
    """The platform's id of the person, or an empty string."""
    return next((parameters[platform.person] for platform in PLATFORMS.values() if parameters.get(platform.person)), "")


def mturk_submission(parameters: Mapping[str, str], code: str) -> dict[str, str | dict[str, str]] | None:
    """The form that submits an external question of Mechanical Turk; None where the study was not opened from one."""
    site = parameters.get("turkSubmitTo", "")
    if not MTURK_SITE.fullmatch(site) or PLATFORMS["mturk"].missing(parameters):
        return None
    fields = {"assignmentId": parameters["assignmentId"], "code": code}
    return {"url": site.rstrip("/") + "/mturk/externalSubmit", "fields": fields}
