"""B games of Cache in lockstep, each at its own stage.

The hider explores (EM), chooses a place (PS) and hides the object from there (OH), with a manipulation (OM) for each
attempt; the seeker then looks for it from where the hider started (S). An episode spec can begin with a later stage and
end with an earlier one. When a game ends, the next one begins in its room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch

from scrubjay.game import actions, placement
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.game.episode import EpisodeSampler, EpisodeSpec, RandomEpisodes
from scrubjay.game.novelty import Novelty, NoveltyTracker
from scrubjay.game.stages import LIMITS, Transition, advance
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import BODY_RADIUS, GRID
from scrubjay.rooms.room import GOALS
from scrubjay.sim import cells
from scrubjay.sim.base_world import BaseWorld
from scrubjay.sim.pose import REACH, reach
from scrubjay.sim.render.base import View
from scrubjay.sim.state import State

SEEN, LABELS = ("rgb", "ids", "depth"), ("ids", "depth")
"""Images for players, and those that the rules need: rgb costs as much as the other two together."""
CLAIM_PIXELS = 10
"""Pixels of the object that the seeker must see to claim it, in images of 224."""
POSITION_TOLERANCE = 1e-3
"""Positions this close, in meters, are the same."""
NO_POSE = (0, 0, 0, 1, 0, 0, 0)
"""The pose of an object that is not in the room, always the same, so that a game's record does not depend on it."""


@dataclass
class StepResult:
    """What one step did in B games."""

    stage: np.ndarray
    """(B,): the stages in which the actions were taken."""
    action: np.ndarray
    success: np.ndarray
    """(B,) bool."""
    hit: np.ndarray
    """(B,) bool: a manipulation ended, and the object is exactly on its target."""
    placed: np.ndarray
    """(B,) bool: a manipulation ended, and the PlaceAt that began it succeeded, with rows relaxed."""
    placed_before: np.ndarray
    """(B,) bool: a PlaceAt had succeeded before this step."""
    counts: np.ndarray
    """(B, 3, 7, 7): pixels, as in images of 224, of the dropped object on top, contained and behind; 0 where no
    manipulation ended."""
    target: np.ndarray
    """(B, 3): modality, row and column of the step's manipulation."""
    visible: np.ndarray
    """(B,) bool: a claim, and the object had enough pixels, at whatever distance."""
    novelty: Novelty
    waited: np.ndarray
    """(B,) bool: the game waited in PS. Nothing happened, and no step was taken."""
    full: np.ndarray
    """(B,) bool: the last step that the stage allows."""
    ended: np.ndarray
    """(B,) bool: the stage's episode ended; OH does not end when a manipulation begins."""
    truncated: np.ndarray
    """(B,) bool: it ended by its step limit alone, and not by the rules (Gymnasium's truncation)."""
    finished: np.ndarray
    """(B,) bool: the game ended."""
    found: np.ndarray
    """(B,) bool: the game ended, and the seeker found the object."""
    pose: np.ndarray
    """(B, 7): the objects' poses after the step, before the next game."""
    place: np.ndarray
    """(B, 4): the players' places after the step, before the next game; see `CacheGame.relative_place`."""
    opened: np.ndarray
    """(B,): the openable that the step opened, or -1."""
    open: np.ndarray
    """(B, openables) bool: what was open after the step, before the next game."""

    @property
    def terminated(self) -> np.ndarray:
        """(B,) bool: the stage's episode ended by the rules."""
        return self.ended & ~self.truncated


