"""Studies: their files, and the locations (hiding places and starts) of their trials.

The file is TOML. A seeking study names sources of hiding places: record files, in which people or agents hid the
object, or folders of exhaustive spots. A source matched to another has one hiding place per place of the other, with
the same room, object and start.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from scrubjay.errors import RecordError, RoomError, SpotError, StudyError, explain
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import load_records
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.generate import check_scene
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.pose import AgentPose
from scrubjay.spots.spots import load_spots, spots_path
from scrubjay.web.database import Database, spec_to_json
from scrubjay.web.study_file import Source, Study, check_completion_code
from scrubjay.web.trial import HIDE, SEEK


@dataclass(frozen=True)
class Location:
    """The starting point of trials: for seekers a hiding place and a start, for hiders a room and an object."""

    source: str
    scene: str
    spec: EpisodeSpec | None
    """None if the start has yet to be sampled."""
    goal: str
    pose: tuple[float, ...] = ()
    """Of the hidden object; empty in a hiding study."""
    open: tuple[int, ...] = ()

    def spec_from(self, start: AgentPose) -> EpisodeSpec:
        """The episode from this start."""
        if not self.pose:
            return EpisodeSpec(self.goal, start, Stage.EM, Stage.OH, anywhere=True)
        return EpisodeSpec(self.goal, start, Stage.S, Stage.S, pose=self.pose, open=self.open)

    def with_start(self, start: AgentPose) -> Location:
        return replace(self, spec=self.spec_from(start))


def load_study(path: str | Path) -> tuple[Study, list[Location]]:
    """Reads a study file and the files it names; StudyError says what to change."""
    path = Path(path)
    try:
        study = Study(**tomllib.loads(path.read_text()))
        check_completion_code(study)
        for scene in {study.practice.scene, *study.scenes}:
            check_scene(scene)
        return study, _locations(study, path.parent)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError) as error:
        raise StudyError(f"{path}: not a study file: {error}") from error
    except ValidationError as error:
        raise StudyError(f"{path}: {explain(error)}") from error
    except (RoomError, RecordError, SpotError, StudyError) as error:
        raise StudyError(f"{path}: {error}") from error


def _locations(study: Study, folder: Path) -> list[Location]:
    if study.kind == HIDE:
        combinations = [(scene, goal) for scene in study.scenes for goal in study.goals for _ in range(study.repeats)]
        return [Location(HIDE, scene, None, goal) for scene, goal in combinations]
    by_source: dict[str, list[Location]] = {}
    rng = np.random.default_rng(study.seed)
    for source in study.places:
        partners = by_source.get(source.matched)
        if source.spots:
            locations = _locations_from_spots(study, source, folder, partners, rng)
        else:
            locations = _locations_from_records(study, source, folder)
            if partners is not None:
                locations = _match(locations, partners, source, rng)
        if not locations:
            raise StudyError(f"source {source.source} has no place in the study's rooms with its objects")
        by_source[source.source] = locations
    return [location for locations in by_source.values() for location in locations]


def _locations_from_records(study: Study, source: Source, folder: Path) -> list[Location]:
    """The hiding places and starts of recorded games."""
    locations = []
    for number, record in enumerate(load_records(folder / source.records), 1):
        if record.hidden is None:
            raise StudyError(f"{source.records}, line {number}: nothing was hidden in this game")
        if (study.scenes and record.scene not in study.scenes) or record.goal not in study.goals:
            continue
        check_scene(record.scene)
        pose, is_open = tuple(map(float, record.hidden["pose"])), tuple(map(int, record.hidden["open"]))
        location = Location(source.source, record.scene, None, record.goal, pose, is_open)
        locations.append(location.with_start(record.start))
    return locations


def _match_key(location: Location) -> tuple:
    """What matched locations have in common."""
    assert location.spec is not None
    x, y, rotation, _ = location.spec.start
    return location.scene, location.goal, round(x, 4), round(y, 4), round(rotation % 360, 2)


def _match(
    locations: Sequence[Location], partners: Sequence[Location], source: Source, rng: np.random.Generator
) -> list[Location]:
    """Picks a different location for each partner, with the same room, object and start."""
    pool: dict[tuple, list[Location]] = {}
    for number in rng.permutation(len(locations)).tolist():
        pool.setdefault(_match_key(locations[number]), []).append(locations[number])
    matches = [pool[_match_key(partner)].pop() if pool.get(_match_key(partner)) else None for partner in partners]
    missing = sum(match is None for match in matches)
    if missing:
        raise StudyError(f"{missing} of {len(partners)} places of {source.matched} have no match in {source.source}")
    return [match for match in matches if match is not None]


def _locations_from_spots(
    study: Study, source: Source, folder: Path, partners: Sequence[Location] | None, rng: np.random.Generator
) -> list[Location]:
    """Exhaustive spots: all of the study's rooms and objects, or one for each partner with the partner's start."""
    pairs = [(scene, goal) for scene in study.scenes for goal in study.goals]
    pool: dict[tuple[str, str], list[Location]] = {}
    for scene, goal in pairs if partners is None else sorted({(other.scene, other.goal) for other in partners}):
        spots = load_spots(spots_path(folder / source.spots, scene, goal), scene, goal).spots[source.difficulty]
        locations = [Location(source.source, scene, None, goal, spot.pose, spot.open) for spot in spots]
        pool[scene, goal] = [locations[k] for k in rng.permutation(len(locations))]
    if partners is None:
        return [location for locations in pool.values() for location in locations]
    matches = []
    for partner in partners:
        if not pool[partner.scene, partner.goal]:
            raise StudyError(f"source {source.source} has too few spots of a {partner.goal} in {partner.scene}")
        assert partner.spec is not None
        matches.append(pool[partner.scene, partner.goal].pop().with_start(partner.spec.start))
    return matches


def register_study(
    database: Database,
    study: Study,
    locations: Sequence[Location],
    progress: Callable[[int, int], None] = lambda done, total: None,
    build: Callable[[str], CompiledRoom] = build_room,
) -> None:
    """Stores a study: samples missing starts and marks locations that cannot be seen. Does nothing if it is unchanged.

    A changed study replaces the stored one unless somebody has joined it. A pilot that somebody has joined is set aside
    under the name NAME.pilot-K.
    """
    definition = _definition(study, locations)
    stored = database.one("SELECT definition FROM studies WHERE name = ?", study.name)
    if stored is not None and stored["definition"] == definition:
        return
    joined = stored is not None and database.one("SELECT 1 FROM participants WHERE study = ?", study.name)
    if joined and not stored_study(database, study.name).pilot:
        raise StudyError(f"study {study.name} has changed since people joined it: give it another name")
    rows = list(_prepare_locations(study, locations, progress, build))
    with database.transaction():
        if joined:
            _set_aside(database, study.name)
        database.db.execute("DELETE FROM studies WHERE name = ?", [study.name])
        database.db.execute("DELETE FROM locations WHERE study = ?", [study.name])
        database.insert("studies", name=study.name, definition=definition)
        for number, location, spec, visible in rows:
            database.insert("locations", study=study.name, number=number, source=location.source, scene=location.scene,
                            deal=spec_to_json(spec), seeable=visible)  # fmt: skip


def _set_aside(database: Database, name: str) -> None:
    """Renames a pilot with all its data. Its participants may take part in the study itself."""
    taken = {row["name"] for row in database.all("SELECT name FROM studies")}
    aside = next(other for k in count(1) if (other := f"{name}.pilot-{k}") not in taken)
    database.db.execute("UPDATE studies SET name = ? WHERE name = ?", [aside, name])
    for table in ("locations", "participants", "trials"):
        database.db.execute(f"UPDATE {table} SET study = ? WHERE study = ?", [aside, name])
    database.db.execute("UPDATE participants SET identity = NULL WHERE study = ?", [aside])


def stored_study(database: Database, name: str) -> Study:
    """A study as it was registered."""
    row = database.one("SELECT definition FROM studies WHERE name = ?", name)
    if row is None:
        raise StudyError(f"there is no study {name!r} in the database")
    return Study(**json.loads(row["definition"])["study"])


def _definition(study: Study, locations: Sequence[Location]) -> str:
    """The study as text, to notice changes. Databases contain it: keys and their order must not change."""

    def plain(location: Location) -> dict[str, Any]:
        spec = location.spec and spec_to_json(location.spec)
        return {"source": location.source, "scene": location.scene, "deal": spec, "goal": location.goal,
                "pose": location.pose, "open": location.open}  # fmt: skip

    return json.dumps({"study": study.stored(), "locations": [plain(location) for location in locations]})


def _prepare_locations(
    study: Study, locations: Sequence[Location], progress: Callable[[int, int], None], build: Callable
) -> Iterator[tuple[int, Location, EpisodeSpec, bool]]:
    """Each location with its number, its episode, and whether it can be seen; room by room."""
    order = sorted(range(len(locations)), key=lambda number: locations[number].scene)
    scene, compiled = "", None
    for done, number in enumerate(order):
        location = locations[number]
        if location.scene != scene:
            scene, compiled = location.scene, build(location.scene)
        assert compiled is not None
        spec = location.spec
        if spec is None:
            rng = np.random.default_rng([study.seed, number])
            positions = compiled.floor.reachable().positions
            x, y = positions[rng.integers(len(positions))]
            spec = location.spec_from(AgentPose(float(x), float(y), 90.0 * int(rng.integers(4)), True))
        yield number, location, spec, study.kind != SEEK or can_be_seen(compiled, spec)
        progress(done + 1, len(locations))


def can_be_seen(compiled: CompiledRoom, spec: EpisodeSpec) -> bool:
    """Whether the object is visible from any reachable pose, with things open as they are or with everything open."""
    if any(number >= len(compiled.openables) for number in spec.open):
        raise StudyError(f"a hiding place in {compiled.room.scene} refers to openables that the room does not have")
    grid = compiled.floor.grid(np.array(spec.start[:2]), spec.start.rotation % 90)
    is_open, pose = np.isin(np.arange(len(compiled.openables)), spec.open), np.array(spec.pose)
    return any(visible_from(compiled, is_open, spec.goal, pose, grid, through).any() for through in (False, True))
