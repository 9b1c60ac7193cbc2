"""Exhaustive hiding spots: many places where a goal object rests in a room, and how hard it is to see there.

Objects are put on what things stand on, into what contains, and on the floor, let fall until they rest, and what was
opened for them is closed again every other time. Spots that nobody within reach could ever see, whatever is open, do
not count: no hider could have put the object there and no seeker could claim it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import mujoco
import numpy as np

from scrubjay.errors import SpotError
from scrubjay.files import write_atomically
from scrubjay.game.visibility import visible_from
from scrubjay.rooms.floor import Grid
from scrubjay.rooms.generate import SCENES, make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import GOAL_BOXES, CompiledRoom
from scrubjay.sim.physics import Physics, Situation
from scrubjay.sim.pose import REACH, reach
from scrubjay.sim.processes import ProcessPool
from scrubjay.spots.areas import DROP, Area, areas_of, within

VERSION = 1
CANDIDATES = 400
"""Spots that are made for a room and a goal object: a twentieth of them is as many as are kept of the hard ones."""
KEPT = 20
"""Of each difficulty."""
TRIES = 40
"""For each spot that is asked for, since poses at random collide; where all fail, there is one spot fewer."""
EASY, MEDIUM, HARD = DIFFICULTIES = ("easy", "medium", "hard")
KINDS = ("on", "in", "floor")
MIXTURE = {"on": 0.4, "in": 0.25, "floor": 0.35}
"""How often areas are tried that are in the open, that something must be opened for, and the floor. What is shut in is
seen from nowhere: were that a fifth of all spots, both percentiles would be 0 and nothing medium."""
HARD_PERCENTILE, MEDIUM_PERCENTILE, MEDIUM_SHARE = 5, 20, 0.15
LYING = 0.3
"""How often it is laid on its side: a plunger fits into few places upright."""
AT_REST = 0.005
"""Metres that a resting object may move when it is let go again."""
UP = np.array([0.0, 0, 1])


@dataclass(frozen=True)
class Spot:
    """Where a goal object rests."""

    goal: str
    pose: tuple[float, ...]
    """The object's center and quaternion, (7,)."""
    open: tuple[int, ...]
    """Numbers of the openables that are open."""
    kind: str
    """One of KINDS; "in" wherever anything contains it."""
    thing: str
    """The name of the thing that contains it; empty if none does."""
    share: float
    """From which share of the reachable places it is seen."""

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

    scene: str
    goal: str
    candidates: int
    """How many settled spots these were chosen from."""
    spots: dict[str, tuple[Spot, ...]]
    """By difficulty."""


def make_spots(scene: str | CompiledRoom, goal: str, candidates: int = CANDIDATES, seed: int = 0) -> Spots:
    """Hiding spots of each difficulty; the same for the same arguments."""
    _check(goal, candidates)
    compiled = build_room(scene) if isinstance(scene, str) else scene
    rng = np.random.default_rng([seed, GOALS.index(goal)])
    found = candidate_spots(compiled, goal, candidates, rng)
    names = difficulty(np.array([spot.share for spot in found]))
    chosen = {}
    for name in DIFFICULTIES:
        numbers = np.flatnonzero(names == name)
        some = np.sort(rng.choice(numbers, min(KEPT, len(numbers)), replace=False))
        chosen[name] = tuple(found[number] for number in some)
    return Spots(compiled.room.scene, goal, len(found), chosen)


def _check(goal: str, candidates: int) -> None:
    if goal not in GOALS:
        raise SpotError(f"unknown goal object {goal!r}; it is one of {', '.join(GOALS)}")
    if candidates < 1:
        raise SpotError(f"spots are chosen from at least one candidate, not {candidates}")