class CacheGame:
    """B games, one in each world of `world`."""

    def __init__(
        self,
        world: BaseWorld,
        sampler: EpisodeSampler | None = None,
        limits: np.ndarray = LIMITS,
        forgiving: bool = False,
        count_rotations: bool = True,
    ) -> None:
        """`sampler` draws each world's next game, by default at random; `limits` (5,) are the steps of each stage.

        An action that the stage does not have raises ValueError, or, if `forgiving`, fails and takes a step.
        `count_rotations` is the `NoveltyTracker`'s.
        """
        self.world, self.sampler = world, sampler or RandomEpisodes()
        self.limits, self.forgiving = np.asarray(limits), forgiving
        if self.limits.shape != LIMITS.shape or (self.limits < 1).any() or self.limits[Stage.PS] != 1:
            raise ValueError(f"limits are {len(Stage)} numbers of steps, one for PS, not {limits}")
        count = len(world)
        self.specs: dict[int, EpisodeSpec] = {}
        """What the current games began with, by world."""
        self.episode = np.zeros(count, int)
        """Games begun so far in each world, (B,)."""
        self.stage = np.full(count, int(Stage.EM))
        self.last = np.full(count, int(Stage.S))
        """The stage that ends the game, (B,)."""
        self.time = np.zeros((count, len(Stage)), int)
        """Steps taken in the current episode of each stage, (B, 5)."""
        self.goal = np.zeros(count, int)
        self.start = np.zeros((count, 4))
        """Where hider and seeker start: x, y, rotation, standing."""
        self.target = np.zeros((count, 3), int)
        """Modality, row and column of the current manipulation."""
        self.placed = np.zeros(count, bool)
        """A PlaceAt has succeeded, (B,)."""
        self.anywhere = np.zeros(count, bool)
        """Games in which a drop anywhere is a placement."""
        self.landed = np.full(count, NOTHING)
        """In OH after a manipulation: the PlaceAt action whose target the object landed on, or -1."""
        self.last_action = np.full(count, NOTHING)
        self.last_success = np.zeros(count, bool)
        self.novelty_tracker = NoveltyTracker(world, count_rotations)
        self._place_at = np.full(count, NOTHING)
        """The PlaceAt action that began the current manipulation."""
        self.watched = np.ones(count, bool)
        """Games (B,) that anybody looks at. The pictures of others are black, and cost nothing."""
        self._view: View | None = None
        self._visible: WeakKeyDictionary[View, np.ndarray] = WeakKeyDictionary()
        """For each view in use: does it show enough of the object for a claim, (B,) bool."""
        self.reset(np.ones(count, bool))

    def __len__(self) -> int:
        return len(self.world)

    # What players see.

    @property
    def allowed(self) -> np.ndarray:
        """The actions of each game's stage, (B, 219) bool."""
        return actions.ALLOWED[self.stage]

    def look(self, kinds: Sequence[str] = SEEN) -> View:
        """The players' current views; each kind of image is rendered once a step."""
        images = self._view.images if self._view else {}
        missing = [kind for kind in kinds if kind not in images]
        if missing or self._view is None:
            self._view = View(**{**images, **self._render(missing).images})
        return self._view

    def _render(self, kinds: Sequence[str]) -> View:
        if self.watched.all():
            return self.world.view(kinds)
        watched = torch.from_numpy(self.watched)

        def among_all(image: torch.Tensor) -> torch.Tensor:
            every = image.new_zeros(len(self), *image.shape[1:])
            every[watched.to(image.device)] = image
            return every

        images = self.world.view(kinds, worlds=self.watched).images
        return View(**{kind: among_all(image) for kind, image in images.items()})

    def hidden(self) -> np.ndarray | None:
        """Games (B,) bool whose object is not drawn, although it is there; None for none."""
        return None

    def in_sight(self) -> tuple[np.ndarray, np.ndarray]:
        """Does the view show enough of the object for a claim, and is the object within reach, (B,) bool each."""
        view = self.look(LABELS)
        if view not in self._visible:
            pixels = self.world.goal_mask(view).sum((1, 2)).cpu().numpy()
            self._visible[view] = cells.reference_pixels(pixels, self.world.size) >= CLAIM_PIXELS
        return self._visible[view], reach(self.world.state.position, self.world.state.pose[:, :3]) <= REACH

    def relative_place(self) -> np.ndarray:
        """The players' places relative to the start, (B, 4): steps right and ahead, quarter turns, standing."""
        return relative_place(self.world.state, self.start)

    # A step.

    def step(
        self, action: np.ndarray, place: np.ndarray | None = None, waiting: np.ndarray | None = None
    ) -> StepResult:
        """Takes one action (B,) in every game.

        Games in PS take a place (B, 4) instead, and action -1: steps right and ahead of where the hider is, quarter
        turns from the start's heading, standing. Those among them that are `waiting` (B,) bool take no step: their
        hiders have not chosen yet.
        """
        self.begin_step(action, place, waiting)
        return self.finish_step()

    def begin_step(
        self, action: np.ndarray, place: np.ndarray | None = None, waiting: np.ndarray | None = None
    ) -> None:
        """The first half of `step`: starts physics without waiting for it. Only `finish_step` may follow."""
        waited = np.zeros(len(self), bool) if waiting is None else np.asarray(waiting)
        action = self._check(action, place, waited)
        before = tuple(values.copy() for values in (self.stage, self.target, self.placed, self.world.state.open))
        found, visible = self._claim(action)
        self.world.defer_physics()
        success = self._act(action) | self._choose(place, (self.stage == Stage.PS) & ~waited) | found
        self._begun = action, waited, before, found, visible, success

    def finish_step(self) -> StepResult:
        """The second half of `step`."""
        action, waited, before, found, visible, success = self._begun
        stage, target, placed_before, open_before = before
        success |= self.world.receive_physics()
        self._view = None
        opened = self.world.state.open & ~open_before & (actions.OPEN_CELL[action] != NOTHING)[:, None]
        here = self.relative_place()
        novelty = self.novelty_tracker.update(stage, here, opened)
        full = self._count_step(~waited)
        self.last_action, self.last_success = (
            np.where(waited, before, now) for before, now in ((self.last_action, action), (self.last_success, success))
        )

        transition = advance(stage, self.last, action, success, self.time, self.limits)
        hit, counts = self._judge(transition.manipulated)
        self._enter(transition, action, counts)

        result = StepResult(
            stage=stage,
            action=action,
            success=success,
            hit=hit,
            placed=self.placed & ~placed_before,
            placed_before=placed_before,
            counts=counts,
            target=target,
            visible=visible,
            novelty=novelty,
            waited=waited,
            full=full,
            ended=transition.ended,
            truncated=transition.truncated,
            finished=transition.finished,
            found=transition.finished & found,
            pose=self.world.state.pose.copy(),
            place=here,
            opened=np.where(opened.any(1), opened.argmax(1), NOTHING),
            open=self.world.state.open.copy(),
        )
        self.before_reset(result)
        self.reset(transition.finished)
        return result

    def before_reset(self, result: StepResult) -> None:
        """Hook for subclasses that need the final states: called after every step, before new games begin."""

    def _check(self, action: np.ndarray, place: np.ndarray | None, waited: np.ndarray) -> np.ndarray:
        """Raises ValueError, before anything changes, unless every game's stage has its action, and can wait.

        If forgiving, actions that a stage does not have become -1.
        """
        action, choosing = np.asarray(action), self.stage == Stage.PS
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            given = f"{action.dtype} {action.shape}"
            raise ValueError(f"one action's number for each of {len(self)} games is needed, a whole one, not {given}")
        if (action < NOTHING).any() or (action >= len(actions.NAMES)).any():
            raise ValueError(f"actions are numbers from 0 to {len(actions.NAMES) - 1}, or -1 in PS")
        if waited.shape != (len(self),) or waited.dtype != bool or (waited & ~choosing).any():
            raise ValueError(f"waiting must be a bool array ({len(self)},), True only for games in PS")
        if (choosing & ~waited).any() and (place is None or np.shape(place) != (len(self), 4)):
            raise ValueError(f"games in PS need places ({len(self)}, 4): right, ahead, quarter turns, standing")
        if (choosing & ~waited).any() and not np.issubdtype(np.asarray(place).dtype, np.integer):
            raise ValueError(f"places are whole numbers, not {np.asarray(place).dtype}")
        known = actions.ALLOWED[self.stage, action] & (action != NOTHING)
        if self.forgiving:
            return np.where(known, action, NOTHING)
        wrong = np.where(choosing, action != NOTHING, ~known)
        if wrong.any():
            b = int(wrong.argmax())
            name = actions.NAMES[action[b]] if action[b] != NOTHING else "nothing"
            raise ValueError(f"{name} is not an action of {Stage(self.stage[b]).name}, the stage of game {b}")
        return action

    def _claim(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Claims that succeed, and claims whose view shows enough of the object, within reach or not, (B,) bool."""
        claims = actions.CLAIM[action] != NOTHING
        if not claims.any():
            return claims, claims
        visible, near = self.in_sight()
        return claims & visible & near, claims & visible

    def _act(self, action: np.ndarray) -> np.ndarray:
        """Takes the actions in the world; success (B,) bool. PlaceAt and ReadyForSeeker only change the stage."""
        world, cell = self.world, actions.OPEN_CELL[action]
        success = world.move(actions.MOVE[action])
        success |= world.rotate(actions.ROTATE[action])
        success |= world.stand(actions.STAND[action])
        if (cell != NOTHING).any():
            row, column = (np.where(cell == NOTHING, NOTHING, index) for index in np.divmod(cell, cells.CELLS))
            success |= world.open_at(row, column, self.look(LABELS))
        success |= world.close_near(actions.CLOSE[action] != NOTHING)
        success |= world.move_hand(actions.HAND_MOVE[action])
        success |= world.rotate_hand(actions.HAND_TURN[action])
        success |= world.drop(actions.DROP[action] != NOTHING)
        success |= (actions.PLACE_AT[action] != NOTHING) & ~self.placed
        return success | (actions.READY[action] != NOTHING) & self.placed

    def _choose(self, place: np.ndarray | None, games: np.ndarray) -> np.ndarray:
        """Moves hiders of games (B,) bool to the places they chose; an unreachable place fails, and the hider stays."""
        success = np.zeros(len(self), bool)
        for b in np.flatnonzero(games).tolist():
            assert place is not None
            right, onward, quarters, standing = place[b]
            heading = self.start[b, 2]
            offset = GRID * (onward * facing_vector(heading) + right * right_vector(heading))
            position = self.world.state.position[b] + offset
            rotation = (heading + 90 * quarters) % 360
            success[b] = self._is_reachable(b, position)
            if success[b]:
                self._move_to(b, np.array([*position, rotation, standing]))
        return success

    def _is_reachable(self, b: int, position: np.ndarray) -> bool:
        """Is a position on the game's grid and reachable, everything closed?"""
        room = self.world.room_of[b]
        floor, reachable = self.world.rooms[room].floor, self.world.reachable[room].positions
        if floor.clearance(position) < BODY_RADIUS:
            return False
        # Most games are on the room's own grid, which is known already.
        if self.start[b, 2] % 90 or not _is_among(self.start[b, :2], reachable):
            reachable = floor.positions(self.start[b, :2], self.start[b, 2] % 90)
        return _is_among(position, reachable)

    def _count_step(self, games: np.ndarray) -> np.ndarray:
        """Counts a step of each game's stage, in games (B,) bool; was it the last allowed, (B,) bool."""
        current = np.arange(len(self)), self.stage
        self.time[current] += games
        return self.time[current] >= self.limits[self.stage]

    # The stages.

    def _judge(self, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Judges where manipulations that ended put the object: hits (B,) and its pixels (B, 3, 7, 7).

        An object still in the hand has no pixels.
        """
        hit = np.zeros(len(self), bool)
        counts = np.zeros((len(self), len(actions.MODALITIES), cells.CELLS, cells.CELLS), int)
        dropped = games & ~self.world.state.held
        if dropped.any():
            counts[dropped] = placement.dropped_counts(self.world, dropped)
            hit = dropped & placement.hits(counts, self.target)
            self.placed |= dropped & (placement.placed(counts, self.target) | self.anywhere)
        return hit, counts

    def _enter(self, transition: Transition, action: np.ndarray, counts: np.ndarray) -> None:
        """Ends and begins stages; counts (B, 3, 7, 7) are of the objects just dropped."""
        self.landed[(self.stage == Stage.OH) & ~transition.placing] = NOTHING
        self.stage[:] = transition.stage
        self._begin_hiding(transition.chose & (self.last != Stage.PS))
        self._begin_manipulation(transition.placing, action)
        self._end_manipulation(transition.manipulated & (self.last != Stage.OM), counts)
        self._drop_unplaced(transition.out_of_time & ~self.placed)
        self._begin_seeking(transition.hidden & (self.last == Stage.S))

    def _begin_hiding(self, games: np.ndarray) -> None:
        self._pick_up(games)
        self.novelty_tracker.forget_opened(games, Stage.OH)

    def _begin_manipulation(self, games: np.ndarray, place_at: np.ndarray) -> None:
        """Picks the object up for PlaceAt actions (B,); OM has a history of its own."""
        self._pick_up(games)
        self.target[games] = np.stack(actions.target_of(actions.PLACE_AT[place_at]), 1)[games]
        self._place_at[games] = place_at[games]
        self.time[games, Stage.OM] = 0
        self.last_action[games], self.last_success[games] = NOTHING, False
        self.novelty_tracker.forget_opened(games, Stage.OM)

    def _end_manipulation(self, games: np.ndarray, counts: np.ndarray) -> None:
        """Resumes OH, whose last action is the PlaceAt that began the manipulation."""
        if not games.any():
            return
        self.last_action[games], self.last_success[games] = self._place_at[games], self.placed[games]
        counts = counts[games]
        target = actions.PLACE_ACTIONS[placement.fullest_target(counts)]
        self.landed[games] = np.where(counts.any((1, 2, 3)), target, NOTHING)

    def _drop_unplaced(self, games: np.ndarray) -> None:
        """Drops objects that were never placed from the hand's default position."""
        self._pick_up(games)
        if games.any():
            self.world.drop(games)

    def _begin_seeking(self, games: np.ndarray) -> None:
        for b in np.flatnonzero(games).tolist():
            self._move_to(b, self.start[b])
        self.last_action[games], self.last_success[games] = NOTHING, False
        self.novelty_tracker.begin(games, Stage.S, self.relative_place())

    def _pick_up(self, games: np.ndarray) -> None:
        """Puts the object into the hand, at its default position."""
        if games.any():
            self.world.hold(np.where(games, self.goal, NOTHING))

    def _move_to(self, b: int, pose: np.ndarray) -> None:
        state = self.world.state
        state.position[b], state.rotation[b], state.standing[b] = pose[:2], pose[2] % 360, bool(pose[3])

    # New games.

    def reset(self, games: np.ndarray) -> None:
        """Begins new games, where `games` (B,) is True, with everything closed that the spec does not open."""
        if not games.any():
            return
        self.world.remove(games)
        self.time[games], self.placed[games], self.landed[games] = 0, False, NOTHING
        self.last_action[games], self.last_success[games] = NOTHING, False
        self._view = None
        place_at = np.full(len(self), NOTHING)
        for b in np.flatnonzero(games).tolist():
            spec = self.specs[b] = self.sampler(self.world, b)
            self._set_up(b, spec)
            if spec.target is not None:
                place_at[b] = actions.PLACE_ACTIONS[actions.target_index(*spec.target)]
        for stage in (Stage.EM, Stage.S):
            self.novelty_tracker.begin(games & (self.stage == stage), stage, self.relative_place())
        self._begin_hiding(games & (self.stage == Stage.OH))
        self._begin_manipulation(games & (self.stage == Stage.OM), place_at)

    def _set_up(self, b: int, spec: EpisodeSpec) -> None:
        """Brings game and world b to the beginning of an episode."""
        state = self.world.state
        self.episode[b] += 1
        self.start[b], self.goal[b] = spec.start, GOALS.index(spec.goal)
        self.stage[b], self.last[b], self.anywhere[b] = spec.first, spec.last, spec.anywhere
        state.open[b], state.pose[b] = False, NO_POSE
        state.open[b, list(spec.open)] = True
        self._move_to(b, np.array(spec.place or spec.start))
        if spec.pose is not None:
            state.goal[b], state.pose[b], state.held[b] = self.goal[b], spec.pose, False


def relative_place(state: State, start: np.ndarray) -> np.ndarray:
    """Places of agents relative to starts (B, 4), x, y, rotation, standing: see `CacheGame.relative_place`."""
    away = (state.position - start[:, :2]) / GRID
    facing, right = facing_vector(start[:, 2]), right_vector(start[:, 2])
    quarters = np.round((state.rotation - start[:, 2]) / 90) % 4
    return np.stack([(away * right).sum(1), (away * facing).sum(1), quarters, state.standing], 1).round().astype(int)


def _is_among(point: np.ndarray, positions: np.ndarray) -> bool:
    return bool((np.abs(positions - point).max(1) < POSITION_TOLERANCE).any())
