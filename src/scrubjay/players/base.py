"""What a player is, and random ones.

A player maps a `CacheGame` and a mask of games to actions for those, and places for games in PS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from scrubjay.game.actions import NAMES, NOTHING, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.cache import CLAIM_PIXELS, CacheGame
from scrubjay.players.perception import sights
from scrubjay.rooms.directions import facing_vector, right_vector
from scrubjay.rooms.floor import GRID
from scrubjay.sim.cells import CELLS
from scrubjay.sim.physics import SWEPT_STEP
from scrubjay.sim.pose import REACH, cameras, hand_directions, in_view, reach

AROUND = 8
"""Steps to each side within which a random hider chooses its place."""


class Player(Protocol):
    """Whoever takes actions."""

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions (B,) and places (B, 4) for the games (B,) bool that it plays for; -1 and zeros elsewhere."""
        ...


class RandomPlayer:
    """Uniform over the actions of its stage, and over the places near where it is; or over those that can succeed."""

    def __init__(self, seed: int = 0, possible: bool = False) -> None:
        self.rng, self.possible = np.random.default_rng(seed), possible

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        allowed = (possible_actions(game, games) if self.possible else game.allowed) & games[:, None]
        # The largest of independent uniform numbers is at each allowed action equally often.
        draws = np.where(allowed, self.rng.random(allowed.shape), -1)
        action = np.where(allowed.any(1), draws.argmax(1), NOTHING)
        place = self.place(len(game))
        if self.possible:
            for b in np.flatnonzero(games & (game.stage == Stage.PS)).tolist():
                place[b, :2] = self._reachable(game, b)
        return action, place * games[:, None]

    def place(self, count: int) -> np.ndarray:
        """Random places, (B, 4): right, ahead, quarter turns, standing."""
        steps = self.rng.integers(-AROUND, AROUND + 1, (count, 2))
        return np.concatenate([steps, self.rng.integers(4, size=(count, 1)), self.rng.integers(2, size=(count, 1))], 1)

    def _reachable(self, game: CacheGame, b: int) -> np.ndarray:
        """The steps right and ahead from a hider to a random one of the reachable positions, (2,)."""
        start = game.start[b]
        grid = game.world.rooms[game.world.room_of[b]].floor.grid(start[:2], start[2] % 90)
        away = (grid.positions[self.rng.integers(len(grid))] - game.world.state.position[b]) / GRID
        return np.round([away @ right_vector(start[2]), away @ facing_vector(start[2])]).astype(int)


def possible_actions(game: CacheGame, games: np.ndarray) -> np.ndarray:
    """Which actions of their stages (B, 219) nothing speaks against, in some games (B,) bool; elsewhere none.

    Steps, crouching, standing up and closing are tried on a copy of the worlds' state, which is more than players
    know. OpenAt needs something closed in reach, a hand's movement only the arm and the view: whether what opens or
    moves is in the way of something is found out by doing it.
    """
    world, state = game.world, game.world.state
    possible = game.allowed & games[:, None]

    def rule(names: Sequence[str], able: np.ndarray) -> None:
        possible[:, [action_index(name) for name in names]] &= able.reshape(len(game), -1)

    def tried(act: Callable[[np.ndarray], np.ndarray], number: int) -> np.ndarray:
        world.state = state.copy()
        done = act(np.where(games & ~state.held, number, NOTHING))
        world.state = state
        return done

    for number, name in enumerate(("MoveAhead", "MoveLeft", "MoveRight")):
        rule([name], tried(world.move, number))
    rule(["Crouch"], state.standing)
    rule(["Stand"], ~state.standing)
    closing = possible[:, action_index("CloseObjects")]
    world.state = state.copy()
    rule(["CloseObjects"], world.close_near(closing))
    world.state = state

    looking = np.flatnonzero(possible.any(1))
    at_cells, seen = np.full((len(game), CELLS**2), NOTHING), np.zeros(len(game), bool)
    for b, sight in zip(looking.tolist(), sights(game, looking), strict=True):
        at_cells[b] = sight.at_cells.ravel()
        seen[b] = sight.goal_pixels >= CLAIM_PIXELS
    rule([name for name in NAMES if name.startswith("OpenAt")], at_cells != NOTHING)
    rule(["ClaimVisible"], seen & (reach(state.position, state.pose[:, :3]) <= REACH))
    rule([name for name in NAMES if name.startswith("PlaceAt")], ~game.placed[:, None].repeat(len(PLACE_ACTIONS), 1))
    rule(["ReadyForSeeker"], game.placed)

    eye, matrix = cameras(state.position, state.rotation, state.standing)
    points = state.pose[:, :3] + SWEPT_STEP * hand_directions(state.rotation)
    able = (reach(state.position, points) <= REACH) & in_view(eye, matrix, points)
    rule([name for name in NAMES if name.startswith("MoveHand")], able.T)
    rule(["DropObject"], state.held)
    # Someone who can do nothing does anything.
    nothing = games & ~possible.any(1)
    possible[nothing] = game.allowed[nothing]
    return possible


class Instead:
    """A player for some stages, and another one for those that it leaves alone."""

    def __init__(self, first: Player, otherwise: Player) -> None:
        self.first, self.otherwise = first, otherwise

    def __call__(self, game: CacheGame, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, place = self.first(game, games)
        left = games & (action == NOTHING)
        other, elsewhere = self.otherwise(game, left)
        return np.where(left, other, action), np.where(left[:, None], elsewhere, place)


def play(game: CacheGame, hider: Player, seeker: Player) -> tuple[np.ndarray, np.ndarray]:
    """The actions and places of both: the seeker's in games at S, the hider's in all others."""
    seeking = game.stage == Stage.S
    hidden, places = hider(game, ~seeking)
    sought, _ = seeker(game, seeking)
    return np.where(seeking, sought, hidden), places
