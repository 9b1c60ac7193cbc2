"""Makes placements by playing: agents at random places open what they see, carry the object and drop it.

Where it lands decides which targets a drop would have hit, by the rule of the game. So every placement is attainable,
and its actions are known. Drops are aimed at what is still missing: the room's volumes for contained, the far side of
things for behind.

Agents imitate these actions, so they follow rules that an agent can see: the hand turns as little as possible, things
are opened only to put the object into something, and the object is lowered until it moves no further, and then dropped.
Many have a detour, which is not imitated: agents also see ways from where a hand should not have gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrubjay.errors import PlacementError
from scrubjay.game import placement
from scrubjay.game.actions import MODALITIES, NOTHING, Stage, action_index
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.placements.hand_paths import HandPaths
from scrubjay.placements.placements import (
    MAX_ACTIONS,
    Placement,
    Placements,
    load_placements,
    placements_path,
    save_placements,
)
from scrubjay.rooms.generate import SCENES, check_scene
from scrubjay.rooms.room import GOALS
from scrubjay.sim import cells
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.sim.containment import Containment
from scrubjay.sim.physics import Physics, within_hands_reach
from scrubjay.sim.physics_pool import physics_state
from scrubjay.sim.pose import REACH, reach
from scrubjay.sim.state import State
from scrubjay.sim.world import HAND_MOVES, HAND_TURNS, World
from scrubjay.workers.base import HERE, Workers, make_missing_files

COUNT = 90
"""Placements of a room and a goal object, a third of each modality."""
WORLDS = 16
"""Places tried side by side."""
MAX_PLACES, PATIENCE = 640, 256
"""Places tried in all, and without any success: then the room has no more placements of the missing modalities."""
DROPS = 2
"""Drops from each place for each modality that is missing."""
OPENING_SHARE = 0.6
"""How often an agent that can opens something first, while something is still to be put inside."""
LYING_SHARE = 0.3
"""How often the object is laid on its side before it is carried."""
LOWERING, UNMOVED = 3, 0.01
"""Movements down at the end of a way, at most, and meters by which the last of them does not move the object: ways end
above a surface by less than one movement."""
DETOUR_SHARE, LEGS, LEG = 0.6, 3, 6
"""How often the hand first goes astray, the straight legs of that way, and movements of a leg, both at most."""
LAY_DOWN, QUARTER = HAND_TURNS.index("+X"), 3
"""The turn of 30 degrees that lays an object down, and how often it is repeated."""
MIN_PIXELS = 80
"""Pixels that an object must have at 224, many more than the game's 10, so that small images agree."""
CONTAINED = MODALITIES.index("contained in")
DOWN = HAND_MOVES.index("down")
MOVE_ACTIONS = [action_index(f"MoveHand{name.capitalize()}") for name in HAND_MOVES]
DROP_ACTION = action_index("DropObject")


