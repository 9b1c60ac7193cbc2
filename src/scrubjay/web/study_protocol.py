"""A study: what a researcher writes in one file, and the hiding places that it comes to.

The file is TOML. A seeking study names sources of hiding places: files of records, whose objects were hidden by people
or agents, and folders of exhaustive spots. A source that is matched to another has one place for each of the other's,
in the same room, with the same object and start.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scrubjay.errors import RecordError, RoomError, SpotError, StudyError
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import load_records
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.generate import make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.spots.spots import load_spots, spots_path
from scrubjay.web.database import Database, spec_to_json
from scrubjay.web.schemas import Goal
from scrubjay.web.trial import HIDE, SEEK

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Practice(_Part):
    """Where participants practise."""

    scene: str = "FloorPlan1"
    goal: Goal = "Tomato"


class Source(_Part):
    """Hiding places from one hand."""

    source: Name
    """What they are called in the results."""
    records: str = ""
    """A file of records; the study's folder is where its path begins."""
    spots: str = ""
    """Or a folder of exhaustive spots."""
    difficulty: Literal["easy", "medium", "hard"] = "medium"
    """Which of the spots."""
    matched: str = ""
    """The source to whose places these are matched."""


class Study(_Part):
    """What the file says."""

    name: Name
    title: str
    kind: Literal["seek", "hide"]
    consent: str
    instructions: str
    trials: int = Field(ge=1, le=1000)
    """Of each participant."""
    repeats: int = Field(default=1, ge=1, le=1000)
    """Trials of each hiding place; in a hiding study, of each room and object, from a start of its own each."""
    give_up_seconds: float = Field(default=100.0, ge=0)
    code: str = ""
    """The completion code; if empty, each participant gets one of their own."""
    return_to: str = Field(default="", pattern=r"^(https://\S+)?$")
    """Where participants go in the end."""
    seed: int = Field(default=0, ge=0)
    scenes: tuple[str, ...] = ()
    """Rooms: those of a hiding study, or the only ones of which places are taken."""
    goals: tuple[Goal, ...] = GOALS  # type: ignore[assignment]
    practice: Practice = Practice()
    places: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Location:
    """What a trial begins with."""

    source: str
    scene: str
    deal: EpisodeSpec | None
    """None if the start must still be drawn."""
    goal: str
    pose: tuple[float, ...] = ()
    open: tuple[int, ...] = ()

    def begun(self, start: AgentPose) -> EpisodeSpec:
        """The deal from a start."""
        if not self.pose:
            return EpisodeSpec(self.goal, start, Stage.EM, Stage.OH, anywhere=True)
        return EpisodeSpec(self.goal, start, Stage.S, Stage.S, pose=self.pose, open=self.open)


def load_study(path: str | Path) -> tuple[Study, list[Location]]:
    """Reads a study and all that it names; StudyError says what is wrong."""
    path = Path(path)
    try:
        study = Study(**tomllib.loads(path.read_text()))
        for scene in {study.practice.scene, *study.scenes}:
            make_room(scene)
        return study, _locations(study, path.parent)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError) as error:
        raise StudyError(f"{path}: not a study: {error}") from error
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise StudyError(f"{path}: {said}") from error
    except (RoomError, RecordError, SpotError, StudyError) as error:
        raise StudyError(f"{path}: {error}") from error


def _locations(study: Study, folder: Path) -> list[Location]:
    if study.kind == HIDE:
        if study.places or not study.scenes:
            raise StudyError("a hiding study has scenes and no places")
        combinations = [(scene, goal) for scene in study.scenes for goal in study.goals for _ in range(study.repeats)]
        return [Location(HIDE, scene, None, goal) for scene, goal in combinations]
    names = [source.source for source in study.places]
    if not names or len(set(names)) != len(names):
        raise StudyError("a seeking study has places from at least one source, each source named once")
    found: dict[str, list[Location]] = {}
    rng = np.random.default_rng(study.seed)
    for source in study.places:
        if bool(source.records) == bool(source.spots):
            raise StudyError(f"source {source.source} has either records or spots")
        if source.matched and source.matched not in found:
            raise StudyError(
                f"source {source.source} is matched to {source.matched!r}, which is not a source before it"
            )
        if source.records:
            places = _recorded(study, source, folder)
            if source.matched:
                places = _matched(places, found[source.matched], source, rng)
        else:
            places = _spots(study, source, folder, found.get(source.matched), rng)
        if not places:
            raise StudyError(f"source {source.source} has no place in these rooms with these objects")
        found[source.source] = places
    return [location for places in found.values() for location in places]


def _recorded(study: Study, source: Source, folder: Path) -> list[Location]:
    """The hiding places of recorded games."""
    found = []
    for number, record in enumerate(load_records(folder / source.records), 1):
        if record.hidden is None:
            raise StudyError(f"{source.records}, line {number}: a game in which nothing was hidden")
        if (study.scenes and record.scene not in study.scenes) or record.goal not in study.goals:
            continue
        make_room(record.scene)
        pose, is_open = tuple(map(float, record.hidden["pose"])), tuple(map(int, record.hidden["open"]))
        location = Location(source.source, record.scene, None, record.goal, pose, is_open)
        found.append(Location(**{**vars(location), "deal": location.begun(record.start)}))
    return found


