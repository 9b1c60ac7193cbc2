"""Hiding spots: many places where a goal object rests in a room, each with how hard it is to see there.

Objects are dropped onto supports, into containers and onto the floor until they rest; every other time, what was opened
for them is closed again. Spots visible from no reachable pose, whatever is open, are left out: no hider
could have put the object there, and no seeker could claim it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import mujoco
import numpy as np
from pydantic import AfterValidator, ConfigDict, Field

from scrubjay.errors import SpotError
from scrubjay.game.episode import Openables, Pose
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.floor import Grid
from scrubjay.rooms.generate import SCENES, check_scene
from scrubjay.rooms.room import GOALS
from scrubjay.rooms.room_files import RoomFiles
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import GOAL_BOXES, CompiledRoom
from scrubjay.sim.physics import Physics, PhysicsState
from scrubjay.sim.pose import REACH, reach
from scrubjay.spots.areas import DROP, Area, areas_of, within
from scrubjay.workers.base import HERE, Workers, make_missing_files

VERSION = 2
EASY, MEDIUM, HARD = DIFFICULTIES = ("easy", "medium", "hard")
SpotKind = Literal["on", "in", "floor"]
KINDS = get_args(SpotKind)
CANDIDATES = 400
"""Spots made for a room and a goal object; the hardest 5 % of them are as many as are kept."""
KEPT = 20
"""Spots kept of each difficulty, if all three have as many."""
TRIES = 40
"""Drops tried for each candidate, since random poses collide; where all fail, there is one candidate fewer."""
MIXTURE = {"on": 0.4, "in": 0.25, "floor": 0.35}
"""How often each kind of area is tried: in the open, behind something that must be opened, the floor. What is shut in
is seen from nowhere: were it a fifth of all spots, both percentiles would be 0 and nothing medium."""
HARD_PERCENTILE, MEDIUM_PERCENTILE, MEDIUM_SHARE = 5, 20, 0.15
LYING_SHARE = 0.3
"""How often the object is laid on its side: a plunger fits into few places upright."""
UP = np.array([0.0, 0, 1])


@dataclass(frozen=True)
class Spot:
    """Where a goal object rests. Constraints at the fields are checked when a file is read."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    goal: str
    pose: Pose
    open: Openables
    """Numbers of the openables that are open."""
    kind: SpotKind
    """"in" wherever something contains it."""
    thing: str
    """The name of the thing that contains it; empty if none does."""
    share: Annotated[float, Field(ge=0, le=1)]
    """The share of reachable places from which it is seen."""

    def is_open(self, compiled: CompiledRoom) -> np.ndarray:
        """Which of a room's openables are open, (openables,) bool."""
        flags = np.zeros(len(compiled.openables), bool)
        if any(number >= len(flags) for number in self.open):
            raise SpotError(f"{compiled.room.scene} has {len(flags)} openables, the spot asks for {max(self.open)}")
        flags[list(self.open)] = True
        return flags


@dataclass(frozen=True)
class Spots:
    """A room's hiding spots for one goal object."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    scene: str
    goal: str
    candidates: Annotated[int, Field(gt=0)]
    """How many candidates these were chosen from."""
    spots: dict[str, tuple[Spot, ...]]
    """By difficulty."""
    room: str = ""
    """The digest of the room that they were made in, if it is known."""


def make_spots(scene: str | CompiledRoom, goal: str, candidates: int = CANDIDATES, seed: int = 0) -> Spots:
    """Makes hiding spots of each difficulty; the same for the same arguments."""
    _check(goal, candidates)
    compiled = build_room(scene) if isinstance(scene, str) else scene
    rng = np.random.default_rng([seed, GOALS.index(goal)])
    spots = candidate_spots(compiled, goal, candidates, rng)
    names = difficulty(np.array([spot.share for spot in spots]))
    numbers = {name: np.flatnonzero(names == name) for name in DIFFICULTIES}
    # Where one difficulty has too few, fewer are kept of all, as in the paper; one without any does not count.
    count = min(KEPT, *(len(some) for some in numbers.values() if len(some)))
    kept = {}
    for name, some in numbers.items():
        drawn = np.sort(rng.choice(some, min(count, len(some)), replace=False))
        kept[name] = tuple(spots[number] for number in drawn)
    return Spots(compiled.room.scene, goal, len(spots), kept, compiled.room.digest)


def _check(goal: str, candidates: int) -> None:
    if goal not in GOALS:
        raise SpotError(f"unknown goal object {goal!r}; it is one of {', '.join(GOALS)}")
    if candidates < 1:
        raise SpotError(f"spots are chosen from at least one candidate, not {candidates}")


def candidate_spots(compiled: CompiledRoom, goal: str, count: int, rng: np.random.Generator) -> list[Spot]:
    """Up to `count` random spots of all kinds, each visible from within reach if the right things are opened."""
    physics, grid = Physics(compiled), compiled.floor.reachable()
    areas = areas_of(compiled)
    kinds = [kind for kind in KINDS if areas[kind]]
    shares = np.array([MIXTURE[kind] for kind in kinds])
    # Large areas are tried more often, and small ones still are.
    weights = {kind: np.array([np.sqrt(area.half.prod()) for area in areas[kind]]) for kind in kinds}
    spots: list[Spot] = []
    for _ in range(count):
        kind = kinds[rng.choice(len(kinds), p=shares / shares.sum())]
        for _ in range(TRIES):
            area = areas[kind][rng.choice(len(weights[kind]), p=weights[kind] / weights[kind].sum())]
            now = _settle(physics, goal, area, rng)
            if spot := now and _spot_of(physics, grid, now):
                spots.append(spot)
                break
    if not spots:
        raise SpotError(f"{compiled.room.scene}: no place to hide a {goal} in {TRIES * count} tries")
    return spots


def difficulty(shares: np.ndarray) -> np.ndarray:
    """Difficulties (n,) of spots that are seen from these shares (n,) of all places, by the paper's percentiles."""
    low, middle = np.percentile(shares, [HARD_PERCENTILE, MEDIUM_PERCENTILE])
    hard = shares <= low
    medium = ~hard & (shares <= middle) & (shares <= MEDIUM_SHARE)
    return np.select([hard, medium], [HARD, MEDIUM], EASY)


