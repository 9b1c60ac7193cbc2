"""B games of Cache at once, each at its own stage, in lockstep.

A game: the hider explores (EM), chooses a place (PS), hides the object from there (OH), each attempt a manipulation
(OM), and the seeker looks for it from where the hider began (S). A deal may leave out stages at both ends. A finished
game starts the next one in its room.
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
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import BODY_RADIUS, GRID
from scrubjay.rooms.room import GOALS
from scrubjay.sim import cells
from scrubjay.sim.pose import REACH, reach
from scrubjay.sim.render.base import View
from scrubjay.sim.world import World

LIMITS = np.array([200, 1, 15, 50, 500])
"""The most steps of each stage."""
SEEN, LABELS = ("rgb", "ids", "depth"), ("ids", "depth")
"""Pictures that players see, and those that the rules need: colors cost as much as both others together."""
CLAIM_PIXELS = 10
"""Of the object, at least, that the seeker must see to claim it."""


@dataclass
class StepResult:
    """What one step did in B games. Stages are those in which the actions were taken."""

    stage: np.ndarray
    action: np.ndarray
    success: np.ndarray
    """(B,) bool."""
    hit: np.ndarray
    """(B,) bool: a manipulation ended now, and the object is where it should be, strictly."""
    placed: np.ndarray
    """(B,) bool: a manipulation ended now, and so the PlaceAt that began it has succeeded, rows relaxed."""
    placed_before: np.ndarray
    """(B,) bool: a PlaceAt of the game had succeeded before this step."""
    counts: np.ndarray
    """(B, 3, 7, 7): pixels of the object that was dropped now, on top, contained and behind; 0 where none was."""
    target: np.ndarray
    """(B, 3): modality, row and column of the manipulation that the step belongs to."""
    visible: np.ndarray
    """(B,) bool: it was a claim, and the object had the pixels that one needs, at whatever distance."""
    news: Novelty
    full: np.ndarray
    """(B,) bool: it was the last step that its stage allows."""
    ended: np.ndarray
    """(B,) bool: the stage ended with this step; for OH, not by a manipulation that begins."""
    finished: np.ndarray
    """(B,) bool: the game ended with this step."""
    found: np.ndarray
    """(B,) bool: and the seeker had found the object."""
    pose: np.ndarray
    """(B, 7): where the objects were after the step, before a next game began."""
    place: np.ndarray
    """(B, 4): where the players were then, like `CacheGame.relative_place`."""
    opened: np.ndarray
    """(B,): the number of the openable that the step opened; -1 if it opened none."""
    open: np.ndarray
    """(B, openables) bool: which were open after the step, before a next game began."""


class CacheGame:
    """B games on the worlds of `world`."""

    def __init__(
        self, world: World, deal: EpisodeSampler | None = None, limits: np.ndarray = LIMITS, forgiving: bool = False
    ) -> None:
        """`deal` says what a world's next game is; by default it is drawn at random. `limits` are steps for each stage.

        Actions that a stage does not have are a ValueError, or, if `forgiving`, failed actions that take their time.
        """
        self.world, self.deal, self.limits, self.forgiving = (
            world,
            deal or RandomEpisodes(),
            np.asarray(limits),
            forgiving,
        )
        if self.limits.shape != LIMITS.shape or (self.limits < 1).any() or self.limits[Stage.PS] != 1:
            raise ValueError(f"limits are {len(Stage)} numbers of steps, one for PS, not {limits}")
        count = len(world)
        self.stage = np.full(count, int(Stage.EM))
        self.last = np.full(count, int(Stage.S))
        """The stage with whose end a game ends."""
        self.time = np.zeros((count, len(Stage)), int)
        """Steps taken in the current episode of each stage, (B, 5)."""
        self.goal = np.zeros(count, int)
        self.start = np.zeros((count, 4))
        """Where hider and seeker begin: x, y, rotation, standing."""
        self.target = np.zeros((count, 3), int)
        """Modality, row and column of the manipulation under way."""
        self.placed = np.zeros(count, bool)
        self.anywhere = np.zeros(count, bool)
        """Games in which a drop anywhere is a placement."""
        self.landed = np.full(count, NOTHING)
        """In OH after a manipulation: the number of the PlaceAt that says where the object lies; -1 if none does."""
        self.dealt: dict[int, EpisodeSpec] = {}
        """What the games under way began with, by world."""
        self.games = np.zeros(count, int)
        self.last_action = np.full(count, NOTHING)
        self.last_success = np.zeros(count, bool)
        self.trail = NoveltyTracker(world)
        self._place_at = np.full(count, NOTHING)
        """The PlaceAt whose manipulation is under way."""
        self._view: View | None = None
        self._visible: WeakKeyDictionary[View, np.ndarray] = WeakKeyDictionary()
        """In whose view the object has the pixels that a claim needs, (B,) bool, as long as there is the view."""
        self.begin(np.ones(count, bool))

    def __len__(self) -> int:
        return len(self.world)

    @property
    def allowed(self) -> np.ndarray:
        """Which actions each game has now, (B, 219)."""
        return actions.ALLOWED[self.stage]

    def look(self, kinds: Sequence[str] = SEEN) -> View:
        """What the players see now; each kind of picture is taken once a step."""
        pictures = self._view.pictures if self._view else {}
        missing = [kind for kind in kinds if kind not in pictures]
        if missing or self._view is None:
            self._view = View(**{**pictures, **self.world.view(missing).pictures})
        return self._view

    def in_sight(self) -> tuple[np.ndarray, np.ndarray]:
        """Whose view has the pixels of the object that a claim needs, (B,) bool, and who is near enough to claim it."""
        view = self.look(LABELS)
        if view not in self._visible:
            self._visible[view] = self.world.goal_mask(view).sum((1, 2)).cpu().numpy() >= CLAIM_PIXELS
        return self._visible[view], reach(self.world.state.position, self.world.state.pose[:, :3]) <= REACH

    def relative_place(self) -> np.ndarray:
        """Where each player is, (B, 4): steps right and ahead, as seen from the start, quarter turns, standing."""
        state = self.world.state
        away = (state.position - self.start[:, :2]) / GRID
        facing, right = facing_vector(self.start[:, 2]), right_vector(self.start[:, 2])
        quarters = np.round((state.rotation - self.start[:, 2]) / 90) % 4
        return (
            np.stack([(away * right).sum(1), (away * facing).sum(1), quarters, state.standing], 1).round().astype(int)
        )

    def step(self, action: np.ndarray, place: np.ndarray | None = None) -> StepResult:
        """One action in every game. Games in PS take a place instead, (B, 4), relative like `relative_place` but from
        where the hider is, with the quarter turns from the start's heading; their action is -1."""
        action, stage = self._checked(action, place), self.stage.copy()
        target, placed_before, open_before = self.target.copy(), self.placed.copy(), self.world.state.open.copy()
        claimed, visible = self._claims(action)
        success = self._act(action) | claimed
        success |= self._choose(stage == Stage.PS, place)
        self._view = None
        opens = self.world.state.open & ~open_before & (actions.OPEN_CELL[action] != NOTHING)[:, None]
        there = self.relative_place()
        news = self.trail.note(stage, there, opens)
        self.time[np.arange(len(self)), stage] += 1
        full = self.time[np.arange(len(self)), stage] >= self.limits[stage]
        self.last_action, self.last_success = action.copy(), success.copy()
        hit, counts, ended, finished = self._advance(stage, action, success, full)
        outcome = StepResult(
            stage, action, success, hit, self.placed & ~placed_before, placed_before, counts, target, visible, news,
            full, ended, finished, finished & claimed, self.world.state.pose.copy(), there,
            np.where(opens.any(1), opens.argmax(1), NOTHING), self.world.state.open.copy(),
        )  # fmt: skip
        self.before_next(outcome)
        self.begin(finished)
        return outcome

    def before_next(self, outcome: StepResult) -> None:
        """For those who want to see how games ended: called after every step, before new games begin."""

    def _act(self, action: np.ndarray) -> np.ndarray:
        """What the action does in the world, or in the game; who succeeded."""
        world, cell = self.world, actions.OPEN_CELL[action]
        row, column = np.where(cell == NOTHING, NOTHING, cell // 7), np.where(cell == NOTHING, NOTHING, cell % 7)
        done = world.move(actions.MOVE[action])
        done |= world.rotate(actions.ROTATE[action])
        done |= world.stand(actions.STAND[action])
        if (cell != NOTHING).any():
            done |= world.open_at(row, column, self.look(LABELS))
        done |= world.close_near(actions.CLOSE[action] != NOTHING)
        done |= world.move_hand(actions.HAND_MOVE[action])
        done |= world.rotate_hand(actions.HAND_TURN[action])
        done |= world.drop(actions.DROP[action] != NOTHING)
        done |= (actions.PLACE_AT[action] != NOTHING) & ~self.placed
        return done | (actions.READY[action] != NOTHING) & self.placed

    def _claims(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Who claims to see the object and does, and whose claims have the pixels, if not the reach."""
        claims = actions.CLAIM[action] != NOTHING
        if not claims.any():
            return claims, claims
        visible, near = self.in_sight()
        return claims & visible & near, claims & visible

    def _choose(self, worlds: np.ndarray, place: np.ndarray | None) -> np.ndarray:
        """Moves hiders to the places they chose. An impossible one is a failed action: the hider stays where it is."""
        done = np.zeros(len(self), bool)
        for b in np.flatnonzero(worlds).tolist():
            assert place is not None
            right, onward, quarters, standing = place[b]
            heading = self.start[b, 2]
            offset = GRID * (onward * facing_vector(heading) + right * right_vector(heading))
            target = self.world.state.position[b] + offset
            rotation = (self.start[b, 2] + 90 * quarters) % 360
            done[b] = self._reaches(b, target)
            if done[b]:
                self._move_to(b, np.array([*target, rotation, standing]))
        return done

    def _reaches(self, b: int, target: np.ndarray) -> bool:
        """Is a position one of the reachable ones of the game's grid, everything closed?"""
        room = self.world.room_of[b]
        floor, known = self.world.rooms[room].floor, self.world.reachable[room].positions
        if floor.clearance(target) < BODY_RADIUS:
            return False

        def among(point: np.ndarray, positions: np.ndarray) -> bool:
            return bool((np.abs(positions - point).max(1) < 1e-3).any())

        # Most games are on the room's own grid, which is known already.
        if self.start[b, 2] % 90 or not among(self.start[b, :2], known):
            known = floor.positions(self.start[b, :2], self.start[b, 2] % 90)
        return among(target, known)

    def _advance(
        self, stage: np.ndarray, action: np.ndarray, success: np.ndarray, full: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The order of the stages and their ends, all in one place.

        Returns who hit a target, the pixels of what was dropped, whose stage ended, and whose game.
        """
        explored = (stage == Stage.EM) & full
        chosen = stage == Stage.PS
        places = (stage == Stage.OH) & (actions.PLACE_AT[action] != NOTHING) & success
        manipulated = (stage == Stage.OM) & ((actions.DROP[action] != NOTHING) & success | full)
        sought = (stage == Stage.S) & ((actions.CLAIM[action] != NOTHING) & success | full)

        self.stage[explored] = Stage.PS
        self._begin_hiding(chosen & (self.last != Stage.PS))
        self._begin_manipulation(places, action)
        hit, counts = self._judge(manipulated)
        self._end_manipulation(manipulated & (self.last != Stage.OM), counts)
        self.landed[(stage == Stage.OH) & ~places] = NOTHING

        # OH ends when the hider says so, or with its last step, once a manipulation begun in it is over.
        ready = (stage == Stage.OH) & (actions.READY[action] != NOTHING) & success
        out_of_time = (self.stage == Stage.OH) & (self.time[:, Stage.OH] >= self.limits[Stage.OH])
        hidden = ready | out_of_time
        self._let_fall(out_of_time & ~self.placed)
        self._begin_seeking(hidden & (self.last == Stage.S))

        ended = explored | chosen | manipulated | hidden | sought
        finished = np.select(
            [self.last == end for end in (Stage.EM, Stage.PS, Stage.OH, Stage.OM)],
            [explored, chosen, hidden, manipulated], sought,
        )  # fmt: skip
        return hit, counts, ended, finished

    def _pick_up(self, worlds: np.ndarray) -> None:
        """The object is in the hand again, at its default position."""
        if worlds.any():
            self.world.hold(np.where(worlds, self.goal, NOTHING))

    def _begin_hiding(self, worlds: np.ndarray) -> None:
        self._pick_up(worlds)
        self.stage[worlds] = Stage.OH
        self.trail.forget_opened(worlds, Stage.OH)

    def _begin_manipulation(self, worlds: np.ndarray, action: np.ndarray) -> None:
        """The object is picked up, and OM begins with a history of its own."""
        self._pick_up(worlds)
        where = actions.PLACE_AT[action]
        self.target[worlds] = np.stack([where // 49, where // 7 % 7, where % 7], 1)[worlds]
        self._place_at[worlds] = action[worlds]
        self.stage[worlds] = Stage.OM
        self.time[worlds, Stage.OM] = 0
        self.last_action[worlds], self.last_success[worlds] = NOTHING, False
        self.trail.forget_opened(worlds, Stage.OM)

    def _end_manipulation(self, worlds: np.ndarray, counts: np.ndarray) -> None:
        """OH goes on where it was: its last action is the PlaceAt, which has succeeded or not."""
        self.stage[worlds] = Stage.OH
        self.last_action[worlds], self.last_success[worlds] = self._place_at[worlds], self.placed[worlds]
        fullest = counts.reshape(len(self), -1)
        landed = np.where(fullest.any(1), actions.PLACES[fullest.argmax(1)], NOTHING)
        self.landed[worlds] = landed[worlds]

    def _judge(self, worlds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether manipulations that ended put the object where it should be, and its pixels (B, 3, 7, 7).

        In the hand it is nowhere.
        """
        hit = np.zeros(len(self), bool)
        counts = np.zeros((len(self), len(actions.MODALITIES), cells.CELLS, cells.CELLS), int)
        dropped = worlds & ~self.world.state.held
        if dropped.any():
            masks = self.world.goal_pixels(dropped)
            seen, alone = torch.stack([cells.pixels_per_cell(mask) for mask in masks]).cpu().numpy()
            inside = self.world.contained(dropped)[dropped] != NOTHING
            counts[dropped] = placement.modality_counts(seen, np.maximum(alone, seen), inside)
            hit = dropped & placement.hits(counts, self.target)
            self.placed |= dropped & (placement.placed(counts, self.target) | self.anywhere)
        return hit, counts

    def _let_fall(self, worlds: np.ndarray) -> None:
        """What was never placed returns to the hand's default position and is simply dropped."""
        self._pick_up(worlds)
        if worlds.any():
            self.world.drop(worlds)

    def _begin_seeking(self, worlds: np.ndarray) -> None:
        for b in np.flatnonzero(worlds).tolist():
            self._move_to(b, self.start[b])
        self.stage[worlds] = Stage.S
        self.last_action[worlds], self.last_success[worlds] = NOTHING, False
        self.trail.begin(worlds, Stage.S, self.relative_place())

    def begin(self, worlds: np.ndarray) -> None:
        """New games, as they are dealt, in place of those under way: all is closed that the deal does not open."""
        if not worlds.any():
            return
        state, target = self.world.state, np.full((len(self), 3), NOTHING)
        self.world.remove(worlds)
        for b in np.flatnonzero(worlds).tolist():
            dealt = self.dealt[b] = self.deal(self.world, b)
            self.start[b], self.goal[b] = dealt.start, GOALS.index(dealt.goal)
            self.stage[b], self.last[b], self.anywhere[b] = dealt.first, dealt.last, dealt.anywhere
            # The pose of an object that is not there is always the same, so that a game's record does not depend on it.
            state.open[b], state.pose[b] = False, (0, 0, 0, 1, 0, 0, 0)
            state.open[b, list(dealt.open)] = True
            self._move_to(b, np.array(dealt.place or dealt.start))
            if dealt.target is not None:
                target[b] = dealt.target
            if dealt.pose is not None:
                state.goal[b], state.pose[b], state.held[b] = self.goal[b], dealt.pose, False
            self.games[b] += 1
        self.time[worlds], self.placed[worlds], self.landed[worlds] = 0, False, NOTHING
        self.last_action[worlds], self.last_success[worlds] = NOTHING, False
        self._view = None
        for stage in (Stage.EM, Stage.S):
            self.trail.begin(worlds & (self.stage == stage), stage, self.relative_place())
        self._begin_hiding(worlds & (self.stage == Stage.OH))
        manipulating = worlds & (self.stage == Stage.OM)
        cell = (target * (cells.CELLS**2, cells.CELLS, 1)).sum(1)
        self._begin_manipulation(manipulating, np.where(manipulating, actions.PLACES[cell], NOTHING))

    def _move_to(self, b: int, place: np.ndarray) -> None:
        state = self.world.state
        state.position[b], state.rotation[b], state.standing[b] = place[:2], place[2] % 360, bool(place[3])

    def _checked(self, action: np.ndarray, place: np.ndarray | None) -> np.ndarray:
        """Actions that are allowed in their stages, or -1 or a ValueError, before anything changes."""
        action, choosing = np.asarray(action), self.stage == Stage.PS
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            raise ValueError(f"one action's number for each of {len(self)} games is needed, not {action.shape}")
        if (action < NOTHING).any() or (action >= len(actions.NAMES)).any():
            raise ValueError(f"actions are numbers from 0 to {len(actions.NAMES) - 1}, or -1 in PS")
        if choosing.any() and (place is None or np.shape(place) != (len(self), 4)):
            raise ValueError(f"games in PS need places ({len(self)}, 4): right, ahead, quarter turns, standing")
        if self.forgiving:
            # No action asks nothing of the world: the step fails and takes its time.
            return np.where(actions.ALLOWED[self.stage, action] & (action != NOTHING), action, NOTHING)
        wrong = np.where(choosing, action != NOTHING, ~actions.ALLOWED[self.stage, action] | (action == NOTHING))
        if wrong.any():
            b = int(wrong.argmax())
            name = actions.NAMES[action[b]] if action[b] != NOTHING else "nothing"
            raise ValueError(f"{name} is not an action of {Stage(self.stage[b]).name}, the stage of game {b}")
        return action