def make_placements(scene: str | CompiledRoom, goal: str, count: int = COUNT, seed: int = 0) -> Placements:
    """Makes up to `count` placements, a third of each modality; the same for the same arguments."""
    _check(goal, count)
    compiled = build_room(scene) if isinstance(scene, str) else scene
    rng = np.random.default_rng([seed, GOALS.index(goal)])
    quota = [count // 3 + (m < count % 3) for m in range(len(MODALITIES))]
    if not len(compiled.volumes.thing):
        quota[CONTAINED] = 0
    with World([compiled], WORLDS, threads=1) as world:
        search = _Search(world, goal, quota, rng)
        while search.missing() and search.places < MAX_PLACES and search.fruitless < PATIENCE:
            search.try_places()
    if not any(search.found):
        raise PlacementError(f"{compiled.room.scene}: nowhere to put a {goal} from {search.places} places")
    placements = tuple(placement for found in search.found for placement in found)
    return Placements(compiled.room.scene, goal, search.drops, placements, compiled.room.digest)


def _check(goal: str, count: int) -> None:
    if goal not in GOALS:
        raise PlacementError(f"unknown goal object {goal!r}; it is one of {', '.join(GOALS)}")
    if count < 1:
        raise PlacementError(f"at least one placement is made, not {count}")


@dataclass
class _Plan:
    """A way to a drop: hand movements, and the modality it is aimed at."""

    moves: list[int]
    modality: int


@dataclass
class _Search:
    """The search for placements of a goal object in one room."""

    world: World
    goal: str
    quota: list[int]
    """Placements wanted of each modality."""
    rng: np.random.Generator
    found: tuple[list[Placement], ...] = field(default_factory=lambda: tuple([] for _ in MODALITIES))
    drops: int = 0
    places: int = 0
    """Places tried."""
    fruitless: int = 0
    """Places tried since the last success."""

    def __post_init__(self) -> None:
        room = self.world.rooms[0]
        self.physics, self.containment = Physics(room), Containment([room])
        self.sampler = RandomEpisodes(int(self.rng.integers(2**31)), (self.goal,), True, Stage.OM, Stage.OM)

    def missing(self) -> list[int]:
        """Modalities that lack placements, the one that lacks most first."""
        lack = [quota - len(found) for quota, found in zip(self.quota, self.found, strict=True)]
        return sorted((m for m in range(len(lack)) if lack[m] > 0), key=lambda m: -lack[m])

    def try_places(self) -> None:
        """Takes the object to new random places and drops it, several times from each."""
        specs = [self.sampler(self.world, b) for b in range(len(self.world))]
        before = sum(map(len, self.found))
        self._stand(specs)
        opened, astray, laid = self._open(), self._go_astray(), self._lay_down()
        prefix = [[*a, *b, *c] for a, b, c in zip(opened, astray, laid, strict=True)]
        detours = [(len(a), len(a) + len(b)) for a, b in zip(opened, astray, strict=True)]
        ready, state = self.world.state.held.copy(), self.world.state.copy()
        plans = [self._plans(b, len(prefix[b])) if ready[b] else [] for b in range(len(specs))]
        for number in range(max(map(len, plans))):
            tried = [plan[number] if number < len(plan) else None for plan in plans]
            self.world.state = state.copy()
            taken = self._carry_and_drop(tried)
            ways = [[*a, *b] for a, b in zip(prefix, taken, strict=True)]
            self._collect(specs, ways, detours, state)
        self.places += len(specs)
        self.fruitless = 0 if sum(map(len, self.found)) > before else self.fruitless + len(specs)

    def _stand(self, specs: Sequence[EpisodeSpec]) -> None:
        """Puts agents to their places in a closed room, the object in their hands."""
        world, state = self.world, self.world.state
        world.remove(np.ones(len(world), bool))
        state.open[:] = False
        for b, spec in enumerate(specs):
            assert spec.place is not None
            state.position[b], state.rotation[b], state.standing[b] = spec.place[:2], spec.place[2], spec.place[3]
        world.hold(np.full(len(world), GOALS.index(self.goal)))

    def _open(self) -> list[list[int]]:
        """Opens things in some of the worlds; the actions that succeeded."""
        world, rng = self.world, self.rng
        taken: list[list[int]] = [[] for _ in range(len(world))]
        view = world.view(("ids", "depth"))
        openable = cells.openables_at_cells(view.ids, world.openable_of_thing)[0].numpy().reshape(len(world), -1)
        cell = np.full(len(world), NOTHING)
        opening = OPENING_SHARE if CONTAINED in self.missing() else 0
        for b in range(len(world)):
            there = np.flatnonzero(openable[b] >= 0)
            if len(there) and rng.random() < opening:
                # Each thing is as likely as any other, however large it looks.
                thing = rng.choice(np.unique(openable[b, there]))
                cell[b] = rng.choice(np.flatnonzero(openable[b] == thing))
        row, column = (np.where(cell == NOTHING, NOTHING, index) for index in np.divmod(cell, cells.CELLS))
        for b in np.flatnonzero(world.open_at(row, column, view)).tolist():
            taken[b].append(action_index(f"OpenAt|{row[b] + 1},{column[b] + 1}"))
        return taken

    def _go_astray(self) -> list[list[int]]:
        """Moves hands along random straight legs in some of the worlds; the actions that succeeded."""
        world, rng = self.world, self.rng
        taken: list[list[int]] = [[] for _ in range(len(world))]
        legs = np.where(rng.random(len(world)) < DETOUR_SHARE, rng.integers(1, LEGS + 1, len(world)), 0)
        for leg in range(LEGS):
            move, length = rng.integers(len(HAND_MOVES), size=len(world)), rng.integers(1, LEG + 1, len(world))
            for step in range(LEG):
                going = (leg < legs) & (step < length)
                for b in np.flatnonzero(world.move_hand(np.where(going, move, NOTHING))).tolist():
                    taken[b].append(MOVE_ACTIONS[move[b]])
        return taken

    def _lay_down(self) -> list[list[int]]:
        """Lays the object on its side in some of the worlds; the actions that succeeded."""
        world, rng = self.world, self.rng
        taken: list[list[int]] = [[] for _ in range(len(world))]
        lying = np.where(rng.random(len(world)) < LYING_SHARE, LAY_DOWN, NOTHING)
        for _ in range(QUARTER):
            for b in np.flatnonzero(world.rotate_hand(lying)).tolist():
                taken[b].append(action_index(f"RotateHand|{HAND_TURNS[LAY_DOWN]}"))
        return taken

    def _plans(self, b: int, used: int) -> list[_Plan]:
        """Drops from a world's place, a few for each modality that is missing."""
        now = physics_state(self.world.state, b, len(self.physics.compiled.openables))
        wanted = [CONTAINED] if now.open.any() else self.missing()
        if not set(wanted) & set(self.missing()) or (wanted == [CONTAINED] and not self._sees_volumes(b)):
            return []
        paths = HandPaths(self.physics, now, MAX_ACTIONS - 1 - LOWERING - used)
        points = paths.drop_points(self.containment)
        clear = ~points.contained & ~points.occluded
        plans = []
        for modality in wanted:
            fitting = np.flatnonzero((clear, points.contained, points.occluded)[modality])
            for index in self.rng.permutation(fitting)[:DROPS].tolist():
                plans.append(_Plan(paths.path(points.node[index]), modality))
        return plans

    def _sees_volumes(self, b: int) -> bool:
        """Is the middle of a volume that contains things within reach and in view?"""
        state, places = self.world.state, self.containment
        is_open = (places.openable[0] >= 0) & state.open[b][np.maximum(places.openable[0], 0)]
        middle = places.middle[0, np.arange(len(is_open)), is_open.astype(int)]
        now = physics_state(state, b, len(self.physics.compiled.openables))
        return bool((within_hands_reach(now, now.camera, middle) & (places.thing[0] >= 0)).any())

    def _carry_and_drop(self, plans: Sequence[_Plan | None]) -> list[list[int]]:
        """Follows the plans, lowers and drops the objects; the actions taken, none where there is no plan."""
        moves = [list(plan.moves) if plan else [] for plan in plans]
        for step in range(max(map(len, moves))):
            self.world.move_hand(np.array([way[step] if step < len(way) else NOTHING for way in moves]))
        dropping = np.array([plan is not None for plan in plans])
        lowering = dropping.copy()
        for _ in range(LOWERING):
            for b in np.flatnonzero(lowering).tolist():
                moves[b].append(DOWN)
            before = self.world.state.pose[:, 2].copy()
            self.world.move_hand(np.where(lowering, DOWN, NOTHING))
            lowering &= before - self.world.state.pose[:, 2] > UNMOVED
        self.drops += int(dropping.sum())
        self.world.drop(dropping)
        taken = [[MOVE_ACTIONS[move] for move in way] for way in moves]
        return [[*way, DROP_ACTION] if drops else [] for way, drops in zip(taken, dropping, strict=True)]

    def _collect(
        self,
        specs: Sequence[EpisodeSpec],
        taken: Sequence[list[int]],
        detours: Sequence[tuple[int, int]],
        before: State,
    ) -> None:
        """Keeps the drops that hit a target of a missing modality and are at rest within reach."""
        world, state = self.world, self.world.state
        dropped = before.held & ~state.held
        dropped &= reach(state.position, state.pose[:, :3]) <= REACH
        if not dropped.any():
            return
        counts = placement.dropped_counts(world, dropped)
        large: np.ndarray = placement.object_pixels(counts) >= MIN_PIXELS
        hit = placement.hit_cells(counts) & large[:, None, None, None]
        wanted = np.zeros(len(world), bool)
        wanted[dropped] = hit.any((2, 3))[:, self.missing()].any(1)
        resting = self._rests(wanted)
        for b, mine, cells_hit in zip(np.flatnonzero(dropped).tolist(), counts, hit, strict=True):
            useful = [CONTAINED] if state.open[b].any() else range(len(MODALITIES))
            modality = next((m for m in self.missing() if m in useful and cells_hit[m].any()), None)
            if not resting[b] or modality is None:
                continue
            row, column = divmod(int(np.where(cells_hit[modality], mine[modality], -1).argmax()), cells.CELLS)
            spec = specs[b]
            assert spec.place is not None
            self.found[modality].append(
                Placement(
                    spec.start,
                    spec.place,
                    (modality, row, column),
                    tuple(np.flatnonzero(state.open[b]).tolist()),
                    tuple(state.pose[b].tolist()),
                    tuple(taken[b]),
                    detours[b],
                )
            )

    def _rests(self, worlds: np.ndarray) -> np.ndarray:
        """Which objects stay where they are, (B,) bool."""
        rests, openables = worlds.copy(), len(self.physics.compiled.openables)
        for b in np.flatnonzero(worlds).tolist():
            rests[b] = self.physics.rests(physics_state(self.world.state, b, openables))
        return rests


def make_placement_files(
    scenes: Sequence[str],
    goals: Sequence[str],
    folder: str | os.PathLike[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
    count: int = COUNT,
    seed: int = 0,
    workers: Workers = HERE,
) -> None:
    """Makes the files that the folder lacks, one for each room and goal object; reports how many are done."""
    for goal in goals:
        _check(goal, count)
    for scene in set(scenes) - set(SCENES):
        check_scene(scene)  # An unknown scene is an error now, not hours later.
    pairs = [(scene, goal) for scene in scenes for goal in goals]
    requests = {placements_path(folder, *pair): (*pair, count, seed) for pair in pairs}
    make_missing_files(requests, make_placements, load_placements, save_placements, progress, workers)
