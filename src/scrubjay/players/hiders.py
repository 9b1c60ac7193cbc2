"""A heuristic hider: explores, then hides the object in a container that it can close.

Without one, it hides the object where it is visible from the fewest of the poses it has been to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from scrubjay.game import actions
from scrubjay.game.actions import NOTHING, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.cache import CacheGame
from scrubjay.players.explorer import CLOSE, OPEN_ACTIONS, ExplorePolicy
from scrubjay.players.manipulator import CONTAINED, ON_TOP, Hand, find_drop_targets, resting_position
from scrubjay.players.perception import Percept
from scrubjay.players.planning import LatticePose
from scrubjay.players.policy_player import NO_POSE, PolicyPlayer
from scrubjay.rooms.room import GOALS
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import GOAL_BOXES
from scrubjay.sim.pose import project

READY = action_index("ReadyForSeeker")
MIN_RIM = 0.08
"""Meters by which a drawer's front rises above its bottom."""
FEW_POINTS, MAX_POINTS = 20, 200
"""Known points of a container's inside: with fewer it is looked into again; more are not kept."""
MAX_CANDIDATES = 1000
"""Open hiding targets that are compared."""
OCCLUSION_MARGIN = 0.05
"""Meters by which something must be nearer than a point to occlude it."""
CONTAINER_ATTEMPTS = 2
"""Manipulations after which containers are given up."""
MAX_ATTEMPTS = 4
"""Manipulations after which any placement will do."""
LAST_STEPS = 4
"""Steps before the end of OH at which any placement will do."""


@dataclass(frozen=True)
class HidingPlan:
    """A manipulation that hides the object, and the pose to do it from."""

    pose: LatticePose
    modality: int
    row: int
    column: int
    rest: np.ndarray
    """(3,): where the object's center would rest."""
    openable: int = NOTHING
    """The container, which must be open and is closed afterwards."""

    @property
    def action(self) -> int:
        return int(PLACE_ACTIONS[actions.target_index(self.modality, self.row, self.column)])