def candidate_spots(compiled: CompiledRoom, goal: str, count: int, rng: np.random.Generator) -> list[Spot]:
    """Settled spots that can be seen from within reach if the right things are opened, of all kinds."""
    physics, grid = Physics(compiled), compiled.floor.reachable()
    areas = areas_of(compiled)
    kinds = [kind for kind in KINDS if areas[kind]]
    shares = np.array([MIXTURE[kind] for kind in kinds])
    # Large areas are tried more often, and small ones still are.
    weights = {kind: np.array([np.sqrt(area.half.prod()) for area in areas[kind]]) for kind in kinds}
    found: list[Spot] = []
    for _ in range(count):
        kind = kinds[rng.choice(len(kinds), p=shares / shares.sum())]
        for _ in range(TRIES):
            area = areas[kind][rng.choice(len(weights[kind]), p=weights[kind] / weights[kind].sum())]
            now = _rested(physics, goal, area, rng)
            if spot := now and _spot(physics, grid, now):
                found.append(spot)
                break
    if not found:
        raise SpotError(f"{compiled.room.scene}: no place to hide a {goal} in {TRIES * count} tries")
    return found


def difficulty(shares: np.ndarray) -> np.ndarray:
    """The difficulty (n,) of spots seen from these shares (n,) of all places, by the paper's percentiles."""
    low, middle = np.percentile(shares, [HARD_PERCENTILE, MEDIUM_PERCENTILE])
    hard = shares <= low
    medium = ~hard & (shares <= middle) & (shares <= MEDIUM_SHARE)
    return np.select([hard, medium], [HARD, MEDIUM], EASY)


def _rested(physics: Physics, goal: str, area: Area, rng: np.random.Generator) -> Situation | None:
    """An object let go at a random point of an area, at rest; None where it collides, is crushed or falls out."""
    compiled, lying = physics.compiled, rng.random() < LYING
    _, depth, height, _ = GOAL_BOXES[goal]
    tall = depth if lying else height
    x, y = rng.uniform(-area.half, area.half)
    above = rng.uniform(*DROP) if not area.height else rng.uniform(DROP[0], max(area.height - tall, DROP[1]))
    point = area.turn @ [x, y, 0] + area.position + [0, 0, above + tall / 2]
    if not within(compiled.room.outline, point[:2]):
        return None
    is_open = np.isin(np.arange(len(compiled.openables)), area.open)
    pose = np.array([*point, *([np.sqrt(0.5)] * 2 if lying else (1, 0)), 0, 0])
    held = Situation(point[:2], 0.0, True, is_open, goal, pose, True)
    turned = physics.rotate_hand(held, UP, rng.uniform(0, 360))
    if turned is None:
        return None
    now: Situation | None = physics.drop(turned)
    if rng.random() < 0.5:
        for number in area.open:
            now = now and physics.swing(now, number, False)
    if now is None or not within(compiled.room.outline, now.pose[:2]):
        return None
    again = physics.drop(now)
    return now if np.linalg.norm(again.pose[:3] - now.pose[:3]) < AT_REST else None


def _spot(physics: Physics, grid: Grid, now: Situation) -> Spot | None:
    """The spot that an object at rest is in; None if no opening of things would ever show it to one within reach."""
    compiled = physics.compiled
    near = reach(grid.positions, now.pose[:3]) <= REACH
    seen = visible_from(compiled, now.open, now.goal, now.pose, grid)
    if not seen[near].any():
        through = visible_from(compiled, now.open, now.goal, now.pose, grid, through_openables=True)
        if not through[near].any():
            return None
    container = physics.contains(now)
    kind = "in" if container >= 0 else "floor" if _touches_floor(physics, now) else "on"
    name = compiled.things[container] if container >= 0 else ""
    pose, is_open = tuple(now.pose.tolist()), tuple(np.flatnonzero(now.open).tolist())
    return Spot(now.goal, pose, is_open, kind, name, float(seen.mean()))


def _touches_floor(physics: Physics, now: Situation) -> bool:
    """Does an object at rest lie on the floor itself?"""
    physics.load(now)
    mujoco.mj_forward(physics.model, physics.data)
    things = np.unique(physics.compiled.geom_thing[physics.data.contact.geom])
    room = physics.compiled.room
    return any(thing < len(room.things) and room.things[thing].type == "Floor" for thing in things)