def _settle(physics: Physics, goal: str, area: Area, rng: np.random.Generator) -> PhysicsState | None:
    """Drops an object at a random point of an area until it rests; None if it collides, is crushed or falls out."""
    compiled, lying = physics.compiled, rng.random() < LYING_SHARE
    _, depth, height, _ = GOAL_BOXES[goal]
    tall = depth if lying else height
    x, y = rng.uniform(-area.half, area.half)
    above = rng.uniform(*DROP) if not area.height else rng.uniform(DROP[0], max(area.height - tall, DROP[1]))
    point = area.turn @ [x, y, 0] + area.position + [0, 0, above + tall / 2]
    if not within(compiled.room.outline, point[:2]):
        return None
    is_open = np.isin(np.arange(len(compiled.openables)), area.open)
    pose = np.array([*point, *([np.sqrt(0.5)] * 2 if lying else (1, 0)), 0, 0])
    held = PhysicsState(point[:2], 0.0, True, is_open, goal, pose, True)
    turned = physics.rotate_hand(held, UP, rng.uniform(0, 360))
    if turned is None:
        return None
    now: PhysicsState | None = physics.drop(turned)
    if rng.random() < 0.5:
        for number in area.open:
            now = now and physics.move_openable(now, number, False)
    if now is None or not within(compiled.room.outline, now.pose[:2]):
        return None
    return now if physics.rests(now) else None


def _spot_of(physics: Physics, grid: Grid, now: PhysicsState) -> Spot | None:
    """The spot of an object at rest; None if it is visible from no reachable pose, whatever is open."""
    compiled = physics.compiled
    near = reach(grid.positions, now.pose[:3]) <= REACH
    seen = visible_from(compiled, now.open, now.goal, now.pose, grid)
    if not seen[near].any():
        through = visible_from(compiled, now.open, now.goal, now.pose, grid, through_openables=True)
        if not through[near].any():
            return None
    container = physics.contains(now)
    kind: SpotKind = "in" if container >= 0 else "floor" if _touches_floor(physics, now) else "on"
    name = compiled.things[container] if container >= 0 else ""
    pose, is_open = tuple(now.pose.tolist()), tuple(np.flatnonzero(now.open).tolist())
    return Spot(now.goal, pose, is_open, kind, name, float(seen.mean()))


def _touches_floor(physics: Physics, now: PhysicsState) -> bool:
    """Does an object at rest touch the floor itself?"""
    physics.load(now)
    mujoco.mj_forward(physics.model, physics.data)
    things = np.unique(physics.compiled.geom_thing[physics.data.contact.geom])
    room = physics.compiled.room
    return any(thing < len(room.things) and room.things[thing].type == "Floor" for thing in things)


def _check_whole(spots: Spots) -> Spots:
    if spots.goal not in GOALS or any(spot.goal != spots.goal for group in spots.spots.values() for spot in group):
        raise ValueError(f"all spots are of the file's goal object, one of {', '.join(GOALS)}")
    if set(spots.spots) != set(DIFFICULTIES):
        raise ValueError(f"the difficulties are {', '.join(DIFFICULTIES)}, not {', '.join(spots.spots)}")
    return spots


FILES: RoomFiles[Spots] = RoomFiles("hiding spots", VERSION, Annotated[Spots, AfterValidator(_check_whole)], SpotError)
save_spots, load_spots, spots_path, load_spot_files = FILES.save, FILES.load, FILES.path, FILES.load_all


def make_spot_files(
    scenes: Sequence[str],
    goals: Sequence[str],
    folder: str | os.PathLike[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
    candidates: int = CANDIDATES,
    seed: int = 0,
    workers: Workers = HERE,
) -> None:
    """Makes the files that the folder lacks, one for each room and goal object; reports how many are done."""
    for goal in goals:
        _check(goal, candidates)
    for scene in set(scenes) - set(SCENES):
        check_scene(scene)  # An unknown scene is an error now, not hours later.
    pairs = [(scene, goal) for scene in scenes for goal in goals]
    requests = {spots_path(folder, *pair): (*pair, candidates, seed) for pair in pairs}
    make_missing_files(requests, make_spots, load_spots, save_spots, progress, workers)