class HidePolicy(ExplorePolicy):
    """The hider of one game, in all its stages."""

    def __init__(self, goal: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.goal, self.rng = goal, rng
        self.in_container: list[HidingPlan] = []
        """Plans in containers that can be closed."""
        self.in_the_open: list[HidingPlan] = []
        self.opened_from: dict[int, tuple[int, int]] = {}
        """The cell from which each openable was opened: there the player is not in its way."""
        self.insides: dict[int, np.ndarray] = {}
        """Visible points (n, 3) of the insides of openables."""
        self.views: list[tuple[Percept, np.ndarray]] = []
        """All percepts so far, with subsampled depth (n, n)."""
        self.plans: list[HidingPlan] = []
        """Still to be tried at the chosen pose, the next one last."""
        self.plan: HidingPlan | None = None
        """Being tried."""
        self.hand: Hand | None = None
        self.repeated: list[int] = []
        """Hand actions to repeat, the next one last."""
        self.attempts = 0
        self.fallback: tuple[int, list[int]] | None = None
        """A PlaceAt that will succeed, and the hand actions that achieve it."""
        self.placed = self.closed = False
        self._previous: Percept | None = None

    # E&M

    def act(self, percept: Percept, success: bool) -> int:
        """The next action of E&M."""
        if success and self._last.openable != NOTHING and self._previous is not None:
            self.opened_from[self._last.openable] = percept.pose[:2]
            receded = _depth(percept) > _depth(self._previous) + OCCLUSION_MARGIN
            self._look_inside(percept, self._last.openable, receded)
        for openable in self.opened:
            # Drawers are often opened from too low to see into them.
            if len(self.insides.get(openable, ())) < FEW_POINTS:
                self._look_inside(percept, openable, np.zeros(percept.ids.shape, bool))
        self._collect_plans(percept)
        self.views.append((percept, _depth(percept)[::2, ::2]))
        self._previous = percept
        return super().act(percept, success)

    def _collect_plans(self, percept: Percept) -> None:
        """Adds what could be hidden from here, on surfaces and in open containers."""
        targets = find_drop_targets(percept, self.goal)
        openable = percept.openable[*targets.pixel.T]
        surface = percept.points[*targets.pixel.T]
        for n, number in enumerate(openable.tolist()):
            target = (int(targets.row[n]), int(targets.column[n]), targets.rest[n])
            if number == NOTHING:
                self.in_the_open.append(HidingPlan(percept.pose, ON_TOP, *target))
            elif percept.is_open[*targets.pixel[n]] and self._is_inside(number, surface[n]):
                self.in_container.append(HidingPlan(percept.pose, CONTAINED, *target, openable=number))

    def _is_inside(self, openable: int, point: np.ndarray) -> bool:
        inside = self.insides.get(openable)
        return inside is not None and bool(np.linalg.norm(inside - point, axis=1).min() < OCCLUSION_MARGIN)

    def _look_inside(self, percept: Percept, opened: int, receded: np.ndarray) -> None:
        """Finds the inside of what was opened: pixels that `receded` (n, n) in a cupboard, below the front in a drawer.

        A door that opens downwards has neither.
        """
        shown = (percept.openable == opened) & percept.is_open
        # The highest visible point of it in each image column, from the lowest row up.
        height = np.where(shown, percept.points[..., 2], -np.inf)
        below = np.maximum.accumulate(height[::-1], 0)[::-1] > height + MIN_RIM
        inside = percept.points[shown & (receded | below)]
        if len(inside) > len(self.insides.get(opened, ())):
            self.insides[opened] = inside[:: -(-len(inside) // MAX_POINTS)]

    # PS

    def choose_pose(self, percept: Percept) -> np.ndarray:
        """The pose (4,) to hide from: right and ahead of here, quarter turns from the start's heading, standing."""
        # What was opened from a cell can also be closed from there.
        fitting = [plan for plan in self.in_container if self._fits(plan.openable)]
        if closable := [plan for plan in fitting if plan.pose[:2] == self.opened_from[plan.openable]] or fitting:
            # Placing is easiest where most of an inside is in view.
            counts = Counter(pose for pose, *_ in {(plan.pose, plan.row, plan.column) for plan in closable})
            best = [pose for pose, count in counts.items() if count == max(counts.values())]
            pose = best[self.rng.integers(len(best))]
        elif self.in_the_open:
            candidates = self.rng.permutation(len(self.in_the_open))[:MAX_CANDIDATES]
            exposure = self.exposure(np.array([self.in_the_open[n].rest for n in candidates]))
            pose = self.in_the_open[candidates[int(exposure.argmin())]].pose
        else:
            pose = percept.pose
        here = [plan for plan in self.in_the_open if plan.pose == pose]
        exposure = self.exposure(np.array([plan.rest for plan in here]).reshape(-1, 3))
        self.plans = _last_per_target([here[n] for n in np.argsort(-exposure, kind="stable")])
        self.plans += _last_per_target(_central_last([plan for plan in closable if plan.pose == pose]))
        return np.array([pose[0] - percept.pose[0], pose[1] - percept.pose[1], *pose[2:]])

    def _fits(self, openable: int) -> bool:
        """Whether the object is shorter than the visible inside of a container."""
        return bool(np.ptp(self.insides[openable][:, :2], axis=0).max() > max(GOAL_BOXES[GOALS[self.goal]][:3]))

    def exposure(self, points: np.ndarray) -> np.ndarray:
        """The fraction (n,) of the views with points (n, 3) in the frustum in which they were not occluded."""
        # Half a sighting in one view as a prior.
        visible, in_frustum = np.full(len(points), 0.5), np.ones(len(points))
        for percept, depth in self.views:
            pixel = project(percept.eye, percept.matrix, points)
            inside = (np.abs(pixel - 0.5) < 0.5).all(1)
            row, column = (pixel[inside] * len(depth)).astype(int).T
            distance = -((points - percept.eye) @ percept.matrix)[:, 2]
            visible[inside] += distance[inside] <= depth[row, column] + OCCLUSION_MARGIN
            in_frustum += inside
        return visible / in_frustum

    # OH and OM

    def hide(self, percept: Percept, game: CacheGame, b: int) -> int:
        """The next action of OH."""
        last, success = int(game.last_action[b]), bool(game.last_success[b])
        if last != NOTHING and actions.PLACE_AT[last] != NOTHING:
            self.placed |= success
            if not self.placed and (action := self._after_miss(int(game.landed[b]), _steps_left(game, b))) is not None:
                return action
        if self.placed:
            if self.plan is not None and self.plan.openable != NOTHING and not self.closed:
                self.closed = True
                return CLOSE
            return READY
        return self._try_next(percept)

    def _after_miss(self, landed: int, steps_left: int) -> int | None:
        """After a manipulation that missed its target: the PlaceAt for where the object landed, or None."""
        assert self.hand is not None and self.plan is not None
        if landed != NOTHING:
            self.fallback = (landed, self.hand.actions)
        if self.attempts >= CONTAINER_ATTEMPTS:
            # It does not fit, or the hand does not get there.
            self.plans = [plan for plan in self.plans if plan.modality == ON_TOP]
        acceptable = self.plan.modality == ON_TOP or actions.target_of(actions.PLACE_AT[landed])[0] == CONTAINED
        if self.fallback and (
            (landed != NOTHING and acceptable)
            or steps_left <= LAST_STEPS
            or self.attempts >= MAX_ATTEMPTS
            or not self.plans
        ):
            (action, hand_actions), self.fallback = self.fallback, None
            self.repeated, self.attempts = hand_actions[::-1], 0
            return action
        return None

    def _try_next(self, percept: Percept) -> int:
        while self.plans and self.plans[-1].pose == percept.pose:
            plan = self.plans[-1]
            if plan.openable != NOTHING and not (percept.is_open & (percept.openable == plan.openable)).any():
                cells = np.argwhere(percept.at_cells == plan.openable)
                if len(cells) and plan.openable not in self.refused:
                    self.refused[plan.openable] = {percept.pose}
                    return int(OPEN_ACTIONS[tuple(cells[0])])
                self.plans.pop()
                continue
            self.plans.pop()
            return self._start(plan)
        return self._start(self._improvise(percept))

    def _start(self, plan: HidingPlan) -> int:
        self.plan, self.hand, self.repeated = plan, Hand(plan.rest, self.goal), []
        self.attempts += 1
        return plan.action

    def _improvise(self, percept: Percept) -> HidingPlan:
        """A plan without any: on a random level surface, or on the floor straight ahead."""
        targets = find_drop_targets(percept, self.goal)
        if len(targets.row):
            n = int(self.rng.integers(len(targets.row)))
            return HidingPlan(percept.pose, ON_TOP, int(targets.row[n]), int(targets.column[n]), targets.rest[n])
        row, column = CELLS - 2, CELLS // 2
        rest = resting_position(percept, self.goal, np.array([ON_TOP, row, column]))
        return HidingPlan(percept.pose, ON_TOP, row, column, rest)

    def manipulate(self, percept: Percept, target: np.ndarray, success: bool) -> int:
        """The next action of OM; the target (3,) is used only if another player chose it."""
        if self.hand is None:
            self.hand = Hand(resting_position(percept, self.goal, target), self.goal)
        return self.repeated.pop() if self.repeated else self.hand.act(percept, success)


def _central_last(plans: list[HidingPlan]) -> list[HidingPlan]:
    """Plans by distance from the image's center, the nearest last."""
    return sorted(plans, key=lambda plan: -abs(plan.column - CELLS // 2) - 0.1 * abs(plan.row - CELLS // 2))


def _last_per_target(plans: list[HidingPlan]) -> list[HidingPlan]:
    """The last plan for each target."""
    return list({plan.action: plan for plan in plans}.values())


def _depth(percept: Percept) -> np.ndarray:
    """Depth (n, n) along the camera's axis."""
    return -((percept.points - percept.eye) @ percept.matrix)[..., 2]


def _steps_left(game: CacheGame, b: int) -> int:
    return int(game.limits[Stage.OH] - game.time[b, Stage.OH])


class HeuristicHider(PolicyPlayer[HidePolicy]):
    """Plays all stages but S."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        stages = [stage for stage in Stage if stage != Stage.S]
        super().__init__(lambda game, b: HidePolicy(int(game.goal[b]), rng), stages)

    def decide(self, game: CacheGame, b: int, percept: Percept) -> tuple[int, np.ndarray]:
        policy, stage, success = self.policy(game, b), game.stage[b], bool(game.last_success[b])
        if stage == Stage.PS:
            return NOTHING, policy.choose_pose(percept)
        if stage == Stage.EM:
            return policy.act(percept, success), NO_POSE
        if stage == Stage.OH:
            return policy.hide(percept, game, b), NO_POSE
        return policy.manipulate(percept, game.target[b], success), NO_POSE
