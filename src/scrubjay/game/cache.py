"""B games of Cache at once, each at its own stage, in lockstep.

A game: the hider explores (EM), chooses a place (PS), hides the object from there (OH), each attempt a manipulation
(OM), and the seeker looks for it from where the hider began (S). A finished game starts the next one in its room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from scrubjay.game import actions, placing
from scrubjay.game.actions import NOTHING, Stage
from scrubjay.world import cells
from scrubjay.world.floor import GRID, Grid
from scrubjay.world.place import REACH, Place, ahead, reach
from scrubjay.world.room import GOALS
from scrubjay.world.view import View
from scrubjay.world.world import World

LIMITS = np.array([200, 1, 15, 50, 500])
"""The most steps of each stage."""
CLAIM_PIXELS = 10
"""Of the object, at least, that the seeker must see to claim it."""


@dataclass
class Outcome:
    """What one step did in B games. Stages are those in which the actions were taken."""

    stage: np.ndarray
    action: np.ndarray
    success: np.ndarray
    """(B,) bool."""
    hit: np.ndarray
    """(B,) bool: a manipulation ended now, and the object is where it should be, strictly."""
    ended: np.ndarray
    """(B,) bool: the stage ended with this step; for OH, not by a manipulation that begins."""
    finished: np.ndarray
    """(B,) bool: the game ended with this step."""
    found: np.ndarray
    """(B,) bool: and the seeker had found the object."""
    pose: np.ndarray
    """(B, 7): where the objects were after the step, before a next game began."""


@dataclass(frozen=True)
class Deal:
    """What a game is dealt: the object to hide, and where hider and seeker begin."""

    goal: str
    start: Place


class Dealer:
    """Deals games at random, the same ones for the same seed."""

    def __init__(self, seed: int = 0, goals: tuple[str, ...] = GOALS, turned: bool = False) -> None:
        """`goals` are hidden; `turned` turns each game's grid by a random angle, as the paper augments its data."""
        unknown = set(goals) - set(GOALS)
        if unknown or not goals:
            raise ValueError(f"unknown goal objects {sorted(unknown)}; there are {', '.join(GOALS)}")
        self.goals, self.turned = goals, turned
        self.rng = np.random.default_rng(seed)

    def __call__(self, reachable: Grid) -> Deal:
        x, y = reachable.positions[self.rng.integers(len(reachable))]
        angle = self.rng.uniform(0, 90) if self.turned else 0.0
        rotation = angle + 90.0 * self.rng.integers(4)
        return Deal(self.goals[self.rng.integers(len(self.goals))], Place(float(x), float(y), float(rotation), True))