def save_spots(spots: Spots, path: str | os.PathLike[str]) -> None:
    """Writes spots as JSON."""
    write_atomically(path, json.dumps({"version": VERSION, **asdict(spots)}) + "\n")


def load_spots(path: str | os.PathLike[str], scene: str = "", goal: str = "") -> Spots:
    """Reads spots, of a scene and goal object if these are given; SpotError says what is wrong with any other file."""
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SpotError(f"{path}: not a file of hiding spots: {error}") from error
    if not isinstance(data, dict) or data.pop("version", None) != VERSION:
        raise SpotError(f"{path}: not a file of hiding spots of version {VERSION}")
    try:
        spots = {name: tuple(_read(item) for item in data["spots"][name]) for name in DIFFICULTIES}
        made = Spots(**{**data, "spots": spots})
        whole = set(data["spots"]) == set(DIFFICULTIES) and isinstance(made.scene, str) and made.candidates > 0
        whole = whole and made.goal in GOALS and all(s.goal == made.goal for some in spots.values() for s in some)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpotError(f"{path}: a broken file of hiding spots: {error}") from error
    if not whole:
        raise SpotError(f"{path}: a broken file of hiding spots: its spots are not {', '.join(DIFFICULTIES)} of a goal")
    if (scene or made.scene, goal or made.goal) != (made.scene, made.goal):
        raise SpotError(f"{path}: spots of a {made.goal} in {made.scene}, not of a {goal or made.goal} in {scene}")
    return made


def _read(item: dict) -> Spot:
    """A spot of a file; any fault is an error of one of the kinds that `load_spots` names."""
    if set(item) != {f.name for f in fields(Spot)}:
        raise ValueError(f"a spot has {', '.join(f.name for f in fields(Spot))}, not {', '.join(map(str, item))}")
    spot = Spot(**{**item, "pose": tuple(map(float, item["pose"])), "open": tuple(item["open"])})
    if len(spot.pose) != 7 or not all(map(math.isfinite, spot.pose)):
        raise ValueError(f"a pose is seven numbers, not {item['pose']}")
    if spot.kind not in KINDS or not 0 <= spot.share <= 1 or not isinstance(spot.thing, str):
        raise ValueError(f"no such spot: {spot.kind!r}, seen from {spot.share}, in {spot.thing!r}")
    if not all(isinstance(number, int) and number >= 0 for number in spot.open):
        raise ValueError(f"openables have numbers from 0, unlike {item['open']}")
    return spot


def spots_file(folder: str | os.PathLike[str], scene: str, goal: str) -> Path:
    """Where a room's spots for a goal object are kept."""
    return Path(folder) / f"{scene}-{goal}.json"


def make_all(
    scenes: Sequence[str],
    goals: Sequence[str],
    folder: str | os.PathLike[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
    candidates: int = CANDIDATES,
    seed: int = 0,
    processes: int = 1,
) -> None:
    """Makes the spots of each room and goal object that are not in the folder yet, and tells how many are done."""
    for goal in goals:
        _check(goal, candidates)
    if processes < 1:
        raise SpotError(f"at least one process makes spots, not {processes}")
    for scene in set(scenes) - set(SCENES):
        make_room(scene)  # A name that is none is an error now, not hours later.
    pairs = [(scene, goal) for scene in scenes for goal in goals]
    left = []
    for pair in pairs:
        path = spots_file(folder, *pair)
        if path.exists():
            load_spots(path, *pair)
        else:
            left.append(pair)
    done = len(pairs) - len(left)
    progress(done, len(pairs))
    results: Iterable[tuple[int, Spots]]
    with ExitStack() as stack:
        if processes == 1:
            results = enumerate(make_spots(*pair, candidates, seed) for pair in left)
        else:
            pool = stack.enter_context(ProcessPool(make_spots, processes))
            results = pool.map((*pair, candidates, seed) for pair in left)
        for index, spots in results:
            save_spots(spots, spots_file(folder, *left[index]))
            progress(done := done + 1, len(pairs))
