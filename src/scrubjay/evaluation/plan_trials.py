"""Plays an evaluation plan: which trials it has in each room, and what the records of people add."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from scrubjay.errors import PlanError, RecordError, RoomError, explain
from scrubjay.evaluation.journal import Journal
from scrubjay.evaluation.matches import Match
from scrubjay.evaluation.plan_file import PEOPLE, EvaluationPlan, HidingSet
from scrubjay.evaluation.tournament import load_needed_spots
from scrubjay.evaluation.trials import (
    Hiding,
    Players,
    Playing,
    Progress,
    Trial,
    hiding_specs,
    play_trials,
    search_after,
    search_in_spot,
)
from scrubjay.game.actions import Stage
from scrubjay.game.episode import EpisodeSpec
from scrubjay.game.record import Record, check_fits, load_records
from scrubjay.players.by_name import HIDERS, SEEKERS
from scrubjay.rooms.generate import check_scene
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_rooms
from scrubjay.sim.compile import CompiledRoom
from scrubjay.spots.spots import DIFFICULTIES
from scrubjay.workers.base import HERE, Workers


class PeopleRow(BaseModel):
    """How often people found what a source hid: a row of a study's table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    """The hider."""
    split: str
    trials: Annotated[int, Field(ge=1)]
    found: float
    found_low: float | None
    found_high: float | None
    steps: float
    steps_low: float | None
    steps_high: float | None