def _key(location: Location) -> tuple:
    """What matched places have in common."""
    assert location.deal is not None
    x, y, rotation, _ = location.deal.start
    return location.scene, location.goal, round(x, 4), round(y, 4), round(rotation % 360, 2)


def _matched(
    places: Sequence[Location], others: Sequence[Location], source: Source, rng: np.random.Generator
) -> list[Location]:
    """For each of the others a place of its own with the same room, object and start."""
    pool: dict[tuple, list[Location]] = {}
    for number in rng.permutation(len(places)).tolist():
        pool.setdefault(_key(places[number]), []).append(places[number])
    chosen = [pool[_key(other)].pop() if pool.get(_key(other)) else None for other in others]
    missing = sum(place is None for place in chosen)
    if missing:
        raise StudyError(f"{missing} of {len(others)} places of {source.matched} have no match in {source.source}")
    return [place for place in chosen if place is not None]


def _spots(
    study: Study, source: Source, folder: Path, others: Sequence[Location] | None, rng: np.random.Generator
) -> list[Location]:
    """Exhaustive spots: all of the study's rooms and objects, or one for each of the others."""
    if others is None and not study.scenes:
        raise StudyError(f"source {source.source} has spots: name the scenes, or a source that it is matched to")
    pairs = [(scene, goal) for scene in study.scenes for goal in study.goals]
    pool: dict[tuple[str, str], list[Location]] = {}
    for scene, goal in pairs if others is None else sorted({(other.scene, other.goal) for other in others}):
        spots = load_spots(spots_path(folder / source.spots, scene, goal), scene, goal).spots[source.difficulty]
        some = [Location(source.source, scene, None, goal, spot.pose, spot.open) for spot in spots]
        pool[scene, goal] = [some[k] for k in rng.permutation(len(some))]
    if others is None:
        return [location for some in pool.values() for location in some]
    chosen = []
    for other in others:
        if not pool[other.scene, other.goal]:
            raise StudyError(f"{source.source}: too few spots of a {other.goal} in {other.scene}")
        spot = pool[other.scene, other.goal].pop()
        assert other.deal is not None
        chosen.append(Location(**{**vars(spot), "deal": spot.begun(other.deal.start)}))
    return chosen


def enter(
    database: Database,
    study: Study,
    locations: Sequence[Location],
    progress: Callable[[int, int], None] = lambda done, total: None,
    build: Callable[[str], CompiledRoom] = build_room,
) -> None:
    """Puts a study into the database, with starts drawn and places that nobody could see marked; once is enough.

    A study that has changed is entered anew, unless somebody has joined it already.
    """
    text = json.dumps({"study": study.model_dump(), "locations": [_plain(location) for location in locations]})
    known = database.one("SELECT definition FROM studies WHERE name = ?", study.name)
    if known is not None and known["definition"] == text:
        return
    if known is not None and database.one("SELECT 1 FROM participants WHERE study = ?", study.name):
        raise StudyError(f"study {study.name} has changed since people joined it: give it another name")
    rows = list(_entered(study, locations, progress, build))
    with database.transaction():
        database.db.execute("DELETE FROM studies WHERE name = ?", [study.name])
        database.db.execute("DELETE FROM locations WHERE study = ?", [study.name])
        database.add("studies", name=study.name, definition=text)
        for number, location, deal, seeable in rows:
            database.add("locations", study=study.name, number=number, source=location.source, scene=location.scene,
                      deal=spec_to_json(deal), seeable=seeable)  # fmt: skip


def stored_study(database: Database, name: str) -> Study:
    """A study as it was entered."""
    row = database.one("SELECT definition FROM studies WHERE name = ?", name)
    if row is None:
        raise StudyError(f"there is no study {name!r}")
    return Study(**json.loads(row["definition"])["study"])


def _plain(location: Location) -> dict:
    deal = location.deal and spec_to_json(location.deal)
    return {**vars(location), "deal": deal}


def _entered(
    study: Study, locations: Sequence[Location], progress: Callable[[int, int], None], build: Callable
) -> Iterator[tuple[int, Location, EpisodeSpec, bool]]:
    """Each place with its number, its deal, and whether it can be seen from anywhere; room by room."""
    order = sorted(range(len(locations)), key=lambda number: locations[number].scene)
    scene, compiled = "", None
    for done, number in enumerate(order):
        location = locations[number]
        if location.scene != scene:
            scene, compiled = location.scene, build(location.scene)
        assert compiled is not None
        deal = location.deal
        if deal is None:
            rng = np.random.default_rng([study.seed, number])
            positions = compiled.floor.reachable().positions
            x, y = positions[rng.integers(len(positions))]
            deal = location.begun(AgentPose(float(x), float(y), 90.0 * int(rng.integers(4)), True))
        yield number, location, deal, study.kind != SEEK or seeable(compiled, deal)
        progress(done + 1, len(locations))


def seeable(compiled: CompiledRoom, deal: EpisodeSpec) -> bool:
    """Is an object seen from any reachable place, with what is open or through all that opens?"""
    if any(number >= len(compiled.openables) for number in deal.open):
        raise StudyError(f"a hiding place in {compiled.room.scene} has openables that the room has not")
    grid = compiled.floor.grid(np.array(deal.start[:2]), deal.start.rotation % 90)
    is_open, pose = np.isin(np.arange(len(compiled.openables)), deal.open), np.array(deal.pose)
    return any(visible_from(compiled, is_open, deal.goal, pose, grid, through).any() for through in (False, True))