class Cache:
    """B games on the worlds of `world`."""

    def __init__(self, world: World, deal: Callable[[Grid], Deal] | None = None) -> None:
        """`deal` says for a room's reachable grid what its next game is; by default it is drawn at random."""
        self.world, self.deal = world, deal or Dealer()
        count = len(world)
        self.stage = np.full(count, int(Stage.EM))
        self.time = np.zeros((count, len(Stage)), int)
        """Steps taken in the current episode of each stage, (B, 5)."""
        self.goal = np.zeros(count, int)
        self.start = np.zeros((count, 4))
        """Where hider and seeker begin: x, z, rotation, standing."""
        self.target = np.zeros((count, 3), int)
        """Modality, row and column of the manipulation under way."""
        self.placed = np.zeros(count, bool)
        self.games = np.zeros(count, int)
        self.last_action = np.full(count, NOTHING)
        self.last_success = np.zeros(count, bool)
        self._view: View | None = None
        self._begin(np.ones(count, bool))

    def __len__(self) -> int:
        return len(self.world)

    @property
    def allowed(self) -> np.ndarray:
        """Which actions each game has now, (B, 219)."""
        return actions.ALLOWED[self.stage]

    def look(self) -> View:
        """What the players see now: rgb, ids and depth. Taken once a step."""
        if self._view is None:
            self._view = self.world.view(("rgb", "ids", "depth"))
        return self._view

    def relative_place(self) -> np.ndarray:
        """Where each player is, (B, 4): steps right and ahead, as seen from the start, quarter turns, standing."""
        state = self.world.state
        away = (state.position - self.start[:, :2]) / GRID
        facing = ahead(self.start[:, 2])
        right = np.stack([facing[:, 1], -facing[:, 0]], 1)
        quarters = np.round((state.rotation - self.start[:, 2]) / 90) % 4
        return (
            np.stack([(away * right).sum(1), (away * facing).sum(1), quarters, state.standing], 1).round().astype(int)
        )

    def step(self, action: np.ndarray, place: np.ndarray | None = None) -> Outcome:
        """One action in every game. Games in PS take a place instead, (B, 4), relative like `relative_place` but from
        where the hider is, with the quarter turns from the start's heading; their action is -1."""
        action, stage = self._checked(action, place), self.stage.copy()
        claimed = self._claims(action)
        success = self._act(action) | claimed
        success |= self._choose(stage == Stage.PS, place)
        self._view = None
        self.time[np.arange(len(self)), stage] += 1
        hit, ended = self._advance(stage, action, success)
        finished = ended & (stage == Stage.S)
        self.last_action, self.last_success = np.where(finished, NOTHING, action), success & ~finished
        pose = self.world.state.pose.copy()
        outcome = Outcome(stage, action, success, hit, ended, finished, finished & claimed, pose)
        self._begin(finished)
        return outcome

    def _act(self, action: np.ndarray) -> np.ndarray:
        """What the action does in the world, or in the game; who succeeded."""
        world, cell = self.world, actions.OPEN_CELL[action]
        row, column = np.where(cell == NOTHING, NOTHING, cell // 7), np.where(cell == NOTHING, NOTHING, cell % 7)
        done = world.move(actions.MOVE[action])
        done |= world.rotate(actions.ROTATE[action])
        done |= world.stand(actions.STAND[action])
        if (cell != NOTHING).any():
            done |= world.open_at(row, column, self.look())
        done |= world.close_near(actions.CLOSE[action] != NOTHING)
        done |= world.move_hand(actions.HAND_MOVE[action])
        done |= world.rotate_hand(actions.HAND_TURN[action])
        done |= world.drop(actions.DROP[action] != NOTHING)
        done |= (actions.PLACE_AT[action] != NOTHING) & ~self.placed
        return done | (actions.READY[action] != NOTHING) & self.placed

    def _claims(self, action: np.ndarray) -> np.ndarray:
        """Who claims to see the object and does: enough of its pixels, and within reach."""
        claims = actions.CLAIM[action] != NOTHING
        if not claims.any():
            return claims
        pixels = self.world.goal_mask(self.look()).sum((1, 2)).cpu().numpy()
        near = reach(self.world.state.position, self.world.state.pose[:, :3]) <= REACH
        return claims & near & (pixels >= CLAIM_PIXELS)

    def _choose(self, worlds: np.ndarray, place: np.ndarray | None) -> np.ndarray:
        """Moves hiders to the places they chose. An impossible one is a failed action: the hider stays where it is."""
        done = np.zeros(len(self), bool)
        for b in np.flatnonzero(worlds).tolist():
            assert place is not None
            right, onward, quarters, standing = place[b]
            facing = ahead(np.asarray(self.start[b, 2]))
            offset = GRID * (onward * facing + right * np.array([facing[1], -facing[0]]))
            target = self.world.state.position[b] + offset
            rotation = (self.start[b, 2] + 90 * quarters) % 360
            done[b] = self._reaches(b, target)
            if done[b]:
                self._move_to(b, np.array([*target, rotation, standing]))
        return done

    def _reaches(self, b: int, target: np.ndarray) -> bool:
        """Is a position one of the reachable ones of the game's grid, everything closed?"""
        grid = self.world.rooms[self.world.room_of[b]].floor.grid(self.start[b, :2], self.start[b, 2] % 90)
        return bool((np.linalg.norm(grid.positions - target, axis=1) < 1e-3).any())

    def _advance(self, stage: np.ndarray, action: np.ndarray, success: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The order of the stages and their ends, all in one place. Returns who hit a target, and whose stage ended."""
        full = self.time[np.arange(len(self)), stage] >= LIMITS[stage]
        explored = (stage == Stage.EM) & full
        chosen = stage == Stage.PS
        places = (stage == Stage.OH) & (actions.PLACE_AT[action] != NOTHING) & success
        manipulated = (stage == Stage.OM) & ((actions.DROP[action] != NOTHING) & success | full)
        sought = (stage == Stage.S) & ((actions.CLAIM[action] != NOTHING) & success | full)

        self.stage[explored] = Stage.PS
        self.stage[chosen] = Stage.OH
        self._pick_up(chosen | places)
        self._begin_manipulation(places, action)
        hit = self._judge(manipulated)
        self.stage[manipulated] = Stage.OH

        # OH ends when the hider says so, or with its last step, once a manipulation begun in it is over.
        ready = (stage == Stage.OH) & (actions.READY[action] != NOTHING) & success
        out_of_time = (self.stage == Stage.OH) & (self.time[:, Stage.OH] >= LIMITS[Stage.OH])
        hidden = ready | out_of_time
        self._let_fall(out_of_time & ~self.placed)
        self._begin_seeking(hidden)
        return hit, explored | chosen | manipulated | hidden | sought

    def _pick_up(self, worlds: np.ndarray) -> None:
        """The object is in the hand again, at its default position."""
        if worlds.any():
            self.world.hold(np.where(worlds, self.goal, NOTHING))

    def _begin_manipulation(self, worlds: np.ndarray, action: np.ndarray) -> None:
        where = actions.PLACE_AT[action]
        self.target[worlds] = np.stack([where // 49, where // 7 % 7, where % 7], 1)[worlds]
        self.stage[worlds] = Stage.OM
        self.time[worlds, Stage.OM] = 0

    def _judge(self, worlds: np.ndarray) -> np.ndarray:
        """Whether manipulations that ended put the object where it should be; in the hand it is nowhere."""
        hit = np.zeros(len(self), bool)
        dropped = worlds & ~self.world.state.held
        if dropped.any():
            seen, alone = (cells.pixels_per_cell(mask).cpu().numpy() for mask in self.world.goal_pixels())
            counts = placing.modality_counts(seen, np.maximum(alone, seen), self.world.contained(dropped) != NOTHING)
            hit = dropped & placing.hits(counts, self.target)
            self.placed |= dropped & placing.placed(counts, self.target)
        return hit

    def _let_fall(self, worlds: np.ndarray) -> None:
        """What was never placed returns to the hand's default position and is simply dropped."""
        self._pick_up(worlds)
        if worlds.any():
            self.world.drop(worlds)

    def _begin_seeking(self, worlds: np.ndarray) -> None:
        for b in np.flatnonzero(worlds).tolist():
            self._move_to(b, self.start[b])
        self.stage[worlds] = Stage.S

    def _begin(self, worlds: np.ndarray) -> None:
        """New games: everything closed, no object, the hider somewhere, looking somewhere."""
        state = self.world.state
        self.world.remove(worlds)
        for b in np.flatnonzero(worlds).tolist():
            state.open[b] = False
            dealt = self.deal(self.world.reachable[self.world.room_of[b]])
            self.start[b], self.goal[b] = dealt.start, GOALS.index(dealt.goal)
            self._move_to(b, self.start[b])
            self.games[b] += 1
        self.stage[worlds], self.time[worlds], self.placed[worlds] = Stage.EM, 0, False

    def _move_to(self, b: int, place: np.ndarray) -> None:
        state = self.world.state
        state.position[b], state.rotation[b], state.standing[b] = place[:2], place[2] % 360, bool(place[3])

    def _checked(self, action: np.ndarray, place: np.ndarray | None) -> np.ndarray:
        """Actions that are allowed in their stages, or ValueError before anything changes."""
        action, choosing = np.asarray(action), self.stage == Stage.PS
        if action.shape != (len(self),) or not np.issubdtype(action.dtype, np.integer):
            raise ValueError(f"one action's number for each of {len(self)} games is needed, not {action.shape}")
        if (action < NOTHING).any() or (action >= len(actions.NAMES)).any():
            raise ValueError(f"actions are numbers from 0 to {len(actions.NAMES) - 1}, or -1 in PS")
        if choosing.any() and (place is None or np.shape(place) != (len(self), 4)):
            raise ValueError(f"games in PS need places ({len(self)}, 4): right, ahead, quarter turns, standing")
        wrong = np.where(choosing, action != NOTHING, ~actions.ALLOWED[self.stage, action] | (action == NOTHING))
        if wrong.any():
            b = int(wrong.argmax())
            name = actions.NAMES[action[b]] if action[b] != NOTHING else "nothing"
            raise ValueError(f"{name} is not an action of {Stage(self.stage[b]).name}, the stage of game {b}")
        return action


def images(view: View) -> torch.Tensor:
    """A view's colours as networks take them: (B, 3, height, width), scaled and normalised as for natural images."""
    mean = torch.tensor([0.485, 0.456, 0.406], device=view.rgb.device)
    deviation = torch.tensor([0.229, 0.224, 0.225], device=view.rgb.device)
    return ((view.rgb.float() / 255 - mean) / deviation).permute(0, 3, 1, 2)