@dataclass(frozen=True)
class PlannedTrials:
    """A plan with all that it needs, checked; ready to play."""

    plan: EvaluationPlan
    spots: Path | None = None
    """Folder of the spots files."""
    people: tuple[Record, ...] = ()
    """Hidings of people."""
    searches: tuple[PeopleRow, ...] = ()
    """Searches of people."""
    skipped: tuple[str, ...] = field(default=())
    """What is left out, in sentences."""

    @property
    def sets(self) -> tuple[HidingSet, ...]:
        """The plan's sets of hidings, without those that need people's records if there are none."""
        return tuple(some for some in self.plan.hidings if some.starts != PEOPLE or self.people)

    @property
    def hiders(self) -> tuple[str, ...]:
        """The results' names of all hiders, each once."""
        return tuple(dict.fromkeys(some.label(hider) for some in self.sets for hider in some.hiders))

    def games(self) -> dict[str, int]:
        """Hidings to play and searches, by scene."""
        counts: Counter[str] = Counter()
        for some in self.sets:
            playing = sum(hider not in (*DIFFICULTIES, PEOPLE) for hider in some.hiders)
            each = some.count * (playing + len(some.hiders) * len(self.plan.seekers))
            if some.starts == PEOPLE:
                counts.update({scene: each * n for scene, n in Counter(r.scene for r in self._people_in(some)).items()})
            else:
                counts.update(dict.fromkeys(some.rooms, each * len(GOALS)))
        return dict(counts)

    def trials_in(self, room: CompiledRoom) -> list[Trial]:
        """A room's trials. A match that occurs again is another game, with a number in its hider's name."""
        occurred: Counter[tuple[str, EpisodeSpec]] = Counter()
        trials = []
        for hider, player, spec in self._specs_in(room):
            occurred[hider, spec] += 1
            again = occurred[hider, spec]
            name = hider if again == 1 else f"{hider}#{again}"
            trials.append(Trial(hider, Match(room.room.scene, name, "", spec), player))
        return trials

    def _specs_in(self, room: CompiledRoom) -> Iterator[tuple[str, str, EpisodeSpec]]:
        """Results' name of the hider, player (empty if it is hidden already), and episode."""
        scene = room.room.scene
        for some in self.sets:
            for hider in some.hiders:
                label = some.label(hider)
                if some.starts == PEOPLE:
                    for record in self._people_in(some, scene):
                        if hider == PEOPLE:
                            yield label, "", search_after(record)
                            continue
                        spec = EpisodeSpec(record.goal, record.start, Stage.EM, Stage.OH)
                        yield from itertools.repeat((label, hider, spec), some.count)
                elif scene in some.rooms:
                    specs = _cycle(room, self.plan.seed, some.count * len(GOALS))
                    if hider not in DIFFICULTIES:
                        yield from ((label, hider, spec) for spec in specs)
                        continue
                    for number, spec in enumerate(specs):
                        spots = load_needed_spots(self.spots, scene, spec.goal, room.room).spots[hider]
                        if number // len(GOALS) < len(spots):  # Each spot once, as in the paper.
                            yield label, "", search_in_spot(room, spec, spots[number // len(GOALS)])

    def _people_in(self, some: HidingSet, scene: str = "") -> list[Record]:
        """The records of people that a set uses, in one room or all."""
        if some.starts != PEOPLE:
            return []
        rooms = {scene} if scene else set(some.rooms)
        return [r for r in self.people if (not some.rooms or r.scene in some.rooms) and (not rooms or r.scene in rooms)]


def _cycle(room: CompiledRoom, seed: int, count: int) -> list[EpisodeSpec]:
    """The first `count` episodes of a room; objects stay in turn where starts must be used again."""
    specs = list(hiding_specs(room, seed))
    specs = specs[: len(specs) // len(GOALS) * len(GOALS)]
    return list(itertools.islice(itertools.cycle(specs), count))


def prepare(
    plan: EvaluationPlan, spots: Path | None = None, people: Path | None = None, searches: Path | None = None
) -> PlannedTrials:
    """Reads the files that a plan needs; an error says what is wrong or missing. People's files may be missing.

    Args:
        plan: The plan.
        spots: Folder of hiding spots, filled by `scrubjay spots`.
        people: Records of people's hidings, exported from a study.
        searches: The table of people's searches (table.json), exported from a study.
    """
    skipped = []
    if plan.needs_people and people is None:
        skipped.append("People's hidings, and hidings from their starts, are left out: there are no records of people.")
    if any(row.seeker == PEOPLE for row in plan.paper) and searches is None:
        skipped.append("People's searches are left out: there is no table of them.")
    rows = _load_table(searches) if searches else ()
    records = tuple(_load_people(people)) if people and plan.needs_people else ()
    planned = PlannedTrials(plan, spots, records, rows, tuple(skipped))
    if not planned.games():
        raise PlanError("nothing of the plan is left to play: it needs records of people in its rooms")
    for some in planned.sets:
        if set(some.hiders) & set(DIFFICULTIES):
            for scene, goal in itertools.product(some.rooms, GOALS):
                load_needed_spots(spots, scene, goal)
    return planned


def play_plan(
    planned: PlannedTrials,
    agents: Players,
    folder: Path,
    progress: Progress = lambda done, total: None,
    digests: Mapping[str, str] = {},
    renderer: str = "auto",
    device: str = "cpu",
    at_once: int = 4,
    workers: Workers = HERE,
) -> tuple[list[Hiding], dict[str, list[Record]]]:
    """Plays what the folder's journal lacks. Returns all hidings, and the records of those from people's starts.

    `agents` are the plan's, by name, and `digests` those of their weights: a folder with games of others is refused.
    """
    plan = planned.plan
    if at_once < 1:
        raise ValueError(f"at_once: 1 or more, not {at_once}")
    journal = Journal(folder, plan.size, digests)
    seekers = {**SEEKERS, **agents}
    played: list[Trial] = []

    def trials_in(room: CompiledRoom) -> list[Trial]:
        trials = planned.trials_in(room)
        played.extend(trials)
        return trials

    hidings = play_trials(
        Playing(plan.seed, plan.size, renderer, device, at_once),
        planned.games(),
        trials_in,
        {**HIDERS, **agents},
        {name: seekers[name] for name in plan.seekers},
        journal,
        progress,
        workers,
    )
    records: dict[str, list[Record]] = {}
    for trial in played:
        if trial.player and trial.hider != trial.player:
            records.setdefault(trial.hider, []).append(journal.hidings[trial.match])
    return hidings, records


def _load_people(path: Path) -> list[Record]:
    """Hidings of people; PlanError names the first record that is none, or does not fit its room."""
    try:
        records = load_records(path)
    except (OSError, RecordError) as error:
        raise PlanError(f"people: {error}") from error
    for number, record in enumerate(records, 1):
        try:
            check_scene(record.scene)
        except RoomError as error:
            raise PlanError(f"people: {path}, line {number}: {error}") from error
        if record.hidden is None or record.spec.first == Stage.S:
            raise PlanError(f"people: {path}, line {number}: nobody hid anything in this game")
    scenes = list(dict.fromkeys(record.scene for record in records))
    rooms = dict(zip(scenes, build_rooms(scenes), strict=True))
    for number, record in enumerate(records, 1):
        try:
            check_fits(record, rooms[record.scene])
        except RecordError as error:
            raise PlanError(f"people: {path}, line {number}: {error}") from error
    return records


def _load_table(path: Path) -> tuple[PeopleRow, ...]:
    try:
        return TypeAdapter(tuple[PeopleRow, ...]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise PlanError(f"people's searches: {path}: not a study's table.json: {explain(error)}") from error
    except OSError as error:
        raise PlanError(f"people's searches: {error}") from error
